//! Races of the takeover with real threads over a real socket. The models in `loom_takeover.rs` explore the protocol; this shows that the
//! compiled code and the kernel keep it. 100 000 races in a release build, a tenth of that in a debug build.
#![cfg(not(loom))]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use telearm::handoff::{ControlGate, Revoker, SourceId, StopLine, StopReason, tx_gate};
use telearm::rt::sched::{self, Policy, Wanted};
use telearm::time::Span;

const MOTION: u8 = b'M';
const STOP: u8 = b'S';
/// Generous, so that a busy machine does not time out; the bound itself is tested elsewhere.
const QUIET_MAX: Span = Span::from_ms(500);

/// A pair of sequenced-packet sockets, as close to a CAN socket as every machine has.
fn seqpacket_pair() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    #[expect(unsafe_code, reason = "the standard library has no sequenced packets")]
    // SAFETY: `fds` has room for the two descriptors; both are new and owned by nobody else.
    unsafe {
        assert_eq!(
            libc::socketpair(
                libc::AF_UNIX,
                libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                0,
                fds.as_mut_ptr()
            ),
            0
        );
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

fn send(fd: RawFd, frame: u8) -> io::Result<()> {
    #[expect(unsafe_code, reason = "send on a borrowed descriptor number")]
    // SAFETY: one readable byte.
    let rc = unsafe { libc::send(fd, (&raw const frame).cast(), 1, libc::MSG_NOSIGNAL) };
    if rc == 1 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Takes everything out of the socket; gives the number of motion frames behind the first stop frame, and whether there was a stop frame.
fn drain(fd: RawFd) -> (u32, bool) {
    let (mut late, mut stopped) = (0, false);
    loop {
        let mut frame = 0_u8;
        #[expect(unsafe_code, reason = "recv on a borrowed descriptor number")]
        // SAFETY: one writable byte.
        let rc = unsafe { libc::recv(fd, (&raw mut frame).cast(), 1, 0) };
        match (rc, frame) {
            (1, STOP) => stopped = true,
            (1, _) if stopped => late += 1,
            (1, _) => {}
            _ => return (late, stopped),
        }
    }
}

/// Puts what `by` names in the place of `fd`, to undo a revocation.
fn replace(fd: RawFd, by: RawFd) {
    #[expect(
        unsafe_code,
        reason = "dup3 onto a descriptor that another object owns"
    )]
    // SAFETY: touches no memory; both are open descriptors of this test.
    let rc = unsafe { libc::dup3(by, fd, libc::O_CLOEXEC) };
    assert!(rc >= 0);
}

/// A cheap, seeded source of delays.
struct Jitter(u64);

impl Jitter {
    /// Spins fewer than `max` turns.
    fn spin(&mut self, max: u64) {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        for _ in 0..self.0 % max {
            core::hint::spin_loop();
        }
    }
}

/// The parts of the takeover, each of which can be left out to show that the test would notice.
#[derive(Clone, Copy)]
struct Parts {
    /// Control takes permits and the watchdog waits for them.
    gate: bool,
    /// The watchdog revokes control's descriptor.
    revoke: bool,
    /// Control lingers up to this many turns between its look at the latch and the write, to widen the window.
    linger: u64,
}

/// What a number of races showed.
#[derive(Debug, Default)]
struct Seen {
    /// Races with a motion frame behind the first stop frame.
    lost: u64,
    /// Races in which the watchdog gave up waiting.
    timed_out: u64,
    /// Races in which the operator's trip came before the watchdog's.
    operator_first: u64,
}

/// Where the three threads meet twice per race. They spin and yield: a sleeping barrier costs more than the race itself.
struct Meeting {
    arrived: AtomicU64,
    parties: u64,
}

impl Meeting {
    fn wait(&self) {
        let ticket = self.arrived.fetch_add(1, Ordering::SeqCst);
        let full = (ticket / self.parties + 1) * self.parties;
        let mut turns = 0_u32;
        while self.arrived.load(Ordering::SeqCst) < full {
            turns += 1;
            if turns.is_multiple_of(64) {
                std::thread::yield_now()
            } else {
                core::hint::spin_loop()
            }
        }
    }
}

/// What the three threads of a race share.
struct Arena {
    line: StopLine,
    meeting: Meeting,
    over: AtomicBool,
    gate: Mutex<Option<ControlGate>>,
}

/// Real-time priority if this user may have it: on a busy machine the three threads otherwise wait for each other's time slices.
fn hurry(name: &'static str) {
    let _ = sched::apply(Wanted {
        name,
        policy: Policy::Fifo(1),
        cpu: None,
    });
}

/// Control: motion frames in groups of two until it is refused.
fn control(arena: &Arena, fd: RawFd, parts: Parts) {
    hurry("race-control");
    let mut jitter = Jitter(0x9E37_79B9);
    loop {
        arena.meeting.wait();
        if arena.over.load(Ordering::SeqCst) {
            return;
        }
        let mut gate = arena.gate.lock().unwrap().take().unwrap();
        let mut groups = 0_u32;
        loop {
            let permit = if parts.gate {
                let Ok(permit) = gate.begin(&arena.line.latch) else {
                    break;
                };
                Some(permit)
            } else if arena.line.latch.is_tripped() {
                break;
            } else {
                None
            };
            jitter.spin(parts.linger);
            for _ in 0..2 {
                let _ = send(fd, MOTION); // a full queue, or revoked: nothing is on the wire
            }
            drop(permit);
            groups += 1;
            if groups.is_multiple_of(32) {
                std::thread::yield_now(); // on a single core the others would never come
            }
        }
        arena.meeting.wait();
    }
}

/// An input thread that sees a stop bit at some moment of every second race.
fn input(arena: &Arena) {
    hurry("race-input");
    let mut jitter = Jitter(0x1234_5678_9ABC);
    for round in 0_u64.. {
        arena.meeting.wait();
        if arena.over.load(Ordering::SeqCst) {
            return;
        }
        if round.is_multiple_of(2) {
            jitter.spin(400);
            arena
                .line
                .trip(StopReason::OperatorStopBit, SourceId::operator(0));
        }
        arena.meeting.wait();
    }
}

/// Runs `rounds` races of control against an operator's stop bit and the watchdog's takeover.
fn race(rounds: u64, parts: Parts) -> Seen {
    let (arm, stop_port) = seqpacket_pair();
    let control_fd = stop_port.try_clone().unwrap();
    let revoker = Revoker::new().unwrap();
    let arena = Arena {
        line: StopLine::new(),
        meeting: Meeting {
            arrived: AtomicU64::new(0),
            parties: 3,
        },
        over: AtomicBool::new(false),
        gate: Mutex::new(None),
    };
    let mut seen = Seen::default();
    let mut jitter = Jitter(0x2545_F491);
    hurry("race-watchdog");
    std::thread::scope(|scope| {
        scope.spawn(|| control(&arena, control_fd.as_raw_fd(), parts));
        scope.spawn(|| input(&arena));
        for _ in 0..rounds {
            // A fresh gate (a takeover is for ever), and the descriptor back in its place.
            let (control_gate, gate) = tx_gate();
            *arena.gate.lock().unwrap() = Some(control_gate);
            replace(control_fd.as_raw_fd(), stop_port.as_raw_fd());
            arena.meeting.wait();

            jitter.spin(400);
            seen.operator_first += u64::from(
                !arena
                    .line
                    .trip(StopReason::HeartbeatLost, SourceId::WATCHDOG),
            );
            gate.take_over();
            if parts.revoke {
                revoker.revoke(control_fd.as_raw_fd()).unwrap();
            }
            if parts.gate {
                seen.timed_out += u64::from(!gate.wait_quiet(QUIET_MAX));
            }
            while send(stop_port.as_raw_fd(), STOP).is_err() {
                drain(arm.as_raw_fd()); // the queue is full of motion frames; none of them is behind a stop frame
            }

            arena.meeting.wait();
            let (late, stopped) = drain(arm.as_raw_fd());
            assert!(stopped);
            seen.lost += u64::from(late > 0);
            arena
                .line
                .latch
                .reset(arena.line.latch.load().generation)
                .unwrap();
        }
        arena.over.store(true, Ordering::SeqCst);
        arena.meeting.wait();
    });
    seen
}

/// A broken protocol must fail this test, not take the machine with it: the kernel ends the process after a minute of real-time computing.
fn bound_real_time_use() {
    let limit = libc::rlimit {
        rlim_cur: 60_000_000,
        rlim_max: 60_000_000,
    };
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: `limit` is valid; only this process is bounded.
    let rc = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) };
    assert_eq!(rc, 0);
}

/// In no race is a motion frame behind the first stop frame, with the window as it is and with the window widened. With the latch alone races
/// are lost, so the check can fail. One test, because its threads may have real-time priority and must not meet those of another.
#[test]
fn no_motion_frame_after_the_stop_frame() {
    bound_real_time_use();
    let rounds = if cfg!(debug_assertions) {
        5_000
    } else {
        50_000
    };
    for linger in [1, 200] {
        let whole = Parts {
            gate: true,
            revoke: true,
            linger,
        };
        let seen = race(rounds, whole);
        println!("takeover, {rounds} races, linger {linger}: {seen:?}");
        assert_eq!(seen.lost, 0, "linger {linger}: {seen:?}");
        assert!(
            seen.operator_first > 0 && seen.operator_first < rounds,
            "the races must go both ways: {seen:?}"
        );
    }
    let alone = Parts {
        gate: false,
        revoke: false,
        linger: 200,
    };
    let seen = race(4_000, alone);
    println!("latch alone, 4000 races: {seen:?}");
    assert!(seen.lost > 0, "the check does not notice: {seen:?}");
}
