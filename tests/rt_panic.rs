//! A panic of a real-time thread latches the stop before it unwinds; a panic of any other thread does not. Its own test binary, because the
//! hook is one for the whole process.
#![cfg(not(loom))]

use std::sync::Arc;

use telearm::handoff::{SourceId, StopLine, StopReason};
use telearm::rt::panic;

#[test]
fn a_real_time_panic_latches_the_stop() {
    let line = Arc::new(StopLine::new());
    panic::install(Arc::clone(&line));

    let plain = std::thread::spawn(|| panic!("a plain thread (this message is expected)"));
    assert!(plain.join().is_err());
    assert!(!line.latch.is_tripped(), "a plain thread stops nothing");

    let seen = line.wake.epoch();
    let control = std::thread::spawn(|| {
        panic::stop_on_panic("control", SourceId::CONTROL, StopReason::Panic);
        panic!("a control thread (this message is expected)")
    });
    assert!(control.join().is_err(), "it still unwinds");
    let cause = line.latch.load().tripped.unwrap();
    assert_eq!(
        (cause.reason, cause.source),
        (StopReason::Panic, SourceId::CONTROL)
    );
    assert!(cause.stamp.is_some());
    assert_ne!(line.wake.epoch(), seen, "whoever waits is woken");
}
