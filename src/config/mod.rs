//! Plans: TOML in, a validated [`Plan`] out, or a [`Report`] with every problem at its place.
//!
//! Strict on purpose: an unknown key is an error with the nearest known one, because a misspelt limit that is silently ignored is worse
//! than a run that does not start. Device and arm parameters belong to their own folders; here are only the frame around them, the
//! lanes and the checks between sections.

mod context;
mod cross;
pub mod frame;
mod params;
mod plan;
mod report;
mod resolve;
mod section;
mod show;

use std::path::Path;

use toml::de::DeTable;

pub use context::Setting;
pub use plan::{
    ArmKindPlan, ArmPlan, ArmTraits, ControlPlan, CouplingPlan, DevicePlan, LANES_MAX, LanePlan,
    OPERATORS_MAX, OperatorPlan, Plan,
};
pub use report::{Finding, Report, Severity, nearest};

use context::Context;
use section::Section;

/// Longest plan that is read, bytes.
const PLAN_BYTES_MAX: u64 = 1 << 20;

/// What happens to unknown keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// They refuse the plan.
    Strict,
    /// They are warnings.
    Lenient,
}

/// A plan and the warnings that came with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The plan.
    pub plan: Plan,
    /// Warnings only.
    pub warnings: Report,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the plan {file}: {error}")]
    Read {
        /// As the user gave it.
        file: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The plan has errors.
    #[error("{report}{} in {}: the plan is not used", count(report.errors()), report.file)]
    Refused {
        /// All of them, at their places.
        report: Report,
    },
}

fn count(errors: usize) -> String {
    match errors {
        1 => "1 error".to_owned(),
        n => format!("{n} errors"),
    }
}

/// Reads a plan from a file.
///
/// # Errors
/// When the file cannot be read or the plan has any error.
pub fn load(path: &Path, strictness: Strictness) -> Result<Loaded, LoadError> {
    let file = path.display().to_string();
    let read = std::fs::metadata(path).and_then(|meta| {
        if meta.len() > PLAN_BYTES_MAX {
            return Err(std::io::Error::other("longer than 1 MiB, so not a plan"));
        }
        std::fs::read_to_string(path)
    });
    match read {
        Ok(text) => parse(&file, &text, strictness),
        Err(error) => Err(LoadError::Read { file, error }),
    }
}

/// Reads a plan from its text; `file` is what messages call it.
///
/// # Errors
/// When the plan has any error.
pub fn parse(file: &str, text: &str, strictness: Strictness) -> Result<Loaded, LoadError> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    let context = Context::default();
    for error in &syntax {
        context.error(
            error.span().unwrap_or(0..0),
            error.message(),
            "this is not TOML; other findings below may follow from it",
        );
    }
    let root = Section::root(&context, document.get_ref());
    let draft = resolve::read(&context, &root);
    cross::check(&draft);
    let resolve::Draft {
        rate_hz,
        control,
        coupling,
        operators,
        arms,
        lanes,
    } = draft;
    let mut plan = Plan {
        file: file.to_owned(),
        rate_hz,
        control,
        coupling: coupling.1,
        operators: operators.into_iter().map(|(_, o)| o).collect(),
        arms: arms.into_iter().map(|(_, a)| a).collect(),
        lanes: lanes.into_iter().map(|(_, l)| l).collect(),
        settings: Vec::new(),
    };
    // Sections report their unknown keys when they go out of scope.
    drop(coupling.0);
    drop(root);
    let (findings, settings) = context.finish(strictness == Strictness::Lenient);
    plan.settings = settings;
    let report = Report {
        file: file.to_owned(),
        text: text.to_owned(),
        findings,
    };
    if report.errors() > 0 {
        return Err(LoadError::Refused { report });
    }
    Ok(Loaded {
        plan,
        warnings: report,
    })
}
