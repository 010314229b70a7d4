//! Per-joint MIT commands, 0x15A..=0x15F, in both firmware layouts.
//!
//! | byte | up to S-V1.8-7 | from S-V1.8-8 |
//! |---|---|---|
//! | 0-1 | p, 16 bit, -12.5..12.5 rad | same |
//! | 2, 3 high | v, 12 bit, -45..45 rad/s | same |
//! | 3 low, 4 | kp, 12 bit, 0..500 | same |
//! | 5, 6 high | kd, 12 bit, -5..5 | same |
//! | 6 low, 7 | t, **8 bit, -8..8 N.m**; low nibble of 7: xor of bytes 0..=6, low nibble | t, **12 bit, -16..16 N.m**, no checksum |
//!
//! A frame of the wrong layout moves the arm dangerously, so the layout comes from the firmware version and from nowhere else
//! ([`super::FirmwareVersion::mit_layout`]). The vendor's SDK lets too large values wrap to the far end of the range; here they are
//! refused by name.

use super::{Field, MoveOrder, OutOfRange, Reject};

/// Which of the two layouts the firmware reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MitLayout {
    /// Up to S-V1.8-7: 8-bit torque and a checksum nibble.
    Torque8,
    /// From S-V1.8-8: 12-bit torque.
    Torque12,
}

impl MitLayout {
    /// The move mode of 0x151 that goes with the layout.
    #[must_use]
    pub const fn move_order(self) -> MoveOrder {
        match self {
            Self::Torque8 => MoveOrder::M,
            Self::Torque12 => MoveOrder::Mit,
        }
    }
}

/// A linear map of a range onto all `n`-bit numbers, by truncation as the firmware expects: zero lies just below the middle.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    code_max: u16,
    field: Field,
}

const POSITION: Scale = Scale::new(-12.5, 12.5, 0xFFFF, Field::MitPosition);
const VELOCITY: Scale = Scale::new(-45.0, 45.0, 0xFFF, Field::MitVelocity);
const KP: Scale = Scale::new(0.0, 500.0, 0xFFF, Field::MitKp);
const KD: Scale = Scale::new(-5.0, 5.0, 0xFFF, Field::MitKd);
const TORQUE_8: Scale = Scale::new(-8.0, 8.0, 0xFF, Field::MitTorque);
const TORQUE_12: Scale = Scale::new(-16.0, 16.0, 0xFFF, Field::MitTorque);

impl Scale {
    const fn new(low: f64, high: f64, code_max: u16, field: Field) -> Self {
        Self {
            low,
            high,
            code_max,
            field,
        }
    }

    const fn torque(layout: MitLayout) -> Self {
        match layout {
            MitLayout::Torque8 => TORQUE_8,
            MitLayout::Torque12 => TORQUE_12,
        }
    }

    fn pack(self, value: f64) -> Result<u16, OutOfRange> {
        if !(self.low..=self.high).contains(&value) {
            return Err(OutOfRange(self.field));
        }
        let code = (value - self.low) * f64::from(self.code_max) / (self.high - self.low);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 <= code <= code_max by the range check; dropping the fraction is the protocol"
        )]
        Ok(code as u16)
    }

    fn unpack(self, code: u16) -> f64 {
        self.low + f64::from(code) * (self.high - self.low) / f64::from(self.code_max)
    }
}

/// What one joint shall do, in SI units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MitSetpoint {
    /// Target angle, rad, -12.5..=12.5.
    pub position_rad: f64,
    /// Target velocity, rad/s, -45..=45.
    pub velocity_rad_s: f64,
    /// Stiffness, 0..=500.
    pub kp: f64,
    /// Damping, -5..=5.
    pub kd: f64,
    /// Feed-forward torque, N.m, -8..=8 or -16..=16 by layout. Firmware up to S-V1.8-2 executes four times as much on J1..=J3.
    pub torque_nm: f64,
}

/// The eight bytes of a MIT command. Which layout they have is not written in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MitFrame(pub [u8; 8]);

const fn high(code: u16) -> u8 {
    code.to_be_bytes()[0]
}

const fn low(code: u16) -> u8 {
    code.to_be_bytes()[1]
}

/// Low nibble of the xor of all bytes.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |xor, byte| xor ^ byte) & 0x0F
}

impl MitSetpoint {
    /// The frame in the given layout.
    ///
    /// # Errors
    /// [`OutOfRange`] names the first value outside its range; NaN is outside every range.
    pub fn pack(&self, layout: MitLayout) -> Result<MitFrame, OutOfRange> {
        let p = POSITION.pack(self.position_rad)?;
        let v = VELOCITY.pack(self.velocity_rad_s)?;
        let kp = KP.pack(self.kp)?;
        let kd = KD.pack(self.kd)?;
        let t = Scale::torque(layout).pack(self.torque_nm)?;
        let head = [
            high(p),
            low(p),
            low(v >> 4),
            (low(v) << 4) | high(kp),
            low(kp),
            low(kd >> 4),
        ];
        let kd_nibble = low(kd) << 4;
        let [b6, b7] = match layout {
            MitLayout::Torque8 => [kd_nibble | (low(t) >> 4), low(t) << 4],
            MitLayout::Torque12 => [kd_nibble | high(t), low(t)],
        };
        let [b0, b1, b2, b3, b4, b5] = head;
        let crc = match layout {
            MitLayout::Torque8 => checksum(&[b0, b1, b2, b3, b4, b5, b6]),
            MitLayout::Torque12 => 0,
        };
        Ok(MitFrame([b0, b1, b2, b3, b4, b5, b6, b7 | crc]))
    }
}

impl MitFrame {
    /// What the frame orders, if it has the given layout.
    ///
    /// # Errors
    /// [`Reject::Checksum`] in the old layout.
    pub fn unpack(&self, layout: MitLayout) -> Result<MitSetpoint, Reject> {
        let [b0, b1, b2, b3, b4, b5, b6, b7] = self.0;
        let t = match layout {
            MitLayout::Torque8 => {
                if checksum(&[b0, b1, b2, b3, b4, b5, b6]) != b7 & 0x0F {
                    return Err(Reject::Checksum);
                }
                u16::from((b6 << 4) | (b7 >> 4))
            }
            MitLayout::Torque12 => u16::from_be_bytes([b6 & 0x0F, b7]),
        };
        // Twelve bits whose upper eight are a whole byte.
        let upper = |whole: u8, nibble: u8| (u16::from(whole) << 4) | u16::from(nibble >> 4);
        Ok(MitSetpoint {
            position_rad: POSITION.unpack(u16::from_be_bytes([b0, b1])),
            velocity_rad_s: VELOCITY.unpack(upper(b2, b3)),
            kp: KP.unpack(u16::from_be_bytes([b3 & 0x0F, b4])),
            kd: KD.unpack(upper(b5, b6)),
            torque_nm: Scale::torque(layout).unpack(t),
        })
    }
}
