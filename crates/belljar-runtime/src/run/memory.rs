//! Whether a run has more memory than it may have.
//!
//! Its samples are quick and count a page once for each process that has it. Where they say too much
//! because forked processes share what their interpreter had from the beginning, it is looked more
//! closely, off the path. From time to time it is also looked at what the kernel holds for the run.

use std::time::Duration;

use belljar_jail::{
    Guests,
    sample::{Sample, held_together, kernel_bytes},
};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::Instant,
};

/// What a script's allocator may waste: the engine's own limit is exact, and reached first.
const SCRIPT_SLACK: u64 = 40 << 20;
/// What an interpreter or a shell needs on top of what it was started with, to run anything.
const PROGRAM_SLACK: u64 = 16 << 20;
/// How often it is looked at what the kernel holds for a run.
const KERNEL_EVERY: Duration = Duration::from_secs(1);
/// A closer look may take this part of the time.
const CLOSER_SHARE: u32 = 5;

/// Memory that is not counted as a run's, on top of what its guest had from its zygote.
pub(crate) fn slack_bytes(guests: Guests) -> u64 {
    match guests {
        Guests::Script => SCRIPT_SLACK,
        Guests::Programs => PROGRAM_SLACK,
    }
}

/// What is to be done after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    Fine,
    OverTheLimit,
}

/// What a closer look has found.
#[derive(Debug, Clone, Copy)]
struct CloserLook {
    together: Option<u64>,
    kernel: u64,
    took: Duration,
}

/// The memory of a run, from sample to sample.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    guests: Guests,
    /// What one process may have.
    room: u64,
    inherited: u64,
    /// What the kernel held for it when that was last looked at.
    kernel: u64,
    next_kernel: Instant,
    next_closer: Instant,
    look: Option<JoinHandle<CloserLook>>,
}

impl MemoryWatch {
    /// For a run with a limit, whose guest has inherited so much.
    pub(crate) fn new(limit: u64, inherited: u64, guests: Guests) -> Self {
        let now = Instant::now();
        let room = limit.saturating_add(inherited).saturating_add(slack_bytes(guests));
        let (next_kernel, next_closer) = (now + KERNEL_EVERY, now);
        Self { guests, room, inherited, kernel: 0, next_kernel, next_closer, look: None }
    }

    /// What the processes of a sample hold, as far as that is known without a closer look: what all of
    /// them had from the beginning counts once.
    pub(crate) fn held_bytes(&self, sample: &Sample) -> u64 {
        let others = (sample.processes.len() as u64).saturating_sub(1);
        let shared = self.inherited.saturating_mul(others);
        sample.usage.memory_bytes.saturating_sub(shared).max(sample.largest_bytes)
    }

    /// Takes note of a sample, and begins to look closer if there is reason to.
    pub(crate) fn check(&mut self, sample: &Sample) -> Finding {
        let together = sample.usage.memory_bytes.saturating_add(self.kernel);
        let others = (sample.processes.len() as u64).saturating_sub(1);
        // Nothing but what they had from the beginning is shared for the asking.
        let most = self.room.saturating_add(self.inherited.saturating_mul(others));
        if sample.has_unmeasured || sample.largest_bytes > self.room || together > most {
            return Finding::OverTheLimit;
        }
        if self.look.is_none() && self.guests == Guests::Programs {
            let now = Instant::now();
            let is_too_much = together > self.room && now >= self.next_closer;
            if is_too_much || now >= self.next_kernel {
                let processes = sample.processes.clone();
                self.look = Some(spawn_blocking(move || {
                    let began = Instant::now();
                    let together = is_too_much.then(|| held_together(&processes));
                    let kernel = kernel_bytes(&processes);
                    CloserLook { together, kernel, took: began.elapsed() }
                }));
            }
        }
        Finding::Fine
    }

    /// What the closer look under way has found; never, if there is none.
    pub(crate) async fn looked_closer(&mut self) -> Finding {
        let Some(look) = &mut self.look else { return std::future::pending().await };
        let found = look.await;
        self.look = None;
        let Ok(CloserLook { together, kernel, took }) = found else { return Finding::Fine };
        let now = Instant::now();
        self.next_closer = now + took * CLOSER_SHARE;
        self.next_kernel = now + KERNEL_EVERY.max(took * CLOSER_SHARE);
        self.kernel = kernel;
        let is_over = together.is_some_and(|bytes| bytes.saturating_add(kernel) > self.room);
        if is_over { Finding::OverTheLimit } else { Finding::Fine }
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
            // No process has such numbers, so nobody shares anything.
            processes: processes.iter().map(|_| ForkedProcess { pid: 1 << 22, forks: 0 }).collect(),
        }
    }

    fn watch() -> MemoryWatch {
        MemoryWatch::new(64 * MIB, 20 * MIB, Guests::Programs)
    }

    /// Room: 64 of the limit, 20 that were there before, 16 of slack.
    #[tokio::test]
    async fn bug_11_memory_has_a_small_slack_and_no_other() {
        assert_eq!(watch().check(&sample(&[100 * MIB])), Finding::Fine);
        assert_eq!(watch().check(&sample(&[101 * MIB])), Finding::OverTheLimit);
        // Two of them may share what they had before, until it is known.
        let mut both = watch();
        assert_eq!(both.check(&sample(&[60 * MIB, 60 * MIB])), Finding::Fine);
        assert!(both.look.is_some());
        assert_eq!(both.looked_closer().await, Finding::Fine);
        assert_eq!(watch().check(&sample(&[61 * MIB, 60 * MIB])), Finding::OverTheLimit);
    }

    #[tokio::test]
    async fn s1_what_cannot_be_measured_is_over_the_limit() {
        let unmeasured = Sample { has_unmeasured: true, ..sample(&[MIB]) };
        assert_eq!(watch().check(&unmeasured), Finding::OverTheLimit);
        assert_eq!(watch().check(&sample(&[MIB])), Finding::Fine);
    }

    /// What several hold together is what counts, once it is known.
    #[tokio::test]
    async fn bug_11_forks_that_share_nothing_are_over_the_limit() {
        let own = ForkedProcess { pid: std::process::id(), forks: 0 };
        let mut watch = MemoryWatch::new(0, 20 * MIB, Guests::Programs);
        watch.room = 1;
        let two = Sample { processes: vec![own; 2], ..sample(&[1, 1]) };
        assert_eq!(watch.check(&two), Finding::Fine);
        assert_eq!(watch.looked_closer().await, Finding::OverTheLimit);
    }

    #[tokio::test(start_paused = true)]
    async fn s8_memory_of_the_kernel_counts_too() {
        let mut watch = watch();
        assert_eq!(watch.check(&sample(&[MIB])), Finding::Fine);
        assert!(watch.look.is_none());
        tokio::time::advance(KERNEL_EVERY).await;
        let own = ForkedProcess { pid: std::process::id(), forks: 1 << 20 };
        let forked = Sample { processes: vec![own], ..sample(&[MIB]) };
        assert_eq!(watch.check(&forked), Finding::Fine);
        assert_eq!(watch.looked_closer().await, Finding::Fine);
        assert!(watch.kernel > 100 * MIB, "{}", watch.kernel);
        assert_eq!(watch.check(&sample(&[MIB])), Finding::OverTheLimit);
    }
}
