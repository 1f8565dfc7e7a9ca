//! What a cell uses, measured from outside.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

use crate::{Guests, sys};

/// The processes of a cell, as the host numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellProcesses {
    /// Pid 1 of the cell.
    pub keeper: u32,
    /// Pid 2 of the cell.
    pub guest: u32,
    /// What the guest is: a script starts no others.
    pub guests: Guests,
}

/// What a cell's guest and everything it started use right now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time so far.
    pub cpu: Duration,
    /// Resident memory of its own, and the page tables for it.
    pub memory_bytes: u64,
}

impl CellProcesses {
    /// Finds them by the keeper's pidfd. The guest must have been started.
    pub fn find(keeper: &impl AsFd, guests: Guests) -> io::Result<Self> {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", keeper.as_fd().as_raw_fd()))?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        let keeper = pid.and_then(|pid| pid.trim().parse().ok()).ok_or(io::ErrorKind::NotFound)?;
        // A keeper has one thread, and the guest is its first child.
        let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"))?;
        let guest = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        let guest = guest.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { keeper, guest, guests })
    }

    /// What the guest and everything it started use, those included whose parent has ended: they
    /// are the keeper's then. Processes that end meanwhile count for nothing.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let mut pending = match self.guests {
            Guests::Script => vec![self.guest],
            Guests::Programs => {
                usage.cpu += ended_children_cpu(self.keeper).unwrap_or_default();
                children(self.keeper).unwrap_or_default()
            }
        };
        while let Some(pid) = pending.pop() {
            usage.cpu += sys::process::cpu_time(pid).unwrap_or_default();
            usage.cpu += ended_children_cpu(pid).unwrap_or_default();
            usage.memory_bytes += memory_bytes(pid).unwrap_or_default();
            pending.extend(children(pid).unwrap_or_default());
        }
        usage
    }

    /// CPU time of the guest and of what it started and has seen end; `None` when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        let own = sys::process::cpu_time(self.guest).ok()?;
        Some(match self.guests {
            Guests::Script => own,
            Guests::Programs => own + ended_children_cpu(self.guest).unwrap_or_default(),
        })
    }

    /// The most memory the guest was ever resident with; `None` when it is gone.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        field(&status(self.guest)?, "VmHWM:")
    }
}

/// CPU time of a process's children that have ended and been waited for.
fn ended_children_cpu(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name, is in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut ticks = rest.split_whitespace().skip(13).map(str::parse::<u64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis((user + system) * 1000 / per_second.max(1)))
}

/// Pages of the process's own and the tables that map them: a sparse mapping is small in the one and
/// large in the other. Pages of programs and libraries are there once for the whole machine.
fn memory_bytes(pid: u32) -> Option<u64> {
    counted(&status(pid)?)
}

fn counted(status: &str) -> Option<u64> {
    let parts = ["RssAnon:", "RssShmem:", "VmPTE:"];
    parts.iter().map(|name| field(status, name)).sum()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A sparse mapping is small in pages and large in the tables that map them (A6).
    #[test]
    fn page_tables_are_memory_too() {
        let pages = "RssAnon:\t  90 kB\nRssFile:\t 500 kB\nRssShmem:\t  10 kB\n";
        assert_eq!(counted(&format!("{pages}VmPTE:\t  40 kB\n")), Some(140 * 1024));
        assert_eq!(counted(pages), None);
        assert!(memory_bytes(std::process::id()).is_some_and(|bytes| bytes > 0));
    }
}
