//! Comparison with an earlier run: how each figure changed, and which became worse than tolerated.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::{
    record::{BenchRecord, MachineInfo},
    row::{BenchRow, BetterWhen, RowChange},
};

/// An earlier run, read from either of the two files that can hold one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum EarlierRun {
    /// The file that `--record` wrote.
    Recorded(Box<BenchRecord>),
    /// The rows that `--json` printed.
    Printed(Vec<BenchRow>),
}

impl EarlierRun {
    /// Reads the file and detects which of the two forms it has.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        serde_json::from_str(&text).or_else(|_| {
            bail!("{shown} is not a file written by `belljar-bench --json` or `--record`")
        })
    }

    fn rows(&self) -> &[BenchRow] {
        match self {
            Self::Recorded(record) => &record.rows,
            Self::Printed(rows) => rows,
        }
    }

    /// Why the earlier figures are hard to compare with these, for example another machine.
    pub(super) fn reservation(&self) -> Option<String> {
        let Self::Recorded(record) = self else { return None };
        let (then, now) = (record.machine.text(), MachineInfo::this().text());
        let elsewhere = then != now;
        elsewhere.then(|| {
            format!(
                "warning: recorded on another machine ({then}): \
                 the figures are hard to compare\n"
            )
        })
    }
}

/// Adds to each row how it differs from the same row of the earlier run.
pub(super) fn mark(rows: &mut [BenchRow], earlier: &EarlierRun, tolerated_percent: f64) {
    for row in rows {
        let same = |other: &&BenchRow| other.bench == row.bench && other.case == row.case;
        let before = earlier.rows().iter().find(same).and_then(BenchRow::judged_by);
        let (Some((now, better)), Some((before, _))) = (row.judged_by(), before) else { continue };
        row.change = change(before, now, better, tolerated_percent);
    }
}

fn change(before: f64, now: f64, better: BetterWhen, tolerated_percent: f64) -> Option<RowChange> {
    if before <= 0.0 || now <= 0.0 {
        return None;
    }
    let factor = match better {
        BetterWhen::Less => now / before,
        BetterWhen::More => before / now,
    };
    let worse_percent = ((factor - 1.0) * 1000.0).round() / 10.0;
    Some(RowChange { before, worse_percent, regressed: worse_percent > tolerated_percent })
}

/// One line for each Belljar figure that became worse than tolerated. Peers are not judged.
pub(super) fn regressions(rows: &[BenchRow], tolerated_percent: f64) -> anyhow::Result<String> {
    if rows.iter().all(|row| row.change.is_none()) {
        bail!("nothing to compare: the earlier run has none of these benchmarks");
    }
    let worse: Vec<(&BenchRow, RowChange)> = rows
        .iter()
        .filter(|row| row.is_ours())
        .filter_map(|row| Some((row, row.change.filter(|change| change.regressed)?)))
        .collect();
    let mut text = String::new();
    if !worse.is_empty() {
        let _ = writeln!(text, "more than {tolerated_percent} % worse than before:");
    }
    for (row, change) in worse {
        let now = row.judged_by().map_or(0.0, |(now, _)| now);
        let (bench, case, before) = (&row.bench, &row.case, change.before);
        let percent = change.worse_percent;
        let _ = writeln!(text, "  {bench}: {case}: {before} before, {now} now (+{percent} %)");
    }
    Ok(text)
}
