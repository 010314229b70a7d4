//! The `telearm` command: arguments in, exit status out. Everything else is in the library.

use std::process::ExitCode;

/// Counts the heap operations of the control thread, so that the status can show that there are none. One flag per call elsewhere.
#[global_allocator]
static ALLOCATOR: telearm::rt::alloc::CountingAllocator = telearm::rt::alloc::CountingAllocator;

fn main() -> ExitCode {
    telearm::cli::main()
}
