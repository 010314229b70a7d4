//! Over real sockets in a private directory.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// A service that answers every request with its own text, until the server goes away.
fn echo(server: &Server) -> thread::JoinHandle<usize> {
    let incoming = server.incoming().clone();
    thread::spawn(move || {
        let mut count = 0;
        for Incoming { request, reply } in incoming {
            count += 1;
            reply.send(match request {
                Request::Reset => Reply::Refused("a source still asserts stop".to_owned()),
                other => Reply::Ok(other.to_string()),
            });
        }
        count
    })
}

fn open(path: &Path) -> Result<Server, ServerError> {
    Server::open(path, std::sync::Arc::new(|| {}))
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Guards: what is written is what is read, for every request; and the line is text that a person can type.
#[test]
fn requests_survive_the_line() {
    let lane = || Some("left-2".to_owned());
    for request in [
        Request::Status(StatusFormat::Line),
        Request::Status(StatusFormat::View),
        Request::Status(StatusFormat::Json),
        Request::Engage(None),
        Request::Engage(lane()),
        Request::Disengage(None),
        Request::Disengage(lane()),
        Request::Stop,
        Request::Reset,
        Request::Recover {
            lane: "a".to_owned(),
            arm_will_drop: true,
        },
        Request::Recover {
            lane: "a".to_owned(),
            arm_will_drop: false,
        },
        Request::Home {
            lane: "a".to_owned(),
            run: HomeRun::Confirmed,
        },
        Request::Home {
            lane: "a".to_owned(),
            run: HomeRun::Held,
        },
        Request::Home {
            lane: "a".to_owned(),
            run: HomeRun::Released,
        },
        Request::Latency(LatencyFormat::Text),
        Request::Latency(LatencyFormat::Hdr),
        Request::Latency(LatencyFormat::Svg),
        Request::Quit,
    ] {
        assert_eq!(request.to_string().parse(), Ok(request));
    }
    assert_eq!("stop now please !".parse(), Ok(Request::Stop));
    for bad in [
        "",
        "halt",
        "engage a b",
        "engage A",
        "home a",
        "recover",
        "reset x",
        "status x",
    ] {
        assert!(bad.parse::<Request>().is_err(), "{bad}");
    }
}

/// Guards: a good request is answered, a refusal stays a refusal, and one connection carries many requests.
#[test]
fn ask_and_answer() {
    let dir = dir();
    let path = dir.path().join("t.sock");
    let server = open(&path).unwrap();
    let service = echo(&server);
    let mut client = Client::connect(Some(&path)).unwrap();
    let request = Request::Engage(Some("right".to_owned()));
    for _ in 0..3 {
        assert_eq!(
            client.ask(&request).unwrap(),
            Reply::Ok("engage right".to_owned())
        );
    }
    assert!(matches!(
        client.ask(&Request::Reset).unwrap(),
        Reply::Refused(why) if why.contains("asserts stop")
    ));
    drop(client);
    drop(server);
    assert_eq!(service.join().unwrap(), 4);
}

/// Guards: nobody but the owner can connect, at no moment; the file's mode says so.
#[test]
fn only_the_owner() {
    let dir = dir();
    let path = dir.path().join("t.sock");
    let server = open(&path).unwrap();
    let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&lock_path(&path)), 0o600);
    drop(server);
    assert!(!path.exists(), "the socket goes with the daemon");
}

/// Guards: a living daemon is never replaced, and the message has its process id; a dead one's socket is.
#[test]
fn living_refused_dead_replaced() {
    let dir = dir();
    let path = dir.path().join("t.sock");
    let first = open(&path).unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    drop(first);

    // A socket file without a listener, as a crash leaves it.
    drop(UnixListener::bind(&path).unwrap());
    assert!(matches!(
        Client::connect(Some(&path)),
        Err(ClientError::Stale(_))
    ));
    let server = open(&path).unwrap();
    let _service = echo(&server);
    assert!(
        Client::connect(Some(&path))
            .unwrap()
            .ask(&Request::Stop)
            .is_ok()
    );
}

/// Guards: a file that is no socket is left alone.
#[test]
fn other_files_are_left_alone() {
    let dir = dir();
    let path = dir.path().join("precious");
    std::fs::write(&path, "data").unwrap();
    assert!(open(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "data");
}

/// Guards: bad lines, endless lines, binary lines and lines in pieces get an error reply each, and the connection lives.
#[test]
fn bad_lines_do_not_end_a_connection() {
    let dir = dir();
    let path = dir.path().join("t.sock");
    let server = open(&path).unwrap();
    let _service = echo(&server);
    let mut raw = UnixStream::connect(&path).unwrap();
    raw.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut expect = |bytes: &[u8], answer: &str| {
        for piece in bytes.chunks(100) {
            raw.write_all(piece).unwrap();
        }
        let mut got = vec![0; 512];
        let n = raw.read(&mut got).unwrap();
        let got = String::from_utf8_lossy(&got[..n]).into_owned();
        assert!(got.contains(answer), "{got:?} has no {answer:?}");
    };
    expect(b"dance\n", "unknown request");
    expect(b"\n", "empty");
    expect(b"engage \xff\xfe\n", "UTF-8");
    let mut long = vec![b'x'; 100_000];
    long.push(b'\n');
    expect(&long, "too long");
    let mut stop_in_a_long_line = vec![b' '; 300];
    stop_in_a_long_line.extend(b"stop\n");
    expect(&stop_in_a_long_line, "too long");
    expect(b"engage right\r\n", "ok 12");
}

/// Guards: there are never more than the allowed clients, and a place becomes free again.
#[test]
fn clients_are_bounded() {
    let dir = dir();
    let path = dir.path().join("t.sock");
    let server = open(&path).unwrap();
    let _service = echo(&server);
    let mut clients: Vec<_> = (0..CLIENTS_MAX)
        .map(|_| {
            let mut client = Client::connect(Some(&path)).unwrap();
            client.ask(&Request::Stop).unwrap();
            client
        })
        .collect();
    let mut extra = Client::connect(Some(&path)).unwrap();
    let status = Request::Status(StatusFormat::Line);
    assert!(matches!(extra.ask(&status), Ok(Reply::Refused(_))));
    // A stop is heard even now.
    let mut stop = Client::connect(Some(&path)).unwrap();
    assert!(matches!(stop.ask(&Request::Stop), Ok(Reply::Ok(_))));
    clients.pop();
    let since = Instant::now();
    let free = loop {
        let mut client = Client::connect(Some(&path)).unwrap();
        if let Ok(Reply::Ok(_)) = client.ask(&status) {
            break true;
        }
        if since.elapsed() > Duration::from_secs(5) {
            break false;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(free);
}

/// Guards: a service that forgets to answer, or is gone, does not hang the client for ever.
#[test]
fn unanswered_is_said() {
    let dir = dir();
    let path = dir.path().join("t.sock");
    let server = open(&path).unwrap();
    let incoming = server.incoming().clone();
    let forgetful = thread::spawn(move || drop(incoming.recv()));
    let mut client = Client::connect(Some(&path)).unwrap();
    let Reply::Refused(why) = client.ask(&Request::Reset).unwrap() else {
        panic!("an unanswered request is not good");
    };
    assert!(why.contains("did not answer"), "{why}");
    forgetful.join().unwrap();
}

/// Guards: the message for the most common mistake says what to do.
#[test]
fn no_daemon() {
    let dir = dir();
    let error = Client::connect(Some(&dir.path().join("none"))).unwrap_err();
    assert!(
        error.to_string().contains("no telearm is running"),
        "{error}"
    );
}

/// Guards: a stop latches at once, even when the service thread is stuck and the queue is full, and is never reported as refused.
#[test]
fn stop_waits_for_nobody() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let dir = dir();
    let path = dir.path().join("t.sock");
    let latched = Arc::new(AtomicU32::new(0));
    let on_stop = {
        let latched = Arc::clone(&latched);
        Arc::new(move || {
            latched.fetch_add(1, Ordering::SeqCst);
        })
    };
    // Nobody takes requests out.
    let server = Server::open(&path, on_stop).unwrap();
    let mut raw = UnixStream::connect(&path).unwrap();
    let since = Instant::now();
    raw.write_all(b"stop\n").unwrap();
    while latched.load(Ordering::SeqCst) == 0 {
        assert!(since.elapsed() < Duration::from_secs(1));
        thread::sleep(Duration::from_millis(1));
    }
    let mut client = Client::connect(Some(&path)).unwrap();
    assert!(matches!(client.ask(&Request::Stop).unwrap(), Reply::Ok(t) if t.contains("latched")));
    assert_eq!(latched.load(Ordering::SeqCst), 2);
    drop(server);
}
