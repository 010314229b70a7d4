//! What a plan may say about an RCTP hand, and the checked form of it. Start-up only.
#![allow(clippy::disallowed_types)] // start-up

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::Session;
use super::emulate::{Config, Emulator};
use crate::geometry::AxisMap;
use crate::operator::DatagramSession;
use crate::operator::emulate::Running;
use crate::operator::gesture::EngageBy;
use crate::operator::params::{DatagramSettings, Door, DoorBounds, DoorParams, ParamError};
use crate::operator::pin::AllowList;
use crate::time::Span;

/// Port of the right hand; the left hand uses the next one. The port is the only thing that tells the hands apart.
pub const PORT_RIGHT: u16 = 8888;
/// Port of the left hand.
pub const PORT_LEFT: u16 = 8889;

/// Which axes the sender's packets use. The packet cannot tell; `telearm check --frame` finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Frame {
    /// Right-handed, X right, Y up, Z back, as the device's document says.
    #[default]
    OpenxrRh,
    /// Left-handed, X right, Y up, Z forward: a Unity application that sends its transforms unchanged.
    UnityLh,
}

impl Frame {
    /// The map to X forward, Y left, Z up.
    #[must_use]
    pub const fn axes(self) -> AxisMap {
        match self {
            Self::OpenxrRh => AxisMap::OPENXR_RH,
            Self::UnityLh => AxisMap::UNITY_LH,
        }
    }
}

/// As written in a plan. Every key has a default.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Address to listen on.
    pub bind: IpAddr,
    /// UDP port: 8888 for the right hand, 8889 for the left.
    pub port: u16,
    /// Axes of the sender.
    pub frame: Frame,
    /// What engages.
    pub engage: EngageBy,
    /// Hold after this long without a usable pose, milliseconds.
    pub hold_after_ms: u32,
    /// Disengage after this long without a usable pose, milliseconds.
    pub disengage_after_ms: u32,
    /// Addresses that may send; empty allows all.
    pub allow: Vec<IpAddr>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: PORT_RIGHT,
            frame: Frame::default(),
            engage: EngageBy::default(),
            hold_after_ms: 100,
            disengage_after_ms: 500,
            allow: Default::default(),
        }
    }
}

/// The checked form: nothing optional left.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where it comes in.
    pub door: Door,
    /// Axes of the sender.
    pub frame: Frame,
    /// What engages.
    pub engage: EngageBy,
}

impl Settings {
    /// The defaults with another port, for the demo and tests; 0 lets the kernel choose.
    #[must_use]
    pub fn on_loopback(port: u16) -> Self {
        Self {
            door: Door {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
                hold_after: Span::from_ms(100),
                disengage_after: Span::from_ms(500),
                allow: AllowList::default(),
            },
            frame: Frame::default(),
            engage: EngageBy::default(),
        }
    }
}

const BOUNDS: DoorBounds = DoorBounds {
    ports: "RCTP uses 8888 for the right hand and 8889 for the left",
    hold_after_min_ms: 25,
    pace: "packets come every 20 ms, with jitter",
    disengage_after_max_ms: 2000,
};

impl Params {
    /// Checks everything.
    ///
    /// # Errors
    /// Every problem at once, each with its key.
    pub fn resolve(&self) -> Result<Settings, Vec<ParamError>> {
        let door = DoorParams {
            bind: self.bind,
            port: self.port,
            hold_after_ms: self.hold_after_ms,
            disengage_after_ms: self.disengage_after_ms,
            allow: &self.allow,
        };
        Ok(Settings {
            door: door.resolve(&BOUNDS)?,
            frame: self.frame,
            engage: self.engage,
        })
    }
}

impl DatagramSettings for Settings {
    fn device(&self) -> &'static str {
        "rctp"
    }

    fn door(&self) -> &Door {
        &self.door
    }

    fn door_mut(&mut self) -> &mut Door {
        &mut self.door
    }

    fn engage(&self) -> EngageBy {
        self.engage
    }

    fn frame(&self) -> Option<&'static str> {
        Some(match self.frame {
            Frame::OpenxrRh => "openxr_rh",
            Frame::UnityLh => "unity_lh",
        })
    }

    fn session(&self) -> Box<dyn DatagramSession> {
        Box::new(Session::new(self))
    }

    fn emulate(&self, to: SocketAddr, seed: u64) -> io::Result<Running> {
        let config = Config {
            frame: self.frame,
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

    /// Guards: all problems come in one go, each under its key.
    #[test]
    fn all_errors_at_once() {
        let params: Params = toml::from_str(
            "port = 0\nhold_after_ms = 10\ndisengage_after_ms = 5\nallow = [\"0.0.0.0\"]",
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
            ["port", "hold_after_ms", "disengage_after_ms", "allow"]
        );
    }

    /// Guards: an unknown key and an unknown frame are errors; the empty table is good.
    #[test]
    fn strict_keys() {
        assert!(toml::from_str::<Params>("hold_after = 100").is_err());
        assert!(toml::from_str::<Params>("frame = \"rh\"").is_err());
        let settings = toml::from_str::<Params>("").unwrap().resolve().unwrap();
        assert_eq!(settings.door.listen.port(), PORT_RIGHT);
        let left: Params =
            toml::from_str("port = 8889\nframe = \"unity_lh\"\nengage = \"clutch\"").unwrap();
        let left = left.resolve().unwrap();
        assert_eq!(
            (left.frame, left.engage),
            (Frame::UnityLh, EngageBy::Clutch)
        );
    }
}
