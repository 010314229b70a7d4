//! Which operators' axes have been verified, kept in a small file in the state directory.
//!
//! An entry counts for one operator name, device and frame: another frame in the plan needs another check.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FILE: &str = "verified_frames.toml";
const HEAD: &str =
    "# Written by `telearm check PLAN --frame`. Remove an entry to have it checked again.\n";

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be read or written.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is not what this program writes.
    #[error("{path} is damaged ({problem}); remove it and run the frame check again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    operator: String,
    device: String,
    frame: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    verified: Vec<Entry>,
}

/// The verified frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameStore {
    path: PathBuf,
    entries: Entries,
}

impl FrameStore {
    /// Reads the store of the default state directory.
    ///
    /// # Errors
    /// [`StoreError`]; a store that does not exist yet is empty and good.
    pub fn load() -> Result<Self, StoreError> {
        Self::load_from(&state_dir())
    }

    /// Reads the store of a directory.
    ///
    /// # Errors
    /// [`StoreError`]; a store that does not exist yet is empty and good.
    pub fn load_from(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(StoreError::Io { path, error }),
        };
        match toml::from_str(&text) {
            Ok(entries) => Ok(Self { path, entries }),
            Err(error) => Err(StoreError::Damaged {
                path,
                problem: error.message().to_owned(),
            }),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this operator's axes were verified with this device and frame.
    #[must_use]
    pub fn is_verified(&self, operator: &str, device: &str, frame: &str) -> bool {
        self.entries
            .verified
            .iter()
            .any(|e| e.operator == operator && e.device == device && e.frame == frame)
    }

    /// Sets or clears the verification of an operator and writes the file, whole or not at all. Another frame of the same operator is
    /// forgotten: the device cannot have two.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be written.
    pub fn record(
        &mut self,
        operator: &str,
        device: &str,
        frame: &str,
        verified: bool,
    ) -> Result<(), StoreError> {
        self.entries.verified.retain(|e| e.operator != operator);
        if verified {
            self.entries.verified.push(Entry {
                operator: operator.to_owned(),
                device: device.to_owned(),
                frame: frame.to_owned(),
            });
        }
        self.write().map_err(|error| StoreError::Io {
            path: self.path.clone(),
            error,
        })
    }

    fn write(&self) -> io::Result<()> {
        let text = toml::to_string(&self.entries).map_err(io::Error::other)?;
        let dir = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let draft = self
            .path
            .with_extension(format!("tmp{}", std::process::id()));
        let written = fs::File::create(&draft).and_then(|mut file| {
            file.write_all(HEAD.as_bytes())?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&draft, &self.path))
            .inspect_err(|_| {
                let _ = fs::remove_file(&draft);
            })
    }
}

/// Where small state is kept: `$STATE_DIRECTORY` (set by systemd), `$XDG_STATE_HOME/telearm`, `~/.local/state/telearm` for a user, or
/// `/var/lib/telearm`.
#[must_use]
pub fn state_dir() -> PathBuf {
    let var = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    if let Some(dir) = var("STATE_DIRECTORY") {
        return dir;
    }
    if let Some(dir) = var("XDG_STATE_HOME") {
        return dir.join("telearm");
    }
    let system = PathBuf::from("/var/lib/telearm");
    match var("HOME") {
        // Root's daemon and root's check share one place, whatever HOME sudo left.
        Some(home) if !is_root() => home.join(".local/state/telearm"),
        _ => system,
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}
