//! Rules that every registered arm keeps, checked against its own emulator in real time.
//!
//! On a machine with SocketCAN the same rules run on an interface (made and brought up before): as root, alone,
//! `TELEARM_VCAN=vcan0 cargo test --test conformance_arm -- --ignored --test-threads=1`.
#![cfg(not(loom))]

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nalgebra::Vector3;

use telearm::arm::can::local_bus::BusNode;
use telearm::arm::can::{
    CanAddress, CanLink, FrameFormat, GroupKind, IdFilter, LinkOptions, LocalBus, Origin,
    StampSource,
};
use telearm::arm::frame::Frame;
use telearm::arm::registry::{ARMS, AnyArm, ArmKind, RunningEmulator};
use telearm::arm::{Arm, RestVerdict, SendOutcome};
use telearm::geometry::Pose;
use telearm::guard::{Baseline, Guard, GuardLimits, Vetted, Workspace};
use telearm::handoff::Revoker;
use telearm::rt::alloc::{CountingAllocator, HeapUse, counted};
use telearm::rt::clock;
use telearm::signal::{ArmCommand, ArmPhase, FaultKind, Target};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const PERIOD: Duration = Duration::from_millis(5);

/// An arm of one kind with its emulator on a bus.
struct Bench<const N: usize> {
    arm: Box<dyn Arm<N>>,
    emulator: Box<dyn RunningEmulator>,
    bus: Bus,
    by_pose: bool,
}

enum Bus {
    Local(LocalBus, CanAddress),
    Can(CanAddress),
}

impl Bus {
    fn local() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "arm-conformance-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let address = CanAddress::LocalAbstract(name.into());
        Self::Local(LocalBus::start(&address).expect("bus"), address)
    }

    /// The interface named by the environment.
    fn can() -> Self {
        let name = std::env::var("TELEARM_VCAN").expect("TELEARM_VCAN names an interface");
        Self::Can(name.parse().expect("an interface"))
    }

    fn address(&self) -> &CanAddress {
        match self {
            Self::Local(_, address) | Self::Can(address) => address,
        }
    }
}

fn table(address: &CanAddress) -> toml::Table {
    toml::Table::from_iter([("can".to_owned(), toml::Value::String(address.to_string()))])
}

fn build(kind: &dyn ArmKind, address: &CanAddress) -> Result<AnyArm, String> {
    let plan = kind
        .parse(table(address))
        .map_err(|wrong| wrong.join("; "))?;
    Ok(plan.build(StampSource::Kernel)?.arm)
}

/// Runs a rule on every arm.
fn on_every_arm(bus: fn() -> Bus, six: fn(Bench<6>), seven: fn(Bench<7>)) {
    for kind in ARMS {
        let bus = bus();
        let arm = build(*kind, bus.address()).expect("arm");
        let emulator = kind.emulate(bus.address()).expect("emulator");
        let by_pose = kind
            .parse(table(bus.address()))
            .expect("plan")
            .driven_by()
            .pose;
        match arm {
            AnyArm::Six(arm) => six(Bench {
                arm,
                emulator,
                bus,
                by_pose,
            }),
            AnyArm::Seven(arm) => seven(Bench {
                arm,
                emulator,
                bus,
                by_pose,
            }),
        }
    }
}

impl<const N: usize> Bench<N> {
    fn cycle(&mut self) {
        self.arm.poll(clock::now(), true);
        sleep(PERIOD);
    }

    /// The machine may be busy, so limits are wide; what is checked is the order of things.
    fn run_until(&mut self, what: &str, done: impl Fn(&dyn Arm<N>) -> bool) {
        let began = Instant::now();
        while !done(&*self.arm) {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{what}: still {:?}",
                self.arm.state()
            );
            self.cycle();
        }
    }

    fn start(&mut self) {
        self.run_until("start", |arm| arm.state().phase == ArmPhase::Up);
    }

    /// Where the arm is.
    fn here(&self) -> Target<N> {
        let state = self.arm.state();
        if self.by_pose {
            Target::Tcp(state.tcp.value().expect("pose"))
        } else {
            Target::Joint(state.q.value().expect("joints"))
        }
    }

    fn vetted(&self, target: Target<N>, motion: bool) -> Vetted<ArmCommand<N>> {
        let state = self.arm.state();
        let q = state.q.value().expect("joints");
        let (tcp, q) = match target {
            Target::Tcp(tcp) => (tcp, q),
            Target::Joint(q) => (self.arm.model().forward(&q), q),
        };
        let limits = GuardLimits {
            lin_vel_max: 10.0,
            ang_vel_max: 10.0,
            lead_max_m: 1.0,
            lead_max_rad: 3.0,
            period_s: 0.005,
            joint_speed_share: 1.0,
        };
        let workspace = Workspace {
            min_m: Vector3::repeat(-5.0),
            max_m: Vector3::repeat(5.0),
            reach_margin_m: 0.0,
            wrist_axis_min_m: 0.0,
        };
        let baseline = Baseline {
            tcp,
            q,
            sent: motion,
        };
        let command = ArmCommand {
            target,
            q_velocity: [0.0; N],
            opening: None,
            stiffness: 1.0,
            motion,
        };
        let measured = state.tcp.value();
        Guard { workspace, limits }
            .vet(command, &baseline, measured.as_ref(), self.arm.model())
            .expect("vetted")
            .command
    }

    /// One cycle that sends.
    fn send(&mut self, command: &Vetted<ArmCommand<N>>) -> SendOutcome {
        let now = clock::now();
        self.arm.poll(now, true);
        if self.arm.has_room(now, command.get().motion) {
            self.arm.send(command, now)
        } else {
            SendOutcome::Busy
        }
    }

    fn joints(&self) -> Vec<f64> {
        self.emulator.joints()
    }
}

fn farthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Guards: nothing is known before it was heard; the start moves nothing; the end of the program moves nothing and powers nothing off.
fn starts_and_ends_without_motion<const N: usize>(mut bench: Bench<N>) {
    let state = *bench.arm.state();
    assert_eq!(
        (state.tcp.value(), state.q.value(), state.dq.value()),
        (None, None, None)
    );
    assert!(matches!(state.phase, ArmPhase::Starting(_)));
    assert_eq!(
        bench.arm.counters().frames_out,
        0,
        "opening alone sends nothing"
    );
    let before = bench.joints();
    bench.start();
    for _ in 0..50 {
        bench.cycle();
    }
    assert!(farthest(&before, &bench.joints()) < 1e-3);
    let out = bench.arm.counters().frames_out;
    let Bench {
        arm, emulator, bus, ..
    } = bench;
    if let Bus::Local(bus, _) = &bus {
        bus.recorded();
    }
    drop(arm);
    sleep(Duration::from_millis(300));
    if let Bus::Local(bus, _) = &bus {
        // Member 1 is the driver: it joined first.
        assert!(
            bus.recorded().iter().all(|r| r.from != 1),
            "dropping the driver sends nothing"
        );
    }
    assert!(out > 0);
    assert!(farthest(&before, &emulator.joints()) < 1e-3);
}

/// Guards: a command goes out whole or not at all, what the counters say is what was on the bus, and a frozen target keeps the arm.
fn commands_are_whole<const N: usize>(mut bench: Bench<N>) {
    bench.start();
    let mut tap = BusNode::join(bench.bus.address(), FrameFormat::Classic).expect("tap");
    sleep(Duration::from_millis(50));
    for _ in 0..10 {
        bench.cycle();
    }
    let before = bench.arm.counters().frames_out;
    tap.drain(|_| {});
    if let Bus::Local(bus, _) = &bench.bus {
        bus.recorded();
    }
    let target = bench.here();
    let joints = bench.joints();
    let hold = bench.vetted(target, false);
    let (mut sent, mut refused) = (0, 0);
    for _ in 0..200 {
        match bench.send(&hold) {
            SendOutcome::Sent => sent += 1,
            SendOutcome::Busy | SendOutcome::NotReady => refused += 1,
        }
        sleep(PERIOD);
    }
    for _ in 0..20 {
        bench.cycle();
    }
    let counters = bench.arm.counters();
    assert!(sent >= 50, "{sent} sent, {refused} refused");
    if let Bus::Local(bus, _) = &bench.bus {
        let on_bus = bus.recorded().iter().filter(|r| r.from == 1).count() as u64;
        assert_eq!(counters.frames_out - before, on_bus);
    }
    assert_eq!(
        (counters.in_flight, counters.confirmed),
        (0, counters.frames_out)
    );
    // The encoded hold is a part of what one command is.
    assert!(bench.arm.hold_frames(&hold).len > 0);
    assert!(farthest(&joints, &bench.joints()) < 2e-3);
}

/// Guards: silence of the arm has its name, and nothing is sent because of it; it comes back by itself when the arm talks again.
fn lost_feedback_is_named<const N: usize>(mut bench: Bench<N>) {
    bench.start();
    bench.emulator.set_fault("silent", true).expect("fault");
    bench.run_until("silence", |arm| {
        matches!(arm.state().phase, ArmPhase::Faulted(f) if f.kind == FaultKind::FeedbackLost)
    });
    let out = bench.arm.counters().frames_out;
    for _ in 0..100 {
        bench.cycle();
    }
    assert_eq!(bench.arm.counters().frames_out, out);
    bench.emulator.set_fault("silent", false).expect("fault");
    bench.start();
}

/// Guards: the stop port does its work with control's descriptor taken away; the driver knows that it is out and sends nothing more.
fn stop_port_is_independent<const N: usize>(mut bench: Bench<N>) {
    bench.start();
    let mut port = bench.arm.stop_port().expect("port");
    let hold = bench.vetted(bench.here(), false);
    let frames = bench.arm.hold_frames(&hold);
    let Some(fd) = bench.arm.motion_fd() else {
        return;
    };
    Revoker::new()
        .expect("null")
        .revoke(fd)
        .expect("takes the descriptor");
    let out = bench.arm.counters().frames_out;
    let joints = bench.joints();
    let mut rest = RestVerdict::Unknown;
    let began = Instant::now();
    while rest != RestVerdict::AtRest && began.elapsed() < Duration::from_secs(20) {
        assert_ne!(bench.send(&hold), SendOutcome::Sent);
        assert_eq!(port.send_hold(&frames), SendOutcome::Sent);
        sleep(Duration::from_millis(2));
        rest = port.poll_rest(clock::now());
    }
    assert_eq!(rest, RestVerdict::AtRest);
    assert_eq!(bench.arm.counters().frames_out, out);
    assert!(farthest(&joints, &bench.joints()) < 2e-3, "held");
    assert_eq!(port.arm_stop(), SendOutcome::Sent);
    assert!(matches!(bench.arm.state().phase, ArmPhase::Faulted(_)));
}

/// Guards: the arm's own stop is taken, named, and nothing else is sent after it until somebody recovers the arm.
fn arm_stop_is_final<const N: usize>(mut bench: Bench<N>) {
    bench.start();
    assert_eq!(bench.arm.arm_stop(clock::now()), SendOutcome::Sent);
    bench.run_until(
        "stop",
        |arm| matches!(arm.state().phase, ArmPhase::Faulted(f) if f.kind == FaultKind::ArmStopped),
    );
    let out = bench.arm.counters().frames_out;
    for _ in 0..200 {
        bench.cycle();
    }
    assert_eq!(bench.arm.counters().frames_out, out);
    bench.arm.recover(clock::now());
    bench.start();
}

/// Guards: no heap operation in poll, has_room, send, hold_frames, arm_stop: in steady state, and while everything goes wrong.
fn no_heap<const N: usize>(mut bench: Bench<N>) {
    bench.start();
    let hold = bench.vetted(bench.here(), false);
    let turns = |bench: &mut Bench<N>, n: usize, what: &str| {
        for _ in 0..n {
            let (_, used) = counted(|| {
                let outcome = bench.send(&hold);
                std::hint::black_box((outcome, bench.arm.hold_frames(&hold), bench.arm.counters()))
            });
            assert_eq!(used, HeapUse::NONE, "{what}");
            sleep(Duration::from_millis(2));
        }
    };
    turns(&mut bench, 500, "steady");
    for fault in ["silent", "joint_silent", "collision", "foreign"] {
        // Not every arm plays every fault.
        if bench.emulator.set_fault(fault, true).is_ok() {
            turns(&mut bench, 200, fault);
            bench.emulator.set_fault(fault, false).expect("known");
            turns(&mut bench, 50, fault);
        }
    }
    for step in 0..7 {
        if let Bus::Local(bus, _) = &bench.bus {
            match step {
                0 => bus.set_down(true),
                1 => bus.set_down(false),
                2 => bus.bus_off(),
                3 => bus.restart(),
                4 => bus.set_full(true),
                5 => {
                    bus.set_full(false);
                    bus.set_gone(true).expect("gone");
                }
                _ => bus.set_gone(false).expect("back"),
            }
        }
        turns(&mut bench, 150, "bus failure");
    }
    let (_, used) = counted(|| bench.arm.arm_stop(clock::now()));
    assert_eq!(used, HeapUse::NONE, "arm_stop");
}

macro_rules! rules {
    ($($local:ident $can:ident $rule:ident;)+) => {
        $(
            #[test]
            fn $local() {
                on_every_arm(Bus::local, $rule::<6>, $rule::<7>);
            }

            #[test]
            #[ignore = "needs a CAN interface: TELEARM_VCAN=vcan0"]
            fn $can() {
                on_every_arm(Bus::can, $rule::<6>, $rule::<7>);
            }
        )+
    };
}

rules! {
    start_and_end can_start_and_end starts_and_ends_without_motion;
    whole_commands can_whole_commands commands_are_whole;
    lost_feedback can_lost_feedback lost_feedback_is_named;
    stop_port can_stop_port stop_port_is_independent;
    arm_stop can_arm_stop arm_stop_is_final;
    heap can_heap no_heap;
}

/// The second process of the test below: tries to open the bus named by the environment and prints why it could not.
#[test]
fn second_process_helper() {
    let Ok(address) = std::env::var("TELEARM_TEST_SECOND") else {
        return;
    };
    for kind in ARMS {
        match build(*kind, &address.parse().expect("address")) {
            Ok(_) => println!("opened"),
            Err(refusal) => println!("{refusal}"),
        }
    }
}

/// Guards: a second process on a bus is refused with the first one's process id; when the first is gone the bus is free.
#[test]
fn second_process_is_refused() {
    for kind in ARMS {
        let bus = Bus::local();
        let arm = build(*kind, bus.address()).expect("arm");
        let ask = || {
            let output = Command::new(std::env::current_exe().expect("this test"))
                .args(["second_process_helper", "--exact", "--nocapture"])
                .env("TELEARM_TEST_SECOND", bus.address().to_string())
                .output()
                .expect("second process");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let refusal = ask();
        let pid = std::process::id().to_string();
        assert!(
            refusal.contains(&format!("in use by process {pid}")),
            "{refusal}"
        );
        drop(arm);
        assert!(ask().contains("opened"));
    }
}

/// Guards: defaults of every arm are valid, and an unknown key is an error.
#[test]
fn parameters_of_every_arm() {
    for kind in ARMS {
        assert!(
            kind.parse(toml::Table::new()).is_ok(),
            "{}: the defaults are valid",
            kind.id()
        );
        let unknown =
            toml::Table::from_iter([("no_such_key".to_owned(), toml::Value::Boolean(true))]);
        assert!(kind.parse(unknown).is_err(), "{}", kind.id());
        assert!(kind.command_hz_default() > 0 && kind.joints() > 0);
        assert!(!kind.emulator_faults().is_empty());
    }
}

// The link on a real CAN interface.

fn can_link(address: &CanAddress) -> CanLink {
    CanLink::open(LinkOptions {
        address: address.clone(),
        filters: Box::new([IdFilter::sixteen(0x150), IdFilter::sixteen(0x2A0)]),
        format: FrameFormat::Classic,
        cycle_frames: 5,
        stamps: StampSource::Kernel,
    })
    .expect("link")
}

fn link_until(link: &mut CanLink, what: &str, mut done: impl FnMut(&CanLink) -> bool) {
    let began = Instant::now();
    while !done(link) {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{what}: still {link:?}"
        );
        link.poll(clock::now(), |_| {});
        sleep(Duration::from_millis(5));
    }
}

fn ip(args: &[&str]) {
    let status = Command::new("ip").args(args).status().expect("ip");
    assert!(status.success(), "ip {args:?}");
}

/// Guards, on SocketCAN: own frames come back confirmed and are told from foreign ones with the same content; kernel filters hold.
#[test]
#[ignore = "needs a CAN interface: TELEARM_VCAN=vcan0"]
fn can_echoes_and_filters() {
    let bus = Bus::can();
    let mut link = can_link(bus.address());
    let mut other = BusNode::join(bus.address(), FrameFormat::Classic).expect("node");
    let frame = Frame::new(0x151, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        link.send_group(&[frame; 3], GroupKind::Motion, clock::now()),
        SendOutcome::Sent
    );
    assert!(!link.has_room(3, GroupKind::Motion));
    other.send(&[frame, Frame::new(0x300, [0; 8])]);
    let (mut own, mut foreign) = (0, 0);
    let began = Instant::now();
    while (own, foreign) != (3, 1) && began.elapsed() < Duration::from_secs(10) {
        let now = clock::now();
        link.poll(now, |r| {
            assert_eq!(r.frame, frame);
            assert!(r.at <= now && now.age_of(r.at).as_s() < 10.0);
            match r.origin {
                Origin::Own => own += 1,
                Origin::Bus => foreign += 1,
            }
        });
        sleep(Duration::from_millis(1));
    }
    assert_eq!((own, foreign), (3, 1));
    assert!(link.has_room(5, GroupKind::Motion) && link.counters().in_flight == 0);
}

/// Guards, on SocketCAN: an error frame of the controller is read as what it says.
#[test]
#[ignore = "needs a CAN interface: TELEARM_VCAN=vcan0"]
fn can_bus_off() {
    let bus = Bus::can();
    let mut link = can_link(bus.address());
    let mut other = BusNode::join(bus.address(), FrameFormat::Classic).expect("node");
    other.send_error(0x40);
    link_until(&mut link, "bus-off", |l| {
        l.fault() == Some(FaultKind::BusOff)
    });
    other.send_error(0x100);
    link_until(&mut link, "restart", |l| l.fault().is_none());
    assert!(link.take_restarted());
}

/// Guards, on SocketCAN: interface down keeps the socket; up again and traffic make it usable. Needs root.
#[test]
#[ignore = "needs a CAN interface: TELEARM_VCAN=vcan0"]
fn can_down_and_up() {
    let bus = Bus::can();
    let name = bus.address().to_string();
    let mut link = can_link(bus.address());
    ip(&["link", "set", &name, "down"]);
    link_until(&mut link, "down", |l| l.fault() == Some(FaultKind::BusDown));
    assert_eq!(
        link.send_group(&[Frame::new(0x151, [0; 8])], GroupKind::Stop, clock::now()),
        SendOutcome::NotReady
    );
    ip(&["link", "set", &name, "up"]);
    let mut other = BusNode::join(bus.address(), FrameFormat::Classic).expect("node");
    link_until(&mut link, "up", |l| {
        other.send(&[Frame::new(0x2A1, [0; 8])]);
        l.fault().is_none()
    });
    assert!(link.take_restarted() && link.counters().reopened == 0);
    assert_eq!(
        link.send_group(
            &[Frame::new(0x151, [0; 8])],
            GroupKind::Motion,
            clock::now()
        ),
        SendOutcome::Sent
    );
    link_until(&mut link, "echo", |l| l.counters().confirmed == 1);
}

/// Guards, on SocketCAN: a deleted interface is re-opened by name under the same descriptor number. Needs root; makes its own vcan.
#[test]
#[ignore = "needs a CAN interface: TELEARM_VCAN=vcan0"]
fn can_gone_and_back() {
    let name = "vcantel9";
    ip(&["link", "add", name, "type", "vcan"]);
    ip(&["link", "set", name, "up"]);
    let mut link = can_link(&name.parse().expect("name"));
    let mut port = link.open_port(&[IdFilter::one(0x2A1)]).expect("port");
    let number = link.motion_fd();
    ip(&["link", "del", name]);
    link_until(&mut link, "gone", |l| l.fault() == Some(FaultKind::BusGone));
    ip(&["link", "add", name, "type", "vcan"]);
    ip(&["link", "set", name, "up"]);
    // Re-opened while the new interface was still down, the link says so until it hears something.
    let mut other =
        BusNode::join(&name.parse().expect("name"), FrameFormat::Classic).expect("node");
    link_until(&mut link, "back", |l| {
        other.send(&[Frame::new(0x2A1, [0; 8])]);
        l.fault().is_none()
    });
    assert_eq!((link.motion_fd(), link.counters().reopened), (number, 1));
    assert_eq!(
        link.send_group(
            &[Frame::new(0x151, [0; 8])],
            GroupKind::Motion,
            clock::now()
        ),
        SendOutcome::Sent
    );
    link_until(&mut link, "echo", |l| l.counters().confirmed == 1);
    let stop = telearm::arm::can::KernelFrame::encode(
        &Frame::new(0x150, [1, 0, 0, 0, 0, 0, 0, 0]),
        FrameFormat::Classic,
    );
    assert_eq!(
        port.send(&[stop]),
        SendOutcome::Sent,
        "the port was renewed too"
    );
    ip(&["link", "del", name]);
}

/// Guards, on SocketCAN: a pose is what the kernel's own tools would see, in order and never torn.
#[test]
#[ignore = "needs a CAN interface: TELEARM_VCAN=vcan0"]
fn can_triples_in_order() {
    fn rule<const N: usize>(mut bench: Bench<N>) {
        bench.start();
        let mut tap = BusNode::join(bench.bus.address(), FrameFormat::Classic).expect("tap");
        let Target::Tcp(tcp) = bench.here() else {
            return;
        };
        let mut seen = Vec::new();
        for i in 0..400 {
            let turn = f64::from(i) * 0.005;
            let target = Pose::from_parts(
                tcp.position() + Vector3::new(0.0, 0.005 * turn.sin(), 0.0),
                tcp.rotation(),
            );
            let command = bench.vetted(Target::Tcp(target), false);
            bench.send(&command);
            sleep(PERIOD);
            tap.drain(|f| {
                if (0x152..=0x154).contains(&f.id) {
                    seen.push(f.id);
                }
            });
        }
        assert!(seen.len() > 300 && seen.len() % 3 == 0, "{}", seen.len());
        assert!(seen.chunks(3).all(|triple| triple == [0x152, 0x153, 0x154]));
    }
    on_every_arm(Bus::can, rule::<6>, rule::<7>);
}
