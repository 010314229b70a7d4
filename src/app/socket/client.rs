//! The command line's side.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::default_paths;
use super::request::{Reply, Request};

/// How long the client waits for an answer; longer than the daemon gives itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// Why a request did not get an answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No socket anywhere.
    #[error("no telearm is running (no control socket at {}); start one with `telearm run PLAN.toml`", join(.0))]
    NotRunning(Vec<PathBuf>),
    /// A socket without a daemon behind it.
    #[error("no telearm is running: the control socket {0} is left over from one that ended")]
    Stale(PathBuf),
    /// Another user's daemon.
    #[error(
        "the daemon at {0} belongs to another user: run this command as that user, or with sudo"
    )]
    Forbidden(PathBuf),
    /// The connection broke.
    #[error("the control socket {path} failed: {error}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

fn join(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|p| p.display().to_string())
        .collect::<Vec<_>>()
        .join(" or ")
}

/// The socket to use: the given one, or the first default place that has one.
///
/// # Errors
/// [`ClientError::NotRunning`] when there is none.
pub fn find(given: Option<&Path>) -> Result<PathBuf, ClientError> {
    let places = given.map_or_else(default_paths, |p| vec![p.to_owned()]);
    match places.iter().find(|p| p.exists()) {
        Some(path) => Ok(path.clone()),
        None => Err(ClientError::NotRunning(places)),
    }
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the given socket, or to the first default place that has one.
    ///
    /// # Errors
    /// When there is no daemon, or it belongs to somebody else.
    pub fn connect(given: Option<&Path>) -> Result<Self, ClientError> {
        let path = find(given)?;
        let stream = match UnixStream::connect(&path) {
            Ok(stream) => stream,
            Err(error) => {
                return Err(match error.kind() {
                    io::ErrorKind::ConnectionRefused => ClientError::Stale(path),
                    io::ErrorKind::PermissionDenied => ClientError::Forbidden(path),
                    _ => ClientError::Io { path, error },
                });
            }
        };
        let timeouts = stream
            .set_read_timeout(Some(ANSWER_WITHIN))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_WITHIN)));
        match timeouts {
            Ok(()) => Ok(Self {
                path,
                stream: BufReader::new(stream),
            }),
            Err(error) => Err(ClientError::Io { path, error }),
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the connection breaks or the daemon does not answer in time.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        self.exchange(request).map_err(|error| ClientError::Io {
            path: self.path.clone(),
            error,
        })
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Reply> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not a telearm's");
        // One write: a request is never seen in halves.
        self.stream
            .get_mut()
            .write_all(format!("{request}\n").as_bytes())?;
        let mut head = Vec::new();
        (&mut self.stream).take(64).read_until(b'\n', &mut head)?;
        let head = String::from_utf8(head).map_err(|_| broken())?;
        let (good, length) = Reply::decode_head(&head).ok_or_else(broken)?;
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(|_| broken())?;
        Ok(if good {
            Reply::Ok(text)
        } else {
            Reply::Refused(text)
        })
    }
}
