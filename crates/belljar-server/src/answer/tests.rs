//! Answers say what there is to say, twice, and nothing else.

use super::*;

fn report(text: &str) -> RunReport {
    RunReport::ended(serde_json::from_str(text).expect("a result"))
}

fn answered(value: Value) -> (Value, Option<bool>) {
    let answer = run(&report(&value.to_string()));
    let shown = answer.structured_content.unwrap();
    let text = answer.content.first().and_then(|block| block.as_text()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text.text).unwrap(), shown);
    (shown, answer.is_error)
}

#[test]
fn e2_the_canonical_result_without_what_is_empty() {
    let metrics = json!({
        "startupTimeMs": 0.1, "executionTimeMs": 1.2, "cpuTimeMs": 1.0, "memoryUsedMB": 4.5, "toolCalls": 2,
    });
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
        "status": "failed", "run_id": "run_2", "result": null, "logs": [],
        "metrics": json!(belljar_contract::Metrics::default()),
        "stdout": "partial",
        "truncated": {"stdout": true, "stderr": false, "logs": false, "result": false, "state": false},
        "error": {"type": "ToolError", "code": "tool.failed", "message": "no", "line": 3},
    });
    assert_eq!((shown, failed), (wanted, Some(true)));
}

#[test]
fn e5_a_huge_answer_is_sent_once() {
    let result = json!({
        "id": "run_3", "status": "completed", "success": true,
        "result": "x".repeat(MAX_TEXT_BYTES),
    });
    let answer = run(&report(&result.to_string()));
    let text = &answer.content.first().and_then(|block| block.as_text()).unwrap().text;
    assert!(text.len() < 200, "{text}");
    let shown = answer.structured_content.unwrap();
    assert_eq!(shown["result"].as_str().unwrap().len(), MAX_TEXT_BYTES);
}

/// A value is unfolded for a model only if a model could read it.
#[test]
fn s10_a_large_value_is_not_unfolded() {
    let with_value = |value: String| {
        report(&format!("{{\"id\":\"run_1\",\"status\":\"completed\",\"result\":{value}}}"))
    };
    let large = format!("[{}[]]", "[],".repeat(1 << 20));
    let answer = run(&with_value(large.clone())).structured_content.expect("structured");
    assert_eq!(answer["result"]["bytes"], json!(large.len()));
    // Control: a small one is, and a long text, which is one part whatever is in it.
    let long = "[,\\\"".repeat(1 << 20);
    let answer = run(&with_value(format!("\"{long}\""))).structured_content.expect("structured");
    assert_eq!(answer["result"].as_str().map(str::len), Some(3 << 20));
    let answer = run(&with_value("[[],7]".to_owned())).structured_content.expect("structured");
    assert_eq!(answer["result"], json!([[], 7]));
}

/// What is passed on is what came, whatever it is.
#[test]
fn s10_a_report_keeps_the_text_of_its_value() {
    let value = "{\"b\": 1.50,\"a\":[ ],\"n\":12345678901234567890}";
    let text = format!("{{\"id\":\"run_1\",\"logs\":[\"a\"],\"result\":{value}}}");
    let sent = String::from_utf8(report(&text).to_json()).expect("text");
    assert!(sent.contains(&format!("\"result\":{value}")), "{sent}");
    assert!(sent.starts_with("{\"id\":\"run_1\",") && !sent.contains("approvals"), "{sent}");
}
