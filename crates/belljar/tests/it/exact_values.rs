//! A8: values pass through every surface as they were written: keys in their order, integers with all their
//! digits.

use belljar_testing::sandboxed;
use serde_json::Value;

use crate::{
    command::Place, mcp_support::serve_in, project_support::CountingProject,
    stdio_support::StdioServer,
};

/// 2^64 + 1, which no 64-bit number is, beside keys out of order.
const EXACT: &str =
    r#"{"total":1,"alpha":2,"wide":18446744073709551617,"deep":[{"z":0,"a":1.50}]}"#;
/// A float is the same number in other digits.
const RETURNED: &str =
    r#"{"total":1,"alpha":2,"wide":18446744073709551617,"deep":[{"z":0,"a":1.5}]}"#;

/// The fields of a request whose code returns its context.
fn echo() -> String {
    format!(r#""language":"python","code":"context","context":{EXACT}"#)
}

/// Whether a text has the value as a result. It is looked for as text, because a tree would lose the same
/// things from a wrong answer.
fn has_it(text: &str) -> bool {
    text.contains(&format!(r#""result":{RETURNED}"#))
}

#[sandboxed]
#[test]
fn a8_a_context_over_http_comes_back_as_it_was_written() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let reply = server.api("POST /v1/runs", &format!("{{{}}}", echo()));
    assert!(has_it(&reply.body), "{reply:#?}");
    let made = server.ask("POST /v1/sessions", &serde_json::json!({"language": "python"}));
    let id = made["session_id"].as_str().unwrap();
    let body = format!(r#"{{"code":"context","context":{EXACT}}}"#);
    let reply = server.api(&format!("POST /v1/sessions/{id}/runs"), &body);
    assert!(has_it(&reply.body), "{reply:#?}");
    // The command line passes a context on to the session's host.
    let arguments = ["run", "--session", id, "--json", "--context", EXACT, "-c", "context"];
    let shown = place.belljar(&arguments);
    let compact: String = shown.stdout.split_whitespace().collect();
    assert!(has_it(&compact), "{shown:#?}");
}

#[sandboxed]
#[test]
fn a8_a_context_over_mcp_comes_back_as_it_was_written() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let reply = server.reply_to_call("execute_code", &format!("{{{}}}", echo()));
    assert!(has_it(&reply.body), "{reply:#?}");
    // Models also write it as a text.
    let text = Value::from(EXACT).to_string();
    let written = format!(r#"{{"language":"python","code":"context","context":{text}}}"#);
    let reply = server.reply_to_call("execute_code", &written);
    assert!(has_it(&reply.body), "{reply:#?}");
    let created =
        server.call("sandbox", &serde_json::json!({"action": "create", "language": "python"}));
    let id = &created["structuredContent"]["session_id"];
    let run =
        format!(r#"{{"action":"execute","session_id":{id},"code":"context","context":{EXACT}}}"#);
    let reply = server.reply_to_call("sandbox", &run);
    assert!(has_it(&reply.body), "{reply:#?}");
    drop(server);

    let mut stdio = StdioServer::start(&place);
    let line = stdio.call_in_text("execute_code", &format!("{{{}}}", echo()));
    assert!(has_it(&line), "{line}");
    stdio.end();
}

/// A workflow that passes its input on: through code, through each item of a list, through a workflow
/// within it, and through the state.
const FLOW: &str = r#"{"name":"exact","inputs":{"given":null},"state":{"all":[]},"reducers":{"all":"append"},
"tasks":[
  {"id":"code","type":"code_execution","language":"python","code":"context['given']",
    "context":{"given":"{{ inputs.given }}"}},
  {"id":"each","type":"foreach","items":"{{ [results.code] }}","depends_on":["code"],
    "do":{"id":"one","type":"code_execution","language":"python","code":"context['item']",
      "output":{"all":"{{ result }}"}}},
  {"id":"inner","type":"workflow","depends_on":["each"],"inputs":{"of":"{{ state.all[0] }}"},
    "workflow":{"inputs":{"of":null},"tasks":[{"id":"p","type":"pass","value":"{{ inputs.of }}"}]}},
  {"id":"ok","type":"approval","message":"{{ results.inner }}","depends_on":["inner"]}],
"output":{"result":"{{ results.inner.p }}","answer":"{{ results.ok.value }}","own":{"zz":1,"aa":36893488147419103233}}}"#;
/// The value that the workflow writes itself.
const OWN: &str = r#""own":{"zz":1,"aa":36893488147419103233}"#;

fn compact(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Whether a text has the value as the workflow's result, as the answer to its question, and what the workflow
/// has of its own.
fn has_output(text: &str) -> bool {
    let text = compact(text);
    has_it(&text) && text.contains(&format!(r#""answer":{RETURNED}"#)) && text.contains(OWN)
}

#[sandboxed]
#[test]
fn a8_values_of_workflows_are_exact_over_http_and_mcp_and_at_the_command_line() {
    let project = CountingProject::with("[workflows]\nenable_code_execution = true\n");
    let server = serve_in(&project.place, &[]);
    let body =
        format!(r#"{{"workflow":{FLOW},"inputs":{{"given":{EXACT}}},"id":"h1","wait_ms":60000}}"#);
    let reply = server.api("POST /v1/workflows", &body);
    let state = compact(&reply.body);
    assert!(state.contains(&format!(r#""all":[{RETURNED}]"#)), "{reply:#?}");
    let waiting: Value = serde_json::from_str(&reply.body).unwrap();
    let decision = &waiting["decisions"][0]["id"];
    let events = server.api("GET /v1/workflows/h1/events", "");
    // A question quotes the value as text.
    let quoted = Value::from(format!(r#"{{"p":{RETURNED}}}"#)).to_string();
    assert!(events.body.contains(&quoted), "{quoted}\n{events:#?}");
    let approve = format!(r#"{{"command":"approve","decision":{decision},"value":{EXACT}}}"#);
    let reply = server.api("POST /v1/workflows/h1/commands", &approve);
    assert!(reply.body.contains("true"), "{reply:#?}");
    let reply = server.api("GET /v1/workflows/h1?wait_ms=60000", "");
    assert!(has_output(&reply.body), "{reply:#?}");
    let reply = server.reply_to_call("get_workflow", r#"{"id":"h1"}"#);
    assert!(has_output(&reply.body), "{reply:#?}");

    let run =
        format!(r#"{{"workflow":{FLOW},"inputs":{{"given":{EXACT}}},"id":"m1","wait_ms":60000}}"#);
    let reply = server.reply_to_call("run_workflow", &run);
    assert!(reply.body.contains("m1"), "{reply:#?}");
    drop(server);

    // The next host goes on, and a person answers at the command line.
    let place = &project.place;
    let decision = waiting_decision(place, "m1");
    let sent =
        place.belljar(&["workflow", "command", "m1", "approve", &decision, "--value", EXACT]);
    assert!(sent.status == Some(0) || sent.status == Some(3), "{sent:#?}");
    let resumed = place.belljar(&["workflow", "resume", "m1", "--json"]);
    assert!(has_output(&resumed.stdout), "{resumed:#?}");
    let shown = place.belljar(&["workflow", "show", "m1", "--json"]);
    assert!(has_output(&shown.stdout), "{shown:#?}");
    let inputs = format!(r#""inputs":{{"given":{EXACT}}}"#).replace("1.50", "1.5");
    assert!(compact(&shown.stdout).contains(&inputs), "{shown:#?}");
}

/// The id of the one open decision of a workflow.
fn waiting_decision(place: &Place, id: &str) -> String {
    let shown = place.belljar(&["workflow", "show", id, "--json"]).json();
    shown["decisions"][0]["id"].as_str().unwrap_or_else(|| panic!("{shown:#}")).to_owned()
}

#[sandboxed]
#[test]
fn a8_values_of_a_yaml_agent_are_exact() {
    let place = Place::new();
    let agent = "name: exact\nnodes:\n  - name: a\n    run: |\n      return {'result': state['given'], 'n': state['wide'] + 1}\n\
        state:\n  wide: 18446744073709551616\n";
    place.file("work/agent.yaml", agent);
    let inputs = format!(r#"{{"given":{EXACT},"wide":18446744073709551616}}"#);
    let arguments =
        ["workflow", "run", "agent.yaml", "--enable-code-execution", "--inputs", &inputs, "--json"];
    let ran = place.belljar(&arguments);
    let text = compact(&ran.stdout);
    assert!(has_it(&text) && text.contains(r#""n":18446744073709551617"#), "{ran:#?}");
}
