//! Answers say what there is to say, twice, and nothing else.

use super::*;
use belljar_contract::ApprovalKind;

use crate::backend::ApprovalRequest;

fn report(text: &str) -> RunReport {
    RunReport::ended(serde_json::from_str(text).expect("a result"))
}

/// Structured content as a client gets it.
fn shown(answer: &CallToolResult) -> String {
    let content = serde_json::to_vec(answer.structured_content.as_ref().unwrap()).unwrap();
    String::from_utf8(exact_json::restored(&content).into_owned()).unwrap()
}

fn text(answer: &CallToolResult) -> &str {
    &answer.content.first().and_then(|block| block.as_text()).unwrap().text
}

fn answered(value: Value) -> (Value, Option<bool>) {
    let answer = run(&report(&value.to_string()), StructuredUse::Beside);
    assert_eq!(text(&answer), shown(&answer));
    (serde_json::from_str(text(&answer)).unwrap(), answer.is_error)
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
        "status": "completed", "run_id": "run_1", "result": null, "logs": "hi",
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
        "status": "failed", "run_id": "run_2", "result": null,
        "metrics": json!(belljar_contract::Metrics::default()),
        "stdout": "partial",
        "truncated": {"stdout": true},
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
    let answer = run(&report(&result.to_string()), StructuredUse::Beside);
    assert!(text(&answer).len() < 200, "{}", text(&answer));
    let brief: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(brief["run_id"], "run_3");
    let shown: Value = serde_json::from_str(&shown(&answer)).unwrap();
    assert_eq!(shown["result"].as_str().unwrap().len(), MAX_TEXT_BYTES);
}

/// A value stays text on its way through: as a tree it would take many times its size, sort its keys and
/// round its integers.
#[test]
fn a8_a_value_is_answered_as_it_was_written() {
    let value = r#"{"total":1,"alpha":18446744073709551616,"s":"é\"\n","f":1.50}"#;
    let report = report(&format!(r#"{{"id":"run_1","status":"completed","result":{value}}}"#));
    let answer = run(&report, StructuredUse::Beside);
    let start = format!(r#"{{"status":"completed","run_id":"run_1","result":{value},"#);
    assert!(text(&answer).starts_with(&start) && shown(&answer).starts_with(&start), "{answer:?}");
}

fn with_files() -> RunReport {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let file = |path: &str, kind: &str, data: &str, bytes: u64| {
        let handle = format!("blob_{path}");
        json!({"path": path, "mediaType": kind, "bytes": bytes, "data": data, "handle": handle})
    };
    let result = json!({
        "id": "run_4", "status": "completed", "success": true,
        "artifacts": [
            file("figure.png", "image/png", png, 70), file("a.csv", "text/csv", "YSxi", 3),
            file("huge.png", "image/png", png, 5 << 20),
        ],
        "unreturned": {"files": [{"path": "chart.png", "bytes": 9}], "more": false},
    });
    report(&result.to_string())
}

#[test]
fn c2_a_picture_is_a_picture_and_other_files_are_links() {
    let answer = run(&with_files(), StructuredUse::Beside);
    let kinds: Vec<_> = answer.content.iter().map(|block| json!(block)["type"].clone()).collect();
    assert_eq!(kinds, ["text", "image", "resource_link", "resource_link"]);
    let link = json!(answer.content.get(2).unwrap());
    assert_eq!(link["uri"], "belljar://blobs/blob_a.csv");
    assert_eq!(
        (&link["name"], &link["mimeType"], &link["size"]),
        (&json!("a.csv"), &json!("text/csv"), &json!(3))
    );
    assert!(!text(&answer).contains("iVBOR") && !shown(&answer).contains("YSxi"), "{answer:?}");
    let said: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(said["artifacts"][0]["pixels"], json!([1, 1]));
    assert_eq!(said["artifacts"][0].get("note"), None);
    assert!(said["artifacts"][2]["note"].as_str().unwrap().starts_with("not shown"), "{said}");
    assert_eq!(said["not_returned"]["files"][0]["path"], "chart.png");
    assert!(said["not_returned"]["hint"].as_str().unwrap().contains("/work/out"));
}

/// Some clients drop content beside structured content, and the picture with it.
#[test]
fn c2_a_client_that_drops_content_gets_a_picture_without_structured_content() {
    let answer = run(&with_files(), StructuredUse::Instead);
    assert_eq!((answer.structured_content.is_none(), answer.content.len()), (true, 4));
    // Control: an answer without a picture is structured for it, too.
    let plain = report(r#"{"id":"run_1","status":"completed","result":7}"#);
    assert!(run(&plain, StructuredUse::Instead).structured_content.is_some());
}

#[test]
fn e5_lists_of_files_and_changes_are_bounded() {
    let file =
        json!({"path": "f", "mediaType": "text/csv", "bytes": 1, "data": "", "handle": "blob_1"});
    let change =
        json!({"path": "p", "kind": "added", "entry": "file", "bytes": 1, "committed": false});
    let result = json!({
        "id": "run_5", "status": "completed", "success": true,
        "artifacts": vec![file; 100], "changes": vec![change; 10_000],
    });
    let (shown, _) = answered(result);
    assert_eq!(shown["artifacts"].as_array().map(Vec::len), Some(8));
    assert!(shown["artifacts_note"].as_str().unwrap().contains("92 more files"));
    assert_eq!(shown["changes"].as_array().map(Vec::len), Some(MAX_CHANGES));
    assert_eq!(shown["more_changes"], 9_980);
}

/// The report passes the text of its value on unchanged.
#[test]
fn s10_a_report_keeps_the_text_of_its_value() {
    let value = "{\"b\": 1.50,\"a\":[ ],\"n\":12345678901234567890}";
    let text = format!("{{\"id\":\"run_1\",\"logs\":[\"a\"],\"result\":{value}}}");
    let sent = String::from_utf8(report(&text).to_json()).expect("text");
    assert!(sent.contains(&format!("\"result\":{value}")), "{sent}");
    assert!(sent.starts_with("{\"id\":\"run_1\",") && !sent.contains("approvals"), "{sent}");
}

fn call_that_waits(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: id.into(),
        kind: ApprovalKind::Call,
        message: ApprovalKind::Call.message(),
        tool: "files__read".into(),
        arguments: json!({}),
        run_id: "run_1".into(),
        line: None,
        code_line: None,
        expires_ms: None,
        scopes: Vec::new(),
        project: Some("/srv/it's".into()),
        state_dir: Some("/var/lib/my state".into()),
        command: String::new(),
    }
}

/// Long arguments, many keys, deep values and many calls stay within what any answer may cost.
#[test]
fn e5_an_answer_about_waiting_calls_is_small() {
    let keys: serde_json::Map<_, _> = (0..5000).map(|n| (format!("key {n}"), json!(n))).collect();
    for arguments in [
        json!({"path": "a.txt", "content": "y".repeat(5_000_000)}),
        json!(keys),
        json!({"rows": vec![vec!["a long text of a row that repeats"; 50]; 500]}),
    ] {
        for count in [1, 3, 300] {
            let call = |n: usize| ApprovalRequest {
                arguments: arguments.clone(),
                code_line: Some("x".repeat(50_000)),
                ..call_that_waits(&format!("apr_{n}"))
            };
            let calls: Vec<_> = (0..count).map(call).collect();
            let answer = waiting(&"run_1".into(), &calls).structured_content.unwrap();
            let tokens = belljar_contract::tokens::estimate(&answer.to_string(), usize::MAX);
            assert!(tokens <= 2000, "{count} calls: {tokens}");
            assert_eq!(answer["approval"]["arguments_shortened"], true, "{answer:#}");
            // The model learns what waits, and how a person decides.
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("belljar approvals approve") || count == 1, "{message}");
            assert_eq!(answer["approvals_left_out"], json!((count == 300).then_some(296)));
        }
    }
    // Control: short ones are whole.
    let call = ApprovalRequest { arguments: json!({"path": "a.txt"}), ..call_that_waits("apr_1") };
    let answer = waiting(&"run_1".into(), &[call]).structured_content.unwrap();
    assert_eq!(answer["approval"]["arguments"], json!({"path": "a.txt"}));
    assert_eq!(answer["approval"].get("arguments_shortened"), None);
}

/// The code of a run can make another call after a person has read the question.
#[test]
fn d7_the_command_for_several_calls_names_the_calls_that_are_shown() {
    let answer = waiting(&"run_1".into(), &[call_that_waits("apr_1"), call_that_waits("apr_2")]);
    assert_eq!(
        answer.structured_content.unwrap()["message"],
        r"A person has to allow these calls (project /srv/it's), in a terminal: `belljar approvals approve apr_1 apr_2 --project '/srv/it'\''s' --state-dir '/var/lib/my state'`. Tell the user, then call get_run."
    );
}
