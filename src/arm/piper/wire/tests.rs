//! The vendor's own frames are checked in `tests/golden.rs`; here stand the properties and what no vector shows.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects
)]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::arm::frame::Frame;
use crate::units::{Micrometres, MilliDegrees};

fn data(frame: Frame) -> [u8; 8] {
    frame.data
}

/// Every identifier either direction knows, and its neighbours.
fn any_id() -> impl Strategy<Value = u32> {
    prop_oneof![
        0x120_u32..0x1A0,
        0x240_u32..0x2D0,
        0x46F_u32..0x490,
        Just(0x4AF),
        any::<u32>()
    ]
}

/// Bytes that are often legal codes.
fn any_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => 0_u8..9,
        1 => Just(0xAE),
        1 => Just(0xAD),
        1 => Just(0xFF),
        1 => Just(0xFA),
        2 => any::<u8>()
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, rng_seed: RngSeed::Fixed(0x50_1DE5), ..ProptestConfig::default() })]

    /// Guards: no bytes at all make a decoder panic, and what decodes encodes to a frame that decodes to the same value.
    #[test]
    fn commands_survive_a_round_trip(
        id in any_id(),
        bytes in proptest::collection::vec(any_byte(), 0..=8),
    ) {
        if let Ok(command) = Command::decode(id, &bytes) {
            let frame = command.encode();
            prop_assert_eq!(frame.id, id);
            prop_assert_eq!(Command::decode(frame.id, frame.payload()), Ok(command));
        }
    }

    /// Guards: the same for what the arm sends.
    #[test]
    fn feedback_survives_a_round_trip(
        id in any_id(),
        bytes in proptest::collection::vec(any_byte(), 0..=8),
    ) {
        if let Ok(feedback) = Feedback::decode(id, &bytes) {
            let frame = feedback.encode();
            prop_assert_eq!(frame.id, id);
            prop_assert_eq!(Feedback::decode(frame.id, frame.payload()), Ok(feedback));
        }
    }

    /// Guards: a frame of any length but its own is refused, whatever it carries.
    #[test]
    fn other_lengths_are_refused(id in any_id(), bytes in proptest::collection::vec(any_byte(), 0..=8)) {
        if Command::decode(id, &bytes).is_ok() || Feedback::decode(id, &bytes).is_ok() {
            let register = (0x181..=0x186).contains(&id);
            let short_query = id == 0x4AF && bytes == [1];
            let expected = if register { 7 } else { 8 };
            prop_assert!(short_query || bytes.len() == expected);
        }
    }

    /// Guards: a pose is three frames or nothing, and never another pose.
    #[test]
    fn poses_are_whole(xyz in any::<[i32; 3]>(), rxyz in any::<[i32; 3]>()) {
        let [x, y, z] = xyz.map(Micrometres);
        let [rx, ry, rz] = rxyz.map(MilliDegrees);
        let pose = EndPose { x, y, z, rx, ry, rz };
        let mut read = EndPose::default();
        for frame in pose.frames() {
            match Command::decode(frame.id, frame.payload()) {
                Ok(Command::Pose(part)) => read.set(part),
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!(read, pose);
    }

    /// Guards: MIT values come back within one step of the map, in both layouts, and never from above.
    #[test]
    fn mit_truncates_by_less_than_a_step(
        p in -12.5..=12.5_f64, v in -45.0..=45.0_f64, kp in 0.0..=500.0_f64, kd in -5.0..=5.0_f64, t in -8.0..=8.0_f64,
    ) {
        let order = MitSetpoint { position_rad: p, velocity_rad_s: v, kp, kd, torque_nm: t };
        for layout in [MitLayout::Torque8, MitLayout::Torque12] {
            let read = order.pack(layout).unwrap().unpack(layout).unwrap();
            let torque_step = if layout == MitLayout::Torque8 { 16.0 / 255.0 } else { 32.0 / 4095.0 };
            for (sent, got, step) in [
                (p, read.position_rad, 25.0 / 65535.0),
                (v, read.velocity_rad_s, 90.0 / 4095.0),
                (kp, read.kp, 500.0 / 4095.0),
                (kd, read.kd, 10.0 / 4095.0),
                (t, read.torque_nm, torque_step),
            ] {
                prop_assert!(got <= sent + 1e-9 && sent - got < step + 1e-9, "{sent} {got}");
            }
        }
    }
}

/// Guards: every code of every order is in the round trip above by name, not by luck.
#[test]
fn every_order_code_is_reachable() {
    for movement in MoveOrder::ALL {
        for follow in FollowOrder::ALL {
            for control in ControlOrder::ALL {
                let mode = ModeOrder::new(*control, *movement, 25, *follow).unwrap();
                for installation in Installation::ALL {
                    let command = Command::Mode(mode.with_installation(*installation));
                    let frame = command.encode();
                    assert_eq!(Command::decode(frame.id, frame.payload()), Ok(command));
                }
            }
        }
    }
    for register in CpvRegister::ALL {
        let order = CpvOrder {
            access: CpvAccess::Write,
            register,
            value: -7,
        };
        let command = Command::Cpv(Joint::J6, order);
        let frame = command.encode();
        assert_eq!((frame.id, frame.len), (0x186, 7));
        assert_eq!(Command::decode(frame.id, frame.payload()), Ok(command));
        // The same identifier carries the answer: the two directions never read each other's frames.
        assert_eq!(
            Feedback::decode(frame.id, frame.payload()),
            Err(Reject::OtherDirection)
        );
        let answer = Feedback::Cpv(Joint::J6, register, 9).encode();
        assert_eq!(
            Command::decode(answer.id, answer.payload()),
            Err(Reject::OtherDirection)
        );
    }
}

/// Guards: the two MIT layouts, against byte patterns worked out by hand from the protocol table.
#[test]
fn mit_layouts_differ_where_the_firmware_does() {
    let cases = [
        (
            [0.5, 0.0, 10.0, 0.8, 1.5],
            0x851e_7ff0_5194_7978_u64,
            0x851e_7ff0_5194_78bf_u64,
        ),
        (
            [-1.0, 2.0, 20.0, 1.0, -3.0],
            0x75c2_85a0_a399_94fc,
            0x75c2_85a0_a399_967f,
        ),
    ];
    for ([position_rad, velocity_rad_s, kp, kd, torque_nm], old, new) in cases {
        let order = MitSetpoint {
            position_rad,
            velocity_rad_s,
            kp,
            kd,
            torque_nm,
        };
        assert_eq!(
            order.pack(MitLayout::Torque8),
            Ok(MitFrame(old.to_be_bytes()))
        );
        assert_eq!(
            order.pack(MitLayout::Torque12),
            Ok(MitFrame(new.to_be_bytes()))
        );
    }
    let mut broken = 0x851e_7ff0_5194_7978_u64.to_be_bytes();
    broken[0] ^= 0x10;
    assert!(MitFrame(broken).unpack(MitLayout::Torque8).is_ok());
    broken[0] ^= 0x01;
    assert_eq!(
        MitFrame(broken).unpack(MitLayout::Torque8),
        Err(Reject::Checksum)
    );
}

/// Guards: a MIT value beyond its range is refused by its own name; nothing wraps to the far end, NaN included.
#[test]
fn mit_refuses_by_name() {
    let fine = [0.0, 0.0, 10.0, 0.8, 0.0];
    let fields = [
        Field::MitPosition,
        Field::MitVelocity,
        Field::MitKp,
        Field::MitKd,
        Field::MitTorque,
    ];
    let bad = [12.6, 46.0, 501.0, 5.1, 16.1];
    for ((i, field), value) in fields.into_iter().enumerate().zip(bad) {
        for value in [value, -value, f64::NAN, f64::INFINITY] {
            let mut values = fine;
            values[i] = value;
            let [position_rad, velocity_rad_s, kp, kd, torque_nm] = values;
            let order = MitSetpoint {
                position_rad,
                velocity_rad_s,
                kp,
                kd,
                torque_nm,
            };
            assert_eq!(order.pack(MitLayout::Torque12), Err(OutOfRange(field)));
        }
    }
}

/// Guards: the speed unit. 3 rad/s is 300 on the wire, not 3000.
#[test]
fn joint_speed_is_in_hundredths() {
    let setting = LimitSetting {
        joint: Joint::J1,
        max: LimitAngle::KEEP,
        min: LimitAngle::KEEP,
        speed: JointSpeed::from_rad_s(3.0).unwrap(),
    };
    assert_eq!(
        data(Command::SetLimits(setting).encode()),
        [1, 0x7F, 0xFF, 0x7F, 0xFF, 0x01, 0x2C, 0]
    );
    assert_eq!(
        JointSpeed::from_rad_s(3.01),
        Err(OutOfRange(Field::LimitSpeed))
    );
    assert_eq!(
        JointSpeed::from_rad_s(f64::NAN),
        Err(OutOfRange(Field::LimitSpeed))
    );
    assert_eq!(
        JointSpeed::from_raw(3001),
        Err(OutOfRange(Field::LimitSpeed))
    );
    assert_eq!(JointSpeed::KEEP.as_rad_s(), None);
}

/// Guards: measurements no arm can have are refused whole and by name; the largest possible ones pass.
#[test]
fn implausible_measurements_are_refused() {
    let pose = |part: PosePart| part.frame(id::POSE_STATE);
    let um = |v| Micrometres(v);
    let mdeg = |v| MilliDegrees(v);
    let decode = |frame: Frame| Feedback::decode(frame.id, frame.payload());
    assert!(decode(pose(PosePart::Xy(um(1_000_000), um(-1_000_000)))).is_ok());
    assert_eq!(
        decode(pose(PosePart::Xy(um(0), um(1_000_001)))),
        Err(Reject::Implausible(Field::Position))
    );
    assert_eq!(
        decode(pose(PosePart::ZRx(um(i32::MIN), mdeg(0)))),
        Err(Reject::Implausible(Field::Position))
    );
    assert_eq!(
        decode(pose(PosePart::RyRz(mdeg(0), mdeg(-361_001)))),
        Err(Reject::Implausible(Field::Rotation))
    );
    let part = JointPart {
        pair: Pair::Second,
        angles: [mdeg(0), mdeg(300_001)],
    };
    let expected = Err(Reject::Implausible(Field::JointAngle));
    assert_eq!(decode(part.frame(id::JOINT_STATE)), expected);
    assert_eq!(decode(part.frame(id::IK_STATE)), expected);
    let gripper = Feedback::Gripper(GripperFeedback {
        stroke: um(-150_001),
        effort_mnm: 0,
        flags: GripperFlags(0),
    });
    assert_eq!(
        decode(gripper.encode()),
        Err(Reject::Implausible(Field::GripperStroke))
    );
}

/// Guards: unknown codes are kept, mode 6 is MIT, offset identifiers are not ours.
#[test]
fn unknown_codes_are_kept() {
    let Ok(Feedback::Status(status)) = Feedback::decode(0x2A1, &[9, 16, 6, 8, 2, 0, 0xC0, 0x21])
    else {
        panic!("a status");
    };
    assert_eq!(status.control, ControlMode::Unknown(9));
    assert_eq!(status.status, ArmStatus::Unknown(16));
    assert_eq!(status.movement, MoveMode::Mit);
    assert_eq!(status.teach, TeachState::Unknown(8));
    assert_eq!(status.motion, MotionState::Unknown(2));
    assert!(!status.beyond_limit.any() && status.beyond_limit.first().is_none());
    assert_eq!(status.silent.first(), Some(Joint::J1));
    assert!(status.silent.has(Joint::J6) && !status.silent.has(Joint::J5));
    for id in [0x2B1, 0x123, 0x2A9, 0x257, 0x16A] {
        assert_eq!(Feedback::decode(id, &[0; 8]), Err(Reject::UnknownId));
        assert_eq!(Command::decode(id, &[0; 8]), Err(Reject::UnknownId));
    }
}

fn answer(software: &str) -> FirmwareText {
    let mut text = [0_u8; 88];
    text[..8].copy_from_slice(b"H-V1.2-1");
    text[60..60 + software.len()].copy_from_slice(software.as_bytes());
    let mut firmware = FirmwareText::new();
    firmware.push(&[1, 0, 0, 0, 0, 0, 0, 0]);
    for (i, block) in text.chunks(8).enumerate() {
        let complete = firmware.push(block.try_into().unwrap());
        assert_eq!(complete, i == 10);
    }
    firmware
}

/// Guards: a date that touches the patch number does not become part of it, two digits are two digits, and what cannot be told is
/// not guessed.
#[test]
fn firmware_versions_are_read_whole() {
    let version = |text| answer(text).version();
    assert_eq!(
        version("S-V1.8-2250925"),
        Some(FirmwareVersion::new(1, 8, 2))
    );
    assert_eq!(
        version("S-V1.8-10250925"),
        Some(FirmwareVersion::new(1, 8, 10))
    );
    assert_eq!(version("S-V1.8-10"), Some(FirmwareVersion::new(1, 8, 10)));
    assert_eq!(version("S-V1.5-2\0"), Some(FirmwareVersion::new(1, 5, 2)));
    for unclear in [
        "S-V1.8-",
        "S-V1.8-123",
        "S-V1.8-123456789",
        "S-V.8-2",
        "1.8-2",
        "",
    ] {
        assert_eq!(version(unclear), None, "{unclear}");
    }
    // The end of the number is not in yet.
    assert_eq!(FirmwareVersion::find(b"S-V1.8-1"), None);
    assert_eq!(answer("S-V1.8-2").hardware(), Some("H-V1.2-1"));
    assert_eq!(FirmwareVersion::new(1, 8, 10).to_string(), "S-V1.8-10");
}

/// Guards: versions are ordered by number, so that S-V1.8-10 gets the new MIT layout and not the old one.
#[test]
fn firmware_decides_layouts() {
    let v = FirmwareVersion::new;
    assert_eq!(v(1, 5, 1).mit_layout(), None);
    assert_eq!(v(1, 5, 2).mit_layout(), Some(MitLayout::Torque8));
    assert_eq!(v(1, 8, 7).mit_layout(), Some(MitLayout::Torque8));
    assert_eq!(v(1, 8, 8).mit_layout(), Some(MitLayout::Torque12));
    assert_eq!(v(1, 8, 10).mit_layout(), Some(MitLayout::Torque12));
    assert!(!v(1, 6, 2).has_dh_offset() && v(1, 6, 3).has_dh_offset());
    assert!(v(1, 8, 2).torque_counts_fourfold() && !v(1, 8, 3).torque_counts_fourfold());
    assert_eq!(MitLayout::Torque12.move_order(), MoveOrder::Mit);
}

/// Guards: what the arm would misread cannot be built.
#[test]
fn constructors_refuse_by_name() {
    assert_eq!(ModeOrder::pose(101), Err(OutOfRange(Field::SpeedPercent)));
    assert_eq!(
        GripperOrder::new(Micrometres(0), 5001, GripperPower::Enable, false),
        Err(OutOfRange(Field::GripperEffort))
    );
    assert_eq!(CrashLevel::new(9), Err(OutOfRange(Field::CrashLevel)));
    let param = |percent, friction| GripperParam::new(percent, StrokeRange::Mm70, friction);
    assert_eq!(param(99, 1), Err(OutOfRange(Field::StrokePercent)));
    assert_eq!(param(100, 0), Err(OutOfRange(Field::Friction)));
    assert_eq!(
        EndPose::from_si([0.0; 3], [0.0, 0.0, f64::NAN]),
        Err(OutOfRange(Field::Rotation))
    );
    assert_eq!(
        EndPose::from_si([0.0, 2147.5, 0.0], [0.0; 3]),
        Err(OutOfRange(Field::Position))
    );
}
