//! E1, F5 over MCP: a model runs workflows and steers them, and decides nothing that is a person's.

use belljar_server::{CommandSender, ServerOptions};
use serde_json::{Value, json};

use crate::{
    fake::FakeBackend,
    lines::{ERAS, Era, LineClient},
};

fn flow(tasks: &[&str]) -> Value {
    let tasks: Vec<_> = tasks.iter().map(|id| json!({"id": id})).collect();
    json!({"workflow": {"tasks": tasks}, "inputs": {"x": 1}})
}

#[tokio::test]
async fn e1_a_workflow_runs_to_its_end() {
    for era in ERAS {
        let mut client = LineClient::new(era, json!({})).await;
        let result = client.call("run_workflow", flow(&["a", "b"])).await;
        let told = &result["structuredContent"];
        assert_eq!((&told["status"], &told["output"]), (&json!("completed"), &json!({"x": 1})));
        assert_eq!(told["tasks"], json!({"completed": 2}), "{told}");
        assert_eq!(result["isError"], false);
        assert!(told.get("commands").is_none(), "{told}");
        let failed = client.call("run_workflow", flow(&["fail"])).await;
        assert_eq!(failed["isError"], true, "{failed}");
        let all = client.call("get_workflow", json!({})).await;
        assert_eq!(all["structuredContent"]["workflows"].as_array().unwrap().len(), 2, "{all}");
        let large = client.call("run_workflow", flow(&["large"])).await;
        assert!(large.to_string().len() < 10_000, "{large}");
        assert_eq!(large["structuredContent"]["output"]["truncated"], true);
    }
}

#[tokio::test]
async fn e1_one_that_takes_long_is_answered_with_its_id_and_what_can_be_done() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let mut arguments = flow(&["sleep"]);
    arguments["wait_ms"] = json!(50);
    arguments["id"] = json!("long");
    let result = client.call("run_workflow", arguments).await;
    let told = &result["structuredContent"];
    assert_eq!((&told["status"], &told["workflow_id"]), (&json!("running"), &json!("long")));
    assert!(told["commands"].as_str().unwrap().contains("abort"), "{told}");
    let events = client.call("get_workflow", json!({"id": "long", "after": 1})).await;
    assert_eq!(events["structuredContent"]["events"][0]["name"], "task_started", "{events}");
    let abort = json!({"id": "long", "command": "abort", "command_id": "c"});
    for _ in 0..2 {
        let result = client.call("workflow_command", abort.clone()).await;
        assert_eq!(result["structuredContent"]["status"], "accepted", "{result}");
    }
    let late = client.call("workflow_command", json!({"id": "long", "command": "pause"})).await;
    assert_eq!(late["structuredContent"]["status"], "refused", "{late}");
    assert_eq!(late["isError"], true);
    let look = client.call("get_workflow", json!({"id": "long"})).await;
    assert_eq!(look["structuredContent"]["status"], "aborted", "{look}");
}

#[tokio::test]
async fn f5_a_model_does_not_decide_for_a_person() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let result = client.call("run_workflow", flow(&["ask"])).await;
    let told = &result["structuredContent"];
    let id = told["workflow_id"].as_str().unwrap().to_owned();
    assert_eq!(told["status"], "running");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains(&format!("belljar workflow command {id} approve d1")), "{message}");
    for command in [json!("approve"), json!({"command": "reject"})] {
        let arguments = json!({"id": id, "command": command, "decision": "d1"});
        let result = client.call("workflow_command", arguments).await;
        assert_eq!(result["structuredContent"]["error"]["code"], "command.not_yours", "{result}");
        assert_eq!(result["isError"], true);
    }
    // Control: what the agent is asked, it decides.
    let result = client.call("run_workflow", flow(&["agent"])).await;
    let id = result["structuredContent"]["workflow_id"].clone();
    let approve = json!({"id": id, "command": "approve", "decision": "d1"});
    let result = client.call("workflow_command", approve).await;
    assert_eq!(result["structuredContent"]["status"], "accepted", "{result}");
}

#[tokio::test]
async fn f5_the_person_is_asked_in_the_client() {
    for (answer, status) in [
        (json!({"action": "accept", "content": {"approve": true}}), "completed"),
        (json!({"action": "decline"}), "failed"),
        (json!({"action": "cancel"}), "running"),
    ] {
        let mut client = LineClient::new(Era::Handshake, json!({"elicitation": {}})).await;
        let call = json!({"name": "run_workflow", "arguments": flow(&["ask"])});
        let id = client.send("tools/call", call).await;
        let question = client.next().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let text = question["params"]["message"].as_str().unwrap();
        assert!(text.contains("go \\u{202e}on?") && text.starts_with("Workflow wf_"), "{text}");
        client.write(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
        let result = client.answer(id).await;
        assert_eq!(result["result"]["structuredContent"]["status"], status, "{result}");
        let all = client.fake.workflows.lock().unwrap();
        let by: Vec<_> = all.values().flat_map(|flow| flow.commands.values()).collect();
        assert!(
            by.iter().all(|(by, _)| *by == CommandSender::Person("tester 1".to_owned())),
            "{by:?}"
        );
        assert_eq!(by.len(), usize::from(status != "running"));
    }
}

#[tokio::test]
async fn f5_the_person_is_asked_by_an_answer_that_wants_the_request_again() {
    let mut client = LineClient::new(Era::Stateless, json!({"elicitation": {"form": {}}})).await;
    let mut call = json!({"name": "run_workflow", "arguments": flow(&["ask"])});
    let first = client.ask("tools/call", call.clone()).await;
    let asked = &first["result"]["inputRequests"]["d1"];
    assert_eq!(asked["method"], "elicitation/create", "{first}");
    call["requestState"] = first["result"]["requestState"].clone();
    call["inputResponses"] = json!({"d1": {"action": "accept", "content": {"approve": true}}});
    let second = client.ask("tools/call", call.clone()).await;
    assert_eq!(second["result"]["structuredContent"]["status"], "completed", "{second}");
    assert_eq!(client.fake.workflows.lock().unwrap().len(), 1);
    // It is good for nothing else.
    call["arguments"] = flow(&["sleep"]);
    let other = client.ask("tools/call", call).await;
    assert!(other.get("error").is_some(), "{other}");
}

#[tokio::test]
async fn e1_progress_is_told() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let params = json!({
        "name": "run_workflow", "arguments": flow(&["a"]), "_meta": {"progressToken": "p"},
    });
    let id = client.send("tools/call", params).await;
    client.answer(id).await;
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert_eq!(told["params"]["message"], "checkpoint saved", "{told}");
}

#[tokio::test]
async fn e1_wrong_arguments_are_told_with_the_right_ones() {
    let mut client = LineClient::new(Era::Handshake, json!({})).await;
    let mut odd_id = flow(&["a"]);
    odd_id["id"] = json!("a b");
    for (tool, arguments, told) in [
        ("run_workflow", json!({}), "`workflow` is missing"),
        ("run_workflow", json!({"workflow": 1}), "a workflow, or the text of one"),
        ("run_workflow", odd_id, "letters, digits"),
        ("run_workflow", json!({"workflow": {}}), "there are no tasks"),
        ("workflow_command", json!({"command": "pause"}), "`id` is missing"),
        ("workflow_command", json!({"id": "x"}), "`command` is missing"),
        ("workflow_command", json!({"id": "x", "command": "aprove"}), "did you mean approve?"),
        ("workflow_command", json!({"id": "x", "command": "pause"}), "no workflow has the id x"),
        ("get_workflow", json!({"id": "x"}), "no workflow has the id x"),
        ("get_workflow", json!({"workflow": "x"}), "unknown field `workflow`"),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.to_string().contains(told), "{arguments}: {result}");
    }
}

#[tokio::test]
async fn e1_an_operator_can_switch_them_off() {
    let fake = FakeBackend { no_workflows: true, ..FakeBackend::default() };
    let mut client =
        LineClient::with(fake, Era::Handshake, json!({}), ServerOptions::default()).await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4, "{listed}");
    let call = json!({"name": "run_workflow", "arguments": flow(&["a"])});
    let answer = client.ask("tools/call", call).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("Unknown tool"), "{answer}");
}
