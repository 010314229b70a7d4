//! The faults, by what goes wrong.

mod arm;
mod bus;
mod link;
mod operator;
mod process;
mod reach;
mod stop;

use super::Fault;
use super::stand::{BRAKING, Stand};
use crate::time::{Span, Stamp};

/// All faults, in the order in which they are shown.
#[must_use]
pub fn all() -> Vec<&'static Fault> {
    FAULTS.iter().copied().flatten().collect()
}

/// The faults, by what goes wrong.
pub const FAULTS: &[&[Fault]] = &[
    operator::FAULTS,
    link::FAULTS,
    stop::FAULTS,
    arm::FAULTS,
    bus::FAULTS,
    reach::FAULTS,
    process::FAULTS,
];

/// Good packets after a gap must come for this long before a hold ends (100 ms), and a look more.
const RESUME: Span = Span::from_ms(100);

/// It holds for that reason and was still from `from` plus braking until now; then `cure`, and it goes on by itself without a jump.
fn holds_and_resumes(
    stand: &mut Stand,
    why: &str,
    from: Stamp,
    cure: impl FnOnce(&mut Stand),
) -> Result<String, String> {
    stand.wait(&format!("a hold ({why})"), |s| {
        s.mode() == "holding" && s.detail() == why
    })?;
    let held = crate::rt::clock::now();
    super::stand::pause(150);
    stand.still_since(held.max(from) + BRAKING)?;
    cure(stand);
    stand.wait_mode("active")?;
    moves_on(stand)?;
    Ok(format!(
        "held ({why}) after {:.0} ms, went on by itself",
        held.age_of(from).as_ms()
    ))
}

/// The arm is commanded along with the swaying hand.
fn moves_on(stand: &mut Stand) -> Result<(), String> {
    for _ in 0..5 {
        if stand.travel_within(600) > 0.02 {
            return Ok(());
        }
    }
    Err(format!("it does not move on: {}", stand.status()?.short()))
}
