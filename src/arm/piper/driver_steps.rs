//! The steps of the start that change the arm: reset (recovery only), motor power, mode, gripper.

use super::driver::PiperDriver;
use super::driver_bringup::{FRESH, Phase, due, run_time};
use super::driver_faults;
use super::driver_report::Note;
use super::wire::{Command, GripperPower, Joint, MotionOrder, MotorSelect, id};
use crate::signal::{ArmFault, FaultKind};
use crate::time::{Span, Stamp};

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

impl PiperDriver {
    pub(super) fn reset(
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

    pub(super) fn enable(&mut self, now: Stamp, may_configure: bool) {
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

    pub(super) fn take_mode(
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

    pub(super) fn grip(
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
}
