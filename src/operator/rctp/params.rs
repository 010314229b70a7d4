//! What a plan may say about an RCTP hand, and the checked form of it. Start-up only.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)] // start-up

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::geometry::AxisMap;
use crate::operator::gesture::EngageBy;
use crate::operator::params::ParamError;
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
    /// Where to listen.
    pub listen: SocketAddr,
    /// Axes of the sender.
    pub frame: Frame,
    /// What engages.
    pub engage: EngageBy,
    /// Hold after this long without a usable pose.
    pub hold_after: Span,
    /// Disengage after this long without a usable pose; also how long a silent source keeps its port.
    pub disengage_after: Span,
    /// Who may send.
    pub allow: AllowList,
}

impl Settings {
    /// The defaults with another port, for the demo and tests; 0 lets the kernel choose.
    #[must_use]
    pub fn on_loopback(port: u16) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            frame: Frame::default(),
            engage: EngageBy::default(),
            hold_after: Span::from_ms(100),
            disengage_after: Span::from_ms(500),
            allow: AllowList::default(),
        }
    }
}

/// Shortest accepted `hold_after_ms`: one packet period and its jitter must fit, or every packet would be late.
pub const HOLD_AFTER_MIN_MS: u32 = 25;
/// Longest accepted `disengage_after_ms`.
pub const DISENGAGE_AFTER_MAX_MS: u32 = 2000;

impl Params {
    /// Checks everything.
    ///
    /// # Errors
    /// Every problem at once, each with its key.
    pub fn resolve(&self) -> Result<Settings, Vec<ParamError>> {
        let mut errors = Vec::new();
        let mut refuse = |key, problem: String| errors.push(ParamError { key, problem });
        if self.port == 0 {
            refuse(
                "port",
                "0 is no port; RCTP uses 8888 for the right hand and 8889 for the left".into(),
            );
        }
        if self.hold_after_ms < HOLD_AFTER_MIN_MS {
            refuse(
                "hold_after_ms",
                format!(
                    "{} is below {HOLD_AFTER_MIN_MS}: packets come every 20 ms, with jitter",
                    self.hold_after_ms
                ),
            );
        }
        if self.disengage_after_ms <= self.hold_after_ms {
            refuse(
                "disengage_after_ms",
                format!(
                    "{} must be longer than hold_after_ms ({})",
                    self.disengage_after_ms, self.hold_after_ms
                ),
            );
        }
        if self.disengage_after_ms > DISENGAGE_AFTER_MAX_MS {
            refuse(
                "disengage_after_ms",
                format!(
                    "{} is above {DISENGAGE_AFTER_MAX_MS}",
                    self.disengage_after_ms
                ),
            );
        }
        if let Some(odd) = self
            .allow
            .iter()
            .find(|a| a.is_unspecified() || a.is_multicast())
        {
            refuse("allow", format!("{odd} is not the address of a sender"));
        }
        let allow = AllowList::new(&self.allow);
        if allow.is_none() {
            refuse(
                "allow",
                format!(
                    "{} addresses; at most {}",
                    self.allow.len(),
                    AllowList::LEN_MAX
                ),
            );
        }
        match allow {
            Some(allow) if errors.is_empty() => Ok(Settings {
                listen: SocketAddr::new(self.bind, self.port),
                frame: self.frame,
                engage: self.engage,
                hold_after: Span::from_ms(self.hold_after_ms.into()),
                disengage_after: Span::from_ms(self.disengage_after_ms.into()),
                allow,
            }),
            _ => Err(errors),
        }
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
        assert_eq!(settings.listen.port(), PORT_RIGHT);
        let left: Params =
            toml::from_str("port = 8889\nframe = \"unity_lh\"\nengage = \"clutch\"").unwrap();
        let left = left.resolve().unwrap();
        assert_eq!(
            (left.frame, left.engage),
            (Frame::UnityLh, EngageBy::Clutch)
        );
    }
}
