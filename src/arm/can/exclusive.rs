//! One program per bus.
//!
//! The lock is an abstract Unix socket named after the bus. It vanishes with its process however that ends, needs no folder and no
//! permission, and lives in the network namespace: exactly where a CAN interface name is unique. A lock file would be per mount
//! namespace, so that two containers on one interface would both get it and two with an own `can0` each would exclude one another.
//! Connecting to the socket tells the holder's process id.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up only"
)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::address::CanAddress;
use super::open::OpenError;
use super::sys::{self, UnixName};

/// Nobody accepts the connections that ask for the holder; they wait in the queue until the holder ends.
const QUEUE: i32 = 4096;

/// Held as long as the bus is in use.
#[derive(Debug)]
pub(super) struct Exclusive {
    _listener: OwnedFd,
}

impl Exclusive {
    /// Takes the bus.
    ///
    /// # Errors
    /// [`OpenError::InUse`] names the holder.
    pub(super) fn take(address: &CanAddress) -> Result<Self, OpenError> {
        // The name of a socket is short, the path of a local bus may be long: keep its end, which tells buses apart.
        let text = address.to_string();
        let start = (0..=text.len())
            .find(|&i| text.len() - i <= 90 && text.is_char_boundary(i))
            .unwrap_or(0);
        let name = format!("telearm-can {}", text.get(start..).unwrap_or(&text));
        let name = UnixName::Abstract(&name);
        match sys::listen(&name, QUEUE) {
            Ok(listener) => Ok(Self {
                _listener: listener,
            }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let holder = sys::connect(&name)
                    .ok()
                    .and_then(|fd| sys::peer_pid(fd.as_raw_fd()));
                Err(OpenError::InUse {
                    address: address.clone(),
                    holder: holder.map_or_else(
                        || "unknown".to_owned(),
                        |pid| {
                            if u32::try_from(pid) == Ok(std::process::id()) {
                                format!("{pid} (this program, another lane)")
                            } else {
                                pid.to_string()
                            }
                        },
                    ),
                })
            }
            Err(error) => Err(OpenError::io(address, error)),
        }
    }
}
