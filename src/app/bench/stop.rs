//! The stop path with the program's own parts: a UDP packet with a stop bit in, the first stop frame handed to the kernel.
//!
//! Ours: [`UdpSource`](crate::operator::io::udp::UdpSource) in the input thread, latch and wake, control in its cycle wait, [`Engine::stop_path`], gate, driver, bus.
//! The baseline is the least that could do it: one thread that blocks in `recv` and writes as many frames to a bus of its own. One sender
//! feeds both in turn, at random phases against the cycle. The lane is at rest: a stop is then over at once, and many can be had; a braking
//! lane thinks longer, by what `bench cycle` shows.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::bare::BareRig;
use super::rig::{Rig, off_core, spawn};
use crate::app::threads::INPUT_PRIORITY;
use crate::arm::can::KernelFrame;
use crate::arm::can::bare::BareBus;
use crate::control::{Engine, Request};
use crate::handoff::{StopLine, sys};
use crate::operator::rctp::wire::{self, Flags, Packet};
use crate::rt::histogram::LatencyHistogram;
use crate::rt::measure::{Jitter, prepare_host};
use crate::rt::pace::{Pacer, Turn};
use crate::rt::sched::{Policy, SchedReport};
use crate::rt::{Refusal, clock};
use crate::signal::ArmPhase;
use crate::time::{Span, Stamp};

/// The sender stands for a network card: neither delayed nor in the way.
const SENDER_PRIORITY: u8 = 40;
/// Between two packets: a stop and what puts everything back take less.
const GAP_MIN: Span = Span::from_us(1_500);
const GAP_SPREAD_NS: u64 = 3_000_000;
/// The bus confirms the frames of a stop within this, on a machine that is not overloaded.
const ECHO_WITHIN: Span = Span::from_us(400);
/// The arm comes up within this.
const UP_WITHIN: Duration = Duration::from_secs(20);
/// The frames of a target: what a stop sends.
const TARGET_FRAMES: core::ops::Range<usize> = 1..4;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSetup {
    /// Cycle rate. The stop must not depend on it.
    pub rate_hz: u32,
    /// How long; about 150 stops a second go each way.
    pub seconds: u32,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct StopRun {
    /// Packet sent -> first stop frames handed to the kernel by control.
    pub ours: LatencyHistogram,
    /// Packet sent -> frames handed over by the bare thread.
    pub bare: LatencyHistogram,
    /// Packets sent each way.
    pub sent: u64,
    /// Stops that control served, and that no frame followed at once.
    pub unserved: u64,
    /// How the threads were really scheduled.
    pub threads: Vec<SchedReport>,
    /// What the host did not grant.
    pub refusals: Vec<Refusal>,
}

#[derive(Default)]
struct Shared {
    /// Send time of the packet whose stop is under way.
    sent_ns: AtomicU64,
    /// The arm is up: begin.
    ready: AtomicBool,
    over: AtomicBool,
}

/// Measures. Takes `seconds` and some two more.
///
/// # Errors
/// One sentence: what could not be set up.
pub fn stop(setup: &StopSetup) -> Result<StopRun> {
    let (_dma, refusals) = prepare_host();
    let mut rig = Rig::new(setup.rate_hz, 1)?;
    let bare_rig = off_core(rig.cores.other, || BareRig::new(1))?;
    let bare_socket = UdpSocket::bind("127.0.0.1:0")?;
    // It ends with the run even if its last packet is lost.
    bare_socket.set_read_timeout(Some(Duration::from_secs(u64::from(setup.seconds) + 30)))?;
    let ours = rig
        .opened
        .operators
        .first()
        .context("the plan has no operator")?
        .listen;
    let targets = [bare_socket.local_addr()?, ours];
    let shared = Arc::new(Shared::default());
    let engine = rig.engine(|_, lane| lane);
    let mut input = rig.start_input()?;
    let control = spawn(
        "bench-control",
        Policy::Fifo(rig.plan.control.priority),
        rig.cores.control,
        {
            let (shared, line, rate_hz) =
                (Arc::clone(&shared), Arc::clone(&rig.line), setup.rate_hz);
            move || control_loop(engine, &line, &shared, rate_hz)
        },
    )?;
    let bare = spawn(
        "bench-bare",
        Policy::Fifo(INPUT_PRIORITY),
        rig.cores.control,
        move || bare_loop(&bare_socket, bare_rig),
    )?;
    let sender = spawn(
        "bench-sender",
        Policy::Fifo(SENDER_PRIORITY),
        rig.cores.other,
        {
            let (shared, seconds) = (Arc::clone(&shared), setup.seconds);
            move || send_loop(targets, seconds, &shared)
        },
    )?;
    let panicked = |_| anyhow!("a measuring thread panicked");
    let (sent, sender_sched) = sender.join().map_err(panicked)?;
    shared.over.store(true, Ordering::SeqCst);
    rig.line.wake.bump_and_wake();
    let ((ours, unserved), control_sched) = control.join().map_err(panicked)?;
    let (bare, bare_sched) = bare.join().map_err(panicked)?;
    input.stop();
    Ok(StopRun {
        ours,
        bare,
        sent: sent?,
        unserved,
        threads: vec![control_sched, bare_sched, sender_sched],
        refusals,
    })
}

/// As [`ControlLoop`](crate::control::thread::ControlLoop), and after each stop it puts everything back, which only a measurement may do by itself.
fn control_loop(
    mut engine: Engine,
    line: &StopLine,
    shared: &Shared,
    rate_hz: u32,
) -> (LatencyHistogram, u64) {
    let (mut histogram, mut unserved) = (LatencyHistogram::new(), 0);
    let mut pacer = Pacer::new(clock::now() + Span::from_ms(5), rate_hz);
    let mut n = 0;
    while !shared.over.load(Ordering::SeqCst) {
        let seen = line.wake.epoch();
        if line.latch.is_tripped() {
            let done = engine.stop_path(clock::now());
            let written = clock::now();
            let sent = Stamp::from_ns(shared.sent_ns.load(Ordering::Relaxed));
            if done.any_sent {
                histogram.record(written - sent);
            } else if done.stop_served.is_some() {
                unserved += 1;
            }
            sys::sleep(ECHO_WITHIN);
            engine.request(Request::Reset, clock::now());
            // Takes the echoes and leaves `Stopped`, whatever the rate.
            engine.cycle(n, clock::now());
        }
        if let Turn::Cycle(tick) = pacer.wait(&line.wake, seen) {
            n = tick.n;
            engine.cycle(n, tick.woke);
            if !shared.ready.load(Ordering::Relaxed) {
                let views = engine.views(tick.woke);
                let up = views
                    .iter()
                    .flatten()
                    .all(|v| v.phase == ArmPhase::Up && v.report.command.is_some());
                shared.ready.store(up, Ordering::SeqCst);
            }
        }
    }
    (histogram, unserved)
}

fn bare_loop(socket: &UdpSocket, mut rig: BareRig) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    let mut packet = [0; 64];
    let frames: &[KernelFrame] = rig.frames.get(TARGET_FRAMES).unwrap_or(&[]);
    while let Ok(length) = socket.recv(&mut packet)
        && let Some(sent) = packet.get(..length).and_then(sent_at)
    {
        let Some(bus) = rig.buses.first_mut() else {
            break;
        };
        let taken = bus.write(frames);
        let written = clock::now();
        if taken > 0 {
            histogram.record(written - sent);
        }
        empty(bus);
    }
    histogram
}

/// Takes what the arm has said meanwhile, so that its bus does not fill up.
fn empty(bus: &mut BareBus) {
    while bus.read() == 64 {}
}

/// The send time in a packet, from the sender's own clock field; `None` in what ends the run.
fn sent_at(packet: &[u8]) -> Option<Stamp> {
    let (_, packet) = wire::read(packet)?;
    packet
        .flags
        .is_stop()
        .then(|| Stamp::from_ns((packet.sender_time_s * 1e9) as u64))
}

/// Sends to both in turn; gives how many each got.
fn send_loop(targets: [SocketAddr; 2], seconds: u32, shared: &Shared) -> Result<u64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let began = Instant::now();
    while !shared.ready.load(Ordering::SeqCst) {
        if began.elapsed() > UP_WITHIN {
            // The bare thread must end too.
            socket.send_to(&[], targets[0])?;
            bail!("the emulated arm does not come up");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut jitter = Jitter::new(0x9E37_79B9_7F4A_7C15);
    let end = clock::now() + Span::from_s(seconds.into());
    let mut sent = 0;
    while clock::now() < end {
        for target in targets {
            sys::sleep(GAP_MIN + Span::from_ns(jitter.below(GAP_SPREAD_NS).cast_signed()));
            let mut packet = Packet {
                sender_time_s: 0.0,
                position_m: [0.1, 1.2, -0.4],
                orientation_xyzw: [0.0, 0.0, 0.0, 1.0],
                gripper: 0.5,
                flags: Flags(Flags::TRACKED | Flags::STOP),
            };
            let now = clock::now();
            packet.sender_time_s = now.as_s();
            let bytes = wire::emit(&packet);
            shared.sent_ns.store(now.as_ns(), Ordering::SeqCst);
            socket.send_to(&bytes, target)?;
        }
        sent += 1;
    }
    sys::sleep(Span::from_ms(50));
    socket.send_to(&[], targets[0])?;
    Ok(sent)
}
