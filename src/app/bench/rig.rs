//! The program assembled around emulated arms and hands, its threads left to the measurement.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::app::build::{self, Opened};
use crate::app::threads::{INPUT_PRIORITY, control_core, other_core};
use crate::arm::can::{CanAddress, LocalBus};
use crate::arm::piper::emulate::{EmulatorFaults, StartState};
use crate::arm::piper::emulate_run::PiperEmulator;
use crate::config::{self, ArmKindPlan, Plan, Strictness};
use crate::control::{Engine, EngineParts, RunLane};
use crate::handoff::{LaneBoard, Publisher, StopLine, WatchdogGate, mailbox, tx_gate};
use crate::operator::emulate::Running;
use crate::operator::io::{InputOptions, InputThread, Source};
use crate::operator::rctp::emulate::{Config, Emulator, Leg, Script};
use crate::rt::sched::{self, Policy, SchedReport, Wanted};
use crate::signal::OperatorSample;
use crate::time::Span;

/// Fastest command rate of the arm.
const COMMAND_HZ_MAX: u32 = 200;

const fn leg(length_s: f64, to_m: [f64; 3], to_rpy_deg: [f64; 3], opening: f64) -> Leg {
    Leg {
        length_s,
        to_m,
        to_rpy_deg,
        opening,
    }
}

/// Reaches without rests, the gripper opening and closing: a cycle always has something to shape.
const BUSY: &[Leg] = &[
    leg(1.2, [0.10, 0.0, 0.05], [0.0, 10.0, 0.0], 1.0),
    leg(1.1, [0.06, 0.12, 0.02], [0.0, 10.0, 20.0], 0.3),
    leg(1.3, [0.06, -0.02, 0.06], [5.0, 0.0, -10.0], 1.0),
    leg(1.0, [0.0, -0.08, -0.04], [-5.0, 0.0, -20.0], 0.3),
    leg(1.1, [0.0; 3], [0.0; 3], 1.0),
];

/// The script of a hand that never rests.
pub(super) fn busy_hand(seed: u64) -> Config {
    Config {
        script: Script::new(BUSY, 0).unwrap_or(Script::named(
            crate::operator::rctp::emulate::ScriptName::Reach,
        )),
        seed,
        ..Config::default()
    }
}

/// Where threads run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cores {
    /// Control, input and the baselines.
    pub(super) control: Option<usize>,
    /// Everything that stands for hardware.
    pub(super) other: Option<usize>,
}

/// An emulated arm on a bus of its own.
pub(super) struct Hardware {
    _arm: PiperEmulator,
    _bus: LocalBus,
    pub(super) address: CanAddress,
}

impl Hardware {
    /// Starts both. Each call has another address.
    ///
    /// # Errors
    /// The bus cannot be served.
    pub(super) fn start(start: StartState) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let address: CanAddress =
            format!("local:@telearm-bench-{}-{number}", std::process::id()).parse()?;
        let bus = LocalBus::start(&address).context("cannot start a local bus")?;
        let arm = PiperEmulator::start(&address, start, EmulatorFaults::default())?;
        Ok(Self {
            _arm: arm,
            _bus: bus,
            address,
        })
    }
}

/// The program without its threads.
pub(super) struct Rig {
    pub(super) plan: Plan,
    pub(super) opened: Opened,
    pub(super) line: Arc<StopLine>,
    pub(super) cores: Cores,
    pub(super) board: Arc<LaneBoard>,
    /// The watchdog's side of the gate: dropping it would change nothing, but the gate has two ends.
    _watchdog_gate: Option<WatchdogGate>,
    hands: Vec<Running>,
    hardware: Vec<Hardware>,
}

impl Rig {
    /// `lanes` hands on `lanes` Pipers at `rate_hz`, everything opened, nothing running but the emulated arms.
    ///
    /// # Errors
    /// One sentence.
    pub(super) fn new(rate_hz: u32, lanes: usize) -> Result<Self> {
        let mut plan = plan(rate_hz, lanes)?;
        let cores = {
            let control = control_core(&plan);
            Cores {
                control,
                other: other_core(control),
            }
        };
        let line = Arc::new(StopLine::new());
        let (hardware, opened, plan) = off_core(cores.other, || {
            let mut hardware = Vec::new();
            for arm in &mut plan.arms {
                let ArmKindPlan::Piper(piper) = &mut arm.kind;
                let made = Hardware::start(StartState {
                    q: piper.home_deg.map(f64::to_radians),
                    ..StartState::default()
                })?;
                piper.can = made.address.clone();
                hardware.push(made);
            }
            for operator in &mut plan.operators {
                operator.device.settings_mut().door_mut().listen.set_port(0);
            }
            let mut opened = build::open(&plan, &line, true, false)?;
            // The watchdog's sockets: nobody reads them here, and a bus member that does not read only makes the hub work.
            opened.wards.clear();
            Ok((hardware, opened, plan))
        })?;
        Ok(Self {
            plan,
            opened,
            line,
            cores,
            board: Arc::new(LaneBoard::default()),
            _watchdog_gate: None,
            hands: Vec::new(),
            hardware,
        })
    }

    /// Starts a hand for each operator.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start_hands(&mut self) -> Result<()> {
        let addresses: Vec<_> = self.opened.operators.iter().map(|o| o.listen).collect();
        self.hands = off_core(self.cores.other, || {
            addresses
                .into_iter()
                .zip(1..)
                .map(|(to, seed)| Ok(Running::start(to, Emulator::new(busy_hand(seed)))?))
                .collect()
        })?;
        Ok(())
    }

    /// The engine; `wrap` may put something around each lane.
    pub(super) fn engine(
        &mut self,
        wrap: impl Fn(usize, Box<dyn RunLane>) -> Box<dyn RunLane>,
    ) -> Engine {
        let (gate, watchdog_gate) = tx_gate();
        self._watchdog_gate = Some(watchdog_gate);
        let lanes = std::mem::take(&mut self.opened.lanes);
        Engine::new(EngineParts {
            lanes: lanes
                .into_iter()
                .enumerate()
                .map(|(i, (lane, divisor))| (wrap(i, lane), divisor))
                .collect(),
            readers: std::mem::take(&mut self.opened.readers),
            gate,
            line: Arc::clone(&self.line),
            board: Arc::clone(&self.board),
            coupling: self.plan.coupling.hold,
            stop_asserted: Box::new(|_| None),
        })
    }

    /// Starts the input thread with the rig's sources, where and how the program runs it.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start_input(&mut self) -> Result<InputThread> {
        let sources = std::mem::take(&mut self.opened.sources);
        self.spawn_input(sources)
    }

    /// Replaces the source of the first operator: `make` gets the outlet that the engine's first reader reads.
    pub(super) fn replace_source(
        &mut self,
        make: impl FnOnce(Publisher<OperatorSample>) -> Result<Box<dyn Source>>,
    ) -> Result<()> {
        let (publisher, reader) = mailbox(OperatorSample::default());
        let source = make(publisher)?;
        let (Some(first), Some(slot)) = (
            self.opened.readers.first_mut(),
            self.opened.sources.first_mut(),
        ) else {
            return Err(anyhow!("the plan has no operator"));
        };
        *first = reader;
        *slot = source;
        Ok(())
    }

    fn spawn_input(&self, sources: Vec<Box<dyn Source>>) -> Result<InputThread> {
        let core = self.cores.control;
        InputThread::spawn(
            sources,
            InputOptions {
                name: "input",
                away_after: Span::from_ms(100),
                set_up: Box::new(move || {
                    // Refusals are reported by the control thread, which asks for the same rights.
                    let _ = sched::apply(Wanted {
                        name: "input",
                        policy: Policy::Fifo(INPUT_PRIORITY),
                        cpu: core,
                    });
                }),
                stop_line: Arc::clone(&self.line),
            },
        )
        .context("cannot start the input thread")
    }

    /// Control's divisor: a command every so many cycles.
    pub(super) fn divisor(&self) -> u64 {
        self.plan
            .arms
            .first()
            .map_or(1, |arm| u64::from(self.plan.rate_hz / arm.command_hz))
    }

    /// How many arms.
    pub(super) fn lanes(&self) -> usize {
        self.hardware.len()
    }
}

/// The largest divisor of the rate that the arm can be commanded with.
fn command_hz(rate_hz: u32) -> u32 {
    (1..=rate_hz)
        .filter(|divisor| rate_hz.is_multiple_of(*divisor))
        .map(|divisor| rate_hz / divisor)
        .find(|hz| *hz <= COMMAND_HZ_MAX)
        .unwrap_or(1)
}

fn plan(rate_hz: u32, lanes: usize) -> Result<Plan> {
    let mut text = format!("rate_hz = {rate_hz}\n");
    let command_hz = command_hz(rate_hz);
    for i in 0..lanes {
        // Writing to a String cannot fail. The addresses are replaced once they are known.
        let _ = write!(
            text,
            "[[operator]]\nname = \"hand{i}\"\ndevice = \"rctp\"\nbind = \"127.0.0.1\"\nport = {}\nengage = \"command\"\n\
             [[arm]]\nname = \"arm{i}\"\nkind = \"piper\"\ncan = \"local:@arm{i}\"\nspeed_percent = 100\ncommand_hz = {command_hz}\n\
             [[lane]]\nname = \"lane{i}\"\noperator = \"hand{i}\"\narm = \"arm{i}\"\n",
            18_000 + i
        );
    }
    match config::parse("bench", &text, Strictness::Strict) {
        Ok(loaded) => Ok(loaded.plan),
        Err(error) => Err(anyhow!("the bench's plan: {error}")),
    }
}

/// Runs `make` in an ordinary thread on `core`; threads that it starts stay there.
///
/// # Errors
/// Those of `make`.
pub(super) fn off_core<T: Send>(
    core: Option<usize>,
    make: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    thread::scope(|scope| {
        scope
            .spawn(move || {
                let _ = sched::apply(Wanted {
                    name: "bench-rig",
                    policy: Policy::Other,
                    cpu: core,
                });
                make()
            })
            .join()
            .unwrap_or_else(|_| Err(anyhow!("setting up panicked")))
    })
}

/// Starts a measuring thread; gives how it was scheduled beside its result.
///
/// # Errors
/// No thread can be started.
pub(super) fn spawn<R: Send + 'static>(
    name: &'static str,
    policy: Policy,
    cpu: Option<usize>,
    body: impl FnOnce() -> R + Send + 'static,
) -> Result<thread::JoinHandle<(R, SchedReport)>> {
    Ok(thread::Builder::new().name(name.into()).spawn(move || {
        let report = sched::apply(Wanted { name, policy, cpu });
        crate::rt::memory::prefault_stack();
        (body(), report)
    })?)
}
