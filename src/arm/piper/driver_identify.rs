//! What is asked of the arm once: firmware, limits, gripper; and what follows from the answers.

use super::driver::PiperDriver;
use super::driver_bringup::{Phase, due};
use super::driver_faults;
use super::driver_feedback::Table;
use super::driver_report::Note;
use super::model::{DhVariant, PiperModel};
use super::params::DhChoice;
use super::wire::{
    Command, FirmwareText, FirmwareVersion, Joint, JointSelect, LimitQuery, ParamOrder, ParamQuery,
};
use crate::time::{Span, Stamp};
use crate::units::MilliDegrees;

/// Between two tries of a query.
const QUERY_EVERY: Span = Span::from_ms(60);
const QUERY_TRIES: u8 = 3;
/// Measured joints and pose may disagree by that much.
const MISFIT_MAX_M: f64 = 0.005;

/// What is asked of the arm once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Firmware,
    Limits(Joint),
    Gripper,
}

impl Question {
    fn next(self) -> Option<Self> {
        match self {
            Self::Firmware => Some(Self::Limits(Joint::J1)),
            Self::Limits(joint) => {
                Some(Joint::from_number(joint.number() + 1).map_or(Self::Gripper, Self::Limits))
            }
            Self::Gripper => None,
        }
    }

    const fn command(self) -> Command {
        match self {
            Self::Firmware => Command::QueryFirmware,
            Self::Limits(joint) => {
                Command::QueryLimits(JointSelect::One(joint), LimitQuery::AngleAndSpeed)
            }
            Self::Gripper => Command::Param(ParamOrder::query(ParamQuery::GripperParam)),
        }
    }

    fn answered(self, table: &Table) -> bool {
        match self {
            // Enough once the version can be told; the date behind it adds nothing.
            Self::Firmware => table.firmware.is_complete(),
            Self::Limits(joint) => table.limits.get(joint.index()).is_some_and(Option::is_some),
            Self::Gripper => table.gripper_param.is_some(),
        }
    }
}

impl PiperDriver {
    pub(super) fn identify(
        &mut self,
        question: Question,
        asked: Option<Stamp>,
        tries: u8,
        now: Stamp,
        may_configure: bool,
    ) {
        let answered = question.answered(&self.table);
        let given_up = tries >= QUERY_TRIES && due(asked, now, QUERY_EVERY);
        if answered || given_up {
            self.conclude(question, answered);
            let next = question
                .next()
                .filter(|q| *q != Question::Gripper || self.params.gripper);
            match next {
                Some(question) => {
                    self.phase = Phase::Identifying {
                        question,
                        asked: None,
                        tries: 0,
                    }
                }
                None => self.finish_identifying(),
            }
        } else if may_configure && due(asked, now, QUERY_EVERY) {
            if question == Question::Firmware {
                // Blocks carry no number: a fresh answer needs a fresh text.
                self.table.firmware = FirmwareText::new();
            }
            if self.configure(&question.command(), now) {
                self.phase = Phase::Identifying {
                    question,
                    asked: Some(now),
                    tries: tries + 1,
                };
            }
        }
    }

    /// Draws what can be drawn from one answer, or from its absence.
    fn conclude(&self, question: Question, answered: bool) {
        let report = &self.report;
        match question {
            Question::Firmware => match self.table.firmware.version() {
                Some(version) => {
                    report.set_firmware(version);
                    if !version.is_v2() {
                        report.add(Note::FirmwareV1);
                    } else if version < FirmwareVersion::new(1, 7, 4) {
                        report.add(Note::FirmwareOld);
                    }
                }
                None => report.add(Note::FirmwareUnknown),
            },
            Question::Limits(_) if !answered => report.add(Note::LimitsUnknown),
            Question::Limits(_) => {}
            Question::Gripper => match self.table.gripper_param {
                None => report.add(Note::GripperUnknown),
                Some(param) if param.range_mm == 0 => report.add(Note::GripperStrokeUnset),
                Some(param) if i32::from(param.range_mm) * 1000 != self.params.gripper_max_um => {
                    report.add(Note::GripperStrokeDiffers)
                }
                Some(_) => {}
            },
        }
    }

    fn finish_identifying(&mut self) {
        if let Some(fault) = driver_faults::absurd_limits(&self.table) {
            return self.transition_to_sticky_fault(fault);
        }
        self.choose_geometry();
        self.identified = true;
        if self.ever_up {
            self.transition_to_moding_if_on()
        } else {
            self.transition_to_enabling(0)
        }
    }

    /// Takes the geometry that gives the measured pose. The firmware version only breaks a tie: feedback is what the arm computes with.
    fn choose_geometry(&self) {
        let (Some(angles), Some(pose)) = (self.table.joints.value(), self.table.pose.value())
        else {
            return;
        };
        let (q, measured) = (angles.map(MilliDegrees::as_rad), pose.to_pose().position());
        let misfit_m = |model: &PiperModel| (model.fk(&q).position() - measured).norm();
        let (newer, older) = (misfit_m(&self.newer_model), misfit_m(&self.older_model));
        let by_firmware = self
            .table
            .firmware
            .version()
            .map_or(DhVariant::Offset, DhVariant::of);
        let best = if (newer - older).abs() < 1e-3 {
            by_firmware
        } else if newer < older {
            DhVariant::Offset
        } else {
            DhVariant::Old
        };
        let fits = newer.min(older) <= MISFIT_MAX_M;
        if !fits {
            self.report.add(Note::GeometryMisfit);
        }
        let chosen = match self.params.dh {
            DhChoice::Auto => best,
            DhChoice::Offset => DhVariant::Offset,
            DhChoice::NoOffset => DhVariant::Old,
        };
        if fits && chosen != best {
            self.report.add(Note::GeometryChoice);
        }
        self.report.set_geometry(chosen);
    }
}
