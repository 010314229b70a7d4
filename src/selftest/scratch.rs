//! A folder of its own for one run of the program: plan, control socket, state, log. Gone with the value.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that nobody else looks into.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one below the system's place for temporary files.
    ///
    /// # Errors
    /// When no folder can be made there.
    pub fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("telearm-selftest-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // Left behind by a process of the same number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left lies among temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
