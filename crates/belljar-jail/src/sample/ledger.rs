//! CPU time of processes that are gone.
//!
//! The kernel adds the time of a child to that of whoever waits for it. A parent that ignores its
//! children's ends has them cleared away unwaited for, and their time is nobody's. So what was last
//! seen of each process is kept here.

use std::{collections::HashMap, time::Duration};

/// Which process: a number is given out again, but not with the same start.
type Identity = (u32, u64);

/// What the processes of one run have used, kept from sample to sample.
#[derive(Debug, Default)]
pub struct CpuLedger {
    samples: u64,
    known: HashMap<Identity, LastSeen>,
    /// Time of processes that are certainly gone.
    gone: Duration,
    /// The most by which that was ever above what the living have waited for.
    lost: Duration,
}

#[derive(Debug, Clone, Copy)]
struct LastSeen {
    cpu: Duration,
    sample: u64,
}

/// What one sample saw of the CPU time of living processes.
#[derive(Debug, Default)]
pub(super) struct LivingCpu {
    pub(super) own: Vec<(Identity, Duration)>,
    /// Of children that have ended and been waited for.
    pub(super) of_children: Duration,
}

impl CpuLedger {
    /// Takes a sample; all CPU time known of by then.
    pub(super) fn add(&mut self, living: LivingCpu) -> Duration {
        self.samples += 1;
        let sample = self.samples;
        let mut own = Duration::ZERO;
        for (identity, cpu) in living.own {
            own += cpu;
            self.known.insert(identity, LastSeen { cpu, sample });
        }
        // One that a sample has missed is not gone for that: it may just have got another parent.
        let mut missed = Duration::ZERO;
        self.known.retain(|_, seen| {
            match sample - seen.sample {
                0 => {}
                1 => missed += seen.cpu,
                _ => self.gone += seen.cpu,
            }
            sample - seen.sample < 2
        });
        // What was waited for is in the parents' time already, and is not counted twice.
        let waited_for = living.of_children;
        self.lost = self.lost.max(self.gone.saturating_sub(waited_for));
        let unseen = (self.gone + missed).saturating_sub(waited_for);
        own + waited_for + self.lost.max(unseen)
    }

    /// CPU time of processes that are gone and were waited for by nobody.
    pub fn lost(&self) -> Duration {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn living(own: &[(u32, u64)], of_children: u64) -> LivingCpu {
        let own = own.iter().map(|(pid, cpu)| ((*pid, 1), ms(*cpu))).collect();
        LivingCpu { own, of_children: ms(of_children) }
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
        let again = LivingCpu { own: vec![((1, 1), ms(20)), ((2, 2), ms(5))], ..living(&[], 0) };
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

    /// Time that was lost stays lost, whatever is waited for later.
    #[test]
    fn s7_later_children_do_not_make_up_for_lost_ones() {
        let mut ledger = CpuLedger::default();
        ledger.add(living(&[(1, 0), (2, 500)], 0));
        ledger.add(living(&[(1, 0)], 0));
        assert_eq!(ledger.add(living(&[(1, 0)], 0)), ms(500));
        assert_eq!(ledger.add(living(&[(1, 0)], 300)), ms(800));
    }
}
