//! What the real-time threads need of the operating system.

pub mod net;
