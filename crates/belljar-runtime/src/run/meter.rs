//! What a run's use of the machine is measured by, from outside.

use std::time::Duration;

use belljar_jail::{
    Guests,
    sample::{CellProcesses, CpuLedger, Sample, Usage},
};

use crate::cell::Body;

/// Measures one run.
pub(crate) trait Meter {
    /// What the run uses right now. What it had used of CPU time by the last look is in the ledger.
    fn sample(&self, ledger: &mut CpuLedger) -> Sample;

    /// A ledger for the run, which begins now.
    fn ledger(&self) -> CpuLedger {
        CpuLedger::default()
    }

    /// CPU time of the run, and the most memory it was resident with, now that it has ended; `None`
    /// when the guest is gone.
    fn total(&self) -> Option<Usage>;

    /// What its guest is.
    fn guests(&self) -> Guests;

    /// Memory that its guest had before any code of a run, from its zygote.
    fn inherited_bytes(&self) -> u64;
}

/// Measures the one run of a cell.
#[derive(Debug)]
pub(crate) struct CellMeter<'a> {
    processes: CellProcesses,
    body: &'a Body,
    /// What all of the cell had used by the beginning, where the kernel counts that.
    group_before: Option<Duration>,
}

impl<'a> CellMeter<'a> {
    /// For a run that begins now.
    pub(crate) fn start(body: &'a Body) -> Self {
        Self { processes: body.processes(), body, group_before: body.group_cpu() }
    }

    /// CPU time of the whole cell since then: also of processes that no sample has seen.
    fn group_cpu(&self) -> Duration {
        let now = self.group_before.and_then(|before| Some((before, self.body.group_cpu()?)));
        now.map(|(before, now)| now.saturating_sub(before)).unwrap_or_default()
    }
}

impl Meter for CellMeter<'_> {
    fn sample(&self, ledger: &mut CpuLedger) -> Sample {
        let mut sample = self.processes.sample(ledger);
        sample.usage.cpu = sample.usage.cpu.max(self.group_cpu());
        sample
    }

    fn total(&self) -> Option<Usage> {
        let memory_bytes = self.processes.peak_memory_bytes()?;
        let cpu = self.processes.cpu_time().unwrap_or_default().max(self.group_cpu());
        Some(Usage { cpu, memory_bytes })
    }

    fn guests(&self) -> Guests {
        self.processes.guests
    }

    fn inherited_bytes(&self) -> u64 {
        self.processes.inherited_bytes()
    }
}
