//! One guest process of a session: the live one, or a parked one.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Weak},
    time::Duration,
};

use belljar_jail::{
    GuestEnd, Guests,
    sample::{BranchProcesses, CpuLedger, Gauge, Resident, Sample, Usage},
    session::guest_end,
    strays::{end_with_all_beneath, has_ended},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::{sleep, timeout},
};

use super::cell::{SessionCell, watch_over};
use crate::{connection::Connection, run::Meter};

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
    /// From its first run on: a parked one needs none.
    gauge: Option<Arc<Gauge>>,
    /// What it had in memory when it was new.
    resident_at_first: Resident,
    /// The most it was ever resident with, as of its last run.
    peak_bytes: u64,
    cell: Weak<SessionCell>,
}

/// A guest's process, and what it was when it was new.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) pidfd: OwnedFd,
    pub(crate) processes: BranchProcesses,
    resident: Resident,
}

impl Newcomer {
    /// The process behind a pidfd.
    pub(crate) fn of(pidfd: OwnedFd, cell: &SessionCell) -> io::Result<Self> {
        let processes = BranchProcesses::of(&pidfd, cell.guests())?;
        Ok(Self { pidfd, processes, resident: processes.resident().unwrap_or_default() })
    }
}

impl Branch {
    /// A guest that waits for something, by its process and what its keeper calls it.
    pub(crate) fn new(
        connection: Connection,
        number: u64,
        newcomer: Newcomer,
        cell: &Arc<SessionCell>,
    ) -> io::Result<Self> {
        let Newcomer { pidfd, processes, resident: resident_at_first } = newcomer;
        let peak_bytes = resident_at_first.peak_bytes;
        #[expect(
            deprecated,
            reason = "unsound only for what changes its descriptor; this owns one"
        )]
        let pidfd = Arc::new(AsyncFd::with_interest(pidfd, Interest::READABLE)?);
        cell.adopt(processes.guest);
        let cell = Arc::downgrade(cell);
        tokio::spawn(watch_over(pidfd.clone(), (number, processes.guest), cell.clone()));
        Ok(Self {
            connection,
            number,
            pidfd,
            processes,
            gauge: None,
            resident_at_first,
            peak_bytes,
            cell,
        })
    }

    /// What its keeper calls it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What to measure it by.
    pub(crate) fn processes(&self) -> BranchProcesses {
        self.processes
    }

    /// What it had in memory when it was new.
    pub(crate) fn resident_at_first(&self) -> Resident {
        self.resident_at_first
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
    pub(crate) fn meter(&mut self) -> RunMeter {
        if self.gauge.is_none() {
            let gauge = Gauge::of(self.pidfd.get_ref(), self.processes.guests);
            self.gauge = gauge.ok().map(Arc::new);
        }
        let mut meter = RunMeter {
            processes: self.processes,
            gauge: self.gauge.clone(),
            cpu_before: Duration::ZERO,
            peak_before: self.peak_bytes,
            cell: self.cell.clone(),
        };
        meter.cpu_before = meter.cpu_time().unwrap_or_default();
        meter
    }

    /// Notes what it was resident with at most, so that the next run is told from this one.
    pub(crate) fn measured(&mut self, peak_bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
    }

    /// Whether it has ended.
    pub(crate) fn is_dead(&self) -> bool {
        has_ended(self.pidfd.get_ref()).unwrap_or(false)
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        if let Err(error) = end_with_all_beneath(self.pidfd.get_ref())
            && !self.is_dead()
        {
            tracing::error!(%error, "could not kill a branch");
            // Whoever looks at the cell next may be luckier.
            if let Some(cell) = self.cell.upgrade() {
                cell.disown(self.processes.guest);
            }
        }
    }
}

/// Measures one run in a guest that has run others before.
#[derive(Debug)]
pub(crate) struct RunMeter {
    processes: BranchProcesses,
    /// `None` when there was no opening it, be it that this host has too many files open: then the
    /// guest is measured by its name, and its limits hold as ever.
    gauge: Option<Arc<Gauge>>,
    cpu_before: Duration,
    peak_before: u64,
    /// Where processes are that the run has started and nobody has in hand.
    cell: Weak<SessionCell>,
}

impl RunMeter {
    fn cpu_time(&self) -> Option<Duration> {
        self.gauge.as_ref().map_or_else(|| self.processes.cpu_time(), |gauge| gauge.cpu_time())
    }
}

impl Meter for RunMeter {
    fn ledger(&self) -> CpuLedger {
        CpuLedger::of_later_run(self.processes.guest)
    }

    fn sample(&self, ledger: &mut CpuLedger) -> Sample {
        let mut sample = match self.cell.upgrade() {
            Some(cell) => {
                let is_anothers = |pid| cell.is_branching() || cell.has_in_hand(pid);
                cell.body().processes().branch_sample(self.processes, ledger, is_anothers)
            }
            None => self.processes.sample(ledger),
        };
        sample.usage.cpu = sample.usage.cpu.saturating_sub(self.cpu_before);
        sample
    }

    fn guests(&self) -> Guests {
        self.processes.guests
    }

    fn inherited_bytes(&self) -> u64 {
        let cell = self.cell.upgrade();
        cell.map(|cell| cell.body().processes().inherited_bytes()).unwrap_or_default()
    }

    fn total(&self) -> Option<Usage> {
        let resident =
            self.gauge.as_ref().map_or_else(|| self.processes.resident(), |gauge| gauge.resident());
        let resident = resident?;
        let cpu = self.cpu_time().unwrap_or_default().saturating_sub(self.cpu_before);
        // A peak that is no higher than before was not this run's.
        let is_new = resident.peak_bytes > self.peak_before;
        let memory_bytes = if is_new { resident.peak_bytes } else { resident.now_bytes };
        Some(Usage { cpu, memory_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with no descriptor left for a gauge still measures, and so still limits (A6).
    #[test]
    fn a6_a_run_is_measured_without_a_gauge_too() {
        let processes = BranchProcesses { guest: std::process::id(), guests: Guests::Script };
        let meter = |processes| RunMeter {
            processes,
            gauge: None,
            cpu_before: Duration::ZERO,
            peak_before: u64::MAX,
            cell: Weak::new(),
        };
        let sample = |meter: &RunMeter| meter.sample(&mut CpuLedger::default()).usage;
        let own = meter(processes);
        let (usage, total) = (sample(&own), own.total());
        assert!(usage.memory_bytes > 0 && usage.cpu > Duration::ZERO, "{usage:?}");
        assert!(total.is_some_and(|total| total.memory_bytes > 0), "{total:?}");
        // Control: of nobody there is nothing to measure; no process has so high a number.
        let nobody = meter(BranchProcesses { guest: 1 << 22, ..processes });
        assert_eq!((sample(&nobody), nobody.total()), (Usage::default(), None));
    }
}
