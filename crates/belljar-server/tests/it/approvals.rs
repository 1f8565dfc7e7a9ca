//! A person decides, at the client where it can ask, in a terminal otherwise; a model never does.

use std::time::Duration;

use belljar_contract::{ApprovalKind, Verdict};
use belljar_server::{ApprovalRequest, RunReport, ServerOptions};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    fake::{FakeBackend, passed, report},
    lines::{ERAS, Era, LineClient},
};

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn call(code: &str) -> Value {
    json!({"name": "execute_code", "arguments": {"code": code}})
}

/// Answers the next question of the server.
async fn reply(client: &mut LineClient, answer: Value) -> Value {
    let question = client.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    client.write(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    question
}

#[tokio::test]
async fn d7_elicitation_shows_the_call_and_takes_a_yes() {
    let mut client = LineClient::new(Era::Handshake, forms()).await;
    let id = client.send("tools/call", call("ask")).await;
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let question = reply(&mut client, yes).await;
    let message = question["params"]["message"].as_str().unwrap();
    for part in ["files__delete", "\"/tmp/1\"", "run_0", "line 1", "mcp.files.delete"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["approve"]["type"], "boolean", "{schema}");
    assert_eq!(schema["properties"]["approve"]["default"], false);
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "deleted", "{answer}");
    let decided = client.fake.decided.lock().unwrap().clone();
    assert_eq!(decided, [("ap_1".into(), Verdict::Approve, "tester 1".into())]);
}

#[tokio::test]
async fn d7_a_no_ends_as_a_permission_error() {
    for no in
        [json!({"action": "decline"}), json!({"action": "accept", "content": {"approve": false}})]
    {
        let mut client = LineClient::new(Era::Handshake, forms()).await;
        let id = client.send("tools/call", call("ask")).await;
        reply(&mut client, no).await;
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(answer["result"]["structuredContent"]["error"]["type"], "PermissionError");
    }
}

#[tokio::test]
async fn d7_calls_that_wait_together_are_one_question() {
    for (answer, result) in [(true, json!("deleted twice")), (false, json!(null))] {
        let mut client = LineClient::new(Era::Handshake, forms()).await;
        let id = client.send("tools/call", call("ask twice")).await;
        let said = json!({"action": "accept", "content": {"approve": answer}});
        let question = reply(&mut client, said).await;
        let message = question["params"]["message"].as_str().unwrap();
        for part in ["2 calls wait", "\"/tmp/1\"", "\"/tmp/2\"", "Project: /srv/project"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        let ended = client.answer(id).await;
        assert_eq!(ended["result"]["structuredContent"]["result"], result, "{ended}");
        assert_eq!(client.fake.decided.lock().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn d7_a_wider_yes_is_chosen_by_the_person() {
    for (choice, result) in [("run", "run"), ("always", "always"), ("once", "once")] {
        let mut client = LineClient::new(Era::Handshake, forms()).await;
        let id = client.send("tools/call", call("ask wider")).await;
        let said = json!({"action": "accept", "content": {"decision": choice}});
        let question = reply(&mut client, said).await;
        let schema = &question["params"]["requestedSchema"]["properties"]["decision"];
        assert!(schema.to_string().contains("files__delete with any arguments in this run"));
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["structuredContent"]["result"], result, "{answer}");
    }
    // The plain yes of older clients still approves the one call.
    let mut client = LineClient::new(Era::Handshake, forms()).await;
    let id = client.send("tools/call", call("ask wider")).await;
    reply(&mut client, json!({"action": "accept", "content": {"approve": true}})).await;
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "once", "{answer}");
}

/// D7: nothing that a model sends widens a yes.
#[tokio::test]
async fn d7_a_model_cannot_choose_how_long_a_yes_lasts() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    for more in [
        json!({"for": "always"}),
        json!({"decision": "always"}),
        json!({"sandbox_config": {"for": "run"}}),
        json!({"sandbox_config": {"approve": true}}),
    ] {
        let mut arguments = json!({"code": "ask"});
        let more = more.as_object().unwrap().clone();
        arguments.as_object_mut().unwrap().extend(more);
        let refused = client.call("execute_code", arguments).await;
        assert_eq!(refused["structuredContent"]["error"]["code"], "request.invalid", "{refused}");
    }
    let waits = client.run("ask").await;
    let run = waits["structuredContent"]["run_id"].clone();
    for (field, value) in [("decision", "always"), ("for", "always"), ("scope", "run")] {
        let refused = client.call("get_run", json!({"run_id": run, field: value})).await;
        assert_eq!(refused["isError"], true, "{refused}");
    }
    assert!(client.fake.decided.lock().unwrap().is_empty());
}

/// The next question of a run is told as soon as it is there, not when the time to wait is over.
#[tokio::test]
async fn d7_get_run_answers_with_the_next_question_at_once() {
    use belljar_server::Backend as _;
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let waits = client.run("ask again").await;
    let run = waits["structuredContent"]["run_id"].clone();
    assert_eq!(waits["structuredContent"]["approval"]["id"], "ap_1");
    let look = json!({"name": "get_run", "arguments": {"run_id": run, "wait_ms": 3_600_000}});
    let id = client.send("tools/call", look.clone()).await;
    client.fake.decide(&"ap_1".into(), Verdict::Approve, "a terminal").await.unwrap();
    // Without the question this would take an hour.
    let next = timeout(Duration::from_secs(60), client.answer(id)).await.unwrap();
    assert_eq!(next["result"]["structuredContent"]["approval"]["id"], "ap_2", "{next}");
    let id = client.send("tools/call", look).await;
    client.fake.decide(&"ap_2".into(), Verdict::Approve, "a terminal").await.unwrap();
    let ended = timeout(Duration::from_secs(60), client.answer(id)).await.unwrap();
    assert_eq!(ended["result"]["structuredContent"]["result"], "deleted two", "{ended}");
}

#[tokio::test]
async fn a_question_that_is_closed_stays_open_for_the_terminal() {
    let mut client = LineClient::new(Era::Handshake, forms()).await;
    let id = client.send("tools/call", call("ask")).await;
    reply(&mut client, json!({"action": "cancel"})).await;
    let answer = client.answer(id).await;
    let structured = &answer["result"]["structuredContent"];
    assert_eq!(structured["status"], "approval_required", "{answer}");
    assert!(client.fake.decided.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_question_answered_elsewhere_is_withdrawn() {
    use belljar_server::Backend as _;
    let mut client = LineClient::new(Era::Handshake, forms()).await;
    let id = client.send("tools/call", call("ask")).await;
    assert_eq!(client.next().await["method"], "elicitation/create");
    client.fake.decide(&"ap_1".into(), Verdict::Approve, "a terminal").await.unwrap();
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "deleted", "{answer}");
}

#[tokio::test]
async fn clients_that_cannot_ask_are_answered_at_once_and_look_later() {
    use belljar_server::Backend as _;
    for era in ERAS {
        let mut client = LineClient::new(era, json!({})).await;
        let answer = timeout(Duration::from_secs(5), client.run("ask")).await.unwrap();
        assert_eq!(answer["isError"], false);
        let structured = &answer["structuredContent"];
        assert_eq!(structured["status"], "approval_required", "{answer}");
        assert_eq!(structured["approval"]["id"], "ap_1");
        assert_eq!(structured["approval"]["tool"], "files__delete");
        assert_eq!(structured["approval"]["arguments"], json!({"path": "/tmp/1"}));
        let message = structured["message"].as_str().unwrap();
        let command = "`belljar approvals approve ap_1 --project /srv/project`";
        assert!(
            message.contains(command) && message.contains("(project /srv/project)"),
            "{message}"
        );
        let run = structured["run_id"].clone();
        // Nothing a model can send approves.
        for arguments in [
            json!({"run_id": run, "approve": true}),
            json!({"run_id": run, "inputResponses": {"ap_1": {"action": "accept"}}}),
        ] {
            assert_eq!(client.call("get_run", arguments).await["isError"], true);
        }
        let looked = client.call("get_run", json!({"run_id": run, "wait_ms": 50})).await;
        assert_eq!(looked["structuredContent"]["status"], "approval_required");
        assert!(client.fake.decided.lock().unwrap().is_empty());
        client.fake.decide(&"ap_1".into(), Verdict::Approve, "a terminal").await.unwrap();
        let looked = client.call("get_run", json!({"run_id": run})).await;
        assert_eq!(looked["structuredContent"]["result"], "deleted", "{era:?} {looked}");
    }
}

/// Sends the request again with what the server wants to have back.
async fn retry(client: &mut LineClient, mut params: Value, wanted: &Value, answer: Value) -> Value {
    let keys = wanted["result"]["inputRequests"].as_object().unwrap().keys();
    params["inputResponses"] = keys.map(|key| (key.clone(), answer.clone())).collect();
    params["requestState"] = wanted["result"]["requestState"].clone();
    client.ask("tools/call", params).await
}

#[tokio::test]
async fn d7_stateless_clients_are_asked_by_an_answer() {
    let mut client = LineClient::new(Era::Stateless, forms()).await;
    let wanted = client.ask("tools/call", call("ask twice")).await;
    assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let mut answer = retry(&mut client, call("ask twice"), &wanted, yes.clone()).await;
    if answer["result"]["resultType"] == "input_required" {
        answer = retry(&mut client, call("ask twice"), &answer, yes).await;
    }
    assert_eq!(answer["result"]["structuredContent"]["result"], "deleted twice", "{answer}");
    assert_eq!(client.fake.requests.lock().unwrap().len(), 1, "the code ran once");
    let denied = client.ask("tools/call", call("ask")).await;
    let question = &denied["result"]["inputRequests"]["ap_4"];
    assert_eq!(question["method"], "elicitation/create", "{denied}");
    let answer = retry(&mut client, call("ask"), &denied, json!({"action": "decline"})).await;
    assert_eq!(answer["result"]["structuredContent"]["error"]["type"], "PermissionError");
}

#[tokio::test]
async fn a_state_is_good_for_its_own_request_only() {
    let mut client = LineClient::new(Era::Stateless, forms()).await;
    let wanted = client.ask("tools/call", call("ask")).await;
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let other = retry(&mut client, call("return 1"), &wanted, yes.clone()).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let mut forged = wanted.clone();
    let state = forged["result"]["requestState"].as_str().unwrap().to_owned();
    forged["result"]["requestState"] = json!(format!("{state}0"));
    let answer = retry(&mut client, call("ask"), &forged, yes.clone()).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(client.fake.decided.lock().unwrap().is_empty());
    let answer = retry(&mut client, call("ask"), &wanted, yes).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "deleted", "{answer}");
}

#[tokio::test]
async fn a_stateless_question_that_is_closed_ends_as_approval_required() {
    let mut client = LineClient::new(Era::Stateless, forms()).await;
    let wanted = client.ask("tools/call", call("ask")).await;
    let answer = retry(&mut client, call("ask"), &wanted, json!({"action": "cancel"})).await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "approval_required", "{answer}");
}

/// A backend as it is after a restart: the run waits, in another process or in none.
fn restarted() -> FakeBackend {
    let fake = FakeBackend::default();
    let approval = ApprovalRequest {
        id: "ap_9".into(),
        kind: ApprovalKind::Call,
        message: ApprovalKind::Call.message(),
        tool: "files__delete".into(),
        arguments: json!({}),
        run_id: "run_stored".into(),
        line: None,
        code_line: None,
        expires_ms: None,
        scopes: Vec::new(),
        project: None,
        state_dir: None,
        command: "belljar approvals approve ap_9".to_owned(),
    };
    let report = RunReport { waiting: vec![approval], ..report(&json!({"id": "run_stored"})) };
    fake.stored.lock().unwrap().insert("run_stored".into(), report);
    fake
}

#[tokio::test]
async fn a_run_that_waits_since_before_a_restart_is_asked_about_when_looked_at() {
    let arguments = json!({"run_id": "run_stored", "wait_ms": 50});
    let look = json!({"name": "get_run", "arguments": arguments});
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let options = ServerOptions { secret: Some(b"kept".to_vec()), ..ServerOptions::default() };

    let mut client = LineClient::with(restarted(), Era::Handshake, forms(), options.clone()).await;
    let id = client.send("tools/call", look.clone()).await;
    reply(&mut client, yes.clone()).await;
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "resumed", "{answer}");

    let mut client = LineClient::with(restarted(), Era::Stateless, forms(), options.clone()).await;
    let wanted = client.ask("tools/call", look.clone()).await;
    // The server is restarted once more before the person answers.
    let mut client = LineClient::with(restarted(), Era::Stateless, forms(), options).await;
    let answer = retry(&mut client, look.clone(), &wanted, yes).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "resumed", "{answer}");

    let mut client =
        LineClient::with(restarted(), Era::Stateless, json!({}), ServerOptions::default()).await;
    let answer = client.ask("tools/call", look).await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "approval_required", "{answer}");
}

#[tokio::test]
async fn passed_tools_are_asked_about_too() {
    let fake = || FakeBackend { passed: vec![passed("files__delete")], ..FakeBackend::default() };
    let params = json!({"name": "files__delete", "arguments": {"path": "/a"}});
    let mut client =
        LineClient::with(fake(), Era::Handshake, forms(), ServerOptions::default()).await;
    let id = client.send("tools/call", params.clone()).await;
    reply(&mut client, json!({"action": "accept", "content": {"approve": true}})).await;
    assert_eq!(client.answer(id).await["result"]["structuredContent"], json!({"n": 1}));
    // Its own output schema is not broken by an answer that only says who has to decide.
    let mut client =
        LineClient::with(fake(), Era::Handshake, json!({}), ServerOptions::default()).await;
    let answer = client.ask("tools/call", params).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"].get("structuredContent").is_none());
}

#[tokio::test]
async fn cancelling_a_retried_request_ends_the_run() {
    let mut client = LineClient::new(Era::Stateless, forms()).await;
    let mut params = call("ask then sleep");
    let wanted = client.ask("tools/call", params.clone()).await;
    params["requestState"] = wanted["result"]["requestState"].clone();
    // Neither yes nor no: the question is put again.
    let again = client.ask("tools/call", params.clone()).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let yes = json!({"action": "accept", "content": {"approve": true}});
    params["inputResponses"] = json!({"ap_1": yes});
    let id = client.send("tools/call", params).await;
    timeout(Duration::from_secs(10), client.fake.asleep.notified()).await.unwrap();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id}});
    client.write(cancel).await;
    timeout(Duration::from_secs(10), client.fake.dropped.notified()).await.unwrap();
}
