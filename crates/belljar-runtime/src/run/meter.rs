//! Measures what a run uses of the machine, from outside.

use std::time::Duration;

use belljar_jail::{
    Guests,
    sample::{CellProcesses, CpuLedger, Sample, Usage},
};

use crate::cell::CellBody;

/// Measures what one run uses, from its start to its end.
pub(crate) trait UsageMeter {
    /// The present usage of the run. The ledger holds the CPU time of earlier samples.
    fn sample(&self, ledger: &mut CpuLedger) -> Sample;

    /// A ledger for a run that begins now.
    fn ledger(&self) -> CpuLedger {
        CpuLedger::default()
    }

    /// CPU time and peak memory of a run that has ended; `None` when the guest is gone.
    fn total(&self) -> Option<Usage>;

    /// Whether its guest is a script engine or a program of the host.
    fn guests(&self) -> Guests;

    /// Memory that the guest has from its zygote, before any code ran.
    fn inherited_bytes(&self) -> u64;
}

/// Measures the one run of a cell.
#[derive(Debug)]
pub(crate) struct CellMeter<'a> {
    processes: CellProcesses,
    body: &'a CellBody,
    /// CPU time of the whole cell when the run began, where a control group counts it.
    group_before: Option<Duration>,
}

impl<'a> CellMeter<'a> {
    /// Starts to measure a run that begins now.
    pub(crate) fn start(body: &'a CellBody) -> Self {
        Self { processes: body.processes(), body, group_before: body.group_cpu() }
    }

    /// CPU time of the whole cell since the run began, including processes that no sample has seen.
    fn group_cpu(&self) -> Duration {
        let now = self.group_before.and_then(|before| Some((before, self.body.group_cpu()?)));
        now.map(|(before, now)| now.saturating_sub(before)).unwrap_or_default()
    }
}

impl UsageMeter for CellMeter<'_> {
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
