//! The last check before the wire.
//!
//! Two things with opposite manners: `project` moves a *goal* into the workspace before it is shaped; `Guard::vet` looks at a
//! finished *command* and says yes or no. It never alters one. A veto makes the shaper brake, and is counted by its name.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod project;
#[cfg(test)]
mod tests;
mod vet;
mod vetted;
mod workspace;

pub use project::{Projected, project};
pub use vet::{
    Baseline, Guard, GuardLimits, KeepOut, KeepOuts, Surroundings, VETO_NAMES, Verdict, Veto,
};
pub use vetted::Vetted;
pub use workspace::Workspace;
