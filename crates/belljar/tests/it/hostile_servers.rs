//! Servers that hang, flood or lie, behind `belljar serve`: what clients and operators see of them.

use std::{
    fs,
    time::{Duration, Instant},
};

use belljar_testing::sandboxed;
use serde_json::{Map, Value, json};

use crate::mcp_support::{Project, installed};

/// A project with hostile servers of these kinds, by name, beside the counting one; all calls allowed.
fn project(servers: &[(&str, &str)]) -> Project {
    let project = Project::new(&["counting"], "allow = ['*']");
    let script =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../belljar-tools/tests/upstreams/servers/hostile.py");
    let python = installed("servers", "python/bin/python3");
    let written = fs::read_to_string(project.path(".mcp.json")).expect("it was written");
    let mut all: Map<String, Value> = serde_json::from_str(&written).expect("it is JSON");
    for (name, kind) in servers {
        all["mcpServers"][*name] = json!({ "command": python, "args": [script, kind] });
    }
    project.file(".mcp.json", Value::Object(all).to_string());
    project
}

#[sandboxed]
#[test]
fn reliability_12_a_server_that_hangs_keeps_nobody_longer_than_they_said() {
    let project = project(&[("start", "hangs_at_start"), ("list", "hangs_in_list")]);
    let serving = project.serve(&[]);
    for server in ["start", "list"] {
        let began = Instant::now();
        let code = format!("return await mcp.{server}.work({{}})");
        let limits = json!({ "tool_timeout_ms": 1500, "timeout_ms": 30_000 });
        let ran = serving.ask("POST /v1/runs", &json!({ "code": code, "limits": limits }));
        assert_eq!(ran["error"]["code"], "tool.timeout", "{ran:#}");
        let message = ran["error"]["message"].as_str().expect("it has one");
        assert!(message.contains("within 1500 ms"), "{message}");
        let hint = ran["error"]["hint"].as_str().expect("it has one");
        assert!(hint.contains("`tool_timeout_ms` in `sandbox_config`"), "{hint}");
        assert!(!hint.contains("--"), "{hint}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
    let began = Instant::now();
    let found = serving.ask("POST /v1/tools/search", &json!({ "intent": "add two numbers" }));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(found["tools"][0]["name"], "counting__add", "{found:#}");
    // bug 17
    assert_eq!(found["tools"][0]["description"], "Add two numbers.", "{found:#}");
    let missing = found["missing"].as_array().expect("some are missing");
    let names: Vec<&str> = missing.iter().filter_map(|one| one["server"].as_str()).collect();
    assert_eq!(names, ["list", "start"], "{found:#}");
    let told = serving.call("search_tools", &json!({ "intent": "add two numbers" }));
    assert_eq!(told["structuredContent"]["missing"], found["missing"]);
}

#[sandboxed]
#[test]
fn reliability_12_a_server_that_hangs_fails_its_own_task_and_holds_no_workflow() {
    let project = project(&[("start", "hangs_at_start"), ("list", "hangs_in_list")]);
    let serving = project.serve(&[]);
    let began = Instant::now();
    let tasks = json!([
        {"id": "well", "tool": "counting__add", "arguments": {"a": 1, "b": 2}},
        {"id": "hangs", "tool": "start:work", "timeout_ms": 2000, "on_error": "continue"},
        {"id": "too", "tool": "list__work", "timeout_ms": 2000, "on_error": "continue"},
        {"id": "more", "tool": "list__more", "timeout_ms": 2000, "on_error": "continue"},
    ]);
    let taken =
        serving.ask("POST /v1/workflows", &json!({"workflow": {"tasks": tasks}, "id": "w"}));
    assert_eq!(taken["id"], "w", "{taken:#}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(25), "the answer took {took:?}");
    let state = serving.ask("GET /v1/workflows/w?wait_ms=60000", &Value::Null);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let task = |id: &str| {
        let all = state["tasks"].as_array().expect("it has tasks");
        all.iter().find(|task| task["task"] == id).cloned().unwrap_or_default()
    };
    assert_eq!(task("well")["status"], "completed", "{state:#}");
    for id in ["hangs", "too", "more"] {
        assert_eq!(task(id)["status"], "continued", "{state:#}");
        assert_eq!(task(id)["failure"]["code"], "timeout", "{state:#}");
    }
}

#[sandboxed]
#[test]
fn reliability_9_what_a_server_says_without_end_is_not_logged_without_end() {
    for kind in ["floods_log_messages", "floods_notifications", "floods_sampling"] {
        let project = project(&[("flood", kind)]);
        let serving = project.serve(&["--log", "text"]);
        let ran = serving.execute("return await mcp.flood.work({})");
        assert_eq!(ran["error"]["code"], "tool.in_doubt", "{kind}: {ran:#}");
        let logged = fs::metadata(project.path("../serve.log")).expect("there is a log").len();
        assert!(logged < 500_000, "{kind}: {logged} bytes");
        // The others are as they were.
        let ran = serving.execute("return await mcp.counting.add({ a: 1, b: 2 })");
        assert_eq!(ran["result"], json!({ "sum": 3 }), "{kind}: {ran:#}");
    }
}

#[sandboxed]
#[test]
fn s16_one_bad_name_leaves_out_one_tool_and_is_forgotten_with_it() {
    let kind = tempfile::NamedTempFile::new().expect("there is room for a file");
    fs::write(kind.path(), "bad_names").expect("it is ours");
    let project = project(&[("odd", &format!("@{}", kind.path().display()))]);
    let serving = project.serve(&["--pass-through", "odd__*"]);
    assert_eq!(serving.call("odd__work", &json!({}))["content"][0]["text"], "done");
    serving.stop();
    let log = || fs::read_to_string(project.path("../serve.log")).expect("there is a log");
    assert!(log().contains("warning: tool `odd__run!` cannot be passed through"), "{}", log());
    // The remembered list of the server still has the name; the server has not.
    fs::write(kind.path(), "behaves").expect("it is ours");
    let serving = project.serve(&["--pass-through", "odd__*"]);
    assert_eq!(serving.call("odd__work", &json!({}))["content"][0]["text"], "done");
    assert!(!log().contains("cannot be passed through"), "{}", log());
}
