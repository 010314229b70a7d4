#![allow(clippy::disallowed_types)]
//! Stories of a lane, told by stepping a fake clock through `next`.

use super::*;
use crate::signal::{ArmFault, FaultKind, Quality};
use crate::time::{Span, Stamp};

/// A lane with everything in order: arm up, operator good, nothing asked.
fn fine(ms: u64) -> Facts {
    Facts {
        now: Stamp::from_ms(ms),
        taken_over: false,
        stop: None,
        arm_fault: None,
        arm_up: true,
        feedback: Freshness::Fresh,
        operator: Freshness::Fresh,
        quality: Quality::Good,
        may_engage: true,
        engage: false,
        disengage: false,
        group_holds: false,
        group_engages: true,
        absolute: false,
        hold_to_run: false,
        arrived: false,
        approach_too_far: false,
        home: None,
        home_reached: false,
        reset: false,
    }
}

fn step(mode: Mode, facts: Facts) -> Mode {
    next(mode, &facts, &Timing::default())
}

fn stopped(facts: Facts) -> Facts {
    Facts {
        stop: Some(StopWhy {
            reason: 1,
            source: 0,
        }),
        ..facts
    }
}

fn active() -> Mode {
    Mode::Active {
        since: Stamp::from_ms(0),
    }
}

fn every_mode() -> Vec<Mode> {
    let since = Stamp::from_ms(0);
    vec![
        Mode::Starting,
        Mode::Ready,
        Mode::Engaging { since },
        Mode::Approaching {
            since,
            pressed_at: since,
        },
        Mode::Active { since },
        Mode::Holding {
            since,
            why: HoldReason::OperatorStale,
            good_since: None,
        },
        Mode::Homing {
            since,
            why: HomeCause::Command,
        },
    ]
}

/// Guards: the plain way from start to following, and that nothing but an engage act begins it.
#[test]
fn start_ready_engage_follow() {
    let down = Facts {
        arm_up: false,
        ..fine(0)
    };
    assert_eq!(step(Mode::Starting, down), Mode::Starting);
    assert_eq!(step(Mode::Starting, fine(0)), Mode::Ready);
    assert_eq!(step(Mode::Ready, fine(10)), Mode::Ready);
    let engage = Facts {
        engage: true,
        ..fine(20)
    };
    let engaging = step(Mode::Ready, engage);
    assert!(matches!(engaging, Mode::Engaging { .. }));
    assert!(matches!(step(engaging, fine(25)), Mode::Active { .. }));
    assert_eq!(
        step(
            Mode::Ready,
            Facts {
                may_engage: false,
                ..engage
            }
        ),
        Mode::Ready,
        "inhibited"
    );
}

/// Guards: the stop wins from every mode, and neither release of the stop nor an engage act leaves it: only a reset does.
#[test]
fn stop_wins_from_everywhere_and_only_reset_leaves_it() {
    for mode in every_mode() {
        let all_at_once = Facts {
            engage: true,
            home: Some(HomeCause::Command),
            hold_to_run: true,
            ..stopped(fine(5))
        };
        let halted = step(mode, all_at_once);
        assert!(matches!(halted, Mode::Stopped { .. }), "{}", mode.name());
        let later = Facts {
            engage: true,
            ..fine(500)
        };
        assert!(matches!(step(halted, later), Mode::Stopped { .. }));
        assert_eq!(
            step(
                halted,
                Facts {
                    reset: true,
                    engage: true,
                    ..fine(600)
                }
            ),
            Mode::Starting,
            "a reset never engages"
        );
    }
}

/// Guards: an arm fault, lost feedback and a takeover enter from everywhere; a takeover is for ever.
#[test]
fn faults_enter_from_everywhere() {
    let fault = ArmFault::joint(FaultKind::MotorError, 3, 1);
    for mode in every_mode() {
        let ill = Facts {
            arm_fault: Some(fault),
            ..fine(5)
        };
        let faulted = step(mode, ill);
        assert_eq!(
            faulted,
            Mode::Fault {
                what: FaultCause::Arm(fault)
            }
        );
        assert_eq!(
            step(faulted, Facts { reset: true, ..ill }),
            faulted,
            "not while the cause lasts"
        );
        assert_eq!(
            step(
                faulted,
                Facts {
                    reset: true,
                    ..fine(9)
                }
            ),
            Mode::Starting
        );
        let blind = Facts {
            feedback: Freshness::Hard,
            ..fine(5)
        };
        assert_eq!(
            step(mode, blind),
            Mode::Fault {
                what: FaultCause::FeedbackLost
            }
        );
        let taken = step(
            mode,
            Facts {
                taken_over: true,
                ..stopped(fine(5))
            },
        );
        assert_eq!(
            taken,
            Mode::Fault {
                what: FaultCause::TakenOver
            }
        );
        assert_eq!(
            step(
                taken,
                Facts {
                    taken_over: true,
                    reset: true,
                    ..fine(9)
                }
            ),
            taken
        );
    }
}

/// Guards: losing the operator holds at once, comes back by itself only within the hard limit and after 100 ms without a break.
#[test]
fn short_loss_holds_and_resumes_long_loss_disengages() {
    let lost = Facts {
        operator: Freshness::Soft,
        ..fine(100)
    };
    let holding = step(active(), lost);
    assert_eq!(
        holding,
        Mode::Holding {
            since: Stamp::from_ms(100),
            why: HoldReason::OperatorStale,
            good_since: None
        }
    );
    let good = step(holding, fine(200));
    assert!(matches!(
        good,
        Mode::Holding {
            good_since: Some(_),
            ..
        }
    ));
    assert!(
        matches!(step(good, fine(299)), Mode::Holding { .. }),
        "99 ms good"
    );
    assert!(matches!(step(good, fine(300)), Mode::Active { .. }));
    let broken = step(
        good,
        Facts {
            quality: Quality::Untracked,
            ..fine(250)
        },
    );
    assert!(
        matches!(
            broken,
            Mode::Holding {
                good_since: None,
                ..
            }
        ),
        "a break starts the count anew"
    );
    assert_eq!(
        step(
            holding,
            Facts {
                operator: Freshness::Hard,
                ..fine(601)
            }
        ),
        Mode::Ready
    );
    let engaged = step(Mode::Ready, fine(700));
    assert_eq!(engaged, Mode::Ready, "a returning link is inert");
}

/// Guards: each unusable quality holds by its own name.
#[test]
fn qualities_hold_by_name() {
    for (quality, why) in [
        (Quality::Untracked, HoldReason::TrackingLost),
        (Quality::Jumped, HoldReason::TrackingJumped),
        (Quality::Frozen, HoldReason::TrackingFrozen),
    ] {
        let mode = step(active(), Facts { quality, ..fine(5) });
        assert!(matches!(mode, Mode::Holding { why: w, .. } if w == why));
    }
    let mode = step(
        active(),
        Facts {
            feedback: Freshness::Soft,
            ..fine(5)
        },
    );
    assert!(matches!(
        mode,
        Mode::Holding {
            why: HoldReason::FeedbackStale,
            ..
        }
    ));
    let mode = step(
        active(),
        Facts {
            group_holds: true,
            ..fine(5)
        },
    );
    assert!(matches!(
        mode,
        Mode::Holding {
            why: HoldReason::Group,
            ..
        }
    ));
}

/// Guards: a hold that lasts too long for any reason disengages, the group's included.
#[test]
fn endless_hold_disengages() {
    let mut mode = step(
        active(),
        Facts {
            group_holds: true,
            ..fine(0)
        },
    );
    for ms in (0..=500).step_by(5) {
        mode = step(
            mode,
            Facts {
                group_holds: true,
                ..fine(ms)
            },
        );
        assert!(matches!(mode, Mode::Holding { .. }), "{ms}");
    }
    assert_eq!(
        step(
            mode,
            Facts {
                group_holds: true,
                ..fine(505)
            }
        ),
        Mode::Ready
    );
}

/// Guards: engaging waits for the group, for a bounded time, and any loss ends it.
#[test]
fn engaging_is_joint_and_bounded() {
    let engaging = Mode::Engaging {
        since: Stamp::from_ms(0),
    };
    let alone = Facts {
        group_engages: false,
        ..fine(1_000)
    };
    assert_eq!(step(engaging, alone), engaging);
    assert!(matches!(step(engaging, fine(1_000)), Mode::Active { .. }));
    assert_eq!(
        step(
            engaging,
            Facts {
                group_engages: false,
                ..fine(3_001)
            }
        ),
        Mode::Ready
    );
    assert_eq!(
        step(
            engaging,
            Facts {
                quality: Quality::Untracked,
                ..fine(5)
            }
        ),
        Mode::Ready
    );
    assert_eq!(
        step(
            engaging,
            Facts {
                disengage: true,
                ..fine(5)
            }
        ),
        Mode::Ready
    );
}

/// Guards: an absolute mapping is entered through an approach that is held to run, refused when far, and aborted by any loss.
#[test]
fn approach_is_held_to_run() {
    let engaging = Mode::Engaging {
        since: Stamp::from_ms(0),
    };
    let absolute = |ms| Facts {
        absolute: true,
        ..fine(ms)
    };
    assert_eq!(
        step(
            engaging,
            Facts {
                approach_too_far: true,
                ..absolute(5)
            }
        ),
        Mode::Ready
    );
    let approaching = step(engaging, absolute(5));
    assert!(matches!(approaching, Mode::Approaching { .. }));
    let arrived_unheld = step(
        approaching,
        Facts {
            arrived: true,
            ..absolute(10)
        },
    );
    assert!(
        matches!(arrived_unheld, Mode::Approaching { .. }),
        "arriving needs the hold"
    );
    assert!(matches!(
        step(
            approaching,
            Facts {
                arrived: true,
                hold_to_run: true,
                ..absolute(10)
            }
        ),
        Mode::Active { .. }
    ));
    assert_eq!(
        step(approaching, absolute(2_010)),
        Mode::Ready,
        "let go for two seconds"
    );
    assert_eq!(
        step(
            approaching,
            Facts {
                operator: Freshness::Soft,
                hold_to_run: true,
                ..absolute(10)
            }
        ),
        Mode::Ready
    );
    let holding = step(
        active(),
        Facts {
            operator: Freshness::Soft,
            ..absolute(20)
        },
    );
    let back = step(step(holding, absolute(30)), absolute(200));
    assert_eq!(
        back,
        Mode::Ready,
        "an absolute goal may have moved away: it is approached anew"
    );
}

/// Guards: homing comes from Ready alone, only while asked for, and never from a stop.
#[test]
fn homing_only_from_ready_and_only_while_asked() {
    let home = |ms| Facts {
        home: Some(HomeCause::Command),
        ..fine(ms)
    };
    let homing = step(Mode::Ready, home(0));
    assert!(matches!(homing, Mode::Homing { .. }));
    assert!(matches!(step(homing, home(5)), Mode::Homing { .. }));
    assert_eq!(step(homing, fine(10)), Mode::Ready, "key released");
    assert_eq!(
        step(
            homing,
            Facts {
                home_reached: true,
                ..home(10)
            }
        ),
        Mode::Ready
    );
    assert_eq!(
        step(
            homing,
            Facts {
                feedback: Freshness::Soft,
                ..home(10)
            }
        ),
        Mode::Ready
    );
    assert!(matches!(step(active(), home(5)), Mode::Active { .. }));
    let halted = step(homing, stopped(home(5)));
    assert!(matches!(step(halted, home(50)), Mode::Stopped { .. }));
}

/// Guards: names are unique, and the order of severity is the order of the enum.
#[test]
fn inhibits_are_ordered_and_named() {
    let mut set = InhibitSet::NONE;
    for (i, reason) in Inhibit::ALL.into_iter().enumerate().rev() {
        assert_eq!(reason as usize, i);
        set.set(reason, true);
        assert_eq!(set.most_severe(), Some(reason));
        assert!(!reason.advice().is_empty());
    }
    let mut names: Vec<_> = Inhibit::ALL.iter().map(|r| r.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Inhibit::ALL.len());
    assert_eq!(InhibitSet::from_bits(set.bits()), set);
    assert!(!set.without(Inhibit::TakenOver).contains(Inhibit::TakenOver));
}

/// Guards: an age is classified against both limits, "never" apart.
#[test]
fn freshness_classes() {
    let class = |ms: Option<i64>| {
        Freshness::of(
            ms.map(Span::from_ms),
            Span::from_ms(100),
            Span::from_ms(500),
        )
    };
    assert_eq!(class(None), Freshness::Never);
    assert_eq!(class(Some(100)), Freshness::Fresh);
    assert_eq!(class(Some(101)), Freshness::Soft);
    assert_eq!(class(Some(501)), Freshness::Hard);
}
