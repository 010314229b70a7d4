//! Opening a UDP port, and saying who has it when it is taken. Start-up only.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)] // start-up

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use mio::net::UdpSocket;

use crate::rt::net;
use crate::time::Span;

/// Usually there after a few milliseconds; more only on a machine that is overloaded.
const STAMPS_WITHIN: Span = Span::from_ms(500);
/// Some hundred small datagrams: seconds of a 50 Hz sender. More would only keep old ones.
const RECEIVE_BUFFER_BYTES: i32 = 212_992;

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else has it.
    #[error("UDP port {port} is in use{}; end that program, or give another `port`", holder_text(.holder.as_ref()))]
    PortInUse {
        /// The port.
        port: u16,
        /// Who has it, as far as we may know.
        holder: Option<PortHolder>,
    },
    /// Anything else.
    #[error("cannot listen on UDP {listen}: {error}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// A process that has a port open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHolder {
    /// Process id.
    pub pid: u32,
    /// Its command name.
    pub name: String,
}

fn holder_text(holder: Option<&PortHolder>) -> String {
    match holder {
        Some(holder) => format!(" by {} (pid {})", holder.name, holder.pid),
        None => String::new(),
    }
}

/// A bound UDP port, not served yet: binding early shows a busy port before anything is started.
#[derive(Debug)]
pub struct BoundPort(pub(super) UdpSocket);

impl BoundPort {
    /// Binds without blocking and without sharing: a port belongs to one program.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind(listen: SocketAddr) -> Result<Self, OpenError> {
        match UdpSocket::bind(listen) {
            Ok(socket) => {
                net::prepare(socket.as_fd(), RECEIVE_BUFFER_BYTES);
                // Without stamps the port works too, only a backlog is recognised less sharply.
                let _ = net::wait_for_stamps(STAMPS_WITHIN);
                Ok(Self(socket))
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(OpenError::PortInUse {
                port: listen.port(),
                holder: port_holder(listen.port()),
            }),
            Err(error) => Err(OpenError::Bind { listen, error }),
        }
    }

    /// The address, with the port that the kernel chose if 0 was asked for.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Finds the process that has a UDP port open: the socket's inode from /proc/net/udp, then whose descriptor points to it. Best effort:
/// another user's process stays unnamed.
#[must_use]
pub fn port_holder(port: u16) -> Option<PortHolder> {
    let inode_in = |table: &str| {
        let text = std::fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| {
            let mut fields = line.split_whitespace();
            let local = fields.nth(1)?;
            let (_, local_port) = local.rsplit_once(':')?;
            let is_ours = u16::from_str_radix(local_port, 16).ok()? == port;
            is_ours.then(|| fields.nth(7).map(str::to_owned)).flatten()
        })
    };
    let inode = inode_in("/proc/net/udp").or_else(|| inode_in("/proc/net/udp6"))?;
    let wanted = format!("socket:[{inode}]");
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let Ok(descriptors) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let has_it = descriptors.flatten().any(|fd| {
            std::fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == wanted.as_str())
        });
        if has_it {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(PortHolder {
                pid,
                name: name.trim().to_owned(),
            });
        }
    }
    None
}
