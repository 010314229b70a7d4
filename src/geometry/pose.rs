//! [`Pose`] and the frame markers.

use core::marker::PhantomData;
use core::ops::Mul;

use nalgebra::{Isometry3, Translation3, UnitQuaternion, Vector3};

/// Frame of the operator device after its axis map: X forward, Y left, Z up, origin wherever the device puts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorWorld;
/// The operator's hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hand;
/// The arm's base: X forward, Y left, Z up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmBase;
/// The arm's tool point (for the Piper: the J6 flange).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp;
/// Room frame shared by several arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct World;

/// Rigid transform from `From` coordinates (metres) to `To` coordinates.
pub struct Pose<To, From> {
    /// The transform itself.
    pub iso: Isometry3<f64>,
    frames: PhantomData<fn(From) -> To>,
}

impl<To, From> Pose<To, From> {
    /// The one door from an untyped transform: the caller states the frames.
    #[must_use]
    pub const fn assume(iso: Isometry3<f64>) -> Self {
        Self {
            iso,
            frames: PhantomData,
        }
    }

    /// From a position in metres and a rotation.
    #[must_use]
    pub fn from_parts(position_m: Vector3<f64>, rotation: UnitQuaternion<f64>) -> Self {
        Self::assume(Isometry3::from_parts(
            Translation3::from(position_m),
            rotation,
        ))
    }

    /// No translation, no rotation.
    #[must_use]
    pub fn identity() -> Self {
        Self::assume(Isometry3::identity())
    }

    /// Position of `From`'s origin in `To`, metres.
    #[must_use]
    pub fn position(&self) -> Vector3<f64> {
        self.iso.translation.vector
    }

    /// Rotation of `From` in `To`.
    #[must_use]
    pub fn rotation(&self) -> UnitQuaternion<f64> {
        self.iso.rotation
    }

    /// The other way round.
    #[must_use]
    pub fn inverse(&self) -> Pose<From, To> {
        Pose::assume(self.iso.inverse())
    }

    /// Every number is finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.iso.translation.vector.iter().all(|v| v.is_finite())
            && self.iso.rotation.coords.iter().all(|v| v.is_finite())
    }
}

impl<A, B, C> Mul<Pose<B, C>> for Pose<A, B> {
    type Output = Pose<A, C>;
    fn mul(self, rhs: Pose<B, C>) -> Pose<A, C> {
        Pose::assume(self.iso * rhs.iso)
    }
}

impl<To, From> Clone for Pose<To, From> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<To, From> Copy for Pose<To, From> {}
impl<To, From> PartialEq for Pose<To, From> {
    fn eq(&self, other: &Self) -> bool {
        self.iso == other.iso
    }
}
impl<To, From> core::fmt::Debug for Pose<To, From> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Pose({:?}, {:?})",
            self.iso.translation.vector.as_slice(),
            self.iso.rotation.coords.as_slice()
        )
    }
}
impl<To, From> Default for Pose<To, From> {
    fn default() -> Self {
        Self::identity()
    }
}
