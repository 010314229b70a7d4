//! The life of a Piper: from the first frame heard to `Up`, and back after a fault. Advances by at most one step a poll.
//! The questions are in `driver_identify`, power, mode and gripper in `driver_steps`.
//!
//! ```text
//!  Listening ──all feedback──► Identifying ──► Enabling ──all six──► Moding ──echo──► Anchoring ──► Gripping ──► Up
//!   ▲  │                                         ▲                     ▲            first target =                │
//!   │  └──known already, power on────────────────┼─────────────────────┘            measured pose                 │
//!   │                                            │                                                                │ fault
//!   │  cause gone                                │ reset done, at least two enable orders                         ▼
//!   └─────────────────────────────────────────── │ ◄── Resetting ◄── recover: the arm falls ────────────────── Faulted
//! ```
//! Motor power is switched on only at the first start and in a recovery. After any fault the arm must still have its power, or it stays
//! faulted: nothing powers an arm that nobody is looking at. A reset (0x150 02) is sent only by a recovery.

use super::driver::PiperDriver;
use super::driver_faults;
use super::driver_feedback::Table;
use super::driver_identify::Question;
use super::driver_report::Note;
use super::wire::{Command, IdOffset, LinkConfig, LinkRole, id};
use crate::signal::{ArmFault, ArmPhase, FaultKind};
use crate::time::{Span, Stamp};

/// Feedback at the start must not be older.
pub(super) const FRESH: Span = Span::from_ms(150);
/// A first target must not be older.
const ANCHOR_FRESH: Span = Span::from_ms(50);
/// What is not heard by then is a fault, with a name.
const LISTEN_FOR: Span = Span::from_ms(1000);
/// A cause must be gone for so long before the arm is taken up again.
const CURED_AFTER: Span = Span::from_ms(500);

/// Whether motor power may be switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    /// First start.
    MayEnable,
    /// Recovery: and if the arm turns out to have latched a fault, it may be reset. Not longer than the listening takes.
    MayReset,
    /// After a fault: it must still be on.
    MustBeOn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits until everything the arm reports has been heard.
    Listening { since: Option<Stamp>, power: Power },
    /// Asks firmware, limits, gripper.
    Identifying {
        question: Question,
        asked: Option<Stamp>,
        tries: u8,
    },
    /// Recovery from `fault`: the reset is ordered.
    Resetting {
        fault: ArmFault,
        since: Option<Stamp>,
        ordered: Option<Stamp>,
    },
    /// Switches motor power on.
    Enabling {
        since: Option<Stamp>,
        first: Option<Stamp>,
        last: Option<Stamp>,
        orders: u32,
        least: u32,
    },
    /// Orders the mode and waits for its echo in the status.
    Moding {
        since: Option<Stamp>,
        first: Option<Stamp>,
        last: Option<Stamp>,
    },
    /// Sends the measured pose as the first target.
    Anchoring,
    /// Switches the gripper on, where it is.
    Gripping {
        since: Option<Stamp>,
        cleared: Option<Stamp>,
        enabled: Option<Stamp>,
    },
    /// May be commanded.
    Up,
    /// Not usable. `sticky`: only a recovery leaves it.
    Faulted {
        fault: ArmFault,
        clear_since: Option<Stamp>,
        sticky: bool,
    },
}

impl Phase {
    pub(super) const START: Self = Self::Listening {
        since: None,
        power: Power::MayEnable,
    };

    /// As the rest of the program sees it.
    pub(super) fn shown(&self, table: &Table, now: Stamp) -> ArmPhase {
        let text = match self {
            Self::Up => return ArmPhase::Up,
            Self::Faulted { fault, .. } => return ArmPhase::Faulted(*fault),
            Self::Listening { .. } => table.missing(now, FRESH).unwrap_or("waiting for feedback"),
            Self::Identifying {
                question: Question::Firmware,
                ..
            } => "asking for the firmware version",
            Self::Identifying {
                question: Question::Limits(_),
                ..
            } => "asking for the joint limits",
            Self::Identifying {
                question: Question::Gripper,
                ..
            } => "asking for the gripper's parameters",
            Self::Resetting { .. } => "resetting (the arm drops)",
            Self::Enabling { .. } => "switching motor power on",
            Self::Moding { .. } => "waiting for the arm to take the mode",
            Self::Anchoring => "sending the measured pose as the first target",
            Self::Gripping { .. } => "switching the gripper on",
        };
        ArmPhase::Starting(text)
    }
}

/// The time since which a phase runs. While a stop is latched nothing can be sent, so the clock stands still.
pub(super) fn run_time(since: &mut Option<Stamp>, now: Stamp, may_configure: bool) -> Span {
    if !may_configure {
        *since = Some(now);
    }
    now.age_of(*since.get_or_insert(now))
}

pub(super) fn due(last: Option<Stamp>, now: Stamp, every: Span) -> bool {
    last.is_none_or(|at| now.age_of(at) >= every)
}

impl PiperDriver {
    /// One step of the life cycle.
    pub(super) fn advance(&mut self, now: Stamp, may_configure: bool) {
        let listening = matches!(self.phase, Phase::Listening { .. });
        if listening {
            // Before everything has been heard once, silence is not a loss; but a broken bus and a second commander are what they are.
            if let Some(kind) = self.link.fault() {
                return self.transition_to_faulted(ArmFault::whole(kind));
            }
        } else if !matches!(self.phase, Phase::Faulted { .. } | Phase::Resetting { .. })
            && let Some(fault) = self.judge(now)
        {
            return self.transition_to_faulted(fault);
        }
        match self.phase {
            Phase::Listening { since, power } => self.listen(since, power, now),
            Phase::Identifying {
                question,
                asked,
                tries,
            } => self.identify(question, asked, tries, now, may_configure),
            Phase::Resetting {
                fault,
                since,
                ordered,
            } => self.reset(fault, since, ordered, now, may_configure),
            Phase::Enabling { .. } => self.enable(now, may_configure),
            Phase::Moding { since, first, last } => {
                self.take_mode(since, first, last, now, may_configure)
            }
            Phase::Anchoring => {
                if may_configure && self.send_measured_target(now, ANCHOR_FRESH) {
                    self.phase = Phase::Gripping {
                        since: None,
                        cleared: None,
                        enabled: None,
                    };
                }
            }
            Phase::Gripping {
                since,
                cleared,
                enabled,
            } => self.grip(since, cleared, enabled, now, may_configure),
            Phase::Up => {
                // An idle arm that lost its mode takes it up again, so that the first command finds it.
                if may_configure && !self.mode_is_ours() && self.mode_due(now) {
                    self.order_mode(now);
                }
            }
            Phase::Faulted { .. } => self.look_for_cure(now),
        }
    }

    fn listen(&mut self, since: Option<Stamp>, power: Power, now: Stamp) {
        let mut since = since;
        let waited = run_time(&mut since, now, true);
        self.phase = Phase::Listening { since, power };
        if self.table.missing(now, FRESH).is_none() {
            // Nothing is asked of an arm that somebody else commands.
            if let Some(fault) = driver_faults::bus_fault(&self.table, now) {
                return self.transition_to_faulted(fault);
            }
            if let Some(fault) = driver_faults::arm_fault(&self.table, false) {
                return if power == Power::MayReset {
                    self.transition_to_resetting(fault)
                } else {
                    self.transition_to_faulted(fault)
                };
            }
            return match (self.identified, power) {
                (false, _) => {
                    self.phase = Phase::Identifying {
                        question: Question::Firmware,
                        asked: None,
                        tries: 0,
                    }
                }
                (true, Power::MayEnable | Power::MayReset) => self.transition_to_enabling(0),
                (true, Power::MustBeOn) => self.transition_to_moding_if_on(),
            };
        }
        if waited < LISTEN_FOR {
            return;
        }
        // Status and drivers may speak while pose or joints do not.
        let incomplete = ArmFault {
            kind: FaultKind::FeedbackLost,
            joint: 0,
            code: id::POSE_STATE,
        };
        let fault = self.judge(now).unwrap_or(incomplete);
        self.transition_to_faulted(fault);
    }

    /// A fault whose cause is gone for a while leads back to listening. Nothing is sent from here.
    fn look_for_cure(&mut self, now: Stamp) {
        let Phase::Faulted {
            fault,
            clear_since,
            sticky: false,
        } = self.phase
        else {
            return;
        };
        match self.judge(now) {
            Some(fault) => {
                self.phase = Phase::Faulted {
                    fault,
                    clear_since: None,
                    sticky: false,
                }
            }
            None => {
                let clear_since = clear_since.unwrap_or(now);
                self.phase = Phase::Faulted {
                    fault,
                    clear_since: Some(clear_since),
                    sticky: false,
                };
                if now.age_of(clear_since) >= CURED_AFTER {
                    self.transition_to_listening(if self.ever_up {
                        Power::MustBeOn
                    } else {
                        Power::MayEnable
                    });
                }
            }
        }
    }

    /// The link came back: whatever was under way is over.
    pub(super) fn restart_after_link(&mut self) {
        match self.phase {
            Phase::Faulted { .. } | Phase::Listening { .. } => {}
            Phase::Resetting { .. } => self.transition_to_listening(Power::MayEnable),
            _ => self.transition_to_faulted(ArmFault::whole(FaultKind::BusOff)),
        }
    }

    /// `telearm recover`: the operator knows that the arm may fall. An arm that is up is left alone.
    pub(super) fn begin_recovery(&mut self, now: Stamp) {
        let Phase::Faulted { fault, .. } = self.phase else {
            return;
        };
        self.identified = self.identified && fault.kind != FaultKind::Implausible;
        if !self.identified {
            self.table.limits = [None; 6];
            self.table.gripper_param = None;
        }
        let of_the_bus = matches!(
            fault.kind,
            FaultKind::FeedbackLost
                | FaultKind::BusDown
                | FaultKind::BusGone
                | FaultKind::BusOff
                | FaultKind::BusNotSending
                | FaultKind::ForeignCommand
        );
        match fault.kind {
            // Taken over by the watchdog: until the process ends.
            FaultKind::LinkBroken => {}
            FaultKind::LeaderMode => {
                let follow = LinkConfig {
                    role: LinkRole::Follower,
                    feedback: IdOffset::None,
                    command: IdOffset::None,
                    linkage: IdOffset::None,
                };
                if self.configure(&Command::Link(follow), now) {
                    self.report.add(Note::PowerCycle);
                }
                self.transition_to_listening(Power::MayEnable);
            }
            // Only an arm that shows a latched fault, or that does not start, needs the reset.
            kind if !of_the_bus
                && (kind == FaultKind::StartTimeout
                    || driver_faults::arm_fault(&self.table, false).is_some()) =>
            {
                self.transition_to_resetting(fault);
            }
            _ => self.transition_to_listening(Power::MayReset),
        }
    }

    pub(super) fn transition_to_listening(&mut self, power: Power) {
        if power != Power::MustBeOn {
            self.enabled_before = false;
        }
        self.phase = Phase::Listening { since: None, power };
    }

    pub(super) const fn transition_to_resetting(&mut self, fault: ArmFault) {
        self.enabled_before = false;
        self.phase = Phase::Resetting {
            fault,
            since: None,
            ordered: None,
        };
    }

    pub(super) fn transition_to_enabling(&mut self, least: u32) {
        self.phase = Phase::Enabling {
            since: None,
            first: None,
            last: None,
            orders: 0,
            least,
        };
    }

    pub(super) fn transition_to_moding(&mut self) {
        self.enabled_before = true;
        self.phase = Phase::Moding {
            since: None,
            first: None,
            last: None,
        };
    }

    pub(super) fn transition_to_moding_if_on(&mut self) {
        self.enabled_before = true;
        match driver_faults::arm_fault(&self.table, true) {
            Some(fault) => self.transition_to_faulted(fault),
            None => self.transition_to_moding(),
        }
    }

    pub(super) const fn transition_to_up(&mut self) {
        self.ever_up = true;
        self.phase = Phase::Up;
    }

    pub(super) const fn transition_to_faulted(&mut self, fault: ArmFault) {
        self.phase = Phase::Faulted {
            fault,
            clear_since: None,
            sticky: false,
        };
    }

    pub(super) const fn transition_to_sticky_fault(&mut self, fault: ArmFault) {
        self.phase = Phase::Faulted {
            fault,
            clear_since: None,
            sticky: true,
        };
    }
}
