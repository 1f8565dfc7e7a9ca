//! Answers say what there is to say, twice, and nothing else.

use super::*;

fn answered(value: Value) -> (Value, Option<bool>) {
    let answer = run(&RunReport::ended(value));
    let shown = answer.structured_content.unwrap();
    let text = answer.content.first().and_then(|block| block.as_text()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text.text).unwrap(), shown);
    (shown, answer.is_error)
}

#[test]
fn e2_the_canonical_result_without_what_is_empty() {
    let metrics = json!({"executionTimeMs": 1.2, "toolCalls": 2});
    let (shown, failed) = answered(json!({
        "id": "run_1", "status": "completed", "success": true, "result": null, "stdout": "hi\n",
        "stderr": "", "logs": ["hi"], "exit_code": 0, "error": null, "metrics": metrics,
        "isolation": {"tier": "full"}, "truncated": {"stdout": false, "result": false},
        "artifacts": [], "changes": [], "tools": {"discovered": [], "injected": []},
        "cached": false, "session_id": null, "state": {"n": 1}, "lossy": false,
    }));
    let wanted = json!({
        "status": "completed", "run_id": "run_1", "result": null, "logs": ["hi"],
        "metrics": metrics, "state": {"n": 1},
    });
    assert_eq!((shown, failed), (wanted, Some(false)));
}

#[test]
fn a_failed_run_is_an_error_with_all_its_structure() {
    let (shown, failed) = answered(json!({
        "id": "run_2", "status": "failed", "success": false, "result": null, "logs": [],
        "stdout": "partial", "metrics": {}, "truncated": {"stdout": true},
        "error": {"type": "ToolError", "code": "tool.failed", "message": "no", "line": 3, "stack": null},
    }));
    let wanted = json!({
        "status": "failed", "run_id": "run_2", "result": null, "logs": [], "metrics": {},
        "stdout": "partial", "truncated": {"stdout": true},
        "error": {"type": "ToolError", "code": "tool.failed", "message": "no", "line": 3},
    });
    assert_eq!((shown, failed), (wanted, Some(true)));
}

#[test]
fn e5_a_huge_answer_is_sent_once() {
    let report = RunReport::ended(json!({
        "id": "run_3", "status": "completed", "result": "x".repeat(MAX_TEXT_BYTES),
    }));
    let answer = run(&report);
    let text = &answer.content.first().and_then(|block| block.as_text()).unwrap().text;
    assert!(text.len() < 200, "{text}");
    let shown = answer.structured_content.unwrap();
    assert_eq!(shown["result"].as_str().unwrap().len(), MAX_TEXT_BYTES);
}

/// A value is unfolded for a model only if a model could read it.
#[test]
fn s10_a_large_value_is_not_unfolded() {
    let report = |value: String| {
        let text = format!("{{\"id\":\"run_1\",\"status\":\"completed\",\"result\":{value}}}");
        RunReport::from_json(&text).expect("JSON")
    };
    let large = format!("[{}[]]", "[],".repeat(1 << 20));
    let answer = run(&report(large.clone())).structured_content.expect("structured");
    assert_eq!(answer["result"]["bytes"], json!(large.len()));
    // Control: a small one is, and a long text, which is one part whatever is in it.
    let long = "[,\\\"".repeat(1 << 20);
    let answer = run(&report(format!("\"{long}\""))).structured_content.expect("structured");
    assert_eq!(answer["result"].as_str().map(str::len), Some(3 << 20));
    let answer = run(&report("[[],7]".to_owned())).structured_content.expect("structured");
    assert_eq!(answer["result"], json!([[], 7]));
}

/// What is passed on is what came, whatever it is.
#[test]
fn s10_a_report_keeps_the_text_of_its_value() {
    let text = "{\"id\":\"run_1\",\"logs\":[\"a\"],\"result\":{\"b\": 1.50,\"a\":[ ]}}";
    let report = RunReport::from_json(text).expect("JSON");
    assert_eq!(report.value, json!({"id": "run_1", "logs": ["a"]}));
    assert_eq!(report.to_json(), text.as_bytes());
    let again = RunReport::ended(json!({"id": "run_1", "logs": ["a"], "result": 7}));
    assert_eq!(again.to_json(), b"{\"id\":\"run_1\",\"logs\":[\"a\"],\"result\":7}");
    assert!(RunReport::from_json("7").is_err());
}
