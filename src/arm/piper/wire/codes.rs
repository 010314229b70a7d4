//! Codes and flag bytes. Codes that the arm *reports* keep values we do not know (`Unknown`); codes that we *send* are closed.

/// A code reported by the arm: every byte has a value, unknown ones are kept.
macro_rules! reported {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $value:literal $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A value this program does not know, kept as received.
            Unknown(u8),
        }

        impl $name {
            /// From the byte on the wire.
            #[must_use]
            pub const fn from_u8(value: u8) -> Self {
                match value {
                    $($value => Self::$variant,)+
                    other => Self::Unknown(other),
                }
            }

            /// The byte on the wire.
            #[must_use]
            pub const fn as_u8(self) -> u8 {
                match self {
                    $(Self::$variant => $value,)+
                    Self::Unknown(other) => other,
                }
            }

            /// Name as shown to the user.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(_) => "unknown",
                }
            }
        }
    };
}

/// A code that we send: a byte outside the list is refused.
macro_rules! ordered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $value:literal,)+ }) => {
        $(#[$meta])*
        #[repr(u8)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant = $value,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// From the byte on the wire; `None` when the protocol does not define it.
            #[must_use]
            pub const fn from_u8(value: u8) -> Option<Self> {
                match value {
                    $($value => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The byte on the wire.
            #[must_use]
            pub const fn as_u8(self) -> u8 {
                self as u8
            }
        }
    };
}

/// A byte of flags with a named accessor for each bit.
macro_rules! flags {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $bit:ident = $n:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub u8);

        impl $name {
            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $bit(self) -> bool {
                    self.0 & (1 << $n) != 0
                }
            )+
        }
    };
}

reported! {
    /// 0x2A1 byte 0: who commands the arm.
    ControlMode {
        /// Nobody.
        Standby = 0 "standby",
        /// Commands over CAN: ours.
        Can = 1 "can",
        /// Drag teaching.
        Teach = 2 "teach",
        /// Commands over Ethernet.
        Ethernet = 3 "ethernet",
        /// Commands over Wi-Fi.
        Wifi = 4 "wifi",
        /// Remote control.
        Remote = 5 "remote",
        /// Leader (linkage teaching input): the arm commands others and sends no 0x2Ax of its own.
        Leader = 6 "leader",
        /// Replays a trajectory stored in the arm.
        Offline = 7 "offline trajectory",
    }
}

reported! {
    /// 0x2A1 byte 1: what the arm says about itself.
    ArmStatus {
        /// All well.
        Normal = 0 "normal",
        /// Stopped by 0x150 01; only a reset leaves it, and that drops the arm.
        Stopped = 1 "stopped",
        /// The arm's inverse kinematics found no solution.
        NoSolution = 2 "no IK solution",
        /// Singular configuration.
        Singular = 3 "singular",
        /// The target lies beyond a limit.
        TargetBeyondLimit = 4 "target beyond limit",
        /// A joint does not answer its controller.
        JointCommunication = 5 "joint communication",
        /// A brake is not released.
        BrakeNotReleased = 6 "brake not released",
        /// Collision detected.
        Collision = 7 "collision",
        /// Dragged too fast while teaching.
        DragOverspeed = 8 "overspeed in drag",
        /// A joint reports a fault.
        JointFault = 9 "joint fault",
        /// Another fault.
        Other = 10 "other fault",
        /// Recording a drag.
        Recording = 11 "recording",
        /// Replaying a recording.
        Replaying = 12 "replaying",
        /// Replay paused.
        Paused = 13 "paused",
        /// The main controller is too hot.
        ControllerHot = 14 "controller too hot",
        /// The brake resistor is too hot.
        BrakeResistorHot = 15 "brake resistor too hot",
    }
}

reported! {
    /// 0x2A1 byte 2: how the arm moves.
    MoveMode {
        /// End pose, point to point.
        P = 0 "P",
        /// Joints.
        J = 1 "J",
        /// Straight line.
        L = 2 "L",
        /// Arc.
        C = 3 "C",
        /// Per-joint MIT on firmware up to S-V1.8-7.
        M = 4 "M",
        /// Per-joint position and velocity registers.
        Cpv = 5 "CPV",
        /// Per-joint MIT on firmware from S-V1.8-8.
        Mit = 6 "MIT",
    }
}

reported! {
    /// 0x2A1 byte 3: drag teaching.
    TeachState {
        /// Off.
        Off = 0 "off",
        /// Recording started.
        Record = 1 "record",
        /// Recording ended.
        RecordEnd = 2 "record end",
        /// Replaying.
        Replay = 3 "replay",
        /// Replay paused.
        Pause = 4 "pause",
        /// Replay continued.
        Continue = 5 "continue",
        /// Replay aborted.
        Abort = 6 "abort",
        /// Going to the start of the recording.
        ToStart = 7 "to start",
    }
}

reported! {
    /// 0x2A1 byte 4: whether the target is reached.
    MotionState {
        /// Target reached.
        Reached = 0 "reached",
        /// Target not reached (yet).
        NotReached = 1 "not reached",
    }
}

ordered! {
    /// 0x150 byte 0.
    StopOrder {
        /// Nothing.
        None = 0,
        /// The arm's own stop: a damped sink. Only a reset leaves it.
        DampedStop = 1,
        /// Resume, which is a reset: **cuts motor power at once, the arm falls**.
        ResetDropsArm = 2,
    }
}

ordered! {
    /// 0x150 byte 1: orders about a planned trajectory.
    TrajectoryOrder {
        /// Nothing.
        Off = 0,
        /// Pause the current plan.
        Pause = 1,
        /// Continue it.
        Continue = 2,
        /// Clear the current trajectory.
        ClearCurrent = 3,
        /// Clear all trajectories.
        ClearAll = 4,
        /// Ask for the current plan.
        GetCurrent = 5,
        /// Abort.
        Abort = 6,
        /// Transfer a trajectory.
        Transfer = 7,
        /// End of the transfer.
        TransferEnd = 8,
    }
}

ordered! {
    /// 0x150 byte 2: orders about drag teaching.
    TeachOrder {
        /// Nothing.
        Off = 0,
        /// Start recording: enters drag.
        Record = 1,
        /// End recording.
        RecordEnd = 2,
        /// Replay.
        Replay = 3,
        /// Pause.
        Pause = 4,
        /// Continue.
        Continue = 5,
        /// Abort.
        Abort = 6,
        /// Go to the start of the recording.
        ToStart = 7,
    }
}

ordered! {
    /// 0x151 byte 0: who shall command the arm. Teach (2) cannot be ordered.
    ControlOrder {
        /// Nobody.
        Standby = 0,
        /// CAN.
        Can = 1,
        /// Ethernet.
        Ethernet = 3,
        /// Wi-Fi.
        Wifi = 4,
        /// Stored trajectory.
        Offline = 7,
    }
}

ordered! {
    /// 0x151 byte 1: how the arm shall move.
    MoveOrder {
        /// End pose, point to point: the mode for teleoperation by pose.
        P = 0,
        /// Joints.
        J = 1,
        /// Straight line.
        L = 2,
        /// Arc.
        C = 3,
        /// Per-joint MIT, firmware S-V1.5-2 to S-V1.8-7.
        M = 4,
        /// Registers, firmware from S-V1.8-1.
        Cpv = 5,
        /// Per-joint MIT, firmware from S-V1.8-8.
        Mit = 6,
        /// Keep the present move mode (change only speed or installation).
        Keep = 0xFF,
    }
}

ordered! {
    /// 0x151 byte 3.
    FollowOrder {
        /// The arm plans and smooths: position and velocity.
        Planned = 0x00,
        /// Targets go straight to the motors: **no planning, no smoothing, speed percent ignored**.
        Direct = 0xAD,
        /// No change.
        Keep = 0xFF,
    }
}

ordered! {
    /// 0x151 byte 5: how the arm is mounted.
    Installation {
        /// No change.
        Keep = 0,
        /// On a table.
        Horizontal = 1,
        /// On its left side, cable to the rear.
        SideLeft = 2,
        /// On its right side, cable to the rear.
        SideRight = 3,
    }
}

ordered! {
    /// 0x158: which point of an arc the last pose was.
    ArcPoint {
        /// None.
        None = 0,
        /// Start.
        Start = 1,
        /// Middle.
        Middle = 2,
        /// End.
        End = 3,
    }
}

ordered! {
    /// 0x159 byte 6.
    GripperPower {
        /// Off.
        Disable = 0,
        /// On; to be repeated with every target.
        Enable = 1,
        /// Off, errors cleared.
        DisableClear = 2,
        /// On, errors cleared.
        EnableClear = 3,
    }
}

ordered! {
    /// 0x191 (firmware from S-V1.7-4): leader and follower go home together or not.
    LeaderHome {
        /// Back to leading.
        Restore = 0,
        /// The leader goes home.
        Leader = 1,
        /// Both go home.
        Both = 2,
    }
}

ordered! {
    /// 0x470 byte 0.
    LinkRole {
        /// Neither.
        None = 0,
        /// Leader: teaching input.
        Leader = 0xFA,
        /// Follower: motion output. A former leader needs a power cycle as well.
        Follower = 0xFC,
    }
}

ordered! {
    /// 0x470 bytes 1..=3: how far identifiers move.
    IdOffset {
        /// Not at all.
        None = 0x00,
        /// By 0x10.
        By10 = 0x10,
        /// By 0x20.
        By20 = 0x20,
    }
}

ordered! {
    /// 0x472 byte 1.
    LimitQuery {
        /// Angle and speed: answered by 0x473.
        AngleAndSpeed = 1,
        /// Acceleration: answered by 0x47C.
        Acceleration = 2,
    }
}

ordered! {
    /// 0x477 byte 0.
    ParamQuery {
        /// Nothing.
        None = 0,
        /// Tip velocity and acceleration limits: answered by 0x478.
        EndLimits = 1,
        /// Crash levels: answered by 0x47B.
        CrashLevels = 2,
        /// Trajectory index.
        TrajectoryIndex = 3,
        /// Gripper and teach parameters: answered by 0x47E.
        GripperParam = 4,
        /// Assistance ratings: answered by 0x488.
        Assistance = 5,
    }
}

ordered! {
    /// 0x477 byte 1.
    ParamReset {
        /// Nothing.
        None = 0,
        /// Tip velocity and acceleration limits back to default.
        EndLimits = 1,
        /// All joint limits back to default.
        JointLimits = 2,
    }
}

ordered! {
    /// 0x477 byte 2: periodic 0x481..=0x486. The vendor's code says 1 off, 2 on; its change log says the reverse. Named by number,
    /// because nothing is guessed.
    PeriodicCode {
        /// No change.
        Keep = 0,
        /// Code 1.
        One = 1,
        /// Code 2.
        Two = 2,
    }
}

ordered! {
    /// 0x477 byte 4.
    Payload {
        /// No load.
        None = 0,
        /// Half load.
        Half = 1,
        /// Full load.
        Full = 2,
        /// Not set (the vendor's default).
        Unset = 3,
    }
}

ordered! {
    /// 0x47D byte 1: the gripper's full stroke.
    StrokeRange {
        /// Not set: **such a gripper neither moves nor reports**.
        Unset = 0,
        /// 70 mm.
        Mm70 = 70,
        /// 100 mm.
        Mm100 = 100,
    }
}

ordered! {
    /// 0x181..=0x186 byte 0.
    CpvAccess {
        /// Read a register.
        Read = b'r',
        /// Write a register.
        Write = b'w',
    }
}

flags! {
    /// 0x2A8 byte 6.
    GripperFlags {
        /// Supply voltage too low.
        undervoltage = 0,
        /// Motor too hot.
        motor_hot = 1,
        /// Driver overcurrent.
        overcurrent = 2,
        /// Driver too hot.
        driver_hot = 3,
        /// Sensor fault.
        sensor_fault = 4,
        /// Driver error.
        driver_error = 5,
        /// Powered.
        enabled = 6,
        /// Zero found.
        homed = 7,
    }
}

flags! {
    /// 0x261..=0x266 byte 5.
    DriverFlags {
        /// Supply voltage too low.
        undervoltage = 0,
        /// Motor too hot.
        motor_hot = 1,
        /// Driver overcurrent.
        overcurrent = 2,
        /// Driver too hot.
        driver_hot = 3,
        /// Collision protection tripped.
        collision = 4,
        /// Driver error.
        driver_error = 5,
        /// Powered: bring-up waits for it on all six.
        enabled = 6,
        /// Stalled.
        stalled = 7,
    }
}

impl GripperFlags {
    /// The bits that are faults.
    #[must_use]
    pub const fn faults(self) -> u8 {
        self.0 & 0b0011_1111
    }
}

impl DriverFlags {
    /// The bits that are faults.
    #[must_use]
    pub const fn faults(self) -> u8 {
        self.0 & 0b1011_1111
    }
}
