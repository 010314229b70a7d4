//! Counts heap use, to prove that a piece of code has none.
//!
//! Install it as the global allocator of a test (or of the binary), then run the code inside [`counted`]. Counting is per thread and off by
//! default, so it costs one thread-local flag.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_macros
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter in front.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// Heap operations of one thread while it was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeapUse {
    /// Calls that may take memory: allocations and reallocations.
    pub allocations: u64,
    /// Calls that give it back.
    pub frees: u64,
}

impl HeapUse {
    /// No heap operation at all.
    pub const NONE: Self = Self {
        allocations: 0,
        frees: 0,
    };
}

thread_local! {
    // Constant and without a destructor: reading it from an allocator neither allocates nor fails.
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static USED: Cell<HeapUse> = const { Cell::new(HeapUse::NONE) };
}

fn note(allocations: u64, frees: u64) {
    if ARMED.get() {
        let used = USED.get();
        USED.set(HeapUse {
            allocations: used.allocations.wrapping_add(allocations),
            frees: used.frees.wrapping_add(frees),
        });
    }
}

/// Runs `f` and gives its heap use beside its result. All zeros without [`CountingAllocator`] as the global allocator; see [`is_installed`].
/// Calls must not be nested.
pub fn counted<R>(f: impl FnOnce() -> R) -> (R, HeapUse) {
    USED.set(HeapUse::NONE);
    ARMED.set(true);
    let result = f();
    ARMED.set(false);
    (result, USED.get())
}

/// What has been counted in this thread since [`arm`], while it goes on.
#[must_use]
pub fn so_far() -> HeapUse {
    USED.get()
}

/// Starts counting in this thread, for a loop that cannot be put into a closure; [`disarm`] ends it.
pub fn arm() {
    USED.set(HeapUse::NONE);
    ARMED.set(true);
}

/// Ends counting in this thread and gives what was counted.
pub fn disarm() -> HeapUse {
    ARMED.set(false);
    USED.get()
}

/// Does counting work in this process? Allocates once to see.
#[must_use]
pub fn is_installed() -> bool {
    let (boxed, used) = counted(|| std::hint::black_box(Box::new(1_u8)));
    drop(boxed);
    used.allocations == 1
}

#[expect(unsafe_code, reason = "an allocator is an unsafe trait")]
// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract; counting touches only thread-local cells.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(1, 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        note(0, 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}
