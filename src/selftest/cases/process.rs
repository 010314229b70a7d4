//! What happens to the process.

use super::BRAKING;
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::daemon::Daemon;
use crate::selftest::stand::{Setup, Stand, pause, text};
use crate::time::Span;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "second_instance",
        what: "a second program for the same bus",
        expected: "refused by process id; the first goes on",
        setup: Setup::default,
        play: second_instance,
    },
    Fault {
        name: "paused",
        what: "process paused for 1 s while following",
        expected: "disengaged, nothing caught up with",
        setup: Setup::default,
        play: paused,
    },
    Fault {
        name: "terminated",
        what: "SIGTERM while following",
        expected: "brakes, stays, exit 0",
        setup: Setup::default,
        play: terminated,
    },
    Fault {
        name: "killed",
        what: "SIGKILL while following, then a new start",
        expected: "silence; taken up without a drop",
        setup: || Setup {
            allowed: crate::selftest::tap::Allowed {
                arm_stop: false,
                cut_off: true,
            },
            ..Setup::default()
        },
        play: killed,
    },
];

fn second_instance(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let pid = stand.daemon()?.pid();
    // Its own port is taken as well, and that would be refused first: the plan of the second one has another.
    let plan = std::fs::read_to_string(stand.dir().join("plan.toml")).map_err(text)?;
    let port = crate::selftest::stand::free_port()?;
    let other = plan.replace(&format!("port = {}", stand.port), &format!("port = {port}"));
    let file = stand.dir().join("second.toml");
    std::fs::write(&file, other).map_err(text)?;
    let mut command = super::super::daemon::program(stand.exe(), stand.dir());
    command
        .arg("run")
        .arg(&file)
        .arg("--socket")
        .arg(stand.dir().join("second.sock"));
    let output = command.output().map_err(text)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(1) || !said.contains(&format!("in use by process {pid}")) {
        return Err(format!("it ended with {}: {said}", output.status));
    }
    stand.wait_mode("active")?;
    super::moves_on(stand)?;
    Ok(format!(
        "refused: in use by process {pid}; the first follows on"
    ))
}

fn paused(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.daemon()?.signal("STOP").map_err(text)?;
    pause(1000);
    let back = clock::now();
    stand.daemon()?.signal("CONT").map_err(text)?;
    let status = stand.wait("being disengaged", |s| {
        matches!(s.mode(), "ready" | "stopped" | "fault")
    })?;
    pause(300);
    stand.still_since(back + BRAKING)?;
    // The arm's feedback of that second may have overflowed its socket; then it counts as lost.
    if status.mode() != "ready" {
        stand.reset()?;
    }
    stand.inert_then_follow()?;
    Ok(format!("{}; inert until engaged", status.mode_text()))
}

fn terminated(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    stand.daemon()?.signal("TERM").map_err(text)?;
    stand.ended_well()?;
    let tap = stand.tap();
    let silent = tap
        .last_host_frame()
        .map_or(Span::ZERO, |at| at.age_of(from));
    stand.still_since(from + BRAKING)?;
    if !stand.arm.powered() {
        return Err("the motors lost their power".to_owned());
    }
    Ok(format!(
        "exit 0, last frame {:.0} ms after the signal, motors on",
        silent.as_ms()
    ))
}

fn killed(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let mut daemon: Daemon = stand.take_daemon()?;
    daemon.signal("KILL").map_err(text)?;
    daemon.wait_end().map_err(text)?;
    pause(50);
    let sent = stand.tap().host_frames();
    pause(500);
    if stand.tap().host_frames() != sent {
        return Err("frames came after the end".to_owned());
    }
    let before = stand.arm.q();
    stand.hand.set(|h| h.sway_m = 0.0);
    stand.start()?;
    stand.wait_up()?;
    let moved = before
        .iter()
        .zip(stand.arm.q())
        .fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
    if moved > 0.005 || !stand.arm.powered() {
        return Err(format!(
            "a joint moved by {:.2} deg at the new start",
            moved.to_degrees()
        ));
    }
    stand.follow()?;
    Ok(format!(
        "silence, motors on; a new start moved no joint by more than {:.2} deg",
        moved.to_degrees()
    ))
}
