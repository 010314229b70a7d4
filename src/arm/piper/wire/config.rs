//! Configuration frames: what is set up once, outside the control cycle.

use super::bytes::{from_u16_quad, u16_quad};
use super::codes::{
    CpvAccess, IdOffset, LinkRole, ParamQuery, ParamReset, Payload, PeriodicCode, StrokeRange,
};
use super::{Field, Joint, JointSelect, OutOfRange, Reject, marker, marker_byte};

/// "Leave this value as it is", in every 16-bit setting.
const KEEP: u16 = 0x7FFF;

/// Most the vendor's code lets through in a speed setting. As 0.01 rad/s that is ten times the arm's 3 rad/s.
const SPEED_RAW_MAX: u16 = 3000;

/// A joint speed limit, **0.01 rad/s** on the wire. The vendor's own comments say 0.001 rad/s, which is ten times wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JointSpeed(u16);

impl JointSpeed {
    /// No change.
    pub const KEEP: Self = Self(KEEP);

    /// From rad/s; refused beyond the arm's rated 3 rad/s.
    ///
    /// # Errors
    /// [`Field::LimitSpeed`] outside 0..=3.
    pub fn from_rad_s(rad_s: f64) -> Result<Self, OutOfRange> {
        if !(0.0..=3.0).contains(&rad_s) {
            return Err(OutOfRange(Field::LimitSpeed));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0..=300 by the range check"
        )]
        Ok(Self((rad_s * 100.0).round() as u16))
    }

    /// From the wire's number, in 0.01 rad/s: as permissive as the vendor's own code, for decoding and replay.
    ///
    /// # Errors
    /// [`Field::LimitSpeed`] outside 0..=3000 and "keep".
    pub const fn from_raw(raw: u16) -> Result<Self, OutOfRange> {
        match raw {
            0..=SPEED_RAW_MAX | KEEP => Ok(Self(raw)),
            _ => Err(OutOfRange(Field::LimitSpeed)),
        }
    }

    /// rad/s; `None` for "keep".
    #[must_use]
    pub fn as_rad_s(self) -> Option<f64> {
        (self.0 != KEEP).then(|| f64::from(self.0) * 0.01)
    }
}

/// An angle limit, 0.1 deg on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LimitAngle(i16);

impl LimitAngle {
    /// No change.
    pub const KEEP: Self = Self(KEEP.cast_signed());

    /// From the wire's number, in 0.1 deg.
    ///
    /// # Errors
    /// [`Field::LimitAngle`] beyond a full turn, unless "keep".
    pub const fn from_decidegrees(raw: i16) -> Result<Self, OutOfRange> {
        match raw {
            -3600..=3600 | i16::MAX => Ok(Self(raw)),
            _ => Err(OutOfRange(Field::LimitAngle)),
        }
    }

    /// rad; `None` for "keep".
    #[must_use]
    pub fn as_rad(self) -> Option<f64> {
        (self != Self::KEEP).then(|| (f64::from(self.0) * 0.1).to_radians())
    }
}

/// 0x474: limits of one joint. **Writes the driver's flash**: never in a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LimitSetting {
    /// Which joint.
    pub joint: Joint,
    /// Upper angle.
    pub max: LimitAngle,
    /// Lower angle.
    pub min: LimitAngle,
    /// Speed.
    pub speed: JointSpeed,
}

impl LimitSetting {
    pub(super) fn encode(&self) -> [u8; 8] {
        let ([a, b], [c, d]) = (self.max.0.to_be_bytes(), self.min.0.to_be_bytes());
        let [e, f] = self.speed.0.to_be_bytes();
        [self.joint.number(), a, b, c, d, e, f, 0]
    }

    pub(super) fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [n, a, b, c, d, e, f, _] = *data;
        Ok(Self {
            joint: joint(n)?,
            max: LimitAngle::from_decidegrees(i16::from_be_bytes([a, b]))?,
            min: LimitAngle::from_decidegrees(i16::from_be_bytes([c, d]))?,
            speed: JointSpeed::from_raw(u16::from_be_bytes([e, f]))?,
        })
    }
}

pub(super) fn joint(number: u8) -> Result<Joint, Reject> {
    Joint::from_number(number).ok_or(Reject::BadValue(Field::JointNumber))
}

/// A joint acceleration limit, 0.01 rad/s² on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JointAcceleration(u16);

impl JointAcceleration {
    /// No change.
    pub const KEEP: Self = Self(KEEP);
    /// 5 rad/s²: the most, and what the vendor's code sends even where the field does not count.
    pub const MAX: Self = Self(500);

    /// From the wire's number, in 0.01 rad/s².
    ///
    /// # Errors
    /// [`Field::Acceleration`] outside 0..=500 and "keep".
    pub const fn from_raw(raw: u16) -> Result<Self, OutOfRange> {
        match raw {
            0..=500 | KEEP => Ok(Self(raw)),
            _ => Err(OutOfRange(Field::Acceleration)),
        }
    }

    /// rad/s²; `None` for "keep".
    #[must_use]
    pub fn as_rad_s2(self) -> Option<f64> {
        (self.0 != KEEP).then(|| f64::from(self.0) * 0.01)
    }
}

/// 0x475: zero, acceleration and errors of a joint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JointConfig {
    /// Which joints.
    pub joints: JointSelect,
    /// Make the present position the zero. Moves every later pose; needs a person.
    pub set_zero: bool,
    /// Whether `acceleration` counts.
    pub apply_acceleration: bool,
    /// Acceleration limit.
    pub acceleration: JointAcceleration,
    /// Clear error codes.
    pub clear_error: bool,
}

impl JointConfig {
    pub(super) fn encode(&self) -> [u8; 8] {
        let [a, b] = self.acceleration.0.to_be_bytes();
        [
            self.joints.as_u8(),
            marker_byte(self.set_zero),
            marker_byte(self.apply_acceleration),
            a,
            b,
            marker_byte(self.clear_error),
            0,
            0,
        ]
    }

    pub(super) fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [n, zero, apply, a, b, clear, ..] = *data;
        Ok(Self {
            joints: JointSelect::from_u8(n).ok_or(Reject::BadValue(Field::JointNumber))?,
            set_zero: marker(zero)?,
            apply_acceleration: marker(apply)?,
            acceleration: JointAcceleration::from_raw(u16::from_be_bytes([a, b]))?,
            clear_error: marker(clear)?,
        })
    }
}

/// 0x470: leader or follower, and moved identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkConfig {
    /// Role.
    pub role: LinkRole,
    /// How far feedback identifiers move.
    pub feedback: IdOffset,
    /// How far command identifiers move.
    pub command: IdOffset,
    /// How far the linkage target moves.
    pub linkage: IdOffset,
}

impl LinkConfig {
    pub(super) fn encode(&self) -> [u8; 8] {
        let (f, c, l) = (
            self.feedback.as_u8(),
            self.command.as_u8(),
            self.linkage.as_u8(),
        );
        [self.role.as_u8(), f, c, l, 0, 0, 0, 0]
    }

    pub(super) fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [role, f, c, l, ..] = *data;
        let offset = |byte| IdOffset::from_u8(byte).ok_or(Reject::BadValue(Field::IdOffset));
        Ok(Self {
            role: LinkRole::from_u8(role).ok_or(Reject::BadValue(Field::LinkRole))?,
            feedback: offset(f)?,
            command: offset(c)?,
            linkage: offset(l)?,
        })
    }
}

/// 0x477: parameter queries and resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParamOrder {
    /// What to report.
    pub query: ParamQuery,
    /// What to reset.
    pub reset: ParamReset,
    /// Periodic 0x481..=0x486.
    pub periodic: PeriodicCode,
    /// Whether `payload` counts.
    pub apply_payload: bool,
    /// Load at the tip.
    pub payload: Payload,
}

impl ParamOrder {
    /// A query and nothing else.
    #[must_use]
    pub const fn query(query: ParamQuery) -> Self {
        Self {
            query,
            reset: ParamReset::None,
            periodic: PeriodicCode::Keep,
            apply_payload: false,
            payload: Payload::Unset,
        }
    }

    pub(super) fn encode(&self) -> [u8; 8] {
        [
            self.query.as_u8(),
            self.reset.as_u8(),
            self.periodic.as_u8(),
            marker_byte(self.apply_payload),
            self.payload.as_u8(),
            0,
            0,
            0,
        ]
    }

    pub(super) fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [query, reset, periodic, apply, payload, ..] = *data;
        Ok(Self {
            query: ParamQuery::from_u8(query).ok_or(Reject::BadValue(Field::Query))?,
            reset: ParamReset::from_u8(reset).ok_or(Reject::BadValue(Field::Reset))?,
            periodic: PeriodicCode::from_u8(periodic).ok_or(Reject::BadValue(Field::Periodic))?,
            apply_payload: marker(apply)?,
            payload: Payload::from_u8(payload).ok_or(Reject::BadValue(Field::Payload))?,
        })
    }
}

/// 0x479, 0x478, 0x481..=0x486: velocities and accelerations of the tip or of a joint's end. As a setting, 0x7FFF keeps a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EndLimits {
    /// 0.001 m/s.
    pub linear_velocity_mm_s: u16,
    /// 0.001 rad/s.
    pub angular_velocity_mrad_s: u16,
    /// 0.001 m/s².
    pub linear_acceleration_mm_s2: u16,
    /// 0.001 rad/s².
    pub angular_acceleration_mrad_s2: u16,
}

impl EndLimits {
    pub(super) const fn encode(&self) -> [u8; 8] {
        from_u16_quad([
            self.linear_velocity_mm_s,
            self.angular_velocity_mrad_s,
            self.linear_acceleration_mm_s2,
            self.angular_acceleration_mrad_s2,
        ])
    }

    pub(super) const fn decode(data: &[u8; 8]) -> Self {
        let [v, w, a, b] = u16_quad(data);
        Self {
            linear_velocity_mm_s: v,
            angular_velocity_mrad_s: w,
            linear_acceleration_mm_s2: a,
            angular_acceleration_mrad_s2: b,
        }
    }
}

/// Sensitivity of a joint's collision protection, 0 (off) to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CrashLevel(u8);

impl CrashLevel {
    /// A level.
    ///
    /// # Errors
    /// [`Field::CrashLevel`] beyond 8.
    pub const fn new(level: u8) -> Result<Self, OutOfRange> {
        if level <= 8 {
            Ok(Self(level))
        } else {
            Err(OutOfRange(Field::CrashLevel))
        }
    }

    /// The level.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// 0x47D: gripper and teach parameters. A new gripper neither moves nor reports until this was set once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GripperParam {
    stroke_percent: u8,
    range: StrokeRange,
    friction: u8,
}

impl GripperParam {
    /// Stroke in percent 100..=200, full range, teach friction 1..=10 (firmware from S-V1.5-8).
    ///
    /// # Errors
    /// [`OutOfRange`] names the first value outside its range.
    pub const fn new(
        stroke_percent: u8,
        range: StrokeRange,
        friction: u8,
    ) -> Result<Self, OutOfRange> {
        match (stroke_percent, friction) {
            (100..=200, 1..=10) => Ok(Self {
                stroke_percent,
                range,
                friction,
            }),
            (100..=200, _) => Err(OutOfRange(Field::Friction)),
            _ => Err(OutOfRange(Field::StrokePercent)),
        }
    }

    pub(super) const fn encode(&self) -> [u8; 8] {
        let range = self.range.as_u8();
        [self.stroke_percent, range, self.friction, 0, 0, 0, 0, 0]
    }

    pub(super) fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [percent, range, friction, ..] = *data;
        let range = StrokeRange::from_u8(range).ok_or(Reject::BadValue(Field::StrokeRange))?;
        Ok(Self::new(percent, range, friction)?)
    }
}

/// A register of the per-joint position and velocity controller, two letters. The vendor lists the names without more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpvRegister([u8; 2]);

impl CpvRegister {
    /// Every register the vendor names.
    pub const ALL: [Self; 8] = [
        Self(*b"po"),
        Self(*b"sp"),
        Self(*b"ac"),
        Self(*b"dc"),
        Self(*b"vv"),
        Self(*b"pp"),
        Self(*b"kp"),
        Self(*b"ki"),
    ];

    /// A register by its two letters; `None` when the vendor does not name it.
    #[must_use]
    pub fn from_letters(letters: [u8; 2]) -> Option<Self> {
        Self::ALL.into_iter().find(|register| register.0 == letters)
    }

    /// Its two letters.
    #[must_use]
    pub const fn letters(self) -> [u8; 2] {
        self.0
    }
}

/// 0x181..=0x186 from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpvOrder {
    /// Read or write.
    pub access: CpvAccess,
    /// Which register.
    pub register: CpvRegister,
    /// The value, for a write.
    pub value: i32,
}

/// First byte of a register answer.
const CPV_ANSWER: u8 = b'a';

impl CpvOrder {
    pub(super) const fn encode(&self) -> [u8; 7] {
        cpv_bytes(self.access.as_u8(), self.register, self.value)
    }

    pub(super) fn decode(data: &[u8; 7]) -> Result<Self, Reject> {
        let (head, register, value) = cpv_parts(data)?;
        if head == CPV_ANSWER {
            return Err(Reject::OtherDirection);
        }
        Ok(Self {
            access: CpvAccess::from_u8(head).ok_or(Reject::BadValue(Field::CpvAccess))?,
            register,
            value,
        })
    }
}

pub(super) const fn cpv_answer_bytes(register: CpvRegister, value: i32) -> [u8; 7] {
    cpv_bytes(CPV_ANSWER, register, value)
}

pub(super) fn cpv_answer(data: &[u8; 7]) -> Result<(CpvRegister, i32), Reject> {
    let (head, register, value) = cpv_parts(data)?;
    match (head, CpvAccess::from_u8(head)) {
        (CPV_ANSWER, _) => Ok((register, value)),
        (_, Some(_)) => Err(Reject::OtherDirection),
        (_, None) => Err(Reject::BadValue(Field::CpvAccess)),
    }
}

const fn cpv_bytes(head: u8, register: CpvRegister, value: i32) -> [u8; 7] {
    let ([r, s], [a, b, c, d]) = (register.0, value.to_be_bytes());
    [head, r, s, a, b, c, d]
}

fn cpv_parts(data: &[u8; 7]) -> Result<(u8, CpvRegister, i32), Reject> {
    let [head, r, s, a, b, c, d] = *data;
    let register = CpvRegister::from_letters([r, s]).ok_or(Reject::BadValue(Field::CpvRegister))?;
    Ok((head, register, i32::from_be_bytes([a, b, c, d])))
}
