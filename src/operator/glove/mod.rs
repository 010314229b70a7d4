//! EMF gloves: one operator is one hand; both hands send to one UDP port, 15001, 120 packets a second each.
//!
//! `wire` has the two packets (FNIM, and the experimental FSNH), `fingers` what of them matters here, `order` the numbering, `session` one
//! hand's stream, `params` what a plan may say, `calibrate` how its numbers are found, `device` the line in the registry, `emulate` gloves
//! made of software. Facts and doubts about the protocols: `docs/protocols/glove.md`.
//!
//! A glove knows its fingers and not its place: the origin of its positions moves with the hand. So it opens and closes a gripper, and
//! holds a clutch; it never gives an arm its pose.

pub mod calibrate;
mod device;
pub mod emulate;
pub mod fingers;
pub mod order;
pub mod params;
pub mod session;
pub mod wire;

pub use device::Descriptor;
pub use fingers::{Calibration, Fingers};
pub use params::{Params, Settings};
pub use session::Session;
pub use wire::Hand;
