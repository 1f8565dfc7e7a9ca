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

use super::cell::{SessionCell, watch_guest};
use crate::{connection::GuestConnection, run::UsageMeter};

/// How long a guest that has closed its stream may take to end.
const END_TIMEOUT: Duration = Duration::from_millis(100);
const POLL_EVERY: Duration = Duration::from_millis(1);

/// A guest process of a session. Dropping it kills the guest and everything it started.
#[derive(Debug)]
pub(crate) struct Branch {
    /// The stream to the guest.
    pub(crate) connection: GuestConnection,
    /// The keeper's number for it.
    number: u64,
    pidfd: Arc<AsyncFd<OwnedFd>>,
    processes: BranchProcesses,
    /// Opened with its first run; a parked guest needs none.
    gauge: Option<Arc<Gauge>>,
    /// Its memory when it was new.
    resident_at_first: Resident,
    /// Its peak memory by the end of its last run.
    peak_bytes: u64,
    cell: Weak<SessionCell>,
}

/// A new guest process, before it belongs to a [`Branch`].
#[derive(Debug)]
pub(crate) struct NewGuest {
    pub(crate) pidfd: OwnedFd,
    pub(crate) processes: BranchProcesses,
    resident: Resident,
}

impl NewGuest {
    /// Identifies the process behind a pidfd.
    pub(crate) fn of(pidfd: OwnedFd, cell: &SessionCell) -> io::Result<Self> {
        let processes = BranchProcesses::of(&pidfd, cell.guests())?;
        Ok(Self { pidfd, processes, resident: processes.resident().unwrap_or_default() })
    }
}

impl Branch {
    /// A guest that waits for a command. `number` is its keeper's number for it.
    pub(crate) fn new(
        connection: GuestConnection,
        number: u64,
        process: NewGuest,
        cell: &Arc<SessionCell>,
    ) -> io::Result<Self> {
        let NewGuest { pidfd, processes, resident: resident_at_first } = process;
        let peak_bytes = resident_at_first.peak_bytes;
        #[expect(
            deprecated,
            reason = "unsound only for types that change their descriptor; this owns one"
        )]
        let pidfd = Arc::new(AsyncFd::with_interest(pidfd, Interest::READABLE)?);
        cell.adopt(processes.guest);
        let cell = Arc::downgrade(cell);
        tokio::spawn(watch_guest(pidfd.clone(), (number, processes.guest), cell.clone()));
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

    /// The keeper's number for it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its processes, for measuring them.
    pub(crate) fn processes(&self) -> BranchProcesses {
        self.processes
    }

    /// Its memory when it was new.
    pub(crate) fn resident_at_first(&self) -> Resident {
        self.resident_at_first
    }

    /// How it ended; `None` if it has not ended in time.
    pub(crate) async fn end(&self) -> Option<GuestEnd> {
        let ended = async {
            loop {
                // The kernel knows the status once the keeper has reaped the guest, a moment later.
                match guest_end(self.pidfd.get_ref()) {
                    Ok(None) => sleep(POLL_EVERY).await,
                    other => return other.ok().flatten(),
                }
            }
        };
        timeout(END_TIMEOUT, ended).await.ok().flatten()
    }

    /// A meter for one run in this guest.
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

    /// Notes the peak memory of a run, so that the next run has a peak of its own.
    pub(crate) fn note_peak(&mut self, peak_bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
    }

    /// Whether the process has ended.
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
            // As a stray, it is ended by the next check of the cell.
            if let Some(cell) = self.cell.upgrade() {
                cell.disown(self.processes.guest);
            }
        }
    }
}

/// Measures one run in a guest that has had runs before.
#[derive(Debug)]
pub(crate) struct RunMeter {
    processes: BranchProcesses,
    /// `None` if it could not be opened, for example because this host has too many files open. Then the
    /// guest is measured by its pid, and its limits hold as well.
    gauge: Option<Arc<Gauge>>,
    cpu_before: Duration,
    peak_before: u64,
    /// Finds processes of the run that are no longer below its guest.
    cell: Weak<SessionCell>,
}

impl RunMeter {
    fn cpu_time(&self) -> Option<Duration> {
        self.gauge.as_ref().map_or_else(|| self.processes.cpu_time(), |gauge| gauge.cpu_time())
    }
}

impl UsageMeter for RunMeter {
    fn ledger(&self) -> CpuLedger {
        CpuLedger::of_later_run(self.processes.guest)
    }

    fn sample(&self, ledger: &mut CpuLedger) -> Sample {
        let mut sample = match self.cell.upgrade() {
            Some(cell) => {
                let belongs_elsewhere = |pid| cell.is_branching() || cell.owns(pid);
                cell.body().processes().branch_sample(self.processes, ledger, belongs_elsewhere)
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
        // A peak that is not higher than before belongs to an earlier run.
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
        // Control: a process that does not exist has no usage; no process has so high a number.
        let missing = meter(BranchProcesses { guest: 1 << 22, ..processes });
        assert_eq!((sample(&missing), missing.total()), (Usage::default(), None));
    }
}
