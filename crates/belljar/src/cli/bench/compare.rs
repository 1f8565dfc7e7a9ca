//! Against an earlier run: what changed, and what became more than a tenth worse (K1).

use std::{fs, path::Path};

use anyhow::Context as _;

use super::row::{Better, Change, Row};

/// Smaller changes are noise.
const TOLERATED_PERCENT: f64 = 10.0;

/// Reads the rows an earlier `--json` printed.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not the output of `belljar bench --json`", path.display()))
}

/// Notes on each row how it differs from the same row of the earlier run.
pub(super) fn mark(rows: &mut [Row], earlier: &[Row]) {
    for row in rows {
        let same = |other: &&Row| other.bench == row.bench && other.case == row.case;
        let before = earlier.iter().find(same).and_then(Row::judged_by);
        let (Some((now, better)), Some((before, _))) = (row.judged_by(), before) else { continue };
        row.change = change(before, now, better);
    }
}

fn change(before: f64, now: f64, better: Better) -> Option<Change> {
    if before <= 0.0 || now <= 0.0 {
        return None;
    }
    let factor = match better {
        Better::Less => now / before,
        Better::More => before / now,
    };
    let worse_percent = ((factor - 1.0) * 1000.0).round() / 10.0;
    Some(Change { before, worse_percent, regressed: worse_percent > TOLERATED_PERCENT })
}
