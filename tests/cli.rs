//! The real binary: exit status, what it says, and a whole story over the control socket with an emulated arm and headset.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The binary with a state directory and sockets of its own.
fn telearm(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telearm"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("STATE_DIRECTORY", home)
        .env("XDG_RUNTIME_DIR", home)
        .env_remove("RUST_LOG");
    command
}

fn run(home: &Path, args: &[&str]) -> Output {
    telearm(home).args(args).output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("not ended by a signal")
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Guards: 0 for help and version, 2 for usage; every command of the README is there, and none that does nothing.
#[test]
fn help_and_usage() {
    let home = home();
    let help = run(home.path(), &["--help"]);
    assert_eq!(status(&help), 0);
    for command in [
        "demo",
        "run",
        "check",
        "status",
        "watch",
        "engage",
        "disengage",
        "stop",
        "reset",
        "recover",
        "home",
        "quit",
        "latency",
        "emulate",
        "decode",
        "calibrate",
        "can",
        "bench",
    ] {
        assert!(
            text(&help).contains(&format!("\n  {command} ")),
            "{command}"
        );
        let help = run(home.path(), &[command, "--help"]);
        assert_eq!(status(&help), 0, "{command}");
        assert!(text(&help).contains("Usage:"), "{command}");
    }
    assert_eq!(status(&run(home.path(), &["--version"])), 0);
    for usage in [
        &["dance"][..],
        &[],
        &["run"],
        &["check", "a", "b"],
        &["latency", "--format", "gif"],
        &["recover"],
        &["bench", "wake", "--rate", "5"],
    ] {
        assert_eq!(status(&run(home.path(), usage)), 2, "{usage:?}");
    }
}

/// Guards: without a daemon each command over the socket fails with one sentence that says what to do.
#[test]
fn no_daemon() {
    let home = home();
    for args in [
        &["status"][..],
        &["watch"],
        &["engage"],
        &["disengage"],
        &["stop"],
        &["reset"],
        &["recover", "right", "--arm-will-drop"],
        &["home", "right", "--yes"],
        &["quit"],
    ] {
        // A daemon of this machine may own the default place.
        let socket = home.path().join("none.sock");
        let output = telearm(home.path())
            .args(args)
            .arg("--socket")
            .arg(&socket)
            .output()
            .unwrap();
        assert_eq!(status(&output), 1, "{args:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.starts_with("telearm: no telearm is running"),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    let drop = run(home.path(), &["recover", "right"]);
    assert_eq!(status(&drop), 1);
    assert!(text(&drop).contains("--arm-will-drop"));
}

/// Guards: a refused plan shows file, line, column and caret, on each command that takes one; a missing file is said.
#[test]
fn refused_plans() {
    let home = home();
    let plan = home.path().join("bad.toml");
    fs::write(&plan, "rate_hx = 200\n").unwrap();
    let plan = plan.to_str().unwrap();
    for command in ["check", "run"] {
        let output = run(home.path(), &[command, plan]);
        assert_eq!(status(&output), 1);
        let text = text(&output);
        for words in [
            "bad.toml:1:1: error: unknown key `rate_hx`",
            "^^^^^^^",
            "did you mean `rate_hz`?",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let output = run(home.path(), &[command, "nowhere.toml"]);
        assert_eq!(status(&output), 1);
        assert!(self::text(&output).contains("cannot read the plan nowhere.toml"));
    }
}

/// Guards: what `check` prints lets a user set up the device: address, port, frame; and it marks what differs from the defaults.
#[test]
fn check_tells_what_to_do() {
    let home = home();
    let output = run(home.path(), &["check", "rt-config/quest-two-pipers.toml"]);
    assert_eq!(status(&output), 0, "{}", text(&output));
    let out = text(&output);
    for words in [
        "2 lanes, 200 cycles a second",
        // Marked: has no default. Not marked: the plan says what is the default anyway.
        "* tcp_distance_min_mm = 150.0",
        "\n  hold = \"all\"",
        "listens on UDP 0.0.0.0:8889",
        "UDP port 8889",
        "NOT verified",
        "simulated: lag",
    ] {
        assert!(out.contains(words), "{words:?} in\n{out}");
    }
}

/// Guards: packets and frames decode to JSON lines, from arguments and from standard input; a line that is none gives status 1.
#[test]
fn decode() {
    use std::io::Write;
    let home = home();
    let good = run(home.path(), &["decode", "rctp", "52435450"]);
    assert_eq!(status(&good), 0);
    let value: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!(
        (&value["kind"], &value["reason"]),
        (&"drop".into(), &"short".into())
    );

    for protocol in ["fnim", "fsnh"] {
        let short = run(home.path(), &["decode", protocol, "4d494e46"]);
        let value: Value = serde_json::from_slice(&short.stdout).unwrap();
        assert_eq!(
            (&value["protocol"], &value["reason"]),
            (&protocol.into(), &"bad_length".into())
        );
    }

    let mut child = telearm(home.path())
        .args(["decode", "piper"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(b"2A1#0100010000000000\n\n// comment\n{\"can_id\": \"0x150\", \"data\": \"01\"}\nnonsense\n")
        .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), 1);
    let kinds: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["feedback", "drop", "not_a_packet"]);
    assert_eq!(status(&run(home.path(), &["decode", "morse", "00"])), 1);
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(mut command: Command) -> Self {
        Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Waits for the end; status and standard error.
    fn end(mut self) -> (i32, String) {
        let mut stderr = String::new();
        if let Some(mut pipe) = self.0.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut pipe, &mut stderr);
        }
        (self.0.wait().unwrap().code().unwrap_or(-1), stderr)
    }
}

/// A daemon with an emulated arm and an emulated headset, three processes, as a user would start them.
struct Story {
    home: tempfile::TempDir,
    plan: PathBuf,
    port: u16,
    bus: String,
}

impl Story {
    fn new(name: &str) -> Self {
        let home = home();
        // A port that is free now; nobody else on this machine asks for it in the meantime, most likely.
        let port = std::net::UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let bus = format!("local:@telearm-cli-{name}-{}", std::process::id());
        let plan = home.path().join("plan.toml");
        fs::write(
            &plan,
            format!(
                "[[operator]]\nname = \"hand\"\ndevice = \"rctp\"\nbind = \"127.0.0.1\"\nport = {port}\nengage = \"command\"\n\
                 hold_after_ms = 500\ndisengage_after_ms = 2000\n\
                 [[arm]]\nname = \"arm\"\nkind = \"piper\"\ncan = \"{bus}\"\nspeed_percent = 100\n\
                 [[lane]]\nname = \"right\"\noperator = \"hand\"\narm = \"arm\"\n"
            ),
        )
        .unwrap();
        Self {
            home,
            plan,
            port,
            bus,
        }
    }

    fn socket(&self) -> PathBuf {
        self.home.path().join("telearm.sock")
    }

    fn arm(&self) -> Running {
        let mut command = telearm(self.home.path());
        command.args(["emulate", "piper", "--can", &self.bus]);
        Running::start(command)
    }

    fn hand(&self) -> Running {
        let mut command = telearm(self.home.path());
        command.args([
            "emulate",
            "rctp",
            "--to",
            &format!("127.0.0.1:{}", self.port),
        ]);
        Running::start(command)
    }

    fn daemon(&self) -> Running {
        let mut command = telearm(self.home.path());
        command
            .arg("run")
            .arg(&self.plan)
            .arg("--socket")
            .arg(self.socket());
        Running::start(command)
    }

    fn ask(&self, args: &[&str]) -> Output {
        telearm(self.home.path())
            .args(args)
            .arg("--socket")
            .arg(self.socket())
            .output()
            .unwrap()
    }

    fn verified(&self) -> PathBuf {
        self.home.path().join("verified_frames.toml")
    }

    fn frame_check(&self) -> Child {
        telearm(self.home.path())
            .arg("check")
            .arg(&self.plan)
            .arg("--frame")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn status(&self) -> Option<Value> {
        serde_json::from_slice(&self.ask(&["status", "--json"]).stdout).ok()
    }

    /// Engages until the lane follows. On a busy machine a thread may be away for longer than the soft limit, and the lane lets go as it
    /// should: then it takes another act.
    fn engage(&self, args: &[&str]) -> Value {
        let engage = self.ask(args);
        assert_eq!(status(&engage), 0, "{}", text(&engage));
        let mut tries = 0;
        self.wait("active", |s| {
            tries += 1;
            if tries % 10 == 0 && reasons(s) == ["awaiting_engage"] {
                self.ask(args);
            }
            mode(s) == "active"
        })
    }

    /// Waits until the status is as wanted; the last one seen if it never is.
    fn wait(&self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let since = Instant::now();
        let mut last = Value::Null;
        while since.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.status() {
                if wanted(&status) {
                    return status;
                }
                last = status;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{what}: not within 30 s; the last status was\n{last:#}");
    }
}

fn mode(status: &Value) -> &str {
    status["lanes"][0]["mode"].as_str().unwrap_or("")
}

fn reasons(status: &Value) -> Vec<&str> {
    status["lanes"][0]["inhibits"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|why| why["reason"].as_str())
        .collect()
}

/// Guards: the whole way of a user: start, see why it does not move, verify the frame, engage, stop, reset, engage anew, quit; each
/// command over the socket of a real daemon.
#[test]
fn a_story_over_the_socket() {
    let story = Story::new("story");
    let _arm = story.arm();
    std::thread::sleep(Duration::from_millis(300));

    // The frame is not verified: the lane says so, and refuses to engage.
    let daemon = story.daemon();
    let hand = story.hand();
    let status = story.wait("the frame is the reason", |s| {
        reasons(s).contains(&"frame_unverified") && s["arms"][0]["phase"] == "up"
    });
    assert_eq!(mode(&status), "ready");
    assert_eq!(self::status(&story.ask(&["engage", "nobody"])), 1);
    let engage = story.ask(&["engage", "right"]);
    assert_ne!(
        mode(&story.status().unwrap()),
        "active",
        "{}",
        text(&engage)
    );
    // A second daemon on the same socket is refused, with the process id of the first.
    let (code, stderr) = story.daemon().end();
    assert_eq!(code, 1);
    assert!(
        stderr.contains(&format!("process {}", daemon.0.id())),
        "{stderr}"
    );
    assert_eq!(self::status(&story.ask(&["quit"])), 0);
    assert_eq!(daemon.end().0, 0);

    // With a verified frame it follows.
    fs::write(
        story.verified(),
        "[[verified]]\noperator = \"hand\"\ndevice = \"rctp\"\nframe = \"openxr_rh\"\n",
    )
    .unwrap();
    let daemon = story.daemon();
    story.wait("ready to engage", |s| reasons(s) == ["awaiting_engage"]);
    let status = story.engage(&["engage", "right"]);
    assert!(status["sources"][0]["sender"].is_string());
    let line = text(&story.ask(&["status"]));
    assert!(
        line.starts_with("right ") && line.contains("200 Hz"),
        "{line}"
    );

    // Stop latches, says so, and needs a reset; the reset does not engage.
    assert_eq!(self::status(&story.ask(&["stop"])), 0);
    story.wait("stopped", |s| {
        mode(s) == "stopped" && reasons(s).contains(&"stop_latched")
    });
    assert!(text(&story.ask(&["status"])).starts_with("STOPPED by"));
    let early = story.ask(&["engage", "right"]);
    assert_ne!(mode(&story.status().unwrap()), "active", "{}", text(&early));
    let reset = story.ask(&["reset"]);
    assert_eq!(self::status(&reset), 0, "{}", text(&reset));
    story.wait("ready again", |s| reasons(s) == ["awaiting_engage"]);
    story.engage(&["engage"]);

    // The hand goes: the lane lets go, and stays so when the hand is back.
    drop(hand);
    story.wait("let go", |s| reasons(s).contains(&"operator_stale"));
    let _hand = story.hand();
    let status = story.wait("hand is back", |s| reasons(s) == ["awaiting_engage"]);
    assert_eq!(mode(&status), "ready");

    // Histograms while it runs, and after it has ended.
    let latency = story.ask(&["latency"]);
    assert_eq!(self::status(&latency), 0);
    assert!(text(&latency).contains("wake_up"), "{}", text(&latency));
    let watch = story.ask(&["watch", "--seconds", "1"]);
    assert_eq!(self::status(&watch), 0);
    assert!(text(&watch).contains("right READY"), "{}", text(&watch));
    assert_eq!(self::status(&story.ask(&["quit"])), 0);
    let (code, stderr) = daemon.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(!story.socket().exists());
    let last = telearm(story.home.path())
        .env("XDG_RUNTIME_DIR", story.home.path())
        .args(["latency", "--format", "hdr"])
        .output()
        .unwrap();
    assert!(text(&last).contains("# wake_up"), "{}", text(&last));
}

/// Guards: a port that somebody has is said at once, with what to do, and nothing is written down.
#[test]
fn frame_check_needs_the_port() {
    let story = Story::new("port");
    let _taken = std::net::UdpSocket::bind(("127.0.0.1", story.port)).unwrap();
    let output = story.frame_check().wait_with_output().unwrap();
    assert_eq!(status(&output), 1);
    assert!(
        text(&output).contains("is a telearm running"),
        "{}",
        text(&output)
    );
    assert!(!story.verified().exists());
}

/// Sends what a headset sends while its wearer does what the wizard asks: rest, push forward, rest, turn left. `mirrored` is a sender
/// with left-handed axes.
fn push_and_turn(to: u16, mirrored: bool) {
    use telearm::operator::rctp::wire::{Flags, Packet, emit};
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sign = if mirrored { -1.0 } else { 1.0 };
    for tick in 0..200_u32 {
        let t = f64::from(tick) * 0.02;
        let part = |from: f64| ((t - from) / 0.5).clamp(0.0, 1.0);
        let (push, half_turn) = (0.2 * part(1.2), 0.5 * part(2.9));
        let packet = Packet {
            sender_time_s: 10.0 + t,
            // A breath of motion, so that the stream is not taken for a frozen one.
            position_m: [
                (0.001 * (t * 7.0).sin()) as f32,
                1.2,
                (-0.3 - sign * push) as f32,
            ],
            orientation_xyzw: [
                0.0,
                (sign * half_turn.sin()) as f32,
                0.0,
                half_turn.cos() as f32,
            ],
            gripper: 1.0,
            flags: Flags(Flags::TRACKED),
        };
        let _ = socket.send_to(&emit(&packet), ("127.0.0.1", to));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Guards: the wizard, over real UDP: a sender with the plan's axes agrees and is written down; one of the other handedness is found out.
#[test]
fn frame_check_finds_out() {
    for (mirrored, code, words) in [(false, 0, "agree with"), (true, 1, "set the other frame")] {
        let story = Story::new(if mirrored { "mirrored" } else { "agrees" });
        let check = story.frame_check();
        // Until the port is open, packets are lost; the wizard waits for rest anyway.
        std::thread::sleep(Duration::from_millis(500));
        push_and_turn(story.port, mirrored);
        let output = check.wait_with_output().unwrap();
        assert_eq!(status(&output), code, "{}", text(&output));
        assert!(text(&output).contains(words), "{}", text(&output));
        let written = fs::read_to_string(story.verified()).unwrap();
        assert_eq!(written.contains("openxr_rh"), !mirrored, "{written}");
        let check = text(&run(
            story.home.path(),
            &["check", story.plan.to_str().unwrap()],
        ));
        assert_eq!(check.contains("NOT verified"), mirrored, "{check}");
    }
}

/// Guards: the whole of `telearm calibrate glove` over real UDP: an emulated hand does what it is asked for, and the lines that come out
/// make a plan; an operator that is no glove is refused.
#[test]
fn calibrate_glove() {
    let home = home();
    let port = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let plan = home.path().join("plan.toml");
    let text = |glove: &str| {
        format!(
            "[[operator]]\nname = \"hand\"\ndevice = \"rctp\"\n\
             [[operator]]\nname = \"glove\"\ndevice = \"glove\"\nbind = \"127.0.0.1\"\nport = {port}\n{glove}\
             [[arm]]\nname = \"arm\"\nkind = \"piper\"\n\
             [[lane]]\nname = \"right\"\noperator = \"hand\"\ngripper_operator = \"glove\"\narm = \"arm\"\n"
        )
    };
    fs::write(&plan, text("")).unwrap();
    let path = plan.to_str().unwrap();
    let refused = run(home.path(), &["calibrate", "glove", path, "hand"]);
    assert_eq!(status(&refused), 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is no glove"));

    let mut calibrate = telearm(home.path());
    calibrate.args(["calibrate", "glove", path, "glove"]);
    let calibrate = calibrate
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut hands = telearm(home.path());
    let to = format!("127.0.0.1:{port}");
    // Both hands: the left one's packets are none of this operator's.
    hands.args([
        "emulate",
        "glove",
        "--to",
        &to,
        "--hand",
        "both",
        "--script",
        "calibrate",
    ]);
    let _hands = Running::start(hands);
    let output = calibrate.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let keys = ["open_mm = ", "closed_mm = ", "pinky_curled_mm = "];
    let lines: String = said
        .lines()
        .filter(|l| l.contains("_mm = "))
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(keys.iter().all(|key| lines.contains(key)), "{said}");
    fs::write(&plan, text(&lines)).unwrap();
    let check = run(home.path(), &["check", path]);
    assert_eq!(status(&check), 0, "{lines}");
}
