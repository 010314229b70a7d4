//! What a stream of RCTP packets means: order, restarts, jumps, frozen streams, gestures.
//!
//! Per packet: stop bit (always) -> field checks (`wire`) -> order -> tracked? -> axes and sign -> jump gate -> frozen detector -> gesture.
//! Only a packet that passed everything up to "order" changes anything here.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use nalgebra::{Quaternion, UnitQuaternion, Vector3};

use super::params::Settings;
use super::wire::{self, Gripper, HandPose, Reject};
use crate::geometry::{AxisMap, Pose, admit_quat_wxyz};
use crate::operator::freshness::{Freshness, Order};
use crate::operator::gesture::{Gesture, Look};
use crate::operator::jump::{FrozenDetector, GateVerdict, JumpGate, JumpLimits};
use crate::operator::{Body, Break, DatagramSession, Glance, SessionCounts, Verdict};
use crate::signal::{Edges, OperatorSample, Quality};
use crate::time::{SenderTime, Stamp};

/// Names of [`wire::Reject`], then of the two refusals by order.
pub const DROP_REASONS: &[&str] = &[
    "short",
    "bad_magic",
    "nonfinite_timestamp",
    "nonfinite_pose",
    "position_range",
    "bad_quaternion",
    "duplicate",
    "out_of_order",
];
const DUPLICATE: u8 = 6;
const OUT_OF_ORDER: u8 = 7;

/// One hand's stream.
#[derive(Debug, Clone)]
pub struct Session {
    axes: AxisMap,
    freshness: Freshness,
    jump: JumpGate,
    frozen: FrozenDetector,
    gesture: Gesture,
    /// The last rotation, for a continuous sign of the quaternion.
    last_rotation: Option<UnitQuaternion<f64>>,
    /// The hand was out of sight or frozen since the last usable pose: the next usable one is a new reference.
    was_lost: bool,
    edges: Edges,
    counts: SessionCounts,
}

impl Session {
    /// A session that has seen nothing.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            axes: settings.frame.axes(),
            freshness: Freshness::default(),
            jump: JumpGate::new(JumpLimits::default()),
            frozen: FrozenDetector::default(),
            gesture: Gesture::new(settings.engage),
            last_rotation: None,
            was_lost: false,
            edges: Edges::default(),
            counts: SessionCounts::default(),
        }
    }

    /// The newest accepted sender time.
    #[must_use]
    pub const fn last_sender_time(&self) -> Option<SenderTime> {
        self.freshness.last()
    }

    /// The counters as the next sample would carry them.
    #[must_use]
    pub const fn edges(&self) -> &Edges {
        &self.edges
    }

    fn judge(&mut self, parsed: &wire::Parsed, received_at: Stamp) -> Body {
        let body = match parsed.body {
            wire::Body::Reject(reason) => return Body::Drop(reason as u8),
            wire::Body::Untracked { sender_time_s } => self.untracked(sender_time_s, received_at),
            wire::Body::Pose(pose) => self.tracked(&pose, received_at),
        };
        if matches!(body, Body::Sample(_)) && parsed.flags.reserved() != 0 {
            self.counts.reserved_bits = self.counts.reserved_bits.wrapping_add(1);
        }
        body
    }

    fn untracked(&mut self, sender_time_s: Option<f64>, received_at: Stamp) -> Body {
        let sender_time = sender_time_s.map(SenderTime::from_s);
        if let Some(refused) = sender_time.and_then(|time| self.refuse_by_order(time)) {
            return Body::Drop(refused);
        }
        self.counts.untracked = self.counts.untracked.wrapping_add(1);
        self.was_lost = true;
        self.frozen.reset();
        self.gesture.lost();
        Body::Sample(self.sample(sender_time, received_at))
    }

    fn tracked(&mut self, hand: &HandPose, received_at: Stamp) -> Body {
        let [x, y, z, w] = hand.orientation_xyzw.map(f64::from);
        // `wire` has judged the norm already; this is the door that makes a rotation of it, and it judges for itself.
        let Ok(raw) = admit_quat_wxyz([w, x, y, z]) else {
            return Body::Drop(Reject::BadQuaternion as u8);
        };
        let sender_time = SenderTime::from_s(hand.sender_time_s);
        if let Some(refused) = self.refuse_by_order(sender_time) {
            return Body::Drop(refused);
        }
        self.count_gripper(hand.gripper);
        let [px, py, pz] = hand.position_m.map(f64::from);
        let position = self.axes.vector(Vector3::new(px, py, pz));
        let rotation = self.continuous(self.axes.rotation(raw));
        let quality = self.judge_motion(position, rotation, received_at);
        self.gesture_step(
            quality,
            &Look {
                position,
                rotation,
                opening: hand.gripper.opening(),
                at: received_at,
            },
        );
        Body::Sample(OperatorSample {
            pose: Some(Pose::from_parts(position, rotation)),
            opening: hand.gripper.opening(),
            quality,
            ..self.sample(Some(sender_time), received_at)
        })
    }

    /// Judges order; a restart of the sender begins a new session. `Some`: the reason of the refusal.
    fn refuse_by_order(&mut self, time: SenderTime) -> Option<u8> {
        match self.freshness.admit(time) {
            Order::Next => None,
            Order::Restart => {
                self.counts.restarts = self.counts.restarts.wrapping_add(1);
                self.begin_session();
                None
            }
            Order::Duplicate => Some(DUPLICATE),
            Order::Late => Some(OUT_OF_ORDER),
        }
    }

    fn begin_session(&mut self) {
        self.edges.session = self.edges.session.wrapping_add(1);
        self.jump.reset();
        self.frozen.reset();
        self.gesture.lost();
        self.last_rotation = None;
        self.was_lost = false;
    }

    fn judge_motion(
        &mut self,
        position: Vector3<f64>,
        rotation: UnitQuaternion<f64>,
        at: Stamp,
    ) -> Quality {
        let frozen = self.frozen.is_frozen(position, rotation);
        match self.jump.admit(position, rotation, at) {
            GateVerdict::Held { first } => {
                self.counts.jumps = self.counts.jumps.wrapping_add(u64::from(first));
                return Quality::Jumped;
            }
            // The new reference is announced by the next usable sample, which is this one unless it is frozen too.
            GateVerdict::NewReference => self.was_lost = true,
            GateVerdict::Good => {}
        }
        if frozen {
            self.counts.frozen = self.counts.frozen.wrapping_add(1);
            self.was_lost = true;
            return Quality::Frozen;
        }
        if self.was_lost {
            self.was_lost = false;
            self.edges.reference = self.edges.reference.wrapping_add(1);
        }
        Quality::Good
    }

    fn gesture_step(&mut self, quality: Quality, look: &Look) {
        if quality != Quality::Good {
            self.gesture.lost();
            return;
        }
        if let Some(engaged) = self.gesture.look(look) {
            self.counts.engages = self.counts.engages.wrapping_add(1);
            self.edges.engage = self.edges.engage.wrapping_add(1);
            self.edges.engage_began = engaged.began;
        }
    }

    /// q and -q are one rotation; the sign is chosen so that the stream is continuous, whatever sign the sender picks per packet.
    fn continuous(&mut self, rotation: UnitQuaternion<f64>) -> UnitQuaternion<f64> {
        let canonical = canonical_sign(rotation);
        let flip = self
            .last_rotation
            .is_some_and(|last| last.coords.dot(&canonical.coords) < 0.0);
        let signed = if flip { negated(canonical) } else { canonical };
        // Adding zero turns -0 into 0, so that equal rotations have equal bits.
        let chosen =
            UnitQuaternion::new_unchecked(Quaternion::from(signed.coords.map(|c| c + 0.0)));
        self.last_rotation = Some(chosen);
        chosen
    }

    fn count_gripper(&mut self, gripper: Gripper) {
        match gripper {
            Gripper::Good(_) => {}
            Gripper::Clamped(_) => {
                self.counts.openings_clamped = self.counts.openings_clamped.wrapping_add(1)
            }
            Gripper::Refused => {
                self.counts.openings_refused = self.counts.openings_refused.wrapping_add(1)
            }
        }
    }

    /// What every sample carries; no pose, no opening, untracked.
    fn sample(&self, sender_time: Option<SenderTime>, received_at: Stamp) -> OperatorSample {
        OperatorSample {
            received_at,
            sender_time,
            quality: Quality::Untracked,
            clutch_pressed: self.gesture.clutch_pressed(),
            edges: self.edges,
            ..OperatorSample::default()
        }
    }
}

/// The one of q and -q whose first non-zero number (w, x, y, z) is positive: both give bit-identical results.
fn canonical_sign(rotation: UnitQuaternion<f64>) -> UnitQuaternion<f64> {
    let q = rotation.quaternion();
    let leading = [q.w, q.i, q.j, q.k].into_iter().find(|c| *c != 0.0);
    if leading.is_some_and(|c| c < 0.0) {
        negated(rotation)
    } else {
        rotation
    }
}

fn negated(rotation: UnitQuaternion<f64>) -> UnitQuaternion<f64> {
    UnitQuaternion::new_unchecked(-rotation.into_inner())
}

impl DatagramSession for Session {
    fn drop_reasons(&self) -> &'static [&'static str] {
        DROP_REASONS
    }

    fn glance(&self, bytes: &[u8]) -> Glance {
        let parsed = wire::parse(bytes);
        Glance {
            stop: parsed.stop,
            valid: !matches!(parsed.body, wire::Body::Reject(_)),
        }
    }

    fn on_datagram(&mut self, bytes: &[u8], received_at: Stamp) -> Verdict {
        let parsed = wire::parse(bytes);
        Verdict {
            stop: parsed.stop,
            body: self.judge(&parsed, received_at),
        }
    }

    fn on_break(&mut self, why: Break) {
        if why == Break::NewOwner {
            self.freshness.forget();
        }
        self.begin_session();
    }

    fn counts(&self) -> SessionCounts {
        self.counts
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
