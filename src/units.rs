//! Unit newtypes at raw boundaries.
//!
//! Inside, everything is SI in `f64`. These types stand where a number crosses a wire or a config file.

/// Gripper opening, 0 closed … **1 open**, everywhere inside the program. A device that closes with 1 inverts in its own conversion.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Opening(f64);

impl Opening {
    /// Fully closed.
    pub const CLOSED: Self = Self(0.0);
    /// Fully open.
    pub const OPEN: Self = Self(1.0);

    /// An opening in 0..=1; anything else, NaN included, gives `None`.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The nearest opening; NaN gives `None`.
    #[must_use]
    pub fn clamped(value: f64) -> Option<Self> {
        if value.is_nan() {
            None
        } else {
            Some(Self(value.clamp(0.0, 1.0)))
        }
    }

    /// The number, 0..=1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Thousandths of a millimetre, the Piper's unit of length on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Micrometres(pub i32);

impl Micrometres {
    /// Nearest whole unit; `None` when not finite or beyond `i32`.
    #[must_use]
    pub fn from_m(m: f64) -> Option<Self> {
        round_i32(m * 1e6).map(Self)
    }

    /// Metres.
    #[must_use]
    pub fn as_m(self) -> f64 {
        f64::from(self.0) * 1e-6
    }
}

/// Thousandths of a degree, the Piper's unit of angle on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MilliDegrees(pub i32);

impl MilliDegrees {
    /// Nearest whole unit; `None` when not finite or beyond `i32`.
    #[must_use]
    pub fn from_rad(rad: f64) -> Option<Self> {
        round_i32(rad.to_degrees() * 1e3).map(Self)
    }

    /// Radians.
    #[must_use]
    pub fn as_rad(self) -> f64 {
        (f64::from(self.0) * 1e-3).to_radians()
    }
}

/// Rounds half away from zero; `None` when not finite or beyond `i32`. Never saturates silently.
#[must_use]
pub fn round_i32(x: f64) -> Option<i32> {
    let r = x.round();
    // The bounds are exact in f64, so the cast below cannot saturate; NaN fails the comparison.
    (r >= f64::from(i32::MIN) && r <= f64::from(i32::MAX)).then_some(r as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: rounding to a bus unit refuses instead of saturating.
    #[test]
    fn rounding_never_saturates() {
        assert_eq!(Micrometres::from_m(0.057), Some(Micrometres(57_000)));
        assert_eq!(Micrometres::from_m(3e6), None);
        assert_eq!(Micrometres::from_m(f64::NAN), None);
        assert_eq!(round_i32(-2_147_483_648.0), Some(i32::MIN));
        assert_eq!(round_i32(2_147_483_647.6), None);
        assert_eq!(
            MilliDegrees::from_rad(core::f64::consts::FRAC_PI_2),
            Some(MilliDegrees(90_000))
        );
    }

    #[test]
    fn opening_refuses_nan() {
        assert_eq!(Opening::clamped(f64::NAN), None);
        assert_eq!(Opening::new(1.01), None);
        assert_eq!(Opening::clamped(1.05), Some(Opening::OPEN));
    }
}
