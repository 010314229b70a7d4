//! [`LocalBus`]: a CAN bus of sockets, for machines without CAN. Never on a real-time path.
//!
//! A hub accepts members on a `SOCK_SEQPACKET` socket and behaves like a bus with `CAN_RAW_RECV_OWN_MSGS`: a frame of one member goes to
//! all others, and back to its sender marked as confirmed (see the byte table in [`KernelFrame`]). Members are bounded, and so are their
//! queues: a member that does not read loses frames, as a CAN socket does. Nothing on it has the timing of a real bus.
//!
//! Faults can be switched at any time. Failures that a real interface reports by an error number travel as a datagram of one byte
//! ([`ControlByte`]), which the link turns into that number.
//!
//! [`KernelFrame`]: super::bytes::KernelFrame

#![allow(clippy::disallowed_types, reason = "plain threads only")]

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::IdFilter;
use super::address::CanAddress;
use super::bus_error::BusError;
use super::bytes::{Content, FrameFormat, KernelFrame, content};
use super::open::{self, OpenError, SocketPlan};
use super::receive::{Event, Receiver};
use super::sys::{self, BATCH_MAX, GROUP_MAX, RecvBuffer, StampSource, UnixName};
use crate::arm::frame::Frame;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::time::Stamp;

/// Members at one time; more are turned away.
pub const MEMBERS_MAX: usize = 16;
/// Frames kept for [`LocalBus::recorded`]; older ones are forgotten.
const RECORD_MAX: usize = 200_000;
/// Batches taken from one member before the next has its turn.
const TURN_BATCHES: usize = 4;
/// How often the thread looks for new members and its end.
const WAIT_MS: i32 = 20;
const QUEUE: i32 = 16;

/// The state of the bus as told to its members, one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ControlByte {
    /// All well.
    Normal = b'n',
    /// Sending gives `ENETDOWN`.
    Down = b'd',
    /// Sending gives `ENOBUFS`.
    Full = b'f',
}

impl ControlByte {
    /// From the byte.
    #[must_use]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            b'n' => Some(Self::Normal),
            b'd' => Some(Self::Down),
            b'f' => Some(Self::Full),
            _ => None,
        }
    }
}

/// A frame that was on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnBus {
    /// When the hub took it.
    pub at: Stamp,
    /// The member that sent it, counted from 1 in the order of joining; 0: made by the hub.
    pub from: u32,
    /// The frame.
    pub frame: Frame,
}

struct Member {
    number: u32,
    fd: OwnedFd,
}

struct Hub {
    address: CanAddress,
    listener: Option<OwnedFd>,
    members: Vec<Member>,
    joined: u32,
    buffer: RecvBuffer,
    state: ControlByte,
    acknowledged: bool,
    stalled: bool,
    bus_off: bool,
    record: VecDeque<OnBus>,
    /// Frames that never reached the bus, by member: sent while it was down, off or nobody acknowledged.
    lost: BTreeMap<u32, u64>,
    /// Frames that a member's full queue did not take.
    overrun: u64,
}

/// A running local bus. Dropping it ends the bus.
pub struct LocalBus {
    hub: Arc<Mutex<Hub>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A wire does not wait for compilers: where we may, the bus (and the emulated arm on it) runs before ordinary threads, and behind every
/// thread of the product. A refusal is no matter; a busy machine then delays it.
pub(in crate::arm) fn urgent() {
    const PRIORITY: u8 = 10;
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    if let Ok(value) = ThreadPriorityValue::try_from(PRIORITY) {
        let priority = ThreadPriority::Crossplatform(value);
        let _ = set_thread_priority_and_policy(thread_native_id(), priority, policy);
    }
}

impl LocalBus {
    /// Serves a bus at `address` with a thread of its own.
    ///
    /// # Errors
    /// The address is an interface, or taken, or cannot be bound.
    pub fn start(address: &CanAddress) -> io::Result<Self> {
        let mut bus = Self::manual(address)?;
        let (hub, ended) = (Arc::clone(&bus.hub), Arc::clone(&bus.ended));
        bus.thread = Some(
            thread::Builder::new()
                .name("local-bus".into())
                .spawn(move || {
                    urgent();
                    serve(&hub, &ended);
                })?,
        );
        Ok(bus)
    }

    /// A bus that moves only when [`LocalBus::pump`] is called: for tests with a fake clock.
    ///
    /// # Errors
    /// As [`LocalBus::start`].
    pub fn manual(address: &CanAddress) -> io::Result<Self> {
        let hub = Hub {
            listener: Some(bind(address)?),
            address: address.clone(),
            members: Vec::new(),
            joined: 0,
            buffer: RecvBuffer::new(),
            state: ControlByte::Normal,
            acknowledged: true,
            stalled: false,
            bus_off: false,
            record: VecDeque::new(),
            lost: BTreeMap::new(),
            overrun: 0,
        };
        Ok(Self {
            hub: Arc::new(Mutex::new(hub)),
            ended: Arc::new(AtomicBool::new(false)),
            thread: None,
        })
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts members and relays what they sent.
    pub fn pump(&self) {
        self.hub().pump();
    }

    /// Interface down: members' sends give `ENETDOWN` until it is up again.
    pub fn set_down(&self, down: bool) {
        self.hub().set_state(if down {
            ControlByte::Down
        } else {
            ControlByte::Normal
        });
    }

    /// Queue full: members' sends give `ENOBUFS`.
    pub fn set_full(&self, full: bool) {
        self.hub().set_state(if full {
            ControlByte::Full
        } else {
            ControlByte::Normal
        });
    }

    /// Nobody acknowledges: frames are neither delivered nor confirmed.
    pub fn set_acknowledged(&self, acknowledged: bool) {
        self.hub().acknowledged = acknowledged;
    }

    /// The hub reads nothing: members' own queues fill up, and a group may be taken in part.
    pub fn set_stalled(&self, stalled: bool) {
        self.hub().stalled = stalled;
    }

    /// Interface gone: all members are cut off and none can join, until it is back.
    ///
    /// # Errors
    /// When the address cannot be bound again.
    pub fn set_gone(&self, gone: bool) -> io::Result<()> {
        let mut hub = self.hub();
        if gone {
            hub.members.clear();
            hub.listener = None;
        } else if hub.listener.is_none() {
            hub.listener = Some(bind(&hub.address)?);
        }
        Ok(())
    }

    /// The controllers go bus-off: an error frame says so, then nothing passes until [`LocalBus::restart`].
    pub fn bus_off(&self) {
        let mut hub = self.hub();
        hub.bus_off = true;
        hub.deliver(None, &[KernelFrame::error(libc::CAN_ERR_BUSOFF, [0; 8])]);
    }

    /// The controllers restart after bus-off, and say so.
    pub fn restart(&self) {
        let mut hub = self.hub();
        hub.bus_off = false;
        hub.deliver(None, &[KernelFrame::error(libc::CAN_ERR_RESTARTED, [0; 8])]);
    }

    /// Gives all members an error frame.
    pub fn inject_error(&self, class: u32, detail: [u8; 8]) {
        self.hub()
            .deliver(None, &[KernelFrame::error(class, detail)]);
    }

    /// Puts frames on the bus as another node.
    pub fn inject(&self, frames: &[Frame]) {
        let frames: Vec<KernelFrame> = frames
            .iter()
            .map(|f| KernelFrame::encode(f, FrameFormat::Classic))
            .collect();
        let mut hub = self.hub();
        hub.note(0, &frames);
        hub.deliver(None, &frames);
    }

    /// What was on the bus since the last call, in order.
    pub fn recorded(&self) -> Vec<OnBus> {
        self.hub().record.drain(..).collect()
    }

    /// How many members there are.
    #[must_use]
    pub fn members(&self) -> usize {
        self.hub().members.len()
    }

    /// Frames that never reached the bus, and frames that a slow member lost.
    #[must_use]
    pub fn losses(&self) -> (u64, u64) {
        let hub = self.hub();
        (hub.lost.values().sum(), hub.overrun)
    }

    /// Frames that never reached the bus, by the member that sent them.
    #[must_use]
    pub fn lost_by_member(&self) -> Vec<(u32, u64)> {
        self.hub().lost.iter().map(|(m, n)| (*m, *n)).collect()
    }
}

impl Drop for LocalBus {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there was printed by the default hook.
            let _ = thread.join();
        }
        if let CanAddress::LocalPath(path) = &self.hub().address {
            // Left behind it would only be replaced by the next hub.
            let _ = fs::remove_file(&**path);
        }
    }
}

fn bind(address: &CanAddress) -> io::Result<OwnedFd> {
    let Some(name) = UnixName::of(address) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a local bus needs a local: address",
        ));
    };
    match sys::listen(&name, QUEUE) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // The file of a dead hub refuses connections; that of a living one does not.
            let dead = matches!(sys::connect(&name), Err(e) if e.kind() == io::ErrorKind::ConnectionRefused);
            match (&address, dead) {
                (CanAddress::LocalPath(path), true) => {
                    fs::remove_file(&**path)?;
                    sys::listen(&name, QUEUE)
                }
                _ => Err(error),
            }
        }
        other => other,
    }
}

fn serve(hub: &Mutex<Hub>, ended: &AtomicBool) {
    let mut waiting = Vec::new();
    while !ended.load(Ordering::Acquire) {
        waiting.clear();
        let stalled = {
            let hub = hub.lock().unwrap_or_else(PoisonError::into_inner);
            let members = hub.members.iter().map(|m| &m.fd);
            waiting.extend(hub.listener.iter().chain(members).map(|fd| libc::pollfd {
                fd: fd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            }));
            hub.stalled
        };
        if stalled {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        if sys::wait_readable(&mut waiting, WAIT_MS) {
            hub.lock().unwrap_or_else(PoisonError::into_inner).pump();
        }
    }
}

impl Hub {
    fn pump(&mut self) {
        self.accept();
        if self.stalled {
            return;
        }
        let numbers: Vec<u32> = self.members.iter().map(|m| m.number).collect();
        for number in numbers {
            for _ in 0..TURN_BATCHES {
                if !self.relay_batch(number) {
                    break;
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Some(listener) = &self.listener
            && let Ok(Some(fd)) = sys::accept(listener.as_raw_fd())
        {
            if self.members.len() >= MEMBERS_MAX {
                continue;
            }
            if self.state != ControlByte::Normal {
                // A queue that is full at once would be a kernel surprise; the member then learns the state by its next failure.
                let _ = sys::send_bytes(fd.as_raw_fd(), &[self.state as u8]);
            }
            self.joined += 1;
            self.members.push(Member {
                number: self.joined,
                fd,
            });
        }
    }

    /// Takes one batch of a member and passes it on. `false` when there was no full batch.
    fn relay_batch(&mut self, number: u32) -> bool {
        let Some(fd) = self
            .members
            .iter()
            .find(|m| m.number == number)
            .map(|m| m.fd.as_raw_fd())
        else {
            return false;
        };
        let count = match self.buffer.fill(fd) {
            Ok(count) => count,
            Err(libc::EAGAIN | libc::EINTR) => return false,
            Err(_) => {
                self.members.retain(|m| m.number != number);
                return false;
            }
        };
        let raw: Vec<&[u8]> = (0..count).map(|i| self.buffer.raw(i)).collect();
        let left = raw.iter().any(|bytes| bytes.is_empty());
        let frames: Vec<KernelFrame> = raw
            .into_iter()
            .filter_map(KernelFrame::from_bytes)
            .collect();
        if self.state == ControlByte::Down || self.bus_off || !self.acknowledged {
            *self.lost.entry(number).or_insert(0) += frames.len() as u64;
        } else {
            self.note(number, &frames);
            self.deliver(Some(number), &frames);
        }
        if left {
            self.members.retain(|m| m.number != number);
        }
        count == BATCH_MAX && !left
    }

    fn note(&mut self, from: u32, frames: &[KernelFrame]) {
        let at = sys::monotonic();
        for frame in frames {
            if let Content::Data { frame, .. } = content(frame.as_bytes()) {
                if self.record.len() == RECORD_MAX {
                    self.record.pop_front();
                }
                self.record.push_back(OnBus { at, from, frame });
            }
        }
    }

    fn deliver(&mut self, from: Option<u32>, frames: &[KernelFrame]) {
        for member in &self.members {
            let marked: Vec<KernelFrame> = frames
                .iter()
                .map(|f| f.marked(Some(member.number) == from))
                .collect();
            for group in marked.chunks(GROUP_MAX) {
                let taken = sys::send_group(member.fd.as_raw_fd(), group).unwrap_or(0);
                self.overrun += (group.len() - taken) as u64;
            }
        }
    }

    fn set_state(&mut self, state: ControlByte) {
        self.state = state;
        for member in &self.members {
            // A member that does not read learns it by its next failure.
            let _ = sys::send_bytes(member.fd.as_raw_fd(), &[state as u8]);
        }
    }
}

/// What a [`BusNode`] hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A data frame with its arrival time.
    Frame(Frame, Stamp),
    /// An error frame of the controller.
    Error(BusError),
    /// The interface is down.
    Down,
}

/// A plain node on a bus, SocketCAN or local: what emulators and tools use. No lock, no echo counting.
pub struct BusNode {
    fd: OwnedFd,
    receiver: Receiver,
    format: FrameFormat,
}

impl BusNode {
    /// Joins a bus and receives everything on it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn join(address: &CanAddress, format: FrameFormat) -> Result<Self, OpenError> {
        let plan = SocketPlan {
            address: address.clone(),
            filters: Box::new([IdFilter { id: 0, mask: 0 }]),
            format,
            own_messages: false,
            send_queue_bytes: None,
        };
        Ok(Self {
            fd: open::open(&plan)?,
            receiver: Receiver::new(StampSource::Kernel),
            format,
        })
    }

    /// Sends frames; gives how many the kernel took, from the front.
    pub fn send(&mut self, frames: &[Frame]) -> usize {
        let mut taken = 0;
        for group in frames.chunks(GROUP_MAX) {
            let encoded: Vec<KernelFrame> = group
                .iter()
                .map(|f| KernelFrame::encode(f, self.format))
                .collect();
            let now = sys::send_group(self.fd.as_raw_fd(), &encoded).unwrap_or(0);
            taken += now;
            if now < group.len() {
                break;
            }
        }
        taken
    }

    /// Sends an error frame as if a controller had made it: a vcan interface and a local bus pass it on.
    pub fn send_error(&mut self, class: u32) {
        // A full queue only loses the announcement; the silence that follows is seen anyway.
        let _ = sys::send_group(self.fd.as_raw_fd(), &[KernelFrame::error(class, [0; 8])]);
    }

    /// Gives every data frame that others have sent. `false` when the bus is gone.
    pub fn drain(&mut self, mut sink: impl FnMut(Frame)) -> bool {
        self.listen(|heard| {
            if let Heard::Frame(frame, _) = heard {
                sink(frame);
            }
        })
    }

    /// Gives every data frame that others have sent with its arrival time, and the controller's error frames. `false` when the bus is
    /// gone.
    pub fn listen(&mut self, mut sink: impl FnMut(Heard)) -> bool {
        let mut alive = true;
        self.receiver
            .drain(self.fd.as_raw_fd(), sys::monotonic(), |event| match event {
                Event::Frame {
                    content: Content::Data { frame, .. },
                    own: false,
                    at,
                } => sink(Heard::Frame(frame, at)),
                Event::Frame {
                    content: Content::Error { class, detail },
                    ..
                } => sink(Heard::Error(BusError::decode(class, &detail))),
                Event::Errno(libc::ENETDOWN) => sink(Heard::Down),
                Event::Control(byte) if byte == ControlByte::Down as u8 => sink(Heard::Down),
                Event::Closed | Event::Errno(libc::ENODEV | libc::ENXIO | libc::ECONNRESET) => {
                    alive = false
                }
                _ => {}
            });
        alive
    }

    /// Waits until there is something to drain, at most `timeout_ms`.
    pub fn wait(&self, timeout_ms: i32) -> bool {
        sys::wait_readable(
            &mut [libc::pollfd {
                fd: self.fd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            }],
            timeout_ms,
        )
    }
}
