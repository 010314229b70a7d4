//! The shaper and the tracker never touch the heap, whatever they are fed: the control cycle calls them.

#![allow(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use nalgebra::{UnitQuaternion, Vector3};
use telearm::geometry::{Pose, rotation_from_log};
use telearm::shaping::{
    AxisLimits, JointShaper, JointState, JointTarget, JointTracker, Limits, ScalarShaper,
    ScalarState, ScalarTarget, Shaper, State, Target, Tracker,
};
use telearm::time::Stamp;

thread_local! {
    static ALLOCATIONS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Counts allocations and frees of the thread while armed.
struct Counting;

fn count() {
    // The cell may be gone while a thread ends; nothing is armed then.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get().map(|n| n + 1)));
}

// SAFETY: every call is passed on unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn heap_operations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.set(Some(0));
    work();
    ALLOCATIONS.take().unwrap_or(0)
}

/// A generator that needs no heap (SplitMix64).
struct Random(u64);

impl Random {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Mostly reasonable, sometimes tiny, huge, infinite or no number.
    fn number(&mut self) -> f64 {
        let unit = (self.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        match self.next_u64() % 200 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2..=3 => unit * 1e300,
            4..=20 => unit * 1e-12,
            21..=40 => 0.0,
            _ => unit,
        }
    }

    fn vector(&mut self) -> Vector3<f64> {
        Vector3::from_fn(|_, _| self.number())
    }
}

const AXIS: AxisLimits = AxisLimits {
    vel_max: 1.0,
    acc_max: 10.0,
    jerk_max: 600.0,
};

/// Guards: the counter counts; without this the next test could pass blind.
#[test]
fn the_counter_sees_an_allocation() {
    assert_eq!(heap_operations(|| drop(std::hint::black_box(vec![1u8]))), 2);
}

/// Guards: 100 000 steps of everything, good and bad input, goals beside NaN: no heap operation.
#[test]
fn shaping_never_touches_the_heap() {
    let limits = Limits {
        lin_vel_max: 1.0,
        lin_acc_max: 10.0,
        lin_jerk_max: 600.0,
        ang_vel_max: 3.0,
        ang_acc_max: 30.0,
        ang_jerk_max: 1500.0,
    };
    let mut random = Random(1);
    let mut shaper = Shaper::new(limits, 0.005);
    let mut joints = JointShaper::new([AXIS; 7], 0.005);
    let mut scalar = ScalarShaper::new(AXIS, 0.005);
    let mut state = State::at_rest(Pose::identity());
    let mut q = JointState::at_rest([0.0; 7]);
    let mut opening = ScalarState::at_rest(0.0);
    let mut tracker = Tracker::new(Pose::identity());
    let mut joint_tracker = JointTracker::new([0.0; 7], 0.6);
    let operations = heap_operations(|| {
        for k in 0..100_000_u64 {
            let now = Stamp::from_ns(k * 5_000_000);
            let turn = random.vector();
            let rotation = if turn.iter().all(|x| x.abs() < 10.0) {
                rotation_from_log(turn)
            } else {
                UnitQuaternion::identity()
            };
            let pose = Pose::from_parts(random.vector(), rotation);
            tracker.push(
                pose,
                Stamp::from_ns(random.next_u64() % (1 + k * 5_000_000)),
            );
            joint_tracker.push([0; 7].map(|_| random.number()), now);
            let wild = State {
                lin_vel: random.vector(),
                ang_acc: random.vector(),
                ..State::at_rest(pose)
            };
            let (target, joint_target, scalar_target) = match random.next_u64() % 4 {
                0 => (Target::Brake, JointTarget::Brake, ScalarTarget::Brake),
                1 => (
                    Target::goal(pose),
                    JointTarget::Goal([0; 7].map(|_| random.number())),
                    ScalarTarget::Goal(random.number()),
                ),
                2 => (
                    Target::Follow {
                        goal: tracker.at(now),
                    },
                    JointTarget::Follow(joint_tracker.at(now)),
                    ScalarTarget::Follow(ScalarState {
                        p: random.number(),
                        v: random.number(),
                        a: 0.0,
                    }),
                ),
                _ => (
                    Target::Follow { goal: wild },
                    JointTarget::Goal(q.q()),
                    ScalarTarget::Goal(0.5),
                ),
            };
            // A few steps each, so that the states get under way.
            for _ in 0..4 {
                state = shaper.advance(&state, &target).state;
                q = joints.advance(&q, &joint_target).state;
                opening = scalar.advance(&opening, &scalar_target).state;
            }
            std::hint::black_box((
                shaper.stopping_point(&state),
                joints.stopping_point(&q),
                scalar.stopping_point(&opening),
            ));
        }
    });
    assert_eq!(operations, 0);
    assert!(state.pose.is_finite() && q.q().iter().all(|q| q.is_finite()) && opening.p.is_finite());
}
