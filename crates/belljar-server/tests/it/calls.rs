//! Tools are listed, called, followed and cancelled in both revisions.

use std::time::Duration;

use belljar_contract::{Access, Language};
use belljar_server::{Gateway, NameError, ServerOptions};
use rmcp::ServerHandler as _;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    fake::{FakeBackend, passed, report},
    lines::{ERAS, Era, LineClient, eventually},
};

#[tokio::test]
async fn e1_both_revisions_list_the_tools() {
    for era in ERAS {
        let mut client = LineClient::new(era, json!({})).await;
        let answer = client.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let workflows = ["run_workflow", "workflow_command", "get_workflow"];
        let four = ["execute_code", "search_tools", "get_run", "sandbox"];
        assert_eq!(names, [&four[..], &workflows[..]].concat(), "{era:?}");
        for tool in tools {
            for part in ["title", "description", "inputSchema", "outputSchema", "annotations"] {
                assert!(tool.get(part).is_some(), "{era:?} {part} of {tool}");
            }
        }
    }
}

#[tokio::test]
async fn e1_the_server_says_who_it_is() {
    let mut client = LineClient::new(Era::Stateless, json!({})).await;
    let answer = client.ask("server/discover", json!({})).await;
    let result = &answer["result"];
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "belljar", "{answer}");
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let versions = result["supportedVersions"].as_array().unwrap();
    for version in ["2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{versions:?}");
    }
}

#[tokio::test]
async fn e2_a_result_is_structured_and_repeated_as_text() {
    for era in ERAS {
        let mut client = LineClient::new(era, json!({})).await;
        let result = client.run(r#"return {"n": 42}"#).await;
        assert_eq!(result["isError"], false);
        let structured = &result["structuredContent"];
        assert_eq!(structured["status"], "completed", "{result}");
        assert_eq!(structured["result"], json!({"n": 42}));
        assert!(structured["run_id"].as_str().unwrap().starts_with("run_"));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), *structured);
        let failed = client.run("fail").await;
        assert_eq!(failed["isError"], true);
        assert_eq!(failed["structuredContent"]["error"]["code"], "runtime.thrown");
        assert_eq!(failed["structuredContent"]["logs"], "before");
    }
}

#[tokio::test]
async fn e2_arguments_reach_the_backend_or_are_refused_by_name() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let config = json!({"timeout_ms": 5, "allowNetwork": ["example.com"]});
    let arguments = json!({"code": "return 1", "language": "python", "sandbox_config": config});
    assert_eq!(client.call("execute_code", arguments).await["isError"], false);
    let request = client.fake.requests.lock().unwrap().pop().unwrap();
    assert_eq!(request.language, Some(Language::Python));
    assert_eq!(request.limits.timeout_ms, Some(5));
    assert_eq!(request.grants.net, Access::Only(vec!["example.com".into()]));
    for (tool, arguments, message) in [
        ("execute_code", json!({"cod": "1"}), "unknown field `cod` (did you mean `code`?)"),
        ("search_tools", json!({"intend": "x"}), "unknown field `intend` (did you mean `intent`?)"),
        ("get_run", json!({"run": "x"}), "unknown field `run` (did you mean `run_id`?)"),
    ] {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["error"]["message"], message, "{tool}");
    }
    assert!(client.fake.requests.lock().unwrap().is_empty());
    let unknown = client.ask("tools/call", json!({"name": "nope", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn tools_are_searched() {
    let mut client = LineClient::new(Era::Stateless, json!({})).await;
    let found = client.call("search_tools", json!({"intent": "read a file", "k": 3})).await;
    let tool = &found["structuredContent"]["tools"][0];
    assert_eq!(tool["name"], "files__read");
    assert_eq!(tool["description"], "read a file (3)");
    assert_eq!(found["structuredContent"].get("missing"), None);
    let missed = client.call("search_tools", json!({"intent": "miss"})).await;
    let missing = json!([{"server": "gone", "reason": "it hangs"}]);
    assert_eq!(missed["structuredContent"]["missing"], missing);
    let failed = client.call("search_tools", json!({"intent": "fail"})).await;
    assert_eq!(failed["isError"], true);
}

#[tokio::test]
async fn progress_goes_to_who_asked_for_it() {
    for era in ERAS {
        let mut client = LineClient::new(era, json!({})).await;
        let arguments = json!({"code": "lines 4"});
        let params = json!({"name": "execute_code", "arguments": arguments, "_meta": {"progressToken": "p1"}});
        let id = client.send("tools/call", params).await;
        let mut last = 0.0;
        loop {
            let message = client.next().await;
            if message["id"] == id {
                assert_eq!(message["result"]["structuredContent"]["result"], "said");
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            assert_eq!(message["params"]["progressToken"], "p1");
            assert!(message["params"]["message"].as_str().unwrap().starts_with("line "));
            let progress = message["params"]["progress"].as_f64().unwrap();
            assert!(progress > last);
            last = progress;
        }
        assert!(last > 0.0, "{era:?}: no progress");
        // Control: nobody who did not ask is told.
        let id = client
            .send("tools/call", json!({"name": "execute_code", "arguments": arguments}))
            .await;
        assert_eq!(client.next().await["id"], id);
    }
}

#[tokio::test]
async fn a_cancelled_request_ends_its_run() {
    for era in ERAS {
        let mut client = LineClient::new(era, json!({})).await;
        let id = client
            .send("tools/call", json!({"name": "execute_code", "arguments": {"code": "sleep"}}))
            .await;
        timeout(Duration::from_secs(10), client.fake.asleep.notified()).await.unwrap();
        let params = json!({"requestId": id, "reason": "enough"});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        client.write(cancel).await;
        timeout(Duration::from_secs(10), client.fake.dropped.notified()).await.unwrap();
        assert_eq!(client.run("return 1").await["isError"], false);
    }
}

#[tokio::test]
async fn a_stopped_server_ends_its_runs() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    client
        .send("tools/call", json!({"name": "execute_code", "arguments": {"code": "sleep"}}))
        .await;
    client.fake.asleep.notified().await;
    client.stop.cancel();
    timeout(Duration::from_secs(10), client.fake.dropped.notified()).await.unwrap();
    timeout(Duration::from_secs(10), &mut client.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_long_run_is_answered_with_its_id_and_looked_at_later() {
    let options =
        ServerOptions { answer_within: Duration::from_millis(50), ..ServerOptions::default() };
    let mut client =
        LineClient::with(FakeBackend::default(), Era::Stateless, json!({}), options).await;
    let result = client.run("lines 20").await;
    assert_eq!(result["structuredContent"]["status"], "running", "{result}");
    assert_eq!(result["isError"], false);
    let run = result["structuredContent"]["run_id"].clone();
    let mut status = json!("running");
    for _ in 0..100 {
        let result = client.call("get_run", json!({"run_id": run, "wait_ms": 1000})).await;
        status = result["structuredContent"]["status"].clone();
        if status != "running" {
            assert_eq!(result["structuredContent"]["result"], "said");
            break;
        }
    }
    assert_eq!(status, "completed");
}

#[tokio::test]
async fn runs_of_others_and_runs_of_nobody() {
    let fake = FakeBackend::default();
    let report = report(&json!({"id": "run_x", "status": "completed", "result": 7}));
    fake.stored.lock().unwrap().insert("run_x".into(), report);
    let mut client =
        LineClient::with(fake, Era::Handshake, json!({}), ServerOptions::default()).await;
    let result = client.call("get_run", json!({"run_id": "run_x"})).await;
    assert_eq!(result["structuredContent"]["result"], 7);
    let result = client.call("get_run", json!({"run_id": "run_y"})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["error"]["message"], "no run has the id run_y");
}

#[tokio::test]
async fn a_backend_that_falls_over_fails_the_run_only() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let result = client.run("panic").await;
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["status"], "failed");
    assert_eq!(client.run("return 1").await["isError"], false);
}

#[tokio::test]
async fn chosen_upstream_tools_are_passed_through() {
    let fake = FakeBackend { passed: vec![passed("files__read")], ..FakeBackend::default() };
    let mut client =
        LineClient::with(fake, Era::Stateless, json!({}), ServerOptions::default()).await;
    let answer = client.ask("tools/list", json!({})).await;
    let tool = &answer["result"]["tools"][7];
    assert_eq!(tool["name"], "files__read");
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    let result = client.call("files__read", json!({"path": "/a"})).await;
    assert_eq!(result["structuredContent"], json!({"n": 1}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("files__read") && text.contains("/a"), "{text}");
}

#[tokio::test]
async fn s16_tools_without_a_name_of_their_own_are_left_out() {
    for (names, fault) in [
        (vec!["a__b", "a__b", "good__one"], NameError::Taken { name: "a__b".into() }),
        (vec!["execute_code", "good__one"], NameError::Taken { name: "execute_code".into() }),
        (vec!["a.b", "good__one"], NameError::Shape { name: "a.b".into() }),
    ] {
        let passed = names.into_iter().map(passed).collect();
        let fake = FakeBackend { passed, ..FakeBackend::default() };
        let gateway = Gateway::new(fake.into(), ServerOptions::default());
        assert_eq!(gateway.left_out(), [fault]);
        assert!(gateway.get_tool("good__one").is_some());
        assert_eq!(gateway.get_tool("a.b"), None);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_running() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    client
        .send("tools/call", json!({"name": "execute_code", "arguments": {"code": "sleep"}}))
        .await;
    client.fake.asleep.notified().await;
    let (fake, server) =
        (client.fake.clone(), std::mem::replace(&mut client.server, tokio::spawn(async {})));
    drop(client);
    timeout(Duration::from_secs(20), fake.dropped.notified()).await.unwrap();
    eventually(|| server.is_finished()).await;
}

#[tokio::test]
async fn lines_of_many_megabytes_pass_both_ways() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let text = "x".repeat(20 << 20);
    let result = client.run(&format!("return \"{text}\"")).await;
    assert_eq!(result["structuredContent"]["result"].as_str().map(str::len), Some(text.len()));
}
