//! What control shows to threads that must not touch its mailboxes: the mode of each lane, as one atomic per lane.

use super::sync::{AtomicBool, AtomicU32, Ordering};

/// Most lanes of a plan.
pub const LANES_MAX: usize = 4;

/// One lane's line on the board.
#[derive(Debug)]
pub struct LaneLine {
    mode: AtomicU32,
    follows: AtomicBool,
    stale: AtomicBool,
}

impl Default for LaneLine {
    fn default() -> Self {
        Self {
            mode: AtomicU32::new(0),
            follows: AtomicBool::new(false),
            stale: AtomicBool::new(false),
        }
    }
}

impl LaneLine {
    /// Control: the mode's code, and whether the operator moves the arm in it.
    pub fn show(&self, mode: u8, follows: bool) {
        self.mode.store(u32::from(mode), Ordering::Relaxed);
        self.follows.store(follows, Ordering::Release);
    }

    /// The mode's code.
    #[must_use]
    pub fn mode(&self) -> u8 {
        (self.mode.load(Ordering::Relaxed) & 0xFF) as u8
    }

    /// Whether the operator moves the arm.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.follows.load(Ordering::Acquire)
    }

    /// Watchdog: the lane's input is too old. Gives true if that is news.
    pub fn raise_stale(&self) -> bool {
        !self.stale.swap(true, Ordering::AcqRel)
    }

    /// Watchdog: the input is fresh again.
    pub fn clear_stale(&self) {
        self.stale.store(false, Ordering::Release);
    }

    /// Control: has the watchdog found the input too old?
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }
}

/// The board: one line per lane.
#[derive(Debug, Default)]
pub struct LaneBoard {
    lines: [LaneLine; LANES_MAX],
}

impl LaneBoard {
    /// The line of lane `index`; lanes beyond the most have none.
    #[must_use]
    pub fn lane(&self, index: usize) -> Option<&LaneLine> {
        self.lines.get(index)
    }
}
