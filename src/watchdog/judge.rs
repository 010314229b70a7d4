//! What the watchdog concludes from what it sees. Pure.

use crate::handoff::LANES_MAX;
use crate::time::{Span, Stamp};

/// The watchdog's own period.
pub(super) const TICK: Span = Span::from_ms(2);
/// A tick later than this says that the whole process or machine was away, not that control hangs.
const TICK_LATE: Span = Span::from_ms(6);
/// Control's heartbeat may stand for this long at least, whatever the rate.
const HEARTBEAT_MIN: Span = Span::from_ms(20);

/// What one lane looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneLook {
    /// The operator moves the arm.
    pub follows: bool,
    /// Age of the newest usable sample; `None`: never one.
    pub age: Option<Span>,
    /// Its soft limit.
    pub hold_after: Span,
}

/// Everything the watchdog sees in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The instant.
    pub now: Stamp,
    /// Control's heartbeat.
    pub heartbeat: u64,
    /// Control has begun its loop.
    pub control_runs: bool,
    /// Lanes; `lanes_len` are valid.
    pub lanes: [LaneLook; LANES_MAX],
    /// How many lanes there are.
    pub lanes_len: usize,
}

/// Why the watchdog takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverReason {
    /// Control's heartbeat stood still.
    HeartbeatLost,
    /// A lane followed long after its input went stale.
    ActivePastLimit,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// Bit `i`: lane `i`'s input is older than its soft limit (or has never come).
    pub stale: u8,
    /// Take over now.
    pub take_over: Option<TakeoverReason>,
    /// This tick was itself late by this much: the process or machine was away.
    pub away: Option<Span>,
}

/// Memory of the watchdog between ticks.
#[derive(Debug, Clone, Copy)]
pub struct Judge {
    heartbeat_max: Span,
    past_limit: Span,
    last_tick: Option<Stamp>,
    heartbeat: Option<(u64, Stamp)>,
    past_since: [Option<Stamp>; LANES_MAX],
}

impl Judge {
    /// For a control period of `period`.
    #[must_use]
    pub fn new(period: Span) -> Self {
        Self {
            heartbeat_max: period.times(3).max(HEARTBEAT_MIN),
            past_limit: period.times(3),
            last_tick: None,
            heartbeat: None,
            past_since: [None; LANES_MAX],
        }
    }

    /// One tick.
    pub fn rule(&mut self, look: &Look) -> Ruling {
        let away = self
            .last_tick
            .map(|last| look.now.age_of(last))
            .filter(|since| *since > TICK_LATE);
        self.last_tick = Some(look.now);
        if away.is_some() {
            // Everybody was away, we too: what stood still meanwhile proves nothing. Spans begin anew.
            self.heartbeat = None;
            self.past_since = [None; LANES_MAX];
        }
        let mut take_over = None;
        if look.control_runs && self.heartbeat_stood(look) {
            take_over = Some(TakeoverReason::HeartbeatLost);
        }
        let mut stale = 0;
        for (i, (lane, since)) in look
            .lanes
            .iter()
            .zip(&mut self.past_since)
            .take(look.lanes_len)
            .enumerate()
        {
            if lane.age.is_none_or(|age| age > lane.hold_after) {
                stale |= 1 << i;
            }
            let past = lane.follows
                && lane
                    .age
                    .is_none_or(|age| age > lane.hold_after + self.past_limit);
            *since = if past {
                Some(since.unwrap_or(look.now))
            } else {
                None
            };
            // The span over our own on-time ticks gives control the chance to act first, after a pause of the whole machine too.
            if since.is_some_and(|s| look.now.age_of(s) >= self.past_limit) {
                take_over = take_over.or(Some(TakeoverReason::ActivePastLimit));
            }
        }
        Ruling {
            stale,
            take_over,
            away,
        }
    }

    fn heartbeat_stood(&mut self, look: &Look) -> bool {
        match self.heartbeat {
            Some((count, since)) if count == look.heartbeat => {
                look.now.age_of(since) > self.heartbeat_max
            }
            _ => {
                self.heartbeat = Some((look.heartbeat, look.now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(ms: u64, heartbeat: u64, follows: bool, age_ms: i64) -> Look {
        let lane = LaneLook {
            follows,
            age: Some(Span::from_ms(age_ms)),
            hold_after: Span::from_ms(100),
        };
        let mut lanes = [LaneLook::default(); LANES_MAX];
        lanes[0] = lane;
        Look {
            now: Stamp::from_ms(ms),
            heartbeat,
            control_runs: true,
            lanes,
            lanes_len: 1,
        }
    }

    /// Guards: a control thread that hangs is taken over after max(3T, 20 ms), not before.
    #[test]
    fn hung_control_is_taken_over() {
        let mut judge = Judge::new(Span::from_ms(5));
        let mut at = None;
        for ms in (0..60).step_by(2) {
            if judge.rule(&look(ms, 7, true, 10)).take_over.is_some() {
                at = Some(ms);
                break;
            }
        }
        assert_eq!(at, Some(22));
        let mut slow = Judge::new(Span::from_ms(33));
        let first = (0..300)
            .step_by(2)
            .find(|&ms| slow.rule(&look(ms, 7, true, 10)).take_over.is_some());
        assert_eq!(first, Some(100));
    }

    /// Guards: SIGSTOP or a paused machine (all threads away together) is no reason to take over.
    #[test]
    fn pause_of_everything_is_not_a_hang() {
        let mut judge = Judge::new(Span::from_ms(5));
        for ms in (0..20).step_by(2) {
            assert_eq!(judge.rule(&look(ms, ms, true, 10)).take_over, None);
        }
        let ruling = judge.rule(&look(3_020, 18, true, 3_000));
        assert!(ruling.away.is_some() && ruling.take_over.is_none() && ruling.stale == 1);
        // Control acts within its next cycles: it stops following.
        assert_eq!(judge.rule(&look(3_022, 19, true, 3_002)).take_over, None);
        assert_eq!(judge.rule(&look(3_040, 22, false, 3_020)).take_over, None);
    }

    /// Guards: a lane that follows stale input is taken over, even while control's heart beats.
    #[test]
    fn following_past_the_limit_is_taken_over() {
        let mut judge = Judge::new(Span::from_ms(5));
        let first = (0..400).step_by(2).find(|&ms| {
            let ruling = judge.rule(&look(ms, ms, true, i64::try_from(ms).unwrap()));
            ruling.take_over == Some(TakeoverReason::ActivePastLimit)
        });
        assert_eq!(first, Some(132), "100 ms + 3T, seen for 3T");
    }
}
