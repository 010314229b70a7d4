//! Fills a [`StatusSnapshot`] from the copies that the real-time threads leave behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::arm::ArmCounters;
use crate::arm::registry::ArmReport;
use crate::config::{ArmKindPlan, Plan};
use crate::control::LaneView;
use crate::control::thread::ControlView;
use crate::guard::VETO_NAMES;
use crate::operator::io::StatsSnapshot;
use crate::time::Stamp;

use super::build::OpenOperator;
use super::status::{
    ArmStatus, Count, LaneStatus, PoseStatus, ProcessStatus, SourceStatus, StatusSnapshot,
    StopStatus, counts, fault_text, mode_detail, phase_text, whys,
};
use super::threads::Threads;

/// Counters of a second ago, and what happened since, per second.
#[derive(Debug, Default)]
pub(super) struct Rates {
    at: Option<Instant>,
    packets: Vec<(u64, f64)>,
    frames: Vec<(ArmCounters, f64, f64)>,
}

impl Rates {
    /// Looks at the counters; once a second the rates are renewed.
    pub(super) fn update(&mut self, view: &ControlView, operators: &[OpenOperator], now: Instant) {
        let lanes = view.lanes.iter().flatten();
        let Some(at) = self.at else {
            self.at = Some(now);
            self.packets = operators
                .iter()
                .map(|o| (o.stats.snapshot().packets, 0.0))
                .collect();
            self.frames = view
                .lanes
                .iter()
                .map(|_| (ArmCounters::default(), 0.0, 0.0))
                .collect();
            return;
        };
        let passed = now.duration_since(at);
        if passed < Duration::from_secs(1) {
            return;
        }
        let per_s =
            |now: u64, before: u64| now.saturating_sub(before) as f64 / passed.as_secs_f64();
        for ((count, rate), operator) in self.packets.iter_mut().zip(operators) {
            let packets = operator.stats.snapshot().packets;
            (*count, *rate) = (packets, per_s(packets, *count));
        }
        for ((before, rx, tx), lane) in self.frames.iter_mut().zip(lanes) {
            (*rx, *tx) = (
                per_s(lane.arm.frames_in, before.frames_in),
                per_s(lane.arm.frames_out, before.frames_out),
            );
            *before = lane.arm;
        }
        self.at = Some(now);
    }
}

/// What a snapshot is made of.
pub(super) struct Gather<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Threads.
    pub threads: &'a Threads,
    /// Operators.
    pub operators: &'a [OpenOperator],
    /// What the drivers found out, in the order of the lanes.
    pub reports: &'a [Arc<dyn ArmReport>],
    /// Control's newest view.
    pub view: &'a ControlView,
    /// Rates.
    pub rates: &'a Rates,
    /// Newest events.
    pub events: &'a [String],
    /// Since the start.
    pub uptime: Duration,
    /// Nothing is sent.
    pub dry_run: bool,
    /// Real-time or not, and why.
    pub real_time: &'a (bool, String),
}

impl Gather<'_> {
    /// The status at `now`.
    pub(super) fn snapshot(&self, now: Stamp) -> StatusSnapshot {
        StatusSnapshot {
            plan: self.plan.file.clone(),
            uptime_s: self.uptime.as_secs_f64(),
            process: self.process(),
            stop: self.stop(now),
            lanes: self
                .plan
                .lanes
                .iter()
                .zip(&self.view.lanes)
                .filter_map(|(plan, view)| self.lane(plan, view.as_ref()?, now))
                .collect(),
            sources: self
                .plan
                .operators
                .iter()
                .zip(self.operators)
                .enumerate()
                .map(|(i, (plan, open))| self.source(i, plan, open, now))
                .collect(),
            arms: self.arms(),
            events: self.events.to_vec(),
        }
    }

    fn process(&self) -> ProcessStatus {
        let (real_time, reason) = self.real_time;
        ProcessStatus {
            rate_hz: self.plan.rate_hz,
            cycles: self.view.cycles,
            late_cycles: self.view.late,
            wakeup_worst_us: (self.view.cycles > 0).then(|| self.view.worst_wake.as_us()),
            real_time: *real_time,
            real_time_reason: reason.clone(),
            core: self.threads.core.and_then(|c| u32::try_from(c).ok()),
            dry_run: self.dry_run,
            taken_over: self.threads.took_over.load(Ordering::Acquire),
            input_away: self.threads.input.away.load(Ordering::Relaxed),
            page_faults: self.view.disturbances.minor_faults + self.view.disturbances.major_faults,
            heap_operations: self.view.heap_operations,
        }
    }

    fn stop(&self, now: Stamp) -> Option<StopStatus> {
        let cause = self.threads.line.latch.load().tripped?;
        let source = match cause.source.operator_index() {
            Some(index) => self
                .plan
                .operators
                .get(usize::from(index))
                .map_or_else(|| "?".to_owned(), |o| o.name.clone()),
            None => cause.source.to_string(),
        };
        let asserting = |open: &OpenOperator| open.stats.stop_level.is_asserted(now, open.limits.1);
        Some(StopStatus {
            reason: cause.reason.name().to_owned(),
            source,
            age_s: cause.stamp.map_or(0.0, |s| now.age_of(s).as_s()),
            asserted_by: self
                .plan
                .operators
                .iter()
                .zip(self.operators)
                .filter(|(_, open)| asserting(open))
                .map(|(plan, _)| plan.name.clone())
                .collect(),
        })
    }

    fn lane(
        &self,
        plan: &crate::config::LanePlan,
        view: &LaneView,
        now: Stamp,
    ) -> Option<LaneStatus> {
        let operator = self.plan.operators.get(plan.operator)?;
        let arm = self.plan.arms.get(plan.arm)?;
        let report = &view.report;
        let usable = self.operators.get(plan.operator)?.last_usable.load();
        Some(LaneStatus {
            name: plan.name.clone(),
            operator: operator.name.clone(),
            arm: arm.name.clone(),
            mode: report.mode.name(),
            mode_detail: mode_detail(&report.mode),
            inhibits: whys(report.inhibits),
            slowed: report.slowed.name(),
            operator_age_ms: usable.map(|s| now.age_of(s).as_ms()),
            command: report.command.as_ref().map(PoseStatus::from),
            opening: report.opening,
            sent: report.counters.sent,
            not_sent: report.counters.not_sent,
            vetoes: counts(&VETO_NAMES, &report.counters.vetoes),
            engaged: report.counters.engaged,
            edges_ignored: report.counters.edges_ignored,
            brake_vetoes: report.counters.brake_vetoes,
        })
    }

    fn source(
        &self,
        index: usize,
        plan: &crate::config::OperatorPlan,
        open: &OpenOperator,
        now: Stamp,
    ) -> SourceStatus {
        let stats = open.stats.snapshot();
        SourceStatus {
            name: plan.name.clone(),
            device: plan.device.kind(),
            listen: open.listen.to_string(),
            sender: open.stats.owner.load().map(|a| a.to_string()),
            packets_per_s: self.rates.packets.get(index).map_or(0.0, |(_, rate)| *rate),
            packets: stats.packets,
            accepted: stats.accepted,
            drops: drops(open, &stats),
            kernel_drops: stats.kernel_drops,
            age_ms: open.last_usable.load().map(|s| now.age_of(s).as_ms()),
            frame: plan.device.frame(),
            frame_verified: open.frame_verified,
        }
    }

    fn arms(&self) -> Vec<ArmStatus> {
        let mut arms = Vec::new();
        for (index, (lane, view)) in self
            .plan
            .lanes
            .iter()
            .zip(self.view.lanes.iter().flatten())
            .enumerate()
        {
            let Some(plan) = self.plan.arms.get(lane.arm) else {
                continue;
            };
            let ArmKindPlan::Piper(piper) = &plan.kind;
            let (phase, phase_detail) = phase_text(&view.phase);
            let (rx, tx) = self
                .rates
                .frames
                .get(index)
                .map_or((0.0, 0.0), |(_, rx, tx)| (*rx, *tx));
            arms.push(ArmStatus {
                name: plan.name.clone(),
                kind: "piper",
                link: piper.can.to_string(),
                phase,
                phase_detail,
                notes: self.reports.get(index).map_or_else(Vec::new, |r| r.lines()),
                warning: view.warning.as_ref().map(fault_text),
                pose_age_ms: view.feedback_age.map(crate::time::Span::as_ms),
                joints_age_ms: view.joints_age.map(crate::time::Span::as_ms),
                frames_in_per_s: rx,
                frames_out_per_s: tx,
                frames_in: view.arm.frames_in,
                frames_out: view.arm.frames_out,
                in_flight: view.arm.in_flight,
                bus_errors: view.arm.bus_errors,
                busy: view.arm.busy,
                measured: view.measured.as_ref().map(PoseStatus::from),
                opening: view.opening,
            });
        }
        arms
    }
}

fn drops(open: &OpenOperator, stats: &StatsSnapshot) -> Vec<Count> {
    let names: Vec<&'static str> = open.stats.reasons().collect();
    counts(&names, &stats.drops)
}
