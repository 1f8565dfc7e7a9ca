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
