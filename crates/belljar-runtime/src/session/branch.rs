//! One guest process of a session: the live one, or a parked one.

use std::{
    fs, io,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::{Arc, Weak},
    time::Duration,
};

use belljar_jail::{
    GuestEnd, Guests, kill_by_pidfd,
    sample::{BranchProcesses, Usage},
    session::guest_end,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::{sleep, timeout},
};

use super::cell::{SessionCell, watch_over};
use crate::{connection::Connection, run::Meter};

/// How often what a guest started is looked for before that is given up: each round kills all that
/// is found, and a program that starts others faster than that is held by its limit on processes.
const ROUNDS: usize = 32;

/// How long a guest that has fallen silent may take to be gone.
const GONE: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A guest. Dropping it kills it and what it started.
#[derive(Debug)]
pub(crate) struct Branch {
    /// Its stream.
    pub(crate) connection: Connection,
    number: u64,
    pidfd: Arc<AsyncFd<OwnedFd>>,
    processes: BranchProcesses,
    /// The most it was ever resident with, as of its last run.
    peak_bytes: u64,
    cell: Weak<SessionCell>,
}

impl Branch {
    /// A guest that has said it is ready, known by its pidfd and by what its keeper calls it.
    pub(crate) fn new(
        connection: Connection,
        number: u64,
        pidfd: OwnedFd,
        cell: &Arc<SessionCell>,
    ) -> io::Result<Self> {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
        let guest = number_of(&info).ok_or(io::ErrorKind::NotFound)?;
        let processes = BranchProcesses { guest, guests: cell.guests() };
        let peak_bytes = processes.resident().unwrap_or_default().peak_bytes;
        #[expect(
            deprecated,
            reason = "unsound only for what changes its descriptor; this owns one"
        )]
        let pidfd = Arc::new(AsyncFd::with_interest(pidfd, Interest::READABLE)?);
        cell.adopt(guest);
        let cell = Arc::downgrade(cell);
        tokio::spawn(watch_over(pidfd.clone(), number, cell.clone()));
        Ok(Self { connection, number, pidfd, processes, peak_bytes, cell })
    }

    /// What its keeper calls it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What to measure it by.
    pub(crate) fn processes(&self) -> BranchProcesses {
        self.processes
    }

    /// How it ended, if it does so soon.
    pub(crate) async fn end(&self) -> Option<GuestEnd> {
        let told = async {
            loop {
                // The kernel tells once the keeper has taken note of it, a moment later.
                match guest_end(self.pidfd.get_ref()) {
                    Ok(None) => sleep(LOOK_EVERY).await,
                    other => return other.ok().flatten(),
                }
            }
        };
        timeout(GONE, told).await.ok().flatten()
    }

    /// A meter for one run in it.
    pub(crate) fn meter(&self) -> RunMeter {
        let cpu_before = self.processes.cpu_time().unwrap_or_default();
        RunMeter { processes: self.processes, cpu_before, peak_before: self.peak_bytes }
    }

    /// Notes what it was resident with at most, so that the next run is told from this one.
    pub(crate) fn measured(&mut self, peak_bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
    }

    /// Whether it has ended.
    pub(crate) fn is_dead(&self) -> bool {
        let mut ready = [PollFd::new(self.pidfd.get_ref(), PollFlags::IN)];
        poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        // It may not start more while what it started is being ended.
        let pidfd = self.pidfd.get_ref();
        let _ = pidfd_send_signal(pidfd, Signal::STOP);
        if self.processes.guests == Guests::Programs {
            for _ in 0..ROUNDS {
                let below = self.processes.descendants();
                // Once it has ended, its number may be another's, and so may be what is beneath.
                if below.is_empty() || self.is_dead() {
                    break;
                }
                let is_there = || !self.is_dead();
                below.into_iter().for_each(|pid| kill_child(pid, self.processes.guest, is_there));
            }
        }
        if let Err(error) = kill_by_pidfd(pidfd)
            && !self.is_dead()
        {
            tracing::error!(%error, "could not kill a branch");
        }
        if let Some(cell) = self.cell.upgrade() {
            cell.disown(self.processes.guest);
        }
    }
}

/// Kills a process if it is, at this moment, somewhere beneath another that is still there: the number
/// of one that has ended may be a stranger's.
pub(crate) fn kill_child(pid: u32, above: u32, above_is_there: impl Fn() -> bool) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(Ok(handle)) = number.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
    // Looked at again with the handle in hand: the number may be somebody else's by now.
    if is_beneath(pid, above) && above_is_there() && kill_by_pidfd(&handle).is_ok() {
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        let _ = poll(&mut ended, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
    }
}

/// Whether a process has ended and only its parent has not taken note yet.
pub(crate) fn has_ended(pid: u32) -> bool {
    field_of_stat(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

fn is_beneath(mut pid: u32, above: u32) -> bool {
    // No chain of parents is longer than there are processes in a cell.
    for _ in 0..4096 {
        match parent(pid) {
            Some(parent) if parent == above => return true,
            Some(0) | None => return false,
            Some(parent) => pid = parent,
        }
    }
    false
}

fn parent(pid: u32) -> Option<u32> {
    field_of_stat(pid, 1)?.parse().ok()
}

/// A field of what the kernel tells of a process, counted from the one after its name.
fn field_of_stat(pid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(field).map(str::to_owned)
}

/// A process's number, by what is told of a pidfd of it.
fn number_of(fdinfo: &str) -> Option<u32> {
    fdinfo.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// Measures one run in a guest that has run others before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunMeter {
    processes: BranchProcesses,
    cpu_before: Duration,
    peak_before: u64,
}

impl Meter for RunMeter {
    fn usage(&self) -> Usage {
        let usage = self.processes.usage();
        Usage { cpu: usage.cpu.saturating_sub(self.cpu_before), ..usage }
    }

    fn total(&self) -> Option<Usage> {
        let resident = self.processes.resident()?;
        let cpu = self.processes.cpu_time().unwrap_or_default().saturating_sub(self.cpu_before);
        // A peak that is no higher than before was not this run's.
        let is_new = resident.peak_bytes > self.peak_before;
        let memory_bytes = if is_new { resident.peak_bytes } else { resident.now_bytes };
        Some(Usage { cpu, memory_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn b1_a_guest_that_is_gone_has_no_number() {
        let info = "pos:\t0\nflags:\t02\nPid:\t4711\nNSpid:\t4711\t90\t3\n";
        assert_eq!(number_of(info), Some(4711));
        assert_eq!(number_of("Pid:\t-1\nNSpid:\t0\n"), None);
    }
}
