//! The table shows the figures, the ratios, and what became worse.

use std::time::Duration;

use belljar_project::TokenSavings;

use super::{
    super::{
        colour::Painter,
        compare::{self, EarlierRun},
        memory::MemoryUse,
        row::{BenchRow, add_ratios},
        stats::Times,
    },
    table,
};

fn rows() -> Vec<BenchRow> {
    let timed = |case: &str, p50: f64, p95: f64| BenchRow {
        n: 500,
        p50_ms: Some(p50),
        p95_ms: Some(p95),
        rate_per_s: Some(1000.0 / p50),
        ..BenchRow::new("start", case, "1.0")
    };
    let memory = |case: &str, total_mb, private_each_mb| BenchRow {
        n: 4,
        memory: Some(MemoryUse { total_mb, private_each_mb, exact: true }),
        ..BenchRow::new("memory", case, "1.0")
    };
    let mut start = vec![
        timed("belljar typescript", 0.4, 0.9),
        timed("deno cold", 14.9, 18.0),
        timed("deno warm", 0.95, 1.5),
    ];
    let mut idle = vec![memory("belljar", 30.0, 2.0), memory("deno warm", 112.0, 24.0)];
    add_ratios(&mut start);
    add_ratios(&mut idle);
    start.into_iter().chain(idle).collect()
}

#[test]
fn k1_the_table_shows_figures_and_ratios() {
    insta::assert_snapshot!(table(&rows(), Painter::PLAIN), @r"
    start
      belljar typescript    p50   0.40 ms  p95   0.90 ms        2500 /s  n = 500
      deno cold             p50   14.9 ms  p95   18.0 ms          67 /s  n = 500
      deno warm             p50   0.95 ms  p95   1.50 ms        1053 /s  n = 500
      belljar typescript: 37.25 × deno cold, 2.37 × deno warm

    memory
      belljar        30.0 MB in all    2.00 MB private each
      deno warm     112.0 MB in all   24.00 MB private each
      belljar: 12 × deno warm
    ");
}

#[test]
fn k1_short_times_and_savings_are_shown_in_units_of_their_own() {
    let call = BenchRow {
        n: 2000,
        p50_ms: Some(0.0634),
        p95_ms: Some(0.21),
        ..BenchRow::new("tools", "belljar typescript", "1.0")
    };
    let saving = BenchRow {
        n: 1,
        p50_ms: Some(812.5),
        saving: Some(TokenSavings::new(20_000_000, 135)),
        ..BenchRow::new("savings", "belljar filesystem", "1.0")
    };
    insta::assert_snapshot!(table(&[call, saving], Painter::PLAIN), @"
    tools
      belljar typescript    p50   63.4 µs  p95   0.21 ms  n = 2000

    savings
      belljar filesystem   20,000,000 → 135 bytes   5,000,000 →  34 tokens  99.999 % saved in 812.5 ms
    ");
}

#[test]
fn k1_the_worst_of_a_hundred_is_told_where_there_are_a_hundred() {
    let row = |count| {
        let times: Times = (1..=count).map(Duration::from_millis).collect();
        BenchRow::timed("workflow checkpoint", "belljar", "1.0", &times)
    };
    assert_eq!((row(99).p99_ms, row(100).p99_ms), (None, Some(99.0)));
    insta::assert_snapshot!(table(&[row(100)], Painter::PLAIN), @"
    workflow checkpoint
      belljar    p50   50.0 ms  p95   95.0 ms  p99   99.0 ms          20 /s  n = 100
    ");
}

#[test]
fn k1_what_became_more_than_ten_percent_worse_is_marked() {
    let mut before = rows();
    for row in &mut before {
        row.p50_ms = row.p50_ms.map(|time| if row.case == "deno cold" { time } else { time / 1.2 });
    }
    let mut now = rows();
    compare::mark(&mut now, &EarlierRun::Printed(before), 10.0);
    let regressed: Vec<(&str, bool)> =
        now.iter().filter_map(|row| Some((row.case.as_str(), row.change?.regressed))).collect();
    let expected = [
        ("belljar typescript", true),
        ("deno cold", false),
        ("deno warm", true),
        ("belljar", false),
        ("deno warm", false),
    ];
    assert_eq!(regressed, expected);
    now.truncate(1);
    insta::assert_snapshot!(table(&now, Painter::PLAIN), @r"
    start
      belljar typescript    p50   0.40 ms  p95   0.90 ms        2500 /s  n = 500
      belljar typescript: 37.25 × deno cold, 2.37 × deno warm
      ! belljar typescript: 20.0 % worse than before (0.333)
    ");
}
