//! One row of a benchmark's results, and its stable JSON form.

use std::collections::BTreeMap;

use belljar_project::TokenSavings;
use serde::{Deserialize, Serialize};

use super::{footprint::Footprint, memory::MemoryUse, search::Quality, stats::Times};

/// Below this number of samples the 99th percentile is just the slowest one, so it is left out.
const FEWEST_FOR_P99: u64 = 100;

/// The result of one case of one benchmark.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct BenchRow {
    pub(super) bench: String,
    pub(super) case: String,
    pub(super) n: u64,
    pub(super) p50_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    /// The 99th percentile, if there are enough samples for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p99_ms: Option<f64>,
    pub(super) rate_per_s: Option<f64>,
    /// Peer → ratio between the two; above 1, this case is better.
    #[serde(default)]
    pub(super) ratio: BTreeMap<String, f64>,
    /// The version of the program that was measured.
    #[serde(default)]
    pub(super) version: String,
    /// The machine it was measured on.
    #[serde(default)]
    pub(super) machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) footprint: Option<Footprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<MemoryUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) saving: Option<TokenSavings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quality: Option<Quality>,
    /// The difference from an earlier run, with `--compare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) change: Option<RowChange>,
}

/// How a row differs from the same row of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct RowChange {
    /// The earlier figure, in the row's own unit.
    pub(super) before: f64,
    /// Change in percent; positive is worse.
    pub(super) worse_percent: f64,
    /// Whether it is worse by more than the tolerance.
    pub(super) regressed: bool,
}

impl BenchRow {
    pub(super) fn new(bench: &str, case: &str, version: &str) -> Self {
        Self {
            bench: bench.to_owned(),
            case: case.to_owned(),
            version: version.to_owned(),
            ..Self::default()
        }
    }

    /// A row of times that were measured one after the other.
    pub(super) fn timed(bench: &str, case: &str, version: &str, times: &Times) -> Self {
        Self {
            n: times.count(),
            p50_ms: times.percentile(50),
            p95_ms: times.percentile(95),
            p99_ms: times.percentile(99).filter(|_| times.count() >= FEWEST_FOR_P99),
            rate_per_s: times.rate_per_s(),
            ..Self::new(bench, case, version)
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.case.starts_with("belljar")
    }

    /// The figure this row is judged by, and whether lower is better.
    pub(super) fn judged_by(&self) -> Option<(f64, BetterWhen)> {
        if let Some(quality) = self.quality {
            return Some((quality.recall_at_5, BetterWhen::More));
        }
        match self.bench.as_str() {
            "throughput" => self.rate_per_s.map(|rate| (rate, BetterWhen::More)),
            "memory" => self.memory.map(|memory| (memory.private_each_mb, BetterWhen::Less)),
            "savings" => self.saving.map(|saving| (saving.bytes_out as f64, BetterWhen::Less)),
            _ => self.p50_ms.map(|time| (time, BetterWhen::Less)),
        }
    }
}

/// Whether a lower or a higher figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BetterWhen {
    More,
    Less,
}

/// Adds to each Belljar row its ratio to each peer of the same benchmark.
pub(super) fn add_ratios(rows: &mut [BenchRow]) {
    let peers: Vec<BenchRow> = rows.iter().filter(|row| !row.is_ours()).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.is_ours()) {
        let Some((ours, better)) = row.judged_by() else { continue };
        for peer in peers.iter().filter(|peer| peer.bench == row.bench) {
            let Some((theirs, _)) = peer.judged_by() else { continue };
            let (more, less) = match better {
                BetterWhen::More => (ours, theirs),
                BetterWhen::Less => (theirs, ours),
            };
            if less > 0.0 {
                row.ratio.insert(peer.case.clone(), round(more / less));
            }
        }
    }
}

fn round(ratio: f64) -> f64 {
    (ratio * 100.0).round() / 100.0
}
