//! The emulated Piper on a bus, in a thread of its own, and as a command.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "not on a real-time path"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::emulate::{EmulatedPiper, EmulatorFaults, FAULT_NAMES, STEP_S, StartState};
use super::model::DhVariant;
use crate::arm::can::local_bus::{self, BusNode};
use crate::arm::can::{CanAddress, FrameFormat, LocalBus, OpenError};
use crate::arm::frame::Frame;
use crate::arm::registry::RunningEmulator;

/// After a pause of the whole process the arm does not rush through what it missed.
const CATCH_UP_MAX_STEPS: u32 = 50;

#[derive(Debug, Default)]
struct Shared {
    faults: EmulatorFaults,
    q: [f64; 6],
    powered: bool,
}

/// An emulated arm running in a thread. Dropping it ends it.
#[derive(Debug)]
pub struct PiperEmulator {
    shared: Arc<Mutex<Shared>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PiperEmulator {
    /// Joins the bus and starts.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn start(
        bus: &CanAddress,
        start: StartState,
        faults: EmulatorFaults,
    ) -> Result<Self, OpenError> {
        let node = BusNode::join(bus, FrameFormat::Classic)?;
        let shared = Arc::new(Mutex::new(Shared {
            faults,
            q: start.q,
            powered: start.enabled,
        }));
        let ended = Arc::new(AtomicBool::new(false));
        let (for_thread, end, address) = (Arc::clone(&shared), Arc::clone(&ended), bus.clone());
        let thread = thread::Builder::new()
            .name("piper-emulator".into())
            .spawn(move || {
                local_bus::urgent();
                run(node, &address, EmulatedPiper::new(start), &for_thread, &end);
            })
            .map_err(|source| OpenError::Io {
                address: bus.clone(),
                source,
            })?;
        Ok(Self {
            shared,
            ended,
            thread: Some(thread),
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what goes wrong.
    pub fn change_faults(&self, change: impl FnOnce(&mut EmulatorFaults)) {
        change(&mut self.shared().faults);
    }

    /// Joint angles, rad.
    #[must_use]
    pub fn q(&self) -> [f64; 6] {
        self.shared().q
    }

    /// Whether all six motors have power.
    #[must_use]
    pub fn powered(&self) -> bool {
        self.shared().powered
    }
}

impl RunningEmulator for PiperEmulator {
    fn set_fault(&self, name: &str, on: bool) -> Result<(), String> {
        self.shared()
            .faults
            .set(name, on)
            .ok_or_else(|| unknown_fault(name))
    }

    fn joints(&self) -> Vec<f64> {
        self.q().to_vec()
    }
}

fn unknown_fault(name: &str) -> String {
    format!(
        "no fault {name:?}; there are {} (those of a joint as joint_fault=3)",
        FAULT_NAMES.join(", ")
    )
}

impl Drop for PiperEmulator {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there was printed by the default hook.
            let _ = thread.join();
        }
    }
}

fn run(
    mut node: BusNode,
    address: &CanAddress,
    mut arm: EmulatedPiper,
    shared: &Mutex<Shared>,
    ended: &AtomicBool,
) {
    let step = Duration::from_secs_f64(STEP_S);
    let mut next = Instant::now() + step;
    let (mut heard, mut out): (Vec<Frame>, Vec<Frame>) = (Vec::new(), Vec::new());
    let mut bus_off = false;
    while !ended.load(Ordering::Acquire) {
        node.wait(1);
        if !node.drain(|frame| heard.push(frame)) {
            // The bus is gone; the arm is still there when it comes back.
            thread::sleep(Duration::from_millis(100));
            if let Ok(fresh) = BusNode::join(address, FrameFormat::Classic) {
                node = fresh;
            }
        }
        let late = Instant::now().saturating_duration_since(next);
        let due = if next > Instant::now() {
            0
        } else {
            1 + u32::try_from(late.as_nanos() / step.as_nanos()).unwrap_or(u32::MAX)
        };
        if due > CATCH_UP_MAX_STEPS {
            next = Instant::now();
        }
        for _ in 0..due.min(CATCH_UP_MAX_STEPS) {
            next += step;
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            arm.faults = shared.faults;
            arm.step(&heard, &mut out);
            // A reset clears some of them.
            shared.faults = arm.faults;
            (shared.q, shared.powered) = (arm.q(), arm.powered());
            heard.clear();
        }
        if arm.faults.bus_off != bus_off {
            bus_off = arm.faults.bus_off;
            node.send_error(if bus_off {
                libc::CAN_ERR_BUSOFF
            } else {
                libc::CAN_ERR_RESTARTED
            });
        }
        node.send(&out);
        out.clear();
    }
}

/// `telearm emulate piper`.
#[derive(Debug, Clone, clap::Args)]
pub struct EmulatePiperArgs {
    /// Bus: `vcan0`, or `local:/path.sock` (served by this command if nobody does).
    #[arg(long, value_name = "BUS")]
    pub can: CanAddress,
    /// Something goes wrong: NAME, NAME=JOINT, with times in seconds NAME@FROM or NAME@FROM-TO. May be repeated.
    #[arg(long = "fault", value_name = "FAULT")]
    pub faults: Vec<TimedFault>,
    /// Motors already have power.
    #[arg(long)]
    pub enabled: bool,
    /// The arm is in its own stop.
    #[arg(long)]
    pub stopped: bool,
    /// Geometry of firmware before S-V1.6-3.
    #[arg(long)]
    pub old_geometry: bool,
    /// End after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub for_s: Option<f64>,
}

/// A fault with its times.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedFault {
    name: String,
    from_s: f64,
    to_s: f64,
}

impl std::str::FromStr for TimedFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, times) = text.split_once('@').unwrap_or((text, "0"));
        EmulatorFaults::default()
            .set(name, true)
            .ok_or_else(|| unknown_fault(name))?;
        let (from, to) = times.split_once('-').unwrap_or((times, "inf"));
        let seconds = |t: &str| {
            t.parse::<f64>()
                .map_err(|_| format!("{t:?} is not a time in seconds"))
        };
        Ok(Self {
            name: name.to_owned(),
            from_s: seconds(from)?,
            to_s: seconds(to)?,
        })
    }
}

/// Runs until `ended` or until the time is over. Serves the local bus if nobody does.
///
/// # Errors
/// One sentence for the user.
pub fn run_command(args: &EmulatePiperArgs, ended: &AtomicBool) -> Result<(), String> {
    let start = StartState {
        enabled: args.enabled,
        stopped: args.stopped,
        variant: if args.old_geometry {
            DhVariant::Old
        } else {
            DhVariant::Offset
        },
        ..StartState::default()
    };
    let (_bus, emulator) = match PiperEmulator::start(&args.can, start, EmulatorFaults::default()) {
        Ok(emulator) => (None, emulator),
        Err(OpenError::NoHub(_)) => {
            let bus = LocalBus::start(&args.can)
                .map_err(|e| format!("cannot serve {}: {e}", args.can))?;
            let emulator = PiperEmulator::start(&args.can, start, EmulatorFaults::default())
                .map_err(|e| e.to_string())?;
            (Some(bus), emulator)
        }
        Err(error) => return Err(error.to_string()),
    };
    let began = Instant::now();
    let mut on = vec![false; args.faults.len()];
    while !ended.load(Ordering::Acquire) {
        let t = began.elapsed().as_secs_f64();
        if args.for_s.is_some_and(|end| t >= end) {
            break;
        }
        for (fault, on) in args.faults.iter().zip(&mut on) {
            let now = t >= fault.from_s && t < fault.to_s;
            if now != *on {
                *on = now;
                emulator.set_fault(&fault.name, now)?;
                println!(
                    "{t:.3} s: {} {}",
                    fault.name,
                    if now { "on" } else { "off" }
                );
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
