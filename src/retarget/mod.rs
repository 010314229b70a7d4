//! From hand motion to a tool goal: anchor, mapping, gripper.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod gripper;
mod mapping;

pub use gripper::GripperPickup;
pub use mapping::{Anchor, Mapping, MappingKind};
