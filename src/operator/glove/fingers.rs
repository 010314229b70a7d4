//! What of a glove's packet matters: how far thumb and index are apart, and how far ring and pinky fingertip reach.
//!
//! **Opening**: the distance of thumb and index, between two calibrated ends.
//!
//! **Curl** of ring and pinky: the distance of the fingertip from the origin of the frame (the magnetic source of FNIM, the wrist of FSNH),
//! both of which sit behind the knuckles. A finger that curls brings its tip nearer. Each finger goes from 0 at its `straight_mm` to 1 at
//! its `curled_mm`, and the hand's curl is that of the finger that is curled *less*: both must be curled. A distance does not depend on how
//! the axes are turned, so a sender with other axes than the document's cannot turn "straight" into "curled".
//!
//! ```text
//!                 curl below 0.5            curl of 0.7 and above
//!   Unknown ────────────────────► Straight ─────────────────────► Curled: the clutch is held
//!      ▲                             ▲                              │  │
//!      │                             └──────────────────────────────┘  │
//!      │                                      curl below 0.5           │
//!      └───────────────────────────────────────────────────────────────┘
//!          a fingertip is not usable, a pause, a new session, a frozen stream (from anywhere)
//! ```
//! So a clutch counts only after it has been seen let go: numbers that fit another hand may make it impossible to hold, but the posture
//! that makes it engage always is one that has just been entered.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use super::wire::{AnyFrame, fnim, fsnh};
use crate::units::Opening;

/// From this curl on the clutch is held.
pub const HELD_FROM: f64 = 0.7;
/// Below this curl it is let go.
pub const LET_GO_BELOW: f64 = 0.5;

/// The measures of one packet, millimetres. `None`: a fingertip that it needs is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Fingers {
    /// Some finger is usable.
    pub is_seen: bool,
    /// Thumb to index.
    pub aperture_mm: Option<f64>,
    /// Ring fingertip to the origin.
    pub ring_reach_mm: Option<f64>,
    /// Pinky fingertip to the origin.
    pub pinky_reach_mm: Option<f64>,
}

/// Which joints of an FSNH packet are the tips of thumb, index, ring and pinky.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsnhTips(pub [u8; 4]);

impl Fingers {
    /// Of a packet of either kind.
    #[must_use]
    pub fn of(frame: &AnyFrame, tips: FsnhTips) -> Self {
        match frame {
            AnyFrame::Fnim(frame) => Self::of_fnim(frame),
            AnyFrame::Fsnh(frame) => Self::of_fsnh(frame, tips),
        }
    }

    fn of_fnim(frame: &fnim::Frame) -> Self {
        let [thumb, index, _, ring, pinky, _] = frame
            .slots
            .map(|slot| slot.ok().map(|s| s.position_mm.map(f64::from)));
        Self {
            is_seen: frame.has_finger(),
            ..Self::measure(thumb, index, ring, pinky)
        }
    }

    /// There is no valid byte: one bad joint makes the whole hand unusable.
    fn of_fsnh(frame: &fsnh::Frame, FsnhTips(tips): FsnhTips) -> Self {
        if !frame.is_whole() {
            return Self::default();
        }
        let [thumb, index, ring, pinky] = tips.map(|tip| {
            let joint = frame.joints().get(usize::from(tip))?.ok()?;
            Some(joint.position_m.map(|m| f64::from(m) * 1e3))
        });
        Self {
            is_seen: true,
            ..Self::measure(thumb, index, ring, pinky)
        }
    }

    fn measure(
        thumb: Option<[f64; 3]>,
        index: Option<[f64; 3]>,
        ring: Option<[f64; 3]>,
        pinky: Option<[f64; 3]>,
    ) -> Self {
        Self {
            is_seen: false,
            aperture_mm: thumb
                .zip(index)
                .map(|([ax, ay, az], [bx, by, bz])| norm([ax - bx, ay - by, az - bz])),
            ring_reach_mm: ring.map(norm),
            pinky_reach_mm: pinky.map(norm),
        }
    }

    /// All measures, if all are there: aperture, ring, pinky.
    #[must_use]
    pub fn all_mm(&self) -> Option<[f64; 3]> {
        Some([self.aperture_mm?, self.ring_reach_mm?, self.pinky_reach_mm?])
    }

    /// No measure at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.aperture_mm.is_none() && self.ring_reach_mm.is_none() && self.pinky_reach_mm.is_none()
    }
}

fn norm([x, y, z]: [f64; 3]) -> f64 {
    x.hypot(y).hypot(z)
}

/// Two ends of one measure, millimetres, at least [`Ends::APART_MIN_MM`] apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// Open hand or straight finger: the larger one.
    pub far_mm: f64,
    /// Thumb on index, or curled finger.
    pub near_mm: f64,
}

impl Ends {
    /// Nearer ends make noise into motion.
    pub const APART_MIN_MM: f64 = 15.0;

    /// 0 at the near end, 1 at the far one, not limited.
    #[must_use]
    pub fn share(&self, mm: f64) -> f64 {
        (mm - self.near_mm) / (self.far_mm - self.near_mm)
    }
}

/// What one wearer's hand measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Thumb to index.
    pub aperture: Ends,
    /// Reach of the ring finger.
    pub ring: Ends,
    /// Reach of the pinky.
    pub pinky: Ends,
}

impl Calibration {
    /// The gripper opening; `None` when thumb or index is not usable.
    #[must_use]
    pub fn opening(&self, fingers: &Fingers) -> Option<Opening> {
        Opening::clamped(self.aperture.share(fingers.aperture_mm?))
    }

    /// 0 straight, 1 curled, of the finger that is curled less; `None` when one of the two is not usable.
    #[must_use]
    pub fn curl(&self, fingers: &Fingers) -> Option<f64> {
        let ring = 1.0 - self.ring.share(fingers.ring_reach_mm?);
        let pinky = 1.0 - self.pinky.share(fingers.pinky_reach_mm?);
        Some(ring.min(pinky))
    }
}

/// The clutch of curled fingers; see the diagram above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CurlClutch {
    /// Not seen straight since it was last lost.
    #[default]
    Unknown,
    /// Let go.
    Straight,
    /// Held.
    Curled,
}

impl CurlClutch {
    /// Takes the curl of the next packet.
    pub fn look(&mut self, curl: Option<f64>) {
        *self = match (*self, curl) {
            (_, None) => Self::Unknown,
            (_, Some(curl)) if curl < LET_GO_BELOW => Self::Straight,
            (Self::Straight, Some(curl)) if curl >= HELD_FROM => Self::Curled,
            (state, Some(_)) => state,
        };
    }

    /// Forgets what it saw.
    pub fn lost(&mut self) {
        *self = Self::Unknown;
    }

    /// Hold-to-run: the arm may follow.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Curled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATION: Calibration = Calibration {
        aperture: Ends {
            far_mm: 100.0,
            near_mm: 20.0,
        },
        ring: Ends {
            far_mm: 150.0,
            near_mm: 90.0,
        },
        pinky: Ends {
            far_mm: 130.0,
            near_mm: 80.0,
        },
    };

    fn fingers(aperture_mm: f64, ring: f64, pinky: f64) -> Fingers {
        Fingers {
            is_seen: true,
            aperture_mm: Some(aperture_mm),
            ring_reach_mm: Some(ring),
            pinky_reach_mm: Some(pinky),
        }
    }

    /// Guards: 0 at the closed end, 1 at the open one, linear between them, never beyond; nothing without both fingertips.
    #[test]
    fn opening_between_the_calibrated_ends() {
        for (mm, opening) in [
            (0.0, 0.0),
            (20.0, 0.0),
            (60.0, 0.5),
            (100.0, 1.0),
            (400.0, 1.0),
        ] {
            let got = CALIBRATION.opening(&fingers(mm, 150.0, 130.0));
            assert_eq!(got.map(Opening::get), Some(opening), "{mm}");
        }
        let one_missing = Fingers {
            aperture_mm: None,
            ..fingers(0.0, 150.0, 130.0)
        };
        assert_eq!(CALIBRATION.opening(&one_missing), None);
    }

    /// Guards: one curled finger is not enough, and one that is not usable is none.
    #[test]
    fn both_fingers_must_be_curled() {
        let curl = |ring, pinky| CALIBRATION.curl(&fingers(50.0, ring, pinky));
        assert_eq!(curl(90.0, 80.0), Some(1.0));
        assert_eq!(curl(150.0, 80.0), Some(0.0));
        assert_eq!(curl(90.0, 130.0), Some(0.0));
        let missing = Fingers {
            pinky_reach_mm: None,
            ..fingers(50.0, 90.0, 80.0)
        };
        assert_eq!(CALIBRATION.curl(&missing), None);
    }

    /// Guards: the clutch has to be seen let go first, does not chatter between its two limits, and is let go with the first packet that
    /// lacks a finger; after that it has to be let go for real.
    #[test]
    fn clutch_is_let_go_before_it_is_held() {
        let mut clutch = CurlClutch::default();
        let mut held = |curl| {
            clutch.look(curl);
            clutch.is_held()
        };
        assert!(!held(Some(1.0)), "never seen let go");
        assert!(!held(Some(0.6)));
        assert!(!held(Some(0.49)));
        assert!(!held(Some(0.69)), "not curled enough");
        assert!(held(Some(0.7)));
        assert!(held(Some(0.5)), "between the limits it stays");
        assert!(!held(Some(0.49)));
        assert!(held(Some(0.9)));
        assert!(!held(None), "not usable: let go");
        assert!(!held(Some(0.9)), "and inert until it was let go");
        assert!(!held(Some(0.0)));
        assert!(held(Some(0.9)));
    }
}
