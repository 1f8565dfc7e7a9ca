//! K1: benchmarks run, name what is missing, and compare with an earlier run.

use serde_json::json;

use crate::command::{Place, no_sandbox};

#[test]
fn k1_rows_have_the_stable_shape_and_missing_peers_are_named() {
    if no_sandbox() {
        return;
    }
    let place = Place::new();
    let arguments = ["bench", "start", "--n", "5", "--json", "--peers", "none"];
    let mut command = place.command(crate::command::BELLJAR);
    let output = command.args(arguments).env("PATH", "/nonexistent").output().unwrap();
    let outcome = crate::command::outcome(output);
    assert_eq!(outcome.status, Some(0), "{outcome:#?}");
    insta::assert_snapshot!(outcome.stderr, @"missing: deno, node, bun (to install what can be installed: scripts/peers)");
    let rows = outcome.json();
    let first = &rows[0];
    assert_eq!(
        (&first["bench"], &first["case"], &first["n"], &first["ratio"]),
        (&json!("start"), &json!("belljar typescript"), &json!(5), &json!({}))
    );
    assert!(first["p50_ms"].is_number() && first["p95_ms"].is_number());
    assert!(first["rate_per_s"].is_number());
    let cases: Vec<&str> =
        rows.as_array().unwrap().iter().filter_map(|row| row["case"].as_str()).collect();
    assert_eq!(
        cases,
        ["belljar typescript", "belljar typescript, back to back", "belljar one-shot"]
    );
}

#[test]
fn k1_an_earlier_run_is_compared_with() {
    if no_sandbox() {
        return;
    }
    let place = Place::new();
    let row = json!({
        "bench": "memory", "case": "belljar host, pool of 4", "n": 4,
        "p50_ms": null, "p95_ms": null, "rate_per_s": null,
        "memory": {"total_mb": 0.1, "private_each_mb": 0.0001, "exact": true}
    });
    place.file("work/before.json", json!([row]).to_string());
    let arguments = ["bench", "memory", "--json", "--compare", "before.json", "--peers", "none"];
    let mut command = place.command(crate::command::BELLJAR);
    let output = command.args(arguments).env("PATH", "/nonexistent").output().unwrap();
    let outcome = crate::command::outcome(output);
    assert_eq!(outcome.json()[0]["change"]["regressed"], true, "{outcome:#?}");
}

#[test]
fn k1_a_file_that_is_no_benchmark_is_told() {
    let place = Place::new();
    place.file("work/before.json", "{}");
    let outcome = place.belljar(&["bench", "memory", "--compare", "before.json"]);
    assert_eq!(outcome.status, Some(2));
    insta::assert_snapshot!(outcome.stderr, @"error: before.json is not the output of `belljar bench --json`: invalid type: map, expected a sequence at line 1 column 0");
}
