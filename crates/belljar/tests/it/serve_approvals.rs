//! Approvals as clients of `belljar serve` meet them: asked in the client where it can ask, decided
//! in a terminal otherwise, and waited for across restarts of the server.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    clients::{Client, LANGCHAIN, MCP_1, MCP_2, MCP_2_LEGACY, OPENAI_AGENTS, SDK},
    mcp_support::Project,
};

/// The counting server, which has to ask about some lines.
const RULES: &str = "ask = [{ tool = \"counting__append\", when = { text = \"asked*\" } }]
allow = [\"*\"]";
const CODE: &str = "await mcp.counting.append({ text: 'first' });
const { appended } = await mcp.counting.append({ text: 'asked' });
await mcp.counting.append({ text: 'last' });
return appended";

/// A project that has seen its server's tools before.
fn project() -> Project {
    let project = Project::new(&["counting"], RULES);
    assert_eq!(project.belljar(&["tools", "list"]).status, Some(0));
    project
}

fn assert_denied(run: &Value) {
    assert_eq!(run["status"], "failed", "{run:#}");
    assert_eq!(run["error"]["type"], "PermissionError", "{run:#}");
    assert_eq!(run["error"]["code"], "approval.denied", "{run:#}");
    assert_eq!(run["error"]["toolName"], "counting__append", "{run:#}");
}

/// A person at the client says yes, then no.
fn decided_in(client: Client, over_http: bool) {
    let project = project();
    let serving = over_http.then(|| project.serve(&[]));
    let ask =
        |verdict| client.ask(&project, serving.as_ref(), &["--decide", verdict, "--code", CODE]);
    let approved = ask("approve");
    assert_eq!(approved["isError"], false, "{approved:#}");
    assert_eq!(approved["structured"]["result"], "asked", "{approved:#}");
    assert_eq!(project.counted(), ["first", "asked", "last"]);

    let denied = ask("deny");
    assert_eq!(denied["isError"], true, "{denied:#}");
    assert_denied(&denied["structured"]);
    assert_eq!(project.counted(), ["first", "asked", "last", "first"]);
    let audit = project.belljar(&["audit", "--json"]).stdout;
    assert!(audit.contains("mcp over"), "{audit}");
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_python_mcp_1_over_stdio() {
    decided_in(MCP_1, false);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_python_mcp_1_over_http() {
    decided_in(MCP_1, true);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_python_mcp_2_over_stdio() {
    decided_in(MCP_2, false);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_python_mcp_2_over_http() {
    decided_in(MCP_2, true);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_python_mcp_2_legacy_over_stdio() {
    decided_in(MCP_2_LEGACY, false);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_python_mcp_2_legacy_over_http() {
    decided_in(MCP_2_LEGACY, true);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_the_typescript_sdk_over_stdio() {
    decided_in(SDK, false);
}

#[sandboxed]
#[test]
fn e2_elicitation_decides_in_the_typescript_sdk_over_http() {
    decided_in(SDK, true);
}

/// D7: a person at the client says yes for the run, and is asked once. Gives the client's answer.
fn decided_for_the_run_in(client: Client) -> Value {
    let project = project();
    let code = "for (const n of [1, 2, 3]) await mcp.counting.append({ text: `asked${n}` });
return 'all'";
    let ask = |verdict| client.ask(&project, None, &["--decide", verdict, "--code", code]);
    let approved = ask("run");
    assert_eq!(approved["structured"]["result"], "all", "{approved:#}");
    assert_eq!(project.counted(), ["asked1", "asked2", "asked3"]);
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(history.as_array().map(Vec::len), Some(1), "{history:#}");
    assert_eq!(history[0]["for"], "run", "{history:#}");
    // The file asks, so a yes for good is not offered, and one that a client sends anyway is none.
    let refused = ask("always");
    assert_eq!(refused["structured"]["status"], "approval_required", "{refused:#}");
    assert_eq!(project.counted().len(), 3);
    assert_eq!(project.belljar(&["approvals", "rules", "--json"]).json()["rules"], json!([]));
    approved
}

/// The one form that the client was shown, with each choice spelled out.
fn assert_form(answer: &Value) {
    let forms = answer["forms"].as_array().expect("it says which forms it was shown");
    let [form] = forms.as_slice() else { panic!("asked {} times: {answer:#}", forms.len()) };
    let message = form["message"].as_str().unwrap_or_default();
    assert!(message.contains("Allow the call of counting__append"), "{form:#}");
    let choices = form["requestedSchema"]["properties"]["decision"].to_string();
    for words in ["\"once\"", "\"run\"", "\"deny\"", "with any arguments"] {
        assert!(choices.contains(words), "{words}: {form:#}");
    }
    assert!(!choices.contains("\"always\""), "the file asks: {form:#}");
}

#[sandboxed]
#[test]
fn d7_a_yes_for_the_run_is_given_in_python_mcp_1() {
    decided_for_the_run_in(MCP_1);
}

#[sandboxed]
#[test]
fn d7_a_yes_for_the_run_is_given_in_the_typescript_sdk() {
    assert_form(&decided_for_the_run_in(SDK));
}

#[sandboxed]
#[test]
fn d7_a_yes_for_the_run_is_given_in_langchain() {
    assert_form(&decided_for_the_run_in(LANGCHAIN));
}

/// The Agents SDK of OpenAI (0.24) gives its sessions no callback for questions, so its model is told which
/// command decides, and asks for the result afterwards.
#[sandboxed]
#[test]
fn d7_openai_agents_cannot_ask_and_names_the_command() {
    let project = project();
    let waiting = OPENAI_AGENTS.ask(&project, None, &["--code", CODE]);
    let (run, approval) = parked(&waiting["structured"]);
    let command = format!("belljar approvals approve {approval}");
    assert!(waiting["structured"]["message"].to_string().contains(&command), "{waiting:#}");
    assert_eq!(project.belljar(&["approvals", "approve", &approval]).status, Some(0));
    let ended = OPENAI_AGENTS.ask(&project, None, &["--run", &run]);
    assert_eq!(ended["structured"]["result"], "asked", "{ended:#}");
    assert_eq!(project.counted(), ["first", "asked", "last"]);
}

#[sandboxed]
#[test]
fn d7_a_yes_for_the_run_is_given_in_python_mcp_2() {
    decided_for_the_run_in(MCP_2_LEGACY);
}

/// The id of the run and of the approval it waits for.
fn parked(answer: &Value) -> (String, String) {
    assert_eq!(answer["status"], "approval_required", "{answer:#}");
    assert_eq!(answer["approval"]["tool"], "counting__append", "{answer:#}");
    assert_eq!(answer["approval"]["arguments"], json!({ "text": "asked" }), "{answer:#}");
    assert_eq!(answer["approval"]["line"], 2, "{answer:#}");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (text(&answer["run_id"]), text(&answer["approval"]["id"]))
}

#[sandboxed]
#[test]
fn d7_a_client_that_cannot_ask_waits_for_the_terminal() {
    let project = project();
    let serving = project.serve(&[]);
    let (run, approval) = parked(&serving.execute(CODE));
    assert_eq!(parked(&serving.look(&run)), (run.clone(), approval.clone()));
    assert_eq!(project.counted(), ["first"]);
    let listed = project.belljar(&["approvals", "--json"]).json();
    assert_eq!(listed[0]["id"], approval.as_str(), "{listed:#}");
    let approved = project.belljar(&["approvals", "approve", &approval]);
    assert_eq!(approved.status, Some(0), "{approved:#?}");
    let ended = serving.get_run(&run);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(ended["result"], "asked", "{ended:#}");
    assert_eq!(project.counted(), ["first", "asked", "last"]);

    let (run, approval) = parked(&serving.execute(CODE));
    project.belljar(&["approvals", "deny", &approval]);
    assert_denied(&serving.get_run(&run));
}

#[sandboxed]
#[test]
fn d7_an_approval_that_nobody_gives_expires_as_denied() {
    let rules = format!("approval_timeout = \"1s\"\n{RULES}");
    let project = Project::new(&["counting"], &rules);
    let serving = project.serve(&[]);
    let (run, _) = parked(&serving.execute(CODE));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let ended = serving.get_run(&run);
    assert_eq!(ended["error"]["code"], "approval.expired", "{ended:#}");
    assert_eq!(ended["error"]["type"], "PermissionError", "{ended:#}");
    assert_eq!(project.counted(), ["first"]);
}

#[sandboxed]
#[test]
fn d8_a_run_that_waits_survives_the_death_of_its_server() {
    let project = project();
    let serving = project.serve(&[]);
    let (run, approval) = parked(&serving.execute(CODE));
    serving.kill();
    project.assert_no_processes();

    let serving = project.serve(&[]);
    assert_eq!(parked(&serving.look(&run)), (run.clone(), approval.clone()));
    project.belljar(&["approvals", "approve", &approval]);
    let ended = serving.get_run(&run);
    assert_eq!(ended["result"], "asked", "{ended:#}");
    assert_eq!(project.counted(), ["first", "asked", "last"]);
    assert_eq!(serving.get_run(&run)["result"], "asked");
}

#[sandboxed]
#[test]
fn d8_the_first_run_of_a_project_that_waits_survives_too() {
    let project = Project::new(&["counting"], RULES);
    let serving = project.serve(&[]);
    let (run, approval) = parked(&serving.execute(CODE));
    serving.kill();
    project.belljar(&["approvals", "approve", &approval]);
    let ended = project.serve(&[]).get_run(&run);
    assert_eq!(ended["result"], "asked", "{ended:#}");
}

#[sandboxed]
#[test]
fn d8_a_run_that_was_approved_while_there_was_no_server_goes_on() {
    for ends_gently in [false, true] {
        let project = project();
        let serving = project.serve(&[]);
        let (run, approval) = parked(&serving.execute(CODE));
        if ends_gently {
            serving.stop();
        } else {
            serving.kill();
        }
        project.belljar(&["approvals", "approve", &approval]);
        let ended = project.serve(&[]).get_run(&run);
        assert_eq!(ended["result"], "asked", "{ended:#}");
        assert_eq!(project.counted(), ["first", "asked", "last"]);
    }
}

#[sandboxed]
#[test]
fn d8_a_run_whose_server_is_gone_goes_on_in_a_terminal() {
    let project = project();
    let serving = project.serve(&[]);
    let (run, approval) = parked(&serving.execute(CODE));
    serving.kill();
    project.belljar(&["approvals", "approve", &approval]);
    let ended = project.belljar(&["resume", &run, "--json"]).json();
    assert_eq!(ended["result"], "asked", "{ended:#}");
    assert_eq!(project.counted(), ["first", "asked", "last"]);
    // Nothing is left to do for a server that comes later.
    assert_eq!(project.serve(&[]).get_run(&run)["result"], "asked");
    assert_eq!(project.counted(), ["first", "asked", "last"]);
}

/// The server dies while a person is being asked; they answer in a later session.
fn decided_after_restart(client: Client) {
    let project = project();
    let serving = project.serve(&[]);
    let asked = client.ask(&project, Some(&serving), &["--decide", "close", "--code", CODE]);
    let (run, _) = parked(&asked["structured"]);
    serving.kill();
    let serving = project.serve(&[]);
    let ended = client.ask(&project, Some(&serving), &["--decide", "approve", "--run", &run]);
    assert_eq!(ended["structured"]["result"], "asked", "{ended:#}");
    assert_eq!(project.counted(), ["first", "asked", "last"]);
}

#[sandboxed]
#[test]
fn d8_elicitation_decides_after_a_restart_in_python_mcp_1() {
    decided_after_restart(MCP_1);
}

#[sandboxed]
#[test]
fn d8_elicitation_decides_after_a_restart_in_python_mcp_2() {
    decided_after_restart(MCP_2);
}
