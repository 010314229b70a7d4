//! A headset made of software: a scripted hand, its noise, the network's and the operator's mishaps, over a real UDP socket.
//!
//! [`Emulator`] is pure: tick number in, datagrams out, everything from one seed. [`run`] sends them at 50 Hz. Used by the demo, by
//! `telearm emulate rctp` and by tests. Not real-time.
// Not real-time; the two array indices are dice of the array's own size.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::indexing_slicing
)]

mod fault;
mod script;

pub use fault::{Fault, FaultKind, FaultParseError};
pub use script::{Hand, Leg, Script, ScriptName};

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nalgebra::{UnitQuaternion, Vector3};

use super::Frame;
use super::wire::{self, Flags, Packet};
use crate::geometry::AxisMap;

/// Packets per second.
pub const RATE_HZ: f64 = 50.0;

/// What to emulate.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the hand does.
    pub script: Script,
    /// Axes that the sender uses.
    pub frame: Frame,
    /// Mishaps.
    pub faults: Vec<Fault>,
    /// Everything random comes from this.
    pub seed: u64,
    /// Tracking noise and tremor on or off.
    pub noise: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            script: Script::named(ScriptName::Demo),
            frame: Frame::default(),
            faults: Vec::new(),
            seed: 1,
            noise: true,
        }
    }
}

/// One datagram to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Sent by a second headset, from another port.
    pub from_second: bool,
}

/// The pure half: what leaves at each tick.
#[derive(Debug)]
pub struct Emulator {
    config: Config,
    dice: Dice,
    tick: u64,
    /// Kept back by a burst or a reordering, oldest first.
    kept: Vec<Datagram>,
    frozen: Option<Hand>,
}

impl Emulator {
    /// At tick 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let dice = Dice(config.seed);
        Self {
            config,
            dice,
            tick: 0,
            kept: Vec::new(),
            frozen: None,
        }
    }

    /// Seconds of the script at the next tick.
    #[must_use]
    pub fn time_s(&self) -> f64 {
        self.tick as f64 / RATE_HZ
    }

    /// What leaves at the next tick, in order.
    pub fn step(&mut self) -> Vec<Datagram> {
        let t = self.time_s();
        self.tick += 1;
        let hand = self.hand(t);
        let packet = self.packet(t, &hand);
        let mut out = Vec::new();
        if self.is_on(FaultKind::Silence, t) {
            return out;
        }
        if !self.happens(FaultKind::Loss, t) {
            out.push(own(self.encode(t, &packet)));
        }
        if self.happens(FaultKind::Duplicate, t) {
            out.extend(out.last().cloned());
        }
        if self.happens(FaultKind::Garbage, t) {
            let len = self.dice.below(64) as usize;
            out.push(own((0..len).map(|_| self.dice.below(256) as u8).collect()));
        }
        if self.is_on(FaultKind::SecondSender, t) {
            let other = Packet {
                position_m: packet.position_m.map(|v| v + 0.3),
                ..packet
            };
            out.push(Datagram {
                bytes: wire::emit(&other).to_vec(),
                from_second: true,
            });
        }
        self.delayed(t, out)
    }

    /// The true hand, in our axes, with the operator's mishaps and the tracker's noise.
    fn hand(&mut self, t: f64) -> Hand {
        let mut hand = self.config.script.at(t);
        if let Some(jump) = self.fault(FaultKind::Jump, t) {
            hand.position.x += jump.amount;
        }
        if self.config.noise {
            let tremor = 0.0002 * (core::f64::consts::TAU * 9.0 * t).sin();
            let white = |dice: &mut Dice| 0.0007 * dice.normal();
            hand.position += Vector3::from_fn(|_, _| tremor + white(&mut self.dice));
            let turn = Vector3::from_fn(|_, _| 0.002 * self.dice.normal());
            hand.rotation *= UnitQuaternion::from_scaled_axis(turn);
            hand.opening = (hand.opening + 0.01 * self.dice.normal()).clamp(0.0, 1.0);
        }
        if self.is_on(FaultKind::Frozen, t) {
            return *self.frozen.get_or_insert(hand);
        }
        self.frozen = None;
        hand
    }

    fn packet(&mut self, t: f64, hand: &Hand) -> Packet {
        let to_sender = sender_axes(self.config.frame);
        let q = to_sender.rotation(hand.rotation);
        let mut xyzw = [q.i as f32, q.j as f32, q.k as f32, q.w as f32];
        if self.is_on(FaultKind::FlipSign, t) && self.tick.is_multiple_of(2) {
            xyzw = xyzw.map(|c| -c);
        }
        let p = to_sender.vector(hand.position);
        let lost = self.is_on(FaultKind::TrackingLoss, t);
        let stop = self.is_on(FaultKind::Stop, t);
        let flags = if lost { 0 } else { Flags::TRACKED } | if stop { Flags::STOP } else { 0 };
        let jitter_s = if self.config.noise {
            0.0005 * self.dice.normal()
        } else {
            0.0
        };
        Packet {
            sender_time_s: self.sender_clock(t) + jitter_s.clamp(-0.004, 0.004),
            position_m: if lost {
                [0.0; 3]
            } else {
                [p.x as f32, p.y as f32, p.z as f32]
            },
            orientation_xyzw: if lost { [0.0; 4] } else { xyzw },
            gripper: if lost { 0.0 } else { hand.opening as f32 },
            flags: Flags(flags),
        }
    }

    /// Seconds since the application started, as its clock has it.
    fn sender_clock(&self, t: f64) -> f64 {
        // The application ran for a while before: a restart must be seen as a fall-back.
        let started = 20.0 + t;
        let stepped = self
            .fault(FaultKind::ClockStep, t)
            .map_or(0.0, |f| f.amount);
        match self.fault(FaultKind::Restart, t) {
            Some(restart) => t - restart.from_s + stepped,
            None => started + stepped,
        }
    }

    fn encode(&mut self, t: f64, packet: &Packet) -> Vec<u8> {
        let mut packet = *packet;
        if self.happens(FaultKind::Nan, t) {
            match self.dice.below(9) {
                0 => packet.sender_time_s = f64::NAN,
                i @ 1..=3 => packet.position_m[i as usize - 1] = f32::NAN,
                i @ 4..=7 => packet.orientation_xyzw[i as usize - 4] = f32::INFINITY,
                _ => packet.gripper = f32::NEG_INFINITY,
            }
        }
        let mut bytes = wire::emit(&packet).to_vec();
        if self.happens(FaultKind::Short, t) {
            bytes.truncate(self.dice.below(wire::PACKET_LEN as u64) as usize);
        }
        bytes
    }

    /// Keeps back what a burst or a reordering keeps back.
    fn delayed(&mut self, t: f64, mut out: Vec<Datagram>) -> Vec<Datagram> {
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

    fn fault(&self, kind: FaultKind, t: f64) -> Option<Fault> {
        self.config
            .faults
            .iter()
            .copied()
            .find(|f| f.kind == kind && f.is_on(t))
    }

    fn is_on(&self, kind: FaultKind, t: f64) -> bool {
        self.fault(kind, t).is_some()
    }

    /// A fault that hits a share of the packets, its amount in per cent.
    fn happens(&mut self, kind: FaultKind, t: f64) -> bool {
        match self.fault(kind, t) {
            Some(fault) => self.dice.uniform() * 100.0 < fault.amount,
            None => false,
        }
    }
}

const fn own(bytes: Vec<u8>) -> Datagram {
    Datagram {
        bytes,
        from_second: false,
    }
}

/// From our axes back to the sender's: the inverse of [`Frame::axes`].
const fn sender_axes(frame: Frame) -> AxisMap {
    match frame {
        Frame::OpenxrRh => AxisMap::new([(1, -1), (2, 1), (0, -1)]),
        Frame::UnityLh => AxisMap::new([(1, -1), (2, 1), (0, 1)]),
    }
}

/// Small, seeded, good enough for dice: splitmix64.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0.0 .. 1.0.
    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Mean 0, deviation 1 (sum of twelve: no tails, which is welcome here).
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Arguments of `telearm emulate rctp`.
#[derive(Debug, Clone, clap::Args)]
pub struct EmulateArgs {
    /// Where to send to
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8888")]
    pub to: String,
    /// What the hand does
    #[arg(long, value_enum, default_value_t = ScriptName::Demo)]
    pub script: ScriptName,
    /// Axes that the sender uses
    #[arg(long, value_enum, default_value_t = Frame::OpenxrRh)]
    pub frame: Frame,
    /// A mishap: NAME[=AMOUNT][@START[+LENGTH]], times in seconds; may be repeated
    ///
    /// In per cent of the packets: loss, duplicate, garbage, nan, short.
    /// For a while: stop, tracking_loss, silence, burst (kept back, then all at once), frozen, flip_sign, second_sender.
    /// With an amount: jump (metres), clock_step (seconds), reorder (packets). At a moment: restart.
    /// Examples: loss=5  stop@8+0.02  jump=0.3@6+2  clock_step=-5@4  burst@5+0.5
    #[arg(long = "fault", value_name = "FAULT", verbatim_doc_comment)]
    pub faults: Vec<Fault>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stop after this long; otherwise on Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// No tracking noise
    #[arg(long)]
    pub no_noise: bool,
}

impl EmulateArgs {
    /// The configuration that the arguments ask for.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            script: Script::named(self.script),
            frame: self.frame,
            faults: self.faults.clone(),
            seed: self.seed,
            noise: !self.no_noise,
        }
    }

    /// Runs until the time is over or `quit` is set; gives a sentence about what was sent.
    ///
    /// # Errors
    /// When the address cannot be resolved or no socket can be opened.
    pub fn run(&self, quit: &AtomicBool) -> io::Result<String> {
        let unknown = || io::Error::other(format!("{} is no address", self.to));
        let to = self.to.to_socket_addrs()?.next().ok_or_else(unknown)?;
        let length = self.seconds.map(Duration::try_from_secs_f64).transpose();
        let length = length.map_err(|_| io::Error::other("--seconds must be positive"))?;
        let sent = Sent::default();
        run(to, self.config(), length, quit, &sent)?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(format!(
            "{} datagrams sent to {to}, {} refused",
            count(&sent.datagrams),
            count(&sent.refused)
        ))
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

/// Sends at 50 Hz until `quit` is set or `length` is over.
///
/// # Errors
/// When no socket can be opened. A refused datagram is counted, not an error: a receiver may come and go.
pub fn run(
    to: SocketAddr,
    config: Config,
    length: Option<Duration>,
    quit: &AtomicBool,
    sent: &Sent,
) -> io::Result<()> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let (first, second) = (UdpSocket::bind(any)?, UdpSocket::bind(any)?);
    let mut emulator = Emulator::new(config);
    let started = Instant::now();
    while !quit.load(Ordering::Acquire) {
        let due = Duration::from_secs_f64(emulator.time_s());
        if length.is_some_and(|length| due >= length) {
            break;
        }
        thread::sleep(due.saturating_sub(started.elapsed()));
        for datagram in emulator.step() {
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

/// An emulator in a thread of its own; ends when dropped.
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
    pub fn start(to: SocketAddr, config: Config) -> io::Result<Self> {
        let (quit, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(Sent::default()));
        let (quit_too, sent_too) = (Arc::clone(&quit), Arc::clone(&sent));
        let join = thread::Builder::new()
            .name("emulate-rctp".to_owned())
            .spawn(move || run(to, config, None, &quit_too, &sent_too))?;
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

#[cfg(test)]
mod tests;
