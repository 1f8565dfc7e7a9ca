//! Only a clear yes approves, and the question cannot be dressed up.

use belljar_contract::{ConsentRule, ConsentScope};
use serde_json::{Map, json};

use super::*;

fn answer(value: serde_json::Value) -> Option<Verdict> {
    verdict(&serde_json::from_value(value).unwrap(), QuestionExtent::Whole)
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

/// A plain approval does not repeat a call that may have happened (reliability 3).
#[test]
fn reliability_3_a_doubt_is_asked_about_with_its_three_answers() {
    let said = |answer: &str, result: Option<&str>| {
        let content = json!({"answer": answer, "result": result});
        let answer = json!({"action": "accept", "content": content});
        verdict(&serde_json::from_value(answer).unwrap(), QuestionExtent::Whole)
    };
    assert_eq!(said("retry", None), Some(Verdict::Retry));
    assert_eq!(said("deny", None), Some(Verdict::Deny));
    assert_eq!(said("use", Some("{\"id\": 1}")), Some(Verdict::Use(r#"{"id":1}"#.to_owned())));
    assert_eq!(said("use", Some("null")), Some(Verdict::Use("null".to_owned())));
    for (answer, result) in [("use", None), ("use", Some("{")), ("yes", None), ("approve", None)] {
        assert_eq!(said(answer, result), None, "{answer}");
    }
    let doubt = |arguments| ApprovalRequest { kind: ApprovalKind::InDoubt, ..request(arguments) };
    let shown = |request| serde_json::to_value(form(&request).params).unwrap();
    // A call that is shown in part can only be refused, as ever.
    let cut = shown(doubt(json!({ "text": "x".repeat(10_000) })));
    assert!(cut["requestedSchema"]["properties"]["deny"].is_object(), "{cut}");
    let shown = shown(doubt(json!({})));
    assert!(shown["message"].as_str().unwrap().contains("may have happened"), "{shown}");
    let properties = &shown["requestedSchema"]["properties"];
    assert!(properties["answer"].to_string().contains("retry"), "{shown}");
    assert_eq!((&properties["approve"], properties["result"].is_object()), (&json!(null), true));
}

fn request(arguments: serde_json::Value) -> ApprovalRequest {
    ApprovalRequest {
        id: "ap_1".into(),
        kind: ApprovalKind::Call,
        message: ApprovalKind::Call.message(),
        tool: "files__delete".into(),
        arguments,
        run_id: "run_1".into(),
        line: Some(3),
        code_line: Some("  await mcp.files.delete({path})".into()),
        expires_ms: None,
        scopes: Vec::new(),
        project: None,
        state_dir: None,
        command: "belljar approvals approve ap_1".into(),
    }
}

#[test]
fn d7_the_question_shows_tool_arguments_run_and_line() {
    let request = request(json!({"path": "/a\u{202e}b\u{1b}[2J"}));
    assert_eq!(
        question(&request).0,
        "Allow the call of files__delete?\nArguments: {\n  \"path\": \"/a\\u{202e}b\\u001b[2J\"\n}\n\
         Run: run_1\nCode, line 3: await mcp.files.delete({path})"
    );
    // Nothing is there that is not seen: soft hyphens, fillers, variants, tags.
    for hidden in ['\u{ad}', '\u{3164}', '\u{fe0f}', '\u{e0041}'] {
        let arguments = json!({ "path": format!("/tmp/{hidden}x") });
        let (shown, _) = question(&ApprovalRequest { arguments, ..request.clone() });
        assert!(!shown.contains(hidden), "{hidden:?}");
    }
}

/// The names of the fields a form has.
fn fields(form: &QuestionForm) -> Vec<String> {
    let params = serde_json::to_value(&form.params).unwrap();
    params["requestedSchema"]["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn s9_a_call_that_is_shown_in_part_cannot_be_approved() {
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let yes: ElicitResult = serde_json::from_value(yes).unwrap();
    let hidden = json!({"a": "x".repeat(4_100), "path": "/home/op/.ssh/id_rsa"});
    let asked = form(&request(hidden));
    assert_eq!((asked.extent, fields(&asked)), (QuestionExtent::InPart, vec!["deny".to_owned()]));
    let (text, _) = question(&request(json!({"a": "x".repeat(4_100), "path": "/etc/id_rsa"})));
    // Every key is there, and every short value.
    assert!(text.contains("\"path\": \"/etc/id_rsa\""), "{text}");
    assert!(text.contains("… 4020 characters more …"), "{text}");
    assert!(text.contains("`belljar approvals show ap_1`"), "{text}");
    assert_eq!(verdict(&yes, asked.extent), None);
    let no = json!({"action": "accept", "content": {"deny": true}});
    assert_eq!(verdict(&serde_json::from_value(no).unwrap(), asked.extent), Some(Verdict::Deny));
    let left = json!({"action": "accept", "content": {"deny": false}});
    assert_eq!(verdict(&serde_json::from_value(left).unwrap(), asked.extent), None);
    // Control: arguments that are shown whole can be approved.
    let asked = form(&request(json!({"a": "x".repeat(3_900), "path": "/etc/id_rsa"})));
    assert_eq!((asked.extent, fields(&asked)), (QuestionExtent::Whole, vec!["approve".to_owned()]));
    assert_eq!(verdict(&yes, asked.extent), Some(Verdict::Approve));
}

#[test]
fn s9_keys_values_and_lists_beyond_all_measure_are_counted() {
    let many: serde_json::Map<_, _> =
        (0..2_000).map(|n| (format!("key_{n:04}"), json!(vec!["y"; 100]))).collect();
    let (text, extent) = question(&request(many.into()));
    assert_eq!(extent, QuestionExtent::InPart);
    assert!(text.contains("… and 95 more") && text.contains(" bytes more"), "{text}");
    assert!(text.chars().count() < MAX_SHOWN_CHARS + 500);
    let asked = yes_or_no(&"é".repeat(5_000), "`belljar workflow show w`");
    assert_eq!((asked.extent, fields(&asked)), (QuestionExtent::InPart, vec!["deny".to_owned()]));
    assert_eq!(yes_or_no("go on?", "").extent, QuestionExtent::Whole);
}

#[test]
fn s20_names_and_lines_begin_no_line_of_their_own() {
    let mut request = request(json!({}));
    request.tool = "s__t?\nArguments: {}\u{2028}".into();
    request.code_line = Some("f()\nRun: run_2".into());
    let (text, _) = question(&request);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.starts_with("Allow the call of s__t?\\nArguments: {}\\u{2028}?\n"), "{text}");
}

/// D7: each choice spells out what it approves, and nothing that is not a choice approves.
#[test]
fn d7_a_wider_yes_is_a_choice_that_says_what_it_covers() {
    let request = |id: &str, tool: &str| ApprovalRequest {
        id: id.into(),
        tool: tool.into(),
        scopes: vec![ConsentScope::Once, ConsentScope::Run, ConsentScope::Always],
        ..request(json!({"path": "/a"}))
    };
    let one = request("ap_1", "files__delete");
    let shown = serde_json::to_value(form(&one).params).unwrap();
    let decision = &shown["requestedSchema"]["properties"]["decision"];
    assert!(
        decision.to_string().contains("files__delete with any arguments in this run"),
        "{shown}"
    );
    let choose = |choice: serde_json::Value| answer(json!({"action": "accept", "content": choice}));
    let wider = |scope| Some(Verdict::ApproveRule(ConsentRule { scope, when: Map::new() }));
    assert_eq!(choose(json!({"decision": "once"})), Some(Verdict::Approve));
    assert_eq!(choose(json!({"decision": "run"})), wider(ConsentScope::Run));
    assert_eq!(choose(json!({"decision": "always"})), wider(ConsentScope::Always));
    assert_eq!(choose(json!({"decision": "deny"})), Some(Verdict::Deny));
    for unclear in [
        json!({"decision": "ever"}),
        json!({"decision": true}),
        json!({"decision": "run", "approve": false}),
        json!({"decision": "deny", "approve": true}),
        json!({"decision": "run", "answer": "deny"}),
    ] {
        assert_eq!(choose(unclear.clone()), None, "{unclear}");
    }
    // A call that was shown in part can only be refused, whatever the answer says.
    let always = json!({"action": "accept", "content": {"decision": "always"}});
    let always: ElicitResult = serde_json::from_value(always).unwrap();
    assert_eq!(verdict(&always, QuestionExtent::InPart), None);
}

/// D7: calls that wait at once are one question; a rule is offered only if it is about one tool.
#[test]
fn d7_calls_that_wait_together_are_shown_together() {
    let request = |id: &str, tool: &str, arguments| ApprovalRequest {
        id: id.into(),
        tool: tool.into(),
        scopes: vec![ConsentScope::Once, ConsentScope::Run],
        ..request(arguments)
    };
    let choices = |form: &QuestionForm| {
        let shown = serde_json::to_value(&form.params).unwrap();
        shown["requestedSchema"]["properties"]["decision"].to_string()
    };
    let (a, b) =
        (request("ap_1", "f__a", json!({"n": 1})), request("ap_2", "f__a", json!({"n": 2})));
    let (ids, form) = next_form(&[&a, &b]).unwrap();
    assert_eq!(ids, ["ap_1".into(), "ap_2".into()] as [ApprovalId; 2]);
    let text = serde_json::to_string(&form.params).unwrap();
    assert!(text.contains("2 calls wait") && choices(&form).contains("in this run"), "{text}");
    let other = request("ap_3", "f__b", json!({}));
    let (ids, form) = next_form(&[&a, &other]).unwrap();
    assert_eq!((ids.len(), choices(&form).contains("in this run")), (2, false));
    // Calls that do not fit are asked about one by one, and only one that was shown whole can be approved.
    let large = request("ap_4", "f__a", json!({"text": "x".repeat(9_000)}));
    let (ids, form) = next_form(&[&a, &large]).unwrap();
    assert_eq!((ids.len(), form.extent), (1, QuestionExtent::Whole));
    let (ids, form) = next_form(&[&large, &a]).unwrap();
    assert_eq!((ids.len(), form.extent), (1, QuestionExtent::InPart));
    assert!(next_form(&[]).is_none());
}
