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

/// Guards: whoever stops reading the log (a paused terminal, a stuck pipe) does not stop anything: control, the stop bit, the control
/// socket and SIGTERM work as ever.
#[test]
fn stderr_into_a_pipe_that_nobody_reads() {
    let (_reader, stderr) = std::io::pipe().unwrap();
    let mut rig = Rig::idle(Setup::default());
    let mut command = rig.run_command();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    rig.daemon = Some(Daemon::watch(
        command.stderr(stderr.try_clone().unwrap()).spawn().unwrap(),
    ));
    rig.wait_up();
    rig.follow();
    fill(&stderr);
    for _ in 0..3 {
        rig.follow();
        let since = clock::now();
        pause(500);
        let sent = rig.side().tap().targets_between(since, clock::now()).len();
        assert!(sent > 75, "{sent} commands in half a second");
        rig.hand().set(|h| h.stop = true);
        rig.wait_mode("stopped");
        rig.hand().set(|h| h.stop = false);
        rig.hand().wait_sent(3);
        rig.reset();
    }
    rig.daemon().signal(libc::SIGTERM);
    let (status, _) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), Some(0));
    rig.check_bus();
}

/// Fills a pipe to the brim, through a description of its own: the flags of the daemon's end stay as they are.
fn fill(pipe: &std::io::PipeWriter) {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let mut own = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", pipe.as_raw_fd()))
        .unwrap();
    while own.write(&[b'.'; 4096]).is_ok() {}
    while own.write(b".").is_ok() {}
}
