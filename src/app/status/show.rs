//! The snapshot as one line, as several, and as JSON.

use std::fmt::Write;

use super::{ArmStatus, LaneStatus, PoseStatus, SourceStatus, StatusSnapshot};

impl StatusSnapshot {
    /// One line: the stop first if there is one, then each lane with its first reason, then the cycle.
    #[must_use]
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        if let Some(stop) = &self.stop {
            parts.push(format!("STOPPED by {} ({})", stop.source, stop.reason));
        }
        for lane in &self.lanes {
            parts.push(lane.line());
        }
        parts.push(self.cycle_line());
        parts.join(" | ")
    }

    /// Several lines, for the live view.
    #[must_use]
    pub fn view(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_view(&mut out);
        out
    }

    /// Pretty JSON with a final line end.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        text.push('\n');
        text
    }

    fn cycle_line(&self) -> String {
        let p = &self.process;
        let mut text = format!("{} Hz, late {}", p.rate_hz, p.late_cycles);
        if let Some(worst) = p.wakeup_worst_us {
            let _ = write!(text, ", worst wake-up {worst:.0} us");
        }
        text += if p.real_time { ", RT yes" } else { ", RT no" };
        if let Some(core) = p.core {
            let _ = write!(text, " on core {core}");
        }
        if p.dry_run {
            text += ", dry run";
        }
        text
    }

    fn write_view(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "telearm  {}  up {}",
            self.plan,
            duration(self.uptime_s)
        )?;
        writeln!(out, "cycle    {}", self.cycle_line())?;
        let p = &self.process;
        if !p.real_time {
            writeln!(out, "         real time: {}", p.real_time_reason)?;
        }
        let heap = p
            .heap_operations
            .map_or_else(String::new, |n| format!(", {n} heap operations"));
        let away = if p.input_away > 0 {
            format!(", input away {} times", p.input_away)
        } else {
            String::new()
        };
        writeln!(
            out,
            "         control: {} page faults{heap}{away}",
            p.page_faults
        )?;
        if p.taken_over {
            writeln!(out, "         THE WATCHDOG HOLDS THE ARMS: restart telearm")?;
        }
        if let Some(stop) = &self.stop {
            writeln!(
                out,
                "STOP     latched by {} ({}), {} ago",
                stop.source,
                stop.reason,
                duration(stop.age_s)
            )?;
            if !stop.asserted_by.is_empty() {
                writeln!(
                    out,
                    "         still asserted by {}: a reset is refused until that ends",
                    stop.asserted_by.join(", ")
                )?;
            }
        }
        for lane in &self.lanes {
            writeln!(out)?;
            lane.write_view(out)?;
            if let Some(source) = self.sources.iter().find(|s| s.name == lane.operator) {
                source.write_view(out)?;
            }
            if let Some(arm) = self.arms.iter().find(|a| a.name == lane.arm) {
                arm.write_view(out)?;
            }
        }
        let others = self
            .sources
            .iter()
            .filter(|s| self.lanes.iter().all(|l| l.operator != s.name));
        for source in others {
            writeln!(out)?;
            source.write_view(out)?;
        }
        if !self.events.is_empty() {
            writeln!(out)?;
        }
        for event in &self.events {
            writeln!(out, "  {event}")?;
        }
        Ok(())
    }
}

impl LaneStatus {
    fn mode_text(&self) -> String {
        let mode = self.mode.to_uppercase();
        if self.mode_detail.is_empty() {
            mode
        } else {
            format!("{mode} ({})", self.mode_detail)
        }
    }

    fn line(&self) -> String {
        let mut text = format!("{} {}", self.name, self.mode_text());
        match self.inhibits.split_first() {
            Some((first, rest)) => {
                let _ = write!(text, ": {} - {}", first.reason, first.advice);
                if !rest.is_empty() {
                    let _ = write!(text, " (+{} more)", rest.len());
                }
            }
            None if self.slowed != "no" => {
                let _ = write!(text, ", slowed: {}", self.slowed);
            }
            None => {}
        }
        let _ = write!(text, ", hand {}", age(self.operator_age_ms));
        text
    }

    fn write_view(&self, out: &mut String) -> std::fmt::Result {
        write!(
            out,
            "lane     {}: {} -> {}  {}",
            self.name,
            self.operator,
            self.arm,
            self.mode_text()
        )?;
        if self.slowed == "no" {
            writeln!(out)?;
        } else {
            writeln!(out, "  slowed: {}", self.slowed)?;
        }
        for (i, why) in self.inhibits.iter().enumerate() {
            let lead = if i == 0 { "  why    " } else { "         " };
            writeln!(out, "{lead}{}: {}", why.reason, why.advice)?;
        }
        if let Some(pose) = &self.command {
            writeln!(out, "  cmd    {}{}", pose_text(pose), opening(self.opening))?;
        }
        write!(out, "  sent   {}, not sent {}", self.sent, self.not_sent)?;
        for veto in &self.vetoes {
            write!(out, ", {} {}", veto.name, veto.count)?;
        }
        if self.edges_ignored > 0 {
            write!(out, ", engage acts too early {}", self.edges_ignored)?;
        }
        writeln!(out)
    }
}

impl SourceStatus {
    fn write_view(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "  hand   {} {} on {}, from {}: {:.0} packets/s, age {}",
            self.name,
            self.device,
            self.listen,
            self.sender.as_deref().unwrap_or("nobody yet"),
            self.packets_per_s,
            age(self.age_ms)
        )?;
        let frame = match (self.frame, self.frame_verified) {
            (Some(frame), false) => format!(", axes {frame} not verified"),
            _ => String::new(),
        };
        write!(out, "         accepted {}{frame}", self.accepted)?;
        for drop in &self.drops {
            write!(out, ", {} {}", drop.name, drop.count)?;
        }
        writeln!(out)
    }
}

impl ArmStatus {
    fn write_view(&self, out: &mut String) -> std::fmt::Result {
        write!(
            out,
            "  arm    {} {} on {}: {}",
            self.name, self.kind, self.link, self.phase
        )?;
        if !self.phase_detail.is_empty() {
            write!(out, " ({})", self.phase_detail)?;
        }
        writeln!(
            out,
            ", pose {}, joints {}",
            age(self.pose_age_ms),
            age(self.joints_age_ms)
        )?;
        writeln!(
            out,
            "         {:.0} frames/s in, {:.0} out, {} in flight, {} bus errors, {} waits for room",
            self.frames_in_per_s, self.frames_out_per_s, self.in_flight, self.bus_errors, self.busy
        )?;
        for note in &self.notes {
            writeln!(out, "         {note}")?;
        }
        if let Some(warning) = &self.warning {
            writeln!(out, "         the arm complains: {warning}")?;
        }
        match &self.measured {
            Some(pose) => writeln!(out, "  tcp    {}{}", pose_text(pose), opening(self.opening)),
            None => writeln!(out, "  tcp    never received"),
        }
    }
}

fn pose_text(pose: &PoseStatus) -> String {
    let [x, y, z] = pose.position_mm;
    let [rx, ry, rz] = pose.rotation_deg;
    format!("{x:8.1} {y:8.1} {z:8.1} mm  {rx:7.1} {ry:7.1} {rz:7.1} deg")
}

fn opening(opening: Option<f64>) -> String {
    opening.map_or_else(String::new, |o| format!("  open {:3.0} %", o * 100.0))
}

fn age(ms: Option<f64>) -> String {
    match ms {
        None => "never".to_owned(),
        Some(ms) if ms < 1000.0 => format!("{ms:.0} ms"),
        Some(ms) => duration(ms * 1e-3),
    }
}

fn duration(s: f64) -> String {
    // Not negative and far below 2^53, so the conversion is exact enough to show.
    let whole = s.max(0.0) as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes) {
        (0, 0) => format!("{s:.1} s"),
        (0, m) => format!("{m} min {seconds} s"),
        (h, m) => format!("{h} h {m} min"),
    }
}
