//! `telearm check PLAN --frame`: prints what the wizard says and feeds it what the device sends.

use std::io::{self, Write};
use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context, bail};

use super::Outcome;
use crate::config::frame::{FrameStore, Seen, Step, Verdict, Wizard};
use crate::config::{OperatorPlan, Plan};
use crate::operator::{Body, DatagramSession};
use crate::rt::clock;

/// How long to wait for a packet before time itself is told to the wizard.
const PACKET_WITHIN: Duration = Duration::from_millis(200);
/// A datagram that is longer is none of ours.
const DATAGRAM_BYTES_MAX: usize = 2048;

/// Checks one operator, or all that are not verified.
pub(super) fn run(plan: &Plan, only: Option<&str>) -> anyhow::Result<Outcome> {
    let mut store = FrameStore::load()?;
    if let Some(name) = only
        && !plan.operators.iter().any(|o| o.name == name)
    {
        bail!("the plan has no operator named {name}");
    }
    let mut all_good = true;
    let mut checked = 0;
    for operator in &plan.operators {
        let Some(frame) = operator.device.frame() else {
            continue;
        };
        let kind = operator.device.kind();
        let wanted = match only {
            Some(name) => operator.name == name,
            None => !store.is_verified(&operator.name, kind, frame),
        };
        if !wanted {
            continue;
        }
        checked += 1;
        let verdict = check(operator, frame)?;
        println!("{}: {}.", operator.name, verdict.text());
        let good = verdict == Verdict::Agrees;
        all_good &= good;
        // A contradiction takes an earlier verification back; an unclear motion says nothing.
        if good || matches!(verdict, Verdict::Mirrored | Verdict::Mixed) {
            store.record(&operator.name, kind, frame, good)?;
            println!("Written to {}.", store.path().display());
        }
    }
    if checked == 0 {
        println!("Nothing to do: the axes of all operators are verified.");
    }
    Ok(Outcome::of(all_good))
}

fn check(operator: &OperatorPlan, frame: &str) -> anyhow::Result<Verdict> {
    let listen = operator.device.listen();
    let socket = UdpSocket::bind(listen).with_context(|| {
        format!("cannot listen on UDP {listen}; is a telearm running with this plan? End it first")
    })?;
    socket.set_read_timeout(Some(PACKET_WITHIN))?;
    println!(
        "Operator {} ({frame}), UDP {listen}. Nothing moves during this check.",
        operator.name
    );
    let mut session = operator.device.settings().session();
    let mut wizard = Wizard::new(clock::now());
    let mut told = None;
    let mut heard = false;
    loop {
        let step = wizard.step();
        if told != Some(step) {
            told = Some(step);
            println!("  {}", step.instruction());
        }
        if let Step::Done(verdict) = step {
            if verdict == Verdict::TimedOut && !heard {
                bail!(
                    "no packet on UDP {listen} within a minute: `telearm check PLAN` says what to set on the device"
                );
            }
            return Ok(verdict);
        }
        io::stdout().flush()?;
        let heard_now = receive(&socket, session.as_mut())?;
        heard |= heard_now != Heard::Nothing;
        let pose = match heard_now {
            Heard::Refused => continue,
            Heard::Hand(pose) => pose,
            Heard::Nothing => None,
        };
        wizard.see(Seen {
            at: clock::now(),
            pose,
        });
    }
}

type HandPose = crate::geometry::Pose<crate::geometry::OperatorWorld, crate::geometry::Hand>;

/// What came within [`PACKET_WITHIN`].
#[derive(Debug, Clone, Copy, PartialEq)]
enum Heard {
    Nothing,
    /// A packet that the session refused: it says nothing about the hand.
    Refused,
    /// The hand, if its pose is usable.
    Hand(Option<HandPose>),
}

fn receive(socket: &UdpSocket, session: &mut dyn DatagramSession) -> io::Result<Heard> {
    let mut bytes = [0; DATAGRAM_BYTES_MAX];
    let length = match socket.recv(&mut bytes) {
        Ok(length) => length,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ) =>
        {
            return Ok(Heard::Nothing);
        }
        Err(error) => return Err(error),
    };
    let verdict = session.on_datagram(&bytes[..length], clock::now());
    Ok(match verdict.body {
        Body::Sample(sample) => Heard::Hand(sample.usable_pose()),
        Body::Drop(_) => Heard::Refused,
    })
}
