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

use std::sync::Arc;

use crate::operator::io::udp::{Outlets, UdpSource};
use crate::operator::io::{BoundPort, OpenError, Source, SourceStats};
use crate::operator::pin::Pin;

/// Counters for a hand; hand them to [`open`] in its outlets.
#[must_use]
pub fn stats() -> Arc<SourceStats> {
    Arc::new(SourceStats::new(session::DROP_REASONS))
}

/// Binds the port of a hand and makes the source that serves it.
///
/// # Errors
/// When the port cannot be listened on; the text names the program that has it.
#[expect(clippy::disallowed_types, reason = "start-up")]
pub fn open(settings: &Settings, outlets: Outlets) -> Result<Box<dyn Source>, OpenError> {
    let port = BoundPort::bind(settings.listen)?;
    Ok(serve(settings, port, outlets))
}

/// Makes the source that serves a port which is bound already.
#[must_use]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub fn serve(settings: &Settings, port: BoundPort, outlets: Outlets) -> Box<dyn Source> {
    let pin = Pin::new(settings.allow.clone(), settings.disengage_after);
    Box::new(UdpSource::new(port, Session::new(settings), pin, outlets))
}
