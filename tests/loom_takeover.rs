//! Every interleaving of control, an input thread that sees a stop bit, and the watchdog taking the arm over.
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --release --test loom_takeover`
//!
//! The threads run the real latch, wake epoch and gate. The kernel is plain state with explicit steps: they happen in the
//! order of the interleaving and lend the threads no memory ordering. A write has two steps, as in the kernel: it fetches the
//! descriptor (from here on it is *inside*), later the frame is on the wire. Revoking the descriptor is one step. Time is modelled by what may
//! happen: the watchdog's bounded wait may end at any moment, except that the kernel gets a write done that it has begun.
#![cfg(loom)]

use std::sync::{Arc, Mutex};

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use telearm::handoff::{
    ControlGate, SourceId, StopLine, StopReason, TxRefused, WatchdogGate, tx_gate,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// Control, before the stop.
    Motion,
    /// Control, the ramp after the stop.
    Braking,
    /// The watchdog.
    Hold,
}

/// What can be left out, to show that the model notices.
#[derive(Clone, Copy)]
struct Protocol {
    /// Control raises `sending` around its writes.
    flag: bool,
    /// The watchdog waits for it.
    wait: bool,
    /// The watchdog swaps control's descriptor.
    revoke: bool,
}

const WHOLE: Protocol = Protocol {
    flag: true,
    wait: true,
    revoke: true,
};

#[derive(Debug, Default)]
struct KernelState {
    revoked: bool,
    inside: bool,
    wire: Vec<Frame>,
    /// An operator's or the watchdog's trip has returned.
    trip_returned: bool,
}

struct Kernel {
    state: Mutex<KernelState>,
    switch: AtomicU32,
}

impl Kernel {
    fn new() -> Self {
        Self {
            state: Mutex::default(),
            switch: AtomicU32::new(0),
        }
    }

    /// One step of the kernel. The relaxed read-modify-write before it makes loom try every order of the steps (a load would not: loom
    /// leaves out orders that cannot matter to the atomics it knows), and lends the threads no ordering.
    fn step<R>(&self, f: impl FnOnce(&mut KernelState) -> R) -> R {
        self.switch.fetch_add(1, Ordering::Relaxed);
        f(&mut self.state.lock().unwrap())
    }

    /// A write on control's descriptor.
    fn write(&self, frame: Frame) {
        let revoked = self.step(|kernel| {
            kernel.inside = true;
            kernel.revoked
        });
        self.step(|kernel| {
            if !revoked {
                kernel.wire.push(frame);
            }
            kernel.inside = false;
        });
    }
}

/// One group: motion if the stop is not latched, else braking, else nothing.
fn send_group(kernel: &Kernel, line: &StopLine, gate: &mut ControlGate, protocol: Protocol) {
    let stop_was_complete = kernel.step(|kernel| kernel.trip_returned);
    if !protocol.flag {
        if !line.latch.is_tripped() {
            kernel.write(Frame::Motion);
        }
        return;
    }
    let refused = match gate.begin(&line.latch) {
        Ok(_permit) => {
            assert!(!stop_was_complete, "a motion group began after the stop");
            kernel.write(Frame::Motion);
            None
        }
        Err(refused) => Some(refused),
    };
    if refused == Some(TxRefused::Tripped)
        && let Ok(_permit) = gate.begin_braking()
    {
        kernel.write(Frame::Braking);
    }
}

fn take_over(kernel: &Kernel, line: &StopLine, gate: &WatchdogGate, protocol: Protocol) {
    line.trip(StopReason::HeartbeatLost, SourceId::WATCHDOG);
    kernel.step(|kernel| kernel.trip_returned = true);
    gate.take_over();
    if protocol.revoke {
        kernel.step(|kernel| kernel.revoked = true);
    }
    if protocol.wait {
        gate.wait_quiet_while(|| {
            let inside = kernel.step(|kernel| kernel.inside);
            if inside {
                thread::yield_now();
            }
            inside // outside the kernel the wait may be over at any moment: control hangs
        });
    }
    kernel.step(|kernel| kernel.wire.push(Frame::Hold));
}

fn explore(protocol: Protocol, operator_stops: bool, groups: u32) {
    let mut model = loom::model::Builder::new();
    // Three threads and every switch are too many together; three forced switches find all that is known to go wrong here.
    model.preemption_bound = if operator_stops { Some(3) } else { None };
    model.check(move || {
        let kernel = Arc::new(Kernel::new());
        let line = Arc::new(StopLine::new());
        let (mut control_gate, watchdog_gate) = tx_gate();
        let control = {
            let (kernel, line) = (Arc::clone(&kernel), Arc::clone(&line));
            thread::spawn(move || {
                for _ in 0..groups {
                    send_group(&kernel, &line, &mut control_gate, protocol);
                }
            })
        };
        let input = operator_stops.then(|| {
            let (kernel, line) = (Arc::clone(&kernel), Arc::clone(&line));
            thread::spawn(move || {
                line.trip(StopReason::OperatorStopBit, SourceId::operator(0));
                kernel.step(|kernel| kernel.trip_returned = true);
            })
        });
        take_over(&kernel, &line, &watchdog_gate, protocol);
        control.join().unwrap();
        if let Some(input) = input {
            input.join().unwrap();
        }
        let wire = kernel.step(|kernel| kernel.wire.clone());
        let after_hold = wire
            .iter()
            .skip_while(|frame| **frame != Frame::Hold)
            .skip(1)
            .count();
        assert_eq!(
            after_hold, 0,
            "control sent after the watchdog's hold frame: {wire:?}"
        );
        let motion_after_braking = wire
            .iter()
            .skip_while(|frame| **frame != Frame::Braking)
            .any(|frame| *frame == Frame::Motion);
        assert!(!motion_after_braking, "motion after braking: {wire:?}");
    });
}

/// Control and the watchdog alone, searched deeper.
#[test]
fn takeover_alone() {
    explore(WHOLE, false, 2);
}

/// Control, an operator's stop bit and the watchdog at once: no motion group begins after a stop, none follows a braking frame, and nothing of
/// control's follows the watchdog's first frame.
#[test]
fn takeover_and_a_stop_bit() {
    explore(WHOLE, true, 2);
}

/// The check can fail: without the bounded wait, a write that the kernel has begun comes out behind the hold frame.
#[test]
#[should_panic(expected = "control sent after the watchdog's hold frame")]
fn without_the_wait_it_fails() {
    explore(
        Protocol {
            wait: false,
            ..WHOLE
        },
        false,
        1,
    );
}

/// The check can fail: without the flag, the wait has nothing to wait for.
#[test]
#[should_panic(expected = "control sent after the watchdog's hold frame")]
fn without_the_flag_it_fails() {
    explore(
        Protocol {
            flag: false,
            ..WHOLE
        },
        false,
        1,
    );
}

/// The check can fail: without revoking the descriptor, a control thread that hangs between its look at the latch and the write sends when it
/// comes back.
#[test]
#[should_panic(expected = "control sent after the watchdog's hold frame")]
fn without_revoking_it_fails() {
    explore(
        Protocol {
            revoke: false,
            ..WHOLE
        },
        false,
        1,
    );
}
