//! Whether the arm rests, judged by its own feedback.

use crate::geometry::{ArmBase, Pose, Tcp, angle_between};
use crate::signal::Aged;
use crate::time::{Span, Stamp};

/// Staying within this of one place is rest, metres. Above the Piper's noise and quantisation, below any motion worth the name.
const REST_M: f64 = 0.002;
/// Likewise in rotation.
const REST_RAD: f64 = 0.02;
/// ... for this long.
const REST_FOR: Span = Span::from_ms(150);

/// Watches the measured pose.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RestDetector {
    /// Where and since when.
    place: Option<(Pose<ArmBase, Tcp>, Stamp)>,
    newest: Option<Stamp>,
}

impl RestDetector {
    /// Feeds the newest measured pose.
    pub(super) fn feed(&mut self, measured: &Aged<Pose<ArmBase, Tcp>>) {
        let (Some(pose), Some(at)) = (measured.value(), measured.stamp()) else {
            return;
        };
        if self.newest == Some(at) {
            return;
        }
        self.newest = Some(at);
        let moved = self.place.is_none_or(|(p, _)| {
            (p.position() - pose.position()).norm() > REST_M
                || angle_between(p.rotation(), pose.rotation()) > REST_RAD
        });
        if moved {
            self.place = Some((pose, at));
        }
    }

    /// At rest for long enough. `None`: there is no recent feedback, which says neither.
    pub(super) fn at_rest(&self, now: Stamp) -> Option<bool> {
        let (_, since) = self.place?;
        let newest = self.newest?;
        (now.age_of(newest) <= REST_FOR).then(|| newest.age_of(since) >= REST_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{UnitQuaternion, Vector3};

    fn at(x: f64, ms: u64) -> Aged<Pose<ArmBase, Tcp>> {
        Aged::at(
            Pose::from_parts(Vector3::new(x, 0.0, 0.0), UnitQuaternion::identity()),
            Stamp::from_ms(ms),
        )
    }

    /// Guards: a slow drift is motion, noise is not, and silence is neither.
    #[test]
    fn rest_needs_recent_still_feedback() {
        let mut rest = RestDetector::default();
        assert_eq!(rest.at_rest(Stamp::from_ms(0)), None);
        for i in 0..40 {
            rest.feed(&at(0.0005 * f64::from(u8::try_from(i % 2).unwrap()), 5 * i));
        }
        assert_eq!(rest.at_rest(Stamp::from_ms(200)), Some(true));
        assert_eq!(rest.at_rest(Stamp::from_ms(600)), None, "silent");
        for i in 0..40u32 {
            rest.feed(&at(
                0.02 * 0.005 * f64::from(i) * 1.0 + 0.01,
                1000 + 5 * u64::from(i),
            ));
        }
        assert_eq!(rest.at_rest(Stamp::from_ms(1195)), Some(false), "20 mm/s");
    }
}
