//! A hand made of RCTP packets, 50 a second, in our axes; and single packets for whoever wants to send nonsense.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nalgebra::{UnitQuaternion, Vector3};
use telearm::operator::rctp::wire::{Flags, Packet, emit};

/// Between two packets.
pub const PERIOD: Duration = Duration::from_millis(20);

/// What a packet turns into on its way out: nothing, itself, something else, several.
pub type Edit = Box<dyn FnMut(&Packet) -> Vec<Vec<u8>> + Send>;

/// What the hand does.
pub struct State {
    /// Metres, our axes (x forward, y left, z up).
    pub position: Vector3<f64>,
    pub rotation: UnitQuaternion<f64>,
    pub opening: f64,
    pub tracked: bool,
    pub stop: bool,
    /// Amplitude of a slow sway to the left and right, metres, with as much turn as fits (1 rad per metre).
    pub sway_m: f64,
    /// Nothing is sent.
    pub silent: bool,
    /// Added to the sender's clock, seconds.
    pub clock_s: f64,
    /// Applied to each packet.
    pub edit: Option<Edit>,
    phase: f64,
    sent: u64,
}

impl State {
    fn new() -> Self {
        Self {
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
            sent: 0,
        }
    }

    fn next(&mut self, t: f64) -> Packet {
        // 0.5 Hz: 0.16 m/s with 5 cm, below the speed limit, so that the arm keeps up.
        self.phase = if self.sway_m > 0.0 {
            self.phase + std::f64::consts::PI * PERIOD.as_secs_f64()
        } else {
            0.0
        };
        let sway = self.sway_m * self.phase.sin();
        // A breath of motion, so that the stream is not taken for a frozen one.
        let breath = 0.0005 * (7.0 * t).sin();
        let position = self.position + Vector3::new(breath, sway, 0.0);
        let rotation = UnitQuaternion::from_euler_angles(0.0, 0.0, sway) * self.rotation;
        Packet {
            sender_time_s: self.clock_s + t,
            ..packet(position, rotation, self.opening, self.tracked, self.stop)
        }
    }
}

/// A packet in the OpenXR axes from a pose in ours.
pub fn packet(
    position: Vector3<f64>,
    rotation: UnitQuaternion<f64>,
    opening: f64,
    tracked: bool,
    stop: bool,
) -> Packet {
    // OpenXR: x right, y up, z back.
    let turn = |v: Vector3<f64>| [(-v.y) as f32, v.z as f32, (-v.x) as f32];
    let [x, y, z] = turn(rotation.imag());
    let flags = if tracked { Flags::TRACKED } else { 0 } | if stop { Flags::STOP } else { 0 };
    Packet {
        sender_time_s: 0.0,
        position_m: turn(position),
        orientation_xyzw: [x, y, z, rotation.w as f32],
        gripper: opening as f32,
        flags: Flags(flags),
    }
}

/// A running hand; ends when dropped.
pub struct Hand {
    state: Arc<Mutex<State>>,
    socket: Arc<UdpSocket>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hand {
    pub fn start(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        let (state, socket) = (Arc::new(Mutex::new(State::new())), Arc::new(socket));
        let ended = Arc::new(AtomicBool::new(false));
        let run = {
            let (state, socket, ended) =
                (Arc::clone(&state), Arc::clone(&socket), Arc::clone(&ended));
            move || {
                super::prefer();
                let began = Instant::now();
                let mut next = began;
                while !ended.load(Ordering::Relaxed) {
                    next += PERIOD;
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                    let mut state = state.lock().unwrap();
                    let packet = state.next(began.elapsed().as_secs_f64());
                    if state.silent {
                        continue;
                    }
                    let out = match &mut state.edit {
                        Some(edit) => edit(&packet),
                        None => vec![emit(&packet).to_vec()],
                    };
                    state.sent += out.len() as u64;
                    for bytes in out {
                        // Nobody listens before the daemon runs.
                        let _ = socket.send(&bytes);
                    }
                }
            }
        };
        Self {
            thread: Some(thread::spawn(run)),
            state,
            socket,
            ended,
        }
    }

    /// Changes what the hand does, between two packets.
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// Changes each packet from now on.
    pub fn edit(&self, edit: impl FnMut(&Packet) -> Vec<Vec<u8>> + Send + 'static) {
        self.set(|s| s.edit = Some(Box::new(edit)));
    }

    /// No changes any more.
    pub fn honest(&self) {
        self.set(|s| s.edit = None);
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.state.lock().unwrap().sent
    }

    /// Waits until so many more packets are out.
    pub fn wait_sent(&self, more: u64) {
        let target = self.sent() + more;
        while self.sent() < target {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends bytes from the hand's own socket, now.
    pub fn send(&self, bytes: &[u8]) {
        let _ = self.socket.send(bytes);
    }

    /// The engage gesture: the hand at rest, open, closed for 0.9 s, open.
    pub fn pinch_and_open(&self) {
        self.set(|h| {
            h.sway_m = 0.0;
            h.opening = 1.0;
        });
        self.wait_sent(20);
        self.set(|h| h.opening = 0.0);
        self.wait_sent(45);
        self.set(|h| h.opening = 1.0);
        self.wait_sent(10);
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
