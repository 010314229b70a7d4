//! What the driver found out about the arm, readable from any thread: firmware, geometry in use, and notes for the user.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up, and reading by plain threads; control only stores into atomics"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::model::DhVariant;
use super::wire::FirmwareVersion;

/// Something the user should know, that stops nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Note {
    /// No answer to the firmware query.
    FirmwareUnknown = 1 << 0,
    /// Firmware before S-V1.5-2 speaks an older protocol.
    FirmwareV1 = 1 << 1,
    /// Firmware S-V1.6-5 was seen going to its zero pose instead of the target.
    FirmwareOld = 1 << 2,
    /// No answer to the limit query.
    LimitsUnknown = 1 << 3,
    /// The geometry does not give the measured pose.
    GeometryMisfit = 1 << 4,
    /// No gripper feedback.
    GripperAbsent = 1 << 5,
    /// The gripper's stroke was never set.
    GripperStrokeUnset = 1 << 6,
    /// The gripper did not switch on.
    GripperOff = 1 << 7,
    /// No answer to the gripper query.
    GripperUnknown = 1 << 8,
    /// The plan's gripper stroke is not the one stored in the arm.
    GripperStrokeDiffers = 1 << 9,
    /// The plan's geometry is not the one that fits.
    GeometryChoice = 1 << 10,
    /// A former leader needs a power cycle.
    PowerCycle = 1 << 11,
}

impl Note {
    /// All notes.
    pub const ALL: [Self; 12] = [
        Self::FirmwareUnknown,
        Self::FirmwareV1,
        Self::FirmwareOld,
        Self::LimitsUnknown,
        Self::GeometryMisfit,
        Self::GripperAbsent,
        Self::GripperStrokeUnset,
        Self::GripperOff,
        Self::GripperUnknown,
        Self::GripperStrokeDiffers,
        Self::GeometryChoice,
        Self::PowerCycle,
    ];

    /// In words, with what to do.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::FirmwareUnknown => {
                "the arm did not answer the firmware query; geometry chosen by what fits its feedback"
            }
            Self::FirmwareV1 => "firmware before S-V1.5-2 speaks an older protocol; update it",
            Self::FirmwareOld => {
                "firmware before S-V1.7-4: arms were seen going to the zero pose instead of the target; watch the first motion, better update"
            }
            Self::LimitsUnknown => {
                "the arm did not answer the limit query; its own joint limits are not checked"
            }
            Self::GeometryMisfit => {
                "joints and pose reported by the arm disagree by more than 5 mm under both geometries: a joint zero may have moved; check before use"
            }
            Self::GripperAbsent => {
                "no gripper feedback (0x2A8); if none is mounted, set gripper = false"
            }
            Self::GripperStrokeUnset => {
                "the gripper's stroke was never set (0x47D), so it neither moves nor reports; set it once with the vendor's tool"
            }
            Self::GripperOff => "the gripper did not switch on",
            Self::GripperUnknown => "the arm did not answer the gripper query (0x47E)",
            Self::GripperStrokeDiffers => {
                "gripper_max_um is not the stroke stored in the arm (0x47E)"
            }
            Self::GeometryChoice => {
                "the plan's dh does not fit the arm's feedback, the other geometry does; set dh = \"auto\""
            }
            Self::PowerCycle => {
                "the arm was a leader: it has been told to follow; switch its power off and on"
            }
        }
    }
}

/// Facts and notes about the connected arm.
#[derive(Debug)]
pub struct PiperReport {
    notes: AtomicU32,
    firmware: AtomicU32,
    old_geometry: AtomicBool,
}

impl PiperReport {
    pub(super) fn new(variant: DhVariant) -> Arc<Self> {
        Arc::new(Self {
            notes: AtomicU32::new(0),
            firmware: AtomicU32::new(0),
            old_geometry: AtomicBool::new(variant == DhVariant::Old),
        })
    }

    pub(super) fn set_geometry(&self, variant: DhVariant) {
        self.old_geometry
            .store(variant == DhVariant::Old, Ordering::Relaxed);
    }

    /// The geometry in use.
    #[must_use]
    pub fn geometry(&self) -> DhVariant {
        if self.old_geometry.load(Ordering::Relaxed) {
            DhVariant::Old
        } else {
            DhVariant::Offset
        }
    }

    pub(super) fn add(&self, note: Note) {
        self.notes.fetch_or(note as u32, Ordering::Relaxed);
    }

    pub(super) fn set_firmware(&self, v: FirmwareVersion) {
        self.firmware.store(
            u32::from_be_bytes([1, v.major, v.minor, v.patch]),
            Ordering::Relaxed,
        );
    }

    /// The arm's firmware, once known.
    #[must_use]
    pub fn firmware(&self) -> Option<FirmwareVersion> {
        let [known, major, minor, patch] = self.firmware.load(Ordering::Relaxed).to_be_bytes();
        (known == 1).then(|| FirmwareVersion::new(major, minor, patch))
    }

    /// The notes so far.
    pub fn notes(&self) -> impl Iterator<Item = Note> {
        let bits = self.notes.load(Ordering::Relaxed);
        Note::ALL.into_iter().filter(move |n| bits & *n as u32 != 0)
    }
}

impl crate::arm::registry::ArmReport for PiperReport {
    fn lines(&self) -> Vec<String> {
        let firmware = self
            .firmware()
            .map_or_else(|| "unknown".to_owned(), |v| v.to_string());
        let mut lines = vec![format!(
            "firmware {firmware}, geometry {:?}",
            self.geometry()
        )];
        lines.extend(self.notes().map(|n| format!("note: {}", n.text())));
        lines
    }
}
