//! What runs in a control cycle does not touch the heap: not once in 100 000 turns. The first test shows that the harness would notice.
#![cfg(not(loom))]

use std::hint::black_box;

use telearm::handoff::{
    EventKind, Heartbeat, LastUsable, SourceId, StopLine, StopReason, event_ring, mailbox, tx_gate,
};
use telearm::rt::alloc::{CountingAllocator, HeapUse, counted};
use telearm::rt::clock::{self, SuspendDetector};
use telearm::rt::histogram::{Latency, latency_exchange};
use telearm::rt::memory::Disturbances;
use telearm::rt::pace::{Pace, Pacer};
use telearm::time::{Span, Stamp};

mod support;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const TURNS: u64 = 100_000;

/// Runs `turn` once to warm up, then asserts that 100 000 further turns neither allocate nor free.
fn assert_no_heap(mut turn: impl FnMut(u64)) {
    turn(0);
    let ((), used) = counted(|| (1..=TURNS).for_each(&mut turn));
    assert_eq!(used, HeapUse::NONE);
}

#[test]
fn the_harness_sees_heap_use() {
    let (value, used) = counted(|| black_box(Box::new(1)));
    assert_eq!(
        used,
        HeapUse {
            allocations: 1,
            frees: 0
        }
    );
    let ((), used) = counted(|| drop(value));
    assert_eq!(
        used,
        HeapUse {
            allocations: 0,
            frees: 1
        }
    );
    let ((), used) = counted(|| {
        let mut grown = Vec::with_capacity(1);
        grown.extend_from_slice(black_box(&[1, 2, 3]));
    });
    assert_eq!(
        used,
        HeapUse {
            allocations: 2,
            frees: 1
        },
        "growing counts"
    );
    assert!(telearm::rt::alloc::is_installed());
}

#[test]
#[should_panic(expected = "allocations: 1")]
fn one_allocation_in_all_turns_is_too_many() {
    assert_no_heap(|n| {
        if n == TURNS {
            black_box(Box::new(n));
        }
    });
}

/// Counting is per thread: what another thread allocates is not blamed on this one.
#[test]
fn other_threads_do_not_count() {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                black_box(vec![0_u8; 64]);
            }
        });
        let ((), used) = counted(std::thread::yield_now);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(used, HeapUse::NONE);
    });
}

#[test]
fn histograms_and_their_exchange() {
    let (mut recorder, mut collector) = latency_exchange();
    assert_no_heap(|n| {
        for what in Latency::ALL {
            recorder.record(what, Span::from_ns((n * n * 97).cast_signed()));
        }
        if n.is_multiple_of(1000) {
            collector.request();
        }
        recorder.serve();
        collector.collect();
    });
}

#[test]
fn latch_wake_and_gate() {
    let line = StopLine::new();
    let (mut control, watchdog) = tx_gate();
    assert_no_heap(|_| {
        drop(control.begin(&line.latch));
        line.trip(StopReason::OperatorStopBit, SourceId::operator(0));
        line.trip(StopReason::Command, SourceId::SERVICE);
        let _ = black_box(control.begin(&line.latch).is_err());
        drop(control.begin_braking());
        black_box(watchdog.wait_quiet(Span::ZERO));
        let state = black_box(line.latch.load());
        let _ = line.latch.reset(state.generation.wrapping_sub(1));
        assert_eq!(line.latch.reset(state.generation), Ok(()));
        black_box(line.wake.wait_until(line.wake.epoch(), Stamp::from_ns(1)));
    });
}

#[test]
fn mailbox_and_ages() {
    let (mut publisher, mut reader) = mailbox([0_u64; 32]);
    let (last, heartbeat) = (LastUsable::new(), Heartbeat::new());
    assert_no_heap(|n| {
        publisher.publish([n; 32]);
        last.store(clock::now());
        heartbeat.beat();
        black_box((reader.read_new(), last.age(clock::now), heartbeat.count()));
    });
}

#[test]
fn pacer_and_clock() {
    let wake = telearm::handoff::WakeEpoch::new();
    let mut pace = Pace::new(Stamp::from_ms(1), 1000);
    // Each wait but the first ends early at once, so that 100 000 take no time. The wait that sleeps is the futex call of the test above.
    let mut pacer = Pacer::new(Stamp::from_ns(0), 1);
    let mut suspend = SuspendDetector::new(clock::suspended_so_far());
    assert_no_heap(|_| {
        black_box(pace.tick(pace.deadline() + Span::from_us(1500)));
        wake.bump_and_wake();
        black_box(pacer.wait(&wake, wake.epoch().wrapping_sub(1)));
        black_box(suspend.observe(clock::suspended_so_far()));
        black_box(Disturbances::of_this_thread());
    });
}

#[derive(Clone, Copy)]
struct Dropped;

impl EventKind for Dropped {
    const KINDS: usize = 1;
    fn kind(&self) -> usize {
        0
    }
}

#[test]
fn events_even_when_they_do_not_fit() {
    let (mut sender, mut receiver) = event_ring::<Dropped, 64>();
    assert_no_heap(|n| {
        sender.push(Dropped);
        if n.is_multiple_of(200) {
            while receiver.pop().is_some() {}
        }
    });
    assert!(receiver.dropped_total() > 0, "the ring was full at times");
    assert_eq!(receiver.happened(0), TURNS + 1);
}

/// Guards: the whole cycle (two lanes: read, assess, act, shape, vet, send) takes no memory: while following, through losses, stops, resets,
/// refused goals and homing.
#[test]
fn the_cycle_of_two_lanes() {
    use support::{Rig, RigArm, params};
    use telearm::control::{Coupling, LaneSet, Neighbourhood, Request};
    use telearm::geometry::Pose;
    use telearm::handoff::{SourceId, StopReason};
    use telearm::time::Span;

    let place = |y| {
        let base = nalgebra::Vector3::new(0.0, y, 0.0);
        let base_in_world = Pose::from_parts(base, nalgebra::UnitQuaternion::identity());
        Some(Neighbourhood {
            base_in_world,
            distance_min_m: 0.2,
        })
    };
    let arms = [-0.3, 0.3].map(|y| RigArm {
        params: params(),
        divisor: 1,
        place: place(y),
    });
    let mut rig = Rig::new(arms.into(), Coupling::All, false);
    rig.engage();
    let turns = if cfg!(debug_assertions) {
        20_000
    } else {
        100_000
    };
    let mut followed = 0;
    let ((), used) = counted(|| {
        for i in 0..turns {
            let t = f64::from(i) * 0.002;
            // Silence now and then: hold, then disengage.
            if i % 4 == 0 && i % 2_000 < 1_700 {
                for hand in 0..2 {
                    rig.hand(
                        hand,
                        [0.3 * t.sin(), 0.4 * (0.7 * t).sin(), 0.5 * (1.3 * t).sin()],
                    );
                }
            }
            match i % 2_000 {
                100 => drop(rig.engine.request(Request::Engage(LaneSet::ALL), rig.now)),
                1_200 => drop(rig.line.trip(StopReason::Command, SourceId::SERVICE)),
                1_201 => drop(rig.engine.stop_path(rig.now)),
                1_250 => drop(rig.engine.request(Request::Reset, rig.now)),
                1_400 => drop(rig.engine.request(
                    Request::Home(LaneSet::ALL, rig.now + Span::from_ms(500)),
                    rig.now,
                )),
                _ => {}
            }
            let done = rig.cycle();
            followed += u32::from(done.lanes.iter().any(|l| l.motion));
        }
    });
    assert_eq!(used, HeapUse::NONE);
    assert!(
        followed > turns / 10,
        "the lanes did follow: {followed} of {turns}"
    );
}
