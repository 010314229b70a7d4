//! Finds the numbers of one wearer: asks for three postures and measures each once it is held still.
//!
//! ```text
//!   Open ──────────────► Pinch ─────────────────────► Curl ────────────────────────────► Done
//!    │ still for 1 s       │ still for 1 s, thumb and    │ still for 1 s, both fingertips
//!    │                     │ index clearly nearer        │ clearly nearer
//!    └─────────────────────┴─────────────────────────────┴──────────────► TimedOut (a minute in one step)
//! ```
//! Each step gives the wearer two seconds to read before it looks. A fingertip that is lost starts the second anew. Pure: the clock is an
//! argument.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)] // command line only

use std::fmt::Write as _;

use super::fingers::{Calibration, Ends, Fingers};
use crate::time::{Span, Stamp};

/// Time to read the instruction.
const READ_FOR: Span = Span::from_ms(2000);
/// Held still for this long.
const STILL_FOR: Span = Span::from_ms(1000);
/// Still: no measure moves by more than this, mm, between its ends.
const STILL_MM: f64 = 6.0;
/// Fewer packets than this in the time prove nothing.
const STILL_PACKETS: u32 = 30;
/// A step that is not done within this is given up.
const GIVE_UP_AFTER: Span = Span::from_ms(60_000);
/// The ends of a measure are put this share of its range inwards, so that a gripper surely closes, and surely opens.
const INWARDS: f64 = 0.03;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Open hand, fingers straight.
    Open,
    /// Thumb on index, the others straight.
    Pinch,
    /// Ring and pinky curled.
    Curl,
    /// Measured.
    Done(Calibration),
    /// Given up.
    TimedOut,
}

impl Step {
    /// What to tell the wearer.
    #[must_use]
    pub const fn instruction(&self) -> &'static str {
        match self {
            Self::Open => "OPEN the hand: fingers straight, thumb away from the index. Hold still.",
            Self::Pinch => {
                "CLOSE thumb and index, tip on tip; the other fingers stay straight. Hold still."
            }
            Self::Curl => {
                "CURL ring and pinky into the palm, as far as you will for the clutch. Hold still."
            }
            Self::Done(_) => "Done.",
            Self::TimedOut => "No steady posture within a minute.",
        }
    }
}

/// A span of time in which nothing moves: least, most and sum of aperture, ring, pinky.
#[derive(Debug, Clone, Copy)]
struct Still {
    since: Stamp,
    least: [f64; 3],
    most: [f64; 3],
    sum: [f64; 3],
    packets: u32,
}

impl Still {
    const fn new(since: Stamp, mm: [f64; 3]) -> Self {
        Self {
            since,
            least: mm,
            most: mm,
            sum: mm,
            packets: 1,
        }
    }

    /// The span with one more packet; `None`: that one moved.
    fn with(mut self, mm: [f64; 3]) -> Option<Self> {
        for (((least, most), sum), mm) in self
            .least
            .iter_mut()
            .zip(&mut self.most)
            .zip(&mut self.sum)
            .zip(mm)
        {
            *least = least.min(mm);
            *most = most.max(mm);
            *sum += mm;
            if *most - *least > STILL_MM {
                return None;
            }
        }
        self.packets = self.packets.saturating_add(1);
        Some(self)
    }

    fn mean(&self) -> [f64; 3] {
        self.sum.map(|sum| sum / f64::from(self.packets))
    }
}

/// The state machine.
#[derive(Debug, Clone, Copy)]
pub struct Calibrator {
    step: Step,
    since: Stamp,
    still: Option<Still>,
    open: [f64; 3],
    pinched_mm: f64,
}

impl Calibrator {
    /// Waits for an open hand.
    #[must_use]
    pub const fn new(now: Stamp) -> Self {
        Self {
            step: Step::Open,
            since: now,
            still: None,
            open: [0.0; 3],
            pinched_mm: 0.0,
        }
    }

    /// What it waits for.
    #[must_use]
    pub const fn step(&self) -> Step {
        self.step
    }

    /// Takes the measures of a packet, or the mere passing of time (no measures); gives the step after it.
    pub fn see(&mut self, at: Stamp, fingers: Option<&Fingers>) -> Step {
        if matches!(self.step, Step::Done(_) | Step::TimedOut) {
            return self.step;
        }
        let waited = at.age_of(self.since);
        if waited > GIVE_UP_AFTER {
            return self.transition_to(Step::TimedOut, at);
        }
        if waited < READ_FOR {
            return self.step;
        }
        let Some(mm) = fingers.and_then(Fingers::all_mm) else {
            self.still = None;
            return self.step;
        };
        let grown = self.still.and_then(|still| still.with(mm));
        let still = grown.unwrap_or_else(|| Still::new(at, mm));
        self.still = Some(still);
        if at.age_of(still.since) < STILL_FOR || still.packets < STILL_PACKETS {
            return self.step;
        }
        self.measured(still.mean(), at)
    }

    /// A posture was held. It counts if it is clearly another one than the open hand.
    fn measured(&mut self, mm: [f64; 3], at: Stamp) -> Step {
        let [aperture, ring, pinky] = mm;
        let [open, ring_straight, pinky_straight] = self.open;
        let ends = |far: f64, near: f64| {
            let inwards = INWARDS * (far - near);
            let ends = Ends {
                far_mm: round(far - inwards),
                near_mm: round(near + inwards),
            };
            (ends.far_mm - ends.near_mm >= Ends::APART_MIN_MM).then_some(ends)
        };
        match self.step {
            Step::Open => {
                self.open = mm;
                self.transition_to(Step::Pinch, at)
            }
            Step::Pinch if ends(open, aperture).is_some() => {
                self.pinched_mm = aperture;
                self.transition_to(Step::Curl, at)
            }
            Step::Curl => {
                let all = (
                    ends(open, self.pinched_mm),
                    ends(ring_straight, ring),
                    ends(pinky_straight, pinky),
                );
                let (Some(aperture), Some(ring), Some(pinky)) = all else {
                    return self.step;
                };
                let calibration = Calibration {
                    aperture,
                    ring,
                    pinky,
                };
                self.transition_to(Step::Done(calibration), at)
            }
            Step::Pinch | Step::Done(_) | Step::TimedOut => self.step,
        }
    }

    fn transition_to(&mut self, step: Step, at: Stamp) -> Step {
        self.step = step;
        self.since = at;
        self.still = None;
        step
    }
}

/// To a tenth of a millimetre: the sensor knows no more.
fn round(mm: f64) -> f64 {
    (mm * 10.0).round() / 10.0
}

/// The lines of the plan that say it.
#[must_use]
pub fn plan_lines(calibration: &Calibration) -> String {
    let Calibration {
        aperture,
        ring,
        pinky,
    } = calibration;
    let mut text = String::new();
    for (key, mm) in [
        ("open_mm", aperture.far_mm),
        ("closed_mm", aperture.near_mm),
        ("ring_straight_mm", ring.far_mm),
        ("ring_curled_mm", ring.near_mm),
        ("pinky_straight_mm", pinky.far_mm),
        ("pinky_curled_mm", pinky.near_mm),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key} = {mm:.1}");
    }
    text
}

/// The measures of a packet as the wearer sees them while waiting.
#[must_use]
pub fn live_line(fingers: Option<&Fingers>) -> String {
    let mm =
        |value: Option<f64>| value.map_or_else(|| "  lost".to_owned(), |mm| format!("{mm:6.1}"));
    match fingers {
        None => "no packet of this hand".to_owned(),
        Some(f) => format!(
            "thumb to index {} mm, reach of ring {} mm, of pinky {} mm",
            mm(f.aperture_mm),
            mm(f.ring_reach_mm),
            mm(f.pinky_reach_mm)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulate::{Config, Emulator, Script};
    use super::super::wire::parse_any;
    use super::super::{Hand, Params, Settings};
    use super::*;
    use crate::operator::emulate::Ticks;

    /// Plays an emulated hand; gives the steps that were entered, and when the last one was.
    fn play(script: Script, seconds: f64, faults: &[&str]) -> (Vec<Step>, f64) {
        let tips = Settings::on_loopback(0, Hand::Right).fsnh_tips;
        let mut emulator = Emulator::new(Config {
            script,
            faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
            ..Config::default()
        });
        let mut calibrator = Calibrator::new(Stamp::default());
        let mut steps = vec![calibrator.step()];
        let mut entered = 0.0;
        while emulator.time_s() < seconds {
            let t = emulator.time_s();
            let now = Stamp::default() + Span::from_s(t);
            for datagram in emulator.step() {
                let frame = parse_any(&datagram.bytes).unwrap();
                let step = calibrator.see(now, Some(&Fingers::of(&frame, tips)));
                if steps.last() != Some(&step) {
                    steps.push(step);
                    entered = t;
                }
            }
        }
        (steps, entered)
    }

    /// Guards: the three postures in a row give the emulated hand's own numbers, a little inwards; and they make a plan.
    #[test]
    fn finds_the_numbers_of_a_hand() {
        let (steps, _) = play(Script::Calibrate, 30.0, &[]);
        let [Step::Open, Step::Pinch, Step::Curl, Step::Done(found)] = steps[..] else {
            panic!("{steps:?}");
        };
        let truth = Settings::on_loopback(0, Hand::Right).calibration;
        for (found, truth) in [
            (found.aperture, truth.aperture),
            (found.ring, truth.ring),
            (found.pinky, truth.pinky),
        ] {
            let inwards = INWARDS * (truth.far_mm - truth.near_mm);
            assert!((found.far_mm - (truth.far_mm - inwards)).abs() < 1.0);
            assert!((found.near_mm - (truth.near_mm + inwards)).abs() < 1.0);
        }
        let params: Params = toml::from_str(&plan_lines(&found)).unwrap();
        assert_eq!(params.resolve().unwrap().calibration, found);
    }

    /// Guards: a hand that stays open is never taken for a closed one; a moving one is never measured; both end.
    #[test]
    fn other_postures_are_not_taken() {
        let (steps, _) = play(Script::Open, 80.0, &[]);
        assert_eq!(steps, [Step::Open, Step::Pinch, Step::TimedOut]);
        let (steps, at) = play(Script::Grip, 80.0, &[]);
        assert_eq!(steps, [Step::Open, Step::TimedOut]);
        assert!(at > 60.0);
    }

    /// Guards: the wearer has time to read, and a fingertip that is lost starts the second anew.
    #[test]
    fn reading_time_and_lost_fingers() {
        let (_, at) = play(Script::Open, 4.0, &[]);
        assert!((3.0..3.1).contains(&at), "{at}");
        let (_, at) = play(Script::Open, 5.0, &["tracking_loss@2.5+0.5"]);
        assert!((4.0..4.1).contains(&at), "{at}");
    }
}
