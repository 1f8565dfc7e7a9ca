//! Measures the resources of a cell from outside.
//!
//! A sample is quick and counts every page of every process. [`held_together`] is slow and counts
//! shared pages once. A process that exists and cannot be measured is reported as such: it never
//! counts as zero.

mod ledger;
mod process;
mod together;

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::FileExt as _},
    time::Duration,
};

pub use ledger::CpuLedger;
pub use together::{ForkedProcess, held_together, kernel_bytes};

use self::{
    ledger::{LivingCpu, ProcessCpu},
    process::{MemoryReading, counted, field},
};
use crate::{
    Guests,
    numbers::{Stat, children, number_of},
    sys,
};

/// Longer than `/proc/PID/status` of a process that is in few groups.
const STATUS_BYTES: usize = 4096;
/// How often a cell is listed again because a process ended meanwhile and its children got another
/// parent.
const ROUNDS: usize = 4;

/// The processes of a cell, as the host numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellProcesses {
    /// Pid 1 of the cell.
    pub keeper: u32,
    /// Pid 2 of the cell.
    pub guest: u32,
    /// The kind of guest: a script starts no other processes.
    pub guests: Guests,
}

/// The present use of a cell's guest and of everything it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time so far.
    pub cpu: Duration,
    /// Resident memory of its own, and the page tables for it.
    pub memory_bytes: u64,
}

/// One measurement of the processes of a run, or of a whole cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The sum over all of them; a page that several share counts for each.
    pub usage: Usage,
    /// The memory of the largest process.
    pub largest_bytes: u64,
    /// Whether a process exists that could not be measured.
    pub has_unmeasured: bool,
    /// Every process that was measured.
    pub processes: Vec<ForkedProcess>,
}

impl CellProcesses {
    /// Finds keeper and guest by the keeper's pidfd. The guest must have been started.
    pub fn find(keeper: &impl AsFd, guests: Guests) -> io::Result<Self> {
        let keeper = number_of(keeper)?;
        // A keeper has one thread, and the guest is its first child.
        let guest = *children(keeper)?.first().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { keeper, guest, guests })
    }

    /// Everything in a session's cell.
    pub fn whole_sample(&self) -> Sample {
        ProcessWalk::all(|| self.beneath_keeper(|_| true)).sample(&mut CpuLedger::default())
    }

    /// The guest and everything it started, those included whose parent has ended: they are the
    /// keeper's then. The ledger has the samples of processes that are gone.
    pub fn sample(&self, ledger: &mut CpuLedger) -> Sample {
        match self.guests {
            Guests::Script => ProcessWalk::one(self.guest).sample(ledger),
            Guests::Programs => {
                // The keeper has waited for those whose parent had ended.
                let waited_for = children_cpu(self.keeper);
                let mut walk = ProcessWalk::all(|| self.beneath_keeper(|_| true));
                walk.cpu.waited_for_by_keeper = waited_for;
                walk.sample(ledger)
            }
        }
    }

    /// A guest of a session and its descendants, and all strays in the cell: only a run can have
    /// started those. `is_anothers` says whether a child of the keeper belongs to another guest.
    pub fn branch_sample(
        &self,
        branch: BranchProcesses,
        ledger: &mut CpuLedger,
        is_anothers: impl Fn(u32) -> bool,
    ) -> Sample {
        let is_wanted = |pid| pid == branch.guest || !is_anothers(pid);
        ProcessWalk::all(|| {
            let mut found = self.beneath_keeper(is_wanted);
            // Also when the keeper's children could not be read.
            found.push((branch.guest, Some(0)));
            found
        })
        .sample(ledger)
    }

    /// The memory that every cell inherits from the zygote.
    pub fn inherited_bytes(&self) -> u64 {
        let zygote = Stat::of(self.keeper).map(|stat| stat.parent);
        zygote.and_then(|zygote| MemoryReading::of(zygote).bytes()).unwrap_or_default()
    }

    /// Children of the keeper, and how many forks they are away from a guest, where that is known.
    fn beneath_keeper(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<(u32, Option<u32>)> {
        let mut found = children(self.keeper).unwrap_or_default();
        found.retain(|pid| is_wanted(*pid));
        found.into_iter().map(|pid| (pid, (pid == self.guest).then_some(0))).collect()
    }

    /// CPU time of the guest and of what it started and has seen end; `None` when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        BranchProcesses { guest: self.guest, guests: self.guests }.cpu_time()
    }

    /// The most memory the guest was ever resident with; `None` when it is gone.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        Some(MemoryReading::of(self.guest).resident()?.peak_bytes)
    }
}

/// A guest of a session's cell, by its pid on the host.
///
/// Several may be in one cell; memory that they share counts for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchProcesses {
    /// The pid of the guest on the host.
    pub guest: u32,
    /// The kind of guest: a script starts no other processes.
    pub guests: Guests,
}

/// The resident memory of a guest.
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

    /// The guest alone. Its descendants are found from its keeper: see
    /// [`CellProcesses::branch_sample`].
    pub fn sample(&self, ledger: &mut CpuLedger) -> Sample {
        ProcessWalk::one(self.guest).sample(ledger)
    }

    /// CPU time of the guest and of what it started and has seen end; `None` when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        let own = sys::process::cpu_time(self.guest).ok()?;
        Some(match self.guests {
            Guests::Script => own,
            Guests::Programs => own + children_cpu(self.guest),
        })
    }

    /// The memory of the guest; `None` when it is gone.
    pub fn resident(&self) -> Option<Resident> {
        MemoryReading::of(self.guest).resident()
    }

    /// How often a page was made or copied for the guest in its life: no more pages than that
    /// differ from those of a guest it was cloned from, or that was cloned from it.
    pub fn faults(&self) -> Option<u64> {
        Some(Stat::of(self.guest)?.faults)
    }
}

/// Measures one guest repeatedly: its files in `/proc` are opened once, which saves half the work,
/// and never become those of another process.
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
                let stat = read_again(&self.stat, Stat::parse);
                own + stat.map(|stat| stat.children_cpu).unwrap_or_default()
            }
        })
    }

    /// The memory of the guest; `None` when it is gone.
    pub fn resident(&self) -> Option<Resident> {
        read_again(&self.status, Resident::parse).or_else(|| {
            // Its first thread may have ended alone. As long as this file can be read, its number
            // is its own.
            let stat = read_again(&self.stat, Stat::parse)?;
            if stat.has_ended() { None } else { self.processes.resident() }
        })
    }
}

/// Reads a file of `/proc` again from its start, and parses it.
fn read_again<T>(file: &File, understand: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut room = [0; STATUS_BYTES];
    let bytes = file.read_at(&mut room, 0).ok()?;
    if bytes < room.len() {
        return understand(&String::from_utf8_lossy(room.get(..bytes)?));
    }
    let mut all = vec![0; STATUS_BYTES * 64];
    let bytes = file.read_at(&mut all, 0).ok()?;
    understand(&String::from_utf8_lossy(all.get(..bytes)?))
}

impl Resident {
    fn parse(status: &str) -> Option<Self> {
        Some(Self {
            now_bytes: field(status, "VmRSS:")?,
            peak_bytes: field(status, "VmHWM:")?,
            own_bytes: counted(status)?,
        })
    }
}

/// The processes that are found from some roots, each measured once.
#[derive(Debug, Default)]
struct ProcessWalk {
    cpu: LivingCpu,
    memory_bytes: u64,
    largest_bytes: u64,
    has_unmeasured: bool,
    /// With the number of forks between it and a guest; `None` for a process that was adopted.
    found: Vec<(u32, Option<u32>)>,
}

impl ProcessWalk {
    /// One process, without those it started.
    fn one(pid: u32) -> Self {
        let mut walk = Self::default();
        if walk.look_at(pid) {
            walk.found.push((pid, Some(0)));
        }
        walk
    }

    /// All that are beneath these. They are asked for again if one of those found ended meanwhile.
    fn all(roots: impl Fn() -> Vec<(u32, Option<u32>)>) -> Self {
        let (mut walk, mut seen) = (Self::default(), BTreeSet::new());
        for _ in 0..ROUNDS {
            let (mut pending, mut has_changed) = (roots(), false);
            while let Some((pid, forks)) = pending.pop() {
                if !seen.insert(pid) {
                    continue;
                }
                if walk.look_at(pid) {
                    walk.found.push((pid, forks));
                } else {
                    has_changed = true;
                }
                let below = children(pid).unwrap_or_default();
                pending.extend(below.into_iter().map(|pid| (pid, forks.map(|forks| forks + 1))));
            }
            if !has_changed {
                break;
            }
        }
        walk
    }

    /// Adds the use of a process; returns whether it exists.
    fn look_at(&mut self, pid: u32) -> bool {
        let Some(stat) = Stat::of(pid) else { return false };
        let own = sys::process::cpu_time(pid).unwrap_or(stat.own_cpu);
        let cpu = ProcessCpu { own, waited_for: stat.children_cpu };
        self.cpu.processes.push(((pid, stat.start), cpu));
        match MemoryReading::of(pid).bytes() {
            Some(bytes) => {
                self.memory_bytes = self.memory_bytes.saturating_add(bytes);
                self.largest_bytes = self.largest_bytes.max(bytes);
            }
            None => self.has_unmeasured = true,
        }
        !stat.has_ended()
    }

    /// The sample: the sums, and the CPU time of processes that are gone.
    fn sample(self, ledger: &mut CpuLedger) -> Sample {
        let all = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        let forked =
            |(pid, forks): (u32, Option<u32>)| ForkedProcess { pid, forks: forks.unwrap_or(all) };
        Sample {
            usage: Usage { cpu: ledger.add(self.cpu), memory_bytes: self.memory_bytes },
            largest_bytes: self.largest_bytes,
            has_unmeasured: self.has_unmeasured,
            processes: self.found.into_iter().map(forked).collect(),
        }
    }
}

/// CPU time of a process's children that have ended and been waited for.
fn children_cpu(pid: u32) -> Duration {
    Stat::of(pid).map(|stat| stat.children_cpu).unwrap_or_default()
}

#[cfg(test)]
mod tests;
