//! Formats rows as a table for people.

use std::fmt::Write as _;

use belljar_project::config::quantity::{grouped, milliseconds};

use super::{
    colour::{Paint, Painter},
    row::BenchRow,
};

/// Formats the rows, one table per benchmark.
pub(super) fn table(rows: &[BenchRow], painter: Painter) -> String {
    let mut text = String::new();
    for group in rows.chunk_by(|a, b| a.bench == b.bench) {
        let Some(first) = group.first() else { continue };
        let _ = writeln!(text, "{}", painter.paint(Paint::Strong, &first.bench));
        let width = group.iter().map(|row| row.case.chars().count()).max().unwrap_or(0);
        for row in group {
            let _ = writeln!(text, "{}", line(row, width, painter).trim_end());
        }
        for note in group.iter().flat_map(|row| notes(row, painter)) {
            let _ = writeln!(text, "  {note}");
        }
        text.push('\n');
    }
    text
}

fn line(row: &BenchRow, width: usize, painter: Painter) -> String {
    if let Some(quality) = &row.quality {
        let name = named(row, width, painter);
        return format!(
            "  {name}  recall@5 {:.3}  hit@5 {:.3}  NDCG@5 {:.3}  n = {}",
            quality.recall_at_5, quality.hit_at_5, quality.ndcg_at_5, row.n
        );
    }
    let figures = match (&row.memory, &row.saving) {
        (Some(memory), _) => format!(
            "{:>8.1} MB in all  {:>6.2} MB private each",
            memory.total_mb, memory.private_each_mb
        ),
        (None, Some(saving)) => format!(
            "{:>11} → {:>3} bytes {:>11} → {:>3} tokens  {:.3} % saved {}",
            grouped(saving.bytes_in),
            grouped(saving.bytes_out),
            grouped(saving.tokens_in),
            grouped(saving.tokens_out),
            saving.saved_percent,
            row.p50_ms.map(|ms| format!("in {}", time(ms))).unwrap_or_default(),
        ),
        (None, None) => format!(
            "{}{}{}{}  n = {}",
            figure("p50", row.p50_ms.map(time)),
            figure("p95", row.p95_ms.map(time)),
            figure("p99", row.p99_ms.map(time)),
            figure("", row.rate_per_s.map(|rate| format!("{rate:.0} /s"))),
            row.n
        ),
    };
    format!("  {}  {figures}", named(row, width, painter))
}

fn named(row: &BenchRow, width: usize, painter: Painter) -> String {
    let name = format!("{:<width$}", row.case);
    if row.is_ours() { painter.paint(Paint::Accent, &name) } else { name }
}

/// Tool calls need more decimals: they take less than other benchmarks would round to zero.
fn time(ms: f64) -> String {
    if ms < 0.2 { format!("{:.1} µs", ms * 1e3) } else { milliseconds(ms) }
}

fn figure(name: &str, value: Option<String>) -> String {
    value.map_or_else(String::new, |value| format!("{name:>5} {value:>9}"))
}

fn notes(row: &BenchRow, painter: Painter) -> Vec<String> {
    let mut notes = Vec::new();
    if !row.ratio.is_empty() {
        let ratios: Vec<String> =
            row.ratio.iter().map(|(peer, ratio)| format!("{ratio} × {peer}")).collect();
        notes.push(painter.paint(Paint::Good, &format!("{}: {}", row.case, ratios.join(", "))));
    }
    if let Some(footprint) = &row.footprint {
        let role = if footprint.flat { Paint::Good } else { Paint::Bad };
        notes.push(painter.paint(role, &footprint.to_string()));
    }
    if row.memory.is_some_and(|memory| !memory.exact) {
        let text = "shared pages are counted in every process; run as root to count them once";
        notes.push(painter.paint(Paint::Caution, &format!("{}: {text}", row.case)));
    }
    if let Some(change) = row.change {
        let direction = if change.worse_percent > 0.0 { "worse" } else { "better" };
        let (mark, role) = if change.regressed { ("! ", Paint::Bad) } else { ("", Paint::Dim) };
        let percent = change.worse_percent.abs();
        let text = format!(
            "{mark}{}: {percent:.1} % {direction} than before ({:.3})",
            row.case, change.before
        );
        notes.push(painter.paint(role, &text));
    }
    notes
}

#[cfg(test)]
mod tests;
