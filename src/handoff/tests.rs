#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::time::{Span, Stamp};

/// A trip is sticky: the first cause, source and time stay whatever comes later, and only the first call reports the change.
#[test]
fn the_first_cause_is_kept() {
    let latch = StopLatch::new();
    assert!(!latch.load().is_tripped());
    let at = Stamp::from_ns(160_000);
    assert!(latch.trip_at(StopReason::OperatorStopBit, SourceId::operator(3), at));
    assert!(!latch.trip_at(
        StopReason::HeartbeatLost,
        SourceId::WATCHDOG,
        Stamp::from_ns(320_000)
    ));
    let cause = latch.load().tripped.unwrap();
    assert_eq!(
        cause,
        StopCause {
            reason: StopReason::OperatorStopBit,
            source: SourceId::operator(3),
            stamp: Some(at)
        }
    );
}

/// A reset that was decided before a repeated stop bit is refused; one that has seen it is granted, once.
#[test]
fn a_reset_must_have_seen_the_newest_stop() {
    let latch = StopLatch::new();
    assert_eq!(latch.reset(0), Err(ResetRefused::NotTripped));
    latch.trip(StopReason::OperatorStopBit, SourceId::operator(0));
    let old = latch.load().generation;
    latch.trip(StopReason::OperatorStopBit, SourceId::operator(0));
    assert_eq!(latch.reset(old), Err(ResetRefused::NewerTrip));
    assert!(latch.is_tripped());
    let seen = latch.load().generation;
    assert_eq!(latch.reset(seen), Ok(()));
    assert!(!latch.is_tripped());
    assert_eq!(latch.reset(seen), Err(ResetRefused::NotTripped));
}

/// After a reset the next trip has its own cause and time, and an earlier generation no longer clears it.
#[test]
fn each_episode_has_its_own_cause() {
    let latch = StopLatch::new();
    for round in 1..600_u64 {
        let at = Stamp::from_ns(round * 16);
        let old = latch.load().generation;
        let source = SourceId::operator(u16::try_from(round).unwrap());
        assert!(latch.trip_at(StopReason::Command, source, at));
        let cause = latch.load().tripped.unwrap();
        assert_eq!(
            (cause.source, cause.stamp),
            (source, Some(at)),
            "round {round}"
        );
        assert_eq!(latch.reset(old), Err(ResetRefused::NewerTrip));
        latch.reset(latch.load().generation).unwrap();
    }
}

/// Every reason survives the trip through the word, and names are distinct.
#[test]
fn reasons_round_trip() {
    let mut names = Vec::new();
    for reason in StopReason::ALL {
        let latch = StopLatch::new();
        latch.trip(reason, SourceId::PROCESS);
        assert_eq!(latch.load().tripped.unwrap().reason, reason);
        assert_eq!(latch.load().tripped.unwrap().source.operator_index(), None);
        names.push(reason.name());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), StopReason::ALL.len());
}

/// The newest value wins, and the reader can tell a new one from an old one.
#[test]
fn a_mailbox_holds_the_newest() {
    let (mut publisher, mut reader) = mailbox(None);
    assert_eq!(reader.read_new(), (None, false));
    assert!(!publisher.publish(Some(1)));
    assert!(
        publisher.publish(Some(2)),
        "the first one was replaced unread"
    );
    assert_eq!(reader.read_new(), (Some(2), true));
    assert_eq!(reader.read_new(), (Some(2), false));
    assert_eq!(reader.read(), &Some(2));
}

/// A mailbox is never torn: a reader on another thread sees only values that were published, in growing order.
#[test]
fn a_mailbox_is_never_torn() {
    const LAST: u64 = 200_000;
    let (mut publisher, mut reader) = mailbox([0_u64; 32]);
    let writer = std::thread::spawn(move || {
        for n in 1..=LAST {
            publisher.publish([n; 32]);
        }
    });
    let mut newest = 0;
    while newest < LAST {
        let value = *reader.read();
        assert!(value.iter().all(|n| *n == value[0]), "torn: {value:?}");
        assert!(
            value[0] >= newest,
            "went back from {newest} to {}",
            value[0]
        );
        newest = value[0];
    }
    writer.join().unwrap();
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Thing {
    Common(u32),
    Rare,
}

impl EventKind for Thing {
    const KINDS: usize = 2;
    fn kind(&self) -> usize {
        match self {
            Self::Common(_) => 0,
            Self::Rare => 1,
        }
    }
}

/// A full ring drops the new event, but the counters still say that its kind happened and how many are missing.
#[test]
fn a_full_ring_still_counts() {
    let (mut sender, mut receiver) = event_ring::<Thing, 4>();
    for n in 0..3 {
        assert!(sender.push(Thing::Common(n)));
    }
    assert!(!sender.push(Thing::Rare));
    assert!(!sender.push(Thing::Common(3)));
    assert_eq!((receiver.happened(0), receiver.happened(1)), (4, 1));
    assert_eq!(
        (
            receiver.dropped(0),
            receiver.dropped(1),
            receiver.dropped_total()
        ),
        (1, 1, 2)
    );
    assert_eq!(
        (0..4).map(|_| receiver.pop()).collect::<Vec<_>>(),
        [
            Some(Thing::Common(0)),
            Some(Thing::Common(1)),
            Some(Thing::Common(2)),
            None
        ]
    );
    assert!(sender.push(Thing::Rare), "room again after draining");
}

/// "Never" is not an age of zero, and the clock is read only after the stamp was loaded.
#[test]
fn never_received_has_no_age() {
    let last = LastUsable::new();
    assert_eq!(last.load(), None);
    assert_eq!(last.age(|| Stamp::from_ms(5)), None);
    last.store(Stamp::from_ns(0));
    assert_eq!(
        last.age(|| Stamp::from_ms(5)),
        Some(Span::from_ms(5)),
        "a stamp of zero is a stamp"
    );
    let age = last.age(|| {
        last.store(Stamp::from_ms(9)); // arrives between the load and the clock
        Stamp::from_ms(8)
    });
    assert_eq!(age, Some(Span::from_ms(8)));
}

/// A wait without a call ends at its deadline and not before it.
#[test]
fn a_wait_ends_at_its_deadline() {
    let wake = WakeEpoch::new();
    let deadline = sys::now() + Span::from_ms(5);
    assert_eq!(wake.wait_until(wake.epoch(), deadline), Woken::Deadline);
    assert!(sys::now() >= deadline);
    assert_eq!(
        wake.wait_until(wake.epoch(), Stamp::from_ns(1)),
        Woken::Deadline,
        "a deadline of the past"
    );
}

/// A call made before the wait began is not lost, and a call during the wait ends it long before its deadline.
#[test]
fn a_call_ends_the_wait() {
    let line = Arc::new(StopLine::new());
    let seen = line.wake.epoch();
    assert!(line.trip(StopReason::Command, SourceId::SERVICE));
    let far = sys::now() + Span::from_s(60.0);
    assert_eq!(line.wake.wait_until(seen, far), Woken::Early);

    let seen = line.wake.epoch();
    let caller = std::thread::spawn({
        let line = Arc::clone(&line);
        move || {
            std::thread::sleep(Duration::from_millis(10));
            line.wake.bump_and_wake();
        }
    });
    assert_eq!(line.wake.wait_until(seen, far), Woken::Early);
    assert!(sys::now() < far);
    caller.join().unwrap();
}

/// A repeated stop bit does not wake control again: a flood of them cannot keep it from its cycle.
#[test]
fn only_the_first_trip_wakes() {
    let line = StopLine::new();
    line.trip(StopReason::OperatorStopBit, SourceId::operator(0));
    let seen = line.wake.epoch();
    for _ in 0..100 {
        assert!(!line.trip(StopReason::OperatorStopBit, SourceId::operator(0)));
    }
    assert_eq!(
        line.wake.wait_until(seen, sys::now() + Span::from_ms(2)),
        Woken::Deadline
    );
}

/// A signal neither ends the wait early nor loses its deadline.
#[test]
fn a_signal_does_not_end_the_wait() {
    extern "C" fn nothing(_: libc::c_int) {}
    let wake = Arc::new(WakeEpoch::new());
    #[expect(unsafe_code, reason = "the test needs a handler without SA_RESTART")]
    // SAFETY: the handler does nothing, so it is async-signal-safe; the struct is zeroed, which is a valid empty mask and no flags.
    let me = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as *const () as libc::sighandler_t;
        assert_eq!(
            libc::sigaction(libc::SIGUSR2, &raw const action, core::ptr::null_mut()),
            0
        );
        libc::pthread_self()
    };
    let disturber = std::thread::spawn(move || {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
            #[expect(unsafe_code, reason = "signalling one thread")]
            // SAFETY: the target joins this thread before it ends, so its handle is valid.
            unsafe {
                libc::pthread_kill(me, libc::SIGUSR2);
            }
        }
    });
    let deadline = sys::now() + Span::from_ms(40);
    assert_eq!(wake.wait_until(wake.epoch(), deadline), Woken::Deadline);
    assert!(sys::now() >= deadline);
    disturber.join().unwrap();
}

/// The gate in each of its states: open, latched (braking only), taken over (nothing, for ever).
#[test]
fn the_gate_refuses_by_state() {
    let latch = StopLatch::new();
    let (mut control, watchdog) = tx_gate();
    {
        let _permit = control.begin(&latch).unwrap();
        assert!(!watchdog.is_quiet());
        assert!(
            !watchdog.wait_quiet(Span::from_us(100)),
            "control hangs inside a write: the wait gives up"
        );
    }
    assert!(watchdog.wait_quiet(Span::ZERO));
    latch.trip(StopReason::Command, SourceId::SERVICE);
    assert_eq!(control.begin(&latch).err(), Some(TxRefused::Tripped));
    assert!(watchdog.is_quiet(), "a refusal leaves no mark");
    drop(control.begin_braking().unwrap());
    watchdog.take_over();
    latch.reset(latch.load().generation).unwrap();
    assert_eq!(
        control.begin(&latch).err(),
        Some(TxRefused::TakenOver),
        "a reset does not give the arm back"
    );
    assert_eq!(control.begin_braking().err(), Some(TxRefused::TakenOver));
    assert!(watchdog.is_quiet() && control.is_taken_over() && watchdog.is_taken_over());
}

/// A panic inside a write clears the flag, so that the watchdog need not wait for a dead thread.
#[test]
fn a_permit_ends_with_its_thread() {
    let (mut control, watchdog) = tx_gate();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = control.begin_braking().unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(result.is_err());
    assert!(watchdog.is_quiet());
}

/// A revoked descriptor sends nothing any more, stays valid for its owner, and another descriptor of the same socket still works.
#[test]
fn a_revoked_descriptor_goes_nowhere() {
    let (a, b) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let watchdog_end = a.try_clone().unwrap();
    Revoker::new().unwrap().revoke(a.as_raw_fd()).unwrap();
    assert_eq!(
        a.send(b"motion").unwrap(),
        6,
        "the standard library writes, and a write into /dev/null succeeds"
    );
    assert_eq!(
        a.peer_addr().unwrap_err().raw_os_error(),
        Some(libc::ENOTSOCK),
        "a socket call fails"
    );
    watchdog_end.send(b"stop").unwrap();
    let mut buffer = [0; 16];
    assert_eq!(b.recv(&mut buffer).unwrap(), 4);
    assert_eq!(&buffer[..4], b"stop");
    assert!(Revoker::new().unwrap().revoke(-1).is_err());
}
