//! What the machine around the program can do wrong: other programs, full disks, blocked pipes.

use std::fs::OpenOptions;
use std::net::UdpSocket;
use std::process::Stdio;

use telearm::app::socket::Request;
use telearm::rt::clock;

use crate::rig::process::Daemon;
use crate::rig::{Rig, Setup, pause};

/// Guards: a second process on the arm's bus is refused, and told the process id of the first.
#[test]
fn second_process_on_the_bus() {
    let rig = Rig::new();
    let other = Rig::idle(Setup::default());
    let plan = std::fs::read_to_string(rig.plan()).unwrap();
    // Another port and socket, the same bus.
    let plan = plan.replace(&rig.side().port.to_string(), &other.side().port.to_string());
    std::fs::write(other.plan(), plan).unwrap();
    let (status, said) = Daemon::start(other.run_command()).end();
    assert_eq!(status.code(), Some(1));
    assert!(
        said.contains(&rig.pid().to_string()) && said.contains("arm_right"),
        "{said}"
    );
    rig.follow();
    rig.finish();
}

/// Guards: a port that somebody has is named, with who has it, before anything is sent to an arm.
#[test]
fn port_in_use() {
    let mut rig = Rig::idle(Setup::default());
    let _taken = UdpSocket::bind(("127.0.0.1", rig.side().port)).unwrap();
    rig.start();
    let (status, said) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), Some(1));
    for words in [
        format!("UDP port {} is in use", rig.side().port),
        format!("pid {}", std::process::id()),
    ] {
        assert!(said.contains(&words), "{words:?} in {said}");
    }
    assert_eq!(rig.side().tap().host_frames().count(), 0);
}

/// Runs a daemon whose output goes nowhere good, and sees that control does not mind: it follows at its rate, stops and resets.
fn output_does_not_matter(stdout: Stdio, stderr: Stdio, keep: impl Sized) {
    let mut rig = Rig::idle(Setup::default());
    let mut command = rig.run_command();
    command.arg("--watch").env("RUST_LOG", "trace");
    rig.daemon = Some(Daemon::watch(
        command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap(),
    ));
    rig.wait_up();
    rig.follow();
    let since = clock::now();
    pause(1000);
    let sent = rig.side().tap().targets_between(since, clock::now()).len();
    assert!(sent > 150, "{sent} commands in a second");
    rig.ask_ok(&Request::Stop);
    rig.wait_mode("stopped");
    rig.reset();
    rig.follow();
    rig.daemon().signal(libc::SIGTERM);
    let (status, _) = rig.daemon.take().unwrap().end();
    assert!(status.code().is_some(), "ended by itself");
    rig.check_bus();
    drop(keep);
}

#[test]
fn log_and_terminal_on_a_full_disk() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    output_does_not_matter(full().into(), full().into(), ());
}

#[test]
fn stdout_and_stderr_closed_by_the_reader() {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    output_does_not_matter(closed().into(), closed().into(), ());
}

/// Guards: whoever stops reading the log (a paused terminal, a stuck pipe) does not stop control: the stop bit is honoured, the watchdog
/// has nothing to do, and SIGTERM ends it.
#[test]
fn stdout_and_stderr_into_a_pipe_that_nobody_reads() {
    let (out_reader, out) = std::io::pipe().unwrap();
    let (err_reader, err) = std::io::pipe().unwrap();
    fill(&out);
    fill(&err);
    let mut rig = Rig::idle(Setup::default());
    let mut command = rig.run_command();
    command.env("RUST_LOG", "trace");
    rig.daemon = Some(Daemon::watch(
        command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap(),
    ));
    // The service thread hangs in its first line of log, so there is nobody to ask; control must do without.
    let mut up = false;
    for _ in 0..300 {
        pause(100);
        up = rig.side().tap().targets().len() > 20;
        if up {
            break;
        }
    }
    assert!(up, "control waits for the log");
    let since = clock::now();
    pause(1000);
    let sent = rig.side().tap().targets_between(since, clock::now()).len();
    assert!(sent > 150, "{sent} commands in a second");
    drop((out_reader, err_reader));
    rig.wait("the pipe is gone, the service runs", |s| s.phase(0) == "up");
    rig.daemon().signal(libc::SIGTERM);
    let (status, _) = rig.daemon.take().unwrap().end();
    assert!(status.code().is_some(), "ended by itself");
    rig.check_bus();
}

/// Fills a pipe to the brim.
fn fill(pipe: &std::io::PipeWriter) {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let set = |flags: i32| {
        #[expect(unsafe_code, reason = "fcntl on a borrowed descriptor")]
        // SAFETY: touches no memory.
        let result = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags) };
        assert_eq!(result, 0);
    };
    set(libc::O_NONBLOCK);
    let mut writer = pipe;
    while writer.write(&[b'.'; 4096]).is_ok() {}
    while writer.write(b".").is_ok() {}
    set(0);
}
