//! Opening a vanished interface again, by a plain thread.
//!
//! Opening a raw CAN socket takes the kernel's network configuration lock (held while a USB adapter is torn down), looks the interface up
//! by name and allocates, so it does not belong on the control thread. The thread sleeps until the link asks, tries every 250 ms .. 2 s,
//! and leaves the new descriptor for the link. The *link* puts it in place, inside its poll: were it done from here, it could undo the
//! watchdog's takeover, which puts `/dev/null` in the same place (control asks the gate after every poll and before every group, so an
//! own replacement can never be followed by an unguarded write). The thread keeps the old file alive until then, so that the link's
//! replacement is never the last close.

#![allow(clippy::disallowed_types, reason = "a plain thread and its start-up")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::open::{self, SocketPlan};
use super::sys;

const BACK_OFF_MIN: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(2);
/// How often the thread looks whether the link has taken the new descriptor.
const TAKEN_POLL: Duration = Duration::from_millis(20);
const NONE: RawFd = -1;

struct Shared {
    wanted: AtomicBool,
    ready: AtomicI32,
    ended: AtomicBool,
    /// Stop port sockets on the same bus: renewed in place, because nobody looks at them until they are needed.
    ports: Mutex<Vec<(SocketPlan, Weak<OwnedFd>)>>,
}

/// The link's side.
pub(super) struct Reopener {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Reopener {
    /// Starts the sleeping thread. `current` is the link's descriptor.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(plan: SocketPlan, current: Arc<OwnedFd>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            wanted: AtomicBool::new(false),
            ready: AtomicI32::new(NONE),
            ended: AtomicBool::new(false),
            ports: Mutex::new(Vec::new()),
        });
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("can-reopen".into())
            .spawn(move || run(&for_thread, &plan, &current))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Asks for a new descriptor. One futex call when the thread sleeps; asking again changes nothing.
    pub(super) fn request(&self) {
        if !self.shared.wanted.swap(true, Ordering::AcqRel)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }

    /// The new descriptor, once there is one.
    pub(super) fn ready(&self) -> Option<RawFd> {
        let fd = self.shared.ready.load(Ordering::Acquire);
        (fd != NONE).then_some(fd)
    }

    /// The new descriptor is in place (or was not wanted any more).
    pub(super) fn taken(&self) {
        self.shared.ready.store(NONE, Ordering::Release);
    }

    /// Renews this socket too from now on. Start-up only: takes a lock.
    pub(super) fn also(&self, plan: SocketPlan, port: &Arc<OwnedFd>) {
        self.shared
            .ports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((plan, Arc::downgrade(port)));
    }
}

impl Drop for Reopener {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been printed by the default hook; nothing depends on the thread any more.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, plan: &SocketPlan, current: &OwnedFd) {
    let ended = || shared.ended.load(Ordering::Acquire);
    while !ended() {
        if !shared.wanted.load(Ordering::Acquire) {
            thread::park();
            continue;
        }
        let mut back_off = BACK_OFF_MIN;
        let fresh = loop {
            thread::park_timeout(back_off);
            if ended() {
                return;
            }
            match open::open(plan) {
                Ok(fd) => break fd,
                Err(_) => back_off = (back_off * 2).min(BACK_OFF_MAX),
            }
        };
        let old = current.try_clone();
        renew_ports(shared);
        shared.wanted.store(false, Ordering::Release);
        shared.ready.store(fresh.as_raw_fd(), Ordering::Release);
        while shared.ready.load(Ordering::Acquire) != NONE && !ended() {
            thread::park_timeout(TAKEN_POLL);
        }
        drop(old);
    }
}

fn renew_ports(shared: &Shared) {
    let mut ports = shared.ports.lock().unwrap_or_else(PoisonError::into_inner);
    ports.retain(|(plan, port)| {
        let Some(port) = port.upgrade() else {
            return false;
        };
        if let Ok(fresh) = open::open(plan) {
            // A refused replacement leaves the dead socket in place; its sends fail and say so.
            let _ = sys::replace(fresh.as_raw_fd(), port.as_raw_fd());
        }
        true
    });
}
