//! CPU time of processes that are gone.
//!
//! The kernel adds the time of a child to that of the process that waits for it. Children of a
//! parent that ignores their ends are reaped without a wait, and their time is added to no process.
//! So the time that was last seen of each process is recorded here.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// The unit in which the kernel counts the starts of processes (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// A process by number and start: a number is reused, but not with the same start.
type ProcessIdentity = (u32, u64);

/// The CPU time of the processes of one run, kept from sample to sample.
#[derive(Debug, Default)]
pub struct CpuLedger {
    samples: u64,
    known: HashMap<ProcessIdentity, LastSeen>,
    /// Time of processes that are certainly gone.
    gone: Duration,
    /// By how much that exceeded what the living have waited for, in the last sample.
    deficit: Duration,
    /// The most by which it exceeded that in two samples in a row: a process that is waited for
    /// while a sample is taken is missing from that one sample.
    lost: Duration,
    /// Time that processes had waited for which are gone and were not waited for themselves.
    lost_with_parents: Duration,
    /// The results of the last two samples, the older one first.
    totals: [Duration; 2],
    inherited: EarlierProcesses,
}

/// Processes that were there before the run began, and the time they had used when they were first
/// seen. That time is not the run's.
#[derive(Debug, Default)]
struct EarlierProcesses {
    /// The guest, whose earlier time its meter subtracts.
    guest: u32,
    /// When the run began: processes that started earlier were there before.
    began_ticks: u64,
    known: HashSet<ProcessIdentity>,
    used: Duration,
}

#[derive(Debug, Clone, Copy)]
struct LastSeen {
    cpu: ProcessCpu,
    sample: u64,
}

/// CPU time of one process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessCpu {
    pub(super) own: Duration,
    /// Of children that have ended and that it has waited for.
    pub(super) waited_for: Duration,
}

/// The CPU time of living processes in one sample.
#[derive(Debug, Default)]
pub(super) struct LivingCpu {
    pub(super) processes: Vec<(ProcessIdentity, ProcessCpu)>,
    /// The CPU time of children that the keeper has reaped. It must be read before the processes:
    /// one that ends in between is then missed once, and not counted twice.
    pub(super) waited_for_by_keeper: Duration,
}

impl CpuLedger {
    /// For a run that begins now in a guest that has had earlier runs: the time of processes they
    /// left running does not count.
    pub fn of_later_run(guest: u32) -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let ticks = u64::try_from(now.tv_sec).unwrap_or_default() * TICKS_PER_SECOND
            + u64::try_from(now.tv_nsec).unwrap_or_default() / (1_000_000_000 / TICKS_PER_SECOND);
        Self {
            inherited: EarlierProcesses {
                guest,
                began_ticks: ticks,
                ..EarlierProcesses::default()
            },
            ..Self::default()
        }
    }

    /// Adds a sample; returns all CPU time known by then.
    pub(super) fn add(&mut self, living: LivingCpu) -> Duration {
        self.samples += 1;
        let (mut own, mut waited_for) = (Duration::ZERO, living.waited_for_by_keeper);
        for (identity, cpu) in living.processes {
            self.inherited.note(identity, cpu);
            own += cpu.own;
            waited_for += cpu.waited_for;
            self.known.insert(identity, LastSeen { cpu, sample: self.samples });
        }
        let AbsentCpu { missed, parents } = self.forget_absent();
        // The time of reaped children is in their parents' time already, and is not counted twice.
        let deficit = self.gone.saturating_sub(waited_for);
        self.lost = self.lost.max(deficit.min(self.deficit));
        self.deficit = deficit;
        let unseen = (self.gone + missed).saturating_sub(waited_for);
        let total = own + waited_for + self.lost.max(unseen);
        // A total that falls when parents go: they had waited for children so short-lived that no
        // sample saw them, and the parents were not waited for.
        let [when_parents_were_seen, last] = self.totals;
        let fallen = when_parents_were_seen.saturating_sub(total + self.lost_with_parents);
        self.lost_with_parents += fallen.min(parents);
        let total = total + self.lost_with_parents;
        self.totals = [last, total];
        total.saturating_sub(self.inherited.used)
    }

    /// Forgets the processes that two samples in a row have not seen.
    fn forget_absent(&mut self) -> AbsentCpu {
        let mut absent = AbsentCpu::default();
        let (sample, gone) = (self.samples, &mut self.gone);
        self.known.retain(|_, seen| {
            match sample - seen.sample {
                0 => {}
                // It may not be gone: it may just have got another parent.
                1 => absent.missed += seen.cpu.own,
                _ => {
                    *gone += seen.cpu.own;
                    absent.parents += seen.cpu.waited_for;
                }
            }
            sample - seen.sample < 2
        });
        absent
    }

    /// CPU time of processes that are gone and were not waited for.
    pub fn lost(&self) -> Duration {
        let lost = self.lost.max(self.deficit) + self.lost_with_parents;
        lost.saturating_sub(self.inherited.used)
    }
}

impl EarlierProcesses {
    fn note(&mut self, identity: ProcessIdentity, cpu: ProcessCpu) {
        let (pid, start) = identity;
        if start < self.began_ticks && pid != self.guest && self.known.insert(identity) {
            self.used += cpu.own + cpu.waited_for;
        }
    }
}

/// CPU time of processes that a sample has not seen.
#[derive(Debug, Default)]
struct AbsentCpu {
    /// Own time of processes that were there one sample ago.
    missed: Duration,
    /// Time that processes had waited for which are now known to be gone.
    parents: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn process(pid: u32, own: u64, waited_for: u64) -> (ProcessIdentity, ProcessCpu) {
        ((pid, 1), ProcessCpu { own: ms(own), waited_for: ms(waited_for) })
    }

    fn living(own: &[(u32, u64)], waited_for_by_keeper: u64) -> LivingCpu {
        let processes = own.iter().map(|(pid, own)| process(*pid, *own, 0)).collect();
        LivingCpu { processes, waited_for_by_keeper: ms(waited_for_by_keeper) }
    }

    fn family(processes: &[(u32, u64, u64)]) -> LivingCpu {
        let processes = processes.iter().map(|of| process(of.0, of.1, of.2)).collect();
        LivingCpu { processes, ..LivingCpu::default() }
    }

    #[test]
    fn s7_what_nobody_waited_for_stays_counted() {
        let mut ledger = CpuLedger::default();
        assert_eq!(ledger.add(living(&[(1, 10), (2, 400)], 0)), ms(410));
        assert_eq!(ledger.add(living(&[(1, 10), (3, 100)], 0)), ms(510));
        assert_eq!(ledger.add(living(&[(1, 10), (3, 450)], 0)), ms(860));
        assert_eq!(ledger.add(living(&[(1, 10)], 0)), ms(860));
        assert_eq!(ledger.add(living(&[(1, 20)], 0)), ms(870));
        assert_eq!(ledger.lost(), ms(850));
        // The same number again is another process.
        let mut again = living(&[(1, 20), (2, 5)], 0);
        again.processes[1].0 = (2, 2);
        assert_eq!(ledger.add(again), ms(875));
    }

    #[test]
    fn s7_what_was_waited_for_is_counted_once() {
        let mut ledger = CpuLedger::default();
        assert_eq!(ledger.add(living(&[(1, 10), (2, 400)], 0)), ms(410));
        for _ in 0..3 {
            assert_eq!(ledger.add(living(&[(1, 10)], 420)), ms(430));
        }
        assert_eq!(ledger.lost(), ms(0));
    }

    /// One that a sample misses because it changes hands just then is not counted twice.
    #[test]
    fn s7_a_process_that_was_only_missed_is_counted_once() {
        let mut ledger = CpuLedger::default();
        assert_eq!(ledger.add(living(&[(1, 10), (2, 400)], 0)), ms(410));
        assert_eq!(ledger.add(living(&[(1, 10)], 0)), ms(410));
        assert_eq!(ledger.add(living(&[(1, 10), (2, 410)], 0)), ms(420));
        assert_eq!(ledger.lost(), ms(0));
    }

    /// Time that was lost stays lost, even if children are reaped later.
    #[test]
    fn s7_later_children_do_not_make_up_for_lost_ones() {
        let mut ledger = CpuLedger::default();
        ledger.add(living(&[(1, 0), (2, 500)], 0));
        ledger.add(living(&[(1, 0)], 0));
        for _ in 0..2 {
            assert_eq!(ledger.add(living(&[(1, 0)], 0)), ms(500));
        }
        assert_eq!(ledger.add(living(&[(1, 0)], 300)), ms(800));
    }

    /// Children that no sample saw are in their parent's time. It stays counted if no process waits
    /// for the parent, for one such parent after the other.
    #[test]
    fn s7_what_an_unwaited_parent_had_waited_for_stays_counted() {
        let mut ledger = CpuLedger::default();
        let mut total = 0;
        for parent in 2..6 {
            ledger.add(family(&[(1, 0, 0), (parent, 10, 300)]));
            ledger.add(family(&[(1, 0, 0), (parent, 10, 600)]));
            ledger.add(family(&[(1, 0, 0)]));
            total += 610;
            for _ in 0..2 {
                assert_eq!(ledger.add(family(&[(1, 0, 0)])), ms(total));
            }
            assert_eq!(ledger.lost(), ms(total));
        }
    }

    #[test]
    fn s7_what_a_waited_for_parent_had_waited_for_is_counted_once() {
        let mut ledger = CpuLedger::default();
        ledger.add(family(&[(1, 0, 0), (2, 10, 600)]));
        for _ in 0..3 {
            assert_eq!(ledger.add(family(&[(1, 0, 610)])), ms(610));
        }
        assert_eq!(ledger.lost(), ms(0));
    }

    /// The child was seen while it lived, so its time is known without its parent.
    #[test]
    fn s7_a_child_that_was_seen_is_not_counted_with_its_parent_again() {
        let mut ledger = CpuLedger::default();
        ledger.add(family(&[(1, 0, 0), (2, 10, 0), (3, 500, 0)]));
        ledger.add(family(&[(1, 0, 0), (2, 10, 500)]));
        ledger.add(family(&[(1, 0, 0), (2, 10, 500)]));
        for _ in 0..3 {
            assert_eq!(ledger.add(family(&[(1, 0, 0)])), ms(510));
        }
    }

    #[test]
    fn s7_a_parent_that_was_only_missed_is_counted_once() {
        let mut ledger = CpuLedger::default();
        ledger.add(family(&[(1, 0, 0), (2, 10, 600)]));
        ledger.add(family(&[(1, 0, 0)]));
        assert_eq!(ledger.add(family(&[(1, 0, 0), (2, 10, 600)])), ms(610));
        assert_eq!(ledger.lost(), ms(0));
    }

    /// One that is waited for between the looks at its parent and at itself is nowhere in that
    /// sample, nor is what it had waited for.
    #[test]
    fn s7_what_is_waited_for_during_a_sample_is_counted_once() {
        let mut ledger = CpuLedger::default();
        ledger.add(family(&[(1, 0, 0), (2, 10, 0), (3, 500, 0)]));
        for _ in 0..3 {
            assert_eq!(ledger.add(family(&[(1, 0, 0), (2, 10, 500)])), ms(510));
        }
        assert_eq!(ledger.add(family(&[(1, 0, 0)])), ms(510));
        for _ in 0..3 {
            assert_eq!(ledger.add(family(&[(1, 0, 510)])), ms(510));
        }
        assert_eq!(ledger.lost(), ms(0));
    }

    #[test]
    fn s7_what_earlier_runs_left_running_had_used_its_time_before() {
        let mut ledger = CpuLedger::of_later_run(1);
        let began = ledger.inherited.began_ticks;
        let with = |helper: u64, new: u64| {
            let mut living = family(&[(1, 700, 0), (2, helper, 30), (3, new, 0)]);
            living.processes[1].0 = (2, began - 1);
            living.processes[2].0 = (3, began);
            living
        };
        // The guest's own time before is for its meter to subtract.
        assert_eq!(ledger.add(with(1600, 40)), ms(740));
        assert_eq!(ledger.add(with(1650, 60)), ms(810));
    }
}
