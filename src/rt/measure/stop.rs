//! The stop path: a UDP packet with a stop bit to the first stop frame handed to the kernel.
//!
//! Ours is the real path: mio input thread, latch and wake, control thread in its cycle wait, gate, write. The baseline is the least that
//! could do it: one thread that blocks in `recv` and writes. One sender feeds both in turn, at random phases against the cycle. The frame goes
//! into a local datagram socket, which the writer empties itself after the time was taken, so that no third thread is woken.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::{Jitter, prepare_host};
use crate::handoff::{ControlGate, SourceId, StopLine, StopReason, sys, tx_gate};
use crate::rt::Refusal;
use crate::rt::clock;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::memory::prefault_stack;
use crate::rt::pace::{Pacer, Turn};
use crate::rt::sched::{self, Policy, SchedReport, Wanted};
use crate::time::{Span, Stamp};

/// As long as an RCTP packet; the first eight bytes are the send time, zero ends the run.
const PACKET_BYTES: usize = 45;
/// As long as a classic CAN frame.
const FRAME: [u8; 16] = [0x5A; 16];
/// Between two packets: long enough for one stop to be over before the next.
const GAP_MIN: Span = Span::from_us(1_000);
const GAP_SPREAD_NS: u64 = 2_000_000;
const INPUT_PRIORITY: u8 = 75;
const CONTROL_PRIORITY: u8 = 80;
/// The sender stands for a device; it must be neither delayed nor in the way.
const SENDER_PRIORITY: u8 = 40;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopSetup {
    /// Cycle rate of the control thread. The stop must not depend on it.
    pub rate_hz: u32,
    /// How long; about 250 stops a second go each way.
    pub seconds: f64,
    /// The core of the control thread; `None` takes the last one that this process may use.
    pub control_cpu: Option<usize>,
    /// The core of both receiving threads; `None` takes the control thread's. There the input thread, of lower priority, never delays control, and
    /// waking control needs no interrupt to another core.
    pub input_cpu: Option<usize>,
    /// The core that the packets come from, as a network card's interrupt would be on one; `None` takes the first one.
    pub sender_cpu: Option<usize>,
}

impl Default for StopSetup {
    fn default() -> Self {
        Self {
            rate_hz: 1000,
            seconds: 10.0,
            control_cpu: None,
            input_cpu: None,
            sender_cpu: None,
        }
    }
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct StopRun {
    /// Packet sent -> stop frame written by control.
    pub ours: LatencyHistogram,
    /// Packet sent -> frame written by the bare thread.
    pub bare: LatencyHistogram,
    /// Packets sent each way.
    pub sent: u64,
    /// How the threads were really scheduled.
    pub threads: Vec<SchedReport>,
    /// What the host did not grant.
    pub refusals: Vec<Refusal>,
}

/// What the input and the control thread share, besides the stop line.
struct Shared {
    line: StopLine,
    /// Send time of the packet whose stop is under way.
    sent_ns: AtomicU64,
    over: AtomicBool,
}

/// Measures. Takes `seconds` and a little more.
///
/// # Errors
/// Sockets or threads cannot be made.
pub fn stop(setup: &StopSetup) -> io::Result<StopRun> {
    let (_dma, refusals) = prepare_host();
    let cpus = sched::affinity();
    let sender_cpu = setup.sender_cpu.or_else(|| cpus.first().copied());
    let control_cpu = setup.control_cpu.or_else(|| cpus.last().copied());
    let input_cpu = setup.input_cpu.or(control_cpu);
    let shared = Arc::new(Shared {
        line: StopLine::new(),
        sent_ns: AtomicU64::new(0),
        over: AtomicBool::new(false),
    });
    let bare_socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut our_socket =
        mio::net::UdpSocket::bind(std::net::SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let targets = [bare_socket.local_addr()?, our_socket.local_addr()?];
    let mut poll = mio::Poll::new()?;
    poll.registry()
        .register(&mut our_socket, mio::Token(0), mio::Interest::READABLE)?;
    let (bare_bus, our_bus) = (Bus::new()?, Bus::new()?);

    let bare = spawn("bench-bare", INPUT_PRIORITY, input_cpu, move || {
        bare_loop(&bare_socket, &bare_bus)
    })?;
    let input = spawn("bench-input", INPUT_PRIORITY, input_cpu, {
        let shared = Arc::clone(&shared);
        move || input_loop(&shared, &mut poll, &our_socket)
    })?;
    let control = spawn("bench-control", CONTROL_PRIORITY, control_cpu, {
        let (shared, rate_hz) = (Arc::clone(&shared), setup.rate_hz);
        move || control_loop(&shared, rate_hz, &our_bus)
    })?;
    let seconds = setup.seconds;
    let sender = spawn("bench-sender", SENDER_PRIORITY, sender_cpu, move || {
        send_loop(targets, seconds)
    })?;

    let panicked = |_| io::Error::other("a measuring thread panicked");
    let (sent, sender) = sender.join().map_err(panicked)?;
    let (bare, bare_sched) = bare.join().map_err(panicked)?;
    let ((), input_sched) = input.join().map_err(panicked)?;
    let (ours, control_sched) = control.join().map_err(panicked)?;
    Ok(StopRun {
        ours: ours?,
        bare: bare?,
        sent: sent?,
        threads: vec![control_sched, input_sched, bare_sched, sender],
        refusals,
    })
}

type Joined<R> = thread::JoinHandle<(R, SchedReport)>;

fn spawn<R: Send + 'static>(
    name: &'static str,
    priority: u8,
    cpu: Option<usize>,
    body: impl FnOnce() -> R + Send + 'static,
) -> io::Result<Joined<R>> {
    thread::Builder::new().name(name.into()).spawn(move || {
        let sched = sched::apply(Wanted {
            name,
            policy: Policy::Fifo(priority),
            cpu,
        });
        prefault_stack();
        (body(), sched)
    })
}

/// A stand-in for a CAN socket: what is written is thrown away by the writer itself.
struct Bus {
    near: UnixDatagram,
    far: UnixDatagram,
}

impl Bus {
    fn new() -> io::Result<Self> {
        let (near, far) = UnixDatagram::pair()?;
        far.set_nonblocking(true)?;
        Ok(Self { near, far })
    }

    /// Writes a frame and gives the time right after.
    fn write(&self) -> io::Result<Stamp> {
        self.near.send(&FRAME)?;
        let written = clock::now();
        let mut frame = [0; FRAME.len()];
        self.far.recv(&mut frame)?;
        Ok(written)
    }
}

/// The send time in a packet; `None` in the one that ends the run.
fn sent_at(packet: &[u8]) -> Option<Stamp> {
    let ns = packet
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes));
    (ns != 0).then_some(Stamp::from_ns(ns))
}

fn bare_loop(socket: &UdpSocket, bus: &Bus) -> io::Result<LatencyHistogram> {
    let mut histogram = LatencyHistogram::new();
    let mut packet = [0; PACKET_BYTES];
    loop {
        let length = socket.recv(&mut packet)?;
        let Some(sent) = packet.get(..length).and_then(sent_at) else {
            return Ok(histogram);
        };
        histogram.record(bus.write()? - sent);
    }
}

fn input_loop(shared: &Shared, poll: &mut mio::Poll, socket: &mio::net::UdpSocket) {
    let mut events = mio::Events::with_capacity(8);
    let mut packet = [0; PACKET_BYTES];
    loop {
        if poll.poll(&mut events, None).is_err() {
            continue; // interrupted by a signal
        }
        while let Ok(length) = socket.recv(&mut packet) {
            let sent = packet.get(..length).and_then(sent_at);
            shared
                .sent_ns
                .store(sent.map_or(0, Stamp::as_ns), Ordering::Relaxed);
            if sent.is_none() {
                shared.over.store(true, Ordering::SeqCst);
            }
            shared
                .line
                .trip(StopReason::OperatorStopBit, SourceId::operator(0));
            if sent.is_none() {
                return;
            }
        }
    }
}

fn control_loop(shared: &Shared, rate_hz: u32, bus: &Bus) -> io::Result<LatencyHistogram> {
    let mut histogram = LatencyHistogram::new();
    let (mut gate, _watchdog) = tx_gate();
    let mut pacer = Pacer::new(clock::now() + Span::from_ms(5), rate_hz);
    loop {
        let seen = shared.line.wake.epoch();
        if shared.line.latch.is_tripped() {
            if shared.over.load(Ordering::SeqCst) {
                return Ok(histogram);
            }
            histogram.record(stop_path(shared, &mut gate, bus)?);
        }
        if let Turn::Cycle(_) = pacer.wait(&shared.line.wake, seen)
            && let Ok(_permit) = gate.begin(&shared.line.latch)
        {
            bus.write()?; // the motion frame of a cycle
        }
    }
}

/// The first frame of the braking ramp. The latch is then cleared for the next packet, which only a measurement may do by itself.
fn stop_path(shared: &Shared, gate: &mut ControlGate, bus: &Bus) -> io::Result<Span> {
    let permit = gate
        .begin_braking()
        .map_err(|_| io::Error::from_raw_os_error(libc::EPERM))?;
    let written = bus.write()?;
    drop(permit);
    let sent = Stamp::from_ns(shared.sent_ns.load(Ordering::Relaxed));
    while shared
        .line
        .latch
        .reset(shared.line.latch.load().generation)
        .is_err()
    {}
    Ok(written - sent)
}

/// Sends to both in turn; gives how many each got.
fn send_loop(targets: [std::net::SocketAddr; 2], seconds: f64) -> io::Result<u64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut jitter = Jitter(0x9E37_79B9_7F4A_7C15);
    let mut packet = [0; PACKET_BYTES];
    sys::sleep(Span::from_ms(300)); // everybody is up
    let end = clock::now() + Span::from_s(seconds);
    let mut sent = 0;
    while clock::now() < end {
        for target in targets {
            sys::sleep(GAP_MIN + Span::from_ns(jitter.below(GAP_SPREAD_NS).cast_signed()));
            packet[..8].copy_from_slice(&clock::now().as_ns().to_be_bytes());
            socket.send_to(&packet, target)?;
        }
        sent += 1;
    }
    sys::sleep(Span::from_ms(100));
    for target in targets {
        socket.send_to(&[0; PACKET_BYTES], target)?;
    }
    Ok(sent)
}
