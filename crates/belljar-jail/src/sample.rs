//! What a cell uses, measured from outside.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::{Guests, sys};

/// How often strays are looked for before they are given up on.
const MOST_ROUNDS: usize = 100;

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
        let keeper = pid_of(keeper)?;
        // A keeper has one thread, and the guest is its first child.
        let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"))?;
        let guest = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        let guest = guest.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { keeper, guest, guests })
    }

    /// The same cell with another branch's guest, by its pidfd.
    pub fn of_branch(&self, guest: &impl AsFd) -> io::Result<Self> {
        Ok(Self { guest: pid_of(guest)?, ..*self })
    }

    /// What the guest and everything it started use, without those whose parent has ended: of a
    /// session's cell, what one branch uses.
    pub fn branch_usage(&self) -> Usage {
        let mut usage = Usage::default();
        usage.add_all(vec![self.guest]);
        usage
    }

    /// What everything in a session's cell uses together; memory that several processes share counts
    /// for each.
    pub fn whole_usage(&self) -> Usage {
        let mut usage = Usage::default();
        usage.add_all(children(self.keeper).unwrap_or_default());
        usage
    }

    /// What all branches of a session use together. Memory that several of them still share counts
    /// once where the host may look closely, which is when it is root; for each of them otherwise.
    pub fn session_usage(&self) -> Usage {
        let mut usage = Usage::default();
        let processes = usage.add_all(children(self.keeper).unwrap_or_default());
        let shared_once = processes.iter().map(|pid| proportional_bytes(*pid)).sum::<Option<u64>>();
        usage.memory_bytes = shared_once.unwrap_or(usage.memory_bytes);
        usage
    }

    /// Ends whatever is in a session's cell beside these branches' guests and what they started: what
    /// outlived its parent, or was made to look like a branch.
    pub fn end_strays(&self, guests: &[u32]) -> io::Result<()> {
        // Each round ends all there are; those that are made meanwhile need another.
        for _ in 0..MOST_ROUNDS {
            let strays = children(self.keeper)?;
            let mut strays = strays.into_iter().filter(|pid| !guests.contains(pid)).peekable();
            if strays.peek().is_none() {
                return Ok(());
            }
            strays.try_for_each(|pid| self.end_child(pid))?;
        }
        Err(io::Error::other("new processes are made as fast as they are ended"))
    }

    fn end_child(&self, pid: u32) -> io::Result<()> {
        let number = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
        let process = match pidfd_open(number, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            other => other?,
        };
        // Only now is it certain whose number it is.
        if children(self.keeper)?.contains(&pid) {
            sys::process::kill_by_pidfd(&process)?;
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            poll(&mut ended, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }))?;
        }
        Ok(())
    }

    /// What the guest and everything it started use, those included whose parent has ended: they
    /// are the keeper's then. Processes that end meanwhile count for nothing.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let processes = match self.guests {
            Guests::Script => vec![self.guest],
            Guests::Programs => {
                usage.cpu += ended_children_cpu(self.keeper).unwrap_or_default();
                children(self.keeper).unwrap_or_default()
            }
        };
        usage.add_all(processes);
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

/// A guest of a cell that is kept, and what it has started itself, as the host numbers them.
///
/// Several may be in one cell; what they have in common is not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchProcesses {
    /// The guest.
    pub guest: u32,
    /// What it is: a script starts no others.
    pub guests: Guests,
}

/// What a guest holds in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Everything it has resident now.
    pub now_bytes: u64,
    /// The most it ever had.
    pub peak_bytes: u64,
    /// Pages of its own, shared with the guest it was cloned from or not, and the tables for them.
    pub own_bytes: u64,
}

impl BranchProcesses {
    /// What the guest and everything it started and that is still beneath it use.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let mut pending = vec![self.guest];
        while let Some(pid) = pending.pop() {
            usage.cpu += sys::process::cpu_time(pid).unwrap_or_default();
            usage.memory_bytes += memory_bytes(pid).unwrap_or_default();
            if self.guests == Guests::Programs {
                usage.cpu += ended_children_cpu(pid).unwrap_or_default();
                pending.extend(children(pid).unwrap_or_default());
            }
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

    /// What the guest holds in memory; `None` when it is gone.
    pub fn resident(&self) -> Option<Resident> {
        let status = status(self.guest)?;
        Some(Resident {
            now_bytes: field(&status, "VmRSS:")?,
            peak_bytes: field(&status, "VmHWM:")?,
            own_bytes: counted(&status)?,
        })
    }

    /// How often a page was made or copied for the guest in its life: no more pages than that differ
    /// from those of a guest it was cloned from, or that was cloned from it.
    pub fn faults(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.guest)).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(7)?.parse().ok()
    }

    /// What the guest has started that is still beneath it, innermost last.
    pub fn descendants(&self) -> Vec<u32> {
        let (mut found, mut pending) = (Vec::new(), vec![self.guest]);
        while let Some(pid) = pending.pop() {
            let below = children(pid).unwrap_or_default();
            found.extend_from_slice(&below);
            pending.extend(below);
        }
        found
    }
}

/// What a keeper's children are: the guests of its cell, and orphans of theirs.
pub fn keepers_children(keeper: u32) -> Vec<u32> {
    children(keeper).unwrap_or_default()
}

impl Usage {
    /// Adds what these processes use, and all they started; which those are.
    fn add_all(&mut self, mut pending: Vec<u32>) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(pid) = pending.pop() {
            self.cpu += sys::process::cpu_time(pid).unwrap_or_default();
            self.cpu += ended_children_cpu(pid).unwrap_or_default();
            self.memory_bytes += memory_bytes(pid).unwrap_or_default();
            pending.extend(children(pid).unwrap_or_default());
            all.push(pid);
        }
        all
    }
}

/// The process behind a pidfd, as the host numbers it.
fn pid_of(pidfd: &impl AsFd) -> io::Result<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_fd().as_raw_fd()))?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    Ok(pid.and_then(|pid| pid.trim().parse().ok()).ok_or(io::ErrorKind::NotFound)?)
}

/// Memory of the process's own, in which what it shares with others counts by its part, and the page
/// tables; `None` if the host may not look, zero if the process is gone.
fn proportional_bytes(pid: u32) -> Option<u64> {
    let Some(tables) = status(pid).and_then(|status| field(&status, "VmPTE:")) else {
        return Some(0);
    };
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(field(&rollup, "Pss_Anon:")? + field(&rollup, "Pss_Shmem:")? + tables)
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
