//! Frames as the kernel has them, byte for byte. Pure.
//!
//! | bytes | `can_frame` (16) | `canfd_frame` (72) |
//! |---|---|---|
//! | 0..4 | identifier and flag bits, host order | the same |
//! | 4 | length 0..=8 | length 0..=64 |
//! | 5 | pad | FD flags: 1 bit rate switch, 4 FD frame |
//! | 6 | pad; **local bus only: 1 = own frame confirmed** | reserved; the same |
//! | 7 | raw DLC 9..=15 of an 8-byte frame, else 0 | reserved |
//! | 8.. | 8 data bytes | 64 data bytes |
//!
//! Identifier flags: bit 31 extended, bit 30 remote request, bit 29 error frame.

use crate::arm::frame::Frame;

/// Size of a `can_frame`.
pub(super) const CLASSIC_BYTES: usize = 16;
/// Size of a `canfd_frame`.
pub(super) const FD_BYTES: usize = 72;

const FLAG_EXTENDED: u32 = 1 << 31;
const FLAG_REMOTE: u32 = 1 << 30;
const FLAG_ERROR: u32 = 1 << 29;
const MASK_STANDARD: u32 = 0x7FF;
const FD_BIT_RATE_SWITCH: u8 = 1;
const FD_FRAME: u8 = 4;
const CONFIRMED_AT: usize = 6;

/// How frames go out. Arms on CAN FD use it for its bit rate; payloads stay within eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameFormat {
    /// Classic CAN 2.0.
    #[default]
    Classic,
    /// CAN FD with bit rate switch.
    Fd,
}

/// A frame in the kernel's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFrame {
    bytes: [u8; FD_BYTES],
    len: u8,
}

impl KernelFrame {
    /// Lays out a data frame.
    #[must_use]
    pub fn encode(frame: &Frame, format: FrameFormat) -> Self {
        let [i0, i1, i2, i3] = (frame.id & MASK_STANDARD).to_ne_bytes();
        let len = frame.len.min(8);
        let flags = match format {
            FrameFormat::Classic => 0,
            FrameFormat::Fd => FD_BIT_RATE_SWITCH | FD_FRAME,
        };
        let [d0, d1, d2, d3, d4, d5, d6, d7] = frame.data;
        let head = [
            i0, i1, i2, i3, len, flags, 0, 0, d0, d1, d2, d3, d4, d5, d6, d7,
        ];
        let mut bytes = [0; FD_BYTES];
        for (slot, byte) in bytes.iter_mut().zip(head) {
            *slot = byte;
        }
        Self {
            bytes,
            len: match format {
                FrameFormat::Classic => CLASSIC_BYTES as u8,
                FrameFormat::Fd => FD_BYTES as u8,
            },
        }
    }

    /// Lays out an error frame: class bits and eight bytes of detail. Only a local bus and tests make those.
    #[must_use]
    pub fn error(class: u32, detail: [u8; 8]) -> Self {
        let mut made = Self::encode(&Frame::new(0, detail), FrameFormat::Classic);
        for (slot, byte) in made
            .bytes
            .iter_mut()
            .zip(((class & (FLAG_ERROR - 1)) | FLAG_ERROR).to_ne_bytes())
        {
            *slot = byte;
        }
        made
    }

    /// A frame from bytes as they came; only the two sizes of the kernel are taken.
    #[must_use]
    pub fn from_bytes(raw: &[u8]) -> Option<Self> {
        if raw.len() != CLASSIC_BYTES && raw.len() != FD_BYTES {
            return None;
        }
        let mut bytes = [0; FD_BYTES];
        bytes.get_mut(..raw.len())?.copy_from_slice(raw);
        Some(Self {
            bytes,
            len: u8::try_from(raw.len()).ok()?,
        })
    }

    /// The bytes to write.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// The same frame, marked as confirmed or not (local bus).
    #[must_use]
    pub fn marked(mut self, confirmed: bool) -> Self {
        if let Some(mark) = self.bytes.get_mut(CONFIRMED_AT) {
            *mark = u8::from(confirmed);
        }
        self
    }

    /// What is in it.
    #[must_use]
    pub fn decode(&self) -> Content {
        content(self.as_bytes())
    }
}

/// What a received frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A data frame with an 11-bit identifier and at most eight bytes.
    Data {
        /// The frame.
        frame: Frame,
        /// The local bus marked it as our own, confirmed.
        marked: bool,
    },
    /// An error frame of the controller.
    Error {
        /// Class bits.
        class: u32,
        /// Detail bytes.
        detail: [u8; 8],
    },
    /// Anything else: another size, an extended identifier, a remote request, more than eight bytes.
    Other,
}

/// What the bytes of one datagram are.
#[must_use]
pub(super) fn content(raw: &[u8]) -> Content {
    let (Some(&[i0, i1, i2, i3, len, _, mark, _]), Some(&data)) = (
        raw.first_chunk::<8>(),
        raw.get(8..).and_then(<[u8]>::first_chunk::<8>),
    ) else {
        return Content::Other;
    };
    if raw.len() != CLASSIC_BYTES && raw.len() != FD_BYTES {
        return Content::Other;
    }
    let id = u32::from_ne_bytes([i0, i1, i2, i3]);
    if id & FLAG_ERROR != 0 {
        return Content::Error {
            class: id & (FLAG_ERROR - 1),
            detail: data,
        };
    }
    if id & (FLAG_EXTENDED | FLAG_REMOTE) != 0 || id > MASK_STANDARD || len > 8 {
        return Content::Other;
    }
    Content::Data {
        frame: Frame { id, len, data },
        marked: mark == 1,
    }
}
