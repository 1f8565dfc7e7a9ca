//! Requests are understood wholly or refused with the field's name.

use belljar_contract::Access;
use serde_json::json;

use super::*;

fn decode(arguments: Value) -> Result<ExecuteRequest, String> {
    let Value::Object(arguments) = arguments else { panic!("not an object") };
    decode_execute(arguments).map_err(|error| error.to_string())
}

#[test]
fn every_field_in_both_spellings() {
    let wanted = ExecuteRequest {
        code: "1".into(),
        language: Some(Language::Python),
        engine: Some(EngineName::CPython),
        intent: Some("sum".into()),
        context: Some(JsonText::from(&json!({"a": 1}))),
        limits: LimitsRequest {
            timeout_ms: Some(500),
            memory_mb: Some(64),
            ..LimitsRequest::default()
        },
        grants: GrantsRequest {
            read: Access::Only(vec!["/data".into()]),
            net: Access::None,
            write: Access::Only(vec!["/out".into()]),
            tools: Some(vec!["git__log".into()]),
            ..GrantsRequest::default()
        },
        session_id: Some("s1".into()),
        max_output_tokens: Some(500),
        durable: Some(true),
        ..ExecuteRequest::default()
    };
    let camel = json!({
        "code": "1", "language": "python", "engine": "cpython", "intent": "sum", "tools": ["git__log"],
        "context": {"a": 1}, "sessionId": "s1", "maxOutputTokens": 500.0, "durable": true,
        "sandboxConfig": {"timeoutMs": 500, "heapLimitMB": 64, "allowedReadPaths": ["/data"],
            "allowNetwork": false, "allowWrite": ["/out"]},
    });
    let snake = json!({
        "code": "1", "language": "py", "engine": "cpython", "intent": "sum", "tools": ["git__log"],
        "context": {"a": 1}, "session_id": "s1", "max_output_tokens": 500, "durable": true,
        "sandbox_config": {"timeout_ms": 500, "heap_limit_mb": 64,
            "allowed_read_paths": ["/data"], "allow_network": false, "allow_write": ["/out"]},
    });
    assert_eq!(decode(camel), Ok(wanted.clone()));
    assert_eq!(decode(snake), Ok(wanted));
}

/// E2: a model can state every limit and ask for every grant of the tables, by all of their names.
#[test]
fn e2_the_sandbox_config_takes_every_limit_and_grant() {
    let decode = |config: Value| decode(json!({"code": "1", "sandbox_config": config}));
    for limit in Limit::ALL {
        for name in limit.names().into_iter().flat_map(|name| [name.to_owned(), camel_case(name)]) {
            let request = decode(json!({ &name: 7 })).expect(&name);
            assert_eq!(request.limits.stated(), [(*limit, 7)], "{name}");
        }
    }
    for grant in Grant::OF_CLIENTS {
        let takes = |json: &Value| GrantsRequest::default().set(*grant, json).is_ok();
        let examples = [json!(["a"]), json!({"A": "b"}), json!("a"), json!(true)];
        let asked = examples.into_iter().find(takes).expect("a value");
        for name in grant.names().into_iter().flat_map(|name| [name.to_owned(), camel_case(name)]) {
            let request = decode(json!({ &name: &asked })).expect(&name);
            let grants: Vec<_> = request.grants.asked().into_iter().map(|(it, _)| it).collect();
            assert_eq!(grants, [*grant], "{name}");
        }
    }
    let all = decode(json!({"read": true, "env": {"A": "b"}, "tools": ["x__y"]})).expect("grants");
    assert_eq!((all.grants.read, all.grants.tools), (Access::All, Some(vec!["x__y".into()])));
    assert_eq!(all.grants.env.value("A"), Some("b"));
    for (workspace, commit) in [(json!("/a"), false), (json!({"path": "/a", "commit": true}), true)]
    {
        let asked = decode(json!({"workspace": workspace})).expect("a workspace").workspace;
        let path = "/a".to_owned();
        assert_eq!(asked, Some(WorkspaceRequest { path, commit, commit_executable: Vec::new() }));
    }
    for (config, message) in [
        (
            json!({"memory_mb": 1, "heapLimitMB": 2}),
            "`sandbox_config.heapLimitMB` is given twice, in two spellings",
        ),
        (
            json!({"memoryMb": "1 GiB"}),
            "`sandbox_config.memoryMb` must be a whole number from 0, not \"1 GiB\"",
        ),
        (
            json!({"env": [1]}),
            "`sandbox_config.env` must be an object of strings, or a list of names, not a list",
        ),
        (
            json!({"workspace": {"path": "/a", "force": true}}),
            "`sandbox_config.workspace` must be the path of a directory, or an object with path, commit, \
             commit_executable, not an object",
        ),
        (
            json!({"command": ["rm"]}),
            "unknown field `sandbox_config.command` (did you mean `commands`?)",
        ),
        // Only the user at the command line can grant this.
        (json!({"permissive": true}), "unknown field `sandbox_config.permissive`"),
    ] {
        assert_eq!(decode(config), Err(message.to_owned()));
    }
}

#[test]
fn null_is_absent_and_code_is_not_optional() {
    let request = decode(json!({"code": "1", "language": null, "sandbox_config": null}));
    assert_eq!(request, Ok(ExecuteRequest { code: "1".into(), ..ExecuteRequest::default() }));
    assert_eq!(decode(json!({})), Err("`code` is missing".into()));
}

#[test]
fn a12_an_unknown_engine_is_refused_with_the_list() {
    let refused = decode(json!({"code": "1", "engine": "perl"})).unwrap_err();
    let there = EngineName::names();
    assert_eq!(refused, format!("`engine`: there is no engine \"perl\"; engines: {there}"));
    let refused = decode(json!({"code": "1", "engine": 7})).unwrap_err();
    assert_eq!(refused, "`engine` must be a string, not 7");
}

#[test]
fn what_is_not_known_is_named_with_the_nearest_right_name() {
    for (arguments, message) in [
        (
            json!({"code": "1", "langage": "ts"}),
            "unknown field `langage` (did you mean `language`?)",
        ),
        (json!({"code": "1", "approve": true}), "unknown field `approve`"),
        (
            json!({"code": "1", "sandbox_config": {"timeout": 5}}),
            "unknown field `sandbox_config.timeout` (did you mean `timeoutMs`?)",
        ),
        (
            json!({"code": "1", "x": 1, "tool": []}),
            "unknown field `tool` (did you mean `tools`?); unknown field `x`",
        ),
        (json!({"code": 1}), "`code` must be a string, not 1"),
        (
            json!({"code": "1", "language": "ruby"}),
            "`language` must be typescript, javascript, python or bash, not \"ruby\"",
        ),
        (
            json!({"code": "1", "sandbox_config": {"timeoutMs": -1}}),
            "`sandbox_config.timeoutMs` must be a whole number from 0, not -1",
        ),
        (
            json!({"code": "1", "sandbox_config": {"allowNetwork": "yes"}}),
            "`sandbox_config.allowNetwork` must be true, false or a list of strings, not \"yes\"",
        ),
        (
            json!({"code": "1", "session_id": "a", "sessionId": "b"}),
            "`session_id` is given twice, in two spellings",
        ),
    ] {
        assert_eq!(decode(arguments), Err(message.to_owned()));
    }
}

/// Models write what a schema calls a string, or nothing at all, as text.
#[test]
fn e2_json_in_a_text_is_read_as_what_it_is() {
    let context =
        |given: Value| decode(json!({"code": "1", "context": given})).expect("decoded").context;
    for (given, wanted) in [
        (json!("{\"rows\":[1]}"), json!({"rows": [1]})),
        (json!(" [1,2]"), json!([1, 2])),
        // Anything else is the text that it is.
        (json!("12"), json!("12")),
        (json!("{broken"), json!("{broken")),
        (json!("{\"a\":1,\"a\":2}"), json!("{\"a\":1,\"a\":2}")),
        (json!({"a": "{}"}), json!({"a": "{}"})),
    ] {
        assert_eq!(context(given), Some(JsonText::from(&wanted)));
    }
    let request = decode(json!({
        "code": "1", "durable": "true", "max_output_tokens": "500", "tools": "[\"a__b\"]",
        "sandbox_config": "{\"timeoutMs\": \"5\", \"allowNetwork\": \"false\"}",
    }));
    let request = request.expect("decoded");
    assert_eq!((request.durable, request.max_output_tokens), (Some(true), Some(500)));
    assert_eq!((request.limits.timeout_ms, request.grants.net), (Some(5), Access::None));
    assert_eq!(request.grants.tools, Some(vec!["a__b".into()]));
    for (odd, message) in [
        (json!({"durable": "yes"}), "`durable` must be true or false, not \"yes\""),
        (
            json!({"max_output_tokens": "-1"}),
            "`max_output_tokens` must be a whole number from 0, not \"-1\"",
        ),
        (json!({"sandbox_config": "{}}"}), "`sandbox_config` must be an object, not \"{}}\""),
    ] {
        let mut arguments = odd;
        arguments["code"] = json!("1");
        assert_eq!(decode(arguments), Err(message.to_owned()));
    }
}

/// A strict schema makes every property required, so a model writes something for those that it leaves out.
#[test]
fn e2_what_a_strict_model_leaves_empty_counts_as_left_out() {
    for nothing in ["", " ", "null"] {
        let request = decode(json!({
            "code": "1", "language": nothing, "engine": nothing, "intent": nothing, "tools": nothing,
            "context": nothing, "network": nothing, "sandbox_config": nothing, "session_id": nothing,
            "max_output_tokens": 0, "durable": nothing,
        }));
        assert_eq!(request, decode(json!({"code": "1"})), "{nothing:?}");
    }
    // Code may be empty, and what has a text keeps it.
    let request = decode(json!({"code": "", "session_id": "nullable"})).expect("decoded");
    assert_eq!((request.code.as_str(), request.session_id), ("", Some("nullable".into())));
}

/// The text of an object keeps what a tree of it would lose.
#[test]
fn a8_a_context_in_a_text_keeps_its_order_and_its_digits() {
    let json = r#"{"total":1,"alpha":18446744073709551617}"#;
    let request = decode(json!({"code": "1", "context": json})).expect("decoded");
    assert_eq!(request.context.as_ref().map(JsonText::as_str), Some(json));
}
