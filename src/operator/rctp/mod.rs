//! RCTP: a Meta Quest hand over UDP, 50 packets a second, port 8888 for the right hand and 8889 for the left.
//!
//! `wire` is the packet, `session` the stream, `params` what a plan may say, `device` the line in the registry, `emulate` a headset
//! made of software. Facts and doubts about the protocol: `docs/protocols/rctp.md`.

mod device;
pub mod emulate;
pub mod params;
pub mod session;
pub mod wire;

pub use device::Descriptor;
pub use params::{Frame, Params, Settings};
pub use session::Session;
