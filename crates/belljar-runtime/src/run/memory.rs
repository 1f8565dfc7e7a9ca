//! Whether a run uses more memory than it may.
//!
//! Samples are quick, and count a page once for each process that has it. Forked processes share what their
//! interpreter had at the start, so a sample can say too much. Then an exact measurement decides, on a
//! blocking thread. It also measures, from time to time, what the kernel holds for the run.

use std::time::Duration;

use belljar_jail::{
    Guests,
    sample::{Sample, held_together, kernel_bytes},
};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::Instant,
};

/// Bytes that the allocator of a script engine may waste. The engine's own limit is exact and is reached first.
const SCRIPT_SLACK: u64 = 40 << 20;
/// Bytes that an interpreter or a shell needs to run anything, on top of those it had at the start.
const PROGRAM_SLACK: u64 = 16 << 20;
/// How often the memory that the kernel holds for a run is measured.
const KERNEL_EVERY: Duration = Duration::from_secs(1);
/// After an exact measurement, the next waits for this many times its duration.
const EXACT_PAUSE: u32 = 5;

/// Memory that does not count as the run's, on top of what its guest has from its zygote.
pub(crate) fn slack_bytes(guests: Guests) -> u64 {
    match guests {
        Guests::Script => SCRIPT_SLACK,
        Guests::Programs => PROGRAM_SLACK,
    }
}

/// The meaning of a measurement for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryVerdict {
    WithinLimit,
    OverLimit,
}

/// Bytes that all processes of a run hold.
#[derive(Debug, Clone, Copy)]
struct ExactMeasurement {
    /// Shared pages counted once; `None` if only the kernel's part was due.
    together: Option<u64>,
    kernel: u64,
    took: Duration,
}

/// The memory of a run, from sample to sample.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    guests: Guests,
    /// Bytes that one process may have.
    room: u64,
    inherited: u64,
    /// Bytes that the kernel held for the run at the last measurement.
    kernel: u64,
    next_kernel: Instant,
    next_exact: Instant,
    measurement: Option<JoinHandle<ExactMeasurement>>,
}

impl MemoryWatch {
    /// Watches a run with this limit, whose guest inherited so many bytes from its zygote.
    pub(crate) fn new(limit: u64, inherited: u64, guests: Guests) -> Self {
        let now = Instant::now();
        let room = limit.saturating_add(inherited).saturating_add(slack_bytes(guests));
        let (next_kernel, next_exact) = (now + KERNEL_EVERY, now);
        Self { guests, room, inherited, kernel: 0, next_kernel, next_exact, measurement: None }
    }

    /// The memory of the processes of a sample, without an exact measurement: memory that all of them inherited
    /// counts once.
    pub(crate) fn held_bytes(&self, sample: &Sample) -> u64 {
        let others = (sample.processes.len() as u64).saturating_sub(1);
        let shared = self.inherited.saturating_mul(others);
        sample.usage.memory_bytes.saturating_sub(shared).max(sample.largest_bytes)
    }

    /// Judges a sample, and starts an exact measurement if there is reason to.
    pub(crate) fn check(&mut self, sample: &Sample) -> MemoryVerdict {
        let together = sample.usage.memory_bytes.saturating_add(self.kernel);
        let others = (sample.processes.len() as u64).saturating_sub(1);
        // Only inherited memory is taken as shared without an exact measurement.
        let most = self.room.saturating_add(self.inherited.saturating_mul(others));
        if sample.has_unmeasured || sample.largest_bytes > self.room || together > most {
            return MemoryVerdict::OverLimit;
        }
        if self.measurement.is_none() && self.guests == Guests::Programs {
            let now = Instant::now();
            let is_too_much = together > self.room && now >= self.next_exact;
            if is_too_much || now >= self.next_kernel {
                let processes = sample.processes.clone();
                self.measurement = Some(spawn_blocking(move || {
                    let began = Instant::now();
                    let together = is_too_much.then(|| held_together(&processes));
                    let kernel = kernel_bytes(&processes);
                    ExactMeasurement { together, kernel, took: began.elapsed() }
                }));
            }
        }
        MemoryVerdict::WithinLimit
    }

    /// The verdict of the exact measurement under way; pending if there is none.
    pub(crate) async fn exact_measurement(&mut self) -> MemoryVerdict {
        let Some(measurement) = &mut self.measurement else { return std::future::pending().await };
        let measured = measurement.await;
        self.measurement = None;
        let Ok(ExactMeasurement { together, kernel, took }) = measured else {
            return MemoryVerdict::WithinLimit;
        };
        let now = Instant::now();
        self.next_exact = now + took * EXACT_PAUSE;
        self.next_kernel = now + KERNEL_EVERY.max(took * EXACT_PAUSE);
        self.kernel = kernel;
        let is_over = together.is_some_and(|bytes| bytes.saturating_add(kernel) > self.room);
        if is_over { MemoryVerdict::OverLimit } else { MemoryVerdict::WithinLimit }
    }
}

#[cfg(test)]
mod tests {
    use belljar_jail::sample::{ForkedProcess, Usage};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn sample(processes: &[u64]) -> Sample {
        let usage = Usage { memory_bytes: processes.iter().sum(), ..Usage::default() };
        Sample {
            usage,
            largest_bytes: processes.iter().copied().max().unwrap_or_default(),
            has_unmeasured: false,
            // No process has such a number, so none shares anything.
            processes: processes.iter().map(|_| ForkedProcess { pid: 1 << 22, forks: 0 }).collect(),
        }
    }

    fn watch() -> MemoryWatch {
        MemoryWatch::new(64 * MIB, 20 * MIB, Guests::Programs)
    }

    /// The room: 64 MiB of the limit, 20 MiB inherited, 16 MiB of slack.
    #[tokio::test]
    async fn bug_11_memory_has_a_small_slack_and_no_other() {
        assert_eq!(watch().check(&sample(&[100 * MIB])), MemoryVerdict::WithinLimit);
        assert_eq!(watch().check(&sample(&[101 * MIB])), MemoryVerdict::OverLimit);
        // Two processes may share what they inherited, until an exact measurement says otherwise.
        let mut both = watch();
        assert_eq!(both.check(&sample(&[60 * MIB, 60 * MIB])), MemoryVerdict::WithinLimit);
        assert!(both.measurement.is_some());
        assert_eq!(both.exact_measurement().await, MemoryVerdict::WithinLimit);
        assert_eq!(watch().check(&sample(&[61 * MIB, 60 * MIB])), MemoryVerdict::OverLimit);
    }

    #[tokio::test]
    async fn s1_what_cannot_be_measured_is_over_the_limit() {
        let unmeasured = Sample { has_unmeasured: true, ..sample(&[MIB]) };
        assert_eq!(watch().check(&unmeasured), MemoryVerdict::OverLimit);
        assert_eq!(watch().check(&sample(&[MIB])), MemoryVerdict::WithinLimit);
    }

    /// Memory of several processes counts together, once it is measured.
    #[tokio::test]
    async fn bug_11_forks_that_share_nothing_are_over_the_limit() {
        let own = ForkedProcess { pid: std::process::id(), forks: 0 };
        let mut watch = MemoryWatch::new(0, 20 * MIB, Guests::Programs);
        watch.room = 1;
        let two = Sample { processes: vec![own; 2], ..sample(&[1, 1]) };
        assert_eq!(watch.check(&two), MemoryVerdict::WithinLimit);
        assert_eq!(watch.exact_measurement().await, MemoryVerdict::OverLimit);
    }

    #[tokio::test(start_paused = true)]
    async fn s8_memory_of_the_kernel_counts_too() {
        let mut watch = watch();
        assert_eq!(watch.check(&sample(&[MIB])), MemoryVerdict::WithinLimit);
        assert!(watch.measurement.is_none());
        tokio::time::advance(KERNEL_EVERY).await;
        let own = ForkedProcess { pid: std::process::id(), forks: 1 << 20 };
        let forked = Sample { processes: vec![own], ..sample(&[MIB]) };
        assert_eq!(watch.check(&forked), MemoryVerdict::WithinLimit);
        assert_eq!(watch.exact_measurement().await, MemoryVerdict::WithinLimit);
        assert!(watch.kernel > 100 * MIB, "{}", watch.kernel);
        assert_eq!(watch.check(&sample(&[MIB])), MemoryVerdict::OverLimit);
    }
}
