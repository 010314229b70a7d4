//! What the emulators of all devices have in common: mishaps and their dice, and sending in time from a thread.
//!
//! A device's emulator is pure: it is asked for the datagrams of its next tick, and everything random comes from one seed. [`run`] sends
//! them over a real socket. Not real-time.
// Not real-time.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)]

mod fault;

pub use fault::{Fault, FaultKind, FaultParseError};

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One datagram to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Sent by a second sender, from another port.
    pub from_second: bool,
}

impl Datagram {
    /// Of the emulated device itself.
    #[must_use]
    pub const fn own(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            from_second: false,
        }
    }
}

/// The pure half of an emulated device: what leaves at each tick.
pub trait Ticks: Send {
    /// Seconds from the start at the next tick.
    fn time_s(&self) -> f64;
    /// What leaves at the next tick, in order.
    fn step(&mut self) -> Vec<Datagram>;
}

/// Small, seeded, good enough for dice: splitmix64.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same dice.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0.0 .. 1.0.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Mean 0, deviation 1 (sum of twelve: no tails, which is welcome here).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The mishaps that were asked for, and their dice.
#[derive(Debug)]
pub struct Mishaps {
    faults: Vec<Fault>,
    /// Everything random.
    pub dice: Dice,
    /// Kept back by a burst or a reordering, oldest first.
    kept: Vec<Datagram>,
}

impl Mishaps {
    /// These faults, with dice from this seed.
    #[must_use]
    pub const fn new(faults: Vec<Fault>, seed: u64) -> Self {
        Self {
            faults,
            dice: Dice::new(seed),
            kept: Vec::new(),
        }
    }

    /// The fault of this kind that is on at `t` seconds.
    #[must_use]
    pub fn fault(&self, kind: FaultKind, t: f64) -> Option<Fault> {
        let mut faults = self.faults.iter().copied();
        faults.find(|f| f.kind == kind && f.is_on(t))
    }

    /// A fault of this kind is on.
    #[must_use]
    pub fn is_on(&self, kind: FaultKind, t: f64) -> bool {
        self.fault(kind, t).is_some()
    }

    /// A fault that hits a share of the packets, its amount in per cent.
    pub fn happens(&mut self, kind: FaultKind, t: f64) -> bool {
        match self.fault(kind, t) {
            Some(fault) => self.dice.uniform() * 100.0 < fault.amount,
            None => false,
        }
    }

    /// What the network makes of one packet, apart from delays: lost, doubled, followed by rubbish, or cut off altogether.
    pub fn carry(&mut self, t: f64, bytes: Vec<u8>) -> Vec<Datagram> {
        let mut out = Vec::new();
        if self.is_on(FaultKind::Silence, t) {
            return out;
        }
        if !self.happens(FaultKind::Loss, t) {
            out.push(Datagram::own(bytes));
        }
        if self.happens(FaultKind::Duplicate, t) {
            out.extend(out.last().cloned());
        }
        if self.happens(FaultKind::Garbage, t) {
            let len = self.dice.below(64);
            let rubbish = (0..len).map(|_| self.dice.below(256) as u8);
            out.push(Datagram::own(rubbish.collect()));
        }
        out
    }

    /// Keeps back what a burst or a reordering keeps back.
    pub fn delay(&mut self, t: f64, mut out: Vec<Datagram>) -> Vec<Datagram> {
        let window = self.fault(FaultKind::Reorder, t).map(|f| f.amount as usize);
        if self.is_on(FaultKind::Burst, t)
            || window.is_some_and(|n| self.kept.len() + out.len() < n)
        {
            self.kept.append(&mut out);
            return out;
        }
        let mut all = core::mem::take(&mut self.kept);
        all.append(&mut out);
        if window.is_some() {
            all.reverse();
        }
        all
    }
}

/// What was sent.
#[derive(Debug, Default)]
pub struct Sent {
    /// Datagrams handed to the kernel.
    pub datagrams: AtomicU64,
    /// Datagrams that the kernel refused (nobody listens, for one).
    pub refused: AtomicU64,
}

/// Sends each tick at its time until `quit` is set or `length` is over.
///
/// # Errors
/// When no socket can be opened. A refused datagram is counted, not an error: a receiver may come and go.
pub fn run(
    to: SocketAddr,
    mut device: impl Ticks,
    length: Option<Duration>,
    quit: &AtomicBool,
    sent: &Sent,
) -> io::Result<()> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let (first, second) = (UdpSocket::bind(any)?, UdpSocket::bind(any)?);
    let started = Instant::now();
    while !quit.load(Ordering::Acquire) {
        let due = Duration::from_secs_f64(device.time_s());
        if length.is_some_and(|length| due >= length) {
            break;
        }
        thread::sleep(due.saturating_sub(started.elapsed()));
        for datagram in device.step() {
            let socket = if datagram.from_second {
                &second
            } else {
                &first
            };
            let counter = match socket.send_to(&datagram.bytes, to) {
                Ok(_) => &sent.datagrams,
                Err(_) => &sent.refused,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Runs as a subcommand of `telearm emulate` does: until the time is over or `quit` is set; gives a sentence about what was sent.
///
/// # Errors
/// When the address cannot be resolved, the time is no time, or no socket can be opened.
pub fn run_for_command(
    to: &str,
    device: impl Ticks,
    seconds: Option<f64>,
    quit: &AtomicBool,
) -> io::Result<String> {
    let unknown = || io::Error::other(format!("{to:?} is not an address like 192.168.1.5:8888"));
    let address = to.to_socket_addrs().map_err(|_| unknown())?.next();
    let address = address.ok_or_else(unknown)?;
    let length = seconds.map(Duration::try_from_secs_f64).transpose();
    let length = length.map_err(|_| io::Error::other("--seconds must be positive"))?;
    let sent = Sent::default();
    run(address, device, length, quit, &sent)?;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(format!(
        "{} datagrams sent to {address}, {} refused by the network",
        count(&sent.datagrams),
        count(&sent.refused)
    ))
}

/// An emulated device in a thread of its own; ends when dropped.
#[derive(Debug)]
pub struct Running {
    quit: Arc<AtomicBool>,
    /// What was sent so far.
    pub sent: Arc<Sent>,
    join: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Starts to send.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(to: SocketAddr, device: impl Ticks + 'static) -> io::Result<Self> {
        let (quit, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(Sent::default()));
        let (quit_too, sent_too) = (Arc::clone(&quit), Arc::clone(&sent));
        let join = thread::Builder::new()
            .name("emulate".to_owned())
            .spawn(move || run(to, device, None, &quit_too, &sent_too))?;
        Ok(Self {
            quit,
            sent,
            join: Some(join),
        })
    }

    /// Stops sending and waits for the thread.
    ///
    /// # Errors
    /// What ended the thread early.
    pub fn stop(&mut self) -> io::Result<()> {
        self.quit.store(true, Ordering::Release);
        match self.join.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the emulator panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
