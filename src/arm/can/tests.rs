//! The link on a local bus. The hub is pumped by hand and the clock is a number, so nothing here waits, except where a thread is the point.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::local_bus::{BusNode, MEMBERS_MAX};
use super::*;
use crate::arm::SendOutcome;
use crate::arm::frame::Frame;
use crate::signal::FaultKind;
use crate::time::{Span, Stamp};

fn fresh_address() -> CanAddress {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    CanAddress::LocalAbstract(
        format!(
            "telearm-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        )
        .into(),
    )
}

fn options(address: &CanAddress, cycle_frames: u16) -> LinkOptions {
    LinkOptions {
        address: address.clone(),
        filters: Box::new([IdFilter::sixteen(0x150)]),
        format: FrameFormat::Classic,
        cycle_frames,
        stamps: StampSource::Poll,
    }
}

struct Bench {
    bus: LocalBus,
    link: CanLink,
    node: BusNode,
    now: Stamp,
}

impl Bench {
    fn new(cycle_frames: u16) -> Self {
        let address = fresh_address();
        let bus = LocalBus::manual(&address).unwrap();
        let link = CanLink::open(options(&address, cycle_frames)).unwrap();
        let node = BusNode::join(&address, FrameFormat::Classic).unwrap();
        bus.pump();
        Self {
            bus,
            link,
            node,
            now: Stamp::from_ms(1000),
        }
    }

    /// One millisecond: the bus moves, the link looks.
    fn tick(&mut self) -> Vec<Received> {
        self.now = self.now + Span::from_ms(1);
        self.bus.pump();
        let mut got = Vec::new();
        self.link.poll(self.now, |r| got.push(r));
        got
    }

    fn ticks(&mut self, n: usize) {
        for _ in 0..n {
            self.tick();
        }
    }

    fn send(&mut self, ids: &[u32], kind: GroupKind) -> SendOutcome {
        let frames: Vec<Frame> = ids.iter().map(|&id| Frame::new(id, [0; 8])).collect();
        self.link.send_group(&frames, kind, self.now)
    }

    fn ids_on_bus(&self) -> Vec<u32> {
        self.bus.recorded().iter().map(|r| r.frame.id).collect()
    }
}

/// Guards: frames in flight are counted by their echoes and a group starts only with room for all of it.
#[test]
fn room_is_counted_by_echoes() {
    let mut b = Bench::new(5);
    assert_eq!(b.send(&[1, 2, 3], GroupKind::Motion), SendOutcome::Sent);
    assert!(b.link.has_room(2, GroupKind::Motion) && !b.link.has_room(3, GroupKind::Motion));
    assert_eq!(b.send(&[4, 5, 6], GroupKind::Motion), SendOutcome::Busy);
    assert_eq!(b.link.counters().in_flight, 3);
    let got = b.tick();
    assert_eq!(
        got.iter()
            .map(|r| (r.frame.id, r.origin))
            .collect::<Vec<_>>(),
        [(1, Origin::Own), (2, Origin::Own), (3, Origin::Own)]
    );
    let c = b.link.counters();
    assert_eq!(
        (c.frames_out, c.confirmed, c.in_flight, c.busy, c.frames_in),
        (3, 3, 0, 1, 0)
    );
    assert!(b.link.has_room(5, GroupKind::Motion) && !b.link.has_room(6, GroupKind::Motion));
}

/// Guards: a group that brakes goes out right behind a whole motion group that nobody has confirmed yet, once; more than two cycles are never in
/// flight, and motion waits until they are one.
#[test]
fn braking_has_a_cycle_of_its_own() {
    let mut b = Bench::new(5);
    assert_eq!(
        b.send(&[1, 2, 3, 4, 5], GroupKind::Motion),
        SendOutcome::Sent
    );
    assert!(b.link.has_room(5, GroupKind::Hold) && !b.link.has_room(6, GroupKind::Hold));
    assert_eq!(b.send(&[6, 7, 8], GroupKind::Hold), SendOutcome::Sent);
    assert_eq!(b.send(&[9, 10, 11], GroupKind::Hold), SendOutcome::Busy);
    assert_eq!(b.send(&[9], GroupKind::Motion), SendOutcome::Busy);
    b.tick();
    assert_eq!(b.ids_on_bus(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(b.link.has_room(5, GroupKind::Motion));
}

/// Guards: a frame of another member is not taken for an echo, even with the same identifier and bytes.
#[test]
fn foreign_frames_are_not_echoes() {
    let mut b = Bench::new(5);
    assert_eq!(b.send(&[0x151], GroupKind::Motion), SendOutcome::Sent);
    b.node.send(&[Frame::new(0x151, [0; 8])]);
    let got = b.tick();
    assert_eq!(got.iter().filter(|r| r.origin == Origin::Own).count(), 1);
    assert_eq!(got.iter().filter(|r| r.origin == Origin::Bus).count(), 1);
    let mut seen = Vec::new();
    b.node.drain(|f| seen.push(f.id));
    assert_eq!(seen, [0x151], "the node sees the link's frame, not its own");
}

/// Guards: interface down keeps the socket, says bus_down, refuses motion, and the return of traffic makes a fresh start.
#[test]
fn down_and_up() {
    let mut b = Bench::new(5);
    b.bus.set_down(true);
    b.tick();
    assert_eq!(b.link.fault(), Some(FaultKind::BusDown));
    assert_eq!(b.send(&[1], GroupKind::Motion), SendOutcome::NotReady);
    assert_eq!(b.send(&[0x150], GroupKind::Stop), SendOutcome::NotReady);
    b.bus.set_down(false);
    b.ticks(3);
    assert_eq!(
        b.link.fault(),
        Some(FaultKind::BusDown),
        "nothing heard yet"
    );
    b.node.send(&[Frame::new(0x2A1, [0; 8])]);
    b.tick();
    assert_eq!(b.link.fault(), None);
    assert!(b.link.take_restarted() && !b.link.take_restarted());
    assert_eq!(b.send(&[1], GroupKind::Motion), SendOutcome::Sent);
}

/// Guards: bus-off is named, ended by the controller's word, and queued frames are forgotten.
#[test]
fn bus_off_and_restart() {
    let mut b = Bench::new(5);
    assert_eq!(b.send(&[1, 2], GroupKind::Motion), SendOutcome::Sent);
    b.bus.bus_off();
    b.tick();
    assert_eq!(b.link.fault(), Some(FaultKind::BusOff));
    assert_eq!(
        (b.link.counters().bus_off, b.link.counters().in_flight),
        (1, 0)
    );
    assert_eq!(b.send(&[1], GroupKind::Motion), SendOutcome::NotReady);
    b.ticks(200);
    assert_eq!(
        b.link.fault(),
        Some(FaultKind::BusOff),
        "silence is no cure"
    );
    b.bus.restart();
    b.tick();
    assert_eq!(b.link.fault(), None);
    assert!(b.link.take_restarted());
}

/// Guards: a restart seen in the same drain as the bus-off still makes a fresh start.
#[test]
fn short_bus_off_is_not_missed() {
    let mut b = Bench::new(5);
    b.bus.bus_off();
    b.bus.restart();
    b.tick();
    assert_eq!(b.link.fault(), None);
    assert!(b.link.take_restarted());
    assert_eq!(b.link.counters().bus_errors, 2);
}

/// Guards: without acknowledge nothing piles up in the queue, and after 100 ms the bus is said not to send.
#[test]
fn no_acknowledge() {
    let mut b = Bench::new(5);
    b.bus.set_acknowledged(false);
    let mut sent = 0;
    for _ in 0..90 {
        if b.send(&[1, 2, 3], GroupKind::Motion) == SendOutcome::Sent {
            sent += 1;
        }
        b.tick();
    }
    assert_eq!(sent, 1, "one cycle's frames are in flight, never more");
    assert_eq!(b.link.fault(), None);
    b.ticks(15);
    assert_eq!(b.link.fault(), Some(FaultKind::BusNotSending));
    // The controller gets its acknowledge at last: the frames were lost here, traffic for a second is the cure.
    b.bus.set_acknowledged(true);
    for _ in 0..1100 {
        b.node.send(&[Frame::new(0x2A1, [0; 8])]);
        b.tick();
    }
    assert_eq!(b.link.fault(), None);
    assert!(b.link.take_restarted());
    assert_eq!(
        (b.link.counters().echoes_lost, b.link.counters().in_flight),
        (3, 0)
    );
}

/// Guards: a full queue is busy, not a fault, until it lasts; and a stop is refused as busy so that the caller repeats it.
#[test]
fn full_queue() {
    let mut b = Bench::new(5);
    b.bus.set_full(true);
    b.tick();
    assert_eq!(b.send(&[1], GroupKind::Motion), SendOutcome::Busy);
    assert_eq!(b.send(&[0x150], GroupKind::Stop), SendOutcome::Busy);
    assert_eq!(b.link.fault(), None);
    b.ticks(101);
    assert_eq!(b.link.fault(), Some(FaultKind::BusNotSending));
    b.bus.set_full(false);
    b.tick();
    assert_eq!(
        b.send(&[0x150], GroupKind::Stop),
        SendOutcome::Sent,
        "a stop is tried even so"
    );
    b.tick();
    assert_eq!(b.link.fault(), None, "its echo is the cure");
}

/// Fills the kernel's own queue until it takes a group only in part.
fn tear(b: &mut Bench) -> (u32, usize) {
    b.bus.set_stalled(true);
    for base in (0x200..0x700).step_by(5) {
        let torn_before = b.link.counters().torn;
        let out_before = b.link.counters().frames_out;
        let outcome = b.send(
            &[base, base + 1, base + 2, base + 3, base + 4],
            GroupKind::Motion,
        );
        if b.link.counters().torn > torn_before {
            assert_eq!(outcome, SendOutcome::Sent);
            return (
                base,
                usize::try_from(b.link.counters().frames_out - out_before).unwrap(),
            );
        }
        assert_eq!(
            outcome,
            SendOutcome::Sent,
            "the queue filled up exactly between two groups; change the group size"
        );
    }
    panic!("the queue never filled up");
}

/// Guards: the rest of a group that the kernel took in part goes out before the next motion group, complete and in order.
#[test]
fn torn_group_is_finished_first() {
    let mut b = Bench::new(1000);
    let (base, part) = tear(&mut b);
    assert!((1..5).contains(&part));
    assert_eq!(
        b.send(&[0x7F0, 0x7F1], GroupKind::Motion),
        SendOutcome::Busy,
        "still full: nothing new"
    );
    assert_eq!(
        b.send(&[0x7F8], GroupKind::Config),
        SendOutcome::Busy,
        "configuration waits"
    );
    b.bus.set_stalled(false);
    b.tick();
    assert_eq!(
        b.send(&[0x7F0, 0x7F1], GroupKind::Motion),
        SendOutcome::Sent
    );
    b.tick();
    let on_bus = b.ids_on_bus();
    let tail: Vec<u32> = (base..base + 5).chain([0x7F0, 0x7F1]).collect();
    assert!(on_bus.ends_with(&tail), "{on_bus:x?}");
}

/// Guards: a stop and a newer whole target do not drag the rest of an old motion group along.
#[test]
fn stop_and_hold_drop_the_rest() {
    for (kind, id) in [(GroupKind::Stop, 0x150), (GroupKind::Hold, 0x152)] {
        let mut b = Bench::new(1000);
        let (base, part) = tear(&mut b);
        b.bus.set_stalled(false);
        b.tick();
        assert_eq!(b.send(&[id], kind), SendOutcome::Sent);
        b.tick();
        assert_eq!(b.send(&[0x7F0], GroupKind::Motion), SendOutcome::Sent);
        b.tick();
        let on_bus = b.ids_on_bus();
        let tail: Vec<u32> = (base..base + part as u32).chain([id, 0x7F0]).collect();
        assert!(on_bus.ends_with(&tail), "{on_bus:x?}");
    }
}

/// Guards: after the watchdog has put /dev/null in place of the descriptor nothing is sent, nothing re-opened, and the fault stays.
#[test]
fn taken_over_for_good() {
    let mut b = Bench::new(5);
    let null = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    sys::replace(std::os::fd::AsRawFd::as_raw_fd(&null), b.link.motion_fd()).unwrap();
    assert_eq!(b.send(&[1, 2], GroupKind::Motion), SendOutcome::NotReady);
    assert_eq!(b.send(&[0x150], GroupKind::Stop), SendOutcome::NotReady);
    b.bus.set_gone(true).unwrap();
    b.ticks(5);
    assert_eq!(b.link.fault(), Some(FaultKind::LinkBroken));
    assert!(b.ids_on_bus().is_empty());
}

/// Guards: a takeover while the interface is gone is not undone by the re-opened socket.
#[test]
fn takeover_beats_reopen() {
    let address = fresh_address();
    let bus = LocalBus::start(&address).unwrap();
    let mut link = CanLink::open(options(&address, 5)).unwrap();
    bus.set_gone(true).unwrap();
    poll_until(&mut link, |l| l.fault() == Some(FaultKind::BusGone));
    let null = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    sys::replace(std::os::fd::AsRawFd::as_raw_fd(&null), link.motion_fd()).unwrap();
    bus.set_gone(false).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    poll_until(&mut link, |l| l.fault() == Some(FaultKind::LinkBroken));
    assert_eq!(
        link.send_group(&[Frame::new(1, [0; 8])], GroupKind::Stop, sys::monotonic()),
        SendOutcome::NotReady
    );
}

fn poll_until(link: &mut CanLink, mut done: impl FnMut(&CanLink) -> bool) {
    let start = Instant::now();
    while !done(link) {
        assert!(start.elapsed() < Duration::from_secs(10), "still {link:?}");
        link.poll(sys::monotonic(), |_| {});
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Guards: a vanished interface is re-opened by name, under the same descriptor number, and the port on it is renewed too.
#[test]
fn gone_is_reopened() {
    let address = fresh_address();
    let bus = LocalBus::start(&address).unwrap();
    let mut link = CanLink::open(options(&address, 5)).unwrap();
    let mut port = link.open_port(&[IdFilter::one(0x2A1)]).unwrap();
    let number = link.motion_fd();
    bus.set_gone(true).unwrap();
    poll_until(&mut link, |l| l.fault() == Some(FaultKind::BusGone));
    assert_eq!(
        port.send(&[KernelFrame::encode(
            &Frame::new(2, [0; 8]),
            FrameFormat::Classic
        )]),
        SendOutcome::NotReady
    );
    bus.set_gone(false).unwrap();
    poll_until(&mut link, |l| l.fault().is_none());
    assert_eq!((link.motion_fd(), link.counters().reopened), (number, 1));
    assert!(link.take_restarted());
    assert_eq!(
        link.send_group(
            &[Frame::new(1, [0; 8])],
            GroupKind::Motion,
            sys::monotonic()
        ),
        SendOutcome::Sent
    );
    poll_until(&mut link, |l| l.counters().confirmed == 1);
    assert_eq!(
        port.send(&[KernelFrame::encode(
            &Frame::new(2, [0; 8]),
            FrameFormat::Classic
        )]),
        SendOutcome::Sent
    );
}

/// Guards: one program per bus; the message names the holder, and the bus is free again when the holder is gone.
#[test]
fn exclusive_names_the_holder() {
    let address = fresh_address();
    let _bus = LocalBus::manual(&address).unwrap();
    let link = CanLink::open(options(&address, 5)).unwrap();
    let refusal = CanLink::open(options(&address, 5)).unwrap_err();
    assert!(matches!(refusal, OpenError::InUse { .. }));
    assert!(
        refusal
            .to_string()
            .contains(&std::process::id().to_string()),
        "{refusal}"
    );
    drop(link);
    assert!(CanLink::open(options(&address, 5)).is_ok());
}

/// Guards: messages for what is not there.
#[test]
fn refusals_in_words() {
    let text = CanLink::open(options(&fresh_address(), 5))
        .unwrap_err()
        .to_string();
    assert!(text.contains("start the emulator"), "{text}");
    let text = CanLink::open(options(&CanAddress::Interface("nocan7".into()), 5))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("no CAN interface nocan7; present:") || text.contains("no CAN sockets"),
        "{text}"
    );
}

/// Guards: the hub is bounded, and a member that does not read loses frames instead of stopping the bus.
#[test]
fn hub_is_bounded() {
    let address = fresh_address();
    let bus = LocalBus::manual(&address).unwrap();
    let mut nodes: Vec<BusNode> = Vec::new();
    for _ in 0..MEMBERS_MAX + 4 {
        nodes.push(BusNode::join(&address, FrameFormat::Classic).unwrap());
        bus.pump();
    }
    assert_eq!(bus.members(), MEMBERS_MAX);
    for _ in 0..200 {
        assert_eq!(nodes[0].send(&[Frame::new(7, [0; 8]); 10]), 10);
        nodes[0].drain(|_| {});
        bus.pump();
    }
    assert!(bus.losses().1 > 0, "nobody else reads");
    assert_eq!(bus.recorded().len(), 2000);
}

/// Guards: the kernel's layout, the echo mark and the refusal of what is no plain data frame.
#[test]
fn kernel_layout() {
    let frame = Frame::short(0x152, [1, 2, 3]);
    let bytes = KernelFrame::encode(&frame, FrameFormat::Classic);
    assert_eq!(
        bytes.as_bytes(),
        [0x52, 0x01, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0]
    );
    assert_eq!(
        bytes.decode(),
        Content::Data {
            frame,
            marked: false
        }
    );
    assert_eq!(
        bytes.marked(true).decode(),
        Content::Data {
            frame,
            marked: true
        }
    );
    let fd = KernelFrame::encode(&frame, FrameFormat::Fd);
    assert_eq!(
        (fd.as_bytes().len(), fd.decode()),
        (
            72,
            Content::Data {
                frame,
                marked: false
            }
        )
    );
    for flag in [1_u32 << 31, 1 << 30, 0x800] {
        let mut raw = [0; 16];
        raw[..4].copy_from_slice(&(0x152 | flag).to_ne_bytes());
        assert_eq!(bytes::content(&raw), Content::Other);
    }
    assert_eq!(bytes::content(&[0; 15]), Content::Other);
    assert!(KernelFrame::from_bytes(&[0; 17]).is_none());
}

/// Guards: each class and detail bit of an error frame reaches its field.
#[test]
fn error_frames() {
    let e = BusError::decode(
        libc::CAN_ERR_CRTL | libc::CAN_ERR_CNT,
        &[0, 0x20, 0, 0, 0, 0, 130, 7],
    );
    assert_eq!(
        (e.passive, e.error_counts, e.bus_off),
        (true, Some((130, 7)), false)
    );
    let e = BusError::decode(libc::CAN_ERR_ACK | libc::CAN_ERR_BUSERROR, &[0xFF; 8]);
    assert_eq!(
        (e.no_ack, e.violation, e.passive, e.error_counts),
        (true, true, false, None)
    );
    // The socketcan crate reads the same frames; both must agree on what they share.
    for class in 0..0x400_u32 {
        let detail = [0, 0x15, 0, 0, 0, 0, 1, 2];
        let ours = BusError::decode(class, &detail);
        let theirs =
            socketcan::CanError::from(socketcan::CanErrorFrame::new_error(class, &detail).unwrap());
        assert_eq!(
            (
                ours.bus_off,
                ours.restarted,
                ours.no_ack,
                ours.tx_timeout,
                ours.error_counts
            ),
            (
                theirs.is_bus_off(),
                theirs.is_restarted(),
                theirs.is_no_ack(),
                theirs.is_transmit_timeout(),
                theirs.counters()
            )
        );
    }
}

/// Guards: address texts.
#[test]
fn addresses() {
    for good in ["can0", "local:/tmp/a.sock", "local:@demo"] {
        assert_eq!(good.parse::<CanAddress>().unwrap().to_string(), good);
    }
    for bad in [
        "",
        "local:",
        "local:relative",
        "local:@",
        "averylonginterfacename",
        "can/0",
        "a b",
        "..",
    ] {
        assert!(bad.parse::<CanAddress>().is_err(), "{bad}");
    }
}

/// Guards: only CAN interfaces are listed, with what identifies the adapter.
#[test]
fn adapter_list() {
    let root = tempfile::tempdir().unwrap();
    let usb = root.path().join("devices/usb1/1-2");
    let (net, interface) = (root.path().join("net"), usb.join("1-2:1.0"));
    for dir in [
        &interface,
        &net.join("eth0"),
        &net.join("can0"),
        &root.path().join("drivers/gs_usb"),
    ] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(usb.join("serial"), "0032001\n").unwrap();
    symlink(root.path().join("drivers/gs_usb"), interface.join("driver")).unwrap();
    symlink(&interface, net.join("can0/device")).unwrap();
    for (name, value) in [
        ("type", "280\n"),
        ("operstate", "up\n"),
        ("tx_queue_len", "10\n"),
        ("mtu", "16\n"),
    ] {
        fs::write(net.join("can0").join(name), value).unwrap();
    }
    fs::write(net.join("eth0/type"), "1\n").unwrap();
    let found = adapters::list_under(&net).unwrap();
    assert_eq!(
        found,
        [adapters::Adapter {
            name: "can0".into(),
            operstate: "up".into(),
            driver: Some("gs_usb".into()),
            bus_path: Some("1-2:1.0".into()),
            usb_serial: Some("0032001".into()),
            tx_queue_len: Some(10),
            mtu: Some(16),
        }]
    );
}
