//! What a cell uses, measured from outside.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::FileExt as _},
    time::Duration,
};

use crate::{
    Guests,
    numbers::{children, from_state_on, number_of, stat},
    sys,
};

/// More than the kernel tells of a process that is in few groups.
const TOLD_BYTES: usize = 4096;

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
        let keeper = number_of(keeper)?;
        // A keeper has one thread, and the guest is its first child.
        let guest = *children(keeper)?.first().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { keeper, guest, guests })
    }

    /// What everything in a session's cell uses together; memory that several processes share counts
    /// for each.
    pub fn whole_usage(&self) -> Usage {
        Usage::of_all(children(self.keeper).unwrap_or_default())
    }

    /// What the guest and everything it started use, those included whose parent has ended: they
    /// are the keeper's then. Processes that end meanwhile count for nothing.
    pub fn usage(&self) -> Usage {
        match self.guests {
            Guests::Script => Usage::of_all(vec![self.guest]),
            Guests::Programs => {
                let mut usage = self.whole_usage();
                usage.cpu += ended_children_cpu(self.keeper).unwrap_or_default();
                usage
            }
        }
    }

    /// CPU time of the guest and of what it started and has seen end; `None` when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        BranchProcesses { guest: self.guest, guests: self.guests }.cpu_time()
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
    /// Finds the guest by its pidfd.
    pub fn of(guest: &impl AsFd, guests: Guests) -> io::Result<Self> {
        Ok(Self { guest: number_of(guest)?, guests })
    }

    /// What the guest and everything it started and that is still beneath it use.
    pub fn usage(&self) -> Usage {
        match self.guests {
            Guests::Script => Usage::of(self.guest),
            Guests::Programs => Usage::of_all(vec![self.guest]),
        }
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
        Resident::told(&status(self.guest)?)
    }

    /// How often a page was made or copied for the guest in its life: no more pages than that differ
    /// from those of a guest it was cloned from, or that was cloned from it.
    pub fn faults(&self) -> Option<u64> {
        stat(self.guest)?.split_whitespace().nth(7)?.parse().ok()
    }
}

/// The same guest, to be measured time and again: its files in `/proc` are opened once, which is half
/// the work, and never are somebody else's.
#[derive(Debug)]
pub struct Gauge {
    processes: BranchProcesses,
    status: File,
    stat: File,
}

impl Gauge {
    /// For the guest behind a pidfd.
    pub fn of(guest: &impl AsFd, guests: Guests) -> io::Result<Self> {
        let processes = BranchProcesses::of(guest, guests)?;
        let open = |name| File::open(format!("/proc/{}/{name}", processes.guest));
        let gauge = Self { processes, status: open("status")?, stat: open("stat")? };
        // Its number is still its own, so these were its files.
        number_of(guest)?;
        Ok(gauge)
    }

    /// CPU time of the guest and of what it started and has seen end; `None` when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        let own = sys::process::cpu_time(self.processes.guest).ok()?;
        Some(match self.processes.guests {
            Guests::Script => own,
            Guests::Programs => {
                let stat = told_again(&self.stat, |stat| ended_children(from_state_on(stat)?));
                own + stat.unwrap_or_default()
            }
        })
    }

    /// What the guest holds in memory; `None` when it is gone.
    pub fn resident(&self) -> Option<Resident> {
        told_again(&self.status, Resident::told)
    }
}

/// What a file says now.
fn told_again<T>(file: &File, understand: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut room = [0; TOLD_BYTES];
    let bytes = file.read_at(&mut room, 0).ok()?;
    if bytes < room.len() {
        return understand(&String::from_utf8_lossy(room.get(..bytes)?));
    }
    let mut all = vec![0; TOLD_BYTES * 64];
    let bytes = file.read_at(&mut all, 0).ok()?;
    understand(&String::from_utf8_lossy(all.get(..bytes)?))
}

impl Resident {
    fn told(status: &str) -> Option<Self> {
        Some(Self {
            now_bytes: field(status, "VmRSS:")?,
            peak_bytes: field(status, "VmHWM:")?,
            own_bytes: counted(status)?,
        })
    }
}

impl Usage {
    /// What one process uses; of one that is gone, nothing.
    fn of(pid: u32) -> Self {
        let cpu = sys::process::cpu_time(pid).unwrap_or_default();
        Self { cpu, memory_bytes: memory_bytes(pid).unwrap_or_default() }
    }

    /// What these processes use, and all that is beneath them.
    fn of_all(mut pending: Vec<u32>) -> Self {
        let mut all = Self::default();
        while let Some(pid) = pending.pop() {
            let Self { cpu, memory_bytes } = Self::of(pid);
            all.cpu += cpu + ended_children_cpu(pid).unwrap_or_default();
            all.memory_bytes += memory_bytes;
            pending.extend(children(pid).unwrap_or_default());
        }
        all
    }
}

/// CPU time of a process's children that have ended and been waited for.
fn ended_children_cpu(pid: u32) -> Option<Duration> {
    ended_children(&stat(pid)?)
}

fn ended_children(stat: &str) -> Option<Duration> {
    let mut ticks = stat.split_whitespace().skip(13).map(str::parse::<u64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis((user + system) * 1000 / per_second.max(1)))
}

/// Pages of the process's own and the tables that map them: a sparse mapping is small in the one and
/// large in the other. Pages of programs and libraries are there once for the whole machine; the few
/// megabytes of code that a zygote hands on as memory are counted, though cells share them.
fn memory_bytes(pid: u32) -> Option<u64> {
    counted(&status(pid)?)
}

fn counted(status: &str) -> Option<u64> {
    let parts = ["RssAnon:", "RssShmem:", "VmPTE:"];
    parts.iter().map(|name| field(status, name)).sum()
}

fn status(pid: u32) -> Option<String> {
    // The guest names itself as it likes.
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    Some(String::from_utf8_lossy(&status).into_owned())
}

fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    /// A process may be called anything, and is measured all the same (A6).
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a program to be measured")]
    fn a6_whatever_a_process_is_called() {
        use std::os::unix::process::CommandExt as _;
        let name = OsStr::from_bytes(b"\xff) Z 1 \xfe");
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join(name);
        std::os::unix::fs::symlink("/bin/sleep", &program).expect("a link");
        let mut child = std::process::Command::new(&program).arg0("sleep").arg("60").spawn();
        let child = child.as_mut().expect("a program");
        let pidfd = Pid::from_child(child);
        let pidfd = pidfd_open(pidfd, PidfdFlags::empty()).expect("a handle");
        let gauge = Gauge::of(&pidfd, Guests::Programs).expect("a gauge");
        // It has its name from the moment it is another program.
        while !fs::read(format!("/proc/{}/comm", child.id())).expect("there").contains(&0xff) {}
        let measured = (gauge.resident(), gauge.cpu_time(), memory_bytes(child.id()));
        let state = stat(child.id());
        child.kill().expect("it is ended");
        child.wait().expect("it has ended");
        assert!(measured.0.is_some_and(|resident| resident.own_bytes > 0), "{measured:?}");
        assert!(measured.1.is_some() && measured.2.is_some(), "{measured:?}");
        assert!(state.is_some_and(|state| state.split_whitespace().count() > 20));
        // Control: of one that is gone nothing is told, by whichever number.
        assert_eq!((gauge.resident(), gauge.cpu_time()), (None, None));
    }

    /// A sparse mapping is small in pages and large in the tables that map them (A6).
    #[test]
    fn page_tables_are_memory_too() {
        let pages = "RssAnon:\t  90 kB\nRssFile:\t 500 kB\nRssShmem:\t  10 kB\n";
        assert_eq!(counted(&format!("{pages}VmPTE:\t  40 kB\n")), Some(140 * 1024));
        assert_eq!(counted(pages), None);
        assert!(memory_bytes(std::process::id()).is_some_and(|bytes| bytes > 0));
    }
}
