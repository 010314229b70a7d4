//! Which engage acts count.
//!
//! An act counts only if it began after everything had cleared. Gestures carry the stamp of their beginning; a clutch must have been
//! seen released since; a command is judged at the instant it is taken.

use crate::signal::{Edges, OperatorSample};
use crate::time::Stamp;

/// What the operator did since the last cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EdgeNews {
    /// A fresh engage act.
    pub(super) engage: bool,
    /// An engage act that came too early.
    pub(super) ignored: bool,
    /// A disengage act, a clutch release, or a new sender session.
    pub(super) disengage: bool,
    /// The reference changed: re-anchor.
    pub(super) new_reference: bool,
    /// The clutch is held but was held already when everything cleared.
    pub(super) held: bool,
}

/// Memory of what has been seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EdgeGate {
    seen: Option<Edges>,
    clear_since: Option<Stamp>,
    /// The clutch has been seen open since everything cleared.
    armed: bool,
    pressed: bool,
}

impl EdgeGate {
    /// One cycle. `clear`: nothing but the missing act itself keeps the lane from following. `clutch`: hold-to-run state from whichever
    /// operator carries it.
    pub(super) fn update(
        &mut self,
        sample: Option<&OperatorSample>,
        clutch: Option<bool>,
        clear: bool,
        now: Stamp,
    ) -> EdgeNews {
        if !clear {
            self.clear_since = None;
            self.armed = false;
        } else if self.clear_since.is_none() {
            self.clear_since = Some(now);
        }
        let mut news = EdgeNews::default();
        if let Some(sample) = sample {
            self.compare(sample.edges, &mut news);
        }
        if let Some(pressed) = clutch {
            self.clutch(pressed, clear, &mut news);
        }
        news
    }

    fn compare(&mut self, edges: Edges, news: &mut EdgeNews) {
        // The first sample sets the counters: whatever happened before we looked is history.
        let Some(seen) = self.seen.replace(edges) else {
            return;
        };
        if edges.engage != seen.engage {
            let after_clear = self.clear_since.is_some_and(|c| edges.engage_began >= c);
            news.engage |= after_clear;
            news.ignored |= !after_clear;
        }
        news.disengage |= edges.disengage != seen.disengage || edges.session != seen.session;
        news.new_reference |= edges.reference != seen.reference;
    }

    fn clutch(&mut self, pressed: bool, clear: bool, news: &mut EdgeNews) {
        let rising = pressed && !self.pressed;
        if self.pressed && !pressed {
            news.disengage = true;
        }
        if clear && !pressed {
            self.armed = true;
        }
        if rising {
            news.engage |= self.armed;
            news.ignored |= !self.armed;
        }
        news.held = pressed && !self.armed;
        self.pressed = pressed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(engage: u32, began_ms: u64) -> OperatorSample {
        OperatorSample {
            edges: Edges {
                engage,
                engage_began: Stamp::from_ms(began_ms),
                ..Edges::default()
            },
            ..OperatorSample::default()
        }
    }

    /// Guards: a gesture begun before everything cleared does not engage, nor does one made before we looked.
    #[test]
    fn gesture_must_begin_after_clear() {
        let mut gate = EdgeGate::default();
        let ms = Stamp::from_ms;
        assert_eq!(
            gate.update(Some(&sample(7, 1)), None, true, ms(10)),
            EdgeNews::default(),
            "history"
        );
        gate.update(Some(&sample(7, 1)), None, false, ms(20));
        gate.update(Some(&sample(7, 1)), None, true, ms(30));
        assert!(
            gate.update(Some(&sample(8, 25)), None, true, ms(40))
                .ignored
        );
        assert!(gate.update(Some(&sample(9, 35)), None, true, ms(50)).engage);
    }

    /// Guards: a clutch still held when a stop clears must be released first.
    #[test]
    fn held_clutch_must_be_released_first() {
        let mut gate = EdgeGate::default();
        let ms = Stamp::from_ms;
        gate.update(None, Some(true), false, ms(0));
        let news = gate.update(None, Some(true), true, ms(10));
        assert!(news.held && !news.engage);
        gate.update(None, Some(false), true, ms(20));
        assert!(gate.update(None, Some(true), true, ms(30)).engage);
        assert!(gate.update(None, Some(false), true, ms(40)).disengage);
    }

    /// Guards: pressing while something still inhibits, then clearing, does not engage.
    #[test]
    fn press_before_clear_is_ignored() {
        let mut gate = EdgeGate::default();
        gate.update(None, Some(false), false, Stamp::from_ms(0));
        assert!(
            gate.update(None, Some(true), false, Stamp::from_ms(5))
                .ignored
        );
        assert!(
            !gate
                .update(None, Some(true), true, Stamp::from_ms(10))
                .engage
        );
    }
}
