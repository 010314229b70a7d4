//! [`CanLink`]: the motion link of one CAN arm.
//!
//! ```text
//!            ENETDOWN                      any frame received
//!    Up ───────────────► Down ──────────────────────────────────► Up, restarted
//!     │  bus-off frame
//!     ├─────────────────► BusOff ── restarted frame, echo, 100 ms of traffic ──► Up, restarted
//!     │  no echo 100 ms, or queue full 100 ms
//!     ├─────────────────► NotSending ── echo, or traffic for 1 s ───────────────► Up, restarted
//!     │  ENXIO ENODEV EPIPE
//!     ├─────────────────► Gone ── re-opened by name ─────────────────────────────► Up, restarted
//!     │  ENOTSOCK
//!     └─────────────────► TakenOver, for good
//! ```

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bus_error::BusError;
use super::bytes::{Content, FrameFormat, KernelFrame};
use super::exclusive::Exclusive;
use super::link_types::{GroupKind, LinkCounters, LinkOptions, Origin, Received};
use super::local_bus::ControlByte;
use super::open::{self, IdFilter, OpenError, SocketPlan};
use super::port::CanPort;
use super::receive::{Event, Receiver};
use super::reopen::Reopener;
use super::sys::{self, Errno, GROUP_MAX, StampSource};
use crate::arm::SendOutcome;
use crate::arm::frame::Frame;
use crate::signal::FaultKind;
use crate::time::{Span, Stamp};

/// Frames unconfirmed, or a queue full, for so long: the bus does not send.
const NOT_SENDING_AFTER: Span = Span::from_ms(100);
/// Traffic for so long after a bus-off without a word from the controller: it is back.
const BUS_OFF_QUIET: Span = Span::from_ms(100);
/// No echo for so long although the bus is alive: the echoes are lost (our queue overflowed), not the frames.
const ECHO_LOST_AFTER: Span = Span::from_ms(1000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Up,
    Down,
    BusOff { since: Stamp },
    NotSending,
    Gone,
    TakenOver,
}

/// The motion link of one CAN arm.
pub struct CanLink {
    fd: Arc<OwnedFd>,
    receiver: Receiver,
    reopener: Reopener,
    plan: SocketPlan,
    cycle_frames: u16,
    stamps: StampSource,
    state: LinkState,
    in_flight: u16,
    /// Since when frames are in flight without any echo.
    silent_since: Option<Stamp>,
    /// Since when the kernel refuses for lack of room.
    full_since: Option<Stamp>,
    last_heard: Option<Stamp>,
    rest: heapless::Vec<Frame, GROUP_MAX>,
    restarted: bool,
    /// The local bus plays a refusal.
    refuse: Option<Errno>,
    port_used: Arc<AtomicBool>,
    counters: LinkCounters,
    _exclusive: Exclusive,
}

impl CanLink {
    /// Takes the bus for this program and opens it. At start-up: allocates and may wait.
    ///
    /// # Errors
    /// See [`OpenError`]; another program on the bus is named by its process id.
    pub fn open(options: LinkOptions) -> Result<Self, OpenError> {
        let exclusive = Exclusive::take(&options.address)?;
        let plan = SocketPlan {
            address: options.address,
            filters: options.filters,
            format: options.format,
            own_messages: true,
            send_queue_bytes: Some(open::LOCAL_SEND_QUEUE_BYTES),
        };
        let fd = Arc::new(open::open(&plan)?);
        let reopener = Reopener::start(plan.clone(), Arc::clone(&fd))
            .map_err(|e| OpenError::io(&plan.address, e))?;
        Ok(Self {
            fd,
            receiver: Receiver::new(options.stamps),
            reopener,
            plan,
            cycle_frames: options.cycle_frames,
            stamps: options.stamps,
            state: LinkState::Up,
            in_flight: 0,
            silent_since: None,
            full_since: None,
            last_heard: None,
            rest: heapless::Vec::new(),
            restarted: false,
            refuse: None,
            port_used: Arc::new(AtomicBool::new(false)),
            counters: LinkCounters::default(),
            _exclusive: exclusive,
        })
    }

    /// A socket of its own on the same bus, for the watchdog. At start-up.
    ///
    /// # Errors
    /// As [`CanLink::open`], the exclusive lock left out.
    pub fn open_port(&self, filters: &[IdFilter]) -> Result<CanPort, OpenError> {
        #[expect(clippy::disallowed_types, reason = "start-up")]
        let filters: Box<[IdFilter]> = filters.into();
        let plan = SocketPlan {
            filters,
            own_messages: false,
            ..self.plan.clone()
        };
        let fd = Arc::new(open::open(&plan)?);
        self.reopener.also(plan, &fd);
        Ok(CanPort {
            fd,
            receiver: Receiver::new(self.stamps),
            used: Arc::clone(&self.port_used),
        })
    }

    /// The descriptor that carries motion frames. Its number stays the same for the life of the link.
    #[must_use]
    pub fn motion_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Takes everything that has arrived and gives each data frame to `sink`.
    pub fn poll(&mut self, now: Stamp, mut sink: impl FnMut(Received)) {
        if self.state == LinkState::Gone {
            self.install_if_ready(now);
        }
        let fd = self.fd.as_raw_fd();
        // Split off so that the sink and the link's own bookkeeping can be used side by side.
        let Self { receiver, .. } = self;
        let mut taken = Taken::default();
        let mut own = 0_u16;
        receiver.drain(fd, now, |event| match event {
            Event::Frame {
                content: Content::Data { frame, .. },
                own: confirmed,
                at,
            } => {
                let origin = if confirmed { Origin::Own } else { Origin::Bus };
                if confirmed {
                    own = own.saturating_add(1);
                } else {
                    taken.frames += 1;
                }
                sink(Received { frame, at, origin });
            }
            Event::Frame {
                content: Content::Error { class, detail },
                at,
                ..
            } => taken.bus_error(&BusError::decode(class, &detail), at),
            Event::Frame {
                content: Content::Other,
                ..
            } => taken.odd += 1,
            Event::Control(byte) => taken.control = Some(byte),
            Event::Closed => taken.errno = Some(libc::EPIPE),
            Event::Errno(errno) => taken.errno = Some(errno),
        });
        self.digest(&taken, own, now);
        self.judge(now);
    }

    /// Everything but the sink's part of one drain.
    fn digest(&mut self, taken: &Taken, own: u16, now: Stamp) {
        let c = &mut self.counters;
        c.frames_in += taken.frames;
        c.odd += taken.odd;
        c.confirmed += u64::from(own);
        c.bus_errors += taken.errors;
        c.bus_off += u64::from(taken.off_at.is_some());
        c.no_ack += taken.no_ack;
        c.passive += taken.passive;
        c.dropped = self.receiver.dropped;
        self.in_flight = self.in_flight.saturating_sub(own);
        if own > 0 {
            self.silent_since = (self.in_flight > 0).then_some(now);
            self.full_since = None;
        }
        if taken.frames > 0 || own > 0 {
            self.last_heard = Some(now);
        }
        match taken.control.and_then(ControlByte::from_u8) {
            Some(ControlByte::Down) => {
                self.refuse = Some(libc::ENETDOWN);
                self.transition_to_failed(LinkState::Down);
            }
            Some(ControlByte::Full) => self.refuse = Some(libc::ENOBUFS),
            Some(ControlByte::Normal) => self.refuse = None,
            None => {}
        }
        if let Some(errno) = taken.errno {
            self.on_errno(errno, now);
        }
        match self.state {
            LinkState::Down
                if taken.frames > 0 && taken.errno.is_none() && self.refuse.is_none() =>
            {
                self.transition_to_up()
            }
            LinkState::NotSending if own > 0 => self.transition_to_up(),
            LinkState::BusOff { since } => {
                let traffic = taken.frames > 0 && now.age_of(since) >= BUS_OFF_QUIET;
                if own > 0 || traffic {
                    self.transition_to_up();
                }
            }
            _ => {}
        }
        // Order within one drain is kept: the later of off and restarted wins.
        if let Some(at) = taken.off_at {
            self.transition_to_failed(LinkState::BusOff { since: at });
        }
        if taken.restarted {
            match self.state {
                LinkState::Gone | LinkState::TakenOver | LinkState::Down => self.restarted = true,
                _ => self.transition_to_up(),
            }
        }
    }

    /// Judgements that need time rather than an event.
    fn judge(&mut self, now: Stamp) {
        let over =
            |since: Option<Stamp>, limit: Span| since.is_some_and(|s| now.age_of(s) >= limit);
        if self.state == LinkState::Up
            && (over(self.silent_since, NOT_SENDING_AFTER)
                || over(self.full_since, NOT_SENDING_AFTER))
        {
            self.state = LinkState::NotSending;
        }
        let alive = self
            .last_heard
            .is_some_and(|at| now.age_of(at) < NOT_SENDING_AFTER);
        if self.state == LinkState::NotSending && alive && self.refuse.is_none() {
            let waited = [self.silent_since, self.full_since]
                .into_iter()
                .flatten()
                .max();
            if over(waited, ECHO_LOST_AFTER) {
                self.counters.echoes_lost += u64::from(self.in_flight);
                self.transition_to_up();
            }
        }
    }

    /// Whether a group of `frames` may start now: it and everything in flight fit one cycle, or two for a group that brakes.
    ///
    /// The second cycle is what lets a stop out at once: right after a motion group none of whose echoes has been read yet, there is no room
    /// within one, and the stop would wait for the next deadline. The queue of the interface holds two cycles.
    #[must_use]
    pub fn has_room(&self, frames: usize, kind: GroupKind) -> bool {
        let rest = match kind {
            GroupKind::Motion | GroupKind::Config => self.rest.len(),
            // They replace it.
            GroupKind::Hold | GroupKind::Stop => 0,
        };
        self.state == LinkState::Up && self.fits(frames.saturating_add(rest), kind)
    }

    fn fits(&self, frames: usize, kind: GroupKind) -> bool {
        let room = match kind {
            GroupKind::Motion | GroupKind::Config => usize::from(self.cycle_frames),
            GroupKind::Hold | GroupKind::Stop => usize::from(self.cycle_frames) * 2,
        };
        usize::from(self.in_flight).saturating_add(frames) <= room
    }

    /// Hands a group to the kernel, whole or not at all.
    ///
    /// If the kernel takes only the first part (its queue filled up in between, which [`CanLink::has_room`] makes rare), the outcome is
    /// still `Sent`: the rest is kept and goes out before the next `Motion` group, within that call, hence under the same look at the stop
    /// latch. A `Hold` group replaces the rest, because it is a whole and newer target; a `Stop` drops it; `Config` waits.
    pub fn send_group(&mut self, frames: &[Frame], kind: GroupKind, now: Stamp) -> SendOutcome {
        let usable = match self.state {
            LinkState::Up => true,
            LinkState::Down | LinkState::BusOff { .. } | LinkState::NotSending => {
                kind == GroupKind::Stop
            }
            LinkState::Gone | LinkState::TakenOver => false,
        };
        if !usable || frames.len() > GROUP_MAX {
            return SendOutcome::NotReady;
        }
        match kind {
            GroupKind::Stop | GroupKind::Hold => self.rest.clear(),
            GroupKind::Config if !self.rest.is_empty() => return self.refused(),
            GroupKind::Motion if !self.rest.is_empty() => {
                let rest = core::mem::take(&mut self.rest);
                match self.hand_over(&rest, now) {
                    SendOutcome::Sent if self.rest.is_empty() => {}
                    SendOutcome::Sent => return self.refused(),
                    outcome => {
                        self.rest = rest;
                        return outcome;
                    }
                }
            }
            GroupKind::Motion | GroupKind::Config => {}
        }
        if kind != GroupKind::Stop && !self.fits(frames.len(), kind) {
            return self.refused();
        }
        self.hand_over(frames, now)
    }

    const fn refused(&mut self) -> SendOutcome {
        self.counters.busy += 1;
        SendOutcome::Busy
    }

    fn hand_over(&mut self, frames: &[Frame], now: Stamp) -> SendOutcome {
        let mut encoded: heapless::Vec<KernelFrame, GROUP_MAX> = heapless::Vec::new();
        encoded.extend(
            frames
                .iter()
                .map(|f| KernelFrame::encode(f, self.plan.format)),
        );
        let result = match self.refuse {
            Some(errno) => Err(errno),
            None => sys::send_group(self.fd.as_raw_fd(), &encoded),
        };
        match result {
            Ok(taken) => {
                self.counters.frames_out += taken as u64;
                self.in_flight = self
                    .in_flight
                    .saturating_add(u16::try_from(taken).unwrap_or(u16::MAX));
                self.silent_since.get_or_insert(now);
                let rest = frames.get(taken..).unwrap_or(&[]);
                if rest.is_empty() {
                    self.full_since = None;
                } else {
                    self.counters.torn += 1;
                    self.full_since.get_or_insert(now);
                    // Fits: a group is never longer than GROUP_MAX.
                    self.rest.clear();
                    let _ = self.rest.extend_from_slice(rest);
                }
                SendOutcome::Sent
            }
            Err(errno) => self.on_errno(errno, now),
        }
    }

    fn on_errno(&mut self, errno: Errno, now: Stamp) -> SendOutcome {
        match errno {
            libc::ENOBUFS | libc::EAGAIN => {
                self.full_since.get_or_insert(now);
                return self.refused();
            }
            libc::ENETDOWN => self.transition_to_failed(LinkState::Down),
            libc::ENXIO | libc::ENODEV | libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN => {
                self.transition_to_failed(LinkState::Gone)
            }
            libc::ENOTSOCK | libc::EBADF => self.transition_to_failed(LinkState::TakenOver),
            strange => {
                self.counters.strange_errors += 1;
                self.counters.last_strange_errno = strange;
                self.full_since.get_or_insert(now);
            }
        }
        SendOutcome::NotReady
    }

    fn transition_to_failed(&mut self, state: LinkState) {
        if self.state == LinkState::TakenOver {
            return;
        }
        if state == LinkState::Gone {
            self.refuse = None;
            self.reopener.request();
        }
        // Interface and controller drop what they had queued.
        self.forget_queued();
        self.state = state;
    }

    fn transition_to_up(&mut self) {
        self.forget_queued();
        self.state = LinkState::Up;
        self.restarted = true;
    }

    fn forget_queued(&mut self) {
        self.in_flight = 0;
        self.silent_since = None;
        self.full_since = None;
        self.rest.clear();
    }

    /// Puts a re-opened socket in place, unless the watchdog has meanwhile taken the descriptor away.
    fn install_if_ready(&mut self, now: Stamp) {
        let Some(fresh) = self.reopener.ready() else {
            return;
        };
        let fd = self.fd.as_raw_fd();
        let mut taken_over = false;
        self.receiver.drain(fd, now, |event| {
            taken_over |= matches!(event, Event::Errno(libc::ENOTSOCK))
        });
        if taken_over {
            self.transition_to_failed(LinkState::TakenOver);
        } else if sys::replace(fresh, fd).is_ok() {
            self.counters.reopened += 1;
            self.transition_to_up();
        } else {
            self.reopener.request();
        }
        self.reopener.taken();
    }

    /// Drops the rest of a torn group: a whole new first target follows.
    pub fn forget_rest(&mut self) {
        self.rest.clear();
    }

    /// What is wrong with the bus, if anything.
    #[must_use]
    pub const fn fault(&self) -> Option<FaultKind> {
        match self.state {
            LinkState::Up => None,
            LinkState::Down => Some(FaultKind::BusDown),
            LinkState::BusOff { .. } => Some(FaultKind::BusOff),
            LinkState::NotSending => Some(FaultKind::BusNotSending),
            LinkState::Gone => Some(FaultKind::BusGone),
            LinkState::TakenOver => Some(FaultKind::LinkBroken),
        }
    }

    /// Whether the link came back from a failure since the last call. Whoever drives it starts afresh then.
    pub const fn take_restarted(&mut self) -> bool {
        core::mem::replace(&mut self.restarted, false)
    }

    /// Whether the watchdog's port has sent anything: its frames are not foreign.
    #[must_use]
    pub fn port_used(&self) -> bool {
        self.port_used.load(Ordering::Relaxed)
    }

    /// Frame format out.
    #[must_use]
    pub const fn format(&self) -> FrameFormat {
        self.plan.format
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        LinkCounters {
            in_flight: u64::from(self.in_flight),
            ..self.counters
        }
    }
}

impl core::fmt::Debug for CanLink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CanLink")
            .field("address", &self.plan.address)
            .field("state", &self.state)
            .field("counters", &self.counters())
            .field("refuse", &self.refuse)
            .finish_non_exhaustive()
    }
}

/// What one drain brought, apart from data frames.
#[derive(Debug, Default)]
struct Taken {
    frames: u64,
    odd: u64,
    errors: u64,
    no_ack: u64,
    passive: u64,
    off_at: Option<Stamp>,
    restarted: bool,
    control: Option<u8>,
    errno: Option<Errno>,
}

impl Taken {
    fn bus_error(&mut self, error: &BusError, at: Stamp) {
        self.errors += 1;
        self.no_ack += u64::from(error.no_ack);
        self.passive += u64::from(error.passive);
        if error.bus_off {
            self.off_at = Some(at);
            self.restarted = false;
        }
        if error.restarted {
            self.off_at = None;
            self.restarted = true;
        }
    }
}
