//! The CAN link that every CAN arm uses: `CanLink`, non-blocking, counted, with two back ends behind one descriptor.
//!
//! * **SocketCAN**, address `can0`: a raw CAN socket.
//! * **local bus**, address `local:/path.sock` or `local:@name`: a `SOCK_SEQPACKET` socket to a `LocalBus`, for machines without CAN
//!   (the demo, tests, CI). A datagram is a kernel `can_frame` (16 bytes; `canfd_frame`, 72 bytes, for FD), a sender gets its own frames back marked as
//!   confirmed, like a raw socket with `CAN_RAW_RECV_OWN_MSGS`.
//!
//! Both are descriptors on which `sendmmsg`, `recvmmsg`, `poll` and `dup3` do the same; only opening and the place of the echo mark differ.
//!
//! What the link guarantees:
//! * a group of frames goes out whole, in order, or not at all; a group that the kernel took only in part is remembered (see
//!   `CanLink::send_group`);
//! * frames in flight are counted by their own echoes, and a group starts only if in flight + group fit one cycle (two, if it brakes);
//! * every failure is a counter and, when it lasts, a named `FaultKind`; no failure blocks or allocates;
//! * once the descriptor is taken away by the watchdog nothing is sent any more.
//!
//! | event | write | read | what the link does |
//! |---|---|---|---|
//! | queue full | `ENOBUFS`, `EAGAIN` | | busy, counted; never retried in the loop |
//! | interface down | `ENETDOWN` | `ENETDOWN` once | keeps the socket, fault `bus_down`; any frame received ends it |
//! | interface gone | `ENXIO`, `ENODEV` | `ENODEV` once | fault `bus_gone`; a plain thread re-opens it by name, 250 ms .. 2 s apart |
//! | hub of a local bus gone | `EPIPE` | end of file | as interface gone |
//! | nothing to read | | `EAGAIN` | says nothing about health |
//! | taken over | `ENOTSOCK` | `ENOTSOCK` | fault `link_broken`, for good |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

pub mod adapters;
mod address;
pub mod bare;
mod bus_error;
mod bytes;
mod exclusive;
mod link;
mod link_types;
pub mod local_bus;
mod open;
mod port;
mod receive;
mod reopen;
mod sys;

pub use address::{AddressError, CanAddress};
pub use bus_error::BusError;
pub use bytes::{Content, FrameFormat, KernelFrame};
pub use link::CanLink;
pub use link_types::{GroupKind, LinkCounters, LinkOptions, Origin, Received};
pub use local_bus::LocalBus;
pub use open::{IdFilter, OpenError};
pub use port::CanPort;
pub use sys::StampSource;

#[cfg(test)]
mod tests;
