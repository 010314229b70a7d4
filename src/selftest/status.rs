//! What a running telearm says about itself, read from its JSON status as a user's script would.

use serde_json::Value;

/// A status of a plan with one lane, one operator, one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Status(pub Value);

impl Status {
    fn text(&self, pointer: &str) -> &str {
        self.0
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
    }

    fn number(&self, pointer: &str) -> u64 {
        self.0.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
    }

    fn count(&self, pointer: &str, name: &str) -> u64 {
        let list = self.0.pointer(pointer).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .find(|c| c["name"] == name)
            .and_then(|c| c["count"].as_u64())
            .unwrap_or(0)
    }

    fn sum(&self, pointer: &str) -> u64 {
        let list = self.0.pointer(pointer).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|c| c["count"].as_u64())
            .sum()
    }

    /// The lane's mode.
    #[must_use]
    pub fn mode(&self) -> &str {
        self.text("/lanes/0/mode")
    }

    /// What the mode carries.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.text("/lanes/0/mode_detail")
    }

    /// Mode and what it carries.
    #[must_use]
    pub fn mode_text(&self) -> String {
        match self.detail() {
            "" => self.mode().to_owned(),
            detail => format!("{} ({detail})", self.mode()),
        }
    }

    /// Why it does not move, most severe first.
    #[must_use]
    pub fn reasons(&self) -> Vec<&str> {
        let list = self.0.pointer("/lanes/0/inhibits");
        list.and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|why| why["reason"].as_str())
            .collect()
    }

    /// Whether that is among the reasons.
    #[must_use]
    pub fn has(&self, reason: &str) -> bool {
        self.reasons().contains(&reason)
    }

    /// Why it is slower than the hand.
    #[must_use]
    pub fn slowed(&self) -> &str {
        self.text("/lanes/0/slowed")
    }

    /// "starting", "up", "faulted".
    #[must_use]
    pub fn phase(&self) -> &str {
        self.text("/arms/0/phase")
    }

    /// Start step or fault.
    #[must_use]
    pub fn phase_detail(&self) -> &str {
        self.text("/arms/0/phase_detail")
    }

    /// Why the stop is latched.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&str> {
        self.0.pointer("/stop/reason").and_then(Value::as_str)
    }

    /// Packets refused for a reason.
    #[must_use]
    pub fn drops(&self, reason: &str) -> u64 {
        self.count("/sources/0/drops", reason)
    }

    /// Packets refused, all reasons.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.sum("/sources/0/drops")
    }

    /// Packets accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.number("/sources/0/accepted")
    }

    /// Datagrams read.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.number("/sources/0/packets")
    }

    /// Datagrams that the kernel threw away.
    #[must_use]
    pub fn kernel_drops(&self) -> u64 {
        self.number("/sources/0/kernel_drops")
    }

    /// Braking commands that were refused.
    #[must_use]
    pub fn brake_vetoes(&self) -> u64 {
        self.number("/lanes/0/brake_vetoes")
    }

    /// Frames sent to the arm.
    #[must_use]
    pub fn frames_out(&self) -> u64 {
        self.number("/arms/0/frames_out")
    }

    /// Commands that the guard refused, by veto.
    #[must_use]
    pub fn vetoes_text(&self) -> String {
        let list = self.0.pointer("/lanes/0/vetoes").and_then(Value::as_array);
        let texts: Vec<_> = list
            .into_iter()
            .flatten()
            .map(|c| format!("{} {}", c["name"].as_str().unwrap_or("?"), c["count"]))
            .collect();
        if texts.is_empty() {
            "none".to_owned()
        } else {
            texts.join(", ")
        }
    }

    /// Commands that the guard refused, all vetoes.
    #[must_use]
    pub fn vetoes(&self) -> u64 {
        self.sum("/lanes/0/vetoes")
    }

    /// Commands sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.number("/lanes/0/sent")
    }

    /// Cycles done.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.number("/process/cycles")
    }

    /// Cycles that began more than a period late.
    #[must_use]
    pub fn late_cycles(&self) -> u64 {
        self.number("/process/late_cycles")
    }

    /// The input thread was away.
    #[must_use]
    pub fn input_away(&self) -> u64 {
        self.number("/process/input_away")
    }

    /// The watchdog holds the arms.
    #[must_use]
    pub fn taken_over(&self) -> bool {
        self.0
            .pointer("/process/taken_over")
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }

    /// Age of the last usable sample, milliseconds.
    #[must_use]
    pub fn input_age_ms(&self) -> Option<f64> {
        self.0.pointer("/sources/0/age_ms").and_then(Value::as_f64)
    }

    /// Age of the measured pose, milliseconds.
    #[must_use]
    pub fn pose_age_ms(&self) -> Option<f64> {
        self.0
            .pointer("/arms/0/pose_age_ms")
            .and_then(Value::as_f64)
    }

    /// Age of the measured joints, milliseconds.
    #[must_use]
    pub fn joints_age_ms(&self) -> Option<f64> {
        self.0
            .pointer("/arms/0/joints_age_ms")
            .and_then(Value::as_f64)
    }

    /// In one line, for messages.
    #[must_use]
    pub fn short(&self) -> String {
        format!(
            "{}, arm {} {}, [{}]",
            self.mode_text(),
            self.phase(),
            self.phase_detail(),
            self.reasons().join(" ")
        )
    }
}
