//! What a real-time thread needs from the machine, and the proof that it got it.
//!
//! | module | does | where |
//! |---|---|---|
//! | `clock` | the monotonic clock, and how long the machine was suspended | hot |
//! | `pace` | the exact-rate wait of the control cycle | hot |
//! | `histogram` | latency histograms, and their way to another thread | hot |
//! | `panic` | what a panic of a real-time thread does before it unwinds | hot |
//! | `alloc` | counts heap use, to prove that there is none | hot |
//! | `net` | datagrams with the kernel's receive stamp | hot |
//! | `sched` | policy, priority, core, name; set and read back | start-up |
//! | `memory` | locking and touching memory, C-state latency, page faults | start-up |
//! | `preflight` | what this host allows | start-up |
//! | `report` | histograms as text, `.hgrm` and SVG | plain threads |
//! | `measure` | the loops behind `telearm bench wake` and `bench stop` | plain threads |
//!
//! Hot modules deny heap, locks, formatting and panics by attribute. Everything works without privileges too, and then says what is missing
//! in a `Refusal`.

pub mod alloc;
pub mod clock;
pub mod histogram;
pub mod measure;
pub mod memory;
pub mod net;
pub mod pace;
pub mod panic;
pub mod preflight;
mod refusal;
pub mod report;
pub mod sched;

pub use refusal::Refusal;
