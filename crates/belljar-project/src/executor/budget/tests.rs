//! E5: the summary of a large value fits the budget and describes the value.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};
use serde_json::{Value, json, value::to_raw_value};

use super::fit;

fn result(value: &Value) -> RunResult {
    let blank =
        RunResult::not_run("run_1", RunStatus::Failed, RunError::new(ErrorCode::RunAborted, ""));
    let result = to_raw_value(value).expect("JSON");
    RunResult { status: RunStatus::Completed, success: true, error: None, result, ..blank }
}

fn fitted(value: &Value, tokens: u32) -> (Value, bool) {
    let mut result = result(value);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(fit(&mut result, tokens, None));
    let value = serde_json::from_str(result.result.get()).expect("JSON");
    (value, result.truncated.result)
}

#[test]
fn e5_a_value_within_the_budget_stays_as_it_is() {
    let small = json!({ "rows": [1, 2, 3] });
    assert_eq!(fitted(&small, 1000), (small, false));
}

#[test]
fn e5_a_large_value_becomes_a_summary_that_fits() {
    let rows: Vec<Value> = (0..5000)
        .map(|n| json!({ "id": n, "name": format!("row {n}"), "text": "x".repeat(500) }))
        .collect();
    let (summary, is_cut) = fitted(&rows.into(), 500);
    assert!(is_cut);
    assert_eq!((&summary["type"], &summary["count"]), (&json!("array"), &json!(5000)));
    assert_eq!(summary["preview"][0]["id"], json!(0));
    assert_eq!(summary["schema"]["items"]["properties"]["id"]["type"], json!("integer"));
    assert!(summary.to_string().len() < 2000 * 2, "{}", summary.to_string().len());
}

#[test]
fn e5_deep_wide_and_textual_values_are_cut_too() {
    let wide: Value =
        (0..9999).map(|n| (format!("key{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    for value in [wide, json!("é".repeat(100_000)), json!([[["x".repeat(100_000)]]])] {
        let (summary, is_cut) = fitted(&value, 100);
        assert!(is_cut);
        assert!(summary.to_string().len() < 2048, "{summary}");
    }
}
