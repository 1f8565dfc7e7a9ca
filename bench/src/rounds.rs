//! Runs cases in turns, so that a busy moment of the machine affects all of them.

use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, row::BenchRow, stats::Times};

const ROUNDS: u32 = 50;
/// Runs of each case that do not count: they fill file caches and pools.
const WARM_UP: u32 = 20;

/// How often a case is timed, as a share of the requested number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frequency {
    /// Every time: Belljar's own cases.
    Always,
    /// Two of five, which is 200 by default: peers are slow.
    Less,
    /// One of 25, for cases that take a large part of a second.
    Seldom,
    /// One of a hundred, for cases that take seconds.
    Rarely,
}

impl Frequency {
    /// The number of times to run the case, out of `n`.
    pub(super) fn of(self, n: u32) -> u32 {
        match self {
            Self::Always => n,
            Self::Less => n.saturating_mul(2).div_ceil(5),
            Self::Seldom => n.div_ceil(25),
            Self::Rarely => n.div_ceil(100),
        }
    }
}

/// A case that is timed repeatedly.
pub(super) struct TimedCase<'a> {
    row: BenchRow,
    often: Frequency,
    /// Runs the case once, checks the answer and returns the time.
    once: Box<dyn FnMut() -> anyhow::Result<Duration> + 'a>,
    times: Times,
}

impl<'a> TimedCase<'a> {
    /// Creates a case; its name says whether it is one of Belljar's.
    pub(super) fn new(
        name: &str,
        version: &str,
        often: Frequency,
        once: impl FnMut() -> anyhow::Result<Duration> + 'a,
    ) -> Self {
        let row = BenchRow::new("", name, version);
        Self { row, often, once: Box::new(once), times: Times::default() }
    }

    fn warm_up(&mut self, n: u32) -> anyhow::Result<()> {
        let warm_up = if self.often == Frequency::Always { WARM_UP.min(n) } else { 1 };
        (0..warm_up).try_for_each(|_| (self.once)().map(drop))
    }
}

/// Times all cases in turns. A peer that fails while warming up is reported and left out.
pub(super) fn measure(
    bench: &Bench<'_>,
    name: &str,
    cases: Vec<TimedCase<'_>>,
) -> anyhow::Result<Vec<BenchRow>> {
    let n = bench.arguments.n;
    let rounds = ROUNDS.min(n);
    let mut working = Vec::new();
    for mut case in cases {
        bench.progress.show(&format!("{name}: {}", case.row.case));
        match case.warm_up(n) {
            Ok(()) => working.push(case),
            Err(error) if case.row.is_ours() => return Err(error).context(case.row.case),
            Err(error) => bench.omissions.left_out(&case.row.case, &format!("{error:#}")),
        }
    }
    for round in 0..rounds {
        bench.progress.show(&format!("{name}: round {} of {rounds}", round + 1));
        for case in &mut working {
            for _ in 0..share(case.often.of(n), round, rounds) {
                let time = (case.once)().with_context(|| case.row.case.clone())?;
                case.times.add(time);
            }
        }
    }
    let rows = working.iter();
    Ok(rows
        .map(|case| BenchRow::timed(name, &case.row.case, &case.row.version, &case.times))
        .collect())
}

/// How many of the `n` runs belong to this round.
pub(super) fn share(n: u32, round: u32, rounds: u32) -> u32 {
    let until = |round: u32| u64::from(n) * u64::from(round) / u64::from(rounds);
    u32::try_from(until(round + 1) - until(round)).unwrap_or(u32::MAX)
}
