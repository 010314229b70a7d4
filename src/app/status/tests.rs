use std::time::{Duration, Instant};

use super::*;
use crate::signal::FaultKind;
use crate::supervisor::HoldReason;
use crate::time::Stamp;

pub(super) fn snapshot() -> StatusSnapshot {
    let inhibits = InhibitSet::NONE
        .with(Inhibit::AwaitingEngage)
        .with(Inhibit::FrameUnverified)
        .with(Inhibit::OperatorStale);
    StatusSnapshot {
        plan: "quest-piper.toml".to_owned(),
        uptime_s: 75.0,
        process: ProcessStatus {
            rate_hz: 200,
            cycles: 15_000,
            late_cycles: 2,
            wakeup_worst_us: Some(131.4),
            real_time: false,
            real_time_reason: "no permission for SCHED_FIFO".to_owned(),
            core: None,
            dry_run: false,
            taken_over: false,
            input_away: 0,
            page_faults: 0,
            heap_operations: Some(0),
        },
        stop: None,
        lanes: vec![LaneStatus {
            name: "right".to_owned(),
            operator: "right-hand".to_owned(),
            arm: "piper".to_owned(),
            mode: "ready",
            mode_detail: String::new(),
            inhibits: whys(inhibits),
            slowed: "no",
            operator_age_ms: Some(1234.0),
            command: None,
            opening: None,
            sent: 0,
            not_sent: 0,
            vetoes: counts(&["not_finite", "leash"], &[0, 3]),
            engaged: 0,
            edges_ignored: 1,
            brake_vetoes: 0,
        }],
        sources: vec![SourceStatus {
            name: "right-hand".to_owned(),
            device: "rctp",
            listen: "0.0.0.0:8888".to_owned(),
            sender: None,
            packets_per_s: 49.6,
            packets: 0,
            accepted: 10,
            drops: counts(&["short", "bad_magic"], &[4, 0]),
            kernel_drops: 0,
            age_ms: None,
            frame: Some("openxr_rh"),
            frame_verified: false,
        }],
        arms: vec![ArmStatus {
            name: "piper".to_owned(),
            kind: "piper",
            link: "can0".to_owned(),
            phase: "starting",
            phase_detail: "waiting for feedback".to_owned(),
            notes: Vec::new(),
            warning: None,
            pose_age_ms: None,
            joints_age_ms: Some(4.0),
            frames_in_per_s: 3040.0,
            frames_out_per_s: 0.0,
            frames_in: 0,
            frames_out: 0,
            in_flight: 0,
            bus_errors: 0,
            busy: 0,
            measured: None,
            opening: None,
        }],
        events: vec![],
    }
}

/// Guards: one line says mode, the most severe reason with its cure, how many more, the age and whether real time was granted.
#[test]
fn line_says_why() {
    let line = snapshot().line();
    assert_eq!(
        line,
        "right READY: operator_stale - packets stopped: check the device and the network (+2 more), hand 1.2 s \
         | 200 Hz, late 2, worst wake-up 131 us, RT no"
    );
    let mut stopped = snapshot();
    stopped.stop = Some(StopStatus {
        reason: "operator_stop_bit".to_owned(),
        source: "right-hand".to_owned(),
        age_s: 0.2,
        asserted_by: vec![],
    });
    assert!(stopped.line().starts_with("STOPPED by right-hand"));
}

/// Guards: what was never received is "never", not zero; counters that are not zero are shown with their names.
#[test]
fn view_never_shows_zero_for_never() {
    let view = snapshot().view();
    for text in [
        "age never",
        "pose never, joints 4 ms",
        "tcp    never received",
        "from nobody yet: 50 packets/s",
        "short 4",
        "leash 3",
        "engage acts too early 1",
        "openxr_rh not verified",
        "no permission for SCHED_FIFO",
        "starting (waiting for feedback)",
    ] {
        assert!(view.contains(text), "{text:?} is missing in\n{view}");
    }
    assert!(!view.contains("bad_magic") && !view.contains("not_finite"));
}

/// Guards: JSON is JSON, and keeps null for never.
#[test]
fn json_keeps_null() {
    let value: serde_json::Value = serde_json::from_str(&snapshot().json()).unwrap();
    assert!(value["sources"][0]["age_ms"].is_null());
    assert_eq!(value["lanes"][0]["inhibits"][0]["reason"], "operator_stale");
}

/// Guards: a fault names itself, its joint and its code; a hold names its cause.
#[test]
fn details_have_names() {
    let fault = ArmFault::joint(FaultKind::MotorError, 3, 0x40);
    assert_eq!(fault_text(&fault), "motor_error, joint 3, code 0x40");
    assert_eq!(
        phase_text(&ArmPhase::Faulted(ArmFault::whole(FaultKind::BusDown))),
        ("faulted", "bus_down".to_owned())
    );
    let holding = Mode::Holding {
        since: Stamp::from_ms(0),
        why: HoldReason::TrackingLost,
        good_since: None,
    };
    assert_eq!(mode_detail(&holding), "tracking_lost");
}

/// Guards: on a terminal each frame goes up by exactly what the last one painted; elsewhere there is one line a second, no escapes.
#[test]
fn live_view_paints_in_place() {
    let now = Instant::now();
    let mut out = Vec::new();
    let mut live = Live::new(true);
    live.paint(&mut out, "a\nb\nc\n", "x", now).unwrap();
    live.paint(&mut out, "d\n", "x", now).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("c\x1b[K\n\x1b[J\x1b[3A\rd\x1b[K\n\x1b[J"),
        "{text:?}"
    );

    let mut out = Vec::new();
    let mut live = Live::new(false);
    for ms in [0, 200, 400, 1100, 1500] {
        live.paint(&mut out, "v", "x", now + Duration::from_millis(ms))
            .unwrap();
    }
    assert_eq!(String::from_utf8(out).unwrap(), "x\nx\n");
}
