//! [`Guard::vet`]: yes or no for a finished command.

use nalgebra::Vector3;

use super::vetted::Vetted;
use super::workspace::Workspace;
use crate::geometry::{ArmBase, Pose, Tcp, angle_between};
use crate::kinematics::ArmModel;
use crate::signal::{ArmCommand, Target};

/// Room for floating-point rounding in comparisons with a limit.
const ROUNDING: f64 = 1e-6;
/// The first command of a stream must stand within this of the measured pose.
const FIRST_MAX_M: f64 = 0.002;
/// Likewise for rotation.
const FIRST_MAX_RAD: f64 = 0.01;
/// Motion may use this share of a joint's speed; the rest is for the braking that may follow it.
const MOTION_SHARE_OF_JOINT_SPEED: f64 = 0.6;
/// Braking is foreseen to within this, metres: its turning is known to second order only.
const FORESEEN_MARGIN_M: f64 = 0.0005;
/// Braking is foreseen at points, and its turning to second order: near a wrist singularity what is sent may be faster than foreseen.
const FORESEEN_SHARE_OF_JOINT_SPEED: f64 = 0.7;

/// Motion stays this far inside a joint's limits, rad: room for what braking does between the foreseen points.
const JOINT_MARGIN_RAD: f64 = 0.02;

/// What the tool must not run into, and what moves it.
#[derive(Clone, Copy)]
pub struct Surroundings<'a, const N: usize> {
    /// The arm's geometry.
    pub model: &'a dyn ArmModel<N>,
    /// Balls to stay out of.
    pub keep_outs: &'a [KeepOut],
}

/// Limits per command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GuardLimits {
    /// Highest linear speed of the tool, m/s, by norm.
    pub lin_vel_max: f64,
    /// Highest angular speed of the tool, rad/s, by norm.
    pub ang_vel_max: f64,
    /// Leash: highest distance of a moving command from the measured pose, metres.
    pub lead_max_m: f64,
    /// Leash in rotation, rad.
    pub lead_max_rad: f64,
    /// Command period, s.
    pub period_s: f64,
    /// Share of the joints' speed limits that may be used, 0..=1 (the Piper's `speed_percent`, for instance, does not lower this).
    pub joint_speed_share: f64,
}

/// Why a command was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Veto {
    /// A number is NaN or infinite.
    NotFinite,
    /// Outside the workspace, and farther out than before.
    Workspace,
    /// The arm has no joint solution near the last one.
    NoSolution,
    /// A joint would pass its limit.
    JointLimit,
    /// A joint would move faster than it may.
    JointSpeed,
    /// The tool would move faster than it may.
    LinearStep,
    /// The tool would turn faster than it may.
    AngularStep,
    /// The command would lead the measured pose by more than the leash.
    Leash,
    /// The first command of a stream is not the measured pose.
    FirstNotMeasured,
    /// There is nothing to compare with: no measured pose.
    NoBaseline,
    /// The tool would come too near to another arm's tool.
    TooNear,
}

/// A ball that the tool stays out of, in the arm base: another arm's tool, its braking distance and the least distance around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeepOut {
    /// Centre, metres.
    pub center: Vector3<f64>,
    /// Radius, metres.
    pub radius_m: f64,
}

/// Most balls: one per other lane.
pub type KeepOuts = heapless::Vec<KeepOut, 4>;

/// Names of the vetoes, in the order of their numbers.
pub const VETO_NAMES: [&str; 11] = [
    "not_finite",
    "workspace",
    "no_solution",
    "joint_limit",
    "joint_speed",
    "linear_step",
    "angular_step",
    "leash",
    "first_not_measured",
    "no_baseline",
    "too_near",
];

/// What a command is compared with: the last one sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline<const N: usize> {
    /// Tool pose of the last sent command (or the measured one at the start of a stream).
    pub tcp: Pose<ArmBase, Tcp>,
    /// Joints of it: sent, or implied by our inverse kinematics where the arm solves its own.
    pub q: [f64; N],
    /// A command has been sent since the stream began; else the values are measured ones.
    pub sent: bool,
}

/// A command that passed, with what it implies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict<const N: usize> {
    /// The sealed command.
    pub command: Vetted<ArmCommand<N>>,
    /// What the next command is compared with once this one has been sent.
    pub baseline: Baseline<N>,
}

/// The guard of one lane. Holds limits, no history: what was sent is the caller's to keep, since only the caller knows what was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guard {
    /// Where the tool may be.
    pub workspace: Workspace,
    /// How far it may go per command.
    pub limits: GuardLimits,
}

impl Guard {
    /// Checks `command` against the last sent one, the workspace, the joints and the leash. A frozen or braking command
    /// (`motion == false`) is not judged by workspace and leash: it must be sendable wherever the arm happens to stand.
    ///
    /// # Errors
    /// [`Veto`] names the first check that failed. Nothing is altered.
    pub fn vet<const N: usize>(
        &self,
        command: ArmCommand<N>,
        last: &Baseline<N>,
        measured: Option<&Pose<ArmBase, Tcp>>,
        model: &dyn ArmModel<N>,
    ) -> Result<Verdict<N>, Veto> {
        if !is_finite(&command) {
            return Err(Veto::NotFinite);
        }
        let (tcp, q) = match command.target {
            Target::Tcp(tcp) => (tcp, self.implied_joints(&tcp, last, &command, model)?),
            Target::Joint(q) => (model.forward(&q), q),
        };
        if !last.sent {
            let far = (tcp.position() - last.tcp.position()).norm() > FIRST_MAX_M
                || angle_between(tcp.rotation(), last.tcp.rotation()) > FIRST_MAX_RAD;
            if far || command.motion {
                return Err(Veto::FirstNotMeasured);
            }
        } else {
            // A joint-space way (homing) is limited in joint space; its tool speed is whatever the joints make of it.
            if matches!(command.target, Target::Tcp(_)) {
                self.check_step(&tcp, last)?;
            }
            self.check_joints(&q, last, command.motion, model)?;
        }
        if command.motion {
            let outside = self.workspace.violation_m(&tcp, model);
            if outside > 0.0 && outside > self.workspace.violation_m(&last.tcp, model) {
                return Err(Veto::Workspace);
            }
            self.check_leash(&tcp, measured)?;
        }
        Ok(Verdict {
            command: Vetted::seal(command),
            baseline: Baseline { tcp, q, sent: true },
        })
    }

    /// Whether braking from a moving command would be admissible all the way: asked before the command is accepted, so that braking
    /// later never has to leave the workspace, the leash or the joints' limits. `braking` are poses `dt_s` apart, the last one at rest.
    ///
    /// # Errors
    /// [`Veto`] names what braking would break.
    pub fn foresee<const N: usize>(
        &self,
        braking: impl Iterator<Item = Pose<ArmBase, Tcp>>,
        dt_s: f64,
        last: &Baseline<N>,
        measured: Option<&Pose<ArmBase, Tcp>>,
        surroundings: &Surroundings<'_, N>,
    ) -> Result<(), Veto> {
        let Surroundings { model, keep_outs } = *surroundings;
        let allowed = self
            .workspace
            .outside_by_m(&last.tcp, model)
            .max(-FORESEEN_MARGIN_M);
        let mut q_before = last.q;
        for pose in braking {
            if self.workspace.outside_by_m(&pose, model) > allowed {
                return Err(Veto::Workspace);
            }
            self.check_leash(&pose, measured)?;
            check_keep_outs(&pose, &last.tcp, keep_outs)?;
            let q = model
                .inverse_near(&pose, &q_before)
                .ok_or(Veto::NoSolution)?;
            check_limits(&q, &last.q, JOINT_MARGIN_RAD, model)?;
            let share = self.limits.joint_speed_share * FORESEEN_SHARE_OF_JOINT_SPEED * dt_s;
            let fast = q
                .iter()
                .zip(&q_before)
                .zip(model.joint_velocity_limits())
                .any(|((a, b), speed)| (a - b).abs() > speed * share);
            if fast {
                return Err(Veto::JointSpeed);
            }
            q_before = q;
        }
        Ok(())
    }

    fn implied_joints<const N: usize>(
        &self,
        tcp: &Pose<ArmBase, Tcp>,
        last: &Baseline<N>,
        command: &ArmCommand<N>,
        model: &dyn ArmModel<N>,
    ) -> Result<[f64; N], Veto> {
        match model.inverse_near(tcp, &last.q) {
            Some(q) => Ok(q),
            // A frozen target needs no new solution: the arm is there already.
            None if !command.motion && same_pose(tcp, &last.tcp) => Ok(last.q),
            None => Err(Veto::NoSolution),
        }
    }

    fn check_joints<const N: usize>(
        &self,
        q: &[f64; N],
        last: &Baseline<N>,
        motion: bool,
        model: &dyn ArmModel<N>,
    ) -> Result<(), Veto> {
        let share = self.limits.joint_speed_share
            * if motion {
                MOTION_SHARE_OF_JOINT_SPEED
            } else {
                1.0
            };
        check_limits(
            q,
            &last.q,
            if motion { JOINT_MARGIN_RAD } else { 0.0 },
            model,
        )?;
        let most = share * self.limits.period_s;
        let fast = q
            .iter()
            .zip(&last.q)
            .zip(model.joint_velocity_limits())
            .any(|((now, before), speed)| (now - before).abs() > speed * most + ROUNDING);
        if fast { Err(Veto::JointSpeed) } else { Ok(()) }
    }

    fn check_step<const N: usize>(
        &self,
        tcp: &Pose<ArmBase, Tcp>,
        last: &Baseline<N>,
    ) -> Result<(), Veto> {
        let step = (tcp.position() - last.tcp.position()).norm();
        if step > self.limits.lin_vel_max * self.limits.period_s * (1.0 + 1e-4) + 1e-9 {
            return Err(Veto::LinearStep);
        }
        let turn = angle_between(tcp.rotation(), last.tcp.rotation());
        if turn > self.limits.ang_vel_max * self.limits.period_s * (1.0 + 1e-4) + 1e-7 {
            return Err(Veto::AngularStep);
        }
        Ok(())
    }

    fn check_leash(
        &self,
        tcp: &Pose<ArmBase, Tcp>,
        measured: Option<&Pose<ArmBase, Tcp>>,
    ) -> Result<(), Veto> {
        let Some(measured) = measured else {
            return Err(Veto::NoBaseline);
        };
        let lead = (tcp.position() - measured.position()).norm();
        let turned = angle_between(tcp.rotation(), measured.rotation());
        if lead > self.limits.lead_max_m || turned > self.limits.lead_max_rad {
            Err(Veto::Leash)
        } else {
            Ok(())
        }
    }
}

/// An arm that stands beyond a limit (or inside the margin) may come back, never go farther.
fn check_limits<const N: usize>(
    q: &[f64; N],
    before: &[f64; N],
    margin: f64,
    model: &dyn ArmModel<N>,
) -> Result<(), Veto> {
    let beyond =
        |angle: f64, (low, high): (f64, f64)| (low + margin - angle).max(angle - high + margin);
    let worse = q
        .iter()
        .zip(before)
        .zip(model.joint_limits())
        .any(|((&now, &then), &limit)| {
            let now = beyond(now, limit);
            now > ROUNDING && now > beyond(then, limit) + ROUNDING
        });
    if worse { Err(Veto::JointLimit) } else { Ok(()) }
}

/// Inside a ball one may go away from its centre, never nearer.
fn check_keep_outs(
    pose: &Pose<ArmBase, Tcp>,
    before: &Pose<ArmBase, Tcp>,
    keep_outs: &[KeepOut],
) -> Result<(), Veto> {
    let too_near = keep_outs.iter().any(|ball| {
        let distance = (pose.position() - ball.center).norm();
        distance < ball.radius_m && distance < (before.position() - ball.center).norm()
    });
    if too_near { Err(Veto::TooNear) } else { Ok(()) }
}

fn same_pose(a: &Pose<ArmBase, Tcp>, b: &Pose<ArmBase, Tcp>) -> bool {
    (a.position() - b.position()).norm() < 1e-9 && angle_between(a.rotation(), b.rotation()) < 1e-7
}

fn is_finite<const N: usize>(command: &ArmCommand<N>) -> bool {
    let target = match &command.target {
        Target::Tcp(pose) => pose.is_finite(),
        Target::Joint(q) => q.iter().all(|v| v.is_finite()),
    };
    target && command.q_velocity.iter().all(|v| v.is_finite()) && command.stiffness.is_finite()
}
