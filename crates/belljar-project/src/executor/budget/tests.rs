//! E5: the summary of a large value fits the budget and describes the value.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};
use serde_json::{Value, json, value::to_raw_value};

use super::{cost, fit};

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

fn lines(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("line {number}: \"{}\"", number * 7)).collect()
}

fn fitted_result(mut result: RunResult, tokens: u32) -> RunResult {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(fit(&mut result, tokens, None));
    result
}

/// A value, a state and output share the budget; what one does not need the others have.
#[test]
fn e5_all_parts_share_one_budget() {
    let large = json!("word ".repeat(50_000));
    let state = to_raw_value(&json!({ "all": large })).expect("JSON");
    let logs = lines(20_000);
    let stdout = logs.join("\n");
    let all = RunResult { logs, stdout, state, ..result(&large) };
    for tokens in [500, 2_000, 10_000] {
        let fitted = fitted_result(all.clone(), tokens);
        let logged = fitted.logs.join("\n");
        let parts = [fitted.result.get(), fitted.state.get(), &logged];
        let used: usize = parts.iter().map(|part| cost(part, usize::MAX)).sum();
        assert!(used < tokens as usize * 6 / 5, "{used} of {tokens}");
        assert!(fitted.truncated.result && fitted.truncated.state && fitted.truncated.logs);
    }
    // Control: alone, the output has most of the budget.
    let alone = RunResult { logs: lines(20_000), ..result(&Value::Null) };
    let alone = cost(&fitted_result(alone, 2_000).logs.join("\n"), usize::MAX);
    assert!((1_000..2_000).contains(&alone), "{alone}");
}

/// Output that fits is neither cut nor marked, in any form that a result has of it.
#[test]
fn e5_output_within_the_budget_stays_as_it_is() {
    for (printed, complained) in
        [("saved\n", ""), ("{\n  \"a\": 1\n}\n", ""), ("", "rm: no\nrm: no\n"), ("a", "b\n")]
    {
        let logs = format!("{printed}{complained}").lines().map(str::to_owned).collect();
        let (stdout, stderr) = (printed.to_owned(), complained.to_owned());
        let small = RunResult { logs, stdout, stderr, ..result(&Value::Null) };
        let fitted = fitted_result(small.clone(), 2_000);
        assert_eq!(fitted.truncated, small.truncated, "{printed}{complained}");
        assert_eq!(
            (fitted.stdout, fitted.stderr, fitted.logs),
            (small.stdout, small.stderr, small.logs)
        );
    }
}

#[test]
fn e5_output_keeps_its_beginning_and_its_end() {
    let all = RunResult { logs: lines(20_000), ..result(&json!(1)) };
    let fitted = fitted_result(all.clone(), 1_000);
    assert_eq!(fitted.logs.first(), all.logs.first());
    assert_eq!(fitted.logs.last(), all.logs.last());
    let cut = fitted.logs.iter().find(|line| line.starts_with('…')).expect("a mark");
    let kept = fitted.logs.len() - 1;
    assert!(cut.contains(&format!("({} lines, ", 20_000 - kept)), "{cut} {kept}");
    assert_eq!(fitted_result(all.clone(), u32::MAX).logs, all.logs);
}

#[test]
fn e5_an_error_is_bounded_too() {
    let error = RunError {
        stack: Some("at f\n".repeat(9_000)),
        ..RunError::new(ErrorCode::RuntimeThrown, "x".repeat(50_000))
    };
    let failed = RunResult { error: Some(error), ..result(&Value::Null) };
    let error = fitted_result(failed, 2_000).error.expect("an error");
    assert!(error.message.len() < 3_000 && error.stack.is_some_and(|stack| stack.len() < 2_000));
}
