//! Mains, power profile, throttling: a laptop on battery is another computer.

use super::host::Host;
use super::{Check, Finding};

const SUPPLIES: &str = "/sys/class/power_supply";

/// Where the power comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// No battery: a desktop.
    NoBattery,
    /// A battery, and a charger that delivers.
    Mains,
    /// The battery alone.
    Battery,
}

/// Mains or battery.
#[must_use]
pub fn judge_source(source: Source) -> Finding {
    Check::should("mains", "mains power").judge(
        source != Source::Battery,
        match source {
            Source::NoBattery => "no battery",
            Source::Mains => "plugged in",
            Source::Battery => "on battery",
        },
        "plug the charger in: on battery the processor is held back",
    )
}

/// The firmware's own idea of how fast this computer may be.
#[must_use]
pub fn judge_profile(profile: Option<&str>, choices: Option<&str>) -> Finding {
    let check = Check::should("power_profile", "power profile");
    let Some(profile) = profile else {
        return check.told("the firmware has none");
    };
    let offered = choices.is_some_and(|c| c.split_whitespace().any(|word| word == "performance"));
    check.judge(
        profile == "performance" || !offered,
        profile,
        "powerprofilesctl set performance",
    )
}

/// Times that a core was slowed down because it was too hot.
#[must_use]
pub fn judge_throttling(before: Option<u64>, after: Option<u64>) -> Finding {
    let check = Check::should("throttled", "not too hot");
    match (before, after) {
        (Some(before), Some(after)) => {
            let count = after.saturating_sub(before);
            check.judge(
                count == 0,
                format!("slowed down {count} times while we watched"),
                "let it cool down: fans, dust, a hard surface below",
            )
        }
        _ => check.told("the kernel does not count throttling here"),
    }
}

/// The sum over all cores, of core and package.
pub(super) fn read_throttled(host: &Host) -> Option<u64> {
    let cpus = host.names("/sys/devices/system/cpu");
    let counts: Vec<u64> = cpus
        .iter()
        .flat_map(|cpu| {
            ["core_throttle_count", "package_throttle_count"].map(|count| {
                host.number(&format!(
                    "/sys/devices/system/cpu/{cpu}/thermal_throttle/{count}"
                ))
            })
        })
        .flatten()
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn read_source(host: &Host) -> Source {
    let supplies = host.names(SUPPLIES);
    // A battery of scope "Device" is that of a mouse.
    let is_battery = |name: &&String| {
        host.text(&format!("{SUPPLIES}/{name}/type")).as_deref() == Some("Battery")
            && host.text(&format!("{SUPPLIES}/{name}/scope")).as_deref() != Some("Device")
    };
    if !supplies.iter().any(|name| is_battery(&name)) {
        return Source::NoBattery;
    }
    // Chargers are of type Mains, or USB where they come through such a socket.
    if supplies
        .iter()
        .any(|name| host.number(&format!("{SUPPLIES}/{name}/online")) == Some(1))
    {
        Source::Mains
    } else {
        Source::Battery
    }
}

pub(super) fn examine(
    host: &Host,
    throttled_before: Option<u64>,
    throttled_after: Option<u64>,
) -> Vec<Finding> {
    vec![
        judge_source(read_source(host)),
        judge_profile(
            host.text("/sys/firmware/acpi/platform_profile").as_deref(),
            host.text("/sys/firmware/acpi/platform_profile_choices")
                .as_deref(),
        ),
        judge_throttling(throttled_before, throttled_after),
    ]
}
