//! Only a clear yes approves, and the question cannot be dressed up.

use serde_json::json;

use super::*;

fn answer(value: serde_json::Value) -> Option<Verdict> {
    verdict(&serde_json::from_value(value).unwrap())
}

#[test]
fn d7_only_an_explicit_yes_approves() {
    let yes = json!({"action": "accept", "content": {"approve": true}});
    assert_eq!(answer(yes), Some(Verdict::Approve));
    for no in
        [json!({"action": "accept", "content": {"approve": false}}), json!({"action": "decline"})]
    {
        assert_eq!(answer(no), Some(Verdict::Deny));
    }
    for open in [
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"approve": "true"}}),
        json!({"action": "accept", "content": {"Approve": true}}),
    ] {
        assert_eq!(answer(open), None);
    }
}

#[test]
fn d7_the_question_shows_tool_arguments_run_and_line() {
    let request = ApprovalRequest {
        id: "ap_1".into(),
        tool: "files__delete".into(),
        arguments: json!({"path": "/a\u{202e}b\u{1b}[2J"}),
        run_id: "run_1".into(),
        line: Some(3),
        code_line: Some("  await mcp.files.delete({path})".into()),
        expires_ms: None,
    };
    assert_eq!(
        question(&request),
        "Allow the call of files__delete?\nArguments: {\n  \"path\": \"/a\\u{202e}b\\u001b[2J\"\n}\n\
         Run: run_1\nCode, line 3: await mcp.files.delete({path})"
    );
    // Nothing is there that is not seen: soft hyphens, fillers, variants, tags.
    for hidden in ['\u{ad}', '\u{3164}', '\u{fe0f}', '\u{e0041}'] {
        let arguments = json!({ "path": format!("/tmp/{hidden}x") });
        let shown = question(&ApprovalRequest { arguments, ..request.clone() });
        assert!(!shown.contains(hidden), "{hidden:?}");
    }
    let long = ApprovalRequest { arguments: json!("é".repeat(5_000)), ..request };
    assert!(question(&long).contains("… and 2003 bytes more"), "{}", question(&long));
}
