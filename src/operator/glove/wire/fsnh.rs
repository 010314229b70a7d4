//! FSNH version 4: all joints of one hand. **Experimental: this layout is derived, not documented.**
//!
//! What is known: the name, version 4, 612 bytes for 21 joints and 640 for 22 (with the forearm), metres, origin at the wrist, axes by
//! default X right, Y forward, Z up on the left hand and X left, Y back, Z up on the right one. With equal records for all joints, 612 and
//! 640 have one solution: 28 bytes a joint and a header of 24. That is the header of [`super`] and three plus four floats:
//!
//! | offset | size | type | field | unit and meaning |
//! |---|---|---|---|---|
//! | 0 | 24 | | header | magic `0x46534E48`, wire bytes `48 4E 53 46`; version 4 |
//! | 24 + 28 i | 12 | 3 x f32 | position of joint i | **metres** |
//! | 36 + 28 i | 16 | 4 x f32 | quaternion of joint i | w, x, y, z |
//!
//! Guessed beyond that: the meaning of the header's fields, position before quaternion, the order of the joints, and that the forearm is
//! the last one. There is no valid byte, so one bad joint makes the whole hand unusable.

use super::{Flaw, HEADER_LEN, Hand, Header, Reject, Writer, header, judge, take_f32s};

/// Bytes of a packet without the forearm.
pub const PACKET_LEN_WRIST: usize = HEADER_LEN + 28 * JOINTS_WRIST;
/// Bytes of a packet with the forearm.
pub const PACKET_LEN_FOREARM: usize = HEADER_LEN + 28 * JOINTS_MAX;
/// The number, not the bytes.
pub const MAGIC: u32 = 0x4653_4E48;
/// The only version known.
pub const VERSION: u8 = 4;
/// Joints without the forearm.
pub const JOINTS_WRIST: usize = 21;
/// Most joints of a packet.
pub const JOINTS_MAX: usize = 22;
/// Largest believable position component.
pub const POSITION_MAX_M: f32 = 2.0;

const _: () = assert!(PACKET_LEN_WRIST == 612 && PACKET_LEN_FOREARM == 640);

/// One joint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joint {
    /// Metres, the sender's axes.
    pub position_m: [f32; 3],
    /// w, x, y, z, the sender's axes.
    pub orientation_wxyz: [f32; 4],
}

impl Joint {
    /// The same joint in X right, Y forward, Z up, if the hand's axes are the default ones: the right hand's are turned by half a turn
    /// about Z.
    #[must_use]
    pub fn right_forward_up(self, hand: Hand) -> Self {
        let ([x, y, z], [w, qx, qy, qz]) = (self.position_m, self.orientation_wxyz);
        match hand {
            Hand::Left => self,
            Hand::Right => Self {
                position_m: [-x, -y, z],
                orientation_wxyz: [w, -qx, -qy, qz],
            },
        }
    }
}

/// A judged packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Header.
    pub header: Header,
    joints: [Result<Joint, Flaw>; JOINTS_MAX],
    len: usize,
}

impl Frame {
    /// The joints that the packet has: 21 or 22.
    pub fn joints(&self) -> &[Result<Joint, Flaw>] {
        self.joints.get(..self.len).unwrap_or(&[])
    }

    /// Every joint can be used.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.joints().iter().all(Result::is_ok)
    }
}

/// Judges one datagram.
///
/// # Errors
/// The first test that it fails.
pub fn parse(bytes: &[u8]) -> Result<Frame, Reject> {
    let len = match bytes.len() {
        PACKET_LEN_WRIST => JOINTS_WRIST,
        PACKET_LEN_FOREARM => JOINTS_MAX,
        _ => return Err(Reject::BadLength),
    };
    let rest = &mut &*bytes;
    let header = header(rest, MAGIC, VERSION)?;
    let mut joints = [Err(Flaw::NotValid); JOINTS_MAX];
    for joint in joints.iter_mut().take(len) {
        // The length is right, so nothing can be missing.
        let raw = read_joint(rest).ok_or(Reject::BadLength)?;
        *joint = judge(&raw.position_m, &raw.orientation_wxyz, POSITION_MAX_M).map(|()| raw);
    }
    Ok(Frame {
        header,
        joints,
        len,
    })
}

fn read_joint(rest: &mut &[u8]) -> Option<Joint> {
    Some(Joint {
        position_m: take_f32s(rest)?,
        orientation_wxyz: take_f32s(rest)?,
    })
}

/// The bytes of a packet without the forearm. Nothing is judged: the emulator sends bad ones on purpose.
#[must_use]
pub fn emit(header: &Header, joints: &[Joint; JOINTS_WRIST]) -> [u8; PACKET_LEN_WRIST] {
    let mut out = [0; PACKET_LEN_WRIST];
    let mut writer = Writer::new(&mut out);
    writer.header(MAGIC, VERSION, header);
    for joint in joints {
        writer.f32s(&joint.position_m);
        writer.f32s(&joint.orientation_wxyz);
    }
    out
}
