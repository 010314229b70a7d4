#![allow(clippy::unwrap_used)]

use super::live::wait;
use super::*;
use crate::rt::pace::Pace;
use crate::time::{Span, Stamp};

/// Guards: every run of the whole program sends, receives and follows, and both loops of a comparison do the same work. No latency is judged.
#[test]
fn cycle_and_baseline_do_the_same_work() {
    let run = cycle(&CycleSetup {
        rate_hz: 200,
        seconds: 1,
        lanes: 2,
        rotation: 0,
    })
    .unwrap();
    let per_cycle = |frames: u64, count: &LoopCount| frames as f64 / count.cycles as f64;
    let (ours, bare) = (run.our_count, run.bare_count);
    assert!(ours.cycles > 50 && bare.cycles > 50, "{ours:?} {bare:?}");
    let sent = per_cycle(ours.frames_out, &ours);
    assert!(
        (4.0..9.0).contains(&sent),
        "two lanes of 3 to 5 frames: {sent}"
    );
    let ratio = sent / per_cycle(bare.frames_out, &bare);
    assert!((0.7..1.4).contains(&ratio), "{ours:?} {bare:?}");
    let ratio = per_cycle(ours.frames_in, &ours) / per_cycle(bare.frames_in, &bare);
    assert!((0.6..1.6).contains(&ratio), "{ours:?} {bare:?}");
    assert!(run.following > 0.0);
    assert_eq!(
        run.heap_operations, None,
        "tests run on the ordinary allocator"
    );
}

/// Guards: every stop is served at once, by a frame, and not at the next deadline 33 ms later.
#[test]
fn every_stop_is_answered_at_once() {
    let run = stop(&StopSetup {
        rate_hz: 30,
        seconds: 1,
    })
    .unwrap();
    assert!(run.sent > 20, "{}", run.sent);
    // On a busy machine the bus itself (an ordinary thread where we may not do better) can hold one up.
    assert!(
        run.unserved * 10 <= run.sent,
        "{} of {}",
        run.unserved,
        run.sent
    );
    // A stop that is still under way when the next packet comes swallows it; on a busy machine that happens.
    assert!(
        run.ours.count() > run.sent / 2,
        "{} of {}",
        run.ours.count(),
        run.sent
    );
    assert!(
        run.bare.count() > run.sent / 2,
        "{} of {}",
        run.bare.count(),
        run.sent
    );
}

/// Guards: each packet and each cycle leaves its value, with and without sockets; the parts are those of the whole.
#[test]
fn packets_are_all_counted() {
    let run = packet(50).unwrap();
    assert_eq!(run.whole.count(), 50);
    assert_eq!(run.take.count(), 50);
    assert_eq!(run.think.count(), 200);
    assert_eq!(run.encode.count(), 200);
    assert_eq!(run.whole_with_sockets.count(), 50);
}

/// Guards: used packets are matched with their stamps; what is beyond the wait is no more than the whole.
#[test]
fn live_packets_are_matched() {
    let run = live(&LiveSetup {
        rate_hz: 200,
        seconds: 1,
    })
    .unwrap();
    assert!(
        run.beyond.count() > 10,
        "{} of {}",
        run.beyond.count(),
        run.sent
    );
    assert_eq!(run.beyond.count(), run.whole.count());
    assert!(run.beyond.max() <= run.whole.max());
}

/// Guards: the wait ends at the first deadline, also when a later cycle used the packet, and is nothing for one that came after the deadline
/// while the cycle was late.
#[test]
fn wait_for_the_first_deadline() {
    let pace = Pace::new(Stamp::from_ms(1_000), 200);
    let visible = Stamp::from_ms(1_012);
    assert_eq!(wait(&pace, 3, visible), Span::from_ms(3));
    assert_eq!(wait(&pace, 5, visible), Span::from_ms(3), "two cycles lost");
    assert_eq!(wait(&pace, 2, visible), Span::ZERO, "slipped in");
    assert_eq!(wait(&pace, 3, Stamp::from_ms(1_015)), Span::ZERO);
}

/// Guards: strace's table is read with and without errors in it; no cycle wait, no figures.
#[test]
fn strace_table() {
    let text = "strace: Process 7 attached\nstrace: Process 7 detached\n\
                % time     seconds  usecs/call     calls    errors syscall\n\
                ------ ----------- ----------- --------- --------- ----------------\n \
                61.00    0.001200           6       200       200 futex\n \
                30.00    0.000600           3       400           recvmmsg\n\
                ------ ----------- ----------- --------- --------- ----------------\n\
                100.00    0.001800                   600       200 total\n";
    let calls = super::syscalls::parse(text).unwrap();
    assert_eq!(
        calls,
        [("recvmmsg".to_owned(), 2.0), ("futex".to_owned(), 1.0)]
    );
    assert_eq!(
        super::syscalls::parse("strace: attach: Operation not permitted"),
        None
    );
}

/// Guards: each piece of work can be done any number of times.
#[test]
fn work_is_done() {
    use clap::ValueEnum as _;
    for work in Work::value_variants() {
        work.run(50).unwrap();
    }
}
