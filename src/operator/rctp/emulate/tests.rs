//! The emulator drives a real session, tick by tick, with a fake clock.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::operator::emulate::Running;
use crate::operator::gesture::EngageBy;
use crate::operator::rctp::{Session, Settings};
use crate::operator::{Body, DatagramSession, SessionCounts};
use crate::signal::{OperatorSample, Quality};
use crate::time::Stamp;

struct Outcome {
    samples: Vec<OperatorSample>,
    counts: SessionCounts,
    drops: usize,
    datagrams: usize,
    from_second: usize,
    stops: usize,
}

fn play(faults: &[&str], seconds: f64, engage: EngageBy) -> Outcome {
    let config = Config {
        faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
        ..Config::default()
    };
    play_config(config, seconds, engage)
}

fn play_config(config: Config, seconds: f64, engage: EngageBy) -> Outcome {
    let settings = Settings {
        engage,
        frame: config.frame,
        ..Settings::on_loopback(0)
    };
    let mut session = Session::new(&settings);
    let mut emulator = Emulator::new(config);
    let mut out = Outcome {
        samples: vec![],
        counts: SessionCounts::default(),
        drops: 0,
        datagrams: 0,
        from_second: 0,
        stops: 0,
    };
    while emulator.time_s() < seconds {
        let now = Stamp::from_ms(1000 + (emulator.time_s() * 1000.0) as u64);
        for datagram in emulator.step() {
            out.datagrams += 1;
            if datagram.from_second {
                out.from_second += 1;
                continue;
            }
            let verdict = session.on_datagram(&datagram.bytes, now);
            out.stops += usize::from(verdict.stop);
            match verdict.body {
                Body::Sample(sample) => out.samples.push(sample),
                Body::Drop(_) => out.drops += 1,
            }
        }
    }
    out.counts = session.counts();
    out
}

/// Guards: the demo's hand engages once in each round by pinch, and moves without a jump, a freeze or a refusal, for two minutes; in both frames.
#[test]
fn demo_engages_in_each_round_and_moves_cleanly() {
    for frame in [Frame::OpenxrRh, Frame::UnityLh] {
        let outcome = play_config(
            Config {
                frame,
                ..Config::default()
            },
            120.0,
            EngageBy::PinchHold,
        );
        assert_eq!(outcome.samples.len(), 6000);
        assert_eq!(outcome.drops, 0);
        let counts = outcome.counts;
        // Rounds of 14.5 s; the squeezes of the gripper are too short for a gesture.
        assert_eq!((counts.engages, counts.jumps, counts.frozen), (9, 0, 0));
        let forward = |s: &OperatorSample| s.pose.unwrap().position().x;
        let far = outcome.samples.iter().map(forward).fold(f64::MIN, f64::max);
        assert!(
            (far - 0.55).abs() < 0.01,
            "reaches 10 cm forward in our axes: {far}"
        );
    }
}

/// Guards: the resting hand fires the demo's `rest` gesture once, noise and all, and does not look frozen.
#[test]
fn resting_hand_rests_and_lives() {
    let config = Config {
        script: Script::named(ScriptName::Rest),
        ..Config::default()
    };
    let outcome = play_config(config, 20.0, EngageBy::Rest);
    assert_eq!((outcome.counts.engages, outcome.counts.frozen), (1, 0));
    let clutch = Config {
        script: Script::named(ScriptName::Clutch),
        ..Config::default()
    };
    let outcome = play_config(clutch, 2.0, EngageBy::Clutch);
    assert_eq!(outcome.samples[50].clutch_pressed, Some(true));
}

/// Guards: the same seed gives the same packets, another seed others.
#[test]
fn seeds_decide_everything() {
    let packets = |seed| {
        let faults = vec!["loss=10".parse().unwrap(), "garbage".parse().unwrap()];
        let mut emulator = Emulator::new(Config {
            seed,
            faults,
            ..Config::default()
        });
        (0..200).flat_map(|_| emulator.step()).collect::<Vec<_>>()
    };
    assert_eq!(packets(7), packets(7));
    assert_ne!(packets(7), packets(8));
}

/// Guards: every fault does what its name says, as a session sees it.
#[test]
fn faults_do_what_they_say() {
    let run = |fault: &str| play(&[fault], 10.0, EngageBy::Command);
    let lost = run("loss=20").samples.len();
    assert!((350..450).contains(&lost), "{lost}");
    let doubled = run("duplicate=50");
    assert!(doubled.drops > 150 && doubled.samples.len() == 500);
    assert!(run("garbage=50").drops > 150);
    assert!(run("nan=50").drops > 150);
    assert!(run("short=50").drops > 150);
    assert_eq!(
        run("reorder=5").samples.len(),
        100,
        "the newest of each five"
    );
    assert_eq!(run("silence@2+1").samples.len(), 450);
    let burst = run("burst@2+1");
    assert_eq!(
        (burst.samples.len(), burst.datagrams),
        (500, 500),
        "late, not lost"
    );
    let stamps = |at: usize| burst.samples[at].received_at;
    assert_eq!(stamps(100), stamps(149), "all at once");
    assert_eq!(run("clock_step=-5@4").counts.restarts, 1);
    assert_eq!(run("restart@4").counts.restarts, 1);
    assert_eq!(run("second_sender@4+1").from_second, 50);
    assert_eq!(run("tracking_loss@4+0.5").counts.untracked, 25);
    assert_eq!(run("stop@4+0.02").stops, 1);
    let jumped = run("jump=0.5@4+2");
    assert_eq!(jumped.counts.jumps, 2, "there and back");
    assert_eq!(jumped.samples.last().unwrap().quality, Quality::Good);
    assert_eq!(run("frozen@4+1").counts.frozen, 26);
    // `stop@99` changes nothing here, and rolls no dice.
    let is_same = run("flip_sign").samples == run("stop@99").samples;
    assert!(is_same, "q and -q are one rotation");
}

/// Guards: the way faults are written, and that a wrong one says what there is.
#[test]
fn faults_are_read() {
    let fault: Fault = "jump=0.2@3.5+1".parse().unwrap();
    assert_eq!(fault, Fault::new(FaultKind::Jump, 3.5, 1.0).sized(0.2));
    assert!(fault.is_on(3.5) && !fault.is_on(4.5) && !fault.is_on(3.4));
    let always: Fault = "loss".parse().unwrap();
    assert!((always.amount - 5.0).abs() < 1e-12 && always.is_on(1e6));
    let error = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
    assert!(error("lost=5").contains("tracking_loss"));
    assert!(error("loss=five").contains("five"));
    assert!(error("stop=1").contains("takes no amount"));
}

/// Guards: the thread really sends, and ends.
#[test]
fn thread_sends_over_a_socket() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut running = Running::start(
        receiver.local_addr().unwrap(),
        Emulator::new(Config::default()),
    )
    .unwrap();
    let mut buffer = [0; 64];
    for _ in 0..5 {
        assert_eq!(receiver.recv(&mut buffer).unwrap(), wire::PACKET_LEN);
    }
    running.stop().unwrap();
    assert!(running.sent.datagrams.load(Ordering::Relaxed) >= 5);
}
