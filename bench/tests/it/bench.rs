//! K1: benchmarks run, name what is missing, and compare with an earlier run.

use belljar_testing::sandboxed;
use serde_json::json;

use crate::command::{BENCH, Outcome, Place};

/// Benchmarks without any peer of `scripts/peers`, and with this path.
fn bench(place: &Place, path: Option<&str>, arguments: &[&str]) -> Outcome {
    let mut command = place.command(BENCH);
    command.args(arguments).args(["--json", "--peers", "none"]);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let outcome = crate::command::outcome(command.output().unwrap());
    assert_eq!(outcome.status, Some(0), "{outcome:#?}");
    outcome
}

fn cases(outcome: &Outcome) -> Vec<String> {
    let rows = outcome.json();
    let cases = rows.as_array().unwrap().iter().filter_map(|row| row["case"].as_str());
    cases.map(str::to_owned).collect()
}

#[sandboxed]
#[test]
fn k1_rows_have_the_stable_shape_and_missing_peers_are_named() {
    let place = Place::new();
    let outcome = bench(&place, Some("/nonexistent"), &["start", "--n", "5"]);
    insta::assert_snapshot!(outcome.stderr, @"missing: deno, node, bun (install with scripts/peers)");
    let rows = outcome.json();
    let first = &rows[0];
    assert_eq!(
        (&first["bench"], &first["case"], &first["n"], &first["ratio"]),
        (&json!("start"), &json!("belljar typescript"), &json!(5), &json!({}))
    );
    assert!(first["p50_ms"].is_number() && first["p95_ms"].is_number());
    assert!(first["rate_per_s"].is_number());
    assert_eq!(
        cases(&outcome),
        ["belljar typescript", "belljar typescript, back to back", "belljar one-shot"]
    );
}

#[sandboxed]
#[test]
fn k1_programs_are_measured_against_themselves_outside() {
    let place = Place::new();
    let outcome = bench(&place, None, &["python", "bash", "workspace", "--n", "3"]);
    let cases = cases(&outcome);
    for case in [
        "belljar python",
        "belljar python, back to back",
        "python3 -c",
        "belljar bash",
        "belljar bash, back to back",
        "bash -c",
        "belljar workspace",
        "cp -a and diff -r",
    ] {
        assert!(cases.iter().any(|found| found == case), "{case} is not in {cases:?}");
    }
    let rows = outcome.json();
    assert!(rows[0]["ratio"]["python3 -c"].is_number(), "{}", rows[0]);
}

#[sandboxed]
#[test]
fn k1_requests_through_the_proxy_are_timed_beside_direct_ones() {
    let place = Place::new();
    let outcome = bench(&place, None, &["network", "--n", "5"]);
    let cases = cases(&outcome);
    for case in ["belljar, tunnel", "belljar, TLS ended", "direct"] {
        assert!(cases.iter().any(|found| found == case), "{case} is not in {cases:?}");
    }
}

#[sandboxed]
#[test]
fn k1_calls_of_tools_are_timed_and_the_project_is_left_as_it_was() {
    let place = Place::new();
    let outcome = bench(&place, None, &["tools", "--n", "3"]);
    let rows = outcome.json();
    let named = |bench: &str, case: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["bench"] == bench && row["case"] == case).cloned()
    };
    let plain = named("tools", "belljar typescript").unwrap();
    let durable = named("tools, durable", "belljar typescript").unwrap();
    assert_eq!((&plain["n"], &durable["n"]), (&json!(12), &json!(4)));
    assert!(plain["p50_ms"].is_number() && durable["p50_ms"].is_number());
    // A call has no peer, but its writes to disk have.
    assert_eq!(plain["ratio"], json!({}));
    assert!(durable["ratio"]["2 × write and fsync"].is_number(), "{durable}");
    assert!(named("tool result of 10 MB", "belljar typescript").is_some(), "{rows}");
    assert_eq!(std::fs::read_dir(place.path().join("work")).unwrap().count(), 0);
}

#[sandboxed]
#[test]
fn k1_workflows_are_timed_and_killed_ones_resume() {
    let place = Place::new();
    let outcome = bench(&place, None, &["workflows", "--n", "1"]);
    let rows = outcome.json();
    let rows: Vec<(&str, &str)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["bench"].as_str().unwrap(), row["case"].as_str().unwrap()))
        .collect();
    let resume = "workflow resume, process start until a task runs again";
    for expected in [
        ("workflow checkpoint", "belljar"),
        ("workflow checkpoint", "write and fsync"),
        ("workflow checkpoint, with a state of 1 MB", "belljar"),
        ("workflow of five tasks", "belljar, on top of its tools"),
        ("workflow of five tasks", "belljar, whole"),
        ("workflow of 1,000 tasks, 8 at once, for each of them", "belljar foreach"),
        ("workflow of 1,000 tasks, 64 at once, for each of them", "belljar tasks of their own"),
        (resume, "belljar, its tool is called"),
        (resume, "belljar, the workflow is taken up"),
    ] {
        assert!(rows.contains(&expected), "{expected:?} is not in {rows:?}");
    }
    assert_eq!(std::fs::read_dir(place.path().join("work")).unwrap().count(), 0);
}

/// Benchmarks that need no Python are measured without it.
#[test]
fn k1_without_python_workflows_with_tools_are_reported_as_left_out() {
    let place = Place::new();
    let outcome = bench(&place, Some("/nonexistent"), &["workflows", "--n", "1"]);
    insta::assert_snapshot!(outcome.stderr, @"missing: python3 (install with scripts/peers)");
    let cases = cases(&outcome);
    assert!(cases.iter().any(|case| case == "belljar foreach"), "{cases:?}");
    assert!(!cases.iter().any(|case| case == "belljar, whole"), "{cases:?}");
}

#[sandboxed]
#[test]
fn k1_without_its_servers_savings_are_reported_as_left_out() {
    let outcome = bench(&Place::new(), None, &["savings"]);
    assert_eq!(outcome.json(), json!([]));
    insta::assert_snapshot!(outcome.stderr, @"
    left out: belljar filesystem, log of 20 MB: its MCP server is not installed; install it with scripts/servers
    left out: belljar sqlite, 200,000 rows: its MCP server is not installed; install it with scripts/servers
    left out: belljar git, 20,000 commits: its MCP server is not installed; install it with scripts/servers
    ");
}

/// A benchmark that cannot be measured is reported, and is not a failure.
#[sandboxed]
#[test]
fn k1_without_python_its_benchmarks_are_reported_as_missing() {
    let outcome = bench(&Place::new(), Some("/nonexistent"), &["python", "pandas", "--n", "1"]);
    insta::assert_snapshot!(outcome.stderr, @"missing: python3 (install with scripts/peers)");
    assert_eq!(outcome.json(), json!([]));
}

#[sandboxed]
#[test]
fn k1_an_earlier_run_is_compared_with() {
    let place = Place::new();
    let mut row = json!({
        "bench": "memory", "case": "belljar host, pool of 4", "n": 4,
        "p50_ms": null, "p95_ms": null, "rate_per_s": null,
        "memory": {"total_mb": 0.1, "private_each_mb": 0.0001, "exact": true}
    });
    place.file("work/before.json", json!([row]).to_string());
    let arguments = ["memory", "--compare", "before.json"];
    let compare = |more: &[&str]| {
        let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
        let mut command = place.command(BENCH);
        command.args(arguments).args(["--json", "--peers", "none"]);
        crate::command::outcome(command.env("PATH", "/nonexistent").output().unwrap())
    };
    let outcome = compare(&[]);
    assert_eq!(outcome.json()[0]["change"]["regressed"], true, "{outcome:#?}");
    // CI sees that it failed, and why.
    assert_eq!(outcome.status, Some(1), "{outcome:#?}");
    assert!(outcome.stderr.contains("more than 10 % worse than before:"), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("memory: belljar host, pool of 4: 0.0001 before"),
        "{outcome:#?}"
    );
    // Compared with a far worse figure, the run passes even with no tolerance.
    row["memory"]["private_each_mb"] = json!(1000.0);
    place.file("work/before.json", json!([row]).to_string());
    let better = compare(&["--tolerance", "0"]);
    assert_eq!((better.status, better.stderr.contains("worse")), (Some(0), false), "{better:#?}");
}

/// K1: figures are kept with machine and versions, and compared with later.
#[sandboxed]
#[test]
fn k1_figures_are_recorded_with_machine_and_versions() {
    let place = Place::new();
    place.file("work/benchmarks/.keep", "");
    let outcome = bench(&place, None, &["memory", "--record", "benchmarks"]);
    let name = format!("benchmarks/{}.json", env!("CARGO_PKG_VERSION"));
    assert!(outcome.stderr.contains(&format!("recorded in {name}")), "{outcome:#?}");
    let text = std::fs::read_to_string(place.path().join("work").join(&name)).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["belljar"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record["rows"][0]["case"], outcome.json()[0]["case"]);
    let machine = &record["machine"];
    for key in ["processor", "kernel", "architecture"] {
        assert!(machine[key].as_str().is_some_and(|text| !text.is_empty()), "{machine}");
    }
    assert!(machine["cores"].as_u64() > Some(0) && machine["memory_mib"].as_u64() > Some(0));
    // A record is never overwritten, and can be compared with.
    let again = place.bench(&["memory", "--record", &name, "--peers", "none"]);
    assert_eq!(again.status, Some(2), "{again:#?}");
    let compared = bench(&place, None, &["memory", "--compare", &name, "--tolerance", "10000"]);
    assert!(compared.json()[0]["change"]["before"].is_number(), "{compared:#?}");
    let other = place.bench(&["start", "--n", "1", "--compare", &name, "--peers", "none"]);
    assert_eq!(other.status, Some(2), "{other:#?}");
    assert!(other.stderr.contains("nothing to compare"), "{other:#?}");
}

#[test]
fn k1_a_file_of_another_kind_is_refused() {
    let place = Place::new();
    place.file("work/before.json", "{}");
    let outcome = place.bench(&["memory", "--compare", "before.json"]);
    assert_eq!(outcome.status, Some(2));
    insta::assert_snapshot!(outcome.stderr, @"error: before.json is not a file written by `belljar-bench --json` or `--record`");
}
