//! What a plan may say about a glove, and the checked form of it. Start-up only.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)] // start-up

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::Session;
use super::emulate::{Config, Emulator, HandConfig};
use super::fingers::{Calibration, Ends, FsnhTips};
use super::wire::{AnyFrame, Hand, fsnh};
use crate::operator::DatagramSession;
use crate::operator::emulate::Running;
use crate::operator::gesture::EngageBy;
use crate::operator::params::{DatagramSettings, Door, DoorBounds, DoorParams, ParamError};
use crate::operator::pin::AllowList;
use crate::time::Span;

/// Port of both hands and both protocols.
pub const PORT: u16 = 15001;

/// As written in a plan. Every key has a default.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Address to listen on.
    pub bind: IpAddr,
    /// UDP port; both hands share it.
    pub port: u16,
    /// Whose packets this operator takes.
    pub hand: Hand,
    /// Thumb to index with the hand open, millimetres.
    pub open_mm: f64,
    /// Thumb to index with their tips together, millimetres.
    pub closed_mm: f64,
    /// Reach of the straight ring finger, millimetres.
    pub ring_straight_mm: f64,
    /// Reach of the curled ring finger, millimetres.
    pub ring_curled_mm: f64,
    /// Reach of the straight pinky, millimetres.
    pub pinky_straight_mm: f64,
    /// Reach of the curled pinky, millimetres.
    pub pinky_curled_mm: f64,
    /// Hold after this long without a usable finger, milliseconds.
    pub hold_after_ms: u32,
    /// Disengage after this long without a usable finger, milliseconds.
    pub disengage_after_ms: u32,
    /// Addresses that may send; empty allows all.
    pub allow: Vec<IpAddr>,
    /// Accept FSNH packets too. Their layout is derived, not documented.
    pub experimental_fsnh: bool,
    /// FSNH joints that are the tips of thumb, index, ring and pinky; a guess until seen on hardware.
    pub fsnh_tips: [u8; 4],
}

impl Default for Params {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: PORT,
            hand: Hand::default(),
            open_mm: 90.0,
            closed_mm: 20.0,
            ring_straight_mm: 150.0,
            ring_curled_mm: 90.0,
            pinky_straight_mm: 130.0,
            pinky_curled_mm: 80.0,
            hold_after_ms: 50,
            disengage_after_ms: 250,
            allow: Vec::new(),
            experimental_fsnh: false,
            fsnh_tips: [4, 8, 16, 20],
        }
    }
}

/// The checked form: nothing optional left.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where it comes in.
    pub door: Door,
    /// Whose packets.
    pub hand: Hand,
    /// What the wearer's hand measures.
    pub calibration: Calibration,
    /// FSNH packets are accepted.
    pub experimental_fsnh: bool,
    /// Which FSNH joints are which fingertips.
    pub fsnh_tips: FsnhTips,
}

const BOUNDS: DoorBounds = DoorBounds {
    ports: "the gloves send to 15001",
    hold_after_min_ms: 20,
    pace: "packets come every 8.3 ms, with jitter",
    disengage_after_max_ms: 2000,
};

impl Settings {
    /// The defaults with another port, for the demo and tests; 0 lets the kernel choose.
    #[must_use]
    pub fn on_loopback(port: u16, hand: Hand) -> Self {
        let params = Params::default();
        Self {
            door: Door {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
                hold_after: Span::from_ms(params.hold_after_ms.into()),
                disengage_after: Span::from_ms(params.disengage_after_ms.into()),
                allow: AllowList::default(),
            },
            hand,
            calibration: params.calibration(),
            experimental_fsnh: params.experimental_fsnh,
            fsnh_tips: FsnhTips(params.fsnh_tips),
        }
    }
}

impl Settings {
    /// Is this packet for this operator, in a protocol that it accepts?
    #[must_use]
    pub fn takes(&self, frame: &AnyFrame) -> bool {
        let accepted = matches!(frame, AnyFrame::Fnim(_)) || self.experimental_fsnh;
        accepted && frame.header().hand == self.hand
    }
}

/// No hand is larger.
const REACH_MAX_MM: f64 = 400.0;

impl Params {
    const fn calibration(&self) -> Calibration {
        Calibration {
            aperture: Ends {
                far_mm: self.open_mm,
                near_mm: self.closed_mm,
            },
            ring: Ends {
                far_mm: self.ring_straight_mm,
                near_mm: self.ring_curled_mm,
            },
            pinky: Ends {
                far_mm: self.pinky_straight_mm,
                near_mm: self.pinky_curled_mm,
            },
        }
    }

    /// Checks everything.
    ///
    /// # Errors
    /// Every problem at once, each with its key.
    pub fn resolve(&self) -> Result<Settings, Vec<ParamError>> {
        let calibration = self.calibration();
        let mut errors = Vec::new();
        for (far_key, near_key, ends) in [
            ("open_mm", "closed_mm", calibration.aperture),
            ("ring_straight_mm", "ring_curled_mm", calibration.ring),
            ("pinky_straight_mm", "pinky_curled_mm", calibration.pinky),
        ] {
            errors.extend(ends_problem(far_key, near_key, ends));
        }
        let tips = self.fsnh_tips;
        let is_joint = |tip: &u8| usize::from(*tip) < fsnh::JOINTS_WRIST;
        let is_twice = tips
            .iter()
            .enumerate()
            .any(|(i, tip)| tips.iter().skip(i + 1).any(|t| t == tip));
        if !tips.iter().all(is_joint) || is_twice {
            errors.push(ParamError {
                key: "fsnh_tips",
                problem: format!("{tips:?} are not four joints out of 0..=20"),
            });
        }
        let door = DoorParams {
            bind: self.bind,
            port: self.port,
            hold_after_ms: self.hold_after_ms,
            disengage_after_ms: self.disengage_after_ms,
            allow: &self.allow,
        };
        match door.resolve(&BOUNDS) {
            Ok(door) if errors.is_empty() => Ok(Settings {
                door,
                hand: self.hand,
                calibration,
                experimental_fsnh: self.experimental_fsnh,
                fsnh_tips: FsnhTips(tips),
            }),
            door => {
                errors.extend(door.err().into_iter().flatten());
                Err(errors)
            }
        }
    }
}

fn ends_problem(far_key: &'static str, near_key: &str, ends: Ends) -> Option<ParamError> {
    let Ends { far_mm, near_mm } = ends;
    // So written, NaN is refused.
    let is_good =
        near_mm >= 0.0 && far_mm <= REACH_MAX_MM && far_mm - near_mm >= Ends::APART_MIN_MM;
    (!is_good).then(|| ParamError {
        key: far_key,
        problem: format!(
            "{far_mm} must be at most {REACH_MAX_MM} and at least {} more than {near_key} ({near_mm}), \
             which is not negative; `telearm calibrate glove` measures them",
            Ends::APART_MIN_MM
        ),
    })
}

impl DatagramSettings for Settings {
    fn device(&self) -> &'static str {
        "glove"
    }

    fn door(&self) -> &Door {
        &self.door
    }

    fn door_mut(&mut self) -> &mut Door {
        &mut self.door
    }

    fn seat(&self) -> Option<&'static str> {
        Some(self.hand.name())
    }

    /// A glove makes no engage gesture.
    fn engage(&self) -> EngageBy {
        EngageBy::Command
    }

    fn is_clutch(&self) -> bool {
        true
    }

    fn session(&self) -> Box<dyn DatagramSession> {
        Box::new(Session::new(self))
    }

    fn emulate(&self, to: SocketAddr, seed: u64) -> io::Result<Running> {
        let config = Config {
            hands: vec![HandConfig {
                hand: self.hand,
                calibration: self.calibration,
            }],
            seed,
            ..Config::default()
        };
        Running::start(to, Emulator::new(config))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Guards: all problems come in one go, each under its key; NaN is no length.
    #[test]
    fn all_errors_at_once() {
        let params: Params = toml::from_str(
            "open_mm = 30\nclosed_mm = 20\nring_straight_mm = nan\npinky_straight_mm = 401\nfsnh_tips = [4, 8, 4, 20]\n\
             port = 0\nhold_after_ms = 10\ndisengage_after_ms = 5",
        )
        .unwrap();
        let keys: Vec<_> = params
            .resolve()
            .unwrap_err()
            .iter()
            .map(|e| e.key)
            .collect();
        assert_eq!(
            keys,
            [
                "open_mm",
                "ring_straight_mm",
                "pinky_straight_mm",
                "fsnh_tips",
                "port",
                "hold_after_ms",
                "disengage_after_ms"
            ]
        );
    }

    /// Guards: unknown keys and hands are errors; the defaults are those of the device's table: right hand, 15001, 50 and 250 ms, no
    /// FSNH.
    #[test]
    fn strict_keys_and_defaults() {
        assert!(toml::from_str::<Params>("experimental = true").is_err());
        assert!(toml::from_str::<Params>("hand = \"both\"").is_err());
        let settings = toml::from_str::<Params>("").unwrap().resolve().unwrap();
        assert_eq!(settings.door.listen.port(), 15001);
        assert_eq!(
            (settings.door.hold_after, settings.door.disengage_after),
            (Span::from_ms(50), Span::from_ms(250))
        );
        assert_eq!(
            (settings.hand, settings.experimental_fsnh),
            (Hand::Right, false)
        );
    }
}
