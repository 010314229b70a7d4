//! Why the arm does not move: a set of reasons, most severe first.

/// One reason. The order is the order of severity, and the first that applies is what one line of status shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Inhibit {
    /// The watchdog took the arm over because control hung. Only a restart leaves this.
    TakenOver,
    /// A software stop is latched.
    StopLatched,
    /// The arm has a fault; the status names it.
    ArmFault,
    /// Feedback from the arm is too old.
    FeedbackStale,
    /// The arm's start procedure is not finished.
    ArmStarting,
    /// Another lane of the group holds, or is not ready.
    GroupHolds,
    /// The operator device has never sent a usable sample.
    OperatorSilent,
    /// The last usable sample is too old.
    OperatorStale,
    /// The device does not see the hand.
    TrackingLost,
    /// The hand's pose jumped; a new reference is being awaited.
    TrackingJumped,
    /// The hand's pose has not changed by a bit for too long.
    TrackingFrozen,
    /// The operator that holds the lane's clutch is not heard, or its hand is not usable.
    ClutchLost,
    /// The device's axes have not been verified with `telearm check PLAN --frame`.
    FrameUnverified,
    /// The arm stands outside the plan's workspace; `telearm home` can bring it in.
    OutsideWorkspace,
    /// The arm is moving although nothing commands it.
    ArmMoving,
    /// Absolute mapping: the hand's target is too far from the arm to approach.
    ApproachTooFar,
    /// The clutch or gesture was already held when everything else cleared: release it first.
    EdgeHeld,
    /// The lane is homing.
    Homing,
    /// Following is possible; the engage act is being awaited.
    AwaitingEngage,
}

impl Inhibit {
    /// All, most severe first.
    pub const ALL: [Self; 19] = [
        Self::TakenOver,
        Self::StopLatched,
        Self::ArmFault,
        Self::FeedbackStale,
        Self::ArmStarting,
        Self::GroupHolds,
        Self::OperatorSilent,
        Self::OperatorStale,
        Self::TrackingLost,
        Self::TrackingJumped,
        Self::TrackingFrozen,
        Self::ClutchLost,
        Self::FrameUnverified,
        Self::OutsideWorkspace,
        Self::ArmMoving,
        Self::ApproachTooFar,
        Self::EdgeHeld,
        Self::Homing,
        Self::AwaitingEngage,
    ];

    /// Name as shown and documented.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TakenOver => "taken_over",
            Self::StopLatched => "stop_latched",
            Self::ArmFault => "arm_fault",
            Self::FeedbackStale => "feedback_stale",
            Self::ArmStarting => "arm_starting",
            Self::GroupHolds => "group_holds",
            Self::OperatorSilent => "operator_silent",
            Self::OperatorStale => "operator_stale",
            Self::TrackingLost => "tracking_lost",
            Self::TrackingJumped => "tracking_jumped",
            Self::TrackingFrozen => "tracking_frozen",
            Self::ClutchLost => "clutch_lost",
            Self::FrameUnverified => "frame_unverified",
            Self::OutsideWorkspace => "outside_workspace",
            Self::ArmMoving => "arm_moving",
            Self::ApproachTooFar => "approach_too_far",
            Self::EdgeHeld => "edge_held",
            Self::Homing => "homing",
            Self::AwaitingEngage => "awaiting_engage",
        }
    }

    /// What the operator can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::TakenOver => {
                "the control thread hung and the watchdog holds the arm: restart telearm"
            }
            Self::StopLatched => "clear the cause, then `telearm reset`; it never moves the arm",
            Self::ArmFault => "see the fault's name and its cure, then `telearm reset`",
            Self::FeedbackStale => "check the arm's power and bus",
            Self::ArmStarting => "wait, or see which start step is shown",
            Self::GroupHolds => "the other lane of the group is not ready; see its reason",
            Self::OperatorSilent => {
                "no usable packet yet: check the address and port typed into the device"
            }
            Self::OperatorStale => "packets stopped: check the device and the network",
            Self::TrackingLost => "bring the hand into view",
            Self::TrackingJumped => "hold the hand still for a moment",
            Self::TrackingFrozen => "move the hand; if it stays, restart tracking on the device",
            Self::ClutchLost => {
                "the hand that holds the clutch is not heard or not seen: check its device; then let go and press anew"
            }
            Self::FrameUnverified => "run `telearm check PLAN --frame` once with this device",
            Self::OutsideWorkspace => {
                "bring the arm into the plan's workspace: `telearm home LANE`, or by hand while unpowered"
            }
            Self::ArmMoving => "wait until the arm rests",
            Self::ApproachTooFar => "bring the hand nearer to the arm's pose",
            Self::EdgeHeld => "release the clutch or open the hand, then engage again",
            Self::Homing => "wait, or let go of the home key",
            Self::AwaitingEngage => {
                "make the engage gesture, press the clutch, or run `telearm engage`"
            }
        }
    }
}

/// A set of [`Inhibit`] reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InhibitSet(u32);

impl InhibitSet {
    /// No reason.
    pub const NONE: Self = Self(0);

    /// From its bits, as [`Self::bits`] gave them.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// As bits, reason `i` at bit `i`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Adds a reason if `on`.
    pub fn set(&mut self, reason: Inhibit, on: bool) {
        if on {
            self.0 |= 1 << reason as u32;
        }
    }

    /// This set with one more reason.
    #[must_use]
    pub const fn with(self, reason: Inhibit) -> Self {
        Self(self.0 | 1 << reason as u32)
    }

    /// This set without a reason.
    #[must_use]
    pub const fn without(self, reason: Inhibit) -> Self {
        Self(self.0 & !(1 << reason as u32))
    }

    /// Whether a reason is in the set.
    #[must_use]
    pub const fn contains(self, reason: Inhibit) -> bool {
        self.0 & (1 << reason as u32) != 0
    }

    /// Nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The most severe reason.
    #[must_use]
    pub fn most_severe(self) -> Option<Inhibit> {
        self.iter().next()
    }

    /// All reasons, most severe first.
    pub fn iter(self) -> impl Iterator<Item = Inhibit> {
        Inhibit::ALL.into_iter().filter(move |r| self.contains(*r))
    }
}
