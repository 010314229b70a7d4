//! `telearm calibrate`: prints what the calibrator says and feeds it what the device sends.

use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::{Outcome, load_plan};
use crate::config::{DevicePlan, Plan};
use crate::operator::glove::calibrate::{Calibrator, Step, live_line, plan_lines};
use crate::operator::glove::wire::parse_any;
use crate::operator::glove::{Calibration, Fingers, Settings};
use crate::rt::clock;

/// How long to wait for a packet before time itself is told to the calibrator.
const PACKET_WITHIN: Duration = Duration::from_millis(200);
/// The live line is painted this often.
const PAINT_EVERY: Duration = Duration::from_millis(150);
/// A datagram that is longer is none of ours.
const DATAGRAM_BYTES_MAX: usize = 2048;

/// Measure a device's wearer; prints the lines for the plan.
#[derive(Debug, Subcommand)]
pub(super) enum CalibrateCommand {
    /// A glove: open hand, thumb on index, ring and pinky curled. Nothing moves
    Glove(GloveArgs),
}

/// Whose glove.
#[derive(Debug, Args)]
pub(super) struct GloveArgs {
    /// The plan
    plan: PathBuf,
    /// The operator in it
    operator: String,
}

impl CalibrateCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Glove(args) => args.run(),
        }
    }
}

impl GloveArgs {
    fn run(self) -> anyhow::Result<Outcome> {
        let plan = load_plan(&self.plan, false)?.plan;
        let settings = glove_of(&plan, &self.operator)?;
        let listen = settings.door.listen;
        let socket = UdpSocket::bind(listen).with_context(|| {
            format!(
                "cannot listen on UDP {listen}; is a telearm running with this plan? End it first"
            )
        })?;
        socket.set_read_timeout(Some(PACKET_WITHIN))?;
        println!(
            "Operator {}, {} hand, UDP {listen}. Nothing moves while it is calibrated.",
            self.operator,
            settings.hand.name()
        );
        let Some(found) = measure(&socket, settings)? else {
            return Ok(Outcome::Refused);
        };
        println!(
            "Thumb to index: open {:.1} mm, closed {:.1} mm.\nIn {}, under [[operator]] with name = \"{}\":\n\n{}",
            found.aperture.far_mm,
            found.aperture.near_mm,
            plan.file,
            self.operator,
            plan_lines(&found)
        );
        Ok(Outcome::Good)
    }
}

fn glove_of<'a>(plan: &'a Plan, name: &str) -> anyhow::Result<&'a Settings> {
    let Some(operator) = plan.operators.iter().find(|o| o.name == name) else {
        let known: Vec<_> = plan.operators.iter().map(|o| o.name.as_str()).collect();
        bail!(
            "the plan has no operator named {name}; there are {}",
            known.join(", ")
        );
    };
    match &operator.device {
        DevicePlan::Glove(settings) => Ok(settings),
        other => bail!("operator {name} is no glove but {}", other.kind()),
    }
}

/// Until the calibrator is done; `None` when it gave up.
fn measure(socket: &UdpSocket, settings: &Settings) -> anyhow::Result<Option<Calibration>> {
    let mut calibrator = Calibrator::new(clock::now());
    let mut told = None;
    let mut heard = false;
    let mut painted = Instant::now();
    loop {
        let step = calibrator.step();
        if told.replace(step) != Some(step) {
            println!("\n  {}", step.instruction());
        }
        match step {
            Step::Done(found) => return Ok(Some(found)),
            Step::TimedOut if !heard => bail!(
                "no packet of this hand within a minute: `telearm check PLAN` says what to set on the device"
            ),
            Step::TimedOut => return Ok(None),
            Step::Open | Step::Pinch | Step::Curl => {}
        }
        let fingers = receive(socket, settings)?;
        heard |= fingers.is_some();
        calibrator.see(clock::now(), fingers.as_ref());
        if painted.elapsed() > PAINT_EVERY {
            painted = Instant::now();
            print!("\r    {}   ", live_line(fingers.as_ref()));
            io::stdout().flush()?;
        }
    }
}

/// The next packet of this hand that comes within [`PACKET_WITHIN`]; those of the other hand are passed over.
fn receive(socket: &UdpSocket, settings: &Settings) -> io::Result<Option<Fingers>> {
    let mut bytes = [0; DATAGRAM_BYTES_MAX];
    let until = Instant::now() + PACKET_WITHIN;
    while Instant::now() < until {
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let frame = parse_any(&bytes[..length]).ok();
        if let Some(frame) = frame.filter(|f| settings.takes(f)) {
            return Ok(Some(Fingers::of(&frame, settings.fsnh_tips)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Strictness, parse};

    const PLAN: &str = "[[operator]]\nname = \"hand\"\ndevice = \"rctp\"\n[[operator]]\nname = \"glove\"\ndevice = \"glove\"\n\
                        [[arm]]\nname = \"arm\"\nkind = \"piper\"\n\
                        [[lane]]\nname = \"right\"\noperator = \"hand\"\ngripper_operator = \"glove\"\narm = \"arm\"\n";

    /// Guards: only a glove of the plan can be calibrated as one, and the refusal says what there is.
    #[test]
    fn only_gloves() {
        let plan = parse("plan", PLAN, Strictness::Strict).unwrap().plan;
        assert!(glove_of(&plan, "glove").is_ok());
        let error = |name| glove_of(&plan, name).unwrap_err().to_string();
        assert_eq!(error("hand"), "operator hand is no glove but rctp");
        assert!(error("left").contains("there are hand, glove"));
    }
}
