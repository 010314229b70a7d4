//! `Frame`: a classic CAN data frame as plain data, shared by every arm that speaks CAN.
//!
//! The slices' `wire` modules make and read frames; only `arm::can` knows how the kernel wants them. CAN FD frames (64 bytes) will be
//! a sibling type, not a longer array here: a classic frame is copied by the thousand each second.

/// A classic CAN data frame with an 11-bit identifier. `data` beyond `len` is zero when made by the constructors.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Identifier without flag bits.
    pub id: u32,
    /// Bytes in use, 0..=8.
    pub len: u8,
    /// Payload, in wire order.
    pub data: [u8; 8],
}

impl Frame {
    /// Eight bytes of payload.
    #[must_use]
    pub const fn new(id: u32, data: [u8; 8]) -> Self {
        Self { id, len: 8, data }
    }

    /// The first `N` bytes of a payload. More than eight do not compile.
    #[must_use]
    pub const fn short<const N: usize>(id: u32, payload: [u8; N]) -> Self {
        const { assert!(N <= 8, "a classic CAN frame carries at most eight bytes") };
        let mut data = [0; 8];
        let mut i = 0;
        let mut len = 0;
        while i < N {
            data[i] = payload[i];
            i += 1;
            len += 1;
        }
        Self { id, len, data }
    }

    /// A frame from a slice; more than eight bytes give `None`.
    #[must_use]
    pub fn from_slice(id: u32, payload: &[u8]) -> Option<Self> {
        let mut data = [0; 8];
        data.get_mut(..payload.len())?.copy_from_slice(payload);
        let len = u8::try_from(payload.len()).ok()?;
        Some(Self { id, len, data })
    }

    /// The bytes in use.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.data.get(..usize::from(self.len)).unwrap_or(&self.data)
    }
}

impl core::fmt::Debug for Frame {
    /// As `candump` writes it: `152#0000DEA800000000`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:03X}#", self.id)?;
        self.payload()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_macros)]
mod tests {
    use super::*;

    /// Guards: the length never exceeds the payload, and the text form is the one of `candump`.
    #[test]
    fn length_and_text() {
        assert_eq!(Frame::short(0x4AF, [1]).payload(), [1]);
        assert_eq!(Frame::from_slice(1, &[0; 9]), None);
        assert_eq!(Frame::from_slice(1, &[2, 3]), Some(Frame::short(1, [2, 3])));
        let odd = Frame {
            id: 1,
            len: 200,
            data: [7; 8],
        };
        assert_eq!(odd.payload(), [7; 8]);
        let text = format!("{:?}", Frame::new(0x152, [0, 0, 0xDE, 0xA8, 0, 0, 0, 0]));
        assert_eq!(text, "152#0000DEA800000000");
    }
}
