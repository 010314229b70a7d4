//! The emulator drives real sessions, tick by tick, with a fake clock.
#![allow(clippy::unwrap_used)]

use super::super::Session;
use super::*;
use crate::operator::{Body, DatagramSession, SessionCounts};
use crate::signal::{OperatorSample, Quality};
use crate::time::Stamp;

struct Outcome {
    samples: Vec<OperatorSample>,
    counts: SessionCounts,
    drops: usize,
    from_second: usize,
}

/// Ten seconds of a hand as its own session sees them.
fn play(config: Config) -> Outcome {
    let settings = Settings {
        experimental_fsnh: true,
        ..Settings::on_loopback(0, config.hands[0].hand)
    };
    let mut session = Session::new(&settings);
    let mut emulator = Emulator::new(config);
    let mut out = Outcome {
        samples: vec![],
        counts: SessionCounts::default(),
        drops: 0,
        from_second: 0,
    };
    while emulator.time_s() < 10.0 {
        let now = Stamp::from_ms(1000 + (emulator.time_s() * 1000.0) as u64);
        for datagram in emulator.step() {
            if datagram.from_second {
                out.from_second += 1;
                continue;
            }
            match session.on_datagram(&datagram.bytes, now).body {
                Body::Sample(sample) => out.samples.push(sample),
                Body::Drop(_) => out.drops += 1,
            }
        }
    }
    out.counts = session.counts();
    out
}

fn with_fault(fault: &str) -> Outcome {
    play(Config {
        faults: vec![fault.parse().unwrap()],
        ..Config::default()
    })
}

/// Guards: in both protocols and hands the demo opens and closes fully, and holds the clutch from its first curl on, without a refusal.
#[test]
fn demo_grips_and_holds() {
    for protocol in [Protocol::Fnim, Protocol::Fsnh] {
        for hand in [Hand::Left, Hand::Right] {
            let outcome = play(Config {
                hands: vec![HandConfig::new(hand)],
                protocol,
                ..Config::default()
            });
            assert_eq!((outcome.samples.len(), outcome.drops), (1200, 0));
            assert!(outcome.samples.iter().all(|s| s.quality == Quality::Good));
            let openings = || outcome.samples.iter().map(|s| s.opening.unwrap().get());
            assert!(openings().fold(1.0, f64::min) < 0.02);
            assert!(openings().fold(0.0, f64::max) > 0.98);
            for (i, sample) in outcome.samples.iter().enumerate() {
                assert_eq!(sample.clutch_pressed, Some(i >= 420), "{i}");
            }
        }
    }
}

/// Guards: every fault does what its name says, as a session sees it.
#[test]
fn faults_do_what_they_say() {
    let lost = with_fault("loss=20");
    assert!((900..1020).contains(&lost.samples.len()));
    let missing = 1200 - lost.samples.len() as u64;
    assert!(
        missing.abs_diff(lost.counts.lost) <= 3,
        "{}",
        lost.counts.lost
    );
    let doubled = with_fault("duplicate=50");
    assert!(doubled.drops > 500 && doubled.samples.len() == 1200);
    assert!(with_fault("garbage=50").drops > 500);
    assert!(with_fault("short=50").drops > 500);
    let nan = with_fault("nan=50");
    assert_eq!(nan.drops, 0, "one slot only");
    let unknown = nan.samples.iter().filter(|s| s.opening.is_none()).count();
    assert!((150..350).contains(&unknown), "{unknown}");
    assert_eq!(with_fault("reorder=5").samples.len(), 240);
    assert_eq!(with_fault("silence@2+1").samples.len(), 1080);
    assert_eq!(with_fault("burst@2+1").samples.len(), 1200);
    let restart = with_fault("restart@4");
    assert_eq!((restart.counts.restarts, restart.drops), (1, 0));
    assert_eq!(with_fault("second_sender@4+1").from_second, 120);
    assert_eq!(with_fault("tracking_loss@4+0.5").counts.untracked, 60);
    assert_eq!(with_fault("frozen@4+1").counts.frozen, 61);
}

/// Guards: the same seed gives the same packets, another seed others; both hands come from one emulator, each with its own numbers.
#[test]
fn seeds_and_hands() {
    let packets = |seed| {
        let mut emulator = Emulator::new(Config {
            hands: vec![HandConfig::new(Hand::Left), HandConfig::new(Hand::Right)],
            faults: vec!["loss=10".parse().unwrap()],
            seed,
            ..Config::default()
        });
        (0..100).flat_map(|_| emulator.step()).collect::<Vec<_>>()
    };
    assert_eq!(packets(7), packets(7));
    assert_ne!(packets(7), packets(8));
    let mut hands = [0, 0];
    for packet in packets(7) {
        let frame = fnim::parse(&packet.bytes).unwrap();
        hands[usize::from(frame.header.hand == Hand::Right)] += 1;
    }
    assert!(hands.iter().all(|n| (80..=98).contains(n)), "{hands:?}");
}
