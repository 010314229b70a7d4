//! A hand made of packets that misbehaves on demand: RCTP, 50 a second, in our axes. The scripted headset of `telearm emulate` has its
//! faults from the start; this one is told between two packets.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nalgebra::{UnitQuaternion, Vector3};

use crate::operator::rctp::emulate::RATE_HZ;
use crate::operator::rctp::wire::{Flags, Packet, emit};

/// Turns a packet on its way out into nothing, itself, something else, or several.
pub type Edit = Box<dyn FnMut(&Packet) -> Vec<Vec<u8>> + Send>;

/// Sway of the hand: 0.4 Hz, so that 5 cm need 0.13 m/s, which every shipped plan allows.
const SWAY_RAD_S: f64 = std::f64::consts::TAU * 0.4;

/// What the hand does.
pub struct State {
    /// Metres: X forward, Y left, Z up.
    pub position: Vector3<f64>,
    /// Rotation.
    pub rotation: UnitQuaternion<f64>,
    /// Pinch, 1 = open.
    pub opening: f64,
    /// The headset sees it.
    pub tracked: bool,
    /// The stop bit.
    pub stop: bool,
    /// Amplitude of a slow sway to the left and right, metres; it turns by 1 rad per metre with it.
    pub sway_m: f64,
    /// Nothing is sent.
    pub silent: bool,
    /// Added to the sender's clock, seconds.
    pub clock_s: f64,
    /// Applied to each packet.
    pub edit: Option<Edit>,
    phase: f64,
}

impl State {
    fn next(&mut self, t: f64) -> Packet {
        self.phase = if self.sway_m > 0.0 {
            self.phase + SWAY_RAD_S / RATE_HZ
        } else {
            0.0
        };
        let sway = self.sway_m * self.phase.sin();
        // A breath of motion, so that the stream is not taken for a frozen one.
        let breath = 0.0003 * (7.0 * t).sin();
        let position = self.position + Vector3::new(breath, sway, 0.0);
        let rotation = UnitQuaternion::from_euler_angles(0.0, 0.0, sway) * self.rotation;
        Packet {
            sender_time_s: self.clock_s + t,
            ..packet(position, rotation, self.opening, self.tracked, self.stop)
        }
    }
}

/// A packet in OpenXR axes from a hand in ours. Its sender time is 0.
#[must_use]
pub fn packet(
    position: Vector3<f64>,
    rotation: UnitQuaternion<f64>,
    opening: f64,
    tracked: bool,
    stop: bool,
) -> Packet {
    // OpenXR: X right, Y up, Z back.
    let turned = |v: Vector3<f64>| [-v.y as f32, v.z as f32, -v.x as f32];
    let [i, j, k] = turned(rotation.imag());
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    Packet {
        sender_time_s: 0.0,
        position_m: turned(position),
        orientation_xyzw: [i, j, k, rotation.w as f32],
        gripper: opening as f32,
        flags: Flags(bit(tracked, Flags::TRACKED) | bit(stop, Flags::STOP)),
    }
}

/// A running hand; ends when dropped.
pub struct Hand {
    state: Arc<Mutex<State>>,
    socket: Arc<UdpSocket>,
    /// Datagrams that went out.
    sent: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hand {
    /// Sends to a port of this machine.
    ///
    /// # Errors
    /// When no socket can be opened.
    pub fn start(port: u16) -> std::io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0")?);
        socket.connect(("127.0.0.1", port))?;
        let state = Arc::new(Mutex::new(State {
            position: Vector3::new(0.3, 0.0, 1.2),
            rotation: UnitQuaternion::identity(),
            opening: 1.0,
            tracked: true,
            stop: false,
            sway_m: 0.0,
            silent: false,
            clock_s: 20.0,
            edit: None,
            phase: 0.0,
        }));
        let (sent, ended) = (Arc::default(), Arc::default());
        let thread = thread::Builder::new().name("selftest-hand".into()).spawn({
            let (state, socket) = (Arc::clone(&state), Arc::clone(&socket));
            let (sent, ended) = (Arc::clone(&sent), Arc::clone(&ended));
            move || run(&state, &socket, &sent, &ended)
        })?;
        Ok(Self {
            state,
            socket,
            sent,
            ended,
            thread: Some(thread),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what the hand does, between two packets.
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
    }

    /// Changes each packet from now on.
    pub fn edit(&self, edit: impl FnMut(&Packet) -> Vec<Vec<u8>> + Send + 'static) {
        self.state().edit = Some(Box::new(edit));
    }

    /// Packets go out as they are again.
    pub fn honest(&self) {
        self.state().edit = None;
    }

    /// Datagrams that went out.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until so many more datagrams are out, or ten seconds.
    pub fn wait_sent(&self, more: u64) {
        let (target, since) = (self.sent() + more, Instant::now());
        while self.sent() < target && since.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends bytes from the hand's own socket, at once.
    pub fn send(&self, bytes: &[u8]) {
        if self.socket.send(bytes).is_ok() {
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn run(state: &Mutex<State>, socket: &UdpSocket, sent: &AtomicU64, ended: &AtomicBool) {
    super::stand::prefer();
    let period = Duration::from_secs_f64(1.0 / RATE_HZ);
    let began = Instant::now();
    let mut next = began;
    while !ended.load(Ordering::Relaxed) {
        next += period;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let packet = state.next(began.elapsed().as_secs_f64());
        if state.silent {
            continue;
        }
        let out = match &mut state.edit {
            Some(edit) => edit(&packet),
            None => vec![emit(&packet).to_vec()],
        };
        drop(state);
        for bytes in out {
            // Nobody listens before the program runs.
            if socket.send(&bytes).is_ok() {
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there was printed by the default hook.
            let _ = thread.join();
        }
    }
}
