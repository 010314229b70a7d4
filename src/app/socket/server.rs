//! The daemon's side.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::request::{BadRequest, Reply, Request};
use super::{CLIENTS_MAX, LINE_BYTES_MAX, STOP_CLIENTS_MAX, lock_path};

/// How long a client waits for the service thread.
const REPLY_WITHIN: Duration = Duration::from_secs(2);
/// How often a quiet connection looks whether the daemon ends.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A client that does not take its reply for this long is closed.
const WRITE_WITHIN: Duration = Duration::from_secs(1);

/// A request with the place for its reply.
#[derive(Debug)]
pub struct Incoming {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes. Dropping it unanswered tells the client so.
    pub reply: ReplySlot,
}

/// What happens on `stop`, at once and in the client's own thread: a stop waits for nobody.
pub type OnStop = Arc<dyn Fn() + Send + Sync>;

/// Takes one reply; never blocks.
#[derive(Debug)]
pub struct ReplySlot(Sender<Reply>);

impl ReplySlot {
    /// Answers. A client that has gone away does not matter.
    pub fn send(self, reply: Reply) {
        let _ = self.0.try_send(reply);
    }
}

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another daemon has it.
    #[error(
        "another telearm (process {pid}) holds the control socket {path}; end it first, or use --socket with another path"
    )]
    Live {
        /// The socket.
        path: PathBuf,
        /// The other daemon, as its lock file says.
        pid: String,
    },
    /// The system refused.
    #[error("cannot open the control socket {path}: {error}; --socket names another place")]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The listening socket with its threads. Dropping it ends them and removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// Held for the life of the server; the kernel lets go of it when the process dies.
    _lock: File,
    ending: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
    incoming: Receiver<Incoming>,
}

impl Server {
    /// Opens the socket and starts listening. `on_stop` is called for each `stop`, before the request goes on to the service thread,
    /// and also when that thread is busy or gone; it has to latch, and may be called from several threads.
    ///
    /// # Errors
    /// When a living daemon has the socket, or the system refuses.
    pub fn open(path: &Path, on_stop: OnStop) -> Result<Self, ServerError> {
        let io = |error| ServerError::Io {
            path: path.to_owned(),
            error,
        };
        let lock = lock(path)?;
        let listener = bind_private(path).map_err(io)?;
        let ending = Arc::new(AtomicBool::new(false));
        // A request waits here only while the service thread handles another.
        let (sender, incoming) = bounded(CLIENTS_MAX);
        let acceptor = {
            let ending = Arc::clone(&ending);
            thread::Builder::new()
                .name("socket".to_owned())
                .spawn(move || {
                    let door = Door {
                        sender,
                        on_stop,
                        ending,
                    };
                    accept(&listener, &door);
                })
                .map_err(io)?
        };
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
            ending,
            acceptor: Some(acceptor),
            incoming,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The requests, for the service thread.
    #[must_use]
    pub const fn incoming(&self) -> &Receiver<Incoming> {
        &self.incoming
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        // Wakes the acceptor; a socket that somebody removed leaves it asleep, and then the process's end takes it.
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let (true, Some(acceptor)) = (woken, self.acceptor.take()) {
            let _ = acceptor.join();
        }
    }
}

/// Takes the lock beside the socket. Whoever has it may replace the socket.
fn lock(socket: &Path) -> Result<File, ServerError> {
    let io = |error| ServerError::Io {
        path: socket.to_owned(),
        error,
    };
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(lock_path(socket))
        .map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.take(16).read_to_string(&mut pid);
            return Err(ServerError::Live {
                path: socket.to_owned(),
                pid: pid.trim().to_owned(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    file.set_len(0).map_err(io)?;
    file.rewind().map_err(io)?;
    writeln!(file, "{}", std::process::id()).map_err(io)?;
    Ok(file)
}

/// Binds in a directory that nobody else can enter, sets the mode, and moves the socket to its place: there is no moment in which
/// somebody else can connect.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    if let Ok(old) = fs::symlink_metadata(path) {
        use std::os::unix::fs::FileTypeExt;
        if !old.file_type().is_socket() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "something that is not a socket stands there",
            ));
        }
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let private = parent.join(format!(".telearm-{}", std::process::id()));
    let _ = fs::remove_dir_all(&private);
    DirBuilder::new().mode(0o700).create(&private)?;
    let inner = private.join("s");
    let bound = UnixListener::bind(&inner).and_then(|listener| {
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o600))?;
        fs::rename(&inner, path)?;
        Ok(listener)
    });
    let _ = fs::remove_dir_all(&private);
    bound
}

/// What every client thread needs.
#[derive(Clone)]
struct Door {
    sender: Sender<Incoming>,
    on_stop: OnStop,
    ending: Arc<AtomicBool>,
}

fn accept(listener: &UnixListener, door: &Door) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if door.ending.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, most likely: no use in spinning.
            thread::sleep(LOOK_EVERY);
            continue;
        };
        let _ = stream.set_write_timeout(Some(WRITE_WITHIN));
        let place = clients.fetch_add(1, Ordering::AcqRel);
        let slot = Slot(Arc::clone(&clients));
        if place >= CLIENTS_MAX + STOP_CLIENTS_MAX {
            refuse(stream);
            continue;
        }
        let door = door.clone();
        let spawned = thread::Builder::new()
            .name("client".to_owned())
            .spawn(move || {
                let _slot = slot;
                // A broken connection is the client's business.
                let _ = serve(stream, &door, place >= CLIENTS_MAX);
            });
        if spawned.is_err() {
            log::warn!("no thread for a client of the control socket");
        }
    }
}

/// Counts a client down when its thread ends, however it ends.
struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

const TOO_MANY: &str = "too many clients on the control socket";

fn refuse(mut stream: UnixStream) {
    let _ = stream.write_all(&Reply::Refused(TOO_MANY.to_owned()).encode());
}

/// One client, until it closes or the daemon ends. The last places are for a stop alone.
fn serve(mut stream: UnixStream, door: &Door, stop_only: bool) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut lines = Lines::default();
    loop {
        match lines.next(&mut stream) {
            Ok(None) => return Ok(()),
            Ok(Some(line)) => {
                let request = line.and_then(|line| line.parse());
                if request == Ok(Request::Stop) {
                    (door.on_stop)();
                }
                let reply = match request {
                    Err(bad) => Reply::Refused(bad.to_string()),
                    Ok(Request::Stop) => stop(door),
                    Ok(_) if stop_only => Reply::Refused(TOO_MANY.to_owned()),
                    Ok(request) => ask(request, &door.sender),
                };
                stream.write_all(&reply.encode())?;
                if stop_only {
                    return Ok(());
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
        if door.ending.load(Ordering::Acquire) {
            return Ok(());
        }
    }
}

/// The stop is latched already; the service thread only says so, and its silence does not make it less of a stop.
fn stop(door: &Door) -> Reply {
    match ask(Request::Stop, &door.sender) {
        Reply::Ok(text) => Reply::Ok(text),
        Reply::Refused(why) => Reply::Ok(format!("stop latched ({why})")),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Hands a request to the service thread and waits for the answer.
fn ask(request: Request, sender: &Sender<Incoming>) -> Reply {
    let (slot, answer) = bounded(1);
    let incoming = Incoming {
        request,
        reply: ReplySlot(slot),
    };
    match sender.try_send(incoming) {
        Ok(()) => answer.recv_timeout(REPLY_WITHIN).unwrap_or_else(|_| {
            Reply::Refused("the daemon did not answer; whether it acted is not known".to_owned())
        }),
        Err(TrySendError::Full(_)) => Reply::Refused("the daemon is busy".to_owned()),
        Err(TrySendError::Disconnected(_)) => Reply::Refused("the daemon is ending".to_owned()),
    }
}

/// Cuts a stream into lines of bounded length. A line that is too long is skipped to its end and reported once.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    skipping: bool,
}

impl Lines {
    /// The next line; `None` at the end of the stream.
    fn next(&mut self, stream: &mut UnixStream) -> io::Result<Option<Result<String, BadRequest>>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                if std::mem::take(&mut self.skipping) {
                    return Ok(Some(Err(BadRequest::TooLong)));
                }
                if line.len() > LINE_BYTES_MAX {
                    return Ok(Some(Err(BadRequest::TooLong)));
                }
                let text = String::from_utf8(line).map_err(|_| BadRequest::NotText);
                return Ok(Some(text));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                self.skipping = true;
                self.buffer.clear();
            }
            let mut chunk = [0; 512];
            let n = stream.read(&mut chunk)?;
            if n == 0 {
                return Ok(None);
            }
            self.buffer.extend_from_slice(&chunk[..n]);
        }
    }
}
