//! The service loop: a plain thread that answers the control socket, shows the status, writes the log, and keeps the histograms.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::arm::registry::ArmReport;
use crate::config::Plan;
use crate::control::thread::{ControlView, Numbered};
use crate::control::{Answer, HOME_REPEAT, LaneSet, Request as ControlRequest};
use crate::handoff::{SourceId, StopReason};
use crate::rt::clock;
use crate::rt::report;
use crate::time::{Span, Stamp};

use super::build::OpenOperator;
use super::events;
use super::snapshot::{Gather, Rates};
use super::socket::{
    HomeRun, Incoming, LatencyFormat, Reply, ReplySlot, Request, Server, StatusFormat,
};
use super::status::{Live, StatusSnapshot};
use super::threads::Threads;

/// One turn of the loop.
const TURN: Duration = Duration::from_millis(50);
/// A confirmed homing may take this long.
const HOME_CONFIRMED_MAX: Span = Span::from_ms(60_000);
/// Control answers within a few cycles, or it hangs.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_000);
/// Events kept for the status.
const EVENTS_SHOWN: usize = 6;

/// Everything that the loop looks at.
pub(super) struct Service<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The threads' plain ends.
    pub threads: Threads,
    /// Operators.
    pub operators: Vec<OpenOperator>,
    /// What drivers find out.
    pub reports: Vec<Arc<dyn ArmReport>>,
    /// The control socket.
    pub server: Option<Server>,
    /// Repaints the terminal.
    pub live: Option<Live>,
    /// Nothing is sent.
    pub dry_run: bool,
    /// Why control is or is not real-time.
    pub real_time: (bool, String),
    /// When the run began.
    pub began: Instant,
    /// Requests sent to control and not answered yet.
    pub pending: Vec<(u32, Instant, ReplySlot)>,
    /// Number of the next request.
    pub next_id: u32,
    /// Rates per second.
    pub rates: Rates,
    /// Newest events, oldest first.
    pub events: Vec<String>,
    /// The control socket asked to end.
    pub quit_asked: bool,
    /// Newest view of control.
    pub view: ControlView,
}

impl Service<'_> {
    /// One turn: waits for a request for at most a moment, then does everything that is due. Gives false once the run shall end.
    pub(super) fn turn(&mut self) -> bool {
        self.serve_requests();
        self.take_answers();
        self.drain_events();
        self.threads.latencies.collect();
        self.threads.latencies.request();
        self.view = *self.threads.view.read();
        self.rates
            .update(&self.view, &self.operators, Instant::now());
        self.paint();
        !self.quit_asked && self.threads.control_runs()
    }

    /// The status as of now.
    pub(super) fn snapshot(&mut self) -> StatusSnapshot {
        let now = clock::now();
        Gather {
            plan: self.plan,
            threads: &self.threads,
            operators: &self.operators,
            reports: &self.reports,
            view: &self.view,
            rates: &self.rates,
            events: &self.events,
            uptime: self.began.elapsed(),
            dry_run: self.dry_run,
            real_time: &self.real_time,
        }
        .snapshot(now)
    }

    /// Asks control to wind down: every lane disengages, brakes and stays.
    pub(super) fn wind(&mut self) {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let _ = self.threads.requests.enqueue(Numbered {
            id,
            body: ControlRequest::Wind,
        });
    }

    fn serve_requests(&mut self) {
        let Some(server) = &self.server else {
            std::thread::sleep(TURN);
            return;
        };
        let incoming = server.incoming().clone();
        let until = Instant::now() + TURN;
        while let Ok(request) = incoming.recv_deadline(until) {
            self.serve(request);
        }
    }

    fn serve(&mut self, Incoming { request, reply }: Incoming) {
        match request {
            Request::Status(format) => {
                let status = self.snapshot();
                reply.send(Reply::Ok(match format {
                    StatusFormat::Line => status.line(),
                    StatusFormat::View => status.view(),
                    StatusFormat::Json => status.json(),
                }));
            }
            Request::Stop => {
                // Latched already, in the client's own thread; once more here costs nothing.
                self.threads
                    .line
                    .trip(StopReason::Command, SourceId::SERVICE);
                reply.send(Reply::Ok(
                    "stopped: the software stop is latched for all lanes".to_owned(),
                ));
            }
            Request::Latency(format) => reply.send(Reply::Ok(self.latencies(format))),
            Request::Quit => {
                self.quit_asked = true;
                reply.send(Reply::Ok(
                    "ending: all lanes disengage, brake and stay".to_owned(),
                ));
            }
            Request::Engage(lane) => self.for_lanes(lane.as_deref(), reply, ControlRequest::Engage),
            Request::Disengage(lane) => {
                self.for_lanes(lane.as_deref(), reply, ControlRequest::Disengage)
            }
            Request::Reset => self.ask(ControlRequest::Reset, reply),
            Request::Recover {
                lane,
                arm_will_drop,
            } => {
                if arm_will_drop {
                    self.for_lanes(Some(&lane), reply, ControlRequest::Recover);
                } else {
                    reply.send(Reply::Refused(
                        "recovery may drop the arm: support it, then add --arm-will-drop"
                            .to_owned(),
                    ));
                }
            }
            Request::Home { lane, run } => {
                let now = clock::now();
                let until = match run {
                    HomeRun::Confirmed => now + HOME_CONFIRMED_MAX,
                    HomeRun::Held => now + HOME_REPEAT,
                    HomeRun::Released => Stamp::default(),
                };
                self.for_lanes(Some(&lane), reply, |set| ControlRequest::Home(set, until));
            }
        }
    }

    fn for_lanes(
        &mut self,
        lane: Option<&str>,
        reply: ReplySlot,
        make: impl FnOnce(LaneSet) -> ControlRequest,
    ) {
        let set = match lane {
            None => LaneSet::ALL,
            Some(name) => match self.plan.lane(name) {
                Some(index) => LaneSet::one(index),
                None => {
                    let known: Vec<_> = self.plan.lanes.iter().map(|l| l.name.as_str()).collect();
                    reply.send(Reply::Refused(format!(
                        "there is no lane \"{name}\"; lanes: {}",
                        known.join(", ")
                    )));
                    return;
                }
            },
        };
        self.ask(make(set), reply);
    }

    fn ask(&mut self, body: ControlRequest, reply: ReplySlot) {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        if self.threads.requests.enqueue(Numbered { id, body }).is_ok() {
            self.pending.push((id, Instant::now(), reply));
        } else {
            reply.send(Reply::Refused(
                "control does not take requests; see `telearm status`".to_owned(),
            ));
        }
    }

    fn take_answers(&mut self) {
        while let Some(Numbered { id, body }) = self.threads.answers.dequeue() {
            if let Some(at) = self.pending.iter().position(|(p, ..)| *p == id) {
                let (_, _, reply) = self.pending.swap_remove(at);
                reply.send(self.answer(body));
            }
        }
        while let Some(at) = self
            .pending
            .iter()
            .position(|(_, since, _)| since.elapsed() > ANSWER_WITHIN)
        {
            let (_, _, reply) = self.pending.swap_remove(at);
            reply.send(Reply::Refused(
                "control does not answer; see `telearm status`".to_owned(),
            ));
        }
    }

    fn answer(&self, answer: Answer) -> Reply {
        match answer {
            Answer::Taken => Reply::Ok("taken".to_owned()),
            Answer::ResetDone => Reply::Ok("reset: nothing moves; engage anew to go on".to_owned()),
            Answer::NothingToReset => Reply::Ok("nothing was latched".to_owned()),
            Answer::StillAsserted(operator) => {
                let name = self
                    .plan
                    .operators
                    .get(usize::from(operator))
                    .map_or("?", |o| o.name.as_str());
                Reply::Refused(format!(
                    "operator \"{name}\" still asserts its stop: release it there first"
                ))
            }
            Answer::NewerStop => {
                Reply::Refused("another stop came in at the same time: try again".to_owned())
            }
            Answer::TakenOver => {
                Reply::Refused("the watchdog holds the arms: restart telearm".to_owned())
            }
            Answer::LaneBusy => {
                Reply::Refused("the lane moves or follows: disengage or stop it first".to_owned())
            }
        }
    }

    fn latencies(&self, format: LatencyFormat) -> String {
        let rows = report::filled(self.threads.latencies.totals());
        match format {
            LatencyFormat::Text => report::table(&rows),
            LatencyFormat::Hdr => rows
                .iter()
                .map(|row| format!("# {}\n{}", row.name, report::hgrm(row.histogram)))
                .collect(),
            LatencyFormat::Svg => report::svg("telearm latencies", &rows),
        }
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.threads.watchdog_events.pop() {
            self.note(events::watchdog(self.plan, event));
        }
        while let Some(event) = self.threads.control_events.pop() {
            if let Some(entry) = events::control(self.plan, &event) {
                self.note(entry);
            }
        }
    }

    fn note(&mut self, (level, text): (log::Level, String)) {
        log::log!(level, "{text}");
        if self.events.len() == EVENTS_SHOWN {
            self.events.remove(0);
        }
        self.events.push(text);
    }

    fn paint(&mut self) {
        if self.live.is_none() {
            return;
        }
        let status = self.snapshot();
        if let Some(live) = &mut self.live {
            // A closed terminal is no reason to stop an arm's control.
            let _ = live.paint(
                &mut io::stdout().lock(),
                &status.view(),
                &status.line(),
                Instant::now(),
            );
        }
    }
}
