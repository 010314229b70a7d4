//! Stops single threads of the daemon, as a debugger does: what a hung (or silently dead) thread looks like to the others.

use std::fs;

/// Threads of one process, stopped. They run on when this is dropped; all of it must happen in one thread of the test.
pub struct Frozen {
    threads: Vec<i32>,
    // Tracing belongs to the thread that began it.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Frozen {
    /// Waits for the end of the daemon. The dead thread has to be collected by its tracer before the process can be.
    pub fn end(&self, mut daemon: super::process::Daemon) -> (std::process::ExitStatus, String) {
        let began = std::time::Instant::now();
        loop {
            for tid in &self.threads {
                #[expect(unsafe_code, reason = "collecting a traced thread")]
                // SAFETY: no status is asked for.
                unsafe {
                    libc::waitpid(*tid, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG);
                }
            }
            if daemon.ended().is_some() {
                return daemon.end();
            }
            assert!(
                began.elapsed() < super::PATIENCE,
                "the daemon does not end; it said\n{}",
                daemon.said()
            );
            super::pause(10);
        }
    }
}

/// Stops the thread of that name. `None` where tracing is forbidden, which the caller has to say.
pub fn freeze(pid: u32, name: &str) -> Option<Frozen> {
    let tid = thread_named(pid, name);
    if !trace(libc::PTRACE_SEIZE, tid) {
        println!(
            "tracing is forbidden here: {}",
            std::io::Error::last_os_error()
        );
        return None;
    }
    let frozen = Frozen {
        threads: vec![tid],
        _not_send: std::marker::PhantomData,
    };
    assert!(trace(libc::PTRACE_INTERRUPT, tid));
    let mut status = 0;
    #[expect(unsafe_code, reason = "waiting for a traced thread")]
    // SAFETY: `status` is a valid place for the result.
    let waited = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
    assert_eq!(waited, tid, "{}", std::io::Error::last_os_error());
    Some(frozen)
}

/// The thread id of a thread by its name; panics if there is none.
pub fn thread_named(pid: u32, name: &str) -> i32 {
    fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flatten()
        .find(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
        })
        .and_then(|task| task.file_name().to_str()?.parse().ok())
        .unwrap_or_else(|| panic!("no thread {name:?}"))
}

fn trace(request: libc::c_uint, tid: i32) -> bool {
    #[expect(unsafe_code, reason = "ptrace")]
    // SAFETY: these requests touch no memory of ours; address and data are unused.
    let result = unsafe {
        libc::ptrace(
            request,
            tid,
            std::ptr::null_mut::<libc::c_void>(),
            std::ptr::null_mut::<libc::c_void>(),
        )
    };
    result == 0
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for tid in &self.threads {
            // A process that has ended meanwhile has nothing to detach from.
            let _ = trace(libc::PTRACE_DETACH, *tid);
        }
    }
}
