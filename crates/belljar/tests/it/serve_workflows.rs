//! E1, E3, F4, F5: workflows of a real server: run, watched, decided about over HTTP, and not over
//! MCP; what a host leaves behind goes on with the next.

use std::process::Stdio;

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::BELLJAR,
    mcp_support::{Reply, RunningServer, serve_in, within},
    project_support::CountingProject,
    stdio_support::StdioServer,
    workflow_support::WorkflowWatch,
};

const ALLOWED: &str =
    "[permissions]\nallow = [\"count__*\"]\n[workflows]\nenable_code_execution = true\n";
/// The same without code.
const NO_CODE: &str = "[permissions]\nallow = [\"count__*\"]\n";

/// A tool, code, a person, a tool.
fn release() -> Value {
    json!({"name": "release", "tasks": [
        {"id": "sum", "tool": "count__add", "arguments": {"a": 1, "b": "{{ inputs.b }}"}},
        {"id": "twice", "type": "code_execution", "language": "typescript",
            "code": "return context.deps.sum.sum * 2", "depends_on": ["sum"]},
        {"id": "ok", "type": "approval", "message": "note {{ results.twice }}?",
            "depends_on": ["twice"]},
        {"id": "note", "tool": "count:append", "depends_on": ["ok"],
            "arguments": {"text": "n = {{ results.twice }}"}},
    ], "output": {"noted": "{{ results.twice }}"}})
}

fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{reply:#?}");
    assert!(reply.body.contains(&format!("\"code\":\"{code}\"")), "{reply:#?}");
}

fn decision(state: &Value) -> String {
    state["decisions"][0]["id"].as_str().unwrap_or_else(|| panic!("{state:#}")).to_owned()
}

/// How it stands once it has ended.
fn ended(server: &RunningServer, id: &str) -> Value {
    server.ask(&format!("GET /v1/workflows/{id}?wait_ms=60000"), &Value::Null)
}

#[sandboxed]
#[test]
fn f5_a_person_decides_over_http_and_no_model_does_over_mcp() {
    let project = CountingProject::with(ALLOWED);
    let server = serve_in(&project.place, &[]);
    let asked = json!({"workflow": release(), "inputs": {"b": 2}, "id": "r1", "wait_ms": 60_000});
    let waiting = server.ask("POST /v1/workflows", &asked);
    assert_eq!((&waiting["id"], &waiting["status"]), (&json!("r1"), &json!("running")));
    assert_eq!(waiting["decisions"][0]["message"], "note 6?", "{waiting:#}");
    refused(&server.api("POST /v1/workflows", &asked.to_string()), 409, "workflow.taken");

    let decision = decision(&waiting);
    for command in [
        json!({"id": "r1", "command": "approve", "decision": decision}),
        json!({"id": "r1", "command": "skip", "task": "ok"}),
        json!({"id": "r1", "command": "replan", "tasks": []}),
        json!({"id": "r1", "command": "modify_args", "task": "note", "arguments": {"text": "x"}}),
    ] {
        let answer = server.call("workflow_command", &command);
        let error = &answer["structuredContent"]["error"];
        assert_eq!(error["code"], "command.not_yours", "{answer:#}");
        assert!(error["hint"].to_string().contains("belljar workflow command r1"), "{answer:#}");
    }
    assert_eq!(project.counted(), Vec::<String>::new());

    let approve = json!({"command": "approve", "decision": decision, "command_id": "yes"});
    let first = server.ask("POST /v1/workflows/r1/commands", &approve);
    assert_eq!(first, json!({"command_id": "yes", "accepted": true}));
    assert_eq!(server.ask("POST /v1/workflows/r1/commands", &approve), first);
    let state = ended(&server, "r1");
    assert_eq!((&state["status"], &state["output"]["noted"]), (&json!("completed"), &json!(6)));
    assert_eq!(project.counted(), ["n = 6"]);
    let late = r#"{"command": "abort"}"#;
    refused(&server.api("POST /v1/workflows/r1/commands", late), 409, "command.refused");
    let listed = server.ask("GET /v1/workflows", &Value::Null);
    assert_eq!(listed["workflows"][0]["status"], "completed", "{listed:#}");
}

#[sandboxed]
#[test]
fn f4_events_are_heard_as_they_happen_and_replayed_from_any() {
    let project = CountingProject::with(ALLOWED);
    let server = serve_in(&project.place, &[]);
    let asked = json!({"workflow": release(), "inputs": {"b": 2}, "id": "r1"});
    server.ask("POST /v1/workflows", &asked);
    let mut events = server.follow("GET /v1/workflows/r1/events", "", "");
    let mut heard = Vec::new();
    let open = loop {
        let (seq, name, data) = events.next();
        heard.push((seq, name.clone()));
        if name == "decision_required" {
            break data["data"]["decision"]["id"].clone();
        }
    };
    server.ask(
        "POST /v1/workflows/r1/commands",
        &json!({"command": "approve", "decision": open, "value": {"by": "me"}}),
    );
    while heard.last().is_none_or(|(_, name)| name != "workflow_ended") {
        let (seq, name, _) = events.next();
        heard.push((seq, name));
    }
    let numbers: Vec<u64> = heard.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    for wanted in
        ["workflow_started", "task_started", "code_execution_completed", "checkpoint_saved"]
    {
        assert!(heard.iter().any(|(_, name)| name == wanted), "{wanted}: {heard:?}");
    }
    // Events that come with the end are received, and then the stream ends.
    let (seq, name, _) = events.next();
    heard.push((seq, name));
    assert!(events.is_over());
    let listed = server.ask("GET /v1/workflows/r1/events?limit=1000", &Value::Null);
    let listed: Vec<_> = listed["events"].as_array().unwrap().iter().map(|e| &e["name"]).collect();
    assert_eq!(listed, heard.iter().map(|(_, name)| name).collect::<Vec<_>>());
    let mut again = server.follow("GET /v1/workflows/r1/events", "Last-Event-ID: 3\r\n", "");
    assert_eq!(again.next().0, 4);
    refused(&server.api("GET /v1/workflows/none/events", ""), 404, "workflow.unknown");
}

#[sandboxed]
#[test]
fn f8_bad_workflows_are_refused_before_anything_runs() {
    let project = CountingProject::with(NO_CODE);
    let server = serve_in(&project.place, &[]);
    let append = json!({"id": "a", "tool": "count__append", "arguments": {"text": "x"}});
    let cycle = json!([{"id": "a", "tool": "count__add", "depends_on": ["b"]},
        {"id": "b", "tool": "count__add", "depends_on": ["a"]}]);
    let yaml = "name: x\nnodes:\n  - name: a\n    run: |\n      return {'b': 1}\n";
    for (workflow, told) in [
        (json!({"tasks": [append, {"id": "b", "tool": "count__apend"}]}), "apend"),
        (json!({"tasks": cycle}), "a → b → a"),
        (json!({"tasks": [append, {"id": "a", "tool": "count__add"}]}), "a"),
        (json!(yaml), "enable_code_execution"),
        (release(), "enable_code_execution"),
        (json!("tasks: ["), "workflow:2:1"),
        (json!({}), "neither"),
    ] {
        let reply = server.api("POST /v1/workflows", &json!({"workflow": workflow}).to_string());
        refused(&reply, 422, "workflow.invalid");
        assert!(reply.body.contains(told), "{told}: {reply:#?}");
        let answer = server.call("run_workflow", &json!({"workflow": workflow}));
        assert_eq!(answer["structuredContent"]["error"]["code"], "workflow.invalid", "{answer:#}");
    }
    let pass =
        json!({"inputs": {"version": 1}, "tasks": [{"id": "a", "type": "pass", "value": 1}]});
    let misspelled = json!({"workflow": pass, "inputs": {"versoin": 2}}).to_string();
    let reply = server.api("POST /v1/workflows", &misspelled);
    refused(&reply, 422, "workflow.invalid");
    assert!(reply.body.contains("it declares `version`"), "{reply:#?}");
    assert_eq!(server.ask("GET /v1/workflows", &Value::Null), json!({"workflows": []}));
    assert_eq!(project.counted(), Vec::<String>::new());
}

#[sandboxed]
#[test]
fn f8_yaml_has_code_when_the_operator_enables_it() {
    let project = CountingProject::with("[workflows]\nenable_code_execution = true\n");
    let server = serve_in(&project.place, &[]);
    let yaml = "name: x\nstate_schema:\n  b: {type: int}\nnodes:\n  - name: a\n    run: |\n      return {'c': 41 + 1}\n    output: b\n";
    let state = server.ask("POST /v1/workflows", &json!({"workflow": yaml, "wait_ms": 60_000}));
    assert_eq!(state["status"], "completed", "{state:#}");
    assert_eq!(state["state"]["b"]["c"], 42, "{state:#}");
}

/// Bug 9: what could not run is not taken, and what runs goes on.
#[sandboxed]
#[test]
fn bug_9_injected_code_is_refused_at_once_where_code_is_off() {
    let project = CountingProject::with(NO_CODE);
    let server = serve_in(&project.place, &[]);
    let tasks = json!([{"id": "ok", "type": "approval", "message": "?"},
        {"id": "then", "tool": "count__append", "arguments": {"text": "x"}, "depends_on": ["ok"]}]);
    let asked = json!({"workflow": {"tasks": tasks}, "id": "r1", "wait_ms": 60_000});
    let decision = decision(&server.ask("POST /v1/workflows", &asked));
    let code = json!([{"id": "c", "type": "code_execution", "code": "return 1"}]);
    for command in ["inject_tasks", "replan"] {
        let body = json!({"command": command, "tasks": code}).to_string();
        let reply = server.api("POST /v1/workflows/r1/commands", &body);
        refused(&reply, 422, "workflow.invalid");
        assert!(reply.body.contains("enable_code_execution"), "{reply:#?}");
    }
    let told =
        project.place.belljar(&["workflow", "command", "r1", "inject-tasks", &code.to_string()]);
    assert!(told.stderr.contains("code execution is off"), "{told:?}");
    // A task without code is accepted, and the workflow is as it was.
    let more = json!([{"id": "more", "tool": "count__append", "arguments": {"text": "more"},
        "depends_on": ["then"]}]);
    let body = json!({"command": "inject_tasks", "tasks": more});
    assert_eq!(server.ask("POST /v1/workflows/r1/commands", &body)["accepted"], true);
    let approve = json!({"command": "approve", "decision": decision});
    server.ask("POST /v1/workflows/r1/commands", &approve);
    assert_eq!(ended(&server, "r1")["status"], "completed");
    assert_eq!(project.counted(), ["x", "more"]);
}

/// Bug 2: tasks that come from a command line depend on what is there, and read its results.
#[sandboxed]
#[test]
fn bug_2_tasks_from_the_command_line_refer_to_those_there_are() {
    let project = CountingProject::with(NO_CODE);
    let file = "tasks:\n  - {id: sum, tool: \"count:add\", arguments: {a: 1, b: 2}}\n  - {id: ok, message: go on?, depends_on: [sum]}\n";
    project.place.file("work/flow.yaml", file);
    let mut running = project.place.command(BELLJAR);
    let mut running = running
        .args(["workflow", "run", "flow.yaml", "--id", "c2", "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let decision = within("a decision", || {
        let shown = project.place.belljar(&["workflow", "show", "c2", "--json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).ok()?;
        Some(shown["decisions"][0]["id"].as_str()?.to_owned())
    });
    let command =
        |what: &[&str]| project.place.belljar(&[&["workflow", "command", "c2"], what].concat());
    let task = |id: &str, on: &str| {
        json!([{"id": id, "tool": "count:append", "arguments": {"text": "n {{ results.sum.sum }}"},
            "depends_on": on.split(' ').collect::<Vec<_>>()}])
        .to_string()
    };
    let unknown = command(&["inject-tasks", &task("x", "sum nobody")]);
    assert!(unknown.stderr.contains("there is no task nobody"), "{unknown:#?}");
    let added = command(&["inject-tasks", &task("i", "sum ok")]);
    assert_eq!(added.status, Some(0), "{added:#?}");
    // In place of `i`, which has not begun.
    let instead = command(&["replan", &task("z", "sum ok")]);
    assert_eq!(instead.status, Some(0), "{instead:#?}");
    assert_eq!(command(&["approve", &decision]).status, Some(0));
    assert!(running.wait().unwrap().success());
    assert_eq!(project.counted(), ["n 3"]);
    let watched = WorkflowWatch::of(&project.place.path().join("work/.belljar"));
    let tasks: Vec<_> = watched.machine("c2").dag().tasks.into_iter().map(|task| task.id).collect();
    assert_eq!(tasks, ["sum", "ok", "z"]);
}

/// A tool that policy asks about is called without a cell, and the question outlives its host.
#[sandboxed]
#[test]
fn d7_a_tool_that_may_ask_is_called_without_a_cell() {
    let project = CountingProject::with("[permissions]\nask = [\"count__*\"]\n");
    let server = serve_in(&project.place, &[]);
    let tasks = json!([{"id": "a", "tool": "count__append", "arguments": {"text": "x"}}]);
    server.ask("POST /v1/workflows", &json!({"workflow": {"tasks": tasks}, "id": "r1"}));
    let pending = |server: &RunningServer| {
        let listed = server.ask("GET /v1/approvals", &Value::Null);
        listed["approvals"][0]["id"].as_str().map(str::to_owned)
    };
    let asked = within("an approval", || pending(&server));
    server.kill();
    let server = serve_in(&project.place, &[]);
    assert_eq!(within("the same approval", || pending(&server)), asked);
    assert_eq!(project.counted(), Vec::<String>::new());
    server.ask(&format!("POST /v1/approvals/{asked}"), &json!({"decision": "approve"}));
    let state = ended(&server, "r1");
    assert_eq!(state["status"], "completed", "{state:#}");
    assert_eq!(project.counted(), ["x"]);
    let metrics = server.api("GET /metrics", "").body;
    assert!(metrics.contains("sandbox_startup_ms_count 0"), "{metrics}");
    let runs = server.ask("GET /v1/runs", &Value::Null);
    let run = &runs["runs"][0];
    assert_eq!(
        (&run["language"], &run["status"]),
        (&json!("tool"), &json!("completed")),
        "{runs:#}"
    );
}

#[sandboxed]
#[test]
fn e1_workflows_can_be_switched_off() {
    let project = CountingProject::with("[workflows]\nserve = false\n");
    let server = serve_in(&project.place, &[]);
    refused(&server.api("GET /v1/workflows", ""), 403, "workflow.off");
    refused(
        &server.api("POST /v1/workflows", &json!({"workflow": release()}).to_string()),
        403,
        "workflow.off",
    );
}

/// Whoever serves next goes on with it, without a tool being called twice.
#[sandboxed]
#[test]
fn f3_a_workflow_goes_on_with_the_next_host() {
    let project = CountingProject::with(ALLOWED);
    let server = serve_in(&project.place, &[]);
    let tasks = json!([
        {"id": "first", "tool": "count__append", "arguments": {"text": "first"}},
        {"id": "ok", "type": "approval", "message": "go on?", "depends_on": ["first"]},
        {"id": "then", "tool": "count__append", "arguments": {"text": "then"},
            "depends_on": ["ok"]},
    ]);
    let asked = json!({"workflow": {"tasks": tasks}, "id": "r1", "wait_ms": 60_000});
    let decision = decision(&server.ask("POST /v1/workflows", &asked));
    server.kill();
    let server = serve_in(&project.place, &[]);
    let approve = json!({"command": "approve", "decision": decision});
    let answer = server.ask("POST /v1/workflows/r1/commands", &approve);
    assert_eq!(answer["accepted"], true, "{answer:#}");
    assert_eq!(ended(&server, "r1")["status"], "completed");
    assert_eq!(project.counted(), ["first", "then"]);
}

#[sandboxed]
#[test]
fn e1_a_model_runs_and_steers_workflows_over_stdio() {
    let project = CountingProject::with(ALLOWED);
    let mut server = StdioServer::start(&project.place);
    let mut call = |tool: &str, arguments: Value| server.call(tool, arguments);
    let sum = json!({"tasks": [{"id": "sum", "tool": "count__add",
        "arguments": {"a": 1, "b": "{{ inputs.b }}"}}]});
    let done = call("run_workflow", json!({"workflow": sum, "inputs": {"b": 4}}));
    assert_eq!(
        (&done["status"], &done["output"]),
        (&json!("completed"), &json!({"sum": {"sum": 5}}))
    );

    let agent = json!({"tasks": [{"id": "ok", "type": "approval", "message": "?", "by": "agent"},
        {"id": "then", "tool": "count__append", "arguments": {"text": "{{ inputs.l }}"},
            "depends_on": ["ok"]}]});
    let asks = call("run_workflow", json!({"workflow": agent, "inputs": {"l": "a"}}));
    assert_eq!(asks["status"], "running", "{asks:#}");
    let (id, decision) = (asks["workflow_id"].clone(), decision(&asks));
    let unknown =
        call("workflow_command", json!({"id": id, "command": "approve", "decision": "d9"}));
    assert_eq!(unknown["error"]["code"], "command.invalid", "{unknown:#}");
    let told =
        json!({"id": id, "command": "modify_args", "task": "then", "arguments": {"text": "b"}});
    assert_eq!(call("workflow_command", told)["status"], "accepted");
    let approve = json!({"id": id, "command": "approve", "decision": decision, "command_id": "c"});
    for _ in 0..2 {
        assert_eq!(call("workflow_command", approve.clone())["status"], "accepted");
    }
    // Surprise 3: what the answer calls `workflow_id` is taken as that, too.
    let ended = call("get_workflow", json!({"workflow_id": id, "wait_ms": 20_000}));
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let late = call("workflow_command", json!({"id": id, "command": "pause"}));
    assert_eq!(late["status"], "refused", "{late:#}");
    assert_eq!(project.counted(), ["b"]);
    server.end();
}

const UNIT: &str = "a time without a unit is read as milliseconds";

/// Warnings about a file reach everybody who runs it, on every surface.
#[sandboxed]
#[test]
fn f8_what_is_tolerated_is_told() {
    let project = CountingProject::with("");
    let odd = "name: odd\ntasks:\n  - {id: a, wait: 5}\n";
    project.place.file("work/odd.yaml", odd);
    for command in ["validate", "run"] {
        let told = project.place.belljar(&["workflow", command, "odd.yaml"]);
        assert_eq!(told.status, Some(0), "{told:#?}");
        assert!(
            told.stderr.contains("warning: odd.yaml:3:") && told.stderr.contains(UNIT),
            "{told:#?}"
        );
    }
    let server = serve_in(&project.place, &[]);
    let made = server.ask("POST /v1/workflows", &json!({"workflow": odd, "wait_ms": 60_000}));
    assert!(made["warnings"][0].as_str().unwrap().contains(UNIT), "{made:#}");
    // A later workflow under the same id has none of its own.
    let id = made["id"].as_str().unwrap();
    assert_eq!(server.api(&format!("DELETE /v1/workflows/{id}"), "").status, 204);
    let plain = json!({"tasks": [{"id": "a", "type": "pass", "value": 1}]});
    let asked = json!({"workflow": plain, "id": id, "wait_ms": 60_000});
    let after = server.ask("POST /v1/workflows", &asked);
    assert_eq!((&after["status"], after.get("warnings")), (&json!("completed"), None), "{after:#}");
    let called = server.call("run_workflow", &json!({"workflow": odd}));
    let warned = &called["structuredContent"]["warnings"];
    assert!(warned[0].as_str().unwrap().contains(UNIT), "{called:#}");
}
