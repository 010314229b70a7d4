//! Who may drive: an allow-list of addresses, and one source per port at a time.
//!
//! ```text
//!            valid packet of an allowed source: Taken
//!   Vacant ─────────────────────────────────────────────► Owned{source, fresh_at}
//!     ▲                                                     │    │ ▲ accepted packet of the owner:
//!     │  (never owned yet)                                  │    └─┘ the lease starts anew
//!                                                           │
//!                 lease over, valid packet of another one ──┘ Taken (a new session)
//! ```
//!
//! The lease is kept alive by packets that the session *accepted*; an owner that sends nothing but rubbish loses the port. After the lease
//! the owner is only replaced when somebody else turns up; coming back itself it is still the same session. None of the UDP protocols
//! has authentication: this keeps two headsets from mixing, it does not keep an attacker out.

use std::net::{IpAddr, SocketAddr};

use crate::time::{Span, Stamp};

/// Addresses that may send; empty allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList(heapless::Vec<IpAddr, { AllowList::LEN_MAX }>);

impl AllowList {
    /// Most addresses.
    pub const LEN_MAX: usize = 16;

    /// From a list; `None` when it is too long.
    #[must_use]
    pub fn new(addresses: &[IpAddr]) -> Option<Self> {
        let mut list = heapless::Vec::new();
        for address in addresses {
            list.push(address.to_canonical()).ok()?;
        }
        Some(Self(list))
    }

    /// May this address send? An IPv4 address seen through an IPv6 socket counts as itself.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.0.contains(&address.to_canonical())
    }
}

/// How a sender stands to the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It owns the port.
    Owner,
    /// Nobody owns the port: a valid packet would take it. `replaces` says whether somebody else owned it before.
    MayTake {
        /// Somebody else owned it before.
        replaces: bool,
    },
    /// Somebody else owns the port.
    Other,
    /// Not on the allow-list.
    NotAllowed,
}

/// The pin of one port.
#[derive(Debug, Clone)]
pub struct Pin {
    allow: AllowList,
    lease: Span,
    owner: Owner,
}

#[derive(Debug, Clone, Copy)]
enum Owner {
    Vacant,
    Owned { source: SocketAddr, fresh_at: Stamp },
}

impl Pin {
    /// A port that nobody owns. The lease is the operator's `disengage_after`: by then the arm has let go anyway.
    #[must_use]
    pub const fn new(allow: AllowList, lease: Span) -> Self {
        Self {
            allow,
            lease,
            owner: Owner::Vacant,
        }
    }

    /// How `from` stands at `now`. Changes nothing.
    #[must_use]
    pub fn standing(&self, from: SocketAddr, now: Stamp) -> Standing {
        if !self.allow.allows(from.ip()) {
            return Standing::NotAllowed;
        }
        match self.owner {
            Owner::Vacant => Standing::MayTake { replaces: false },
            Owner::Owned { source, .. } if source == from => Standing::Owner,
            Owner::Owned { fresh_at, .. } if now.age_of(fresh_at) > self.lease => {
                Standing::MayTake { replaces: true }
            }
            Owner::Owned { .. } => Standing::Other,
        }
    }

    /// A packet of `from`, which owns the port or takes it with this packet, was accepted.
    pub fn transition_to_owned(&mut self, from: SocketAddr, now: Stamp) {
        self.owner = Owner::Owned {
            source: from,
            fresh_at: now,
        };
    }

    /// The owner, whether its lease is over or not.
    #[must_use]
    pub const fn owner(&self) -> Option<SocketAddr> {
        match self.owner {
            Owner::Vacant => None,
            Owner::Owned { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const A: &str = "192.168.1.20:40000";
    const A_OTHER_PORT: &str = "192.168.1.20:40001";
    const B: &str = "192.168.1.21:40000";

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Guards: the first source keeps the port while its lease runs, the port number of the sender counts too, and the lease is a
    /// strict bound.
    #[test]
    fn first_source_owns_until_the_lease_is_over() {
        let mut pin = Pin::new(AllowList::default(), Span::from_ms(500));
        assert_eq!(
            pin.standing(at(A), Stamp::from_ms(0)),
            Standing::MayTake { replaces: false }
        );
        pin.transition_to_owned(at(A), Stamp::from_ms(0));
        assert_eq!(pin.standing(at(A), Stamp::from_ms(9000)), Standing::Owner);
        for other in [A_OTHER_PORT, B] {
            assert_eq!(
                pin.standing(at(other), Stamp::from_ms(500)),
                Standing::Other
            );
            assert_eq!(
                pin.standing(at(other), Stamp::from_ms(501)),
                Standing::MayTake { replaces: true }
            );
        }
        pin.transition_to_owned(at(A), Stamp::from_ms(400));
        assert_eq!(pin.standing(at(B), Stamp::from_ms(501)), Standing::Other);
    }

    /// Guards: the allow-list, also for a mapped address.
    #[test]
    fn allow_list() {
        let pin = Pin::new(
            AllowList::new(&["192.168.1.21".parse().unwrap()]).unwrap(),
            Span::from_ms(500),
        );
        assert_eq!(pin.standing(at(A), Stamp::from_ms(0)), Standing::NotAllowed);
        for allowed in [B, "[::ffff:192.168.1.21]:1"] {
            assert_eq!(
                pin.standing(at(allowed), Stamp::from_ms(0)),
                Standing::MayTake { replaces: false }
            );
        }
        assert!(AllowList::new(&[IpAddr::from([1, 1, 1, 1]); 17]).is_none());
    }
}
