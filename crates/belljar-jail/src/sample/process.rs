//! What one process holds in memory, whichever of its threads are still there.

use std::fs;

use super::Resident;
use crate::numbers::{MemorySource, memory_of_other_threads};

/// What is known of a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProcessMemory {
    /// What the kernel says of it.
    Status(String),
    /// It has ended, or is about to.
    Nothing,
    /// It is there, and does not let itself be looked at.
    Unknown,
}

impl ProcessMemory {
    /// What a process holds.
    pub(super) fn of(pid: u32) -> Self {
        let of_first_thread = read(&format!("/proc/{pid}"), "status");
        if let Some(status) = of_first_thread.filter(|status| counted(status).is_some()) {
            return Self::Status(status);
        }
        match in_living_thread(pid, "status") {
            Ok(Some(status)) if counted(&status).is_some() => Self::Status(status),
            // It may have ended just now.
            Ok(_) => match memory_of_other_threads(pid) {
                MemorySource::Gone => Self::Nothing,
                MemorySource::In(_) | MemorySource::Unknown => Self::Unknown,
            },
            Err(ProcessGone) => Self::Nothing,
        }
    }

    /// The counted bytes; `None` when they are not known.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Status(status) => counted(status),
            Self::Nothing => Some(0),
            Self::Unknown => None,
        }
    }

    /// All that is told, unless there is nothing.
    pub(super) fn resident(&self) -> Option<Resident> {
        match self {
            Self::Status(status) => Resident::parse(status),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

/// No thread of a process has memory any more.
pub(super) struct ProcessGone;

/// What a file of a process says, of whichever thread still runs: `None` if it cannot be read.
pub(super) fn of_any_thread(pid: u32, name: &str) -> Result<Option<String>, ProcessGone> {
    let of_first = read(&format!("/proc/{pid}"), name);
    if of_first.as_ref().is_some_and(|text| !text.is_empty()) {
        return Ok(of_first);
    }
    in_living_thread(pid, name)
}

fn in_living_thread(pid: u32, name: &str) -> Result<Option<String>, ProcessGone> {
    match memory_of_other_threads(pid) {
        MemorySource::In(directory) => Ok(read(&directory.display().to_string(), name)),
        MemorySource::Unknown => Ok(None),
        MemorySource::Gone => Err(ProcessGone),
    }
}

fn read(directory: &str, name: &str) -> Option<String> {
    // A process names itself as it likes.
    let text = fs::read(format!("{directory}/{name}")).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Pages of the process's own, in memory or swapped out, and the tables that map them: a sparse mapping
/// is small in the one and large in the other. Pages of programs and libraries are there once for the
/// whole machine; the few megabytes of code that a zygote hands on as memory are counted, though cells
/// share them.
pub(super) fn counted(status: &str) -> Option<u64> {
    let parts = ["RssAnon:", "RssShmem:", "VmPTE:"];
    let here = parts.iter().map(|name| field(status, name)).sum::<Option<u64>>()?;
    // Not told by a kernel that cannot swap.
    Some(here.saturating_add(field(status, "VmSwap:").unwrap_or_default()))
}

/// A size that is told by its name, in bytes.
pub(super) fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}
