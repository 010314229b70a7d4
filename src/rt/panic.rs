//! What a panic of a real-time thread does before it unwinds: latch the stop, wake control, say where, with one `write`.
//!
//! The hook itself formats nothing, allocates nothing and takes no lock. Around it the standard library still does: it formats the text
//! of a panic that has arguments before it calls the hook, reads the hook under a read lock, and boxes the payload afterwards. That is the
//! price of unwinding.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use std::cell::Cell;
use std::sync::Arc;

use crate::handoff::{SourceId, StopLine, StopReason};

thread_local! {
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
}

/// What a thread is, for the hook.
#[derive(Debug, Clone, Copy)]
struct Role {
    name: &'static str,
    source: SourceId,
    reason: StopReason,
}

/// Declares the calling thread one whose panic stops the arms, with this cause. Threads that never call this keep the usual panic message and
/// stop nothing.
pub fn stop_on_panic(name: &'static str, source: SourceId, reason: StopReason) {
    ROLE.set(Some(Role {
        name,
        source,
        reason,
    }));
}

/// Installs the hook for the whole process, once, at start-up. Other threads' panics go to the hook that was there before.
pub fn install(line: Arc<StopLine>) {
    let previous = std::panic::take_hook();
    #[expect(clippy::disallowed_types, reason = "start-up")]
    let hook = Box::new(move |info: &std::panic::PanicHookInfo<'_>| {
        let Some(role) = ROLE.get() else {
            return previous(info);
        };
        line.trip(role.reason, role.source);
        let mut message = Message::new();
        message.push(b"telearm: panic in thread ");
        message.push(role.name.as_bytes());
        if let Some(location) = info.location() {
            message.push(b" at ");
            message.push(location.file().as_bytes());
            message.push(b":");
            message.push_number(location.line());
        }
        let payload = info.payload();
        if let Some(text) = payload.downcast_ref::<&'static str>() {
            message.push(b": ");
            message.push(text.as_bytes());
        }
        message.push(b"; the stop is latched\n");
        message.write_to_stderr();
    });
    std::panic::set_hook(hook);
}

/// A line of bounded length on the stack; what does not fit is cut.
struct Message {
    bytes: heapless::Vec<u8, 512>,
}

impl Message {
    const fn new() -> Self {
        Self {
            bytes: heapless::Vec::new(),
        }
    }

    fn push(&mut self, text: &[u8]) {
        for byte in text {
            let _ = self.bytes.push(*byte);
        }
    }

    fn push_number(&mut self, number: u32) {
        let mut divisor = 1_000_000_000;
        while divisor > 1 && number / divisor == 0 {
            divisor /= 10;
        }
        while divisor > 0 {
            let digit = u8::try_from(number / divisor % 10).unwrap_or(0);
            self.push(&[b'0' | digit]);
            divisor /= 10;
        }
    }

    fn write_to_stderr(&self) {
        #[expect(unsafe_code, reason = "the standard library's stderr takes a lock")]
        // SAFETY: the buffer is valid for its length; a failed or short write is nothing that could be helped here.
        unsafe {
            libc::write(
                libc::STDERR_FILENO,
                self.bytes.as_ptr().cast(),
                self.bytes.len(),
            );
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_types)]
mod tests {
    use super::*;

    /// Numbers are written in decimal without leading zeros, and a message that is too long is cut, not a panic.
    #[test]
    fn messages_are_bounded() {
        for (number, text) in [
            (0, "0"),
            (7, "7"),
            (10, "10"),
            (4_294_967_295, "4294967295"),
            (1_000_007, "1000007"),
        ] {
            let mut message = Message::new();
            message.push_number(number);
            assert_eq!(message.bytes, text.as_bytes());
        }
        let mut message = Message::new();
        message.push(&[b'x'; 2000]);
        assert_eq!(message.bytes.len(), 512);
    }
}
