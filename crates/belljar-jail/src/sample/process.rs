//! The memory of one process, whichever of its threads still run.

use std::fs;

use super::Resident;
use crate::numbers::{MemorySource, memory_of_other_threads};

/// The memory of a process, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MemoryReading {
    /// The text of its `/proc/PID/status`.
    Status(String),
    /// The process has ended, or is about to.
    Nothing,
    /// The process exists, but cannot be read.
    Unknown,
}

impl MemoryReading {
    /// Reads the memory of a process.
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

    /// The resident memory; `None` when there is none or it is not known.
    pub(super) fn resident(&self) -> Option<Resident> {
        match self {
            Self::Status(status) => Resident::parse(status),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

/// No thread of the process has memory any more.
pub(super) struct ProcessGone;

/// Reads a file of a process, by any thread that still runs: `None` if it cannot be read.
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
    // A process can give itself a name that is not UTF-8.
    let text = fs::read(format!("{directory}/{name}")).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Private pages, in memory or swapped out, and the page tables that map them: a sparse mapping has
/// few pages and large tables. Pages of programs and libraries do not count, because the whole
/// machine shares them; the few megabytes of code that a zygote hands on as memory count, though
/// cells share them.
pub(super) fn counted(status: &str) -> Option<u64> {
    let parts = ["RssAnon:", "RssShmem:", "VmPTE:"];
    let here = parts.iter().map(|name| field(status, name)).sum::<Option<u64>>()?;
    // A kernel without swap does not report it.
    Some(here.saturating_add(field(status, "VmSwap:").unwrap_or_default()))
}

/// The size in the line of this name, in bytes.
pub(super) fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}
