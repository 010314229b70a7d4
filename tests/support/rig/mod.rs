//! A whole running telearm in a test: the real binary on a plan of its own, emulated Pipers on local buses inside the test (so that every
//! frame is seen, with its stamp, and every fault can be switched), hands made of packets, and the control socket.
//!
//! Each piece is small: [`Rig`] puts them together, [`hand`] sends, [`tap`] reads the bus and holds the checkers, [`process`] is the daemon,
//! [`freeze`] stops single threads of it.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its share of the rig"
)]

pub mod freeze;
pub mod hand;
pub mod process;
pub mod tap;

use std::cell::RefCell;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use telearm::app::socket::{Client, Reply, Request, StatusFormat};
use telearm::arm::can::{CanAddress, LocalBus};
use telearm::arm::piper::emulate::{EmulatorFaults, StartState};
use telearm::arm::piper::emulate_run::PiperEmulator;
use telearm::arm::piper::params::PiperParams;
use telearm::arm::piper::wire::id;
use telearm::rt::clock;
use telearm::rt::sched::{self, Policy, Wanted};
use telearm::time::{Span, Stamp};

use hand::Hand;
use process::Daemon;
use tap::Tap;

/// Nothing that a test waits for takes longer, on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Braking from full speed takes 42 ms; the rest is for a busy machine.
pub const BRAKING: Span = Span::from_ms(150);

/// What the plan of a rig says beyond the usual.
#[derive(Clone)]
pub struct Setup {
    pub lanes: usize,
    pub engage: &'static str,
    pub hold_ms: u32,
    pub disengage_ms: u32,
    pub start: StartState,
    /// Lines for `[stop]` and `[coupling]`.
    pub tables: &'static str,
    /// Lines for each `[[lane]]`.
    pub lane: &'static str,
    /// The hands' axes are verified.
    pub verified: bool,
    /// The arm needs a recovery or other things that a healthy run never sends: 0x150 may be on the bus.
    pub may_stop_arm: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            lanes: 1,
            engage: "command",
            // Wider than the defaults: this machine may be busy with other tests, and a hiccup is not what most rows are about.
            hold_ms: 400,
            disengage_ms: 1_500,
            start: StartState {
                q: PiperParams::default().home_deg.map(f64::to_radians),
                ..StartState::default()
            },
            tables: "",
            lane: "",
            verified: true,
            may_stop_arm: false,
        }
    }
}

/// One lane's outside: bus, arm, hand.
pub struct Side {
    pub name: &'static str,
    pub port: u16,
    pub address: CanAddress,
    pub bus: LocalBus,
    pub arm: PiperEmulator,
    pub hand: Hand,
    tap: RefCell<Tap>,
}

impl Side {
    fn new(name: &'static str, setup: &Setup) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let address: CanAddress = format!("local:@telearm-rig-{}-{number}", std::process::id())
            .parse()
            .unwrap();
        let (start, for_thread) = (setup.start, address.clone());
        // Threads inherit the policy of the one that starts them: where this test may, bus and arm are not held up by a busy machine.
        let (bus, arm) = thread::spawn(move || {
            prefer();
            let bus = LocalBus::start(&for_thread).unwrap();
            let arm = PiperEmulator::start(&for_thread, start, EmulatorFaults::default()).unwrap();
            (bus, arm)
        })
        .join()
        .unwrap();
        let port = free_port();
        Self {
            name,
            port,
            address,
            bus,
            arm,
            hand: Hand::start(port),
            tap: RefCell::default(),
        }
    }

    /// Everything that was on the bus so far.
    pub fn tap(&self) -> std::cell::Ref<'_, Tap> {
        self.tap.borrow_mut().extend(self.bus.recorded());
        self.tap.borrow()
    }

    /// Switches a fault of the arm by name.
    pub fn fault(&self, name: &str, on: bool) {
        use telearm::arm::registry::RunningEmulator;
        self.arm.set_fault(name, on).unwrap();
    }

    /// Targets sent since `since` differ by no more than the wire's rounding.
    pub fn assert_frozen_since(&self, since: Stamp) {
        self.tap().assert_frozen(since, clock::now());
    }
}

/// Prefers the calling thread, where that is allowed.
pub fn prefer() {
    let _ = sched::apply(Wanted {
        name: "rig",
        policy: Policy::Fifo(50),
        cpu: None,
    });
}

/// A UDP port that is free now; nobody else asks for it in the meantime, most likely.
pub fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A telearm under test with everything around it.
pub struct Rig {
    pub sides: Vec<Side>,
    pub setup: Setup,
    pub daemon: Option<Daemon>,
    dir: tempfile::TempDir,
}

impl Rig {
    /// One lane, engaged by `telearm engage`; the daemon runs and the arm is up.
    pub fn new() -> Self {
        Self::with(Setup::default())
    }

    pub fn with(setup: Setup) -> Self {
        let mut rig = Self::idle(setup);
        rig.start();
        rig.wait_up();
        rig
    }

    /// Everything but the daemon.
    pub fn idle(setup: Setup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sides: Vec<Side> = ["right", "left"]
            .into_iter()
            .take(setup.lanes)
            .map(|name| Side::new(name, &setup))
            .collect();
        let rig = Self {
            sides,
            setup,
            daemon: None,
            dir,
        };
        fs::write(rig.plan(), rig.plan_text()).unwrap();
        if rig.setup.verified {
            let entries: String = rig
                .sides
                .iter()
                .map(|s| {
                    format!(
                        "[[verified]]\noperator = \"hand_{}\"\ndevice = \"rctp\"\nframe = \"openxr_rh\"\n",
                        s.name
                    )
                })
                .collect();
            fs::write(rig.dir.path().join("verified_frames.toml"), entries).unwrap();
        }
        rig
    }

    fn plan_text(&self) -> String {
        let setup = &self.setup;
        let mut text = format!("rate_hz = 200\n{}\n", setup.tables);
        for side in &self.sides {
            let name = side.name;
            text += &format!(
                "[[operator]]\nname = \"hand_{name}\"\ndevice = \"rctp\"\nbind = \"127.0.0.1\"\nport = {}\nengage = \"{}\"\n\
                 hold_after_ms = {}\ndisengage_after_ms = {}\n\
                 [[arm]]\nname = \"arm_{name}\"\nkind = \"piper\"\ncan = \"{}\"\nspeed_percent = 100\n",
                side.port, setup.engage, setup.hold_ms, setup.disengage_ms, side.address
            );
        }
        for side in &self.sides {
            let name = side.name;
            text += &format!(
                "[[lane]]\nname = \"{name}\"\noperator = \"hand_{name}\"\narm = \"arm_{name}\"\n{}\n",
                setup.lane
            );
        }
        text
    }

    pub fn plan(&self) -> PathBuf {
        self.dir.path().join("plan.toml")
    }

    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("telearm.sock")
    }

    /// The binary with this rig's state directory.
    pub fn telearm(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_telearm"));
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("STATE_DIRECTORY", self.dir.path())
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env("RUST_LOG", "debug");
        command
    }

    /// `telearm run PLAN`, not started yet.
    pub fn run_command(&self) -> Command {
        let mut command = self.telearm();
        command
            .arg("run")
            .arg(self.plan())
            .arg("--socket")
            .arg(self.socket());
        command
    }

    pub fn start(&mut self) {
        self.daemon = Some(Daemon::start(self.run_command()));
    }

    pub fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("a running daemon")
    }

    pub fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("a running daemon").pid()
    }

    pub fn side(&self) -> &Side {
        &self.sides[0]
    }

    pub fn hand(&self) -> &Hand {
        &self.sides[0].hand
    }

    /// Asks over the control socket; `None` when nobody answers.
    pub fn try_ask(&self, request: &Request) -> Option<Reply> {
        Client::connect(Some(&self.socket()))
            .ok()?
            .ask(request)
            .ok()
    }

    pub fn ask(&self, request: &Request) -> Reply {
        self.try_ask(request).unwrap_or_else(|| {
            panic!("no answer to {request:?}; {}", self.said());
        })
    }

    /// Asks, and it is done.
    pub fn ask_ok(&self, request: &Request) -> String {
        match self.ask(request) {
            Reply::Ok(text) => text,
            Reply::Refused(why) => panic!("{request:?} is refused: {why}"),
        }
    }

    /// Asks, and it is refused.
    pub fn ask_refused(&self, request: &Request) -> String {
        match self.ask(request) {
            Reply::Refused(why) => why,
            Reply::Ok(text) => panic!("{request:?} is done: {text}"),
        }
    }

    pub fn status(&self) -> Option<Status> {
        match self.try_ask(&Request::Status(StatusFormat::Json))? {
            Reply::Ok(text) => serde_json::from_str(&text).ok().map(Status),
            Reply::Refused(_) => None,
        }
    }

    /// The status once it is as wanted; fails with the last one seen.
    pub fn wait(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let since = Instant::now();
        let mut last = None;
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.status() {
                if wanted(&status) {
                    return status;
                }
                last = Some(status);
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "{what}: not within {PATIENCE:?}; the last status was\n{:#}\n{}",
            last.map_or(Value::Null, |s| s.0),
            self.said()
        );
    }

    pub fn wait_mode(&self, mode: &str) -> Status {
        self.wait(mode, |s| s.lanes().all(|lane| s.mode(lane) == mode))
    }

    pub fn wait_up(&self) -> Status {
        self.wait("arms up", |s| s.lanes().all(|lane| s.phase(lane) == "up"))
    }

    /// Watches for `ms` that the status never is so.
    pub fn never(&self, what: &str, ms: u64, unwanted: impl Fn(&Status) -> bool) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(ms) {
            if let Some(status) = self.status() {
                assert!(!unwanted(&status), "{what}:\n{:#}", status.0);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Engages by command until every lane follows. A machine too busy for the limits may need more than one try.
    pub fn engage(&self) {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            self.wait("nothing but the engage act is missing", |s| {
                // A machine that stood still for 100 ms shows as a silent bus, and is a fault as it must be.
                if s.lanes()
                    .any(|lane| s.mode(lane) == "fault" && s.phase(lane) == "up")
                {
                    println!("reset after a hiccup of this machine: {}", s.detail(0));
                    let _ = self.ask(&Request::Reset);
                }
                s.lanes()
                    .all(|lane| s.reasons(lane) == ["awaiting_engage"] || s.mode(lane) == "active")
            });
            let _ = self.ask(&Request::Engage(None));
            for _ in 0..10 {
                thread::sleep(Duration::from_millis(20));
                if self
                    .status()
                    .is_some_and(|s| s.lanes().all(|lane| s.mode(lane) == "active"))
                {
                    return;
                }
            }
        }
        panic!("it does not engage: {}", self.said());
    }

    /// Engages, and waits until the arms are seen to move with their hands.
    pub fn follow(&self) {
        for side in &self.sides {
            side.hand.set(|h| h.sway_m = 0.05);
        }
        self.engage();
        let since = clock::now();
        let began = Instant::now();
        while self
            .sides
            .iter()
            .any(|s| s.tap().travel_m(since, clock::now()) < 0.03)
        {
            assert!(
                began.elapsed() < PATIENCE,
                "the arm does not move: {:#?}\n{}",
                self.status().map(|s| s.0),
                self.said()
            );
            thread::sleep(Duration::from_millis(20));
            let fell_out = self
                .status()
                .is_some_and(|s| s.lanes().any(|lane| s.mode(lane) == "ready"));
            if fell_out {
                self.engage();
            }
        }
    }

    /// A stop is latched: waits until all lanes are stopped, then resets.
    pub fn reset(&self) {
        self.wait("reset is granted", |_| {
            matches!(self.ask(&Request::Reset), Reply::Ok(_))
        });
    }

    /// What the daemon has written so far, for messages.
    pub fn said(&self) -> String {
        self.daemon
            .as_ref()
            .map_or_else(String::new, |d| format!("the daemon said\n{}", d.said()))
    }

    /// Ends the daemon by `quit`; it must end well.
    pub fn quit(&mut self) {
        let _ = self.ask_ok(&Request::Quit);
        let (status, said) = self.daemon.take().expect("a running daemon").end();
        assert_eq!(status.code(), Some(0), "{said}");
    }

    /// What holds for every run, whatever went wrong in it: no jump, nothing torn, no motor power cut, and no stop of the arm's own unless
    /// the row is about it. Ends the daemon first if it still runs.
    pub fn finish(mut self) {
        if self.daemon.is_some() {
            self.quit();
        }
        self.check_bus();
    }

    /// As [`Rig::finish`], without ending anything.
    pub fn check_bus(&self) {
        for side in &self.sides {
            let tap = side.tap();
            tap.assert_continuous();
            tap.assert_whole();
            assert_eq!(tap.power_off_orders(), 0, "motor power was cut");
            if !self.setup.may_stop_arm {
                assert_eq!(tap.count(id::MOTION), 0, "0x150 was sent");
            }
        }
    }
}

/// A status as JSON, with short names for what tests look at.
pub struct Status(pub Value);

impl Status {
    pub fn lanes(&self) -> std::ops::Range<usize> {
        0..self.0["lanes"].as_array().map_or(0, Vec::len)
    }

    pub fn mode(&self, lane: usize) -> &str {
        self.0["lanes"][lane]["mode"].as_str().unwrap_or("")
    }

    pub fn detail(&self, lane: usize) -> &str {
        self.0["lanes"][lane]["mode_detail"].as_str().unwrap_or("")
    }

    pub fn phase(&self, lane: usize) -> &str {
        self.0["arms"][lane]["phase"].as_str().unwrap_or("")
    }

    pub fn reasons(&self, lane: usize) -> Vec<&str> {
        self.0["lanes"][lane]["inhibits"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|why| why["reason"].as_str())
            .collect()
    }

    pub fn has(&self, lane: usize, reason: &str) -> bool {
        self.reasons(lane).contains(&reason)
    }

    pub fn stop_reason(&self) -> Option<&str> {
        self.0["stop"]["reason"].as_str()
    }

    pub fn number(&self, pointer: &str) -> u64 {
        self.0
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("no {pointer} in {:#}", self.0))
    }

    /// How many packets of the source were refused for this reason.
    pub fn drops(&self, source: usize, reason: &str) -> u64 {
        self.0["sources"][source]["drops"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|d| d["name"] == reason)
            .and_then(|d| d["count"].as_u64())
            .unwrap_or(0)
    }
}

/// Sleeps.
pub fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}
