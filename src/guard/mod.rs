//! The last check before the wire. See `vet`.
pub mod vetted;
pub use vetted::Vetted;
