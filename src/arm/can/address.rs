//! [`CanAddress`]: which bus.

#![allow(clippy::disallowed_types, reason = "start-up only")]

use core::fmt;
use core::str::FromStr;

/// Longest interface name the kernel takes.
const INTERFACE_NAME_MAX: usize = 15;
/// Longest path of a Unix socket, the terminating zero left out.
const SOCKET_PATH_MAX: usize = 107;

/// Which bus: a SocketCAN interface, or a local bus.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CanAddress {
    /// A SocketCAN interface by name, `can0`.
    Interface(Box<str>),
    /// A local bus by the path of its socket, `local:/run/user/1000/telearm.sock`.
    LocalPath(Box<str>),
    /// A local bus by an abstract name, `local:@demo`.
    LocalAbstract(Box<str>),
}

/// Why a text is not a bus address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing there.
    #[error(
        "empty; give a CAN interface such as \"can0\", or \"local:/path.sock\" or \"local:@name\" for a local bus"
    )]
    Empty,
    /// An interface name the kernel would refuse.
    #[error("not an interface name: at most 15 characters, no '/' and no blank")]
    Interface,
    /// Neither a path nor an abstract name.
    #[error("a local bus is \"local:/absolute/path.sock\" or \"local:@name\"")]
    Local,
    /// The path does not fit a Unix socket address.
    #[error("too long for a Unix socket: at most 107 bytes")]
    TooLong,
}

impl CanAddress {
    /// Whether this is a local bus.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        !matches!(self, Self::Interface(_))
    }
}

impl FromStr for CanAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        let Some(local) = text.strip_prefix("local:") else {
            let sane = text.len() <= INTERFACE_NAME_MAX
                && text
                    .bytes()
                    .all(|b| b.is_ascii_graphic() && b != b'/' && b != b':')
                && text != "."
                && text != "..";
            return if sane {
                Ok(Self::Interface(text.into()))
            } else {
                Err(AddressError::Interface)
            };
        };
        if local.len() > SOCKET_PATH_MAX {
            return Err(AddressError::TooLong);
        }
        match local.strip_prefix('@') {
            Some("") => Err(AddressError::Local),
            Some(name) => Ok(Self::LocalAbstract(name.into())),
            None if local.starts_with('/') && local.len() > 1 => Ok(Self::LocalPath(local.into())),
            None => Err(AddressError::Local),
        }
    }
}

impl fmt::Display for CanAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::LocalPath(path) => write!(f, "local:{path}"),
            Self::LocalAbstract(name) => write!(f, "local:@{name}"),
        }
    }
}

impl<'de> serde::Deserialize<'de> for CanAddress {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for CanAddress {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
