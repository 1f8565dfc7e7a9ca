//! What a cell uses, measured from outside.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

use crate::sys;

/// The processes of a cell, as the host numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellProcesses {
    /// Pid 1 of the cell.
    pub keeper: u32,
    /// Pid 2 of the cell.
    pub guest: u32,
}

/// What a cell's guest and everything it started use right now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time so far.
    pub cpu: Duration,
    /// Resident memory, and the page tables for it.
    pub memory_bytes: u64,
}

impl CellProcesses {
    /// Finds them by the keeper's pidfd. The guest must have been started.
    pub fn find(keeper: &impl AsFd) -> io::Result<Self> {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", keeper.as_fd().as_raw_fd()))?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        let keeper = pid.and_then(|pid| pid.trim().parse().ok()).ok_or(io::ErrorKind::NotFound)?;
        // A keeper has one thread, and the guest is its first child.
        let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"))?;
        let guest = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        let guest = guest.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { keeper, guest })
    }

    /// What the guest and all its descendants use. Processes that end meanwhile count for nothing.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let mut pending = vec![self.guest];
        while let Some(pid) = pending.pop() {
            usage.cpu += sys::process::cpu_time(pid).unwrap_or_default();
            usage.memory_bytes += memory_bytes(pid).unwrap_or_default();
            pending.extend(children(pid).unwrap_or_default());
        }
        usage
    }

    /// CPU time of the guest; `None` when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        sys::process::cpu_time(self.guest).ok()
    }

    /// The most memory the guest was ever resident with; `None` when it is gone.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        field(&status(self.guest)?, "VmHWM:")
    }
}

/// Pages and the tables that map them: a sparse mapping is small in the one and large in the other.
fn memory_bytes(pid: u32) -> Option<u64> {
    let status = status(pid)?;
    Some(field(&status, "VmRSS:")? + field(&status, "VmPTE:")?)
}

fn status(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let list = fs::read_to_string(task?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(children)
}
