//! Poses with frames in their types, axis maps, and the one door by which a raw quaternion becomes a rotation.
//!
//! `Pose<To, From>` takes coordinates in `From` to coordinates in `To`; read it "From seen in To". Composition needs equal inner
//! frames, so a wrong order does not compile:
//!
//! ```compile_fail
//! use telearm::geometry::{ArmBase, OperatorWorld, Pose, Tcp};
//! let tcp: Pose<ArmBase, Tcp> = Pose::identity();
//! let hand: Pose<OperatorWorld, Tcp> = Pose::identity();
//! let _ = tcp * hand; // Tcp is not OperatorWorld
//! ```

mod axes;
mod pose;
mod rotation;

pub use axes::AxisMap;
pub use pose::{ArmBase, Hand, OperatorWorld, Pose, Tcp, World};
pub use rotation::{
    QuatError, admit_quat_wxyz, angle_between, euler_xyz_continuous, limit_rotation, log_rotation,
    rotation_from_log,
};
