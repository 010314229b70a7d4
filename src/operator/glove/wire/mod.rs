//! What the two packets of a glove have in common: header, and what is judged of a position and a quaternion. Bytes in, values out; no
//! clock, no state, no I/O.
//!
//! | offset | size | type | field | value |
//! |---|---|---|---|---|
//! | 0 | 4 | u32 | magic | a number whose bytes come lowest first: "FNIM" read from the top is `4D 49 4E 46` here |
//! | 4 | 1 | u8 | version | one per packet kind |
//! | 5 | 1 | u8 | hand | **an enumeration**: 1 left, 2 right; 3 is not both |
//! | 6 | 2 | u16 | reserved | 0 |
//! | 8 | 4 | u32 | frame number | counts up, wraps |
//! | 12 | 8 | u64 | sender time | ns of the sender's monotonic clock; not aligned to 8 |
//! | 20 | 4 | u32 | order of the quaternion's numbers | `0x77787A79`, bytes `79 7A 78 77` |
//!
//! The last field is compared as an opaque number. Read like the magic it spells "w x z y", which contradicts the slot table and the C
//! structure of the same document; both of those say w, x, y, z, and so do we. Another number is refused: a sender that changes it may
//! have changed the order.
//!
//! Order of judgement, first match decides: length, magic, version, order, hand.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

pub mod fnim;
pub mod fsnh;

/// Bytes of the header.
pub const HEADER_LEN: usize = 24;
/// The only accepted order of the quaternion's numbers.
pub const QUAT_ORDER: u32 = 0x7778_7A79;

const NORM_MIN: f64 = 0.9;
const NORM_MAX: f64 = 1.1;

/// Which hand a packet is about.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Deserialize,
    serde::Serialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Hand {
    /// Left.
    Left,
    /// Right.
    #[default]
    Right,
}

impl Hand {
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Left),
            2 => Some(Self::Right),
            _ => None,
        }
    }

    /// As it stands in the packet.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
        }
    }

    /// As it stands in a plan.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

/// Everything of the header that is not a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Whose.
    pub hand: Hand,
    /// Reserved; accepted and counted if it is not 0.
    pub reserved: u16,
    /// Counts up and wraps. Whether both hands share a counter is not said, so it is followed for each hand.
    pub frame_number: u32,
    /// Nanoseconds of the sender's clock.
    pub sender_time_ns: u64,
}

/// Why a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reject {
    /// Not one of the lengths that exist.
    BadLength = 0,
    /// Another protocol, or a sender of the other byte order.
    BadMagic = 1,
    /// Another version.
    BadVersion = 2,
    /// Another order of the quaternion's numbers.
    BadQuatOrder = 3,
    /// Neither left nor right.
    BadHand = 4,
}

/// Why one part of a packet is not used; the rest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The sender says so; the numbers were not looked at.
    NotValid,
    /// The valid byte is neither 0 nor 1; taken for "not valid".
    OddValid,
    /// A number is NaN or infinite.
    Nonfinite,
    /// Further away than a hand can be from its own glove.
    PositionRange,
    /// The quaternion's norm is outside 0.9..=1.1.
    BadQuaternion,
}

impl Flaw {
    /// Name as shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotValid => "not_valid",
            Self::OddValid => "odd_valid",
            Self::Nonfinite => "nonfinite",
            Self::PositionRange => "position_range",
            Self::BadQuaternion => "bad_quaternion",
        }
    }
}

/// Reads and judges the header of a packet whose length is right.
fn header(rest: &mut &[u8], magic: u32, version: u8) -> Result<Header, Reject> {
    let fields = Fields::read(rest).ok_or(Reject::BadLength)?;
    if fields.magic != magic {
        return Err(Reject::BadMagic);
    }
    if fields.version != version {
        return Err(Reject::BadVersion);
    }
    if fields.quat_order != QUAT_ORDER {
        return Err(Reject::BadQuatOrder);
    }
    Ok(Header {
        hand: Hand::from_code(fields.hand).ok_or(Reject::BadHand)?,
        reserved: fields.reserved,
        frame_number: fields.frame_number,
        sender_time_ns: fields.sender_time_ns,
    })
}

/// The header unjudged.
struct Fields {
    magic: u32,
    version: u8,
    hand: u8,
    reserved: u16,
    frame_number: u32,
    sender_time_ns: u64,
    quat_order: u32,
}

impl Fields {
    fn read(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            magic: u32::from_le_bytes(take(rest)?),
            version: u8::from_le_bytes(take(rest)?),
            hand: u8::from_le_bytes(take(rest)?),
            reserved: u16::from_le_bytes(take(rest)?),
            frame_number: u32::from_le_bytes(take(rest)?),
            sender_time_ns: u64::from_le_bytes(take(rest)?),
            quat_order: u32::from_le_bytes(take(rest)?),
        })
    }
}

/// Judges one position and quaternion (w, x, y, z). `position_max` is in the position's own unit, and bounds each component.
fn judge(position: &[f32; 3], wxyz: &[f32; 4], position_max: f32) -> Result<(), Flaw> {
    if !position.iter().chain(wxyz).all(|v| v.is_finite()) {
        return Err(Flaw::Nonfinite);
    }
    if !position.iter().all(|v| v.abs() <= position_max) {
        return Err(Flaw::PositionRange);
    }
    // In f64: four components near f32::MAX would overflow f32.
    let squares = wxyz.iter().map(|v| f64::from(*v) * f64::from(*v));
    if !(NORM_MIN..=NORM_MAX).contains(&squares.sum::<f64>().sqrt()) {
        return Err(Flaw::BadQuaternion);
    }
    Ok(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn take_f32s<const N: usize>(rest: &mut &[u8]) -> Option<[f32; N]> {
    let mut out = [0.0; N];
    for value in &mut out {
        *value = f32::from_le_bytes(take(rest)?);
    }
    Some(out)
}

/// Writes bytes one after the other into a buffer that is known to be long enough; what does not fit is cut off.
struct Writer<'a>(core::slice::IterMut<'a, u8>);

impl<'a> Writer<'a> {
    fn new(out: &'a mut [u8]) -> Self {
        Self(out.iter_mut())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(slot) = self.0.next() {
                *slot = *byte;
            }
        }
    }

    fn f32s(&mut self, values: &[f32]) {
        for value in values {
            self.bytes(&value.to_le_bytes());
        }
    }

    fn header(&mut self, magic: u32, version: u8, header: &Header) {
        self.bytes(&magic.to_le_bytes());
        self.bytes(&[version, header.hand.code()]);
        self.bytes(&header.reserved.to_le_bytes());
        self.bytes(&header.frame_number.to_le_bytes());
        self.bytes(&header.sender_time_ns.to_le_bytes());
        self.bytes(&QUAT_ORDER.to_le_bytes());
    }
}

/// A packet of either kind.
#[expect(
    clippy::large_enum_variant,
    reason = "on the stack for one packet; boxing would allocate"
)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnyFrame {
    /// Poses of the fingertips and the forearm, and the inertial sensor.
    Fnim(fnim::Frame),
    /// Poses of all joints. The layout is derived, not documented.
    Fsnh(fsnh::Frame),
}

impl AnyFrame {
    /// Its header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        match self {
            Self::Fnim(frame) => &frame.header,
            Self::Fsnh(frame) => &frame.header,
        }
    }
}

/// Judges a datagram of the shared port: its length says what it must be, its magic whether it is that. The port says nothing.
///
/// # Errors
/// The first test that it fails.
pub fn parse_any(bytes: &[u8]) -> Result<AnyFrame, Reject> {
    match bytes.len() {
        fnim::PACKET_LEN => fnim::parse(bytes).map(AnyFrame::Fnim),
        fsnh::PACKET_LEN_WRIST | fsnh::PACKET_LEN_FOREARM => fsnh::parse(bytes).map(AnyFrame::Fsnh),
        _ => Err(Reject::BadLength),
    }
}
