//! Events of the real-time threads as sentences. The only place that formats them.

use log::Level;

use crate::config::Plan;
use crate::control::thread::ControlEvent;
use crate::supervisor::Mode;
use crate::watchdog::{TakeoverReason, WatchdogEvent};

use super::status::mode_detail;

/// An event of control; `None` for those that only the counters tell.
pub(super) fn control(plan: &Plan, event: &ControlEvent) -> Option<(Level, String)> {
    Some(match event {
        ControlEvent::Mode { lane, from, to } => {
            let detail = mode_detail(to);
            let detail = if detail.is_empty() {
                String::new()
            } else {
                format!(" ({detail})")
            };
            let level = if matches!(to, Mode::Fault { .. } | Mode::Stopped { .. }) {
                Level::Warn
            } else {
                Level::Info
            };
            (
                level,
                format!(
                    "{}: {} -> {}{detail}",
                    lane_name(plan, *lane),
                    from.name(),
                    to.name()
                ),
            )
        }
        ControlEvent::StopServed { after } => (
            Level::Warn,
            format!("stop served {:.0} us after it was latched", after.as_us()),
        ),
        ControlEvent::ArmStop { lane } => (
            Level::Warn,
            format!(
                "{}: the arm's own stop was sent; it needs `telearm recover`",
                lane_name(plan, *lane)
            ),
        ),
        ControlEvent::Late { .. } => return None,
        ControlEvent::Away { by } => (
            Level::Warn,
            format!(
                "control was away ({:.0} ms late, or the machine slept): disengaged",
                by.as_ms()
            ),
        ),
        ControlEvent::Reset => (Level::Info, "reset".to_owned()),
    })
}

/// An event of the watchdog.
pub(super) fn watchdog(plan: &Plan, event: WatchdogEvent) -> (Level, String) {
    match event {
        WatchdogEvent::Stale { lane } => (
            Level::Info,
            format!("{}: watchdog finds the input stale", lane_name(plan, lane)),
        ),
        WatchdogEvent::TookOver { reason, quiet } => {
            let why = match reason {
                TakeoverReason::HeartbeatLost => "control's heartbeat stood still",
                TakeoverReason::ActivePastLimit => "control followed stale input",
            };
            let how = if quiet {
                ""
            } else {
                ", while control was inside a write"
            };
            (
                Level::Error,
                format!("the watchdog took the arms over{how}: {why}; restart telearm"),
            )
        }
        WatchdogEvent::RevokeFailed { lane, errno } => (
            Level::Error,
            format!(
                "{}: control's descriptor could not be revoked (errno {errno})",
                lane_name(plan, lane)
            ),
        ),
        WatchdogEvent::Escalated { lane } => (
            Level::Error,
            format!(
                "{}: not at rest in time after the takeover; the arm's own stop was sent",
                lane_name(plan, lane)
            ),
        ),
        WatchdogEvent::Away { by } => (
            Level::Warn,
            format!(
                "the watchdog was away for {:.0} ms: the process or machine was paused or starved",
                by.as_ms()
            ),
        ),
    }
}

fn lane_name(plan: &Plan, lane: u8) -> &str {
    plan.lanes
        .get(usize::from(lane))
        .map_or("?", |l| l.name.as_str())
}
