//! Processes by their numbers, as `/proc` shows them.
//!
//! A number may belong to another process once its own has ended and been waited for. So it is good
//! for reading, and nothing is ended by it: that takes a pidfd ([`strays`](crate::strays)).
//!
//! A process is all of its threads. The first of them may end before the others: then the files of
//! the process describe that one, which has no memory any more, and each other thread has files of
//! its own.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// The most ancestors that are followed: no chain is longer than a cell has processes.
const MAX_ANCESTORS: usize = 4096;
/// How often the threads of a process are listed again because one ended meanwhile.
const LISTINGS: usize = 8;
/// The kernel's flag of a thread that is on its way out, and may have let go of its memory.
const EXITING: u64 = 4;

/// The process behind a pidfd, as the host numbers it; an error once it has been waited for.
pub(crate) fn number_of(pidfd: &impl AsFd) -> io::Result<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_fd().as_raw_fd()))?;
    Ok(parse_pid(&info).ok_or(io::ErrorKind::NotFound)?)
}

fn parse_pid(fdinfo: &str) -> Option<u32> {
    fdinfo.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// The children of all of a process's threads. When a thread ends, its children get another parent
/// at once, so the threads are listed again as long as one of them ended meanwhile.
pub(crate) fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut children = Vec::new();
    for _ in 0..LISTINGS {
        let mut is_complete = true;
        for task in tasks(pid)? {
            match fs::read_to_string(task.join("children")) {
                Ok(list) => children.extend(list.split_whitespace().flat_map(str::parse::<u32>)),
                Err(_) => is_complete = false,
            }
        }
        if is_complete {
            break;
        }
    }
    children.sort_unstable();
    children.dedup();
    Ok(children)
}

/// The directories of a process's threads.
fn tasks(pid: u32) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(format!("/proc/{pid}/task"))?.map(|task| Ok(task?.path())).collect()
}

/// All descendants of a process that have not ended; parents come before their children.
pub(crate) fn beneath(pid: u32) -> Vec<u32> {
    let (mut found, mut pending) = (Vec::new(), vec![pid]);
    while let Some(pid) = pending.pop() {
        let mut below = children(pid).unwrap_or_default();
        // An ended process has no children.
        below.retain(|pid| !has_ended(*pid));
        found.extend_from_slice(&below);
        pending.extend(below);
    }
    found
}

/// Whether a process is a descendant of another at this moment.
pub(crate) fn is_beneath(mut pid: u32, above: u32) -> bool {
    for _ in 0..MAX_ANCESTORS {
        match Stat::of(pid).map(|stat| stat.parent) {
            Some(parent) if parent == above => return true,
            Some(0) | None => return false,
            Some(parent) => pid = parent,
        }
    }
    false
}

/// Whether a process has ended, waited for or not.
pub(crate) fn has_ended(pid: u32) -> bool {
    Stat::of(pid).is_none_or(|stat| stat.has_ended())
}

/// Where the memory of a process can be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MemorySource {
    /// In this directory of `/proc`: that of the process, or of a thread that still runs.
    In(PathBuf),
    /// The process has ended, or is about to, and has no memory.
    Gone,
    /// The process exists, but none of its threads could be read.
    Unknown,
}

/// Finds where the memory of a process can be read when its first thread has ended.
pub(crate) fn memory_of_other_threads(pid: u32) -> MemorySource {
    for _ in 0..LISTINGS {
        let Ok(tasks) = tasks(pid) else { return MemorySource::Gone };
        let mut is_complete = true;
        for task in tasks {
            match Stat::in_directory(&task) {
                Some(stat) if !stat.is_exiting => return MemorySource::In(task),
                Some(_) => {}
                None => is_complete = false,
            }
        }
        if is_complete {
            return MemorySource::Gone;
        }
    }
    MemorySource::Unknown
}

/// The fields of a process's, or a thread's, line in `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The process that started it, or has adopted it.
    pub(crate) parent: u32,
    /// It has ended and not been waited for.
    is_zombie: bool,
    /// It is about to end, or has: no memory of its own is certain to be there.
    is_exiting: bool,
    /// Threads of the process, as long as one of them lives.
    threads: u64,
    /// How often a page was made or copied for it.
    pub(crate) faults: u64,
    /// CPU time of its own, as coarse as the kernel's ticks.
    pub(crate) own_cpu: Duration,
    /// CPU time of children that have ended and been waited for.
    pub(crate) children_cpu: Duration,
    /// When it was started: no two processes have number and start in common.
    pub(crate) start: u64,
}

impl Stat {
    /// The line of a process; `None` if there is no such process.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::in_directory(Path::new(&format!("/proc/{pid}")))
    }

    fn in_directory(directory: &Path) -> Option<Self> {
        let stat = fs::read(directory.join("stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    /// Parses the line; `None` if it is not one.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        // The name of the program comes first, in brackets, and may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let time = |user, system| {
            let ticks = number(user)?.saturating_add(number(system)?);
            Some(Duration::from_millis(ticks.saturating_mul(1000) / per_second))
        };
        let is_zombie = matches!(*fields.first()?, "Z" | "X");
        Some(Self {
            parent: u32::try_from(number(1)?).ok()?,
            is_zombie,
            is_exiting: is_zombie || number(6)? & EXITING != 0,
            faults: number(7)?,
            own_cpu: time(11, 12)?,
            children_cpu: time(13, 14)?,
            threads: number(17)?,
            start: number(19)?,
        })
    }

    /// Whether all threads of the process have ended, not only its first.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_zombie && self.threads <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b1_a_guest_that_is_gone_has_no_number() {
        let info = "pos:\t0\nflags:\t02\nPid:\t4711\nNSpid:\t4711\t90\t3\n";
        assert_eq!(parse_pid(info), Some(4711));
        assert_eq!(parse_pid("Pid:\t-1\nNSpid:\t0\n"), None);
    }

    /// A zombie with other threads is a process that still runs.
    #[test]
    fn s1_a_process_has_ended_when_all_its_threads_have() {
        let line = |state: &str, flags: u32, threads: u32| {
            let stat = format!(
                "7 (a) Z) {state} 3 7 7 0 -1 {flags} 11 0 0 0 150 50 20 30 20 0 {threads} 0 99 0 0"
            );
            Stat::parse(&stat).expect("a line")
        };
        assert!(line("Z", 4, 1).has_ended() && line("X", 4, 0).has_ended());
        assert!(!line("Z", 4, 2).has_ended());
        assert!(!line("S", 0, 1).has_ended());
        let stat = line("S", 4, 1);
        assert!(stat.is_exiting && !stat.has_ended());
        assert_eq!((stat.parent, stat.faults, stat.start), (3, 11, 99));
        assert_eq!(stat.own_cpu, stat.children_cpu * 4);
        assert_eq!(Stat::parse("7 (a) S 3"), None);
    }

    #[test]
    fn s1_of_a_process_that_is_gone_there_is_no_memory() {
        // No process has so high a number.
        assert_eq!(memory_of_other_threads(1 << 22), MemorySource::Gone);
        let own = memory_of_other_threads(std::process::id());
        assert!(matches!(own, MemorySource::In(_)), "{own:?}");
    }
}
