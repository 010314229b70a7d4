//! Control and watchdog as threads of the test, put together as the program does, around an arm that can be told to panic or to hang. For what
//! the real binary cannot be made to do from outside.

#![allow(unreachable_pub, reason = "used by one test file")]

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nalgebra::{UnitQuaternion, Vector3};
use telearm::arm::can::{CanAddress, StampSource};
use telearm::arm::piper::driver::PiperDriver;
use telearm::arm::piper::params::PiperParams;
use telearm::arm::{Arm, ArmCounters, HoldFrames, SendOutcome, StopPort};
use telearm::control::thread::{ControlLoop, ControlView, Numbered, REQUEST_QUEUE};
use telearm::control::{
    Coupling, Engine, EngineParts, Lane, LaneSet, Listens, Request, RunLane, Runner,
};
use telearm::geometry::Pose;
use telearm::guard::Vetted;
use telearm::handoff::{
    Heartbeat, LaneBoard, LastUsable, Publisher, Revoker, SourceId, StopLine, StopReason,
    event_ring, mailbox, tx_gate,
};
use telearm::kinematics::ArmModel;
use telearm::rt::clock;
use telearm::rt::histogram::latency_exchange;
use telearm::rt::pace::Pacer;
use telearm::rt::panic as rt_panic;
use telearm::signal::{ArmCommand, ArmState, OperatorSample, Quality};
use telearm::time::{Span, Stamp};
use telearm::watchdog::{Judge, Ward, Watchdog, WatchdogEvent};

use crate::support;

/// What the arm does to the thread that polls it.
#[derive(Default)]
pub struct Trouble {
    pub panic: AtomicBool,
    pub hang: AtomicBool,
}

/// A real driver with trouble.
struct Troubled {
    arm: PiperDriver,
    trouble: Arc<Trouble>,
}

impl Arm<6> for Troubled {
    fn poll(&mut self, now: Stamp, may_configure: bool) {
        assert!(
            !self.trouble.panic.load(Ordering::Relaxed),
            "the arm's poll panics (this message is expected)"
        );
        while self.trouble.hang.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        self.arm.poll(now, may_configure);
    }
    fn state(&self) -> &ArmState<6> {
        self.arm.state()
    }
    fn model(&self) -> &dyn ArmModel<6> {
        self.arm.model()
    }
    fn has_room(&mut self, now: Stamp, motion: bool) -> bool {
        self.arm.has_room(now, motion)
    }
    fn send(&mut self, command: &Vetted<ArmCommand<6>>, now: Stamp) -> SendOutcome {
        self.arm.send(command, now)
    }
    fn hold_frames(&self, command: &Vetted<ArmCommand<6>>) -> HoldFrames {
        self.arm.hold_frames(command)
    }
    fn arm_stop(&mut self, now: Stamp) -> SendOutcome {
        self.arm.arm_stop(now)
    }
    fn recover(&mut self, now: Stamp) {
        self.arm.recover(now);
    }
    fn stop_port(&self) -> io::Result<Box<dyn StopPort>> {
        self.arm.stop_port()
    }
    fn motion_fd(&self) -> Option<RawFd> {
        self.arm.motion_fd()
    }
    fn counters(&self) -> ArmCounters {
        self.arm.counters()
    }
}

/// The threads, and the test's ends of everything.
pub struct Pieces {
    pub trouble: Arc<Trouble>,
    pub line: Arc<StopLine>,
    pub board: Arc<LaneBoard>,
    pub took_over: Arc<AtomicBool>,
    pub control: Option<JoinHandle<ControlLoop>>,
    requests: telearm::control::thread::RequestSender,
    sample: Publisher<OperatorSample>,
    last_usable: Arc<LastUsable>,
    watchdog: Option<JoinHandle<()>>,
    quit: Arc<AtomicBool>,
    sway: f64,
    _alone: MutexGuard<'static, ()>,
}

/// The panic hook is one for the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

impl Pieces {
    /// Starts watchdog and control on a Piper at `can`.
    pub fn start(can: &CanAddress) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let line = Arc::new(StopLine::new());
        rt_panic::install(Arc::clone(&line));
        let trouble = Arc::new(Trouble::default());
        let arm = Troubled {
            arm: PiperDriver::open(
                PiperParams {
                    can: can.clone(),
                    speed_percent: 100,
                    ..PiperParams::default()
                },
                StampSource::Kernel,
            )
            .unwrap(),
            trouble: Arc::clone(&trouble),
        };
        let params = support::params();
        let (hold_out, hold) = mailbox(HoldFrames::EMPTY);
        let last_usable = Arc::new(LastUsable::new());
        let ward = Ward {
            last_usable: Arc::clone(&last_usable),
            hold_after: params.operator_stale.hold_after,
            port: arm.stop_port().unwrap(),
            motion_fd: arm.motion_fd(),
            hold,
            hold_period: Span::from_s(params.command_period_s),
            stop_within: params.stop_within,
        };
        let (control_gate, gate) = tx_gate();
        let (heartbeat, board) = (Arc::new(Heartbeat::new()), Arc::new(LaneBoard::default()));
        let (quit, took_over) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (events, _) = event_ring::<WatchdogEvent, 64>();
        let watchdog = Watchdog {
            wards: vec![ward],
            judge: Judge::new(Span::from_ms(5)),
            line: Arc::clone(&line),
            board: Arc::clone(&board),
            heartbeat: Arc::clone(&heartbeat),
            gate,
            revoker: Revoker::new().unwrap(),
            events,
            quit: Arc::clone(&quit),
            took_over: Arc::clone(&took_over),
        };
        let (sample, reader) = mailbox(OperatorSample::default());
        let listens = Listens {
            pose: 0,
            gripper: None,
            clutch: None,
        };
        let lane: Box<dyn RunLane> = Box::new(Runner::new(
            Lane::new(params),
            Box::new(arm) as Box<dyn Arm<6>>,
            listens,
            hold_out,
        ));
        let engine = Engine::new(EngineParts {
            lanes: vec![(lane, 1)],
            readers: vec![reader],
            gate: control_gate,
            line: Arc::clone(&line),
            board: Arc::clone(&board),
            coupling: Coupling::All,
            stop_asserted: Box::new(|_| None),
        });
        let (requests, requests_in) = queue();
        let (answers, _) = queue();
        let (events, _) = event_ring::<_, 64>();
        let (latencies, _) = latency_exchange();
        let (view, _) = mailbox(ControlView::default());
        let control = ControlLoop {
            engine,
            pacer: Pacer::new(clock::now() + Span::from_ms(5), 200),
            rate_hz: 200,
            line: Arc::clone(&line),
            heartbeat,
            requests: requests_in,
            answers,
            events,
            latencies,
            view,
            away_after: Span::from_ms(100),
            quit: Arc::clone(&quit),
        };
        let watchdog = thread::spawn(move || {
            crate::rig::prefer();
            rt_panic::stop_on_panic("watchdog", SourceId::WATCHDOG, StopReason::Panic);
            watchdog.run();
        });
        let control = thread::spawn(move || {
            crate::rig::prefer();
            rt_panic::stop_on_panic("control", SourceId::CONTROL, StopReason::Panic);
            control.run()
        });
        Self {
            trouble,
            line,
            board,
            took_over,
            control: Some(control),
            requests,
            sample,
            last_usable,
            watchdog: Some(watchdog),
            quit,
            sway: 0.0,
            _alone: alone,
        }
    }

    /// The hand moves a little and is seen.
    pub fn hand(&mut self) {
        self.sway += 0.03;
        let at = clock::now();
        self.sample.publish(OperatorSample {
            received_at: at,
            pose: Some(Pose::from_parts(
                Vector3::new(0.0, 0.05 * self.sway.sin(), 0.0),
                UnitQuaternion::identity(),
            )),
            quality: Quality::Good,
            ..OperatorSample::default()
        });
        self.last_usable.store(at);
    }

    pub fn ask(&mut self, body: Request) {
        let _ = self.requests.enqueue(Numbered { id: 0, body });
    }

    /// Feeds the hand and asks to engage until the lane follows, then for another second.
    pub fn follow(&mut self) {
        let mut following = 0;
        for n in 0..3000 {
            self.hand();
            let follows = self.board.lane(0).is_some_and(|l| l.follows());
            if n % 20 == 0 && !follows {
                self.ask(Request::Engage(LaneSet::ALL));
            }
            following += i32::from(follows);
            if following > 100 {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not engage");
    }

    pub fn feed_for(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.hand();
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends both threads; how control ended.
    pub fn end(mut self) -> thread::Result<()> {
        self.quit.store(true, Ordering::Relaxed);
        let control = self.control.take().unwrap().join().map(|_| ());
        self.watchdog.take().unwrap().join().unwrap();
        control
    }
}

fn queue<T: 'static>() -> (
    heapless::spsc::Producer<'static, Numbered<T>>,
    heapless::spsc::Consumer<'static, Numbered<T>>,
) {
    let queue: &'static mut heapless::spsc::Queue<Numbered<T>, REQUEST_QUEUE> =
        Box::leak(Box::default());
    queue.split()
}
