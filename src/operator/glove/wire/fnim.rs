//! FNIM version 2: one hand of an EMF glove, 240 bytes exactly, 120 a second for each hand.
//!
//! The header is that of [`super`], with magic `0x464E494D` (wire bytes `4D 49 4E 46`, which spell "MINF") and version 2. Then:
//!
//! | offset | size | type | field | unit and meaning |
//! |---|---|---|---|---|
//! | 24 + 32 i | 32 | slot | i = 0 thumb, 1 index, 2 middle, 3 ring, 4 pinky, 5 forearm | see below |
//! | 216 | 12 | 3 x f32 | acceleration | m/s² of the magnetic source |
//! | 228 | 12 | 3 x f32 | turning rate | rad/s |
//!
//! | offset in slot | size | type | field |
//! |---|---|---|---|
//! | 0 | 12 | 3 x f32 | position, **millimetres** |
//! | 12 | 16 | 4 x f32 | quaternion **w, x, y, z** |
//! | 28 | 1 | u8 | valid: exactly 1, nothing else |
//! | 29 | 3 | | padding |
//!
//! Positions are in the frame of the glove's own magnetic source: X right, Y towards the fingertips, Z from the palm to the back of the
//! hand, right-handed on both hands. **That frame moves with the hand**, so nothing here says where the hand is.
//!
//! A slot with a flaw is not used; the packet is. Numbers of a slot that is not valid are not looked at. Six zeros in place of the inertial
//! values mean that there is no such sensor.

use super::{Flaw, HEADER_LEN, Header, Reject, Writer, header, judge, take, take_f32s};

/// Bytes of a packet.
pub const PACKET_LEN: usize = 240;
/// The number, not the bytes.
pub const MAGIC: u32 = 0x464E_494D;
/// The only version known.
pub const VERSION: u8 = 2;
/// Slots of a packet.
pub const SLOTS: usize = 6;
/// Names of the slots, in their order.
pub const SLOT_NAMES: [&str; SLOTS] = ["thumb", "index", "middle", "ring", "pinky", "forearm"];
/// Largest believable position component.
pub const POSITION_MAX_MM: f32 = 2000.0;

const _: () = assert!(HEADER_LEN + SLOTS * 32 + 24 == PACKET_LEN);

/// One slot as it stands in the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawSlot {
    /// Millimetres.
    pub position_mm: [f32; 3],
    /// w, x, y, z.
    pub orientation_wxyz: [f32; 4],
    /// 1: valid.
    pub valid: u8,
    /// Zeros, so far.
    pub padding: [u8; 3],
}

/// A slot whose numbers passed every test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Millimetres, frame of the magnetic source.
    pub position_mm: [f32; 3],
    /// w, x, y, z; norm within 0.9..=1.1, not normalised yet.
    pub orientation_wxyz: [f32; 4],
}

/// The inertial sensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Imu {
    /// Six zeros: there is none. At rest a sensor would show gravity.
    Absent,
    /// A number is NaN or infinite.
    Nonfinite,
    /// Usable.
    Good {
        /// m/s²; whether gravity is in it is not said.
        acceleration_m_s2: [f32; 3],
        /// rad/s.
        rate_rad_s: [f32; 3],
    },
}

/// A judged packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Header.
    pub header: Header,
    /// Slots in the order of [`SLOT_NAMES`].
    pub slots: [Result<Slot, Flaw>; SLOTS],
    /// Inertial sensor.
    pub imu: Imu,
    /// A reserved field, a padding or a valid byte has a value that the document does not define.
    pub has_undefined_bits: bool,
}

impl Frame {
    /// A finger at least can be used. The forearm alone says nothing about the hand.
    #[must_use]
    pub fn has_finger(&self) -> bool {
        self.slots.iter().take(5).any(Result::is_ok)
    }
}

/// Judges one datagram.
///
/// # Errors
/// The first test that it fails.
pub fn parse(bytes: &[u8]) -> Result<Frame, Reject> {
    if bytes.len() != PACKET_LEN {
        return Err(Reject::BadLength);
    }
    let rest = &mut &*bytes;
    let header = header(rest, MAGIC, VERSION)?;
    let mut slots = [Err(Flaw::NotValid); SLOTS];
    let mut has_undefined_bits = header.reserved != 0;
    for slot in &mut slots {
        // The length is right, so nothing from here on can be missing.
        let raw = read_slot(rest).ok_or(Reject::BadLength)?;
        has_undefined_bits |= raw.valid > 1 || raw.padding != [0; 3];
        *slot = judge_slot(&raw);
    }
    let acceleration_m_s2 = take_f32s(rest).ok_or(Reject::BadLength)?;
    let rate_rad_s = take_f32s(rest).ok_or(Reject::BadLength)?;
    Ok(Frame {
        header,
        slots,
        imu: judge_imu(acceleration_m_s2, rate_rad_s),
        has_undefined_bits,
    })
}

fn read_slot(rest: &mut &[u8]) -> Option<RawSlot> {
    Some(RawSlot {
        position_mm: take_f32s(rest)?,
        orientation_wxyz: take_f32s(rest)?,
        valid: u8::from_le_bytes(take(rest)?),
        padding: take(rest)?,
    })
}

fn judge_slot(raw: &RawSlot) -> Result<Slot, Flaw> {
    match raw.valid {
        0 => return Err(Flaw::NotValid),
        1 => {}
        _ => return Err(Flaw::OddValid),
    }
    judge(&raw.position_mm, &raw.orientation_wxyz, POSITION_MAX_MM)?;
    Ok(Slot {
        position_mm: raw.position_mm,
        orientation_wxyz: raw.orientation_wxyz,
    })
}

fn judge_imu(acceleration_m_s2: [f32; 3], rate_rad_s: [f32; 3]) -> Imu {
    let all = || acceleration_m_s2.iter().chain(&rate_rad_s);
    if !all().all(|v| v.is_finite()) {
        Imu::Nonfinite
    } else if all().all(|v| *v == 0.0) {
        // -0 compares equal to 0.
        Imu::Absent
    } else {
        Imu::Good {
            acceleration_m_s2,
            rate_rad_s,
        }
    }
}

/// The 240 bytes of a packet. Nothing is judged: the emulator sends bad ones on purpose.
#[must_use]
pub fn emit(
    header: &Header,
    slots: &[RawSlot; SLOTS],
    acceleration_m_s2: [f32; 3],
    rate_rad_s: [f32; 3],
) -> [u8; PACKET_LEN] {
    let mut out = [0; PACKET_LEN];
    let mut writer = Writer::new(&mut out);
    writer.header(MAGIC, VERSION, header);
    for slot in slots {
        writer.f32s(&slot.position_mm);
        writer.f32s(&slot.orientation_wxyz);
        writer.bytes(&[slot.valid]);
        writer.bytes(&slot.padding);
    }
    writer.f32s(&acceleration_m_s2);
    writer.f32s(&rate_rad_s);
    out
}
