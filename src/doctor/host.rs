//! [`Host`]: the computer that is examined, as files and as answers of a few programs. Reads only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where answers of programs come from.
#[derive(Debug, Clone)]
pub enum Commands {
    /// Programs are run.
    Run,
    /// Command line -> output, for a made-up host; a line that is not in there is a program that is not installed.
    Canned(BTreeMap<String, String>),
}

/// A computer: this one, or a made-up one below a folder.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
    commands: Commands,
}

/// A process, as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of its main thread, at most 15 characters.
    pub name: String,
    /// Real-time priority; 0 for ordinary ones.
    pub rt_priority: u32,
}

impl Host {
    /// This computer.
    #[must_use]
    pub fn this() -> Self {
        Self {
            root: PathBuf::from("/"),
            commands: Commands::Run,
        }
    }

    /// A made-up computer: `/proc`, `/sys` and `/etc` are below `root`.
    #[must_use]
    pub const fn made_up(root: PathBuf, commands: Commands) -> Self {
        Self { root, commands }
    }

    /// The path of an absolute name on this host.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.trim_start_matches('/'))
    }

    /// A file without the blanks around it; `None` if it cannot be read.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        text_of(&self.path(name))
    }

    /// A file that holds one number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Whether a file or folder is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The names in a folder, sorted; none if it cannot be read.
    #[must_use]
    pub fn names(&self, folder: &str) -> Vec<String> {
        names_in(&self.path(folder))
    }

    /// Where a link leads in the end.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<PathBuf> {
        fs::canonicalize(self.path(name)).ok()
    }

    /// What a program prints, without a terminal and with its complaints dropped; `None` if it is not installed or failed.
    #[must_use]
    pub fn output(&self, program: &str, arguments: &[&str]) -> Option<String> {
        match &self.commands {
            Commands::Canned(answers) => answers
                .get(&[&[program], arguments].concat().join(" "))
                .cloned(),
            Commands::Run => {
                // Where administrators' programs live is not on everyone's PATH.
                let path = std::env::var("PATH").unwrap_or_default();
                let output = Command::new(program)
                    .args(arguments)
                    .env("PATH", format!("{path}:/usr/sbin:/sbin"))
                    .env("LC_ALL", "C")
                    .stdin(Stdio::null())
                    .stderr(Stdio::null())
                    .output()
                    .ok()?;
                output
                    .status
                    .success()
                    .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
            }
        }
    }

    /// All processes, kernel threads included.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        self.names("/proc")
            .iter()
            .filter_map(|name| {
                let pid = name.parse().ok()?;
                process_of(pid, &self.text(&format!("/proc/{pid}/stat"))?)
            })
            .collect()
    }
}

/// From `/proc/PID/stat`: the name stands in parentheses and may hold anything, so what follows is counted from the last one.
fn process_of(pid: u32, stat: &str) -> Option<Process> {
    /// rt_priority is field 40; the first field behind the name is field 3.
    const RT_PRIORITY: usize = 40 - 3;
    let open = stat.find('(')?;
    let close = stat.rfind(')')?;
    let rt_priority = stat
        .get(close + 1..)?
        .split_whitespace()
        .nth(RT_PRIORITY)?
        .parse()
        .ok()?;
    Some(Process {
        pid,
        name: stat.get(open + 1..close)?.to_owned(),
        rt_priority,
    })
}

/// A file without the blanks around it; `None` if it cannot be read.
pub(super) fn text_of(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The names in a folder, sorted.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// The last part of a path.
pub(super) fn last_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// A kernel list of cores, such as `0-2,5`.
#[must_use]
pub fn cpu_list(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part
                .trim()
                .split_once('-')
                .unwrap_or((part.trim(), part.trim()));
            Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
        })
        .flatten()
        .collect()
}

/// The choice in force in a list that marks it with brackets, `always [madvise] never`; the text itself if nothing is marked.
#[must_use]
pub fn chosen(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text, |(choice, _)| choice)
}
