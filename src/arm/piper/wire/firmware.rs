//! The firmware text of 0x4AF and the version in it.
//!
//! The answer is eleven frames of eight characters without numbering. Concatenated: `[0..8]` hardware `H-V…`, `[16..18]` batch,
//! `[32..38]` node, `[60..]` software `S-Vx.y-z`, directly followed by a date of six digits. The digits of a date touch those of the
//! patch number, so `S-V1.8-2` and `S-V1.8-10` are told apart by how many digits stand there, never by cutting at a fixed width.

use core::fmt;

use super::MitLayout;

/// Frames of one answer.
pub const FIRMWARE_BLOCKS: usize = 11;
const TEXT_LEN: usize = 88;
/// Digits of the date behind the version.
const DATE_DIGITS: usize = 6;

/// A firmware version, `S-V<major>.<minor>-<patch>`, ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FirmwareVersion {
    /// Before the dot.
    pub major: u8,
    /// After the dot.
    pub minor: u8,
    /// After the dash; may have two digits.
    pub patch: u8,
}

impl FirmwareVersion {
    /// From its three numbers.
    #[must_use]
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// The first version in a text, whatever stands around it. `None` when there is none or when its end cannot be told: the patch
    /// number must be one or two digits, alone or with a date of six digits behind it, and something that is not a digit must follow.
    #[must_use]
    pub fn find(text: &[u8]) -> Option<Self> {
        let start = text.windows(3).position(|w| w == b"S-V")?.checked_add(3)?;
        let (major, rest) = number(text.get(start..)?)?;
        let (minor, rest) = number(rest.strip_prefix(b".")?)?;
        let rest = rest.strip_prefix(b"-")?;
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let patch_digits = match digits {
            1 | 2 => digits,
            d => match d.checked_sub(DATE_DIGITS)? {
                n @ (1 | 2) => n,
                _ => return None,
            },
        };
        let (patch, _) = number(rest.get(..patch_digits)?)?;
        Some(Self {
            major,
            minor,
            patch,
        })
    }

    /// The MIT layout this firmware reads; `None` before S-V1.5-2, which has no MIT.
    #[must_use]
    pub fn mit_layout(self) -> Option<MitLayout> {
        if self < Self::new(1, 5, 2) {
            None
        } else if self < Self::new(1, 8, 8) {
            Some(MitLayout::Torque8)
        } else {
            Some(MitLayout::Torque12)
        }
    }

    /// Whether J2 and J3 have the 2 degree offset of firmware from S-V1.6-3.
    #[must_use]
    pub fn has_dh_offset(self) -> bool {
        self >= Self::new(1, 6, 3)
    }

    /// Whether currents and torques of J1..=J3 count four times (up to S-V1.8-2).
    #[must_use]
    pub fn torque_counts_fourfold(self) -> bool {
        self <= Self::new(1, 8, 2)
    }

    /// Whether the protocol is the present one (from S-V1.5-2): installation byte, 0x47D/0x47E, 0x7FFF as "keep".
    #[must_use]
    pub fn is_v2(self) -> bool {
        self >= Self::new(1, 5, 2)
    }
}

impl fmt::Display for FirmwareVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-V{}.{}-{}", self.major, self.minor, self.patch)
    }
}

/// A decimal number at the start of a text, and what follows it.
fn number(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (head, rest) = text.split_at_checked(digits)?;
    if head.is_empty() {
        return None;
    }
    let value = head.iter().try_fold(0_u8, |value, byte| {
        value.checked_mul(10)?.checked_add(byte.checked_sub(b'0')?)
    })?;
    Some((value, rest))
}

/// Gathers the answer to a firmware query. Start a new one with each query: blocks carry no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirmwareText {
    text: [u8; TEXT_LEN],
    blocks: usize,
}

impl Default for FirmwareText {
    fn default() -> Self {
        Self::new()
    }
}

impl FirmwareText {
    /// Nothing received.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            text: [0; TEXT_LEN],
            blocks: 0,
        }
    }

    /// Takes in a block. An echoed query and blocks beyond the eleventh are ignored. True when the answer is complete.
    pub fn push(&mut self, block: &[u8; 8]) -> bool {
        if !is_query(block) {
            let (slots, _) = self.text.as_chunks_mut::<8>();
            if let Some(slot) = slots.get_mut(self.blocks) {
                *slot = *block;
                self.blocks = self.blocks.saturating_add(1);
            }
        }
        self.is_complete()
    }

    /// All eleven blocks are in.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.blocks >= FIRMWARE_BLOCKS
    }

    /// Blocks received.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// What was received so far.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        self.text
            .get(..self.blocks.saturating_mul(8))
            .unwrap_or(&self.text)
    }

    /// The software version, as soon as it and its end are in.
    #[must_use]
    pub fn version(&self) -> Option<FirmwareVersion> {
        FirmwareVersion::find(self.received())
    }

    /// The hardware text, for the status.
    #[must_use]
    pub fn hardware(&self) -> Option<&str> {
        let raw = self.received().get(..8)?;
        let end = raw.iter().position(|&byte| byte == 0).unwrap_or(8);
        core::str::from_utf8(raw.get(..end)?).ok()
    }
}

/// The host's own query, `01 00 …`: no firmware text starts so.
pub(super) fn is_query(block: &[u8; 8]) -> bool {
    *block == [1, 0, 0, 0, 0, 0, 0, 0]
}
