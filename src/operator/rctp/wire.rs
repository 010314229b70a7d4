//! RCTP packet codec: bytes in, values out; no clock, no state, no I/O.
//!
//! One datagram is one hand sample. Little-endian, packed, 45 bytes; a longer packet is legal and its extra bytes mean nothing.
//!
//! | offset | size | type | field | unit and meaning |
//! |---|---|---|---|---|
//! | 0 | 4 | u8\[4\] | magic | the bytes `52 43 54 50`, "RCTP" |
//! | 4 | 8 | f64 | sender time | s since the sender's application started |
//! | 12 | 3 x 4 | f32 | position x, y, z | m, sender's world (Y up; which hand rule is a parameter of the session) |
//! | 24 | 4 x 4 | f32 | orientation x, y, z, w | unit quaternion, same frame, **scalar last** |
//! | 40 | 4 | f32 | gripper | 0 closed … 1 open |
//! | 44 | 1 | u8 | flags | bit 0 hand tracked, bit 1 stop asked for, bits 2-7 reserved |
//!
//! The device's document also prints a Python format string with ten floats (53 bytes). It contradicts the table, the byte total and the
//! offset summary of the same document, and could never have decoded its own packets; the table wins.
//!
//! Order of judgement, first match decides; the stop bit counts from step 3 on whatever follows:
//! 1. shorter than 45 bytes: `short`. 2. magic differs: `bad_magic`. 3. **stop bit**. 4. not tracked: the other fields are not looked at.
//! 5. `nonfinite_timestamp`, `nonfinite_pose` (gripper included). 6. a position component beyond 10 m: `position_range`.
//! 7. quaternion norm outside 0.9..=1.1: `bad_quaternion`. 8. gripper slightly outside 0..=1: clamped; further out: no opening, pose kept.

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

use crate::units::Opening;

/// Bytes of a packet that mean something.
pub const PACKET_LEN: usize = 45;
/// First four bytes: an array, not an integer; byte order does not apply.
pub const MAGIC: [u8; 4] = *b"RCTP";
/// Largest believable position component, metres. Beyond it somebody sent millimetres or noise.
pub const POSITION_MAX_M: f32 = 10.0;
/// How far beyond 0..=1 a gripper value is taken for rounding; further out it is taken for a wrong unit.
pub const GRIPPER_SLACK: f64 = 0.05;

const NORM_MIN: f64 = 0.9;
const NORM_MAX: f64 = 1.1;

/// The flag byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// Bit 0: the headset sees the hand.
    pub const TRACKED: u8 = 0b01;
    /// Bit 1: the operator asks for a software stop. A level, not an edge.
    pub const STOP: u8 = 0b10;

    /// The headset sees the hand.
    #[must_use]
    pub const fn is_tracked(self) -> bool {
        self.0 & Self::TRACKED != 0
    }

    /// The operator asks for a software stop.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        self.0 & Self::STOP != 0
    }

    /// Bits that the document does not define; accepted and counted.
    #[must_use]
    pub const fn reserved(self) -> u8 {
        self.0 & !(Self::TRACKED | Self::STOP)
    }
}

/// Every field as it stands in the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// Seconds of the sender's clock.
    pub sender_time_s: f64,
    /// Position x, y, z in metres, sender's axes.
    pub position_m: [f32; 3],
    /// Orientation x, y, z, w, sender's axes.
    pub orientation_xyzw: [f32; 4],
    /// Gripper, 0 closed … 1 open.
    pub gripper: f32,
    /// Flag byte.
    pub flags: Flags,
}

/// What became of the gripper value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gripper {
    /// In 0..=1.
    Good(Opening),
    /// Up to 0.05 outside; clamped.
    Clamped(Opening),
    /// Further outside: a wrong unit. Clamping would fling the jaw open; the gripper is left as it is.
    Refused,
}

impl Gripper {
    fn judge(raw: f32) -> Self {
        let raw = f64::from(raw);
        if let Some(opening) = Opening::new(raw) {
            return Self::Good(opening);
        }
        if !(-GRIPPER_SLACK..=1.0 + GRIPPER_SLACK).contains(&raw) {
            return Self::Refused;
        }
        Opening::clamped(raw).map_or(Self::Refused, Self::Clamped)
    }

    /// The opening, if there is a usable one.
    #[must_use]
    pub const fn opening(self) -> Option<Opening> {
        match self {
            Self::Good(opening) | Self::Clamped(opening) => Some(opening),
            Self::Refused => None,
        }
    }
}

/// A tracked hand whose numbers passed every test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandPose {
    /// Seconds of the sender's clock; finite.
    pub sender_time_s: f64,
    /// Position x, y, z in metres, sender's axes; finite, each within 10 m.
    pub position_m: [f32; 3],
    /// Orientation x, y, z, w, sender's axes; norm within 0.9..=1.1, not normalised yet.
    pub orientation_xyzw: [f32; 4],
    /// Gripper value, judged.
    pub gripper: Gripper,
}

/// Why a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reject {
    /// Shorter than 45 bytes.
    Short = 0,
    /// Not an RCTP packet.
    BadMagic = 1,
    /// Sender time is NaN or infinite.
    NonfiniteTimestamp = 2,
    /// Position, orientation or gripper is NaN or infinite.
    NonfinitePose = 3,
    /// A position component is beyond 10 m.
    PositionRange = 4,
    /// The quaternion's norm is outside 0.9..=1.1.
    BadQuaternion = 5,
}

/// What the packet says apart from its flags.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Body {
    /// The hand's pose and gripper.
    Pose(HandPose),
    /// The headset does not see the hand. Sender time if it is finite; nothing else was looked at.
    Untracked {
        /// Seconds of the sender's clock.
        sender_time_s: Option<f64>,
    },
    /// Refused.
    Reject(Reject),
}

/// A judged packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parsed {
    /// The stop bit; also set beside [`Body::Reject`]. False when there is no flag byte of ours to look at.
    pub stop: bool,
    /// Flag byte; zero when the packet is too short or foreign.
    pub flags: Flags,
    /// The rest.
    pub body: Body,
}

impl Parsed {
    const fn foreign(reason: Reject) -> Self {
        Self {
            stop: false,
            flags: Flags(0),
            body: Body::Reject(reason),
        }
    }
}

/// Judges one datagram.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    let Some((magic, packet)) = read(bytes) else {
        return Parsed::foreign(Reject::Short);
    };
    if magic != MAGIC {
        return Parsed::foreign(Reject::BadMagic);
    }
    let flags = packet.flags;
    let body = if flags.is_tracked() {
        match judge_pose(&packet) {
            Ok(pose) => Body::Pose(pose),
            Err(reason) => Body::Reject(reason),
        }
    } else {
        let time = packet.sender_time_s;
        Body::Untracked {
            sender_time_s: time.is_finite().then_some(time),
        }
    };
    Parsed {
        stop: flags.is_stop(),
        flags,
        body,
    }
}

fn judge_pose(packet: &Packet) -> Result<HandPose, Reject> {
    if !packet.sender_time_s.is_finite() {
        return Err(Reject::NonfiniteTimestamp);
    }
    let finite = packet.gripper.is_finite()
        && packet.position_m.iter().all(|v| v.is_finite())
        && packet.orientation_xyzw.iter().all(|v| v.is_finite());
    if !finite {
        return Err(Reject::NonfinitePose);
    }
    if !packet.position_m.iter().all(|v| v.abs() <= POSITION_MAX_M) {
        return Err(Reject::PositionRange);
    }
    // In f64: four components near f32::MAX would overflow f32.
    let norm = packet
        .orientation_xyzw
        .iter()
        .map(|v| f64::from(*v) * f64::from(*v))
        .sum::<f64>()
        .sqrt();
    if !(NORM_MIN..=NORM_MAX).contains(&norm) {
        return Err(Reject::BadQuaternion);
    }
    Ok(HandPose {
        sender_time_s: packet.sender_time_s,
        position_m: packet.position_m,
        orientation_xyzw: packet.orientation_xyzw,
        gripper: Gripper::judge(packet.gripper),
    })
}

/// Reads the fields in the order of the table, unjudged. `None`: shorter than a packet.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<([u8; 4], Packet)> {
    // The flag byte is the last field, so a short packet fails here before any field is used.
    let rest = &mut bytes.get(..PACKET_LEN)?;
    let magic = take::<4>(rest)?;
    let packet = Packet {
        sender_time_s: f64::from_le_bytes(take::<8>(rest)?),
        position_m: [take_f32(rest)?, take_f32(rest)?, take_f32(rest)?],
        orientation_xyzw: [
            take_f32(rest)?,
            take_f32(rest)?,
            take_f32(rest)?,
            take_f32(rest)?,
        ],
        gripper: take_f32(rest)?,
        flags: Flags(u8::from_le_bytes(take::<1>(rest)?)),
    };
    Some((magic, packet))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn take_f32(rest: &mut &[u8]) -> Option<f32> {
    Some(f32::from_le_bytes(take::<4>(rest)?))
}

/// The 45 bytes of a packet. Nothing is judged: the emulator sends bad ones on purpose.
#[must_use]
pub fn emit(packet: &Packet) -> [u8; PACKET_LEN] {
    let mut out = [0; PACKET_LEN];
    let [x, y, z] = packet.position_m.map(f32::to_le_bytes);
    let [qx, qy, qz, qw] = packet.orientation_xyzw.map(f32::to_le_bytes);
    let time = packet.sender_time_s.to_le_bytes();
    let gripper = packet.gripper.to_le_bytes();
    let flags = [packet.flags.0];
    let fields = [
        &MAGIC[..],
        &time,
        &x,
        &y,
        &z,
        &qx,
        &qy,
        &qz,
        &qw,
        &gripper,
        &flags,
    ];
    for (slot, byte) in out.iter_mut().zip(fields.into_iter().flatten()) {
        *slot = *byte;
    }
    out
}

#[cfg(test)]
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: Packet = Packet {
        sender_time_s: 2.5,
        position_m: [0.1, 0.2, 0.3],
        orientation_xyzw: [0.0, 0.0, 0.0, 1.0],
        gripper: 0.5,
        flags: Flags(1),
    };

    fn judged(edit: impl FnOnce(&mut Packet)) -> Parsed {
        let mut packet = GOOD;
        edit(&mut packet);
        parse(&emit(&packet))
    }

    /// Guards: the offsets of the table, byte by byte.
    #[test]
    fn layout_is_the_table() {
        let bytes = emit(&Packet {
            sender_time_s: 1.0,
            position_m: [2.0, 3.0, 4.0],
            orientation_xyzw: [5.0, 6.0, 7.0, 8.0],
            gripper: 9.0,
            flags: Flags(0xA3),
        });
        assert_eq!(&bytes[..4], b"RCTP");
        assert_eq!(bytes[4..12], 1.0f64.to_le_bytes());
        for (i, value) in [2.0f32, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
            .iter()
            .enumerate()
        {
            assert_eq!(
                bytes[12 + 4 * i..16 + 4 * i],
                value.to_le_bytes(),
                "field {i}"
            );
        }
        assert_eq!(bytes[44], 0xA3);
    }

    /// Guards: the stop bit is honoured beside every later refusal, and never read from a short or foreign packet.
    #[test]
    fn stop_bit_survives_bad_bodies() {
        let stop = |p: &mut Packet| p.flags = Flags(3);
        let nan = judged(|p| {
            stop(p);
            p.position_m[1] = f32::NAN;
        });
        assert!(nan.stop);
        assert_eq!(nan.body, Body::Reject(Reject::NonfinitePose));
        let time = judged(|p| {
            stop(p);
            p.sender_time_s = f64::INFINITY;
        });
        assert!(time.stop);
        assert_eq!(time.body, Body::Reject(Reject::NonfiniteTimestamp));
        let bytes = emit(&Packet {
            flags: Flags(3),
            ..GOOD
        });
        assert!(!parse(&bytes[..44]).stop);
        let mut foreign = bytes;
        foreign[0] = b'X';
        assert_eq!(parse(&foreign), Parsed::foreign(Reject::BadMagic));
    }

    /// Guards: an untracked packet's other fields are never looked at; its time is passed on only if finite.
    #[test]
    fn untracked_hides_the_rest() {
        let parsed = judged(|p| {
            p.flags = Flags(0);
            p.position_m = [f32::NAN; 3];
            p.gripper = 70_000.0;
        });
        assert_eq!(
            parsed.body,
            Body::Untracked {
                sender_time_s: Some(2.5)
            }
        );
        let parsed = judged(|p| {
            p.flags = Flags(2);
            p.sender_time_s = f64::NAN;
        });
        assert!(parsed.stop);
        assert_eq!(
            parsed.body,
            Body::Untracked {
                sender_time_s: None
            }
        );
    }

    /// Guards: a small excess is clamped, a wrong unit leaves the gripper alone, the pose is used in both cases.
    #[test]
    fn gripper_rule() {
        let gripper = |value: f32| match judged(|p| p.gripper = value).body {
            Body::Pose(pose) => pose.gripper,
            other => panic!("{other:?}"),
        };
        assert_eq!(gripper(1.049), Gripper::Clamped(Opening::OPEN));
        assert_eq!(gripper(-0.049), Gripper::Clamped(Opening::CLOSED));
        for wrong_unit in [-0.2, 1.5, 70.0, 70_000.0, 3e38] {
            assert_eq!(gripper(wrong_unit), Gripper::Refused, "{wrong_unit}");
        }
        assert_eq!(gripper(1.0), Gripper::Good(Opening::OPEN));
    }

    /// Guards: NaN, infinities and 1e30 in every float field are refused (gripper 1e30 is a wrong unit, the pose stays).
    #[test]
    fn absurd_numbers_in_every_field() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30] {
            for field in 0..8 {
                let parsed = judged(|p| match field {
                    0..=2 => p.position_m[field] = bad,
                    3..=6 => p.orientation_xyzw[field - 3] = bad,
                    _ => p.gripper = bad,
                });
                let expect = match (bad.is_finite(), field) {
                    (false, _) => Reject::NonfinitePose,
                    (true, 0..=2) => Reject::PositionRange,
                    (true, 3..=6) => Reject::BadQuaternion,
                    _ => {
                        assert!(matches!(
                            parsed.body,
                            Body::Pose(HandPose {
                                gripper: Gripper::Refused,
                                ..
                            })
                        ));
                        continue;
                    }
                };
                assert_eq!(parsed.body, Body::Reject(expect), "{bad} in field {field}");
            }
        }
    }

    proptest! {
        /// Guards: `read` undoes `emit` bit for bit, whatever the fields hold, and extra bytes change nothing.
        #[test]
        fn read_undoes_emit(time: u64, f in proptest::array::uniform8(any::<u32>()), flags: u8, tail in proptest::collection::vec(any::<u8>(), 0..64)) {
            let f = f.map(f32::from_bits);
            let packet = Packet {
                sender_time_s: f64::from_bits(time),
                position_m: [f[0], f[1], f[2]],
                orientation_xyzw: [f[3], f[4], f[5], f[6]],
                gripper: f[7],
                flags: Flags(flags),
            };
            let bytes = emit(&packet);
            let mut long = bytes.to_vec();
            long.extend(tail);
            let (magic, back) = read(&long).unwrap();
            prop_assert_eq!(magic, MAGIC);
            prop_assert_eq!(emit(&back), bytes);
        }

        /// Guards: any bytes at all give a verdict.
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let parsed = parse(&bytes);
            prop_assert!(bytes.len() >= PACKET_LEN || parsed.body == Body::Reject(Reject::Short));
        }
    }
}
