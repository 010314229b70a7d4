//! Every interleaving of the latch and of the wake-up that goes with it, up to the memory model that loom knows.
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --release --test loom_latch`
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;
use telearm::handoff::{SourceId, StopCause, StopLatch, StopLine, StopReason};
use telearm::time::Stamp;

/// A modelled wait has no deadline.
const FAR: Stamp = Stamp::from_ns(u64::MAX);

/// Control waits for a stop in the documented order (epoch, latch, wait) while two threads trip: it always gets to know. A lost wake-up
/// would leave it asleep, which loom reports as a deadlock.
#[test]
fn a_trip_always_wakes_control() {
    loom::model(|| {
        let line = Arc::new(StopLine::new());
        let trippers: Vec<_> = (0..2)
            .map(|n| {
                let line = Arc::clone(&line);
                thread::spawn(move || line.trip(StopReason::OperatorStopBit, SourceId::operator(n)))
            })
            .collect();
        loop {
            let seen = line.wake.epoch();
            if line.latch.is_tripped() {
                break;
            }
            line.wake.wait_until(seen, FAR);
        }
        let changes = trippers
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|changed| *changed)
            .count();
        assert_eq!(
            changes, 1,
            "exactly one call changes the latch from clear to tripped"
        );
    });
}

/// The check above can fail: with the epoch read after the look at the latch, the call falls into the gap and control sleeps on.
#[test]
#[should_panic(expected = "deadlock")]
fn the_wrong_order_loses_the_wake_up() {
    loom::model(|| {
        let line = Arc::new(StopLine::new());
        let tripper = {
            let line = Arc::clone(&line);
            thread::spawn(move || line.trip(StopReason::OperatorStopBit, SourceId::operator(0)))
        };
        while !line.latch.is_tripped() {
            let seen = line.wake.epoch();
            line.wake.wait_until(seen, FAR);
        }
        tripper.join().unwrap();
    });
}

/// A reset never clears a stop that its decision had not seen: one stop is latched, control decides to reset it, and meanwhile another
/// stop bit arrives.
#[test]
fn a_reset_never_clears_a_newer_trip() {
    loom::model(|| {
        let latch = Arc::new(StopLatch::new());
        latch.trip(StopReason::Command, SourceId::SERVICE);
        let first = latch.load().generation;
        let tripper = {
            let latch = Arc::clone(&latch);
            thread::spawn(move || latch.trip(StopReason::OperatorStopBit, SourceId::operator(0)))
        };
        let observed = latch.load().generation;
        let reset = latch.reset(observed);
        tripper.join().unwrap();
        if !(reset.is_ok() && observed != first) {
            assert!(latch.is_tripped(), "the second stop was lost");
        }
    });
}

/// The check above can fail: a latch whose repeated trip changes nothing loses the second stop.
#[test]
#[should_panic(expected = "the second stop was lost")]
fn a_latch_without_generations_loses_a_stop() {
    loom::model(|| {
        let tripped = Arc::new(AtomicBool::new(true));
        let seen_stops = Arc::new(AtomicU32::new(1));
        let tripper = {
            let (tripped, seen_stops) = (Arc::clone(&tripped), Arc::clone(&seen_stops));
            thread::spawn(move || {
                seen_stops.fetch_add(1, Ordering::SeqCst);
                tripped.swap(true, Ordering::SeqCst);
            })
        };
        let observed = seen_stops.load(Ordering::SeqCst);
        tripped.swap(false, Ordering::SeqCst);
        tripper.join().unwrap();
        assert!(
            observed == 2 || tripped.load(Ordering::SeqCst),
            "the second stop was lost"
        );
    });
}

/// A cause never carries the time of another stop, whatever the gap between a trip and the store of its time: at worst it has none.
#[test]
fn a_stamp_belongs_to_its_cause() {
    let first = (StopReason::Command, SourceId::SERVICE, Stamp::from_ns(160));
    let second = (StopReason::Panic, SourceId::CONTROL, Stamp::from_ns(320));
    loom::model(move || {
        let latch = Arc::new(StopLatch::new());
        let trippers: Vec<_> = [first, second]
            .into_iter()
            .map(|(reason, source, at)| {
                let latch = Arc::clone(&latch);
                thread::spawn(move || latch.trip_at(reason, source, at))
            })
            .collect();
        for _ in 0..2 {
            let state = latch.load();
            if let Some(StopCause {
                reason,
                source,
                stamp: Some(stamp),
            }) = state.tripped
            {
                assert!(
                    [first, second].contains(&(reason, source, stamp)),
                    "{reason:?} {source:?} {stamp:?}"
                );
            }
            let _ = latch.reset(state.generation);
        }
        for tripper in trippers {
            tripper.join().unwrap();
        }
    });
}
