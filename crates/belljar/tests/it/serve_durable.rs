//! O2: durable runs outlive their server, whatever ends it, and resume by themselves. A person's decision
//! resumes them at once, and a request to end a run does not start it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    http_support::Events,
    ledger_support::{LedgerProject, Transport::Http},
    mcp_support::{RunningServer, serve_in, within},
};

/// Two effects with a call between them that may be made twice.
const THREE: &str = "await mcp.ledger.effect({ key: 'one' });
await mcp.ledger.safe({ key: 'two' });
await mcp.ledger.effect({ key: 'three' });
return 'done'";
/// One effect whose outcome the code has a use for, and another.
const DOUBTFUL: &str = "let one;
try { one = await mcp.ledger.effect({ key: 'one' }) } catch (e) { one = e.code }
await mcp.ledger.effect({ key: 'two' });
return one";

impl LedgerProject {
    fn serve(&self) -> RunningServer {
        serve_in(&self.place, &[])
    }

    /// The row of the only run, at the command line.
    fn listed(&self) -> Value {
        self.place.belljar(&["runs", "--json"]).json()[0].clone()
    }
}

/// Begins a run; its client follows it.
fn follow(server: &RunningServer, request: &Value) -> (Events, String) {
    let mut events = server.follow("POST /v1/runs", "", &request.to_string());
    let id = events.until("started")["id"].as_str().unwrap().to_owned();
    (events, id)
}

/// Begins a durable run; its client goes away.
fn begin(server: &RunningServer, code: &str) -> String {
    follow(server, &json!({ "code": code, "durable": true })).1
}

/// A server with a durable run whose client has gone away. The run is held before or after the call with
/// this key, and the ledger has this line.
fn held(
    (when, key): (&str, &str),
    code: &str,
    line: &str,
) -> (LedgerProject, RunningServer, String) {
    let project = LedgerProject::new(Http);
    let server = project.serve();
    project.hold(when, key);
    let id = begin(&server, code);
    project.until_line(line);
    (project, server, id)
}

fn look(server: &RunningServer, id: &str) -> Value {
    server.ask(&format!("GET /v1/runs/{id}"), &Value::Null)
}

fn end_of(server: &RunningServer, id: &str) -> Value {
    server.ask(&format!("GET /v1/runs/{id}?wait_ms=60000"), &Value::Null)
}

/// The question that waits for a person, once there is one.
fn question(server: &RunningServer) -> Value {
    within("a question", || {
        let open = server.ask("GET /v1/approvals", &Value::Null);
        open["approvals"].as_array().unwrap().first().cloned()
    })
}

fn decide(server: &RunningServer, question: &Value, decision: &Value) -> (u16, Value) {
    let path = format!("POST /v1/approvals/{}", question["id"].as_str().unwrap());
    let reply = server.api(&path, &decision.to_string());
    (reply.status, serde_json::from_str(&reply.body).unwrap())
}

fn assert_once(project: &LedgerProject, keys: &[&str]) {
    for key in keys {
        assert_eq!(project.count(&format!("did effect {key}")), 1, "{:?}", project.lines());
    }
}

#[sandboxed]
#[test]
fn reliability_4_a_killed_host_s_runs_go_on_with_the_next_by_themselves() {
    let (project, server, id) = held(("before", "two"), THREE, "asked safe two");
    server.kill();
    assert_eq!(project.listed()["status"], "interrupted");
    project.release("before", "two");
    let server = project.serve();
    // Nobody asks for it.
    project.until_line("did effect three");
    let ended = end_of(&server, &id);
    assert_eq!((&ended["status"], &ended["result"]), (&json!("completed"), &json!("done")));
    assert_once(&project, &["one", "three"]);
    let runs = server.ask("GET /v1/runs", &Value::Null);
    assert_eq!(runs["runs"][0]["status"], project.listed()["status"], "{runs:#}");
}

#[sandboxed]
#[test]
fn reliability_4_a_polite_stop_interrupts_and_says_so() {
    let project = LedgerProject::new(Http);
    let server = project.serve();
    project.hold("before", "two");
    let (mut events, id) = follow(&server, &json!({ "code": THREE, "durable": true }));
    project.until_line("asked safe two");
    server.stop();
    let told = events.until("result");
    assert_eq!(told["status"], "interrupted", "{told:#}");
    assert_eq!(told["error"]["code"], "run.interrupted", "{told:#}");
    assert_eq!(project.listed()["status"], "interrupted");
    project.release("before", "two");
    let server = project.serve();
    project.until_line("did effect three");
    assert_eq!(end_of(&server, &id)["result"], "done");
    assert_once(&project, &["one", "three"]);
    // Control: a run that keeps no journal is over.
    project.hold("before", "four");
    let body = json!({ "code": "await mcp.ledger.safe({ key: 'four' })" }).to_string();
    let mut events = server.follow("POST /v1/runs", "", &body);
    project.until_line("asked safe four");
    server.stop();
    assert_eq!(events.until("result")["status"], "aborted");
}

#[sandboxed]
#[test]
fn reliability_3_bug_6_who_ends_a_run_does_not_start_it_and_closes_its_question() {
    let (project, server, id) = held(("before", "one"), DOUBTFUL, "asked effect one");
    server.kill();
    let server = project.serve();
    // It waits for a person, and nobody has it.
    let asked = question(&server);
    let ended = server.ask(&format!("DELETE /v1/runs/{id}"), &Value::Null);
    assert_eq!(ended["status"], "aborted", "{ended:#}");
    assert_eq!(look(&server, &id)["status"], "aborted");
    let metrics = server.api("GET /metrics", "").body;
    assert!(metrics.contains("code_execution_total{status=\"aborted\"} 1"), "{metrics}");
    // Nobody is asked any more; who answers is told so, and does not bring it back, nor does another host.
    assert_eq!(server.ask("GET /v1/approvals", &Value::Null)["approvals"], json!([]));
    let (status, refused) = decide(&server, &asked, &json!({"decision": "deny"}));
    assert_eq!(
        (status, &refused["error"]["code"]),
        (409, &json!("approval.settled")),
        "{refused:#}"
    );
    assert!(refused.to_string().contains("its run has ended"), "{refused:#}");
    server.stop();
    let server = project.serve();
    assert_eq!(look(&server, &id)["status"], "aborted");
    project.release("before", "one");
    project.until_quiet();
    assert_eq!(project.count("asked effect two"), 0);
    // Control: a person can, and is asked again.
    let resumed = project.place.belljar(&["resume", &id, "--json"]).json();
    assert_eq!(resumed["status"], "in_doubt", "{resumed:#}");
    assert_eq!(question(&server)["id"], asked["id"]);
    assert_eq!(decide(&server, &asked, &json!({"decision": "deny"})).0, 200);
    project.until_line("did effect two");
    assert_eq!(end_of(&server, &id)["result"], "tool.in_doubt");
    assert_once(&project, &["one", "two"]);
}

#[sandboxed]
#[test]
fn reliability_1_a_run_that_was_taken_up_can_be_ended() {
    let (project, server, id) = held(("before", "two"), THREE, "asked safe two");
    server.kill();
    let server = project.serve();
    project.until("the call made again", || (project.count("asked safe two") == 2).then_some(()));
    let listed = server.ask("GET /v1/runs", &Value::Null);
    assert_eq!(listed["runs"][0]["status"], "running", "{listed:#}");
    let ended = server.ask(&format!("DELETE /v1/runs/{id}"), &Value::Null);
    assert_eq!(ended["status"], "aborted", "{ended:#}");
    project.release("before", "two");
    project.until_quiet();
    assert_eq!(
        (project.count("asked effect three"), look(&server, &id)["status"].clone()),
        (0, json!("aborted"))
    );
}

#[sandboxed]
#[test]
fn reliability_2_what_a_person_decides_moves_the_run_at_once() {
    for (decision, result, times) in [
        (json!({"decision": "retry"}), json!({"done": "one"}), 2),
        (json!({"decision": "use", "result": [7]}), json!([7]), 1),
        (json!({"decision": "deny"}), json!("tool.in_doubt"), 1),
    ] {
        let (project, server, id) = held(("after", "one"), DOUBTFUL, "did effect one");
        server.kill();
        project.release("after", "one");
        let server = project.serve();
        let asked = question(&server);
        assert_eq!(decide(&server, &asked, &decision).0, 200);
        // Nobody asks for the run, and it is there.
        project.until_line("did effect two");
        let ended = end_of(&server, &id);
        assert_eq!((&ended["status"], &ended["result"]), (&json!("completed"), &result));
        assert_eq!(project.count("did effect one"), times);
        assert_once(&project, &["two"]);
        server.stop();
    }
}

#[sandboxed]
#[test]
fn reliability_4_what_was_decided_while_there_was_no_host_moves_the_run_too() {
    let project = LedgerProject::with(Http, "ask = [\"ledger__guarded\"]\nallow = [\"ledger__*\"]");
    let server = project.serve();
    let id = begin(&server, "return await mcp.ledger.guarded({ key: 'one' })");
    let asked = question(&server);
    assert_eq!(asked["kind"], "call", "{asked:#}");
    server.stop();
    let decided = project.place.belljar(&["approvals", "approve", asked["id"].as_str().unwrap()]);
    assert_eq!(decided.status, Some(0), "{decided:#?}");
    let server = project.serve();
    project.until_line("did guarded one");
    assert_eq!(end_of(&server, &id)["result"], json!({"done": "one"}));
    assert_eq!(project.count("did guarded one"), 1);
}

#[sandboxed]
#[test]
fn reliability_3_a_question_about_a_call_that_may_have_happened_says_so_everywhere() {
    let (project, server, id) = held(("after", "one"), DOUBTFUL, "did effect one");
    server.kill();
    project.release("after", "one");
    let server = project.serve();
    let asked = question(&server);
    // The run rests a moment after its question is put.
    let of_run = within("a run in doubt", || {
        Some(look(&server, &id)).filter(|run| run["status"] == "in_doubt")
    });
    let over_mcp = server.look(&id);
    assert_eq!(over_mcp["status"], "in_doubt", "{over_mcp:#}");
    let listed = project.place.belljar(&["approvals", "--json"]).json();
    for shown in [&asked, &of_run["approvals"][0], &over_mcp["approval"], &listed[0]] {
        assert_eq!(shown["kind"], "in_doubt", "{shown:#}");
        let message = shown["message"].as_str().unwrap();
        assert!(message.contains("may have happened"), "{shown:#}");
    }
    let text = project.place.belljar(&["approvals"]).stdout;
    assert!(text.contains("it may have happened"), "{text}");
    // A yes to the call is no yes to making it twice, and what it gave has to be said.
    let (status, refused) = decide(&server, &asked, &json!({"decision": "approve"}));
    assert_eq!(
        (status, &refused["error"]["code"]),
        (409, &json!("approval.answer")),
        "{refused:#}"
    );
    for bad in [json!({"decision": "use"}), json!({"decision": "retry", "result": 1})] {
        assert_eq!(decide(&server, &asked, &bad).0, 400);
    }
    assert_eq!(project.count("asked effect two"), 0);
    assert_eq!(decide(&server, &asked, &json!({"decision": "use", "result": null})).0, 200);
    assert_eq!(end_of(&server, &id)["result"], Value::Null);
    assert_once(&project, &["one", "two"]);
}

/// Somebody else writes to the store, and does not stop.
struct StoreLock(Child);

impl StoreLock {
    fn new(project: &LedgerProject) -> Self {
        let program = "import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()";
        let mut child = project
            .place
            .command("python3")
            .args(["-c", program])
            .arg(project.state().join(belljar_store::FILE_NAME))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "locked\n");
        Self(child)
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The disk is full for a moment, or what else keeps a store from being written.
#[sandboxed]
#[test]
fn reliability_11_a_run_whose_journal_failed_goes_on_while_its_host_lives() {
    let project = LedgerProject::new(Http);
    let server = project.serve();
    project.hold("after", "two");
    let (mut events, id) = follow(&server, &json!({ "code": THREE, "durable": true }));
    project.until_line("did safe two");
    let locked = StoreLock::new(&project);
    project.release("after", "two");
    let told = events.until("result");
    assert_eq!(told["status"], "interrupted", "{told:#}");
    assert_eq!(project.count("asked effect three"), 0);
    drop(locked);
    project.until_line("did effect three");
    assert_eq!(end_of(&server, &id)["result"], "done");
    assert_once(&project, &["one", "three"]);
}

/// A call that cannot be recorded is not made, unless it only reads (reliability 7).
#[sandboxed]
#[test]
fn reliability_7_a_store_that_cannot_be_written_refuses_calls_with_effects() {
    let project = LedgerProject::with(Http, "allow = [\"ledger__*\"]");
    let configuration = project.place.path().join("work/belljar.toml");
    let text = std::fs::read_to_string(&configuration).unwrap();
    let text = text.replace("idempotent =", "read_only = [\"safe\"]\nidempotent =");
    std::fs::write(&configuration, text).unwrap();
    let server = project.serve();
    let code = "const said = [];
for (const tool of ['safe', 'effect']) {
  try { await mcp.ledger[tool]({ key: 'one' }); said.push('made') } catch (e) { said.push(e.code) }
}
return said";
    // The server's tools are known before.
    assert_eq!(
        server.ask("POST /v1/runs", &json!({"code": "await tools.search('x')"}))["success"],
        true
    );
    let locked = StoreLock::new(&project);
    // Each transaction that is queued before the call's own waits ten seconds for the lock.
    let limits = json!({ "timeout_ms": 120_000, "tool_timeout_ms": 120_000 });
    let refused = server.ask("POST /v1/runs", &json!({ "code": code, "limits": limits }));
    assert_eq!(refused["result"], json!(["made", "tool.unavailable"]), "{refused:#}");
    assert_eq!(project.count("asked effect one"), 0);
    drop(locked);
    let made = server.ask("POST /v1/runs", &json!({ "code": code }));
    assert_eq!(made["result"], json!(["made", "made"]), "{made:#}");
    assert_once(&project, &["one"]);
}

#[sandboxed]
#[test]
fn reliability_7_a_call_that_was_made_is_in_the_audit_whatever_ends_the_host() {
    let project = LedgerProject::new(Http);
    let server = project.serve();
    project.hold("after", "one");
    let (_events, _) =
        follow(&server, &json!({ "code": "await mcp.ledger.effect({ key: 'one' })" }));
    project.until_line("did effect one");
    server.kill();
    let audit = project.place.belljar(&["audit", "--json"]).json();
    let row = &audit[0];
    assert_eq!(
        (&row["tool"], &row["outcome"]),
        (&json!("ledger__effect"), &json!("sent")),
        "{audit:#}"
    );
}

/// Hanging up ends a run that keeps no journal: in the records, the events and the metrics, too.
#[sandboxed]
#[test]
fn bug_6_a_run_whose_client_hangs_up_ends_in_the_records() {
    let project = LedgerProject::new(Http);
    let server = project.serve();
    project.hold("before", "one");
    let (events, id) = follow(&server, &json!({ "code": "await mcp.ledger.safe({ key: 'one' })" }));
    project.until_line("asked safe one");
    drop(events);
    let path = format!("GET /v1/events?run_id={id}");
    within("an event that ends it", || {
        let events = server.ask(&path, &Value::Null);
        let last = events["events"].as_array().unwrap().last()?.clone();
        (last["name"] == "code_execution_failed").then_some(())
    });
    within("its end in the list", || {
        let runs = server.ask("GET /v1/runs", &Value::Null);
        let run = runs["runs"].as_array().unwrap().iter().find(|run| run["id"] == id.as_str())?;
        (run["status"] == "aborted").then_some(())
    });
    let metrics = server.api("GET /metrics", "").body;
    assert!(metrics.contains("code_execution_total{status=\"aborted\"} 1"), "{metrics}");
    assert_eq!(look(&server, &id)["status"], "aborted");
}

/// A workflow does not say that it runs when a call inside its code waits for a person.
#[sandboxed]
#[test]
fn reliability_10_a_doubt_inside_the_code_of_a_workflow_is_shown_by_the_workflow() {
    let rules = "allow = [\"ledger__*\"]\n[workflows]\nenable_code_execution = true";
    let project = LedgerProject::with(Http, rules);
    let server = project.serve();
    project.hold("after", "one");
    let task = json!({ "id": "pay", "type": "code_execution", "language": "typescript", "code": DOUBTFUL });
    let begun = server.ask("POST /v1/workflows", &json!({ "workflow": { "tasks": [task] } }));
    let id = begun["id"].as_str().unwrap_or_else(|| panic!("{begun:#}")).to_owned();
    project.until_line("did effect one");
    // Control: while the call is made nobody is asked.
    let looked = server.ask(&format!("GET /v1/workflows/{id}"), &Value::Null);
    assert_eq!(looked["approvals"], json!([]), "{looked:#}");
    server.kill();
    project.release("after", "one");
    let server = project.serve();
    let asked = question(&server);
    let looked = server.ask(&format!("GET /v1/workflows/{id}"), &Value::Null);
    let shown = &looked["approvals"][0];
    assert_eq!(
        (&shown["task"], &shown["kind"], &shown["tool"], &shown["id"]),
        (&json!("pay"), &json!("in_doubt"), &json!("ledger__effect"), &asked["id"]),
        "{looked:#}"
    );
    let approval = asked["id"].as_str().unwrap();
    let model = server.call("get_workflow", &json!({"id": id}));
    let told = model["structuredContent"]["message"].as_str().unwrap_or_default();
    assert!(told.contains(&format!("belljar approvals retry {approval}")), "{model:#}");
    let text = project.place.belljar(&["workflow", "show", &id]).stdout;
    let remedy = format!("belljar approvals use {approval} --result JSON");
    assert!(text.contains("may have happened") && text.contains(&remedy), "{text}");
    let json = project.place.belljar(&["workflow", "show", &id, "--json"]).json();
    assert_eq!(json["approvals"][0]["id"], asked["id"], "{json:#}");
    let happened = json!({"decision": "use", "result": [7]});
    assert_eq!(decide(&server, &asked, &happened).0, 200);
    project.until_line("did effect two");
    let result = within("the end of the workflow", || {
        let looked = server.ask(&format!("GET /v1/workflows/{id}"), &Value::Null);
        (looked["status"] == "completed").then(|| looked.clone())
    });
    assert_eq!(result["approvals"], json!([]), "{result:#}");
    assert_eq!(result["output"]["pay"], json!([7]), "{result:#}");
    assert_once(&project, &["one", "two"]);
}

/// A run that may call a tool that asks is durable, unless its caller says that it must not be.
#[sandboxed]
#[test]
fn o2_a_caller_can_have_a_run_without_a_journal() {
    let project = LedgerProject::with(Http, "ask = [\"ledger__*\"]");
    let server = project.serve();
    for (asked, expected) in [(json!(false), false), (Value::Null, true), (json!(true), true)] {
        let mut body = json!({ "code": "return 1" });
        if !asked.is_null() {
            body["durable"] = asked;
        }
        let ended = server.ask("POST /v1/runs", &body);
        assert_eq!(ended["status"], "completed", "{ended:#}");
        let runs = server.ask("GET /v1/runs", &Value::Null);
        assert_eq!(runs["runs"][0]["durable"], expected, "{body}: {runs:#}");
    }
}
