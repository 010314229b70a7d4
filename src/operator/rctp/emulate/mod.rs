//! A headset made of software: a scripted hand, its noise, the network's and the operator's mishaps, over a real UDP socket.
//!
//! [`Emulator`] is pure: tick number in, datagrams out, everything from one seed, 50 a second. Used by the demo, by
//! `telearm emulate rctp` and by tests. Not real-time.
// Not real-time; the two array indices are dice of the array's own size.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::indexing_slicing
)]

mod script;

pub use script::{Hand, Leg, Script, ScriptName};

use std::io;
use std::sync::atomic::AtomicBool;

use nalgebra::{UnitQuaternion, Vector3};

use super::Frame;
use super::wire::{self, Flags, Packet};
use crate::geometry::AxisMap;
use crate::operator::emulate::{Datagram, Dice, Fault, FaultKind, Mishaps, Ticks, run_for_command};

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

/// The pure half: what leaves at each tick.
#[derive(Debug)]
pub struct Emulator {
    config: Config,
    mishaps: Mishaps,
    tick: u64,
    frozen: Option<Hand>,
}

impl Ticks for Emulator {
    fn time_s(&self) -> f64 {
        self.tick as f64 / RATE_HZ
    }

    fn step(&mut self) -> Vec<Datagram> {
        let t = self.time_s();
        self.tick += 1;
        let hand = self.hand(t);
        let packet = self.packet(t, &hand);
        let bytes = self.encode(t, &packet);
        let mut out = self.mishaps.carry(t, bytes);
        if self.mishaps.is_on(FaultKind::Silence, t) {
            return out;
        }
        if self.mishaps.is_on(FaultKind::SecondSender, t) {
            let other = Packet {
                position_m: packet.position_m.map(|v| v + 0.3),
                ..packet
            };
            out.push(Datagram {
                bytes: wire::emit(&other).to_vec(),
                from_second: true,
            });
        }
        self.mishaps.delay(t, out)
    }
}

impl Emulator {
    /// At tick 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mishaps = Mishaps::new(config.faults.clone(), config.seed);
        Self {
            config,
            mishaps,
            tick: 0,
            frozen: None,
        }
    }

    /// The true hand, in our axes, with the operator's mishaps and the tracker's noise.
    fn hand(&mut self, t: f64) -> Hand {
        let mut hand = self.config.script.at(t);
        if let Some(jump) = self.mishaps.fault(FaultKind::Jump, t) {
            hand.position.x += jump.amount;
        }
        if self.config.noise {
            let tremor = 0.0002 * (core::f64::consts::TAU * 9.0 * t).sin();
            let white = |dice: &mut Dice| 0.0007 * dice.normal();
            hand.position += Vector3::from_fn(|_, _| tremor + white(&mut self.mishaps.dice));
            let turn = Vector3::from_fn(|_, _| 0.002 * self.mishaps.dice.normal());
            hand.rotation *= UnitQuaternion::from_scaled_axis(turn);
            hand.opening = (hand.opening + 0.01 * self.mishaps.dice.normal()).clamp(0.0, 1.0);
        }
        if self.mishaps.is_on(FaultKind::Frozen, t) {
            return *self.frozen.get_or_insert(hand);
        }
        self.frozen = None;
        hand
    }

    fn packet(&mut self, t: f64, hand: &Hand) -> Packet {
        let to_sender = sender_axes(self.config.frame);
        let q = to_sender.rotation(hand.rotation);
        let mut xyzw = [q.i as f32, q.j as f32, q.k as f32, q.w as f32];
        if self.mishaps.is_on(FaultKind::FlipSign, t) && self.tick.is_multiple_of(2) {
            xyzw = xyzw.map(|c| -c);
        }
        let p = to_sender.vector(hand.position);
        let lost = self.mishaps.is_on(FaultKind::TrackingLoss, t);
        let stop = self.mishaps.is_on(FaultKind::Stop, t);
        let flags = if lost { 0 } else { Flags::TRACKED } | if stop { Flags::STOP } else { 0 };
        let jitter_s = if self.config.noise {
            0.0005 * self.mishaps.dice.normal()
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
            .mishaps
            .fault(FaultKind::ClockStep, t)
            .map_or(0.0, |f| f.amount);
        match self.mishaps.fault(FaultKind::Restart, t) {
            Some(restart) => t - restart.from_s + stepped,
            None => started + stepped,
        }
    }

    fn encode(&mut self, t: f64, packet: &Packet) -> Vec<u8> {
        let mut packet = *packet;
        if self.mishaps.happens(FaultKind::Nan, t) {
            match self.mishaps.dice.below(9) {
                0 => packet.sender_time_s = f64::NAN,
                i @ 1..=3 => packet.position_m[i as usize - 1] = f32::NAN,
                i @ 4..=7 => packet.orientation_xyzw[i as usize - 4] = f32::INFINITY,
                _ => packet.gripper = f32::NEG_INFINITY,
            }
        }
        let mut bytes = wire::emit(&packet).to_vec();
        if self.mishaps.happens(FaultKind::Short, t) {
            bytes.truncate(self.mishaps.dice.below(wire::PACKET_LEN as u64) as usize);
        }
        bytes
    }
}

/// From our axes back to the sender's: the inverse of [`Frame::axes`].
const fn sender_axes(frame: Frame) -> AxisMap {
    match frame {
        Frame::OpenxrRh => AxisMap::new([(1, -1), (2, 1), (0, -1)]),
        Frame::UnityLh => AxisMap::new([(1, -1), (2, 1), (0, 1)]),
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
        run_for_command(&self.to, Emulator::new(self.config()), self.seconds, quit)
    }
}

#[cfg(test)]
mod tests;
