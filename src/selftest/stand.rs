//! `Stand`: the program on a plan of its own, with an emulated arm on a local bus that every frame is read from, and a hand made of
//! packets. The pipeline in between is the real one, in a process of its own; sockets, bus and control socket are real too.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::daemon::{Daemon, program};
use super::hand::Hand;
use super::scratch::Scratch;
use super::status::Status;
use super::tap::{Allowed, Bounds, Tap};
use crate::app::socket::{Client, Reply, Request, StatusFormat};
use crate::arm::can::{CanAddress, LocalBus};
use crate::arm::piper::emulate::{EmulatorFaults, StartState};
use crate::arm::piper::emulate_run::PiperEmulator;
use crate::arm::piper::params::PiperParams;
use crate::arm::registry::RunningEmulator;
use crate::config::{self, Strictness};
use crate::rt::clock;
use crate::rt::sched::{self, Policy, Wanted};
use crate::time::{Span, Stamp};

/// Nothing that is waited for takes longer, on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Braking from full speed takes 42 ms, and the frame before is one period old; the rest is for a busy machine.
pub const BRAKING: Span = Span::from_ms(150);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// The arm's member number: it joins first.
pub(super) const ARM_MEMBER: u32 = 1;

/// What a stand is to be like.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// No usable pose for so long: hold. Wider than the default: a hiccup of a busy machine is not what most faults are about.
    pub hold_ms: u32,
    /// No usable pose for so long: disengage.
    pub disengage_ms: u32,
    /// How the arm starts; joints `None`: those of the plan's home.
    pub start: StartState,
    /// What is wrong with it from the start.
    pub arm_faults: EmulatorFaults,
    /// The axes of the hand are verified.
    pub verified: bool,
    /// The program is started, and the arm taken up.
    pub running: bool,
    /// Lines for the lane's table.
    pub lane: &'static str,
    /// What the fault is allowed to cause.
    pub allowed: Allowed,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            hold_ms: 400,
            disengage_ms: 1_500,
            start: StartState {
                q: PiperParams::default().home_deg.map(f64::to_radians),
                ..StartState::default()
            },
            arm_faults: EmulatorFaults::default(),
            verified: true,
            running: true,
            lane: "",
            allowed: Allowed::default(),
        }
    }
}

/// Prefers the calling thread where that is allowed, so that emulated hardware is not held up by a busy machine.
pub fn prefer() {
    let _ = sched::apply(Wanted {
        name: "emulated",
        policy: Policy::Fifo(50),
        cpu: None,
    });
}

/// Waits.
pub fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

/// A UDP port that is free now; nobody else asks for it in the meantime, most likely.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16, String> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    Ok(socket.local_addr().map_err(text)?.port())
}

/// An error as a sentence.
pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A program under test with everything around it.
pub struct Stand {
    /// The bus.
    pub bus: LocalBus,
    /// The arm.
    pub arm: PiperEmulator,
    /// The hand.
    pub hand: Hand,
    /// Its port.
    pub port: u16,
    tap: Tap,
    daemon: Option<Daemon>,
    exe: PathBuf,
    scratch: Scratch,
}

impl Stand {
    /// Sets everything up; with `setup.running` the program runs and the arm is up.
    ///
    /// # Errors
    /// One sentence.
    pub fn new(exe: &Path, setup: &Setup) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let address: CanAddress =
            format!("local:@telearm-selftest-{}-{number}", std::process::id())
                .parse()
                .map_err(text)?;
        let scratch = Scratch::new().map_err(text)?;
        let port = free_port()?;
        let plan_text = plan_text(setup, port, &address);
        let file = scratch.path().join("plan.toml");
        fs::write(&file, &plan_text).map_err(text)?;
        if setup.verified {
            let entry =
                "[[verified]]\noperator = \"hand\"\ndevice = \"rctp\"\nframe = \"openxr_rh\"\n";
            fs::write(scratch.path().join("verified_frames.toml"), entry).map_err(text)?;
        }
        let plan = config::parse("plan.toml", &plan_text, Strictness::Strict)
            .map_err(|e| format!("the stand's own plan is refused: {e}"))?
            .plan;
        let lane = plan.lanes.first().ok_or("the plan has no lane")?;
        let bounds = Bounds::new(&lane.limits, 1.0 / f64::from(plan.rate_hz));
        let (bus, arm) = hardware(&address, setup)?;
        let mut stand = Self {
            bus,
            arm,
            hand: Hand::start(port).map_err(text)?,
            port,
            tap: Tap::new(bounds, setup.allowed, ARM_MEMBER),
            daemon: None,
            exe: exe.to_owned(),
            scratch,
        };
        if setup.running {
            stand.start()?;
            stand.wait_up()?;
        }
        Ok(stand)
    }

    /// The folder of this stand.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }

    fn socket(&self) -> PathBuf {
        self.dir().join("telearm.sock")
    }

    /// `telearm run` on this stand's plan, with a control socket of that name.
    #[must_use]
    pub fn run_command(&self, socket: &str) -> std::process::Command {
        let mut command = program(&self.exe, self.dir());
        command
            .arg("run")
            .arg(self.dir().join("plan.toml"))
            .arg("--socket")
            .arg(self.dir().join(socket));
        command
    }

    /// Starts the program.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self) -> Result<(), String> {
        let command = self.run_command("telearm.sock");
        self.daemon = Some(Daemon::start(command, self.dir()).map_err(text)?);
        Ok(())
    }

    /// The program.
    ///
    /// # Errors
    /// When none was started.
    pub fn daemon(&mut self) -> Result<&mut Daemon, String> {
        self.daemon.as_mut().ok_or_else(|| "no program runs".into())
    }

    /// The program, to be ended by other means than `Stand::finish`.
    ///
    /// # Errors
    /// When none was started.
    pub fn take_daemon(&mut self) -> Result<Daemon, String> {
        self.daemon.take().ok_or_else(|| "no program runs".into())
    }

    /// The program's file.
    #[must_use]
    pub fn exe(&self) -> &Path {
        &self.exe
    }

    /// Everything that was on the bus so far.
    pub fn tap(&mut self) -> &mut Tap {
        for frame in self.bus.recorded() {
            self.tap.take(&frame);
        }
        &mut self.tap
    }

    /// Switches a fault of the arm by name.
    ///
    /// # Errors
    /// No such fault.
    pub fn arm_fault(&self, name: &str, on: bool) -> Result<(), String> {
        self.arm.set_fault(name, on)
    }

    /// Asks over the control socket.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn ask(&self, request: &Request) -> Result<Reply, String> {
        Client::connect(Some(&self.socket()))
            .and_then(|mut client| client.ask(request))
            .map_err(text)
    }

    /// Asks, and it is done.
    ///
    /// # Errors
    /// When it is refused.
    pub fn order(&self, request: &Request) -> Result<String, String> {
        match self.ask(request)? {
            Reply::Ok(text) => Ok(text),
            Reply::Refused(why) => Err(format!("`{request}` was refused: {why}")),
        }
    }

    /// Asks, and it is refused: gives the reason.
    ///
    /// # Errors
    /// When it is done.
    pub fn refused(&self, request: &Request) -> Result<String, String> {
        match self.ask(request)? {
            Reply::Refused(why) => Ok(why),
            Reply::Ok(text) => Err(format!("`{request}` was not refused: {text}")),
        }
    }

    /// The status.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn status(&self) -> Result<Status, String> {
        let json = self.order(&Request::Status(StatusFormat::Json))?;
        serde_json::from_str(&json).map(Status).map_err(text)
    }

    /// The status once it is as wanted.
    ///
    /// # Errors
    /// It does not get so; with the last status and the program's last lines.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&Status) -> bool) -> Result<Status, String> {
        let since = Instant::now();
        let mut last = String::from("no answer");
        while since.elapsed() < PATIENCE {
            match self.status() {
                Ok(status) if wanted(&status) => return Ok(status),
                Ok(status) => last = status.short(),
                Err(error) => last = error,
            }
            if let Some(daemon) = &mut self.daemon
                && !daemon.is_running()
            {
                break;
            }
            thread::sleep(LOOK);
        }
        Err(format!("waited for {what}; it is {last}{}", self.said()))
    }

    /// Waits for a mode.
    ///
    /// # Errors
    /// As `Stand::wait`.
    pub fn wait_mode(&mut self, mode: &str) -> Result<Status, String> {
        self.wait(mode, |s| s.mode() == mode)
    }

    /// Waits until the arm is up.
    ///
    /// # Errors
    /// As `Stand::wait`.
    pub fn wait_up(&mut self) -> Result<Status, String> {
        self.wait("the arm to be up", |s| s.phase() == "up")
    }

    /// Waits for an arm fault whose name begins so.
    ///
    /// # Errors
    /// As `Stand::wait`.
    pub fn wait_fault(&mut self, name: &str) -> Result<Status, String> {
        self.wait(&format!("the fault {name}"), |s| {
            s.mode() == "fault" && s.detail().starts_with(name)
        })
    }

    /// Watches for a while that something never is.
    ///
    /// # Errors
    /// It is.
    pub fn never(
        &mut self,
        what: &str,
        ms: u64,
        unwanted: impl Fn(&Status) -> bool,
    ) -> Result<(), String> {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(ms) {
            let status = self.status()?;
            if unwanted(&status) {
                return Err(format!("{what}: {}{}", status.short(), self.said()));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Engages by command. A machine too busy for the limits may need more than one try.
    ///
    /// # Errors
    /// It does not engage.
    pub fn engage(&mut self) -> Result<(), String> {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            self.wait("nothing but the engage act to be missing", |s| {
                s.reasons() == ["awaiting_engage"] || s.mode() == "active"
            })?;
            // A refusal shows in the mode.
            let _ = self.ask(&Request::Engage(None))?;
            for _ in 0..10 {
                thread::sleep(LOOK);
                if self.status()?.mode() == "active" {
                    return Ok(());
                }
            }
        }
        Err(format!("it does not engage{}", self.said()))
    }

    /// Engages, lets the hand sway, and waits until the arm is commanded along.
    ///
    /// # Errors
    /// It does not move.
    pub fn follow(&mut self) -> Result<(), String> {
        self.hand.set(|h| h.sway_m = 0.05);
        self.engage()?;
        let (since, began) = (clock::now(), Instant::now());
        while self.tap().travel_m(since) < 0.02 {
            if began.elapsed() > PATIENCE {
                let now = self.status()?.short();
                return Err(format!(
                    "the arm does not follow; it is {now}{}",
                    self.said()
                ));
            }
            thread::sleep(LOOK);
            if self.status()?.mode() == "ready" {
                self.engage()?;
            }
        }
        Ok(())
    }

    /// How far the commanded pose moves within a while, metres.
    pub fn travel_within(&mut self, ms: u64) -> f64 {
        let since = clock::now();
        pause(ms);
        self.tap().travel_m(since)
    }

    /// The target was still from `from` on until now.
    ///
    /// # Errors
    /// It was not.
    pub fn still_since(&mut self, from: Stamp) -> Result<(), String> {
        let now = clock::now();
        self.tap().still(from, now)
    }

    /// Resets once that is granted; then nothing moves until the next act, and it follows again.
    ///
    /// # Errors
    /// One of these does not hold.
    pub fn reset_and_follow(&mut self) -> Result<(), String> {
        self.reset()?;
        self.inert_then_follow()
    }

    /// Resets once that is granted.
    ///
    /// # Errors
    /// It is never granted.
    pub fn reset(&mut self) -> Result<(), String> {
        let since = Instant::now();
        loop {
            match self.ask(&Request::Reset)? {
                Reply::Ok(_) => return Ok(()),
                Reply::Refused(why) if since.elapsed() > PATIENCE => {
                    return Err(format!("reset is refused: {why}"));
                }
                Reply::Refused(_) => thread::sleep(LOOK),
            }
        }
    }

    /// Nothing moves and nothing engages by itself; a new act makes it follow.
    ///
    /// # Errors
    /// One of these does not hold.
    pub fn inert_then_follow(&mut self) -> Result<(), String> {
        let from = clock::now();
        self.never("it engaged by itself", 400, |s| s.mode() == "active")?;
        self.still_since(from)?;
        self.follow()
    }

    /// Ends the program as `telearm quit` does.
    ///
    /// # Errors
    /// It does not end well.
    pub fn quit(&mut self) -> Result<(), String> {
        self.order(&Request::Quit)?;
        self.ended_well()
    }

    /// The program has been told to end, and does with status 0.
    ///
    /// # Errors
    /// It does not.
    pub fn ended_well(&mut self) -> Result<(), String> {
        let mut daemon = self.daemon.take().ok_or("no program runs")?;
        let status = daemon
            .wait_end()
            .map_err(|e| format!("{e}\n{}", daemon.said()))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("it ended with {status}\n{}", daemon.said()))
        }
    }

    /// Ends what still runs, and gives what the bus saw that no fault may cause.
    ///
    /// # Errors
    /// The complaints.
    pub fn finish(mut self) -> Result<(), String> {
        if self.daemon.is_some() {
            self.quit()?;
        }
        let tap = self.tap();
        if tap.complained() == 0 {
            return Ok(());
        }
        Err(format!(
            "{} on the bus: {}",
            tap.complained(),
            tap.complaints().join("; ")
        ))
    }

    fn said(&self) -> String {
        self.daemon
            .as_ref()
            .map_or_else(String::new, |d| format!("\n{}", d.said()))
    }
}

fn hardware(address: &CanAddress, setup: &Setup) -> Result<(LocalBus, PiperEmulator), String> {
    let (start, faults, for_thread) = (setup.start, setup.arm_faults, address.clone());
    // Threads inherit the policy of the one that starts them; this one goes back to what it was by ending.
    thread::spawn(move || {
        prefer();
        let bus = LocalBus::start(&for_thread).map_err(text)?;
        let arm = PiperEmulator::start(&for_thread, start, faults).map_err(text)?;
        Ok((bus, arm))
    })
    .join()
    .unwrap_or_else(|_| Err("the emulated hardware did not start".into()))
}

fn plan_text(setup: &Setup, port: u16, bus: &CanAddress) -> String {
    format!(
        "rate_hz = 200\n\
         [[operator]]\nname = \"hand\"\ndevice = \"rctp\"\nbind = \"127.0.0.1\"\nport = {port}\nengage = \"command\"\n\
         hold_after_ms = {}\ndisengage_after_ms = {}\n\
         [[arm]]\nname = \"arm\"\nkind = \"piper\"\ncan = \"{bus}\"\nspeed_percent = 100\n\
         [[lane]]\nname = \"lane\"\noperator = \"hand\"\narm = \"arm\"\n{}\n",
        setup.hold_ms, setup.disengage_ms, setup.lane
    )
}
