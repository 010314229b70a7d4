//! `telearm selftest`: the fault suite as a command. Each `Fault` is played against the real program, which runs in a process of its own
//! between an emulated hand and an emulated arm; what it commands is read from the bus and judged.
//!
//! ```text
//!   Hand ──UDP──► telearm run PLAN ──local bus──► emulated Piper
//!                     ▲ control socket      │ every frame, with its stamp
//!                  Fault::play              └────► Tap: no jump, whole, no power off, still after a stop
//! ```
//! * `stand`: program, bus, arm and hand, put together; `daemon`, `hand`, `status`, `scratch` are its parts;
//! * `tap`: reads along on the bus and complains;
//! * `cases`: the faults;
//! * `soak`: random faults for hours, and what has grown or leaked then;
//! * `suite`: plays them, some at a time, and gives a row each; `witness` tells whether the machine was too busy to judge.

pub mod cases;
pub mod daemon;
pub mod hand;
pub mod scratch;
pub mod soak;
pub mod stand;
pub mod status;
pub mod suite;
pub mod tap;
pub mod witness;

pub use cases::FAULTS;
pub use stand::{Setup, Stand};
pub use suite::{Options, Row, play};

/// One thing that goes wrong, and what must come of it.
#[derive(Clone, Copy)]
pub struct Fault {
    /// Name on the command line.
    pub name: &'static str,
    /// What goes wrong, in a few words.
    pub what: &'static str,
    /// What is expected, in a few words.
    pub expected: &'static str,
    /// What the stand is like.
    pub setup: fn() -> Setup,
    /// Plays it; gives what happened, or what happened that must not.
    pub play: fn(&mut Stand) -> Result<String, String>,
}
