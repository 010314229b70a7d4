//! What the parameters of all devices have in common. Start-up only.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)] // start-up

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::DatagramSession;
use super::emulate::Running;
use super::gesture::EngageBy;
use super::pin::AllowList;
use crate::time::Span;

/// A parameter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ParamError {
    /// The key in the device's table.
    pub key: &'static str,
    /// Value, bound and reason, for the user.
    pub problem: String,
}

/// Where an operator's datagrams come in, from whom, and how old they may get.
#[derive(Debug, Clone, PartialEq)]
pub struct Door {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Hold after this long without a usable sample.
    pub hold_after: Span,
    /// Disengage after this long without a usable sample; also how long a silent source keeps its port.
    pub disengage_after: Span,
    /// Who may send.
    pub allow: AllowList,
}

/// A [`Door`] as a plan says it; the keys have these names in every device's table.
#[derive(Debug, Clone, Copy)]
pub struct DoorParams<'a> {
    /// Address to listen on.
    pub bind: IpAddr,
    /// UDP port.
    pub port: u16,
    /// Milliseconds.
    pub hold_after_ms: u32,
    /// Milliseconds.
    pub disengage_after_ms: u32,
    /// Addresses that may send; empty allows all.
    pub allow: &'a [IpAddr],
}

/// What a device allows of a [`Door`].
#[derive(Debug, Clone, Copy)]
pub struct DoorBounds {
    /// Which ports the device uses, for whoever writes 0.
    pub ports: &'static str,
    /// Shortest `hold_after_ms`: one packet period and its jitter must fit, or every packet would be late.
    pub hold_after_min_ms: u32,
    /// How packets come, for whoever writes less.
    pub pace: &'static str,
    /// Longest `disengage_after_ms`.
    pub disengage_after_max_ms: u32,
}

impl DoorParams<'_> {
    /// Checks everything.
    ///
    /// # Errors
    /// Every problem at once, each with its key.
    pub fn resolve(&self, bounds: &DoorBounds) -> Result<Door, Vec<ParamError>> {
        let mut errors = Vec::new();
        let mut refuse = |key, problem: String| errors.push(ParamError { key, problem });
        if self.port == 0 {
            refuse("port", format!("0 is no port; {}", bounds.ports));
        }
        let (hold, disengage) = (self.hold_after_ms, self.disengage_after_ms);
        let (least, most) = (bounds.hold_after_min_ms, bounds.disengage_after_max_ms);
        if hold < least {
            refuse(
                "hold_after_ms",
                format!("{hold} is below {least}: {}", bounds.pace),
            );
        }
        if disengage <= hold {
            refuse(
                "disengage_after_ms",
                format!("{disengage} must be longer than hold_after_ms ({hold})"),
            );
        }
        if disengage > most {
            refuse("disengage_after_ms", format!("{disengage} is above {most}"));
        }
        let is_nobody = |a: &&IpAddr| a.is_unspecified() || a.is_multicast();
        if let Some(odd) = self.allow.iter().find(is_nobody) {
            refuse("allow", format!("{odd} is not the address of a sender"));
        }
        let allow = AllowList::new(self.allow);
        if allow.is_none() {
            let (len, most) = (self.allow.len(), AllowList::LEN_MAX);
            refuse("allow", format!("{len} addresses; at most {most}"));
        }
        match allow {
            Some(allow) if errors.is_empty() => Ok(Door {
                listen: SocketAddr::new(self.bind, self.port),
                hold_after: Span::from_ms(hold.into()),
                disengage_after: Span::from_ms(disengage.into()),
                allow,
            }),
            _ => Err(errors),
        }
    }
}

/// Checked parameters of a device that sends datagrams: everything that the rest of the program asks of them.
pub trait DatagramSettings: std::fmt::Debug {
    /// The device's name in the registry.
    fn device(&self) -> &'static str;

    /// Where it comes in.
    fn door(&self) -> &Door;

    /// The same, to be moved (the demo listens on a port of the kernel's choice).
    fn door_mut(&mut self) -> &mut Door;

    /// Which of several operators at one port this one is, for a device whose packets say so; `None`: the port is its own.
    fn seat(&self) -> Option<&'static str> {
        None
    }

    /// What engages.
    fn engage(&self) -> EngageBy;

    /// Its samples carry a hold-to-run state for another operator's lane.
    fn is_clutch(&self) -> bool {
        self.engage() == EngageBy::Clutch
    }

    /// The name of the axes that `telearm check --frame` verifies; `None` for a device whose axes are not in doubt.
    fn frame(&self) -> Option<&'static str> {
        None
    }

    /// A session that has seen nothing.
    fn session(&self) -> Box<dyn DatagramSession>;

    /// Starts the device's emulator, sending to `to` what these parameters expect.
    ///
    /// # Errors
    /// When no thread can be started.
    fn emulate(&self, to: SocketAddr, seed: u64) -> io::Result<Running>;
}
