//! RCTP: a Meta Quest hand over UDP, 50 packets a second, port 8888 for the right hand and 8889 for the left.
//!
//! `wire` is the packet, `session` the stream, `params` what a plan may say. Facts and doubts about the protocol: `docs/protocols/rctp.md`.

pub mod params;
pub mod session;
pub mod wire;

pub use params::{Frame, Params, Settings};
pub use session::Session;
