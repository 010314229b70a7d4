//! Gloves made of software: one or both hands, FNIM or FSNH, with mishaps, 120 packets a second for each hand.
//!
//! [`Emulator`] is pure: tick number in, datagrams out, everything from one seed. Not real-time.
// Not real-time; the indices are dice of the array's own size.
#![allow(clippy::disallowed_types, clippy::indexing_slicing)]

use std::io;
use std::sync::atomic::AtomicBool;

use super::fingers::Calibration;
use super::params::{Params, Settings};
use super::wire::{Hand, Header, fnim, fsnh};
use crate::operator::emulate::{
    Datagram, Fault, FaultKind, FaultParseError, Mishaps, Ticks, run_for_command,
};

/// Packets per second of one hand.
pub const RATE_HZ: f64 = 120.0;

/// The mishaps that a glove can have.
pub const FAULTS: &[FaultKind] = &[
    FaultKind::Loss,
    FaultKind::Duplicate,
    FaultKind::Garbage,
    FaultKind::Nan,
    FaultKind::Short,
    FaultKind::Reorder,
    FaultKind::Silence,
    FaultKind::Burst,
    FaultKind::Restart,
    FaultKind::SecondSender,
    FaultKind::TrackingLoss,
    FaultKind::Frozen,
];

/// Which packets are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Protocol {
    /// Fingertips and forearm, 240 bytes
    #[default]
    Fnim,
    /// All joints, 612 bytes; the layout is derived
    Fsnh,
}

/// What the hand does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Script {
    /// Ring and pinky straight for 3.5 s (an arm comes up meanwhile), curled for 6.5 s, again and again; thumb and index open and close
    #[default]
    Demo,
    /// Thumb and index open and close, every 4 s
    Grip,
    /// Open hand
    Open,
    /// Thumb on index
    Pinch,
    /// Ring and pinky curled: a clutch that is held
    Curl,
    /// What `telearm calibrate glove` asks for, 8 s each: open hand, thumb on index, ring and pinky curled
    Calibrate,
}

/// A hand at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Posture {
    /// Thumb and index, 1 = open.
    pub opening: f64,
    /// Ring and pinky, 1 = curled.
    pub curl: f64,
}

impl Script {
    /// The hand at `t` seconds.
    #[must_use]
    pub fn at(self, t: f64) -> Posture {
        let wave = 0.5 + 0.5 * (core::f64::consts::TAU * t / 4.0).cos();
        let (opening, curl) = match self {
            Self::Demo => (wave, if t % 10.0 < 3.5 { 0.0 } else { 1.0 }),
            Self::Grip => (wave, 0.0),
            Self::Open => (1.0, 0.0),
            Self::Pinch => (0.0, 0.0),
            Self::Curl => (1.0, 1.0),
            Self::Calibrate => match t {
                ..8.0 => (1.0, 0.0),
                8.0..16.0 => (0.0, 0.0),
                _ => (1.0, 1.0),
            },
        };
        Posture { opening, curl }
    }
}

/// One emulated hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandConfig {
    /// Which.
    pub hand: Hand,
    /// What it measures, which is what a plan that fits it says.
    pub calibration: Calibration,
}

impl HandConfig {
    /// The hand that the defaults of a plan fit.
    #[must_use]
    pub fn new(hand: Hand) -> Self {
        Self {
            hand,
            calibration: Settings::on_loopback(0, hand).calibration,
        }
    }
}

/// What to emulate.
#[derive(Debug, Clone)]
pub struct Config {
    /// The hands, each with its own frame numbers.
    pub hands: Vec<HandConfig>,
    /// Which packets.
    pub protocol: Protocol,
    /// What the hands do.
    pub script: Script,
    /// Mishaps.
    pub faults: Vec<Fault>,
    /// Everything random comes from this.
    pub seed: u64,
    /// Noise of the sensors on or off.
    pub noise: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hands: vec![HandConfig::new(Hand::Right)],
            protocol: Protocol::default(),
            script: Script::default(),
            faults: Vec::new(),
            seed: 1,
            noise: true,
        }
    }
}

/// Fingertips and forearm, millimetres, in the order of FNIM's slots.
type Points = [[f64; 3]; fnim::SLOTS];

/// The pure half: what leaves at each tick.
#[derive(Debug)]
pub struct Emulator {
    config: Config,
    mishaps: Mishaps,
    tick: u64,
    frozen: Vec<Option<Points>>,
}

impl Emulator {
    /// At tick 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mishaps = Mishaps::new(config.faults.clone(), config.seed);
        let frozen = vec![None; config.hands.len()];
        Self {
            config,
            mishaps,
            tick: 0,
            frozen,
        }
    }

    fn points(&mut self, index: usize, t: f64) -> Points {
        let hand = &self.config.hands[index];
        let mut points = place(&hand.calibration, self.config.script.at(t));
        if self.config.noise {
            for value in points.as_flattened_mut() {
                *value += 0.3 * self.mishaps.dice.normal();
            }
        }
        if self.mishaps.is_on(FaultKind::Frozen, t) {
            return *self.frozen[index].get_or_insert(points);
        }
        self.frozen[index] = None;
        points
    }

    fn header(&self, hand: Hand, t: f64) -> Header {
        // The sender ran for a while before: a restart must be seen as a fall-back.
        let (ticks, since_s) = match self.mishaps.fault(FaultKind::Restart, t) {
            Some(restart) => (0, t - restart.from_s),
            None => (3600, 30.0 + t),
        };
        let passed = (since_s * RATE_HZ).round() as u64;
        Header {
            hand,
            reserved: 0,
            frame_number: if ticks == 0 {
                passed as u32
            } else {
                (ticks + self.tick) as u32
            },
            sender_time_ns: (since_s * 1e9) as u64,
        }
    }

    fn packet(&mut self, index: usize, t: f64) -> Vec<u8> {
        let hand = self.config.hands[index].hand;
        let header = self.header(hand, t);
        let mut points = self.points(index, t);
        if self.mishaps.happens(FaultKind::Nan, t) {
            points[self.mishaps.dice.below(5) as usize][0] = f64::NAN;
        }
        let is_lost = self.mishaps.is_on(FaultKind::TrackingLoss, t);
        let mut bytes = match self.config.protocol {
            Protocol::Fnim => fnim_packet(&header, &points, is_lost),
            Protocol::Fsnh => fsnh_packet(&header, &points, is_lost),
        };
        if self.mishaps.happens(FaultKind::Short, t) {
            let len = self.mishaps.dice.below(bytes.len() as u64);
            bytes.truncate(len as usize);
        }
        bytes
    }
}

impl Ticks for Emulator {
    fn time_s(&self) -> f64 {
        self.tick as f64 / RATE_HZ
    }

    fn step(&mut self) -> Vec<Datagram> {
        let t = self.time_s();
        let mut out = Vec::new();
        for index in 0..self.config.hands.len() {
            let bytes = self.packet(index, t);
            let second = self.mishaps.is_on(FaultKind::SecondSender, t);
            out.extend(second.then(|| Datagram {
                bytes: bytes.clone(),
                from_second: true,
            }));
            out.extend(self.mishaps.carry(t, bytes));
        }
        self.tick += 1;
        self.mishaps.delay(t, out)
    }
}

/// Where the tips are: exactly as far apart and as far from the origin as the calibration says.
fn place(calibration: &Calibration, posture: Posture) -> Points {
    let along = |[x, y, z]: [f64; 3], mm: f64| {
        let length = x.hypot(y).hypot(z);
        [x, y, z].map(|v| v * mm / length)
    };
    let between = |near: f64, far: f64, share: f64| near + (far - near) * share;
    let Calibration {
        aperture,
        ring,
        pinky,
    } = calibration;
    let thumb = [-30.0, 70.0, -25.0];
    let gap = along(
        [0.3, 0.9, 0.3],
        between(aperture.near_mm, aperture.far_mm, posture.opening),
    );
    // A finger that curls goes down to the palm.
    let direction = [0.15, 1.0, -0.2 - 0.8 * posture.curl];
    [
        thumb,
        [thumb[0] + gap[0], thumb[1] + gap[1], thumb[2] + gap[2]],
        [0.0, 160.0, -20.0],
        along(direction, between(ring.far_mm, ring.near_mm, posture.curl)),
        along(
            direction,
            between(pinky.far_mm, pinky.near_mm, posture.curl),
        ),
        [0.0, -180.0, 5.0],
    ]
}

const UPRIGHT_WXYZ: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

fn fnim_packet(header: &Header, points: &Points, is_lost: bool) -> Vec<u8> {
    let slots = points.map(|p| fnim::RawSlot {
        position_mm: p.map(|v| v as f32),
        orientation_wxyz: UPRIGHT_WXYZ,
        valid: u8::from(!is_lost),
        padding: [0; 3],
    });
    fnim::emit(header, &slots, [0.1, -0.2, 9.8], [0.01, 0.0, -0.01]).to_vec()
}

/// There is no valid byte in this protocol: a hand that is not seen has quaternions of norm zero.
fn fsnh_packet(header: &Header, points: &Points, is_lost: bool) -> Vec<u8> {
    let orientation_wxyz = if is_lost { [0.0; 4] } else { UPRIGHT_WXYZ };
    let mut joints = [fsnh::Joint {
        position_m: [0.0, 0.05, 0.0],
        orientation_wxyz,
    }; fsnh::JOINTS_WRIST];
    let [thumb, index, ring, pinky] = Params::default().fsnh_tips.map(usize::from);
    for (joint, slot) in [(thumb, 0), (index, 1), (ring, 3), (pinky, 4)] {
        joints[joint].position_m = points[slot].map(|mm| (mm * 1e-3) as f32);
    }
    let joints = joints.map(|joint| joint.right_forward_up(header.hand));
    fsnh::emit(header, &joints).to_vec()
}

/// Which hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Hands {
    /// Left
    Left,
    /// Right
    Right,
    /// Both, from one sender
    Both,
}

/// Arguments of `telearm emulate glove`.
#[derive(Debug, Clone, clap::Args)]
pub struct EmulateArgs {
    /// Where to send to
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:15001")]
    to: String,
    /// Which hands
    #[arg(long, value_enum, default_value_t = Hands::Right)]
    hand: Hands,
    /// Which packets
    #[arg(long, value_enum, default_value_t = Protocol::Fnim)]
    protocol: Protocol,
    /// What the hands do
    #[arg(long, value_enum, default_value_t = Script::Demo)]
    script: Script,
    /// A mishap: NAME[=AMOUNT][@START[+LENGTH]], times in seconds; may be repeated
    ///
    /// In per cent of the packets: loss, duplicate, garbage, nan (in one slot), short.
    /// For a while: tracking_loss, silence, burst (kept back, then all at once), frozen, second_sender.
    /// With an amount: reorder (packets). At a moment: restart.
    /// Examples: loss=5  silence@8+0.1  tracking_loss@6+2  frozen@4
    #[arg(long = "fault", value_name = "FAULT", value_parser = parse_fault, verbatim_doc_comment)]
    faults: Vec<Fault>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this long; otherwise on Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// No noise of the sensors (a hand without it soon counts as frozen)
    #[arg(long)]
    no_noise: bool,
}

fn parse_fault(text: &str) -> Result<Fault, FaultParseError> {
    Fault::parse(text, FAULTS)
}

impl EmulateArgs {
    /// The configuration that the arguments ask for.
    #[must_use]
    pub fn config(&self) -> Config {
        let hands: &[Hand] = match self.hand {
            Hands::Left => &[Hand::Left],
            Hands::Right => &[Hand::Right],
            Hands::Both => &[Hand::Left, Hand::Right],
        };
        Config {
            hands: hands.iter().map(|hand| HandConfig::new(*hand)).collect(),
            protocol: self.protocol,
            script: self.script,
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
#[path = "emulate_tests.rs"]
mod tests;
