//! The control socket: how `telearm status`, `stop`, `engage` and the others reach a running daemon.
//!
//! A Unix stream socket, mode 0600, beside a lock file that names the daemon's process id; the lock dies with the process, so a socket
//! left by a crash is replaced and a living daemon never is.
//!
//! ```text
//!   client                     one thread per client                 service thread
//!   "engage right\n"  ───────►  parse; bad line: error reply  ──►  bounded channel: (Request, reply slot)
//!   "ok 18\n" + 18 bytes  ◄───  wait for the reply, at most 2 s  ◄──  Reply
//! ```
//! One line is one request, one reply answers it; a connection may carry many. `stop` latches in the client's own thread, before anything
//! else, and has places of its own when all others are taken. A line is at most [`LINE_BYTES_MAX`] long and there are
//! at most [`CLIENTS_MAX`] clients. Try it with `socat - UNIX-CONNECT:$XDG_RUNTIME_DIR/telearm.sock`.

mod client;
mod request;
mod server;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use client::{Client, ClientError, find};
pub use request::{
    BadRequest, HomeRun, LANE_NAME_MAX, LatencyFormat, Reply, Request, StatusFormat,
};
pub use server::{Incoming, OnStop, ReplySlot, Server, ServerError};

/// Longest request line, bytes, without its end.
pub const LINE_BYTES_MAX: usize = 256;
/// Most clients at once; one more is told so and closed.
pub const CLIENTS_MAX: usize = 8;
/// Further clients that are heard for a `stop` alone, and then closed.
pub const STOP_CLIENTS_MAX: usize = 4;
/// Longest reply that a client accepts, bytes.
pub const REPLY_BYTES_MAX: usize = 4 << 20;

/// Where a daemon's socket may be: `$XDG_RUNTIME_DIR/telearm.sock` first if there is such a directory, then `/run/telearm.sock`.
#[must_use]
pub fn default_paths() -> Vec<PathBuf> {
    let user = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|dir| dir.is_dir())
        .map(|dir| dir.join("telearm.sock"));
    user.into_iter()
        .chain([PathBuf::from("/run/telearm.sock")])
        .collect()
}

/// The lock file of a socket.
fn lock_path(socket: &Path) -> PathBuf {
    let mut name = socket.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    socket.with_file_name(name)
}
