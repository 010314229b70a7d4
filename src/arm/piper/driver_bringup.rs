//! The life of a Piper: from the first frame heard to `Up`, and back after a fault. Advances by at most one step a poll.
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
use super::driver_report::Note;
use super::model::{DhVariant, PiperModel};
use super::params::DhChoice;
use super::wire::{
    Command, FirmwareText, FirmwareVersion, GripperPower, IdOffset, Joint, JointSelect, LimitQuery,
    LinkConfig, LinkRole, MotionOrder, MotorSelect, ParamOrder, ParamQuery, id,
};
use crate::signal::{ArmFault, ArmPhase, FaultKind};
use crate::time::{Span, Stamp};
use crate::units::MilliDegrees;

/// Feedback at the start must not be older.
const FRESH: Span = Span::from_ms(150);
/// A first target must not be older.
const ANCHOR_FRESH: Span = Span::from_ms(50);
/// What is not heard by then is a fault, with a name.
const LISTEN_FOR: Span = Span::from_ms(1000);
/// Between two tries of a query.
const QUERY_EVERY: Span = Span::from_ms(60);
const QUERY_TRIES: u8 = 3;
/// Between two enable orders.
const ENABLE_EVERY: Span = Span::from_ms(20);
/// After that the arm does not start.
const ENABLE_FOR: Span = Span::from_ms(10_000);
/// A reset needs at least so many enable orders behind it.
const ENABLES_AFTER_RESET: u32 = 2;
const RESET_EVERY: Span = Span::from_ms(500);
const RESET_FOR: Span = Span::from_ms(3000);
const MODE_EVERY: Span = Span::from_ms(100);
const MODE_FOR: Span = Span::from_ms(3000);
/// Between "off, errors cleared" and "on".
const GRIPPER_CLEAR_FOR: Span = Span::from_ms(50);
const GRIPPER_EVERY: Span = Span::from_ms(100);
const GRIPPER_FOR: Span = Span::from_ms(1000);
/// A cause must be gone for so long before the arm is taken up again.
const CURED_AFTER: Span = Span::from_ms(500);
/// Measured joints and pose may disagree by that much.
const MISFIT_MAX_M: f64 = 0.005;

/// Whether motor power may be switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    /// First start, or recovery.
    MayEnable,
    /// After a fault: it must still be on.
    MustBeOn,
}

/// What is asked of the arm once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Firmware,
    Limits(Joint),
    Gripper,
}

impl Question {
    fn next(self) -> Option<Self> {
        match self {
            Self::Firmware => Some(Self::Limits(Joint::J1)),
            Self::Limits(joint) => {
                Some(Joint::from_number(joint.number() + 1).map_or(Self::Gripper, Self::Limits))
            }
            Self::Gripper => None,
        }
    }

    const fn command(self) -> Command {
        match self {
            Self::Firmware => Command::QueryFirmware,
            Self::Limits(joint) => {
                Command::QueryLimits(JointSelect::One(joint), LimitQuery::AngleAndSpeed)
            }
            Self::Gripper => Command::Param(ParamOrder::query(ParamQuery::GripperParam)),
        }
    }

    fn answered(self, table: &Table) -> bool {
        match self {
            // Enough once the version can be told; the date behind it adds nothing.
            Self::Firmware => table.firmware.is_complete(),
            Self::Limits(joint) => table.limits.get(joint.index()).is_some_and(Option::is_some),
            Self::Gripper => table.gripper_param.is_some(),
        }
    }
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
fn run_time(since: &mut Option<Stamp>, now: Stamp, may_configure: bool) -> Span {
    if !may_configure {
        *since = Some(now);
    }
    now.age_of(*since.get_or_insert(now))
}

fn due(last: Option<Stamp>, now: Stamp, every: Span) -> bool {
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
            if let Some(fault) = driver_faults::bus_fault(&self.table, now)
                .or_else(|| driver_faults::arm_fault(&self.table, false))
            {
                return self.transition_to_faulted(fault);
            }
            return match (self.identified, power) {
                (false, _) => {
                    self.phase = Phase::Identifying {
                        question: Question::Firmware,
                        asked: None,
                        tries: 0,
                    }
                }
                (true, Power::MayEnable) => self.transition_to_enabling(0),
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

    fn identify(
        &mut self,
        question: Question,
        asked: Option<Stamp>,
        tries: u8,
        now: Stamp,
        may_configure: bool,
    ) {
        let answered = question.answered(&self.table);
        let given_up = tries >= QUERY_TRIES && due(asked, now, QUERY_EVERY);
        if answered || given_up {
            self.conclude(question, answered);
            let next = question
                .next()
                .filter(|q| *q != Question::Gripper || self.params.gripper);
            match next {
                Some(question) => {
                    self.phase = Phase::Identifying {
                        question,
                        asked: None,
                        tries: 0,
                    }
                }
                None => self.finish_identifying(),
            }
        } else if may_configure && due(asked, now, QUERY_EVERY) {
            if question == Question::Firmware {
                // Blocks carry no number: a fresh answer needs a fresh text.
                self.table.firmware = FirmwareText::new();
            }
            if self.configure(&question.command(), now) {
                self.phase = Phase::Identifying {
                    question,
                    asked: Some(now),
                    tries: tries + 1,
                };
            }
        }
    }

    /// Draws what can be drawn from one answer, or from its absence.
    fn conclude(&self, question: Question, answered: bool) {
        let report = &self.report;
        match question {
            Question::Firmware => match self.table.firmware.version() {
                Some(version) => {
                    report.set_firmware(version);
                    if !version.is_v2() {
                        report.add(Note::FirmwareV1);
                    } else if version < FirmwareVersion::new(1, 7, 4) {
                        report.add(Note::FirmwareOld);
                    }
                }
                None => report.add(Note::FirmwareUnknown),
            },
            Question::Limits(_) if !answered => report.add(Note::LimitsUnknown),
            Question::Limits(_) => {}
            Question::Gripper => match self.table.gripper_param {
                None => report.add(Note::GripperUnknown),
                Some(param) if param.range_mm == 0 => report.add(Note::GripperStrokeUnset),
                Some(param) if i32::from(param.range_mm) * 1000 != self.params.gripper_max_um => {
                    report.add(Note::GripperStrokeDiffers)
                }
                Some(_) => {}
            },
        }
    }

    fn finish_identifying(&mut self) {
        if let Some(fault) = driver_faults::absurd_limits(&self.table) {
            return self.transition_to_sticky_fault(fault);
        }
        self.choose_geometry();
        self.identified = true;
        if self.ever_up {
            self.transition_to_moding_if_on()
        } else {
            self.transition_to_enabling(0)
        }
    }

    /// Takes the geometry that gives the measured pose. The firmware version only breaks a tie: feedback is what the arm computes with.
    fn choose_geometry(&self) {
        let (Some(angles), Some(pose)) = (self.table.joints.value(), self.table.pose.value())
        else {
            return;
        };
        let (q, measured) = (angles.map(MilliDegrees::as_rad), pose.to_pose().position());
        let misfit_m = |model: &PiperModel| (model.fk(&q).position() - measured).norm();
        let (newer, older) = (misfit_m(&self.newer_model), misfit_m(&self.older_model));
        let by_firmware = self
            .table
            .firmware
            .version()
            .map_or(DhVariant::Offset, DhVariant::of);
        let best = if (newer - older).abs() < 1e-3 {
            by_firmware
        } else if newer < older {
            DhVariant::Offset
        } else {
            DhVariant::Old
        };
        let fits = newer.min(older) <= MISFIT_MAX_M;
        if !fits {
            self.report.add(Note::GeometryMisfit);
        }
        let chosen = match self.params.dh {
            DhChoice::Auto => best,
            DhChoice::Offset => DhVariant::Offset,
            DhChoice::NoOffset => DhVariant::Old,
        };
        if fits && chosen != best {
            self.report.add(Note::GeometryChoice);
        }
        self.report.set_geometry(chosen);
    }

    fn reset(
        &mut self,
        fault: ArmFault,
        since: Option<Stamp>,
        ordered: Option<Stamp>,
        now: Stamp,
        may_configure: bool,
    ) {
        if ordered.is_none() && !may_configure {
            // A recovery asked for under a latched stop is not kept for later: the arm would drop when the stop is reset.
            return self.transition_to_faulted(fault);
        }
        let mut since = since;
        let waited = run_time(&mut since, now, may_configure);
        let heard_since = |at: Stamp| {
            self.table.status.stamp().is_some_and(|heard| heard > at)
                && self
                    .table
                    .drivers
                    .iter()
                    .all(|d| d.stamp().is_some_and(|heard| heard > at))
        };
        if ordered.is_some_and(heard_since)
            && driver_faults::arm_fault(&self.table, false).is_none()
        {
            return self.transition_to_enabling(ENABLES_AFTER_RESET);
        }
        if waited >= RESET_FOR {
            let fault = ArmFault {
                kind: FaultKind::StartTimeout,
                joint: 0,
                code: id::MOTION,
            };
            return self.transition_to_sticky_fault(fault);
        }
        let sent = may_configure
            && due(ordered, now, RESET_EVERY)
            && self.configure(&Command::Motion(MotionOrder::RESET_DROPS_ARM), now);
        self.phase = Phase::Resetting {
            fault,
            since,
            ordered: if sent { Some(now) } else { ordered },
        };
    }

    fn enable(&mut self, now: Stamp, may_configure: bool) {
        let Phase::Enabling {
            mut since,
            first,
            last,
            orders,
            least,
        } = self.phase
        else {
            return;
        };
        let waited = run_time(&mut since, now, may_configure);
        if orders >= least
            && self
                .table
                .all_enabled(now, FRESH, first.unwrap_or_default())
        {
            return self.transition_to_moding();
        }
        if waited >= ENABLE_FOR {
            let off = |d: &crate::signal::Aged<super::wire::DriverState>| {
                d.value().is_none_or(|s| !s.flags.enabled())
            };
            let joint = Joint::ALL
                .into_iter()
                .zip(&self.table.drivers)
                .find(|(_, d)| off(d))
                .map_or(0, |(j, _)| j.number());
            return self.transition_to_sticky_fault(ArmFault::joint(
                FaultKind::StartTimeout,
                joint,
                id::POWER,
            ));
        }
        let order = Command::Power {
            motors: MotorSelect::Joints,
            on: true,
        };
        let sent = may_configure && due(last, now, ENABLE_EVERY) && self.configure(&order, now);
        self.phase = if sent {
            Phase::Enabling {
                since,
                first: first.or(Some(now)),
                last: Some(now),
                orders: orders.saturating_add(1),
                least,
            }
        } else {
            Phase::Enabling {
                since,
                first,
                last,
                orders,
                least,
            }
        };
    }

    fn take_mode(
        &mut self,
        since: Option<Stamp>,
        first: Option<Stamp>,
        last: Option<Stamp>,
        now: Stamp,
        may_configure: bool,
    ) {
        let mut since = since;
        let waited = run_time(&mut since, now, may_configure);
        let echoed =
            first.is_some_and(|at| self.table.status.stamp().is_some_and(|heard| heard > at));
        if echoed && self.mode_is_ours() {
            self.link.forget_rest();
            self.phase = Phase::Anchoring;
            return;
        }
        if waited >= MODE_FOR {
            return self.transition_to_sticky_fault(ArmFault {
                kind: FaultKind::StartTimeout,
                joint: 0,
                code: id::MODE,
            });
        }
        let sent = may_configure && due(last, now, MODE_EVERY) && self.order_mode(now);
        self.phase = if sent {
            Phase::Moding {
                since,
                first: first.or(Some(now)),
                last: Some(now),
            }
        } else {
            Phase::Moding { since, first, last }
        };
    }

    fn grip(
        &mut self,
        since: Option<Stamp>,
        cleared: Option<Stamp>,
        enabled: Option<Stamp>,
        now: Stamp,
        may_configure: bool,
    ) {
        let mut since = since;
        let waited = run_time(&mut since, now, may_configure);
        let Some(gripper) = self.table.gripper.fresh(now, FRESH) else {
            if self.params.gripper {
                self.report.add(Note::GripperAbsent);
            }
            return self.transition_to_up();
        };
        let on = gripper.flags.enabled() && gripper.flags.faults() == 0;
        let answered =
            enabled.is_none_or(|at| self.table.gripper.stamp().is_some_and(|heard| heard > at));
        // A gripper that is on stays on: switching it off would drop what it holds.
        let untouched = cleared.is_none();
        if !self.params.gripper || (on && (untouched || enabled.is_some()) && answered) {
            return self.transition_to_up();
        }
        if waited >= GRIPPER_FOR {
            self.report.add(Note::GripperOff);
            return self.transition_to_up();
        }
        let (mut cleared, mut enabled) = (cleared, enabled);
        if may_configure {
            match cleared {
                None => {
                    if self.order_gripper_stay(GripperPower::DisableClear, now) {
                        cleared = Some(now);
                    }
                }
                Some(at)
                    if now.age_of(at) >= GRIPPER_CLEAR_FOR && due(enabled, now, GRIPPER_EVERY) =>
                {
                    if self.order_gripper_stay(GripperPower::Enable, now) {
                        enabled = Some(now);
                    }
                }
                Some(_) => {}
            }
        }
        self.phase = Phase::Gripping {
            since,
            cleared,
            enabled,
        };
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
                self.enabled_before = false;
                self.phase = Phase::Resetting {
                    fault,
                    since: None,
                    ordered: None,
                };
            }
            _ => self.transition_to_listening(Power::MayEnable),
        }
    }

    fn transition_to_listening(&mut self, power: Power) {
        if power == Power::MayEnable {
            self.enabled_before = false;
        }
        self.phase = Phase::Listening { since: None, power };
    }

    fn transition_to_enabling(&mut self, least: u32) {
        self.phase = Phase::Enabling {
            since: None,
            first: None,
            last: None,
            orders: 0,
            least,
        };
    }

    fn transition_to_moding(&mut self) {
        self.enabled_before = true;
        self.phase = Phase::Moding {
            since: None,
            first: None,
            last: None,
        };
    }

    fn transition_to_moding_if_on(&mut self) {
        self.enabled_before = true;
        match driver_faults::arm_fault(&self.table, true) {
            Some(fault) => self.transition_to_faulted(fault),
            None => self.transition_to_moding(),
        }
    }

    const fn transition_to_up(&mut self) {
        self.ever_up = true;
        self.phase = Phase::Up;
    }

    const fn transition_to_faulted(&mut self, fault: ArmFault) {
        self.phase = Phase::Faulted {
            fault,
            clear_since: None,
            sticky: false,
        };
    }

    const fn transition_to_sticky_fault(&mut self, fault: ArmFault) {
        self.phase = Phase::Faulted {
            fault,
            clear_since: None,
            sticky: true,
        };
    }
}
