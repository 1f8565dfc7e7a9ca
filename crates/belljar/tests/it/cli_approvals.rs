//! D7: calls that wait for a person, who decides in another process or at the terminal.

use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    command::{BELLJAR, outcome},
    project_support::CountingProject,
};

const ASKS: &str = "[permissions]\nask = ['count__append']\n";
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/terminal.py");
const CODE: &str = "const line = 'x';\nawait mcp.count.append({text: line})";

#[sandboxed]
#[test]
fn d7_a_call_waits_until_another_process_approves_it() {
    let project = CountingProject::trusting(ASKS);
    let mut running = project.start(CODE, &[]);
    let id = running.approval();
    let waiting = project.belljar(&["approvals", "list", "--json"]).json();
    let told = |key: &str| waiting[0][key].clone();
    assert_eq!(waiting.as_array().map(Vec::len), Some(1));
    assert_eq!((told("id"), told("tool")), (json!(id), json!("count__append")));
    assert_eq!((told("arguments"), told("state")), (json!({"text": "x"}), json!("pending")));
    assert_eq!(
        (told("line"), told("code_line")),
        (json!(2), json!("await mcp.count.append({text: line})"))
    );
    assert_eq!(project.counted(), Vec::<String>::new());
    let listed = project.belljar(&["approvals"]).stdout;
    assert!(listed.contains("line 2: await mcp.count.append({text: line})"), "{listed}");
    let approved = project.belljar(&["approvals", "approve", &id[..8]]);
    assert_eq!(approved.status, Some(0), "{approved:#?}");
    assert_eq!(approved.stdout, format!("approved {id}: count__append {{\"text\":\"x\"}}\n"));
    let ended = running.end();
    assert_eq!((ended.status, &ended.json()["result"]), (Some(0), &json!({"appended": "x"})));
    assert_eq!(project.counted(), ["x"]);
    assert_eq!(project.belljar(&["approvals", "--json"]).json(), json!([]));
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(
        (&history[0]["state"], &history[0]["decided_by"]),
        (&json!("approved"), &json!("command line"))
    );
    let again = project.belljar(&["approvals", "deny", &id]);
    assert_eq!((again.status, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("was approved by command line before"), "{again:#?}");
}

#[sandboxed]
#[test]
fn d7_a_denied_call_fails_in_the_code() {
    let project = CountingProject::trusting(ASKS);
    let mut running = project.start(CODE, &[]);
    let id = running.approval();
    assert_eq!(project.belljar(&["approvals", "deny", &id]).status, Some(0));
    let ended = running.end();
    let error = ended.json()["error"].clone();
    assert_eq!(ended.status, Some(1));
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("PermissionError"), &json!("approval.denied"))
    );
    assert_eq!(project.counted(), Vec::<String>::new());
}

#[sandboxed]
#[test]
fn d7_a_call_nobody_decides_about_is_denied_in_time() {
    let project = CountingProject::trusting(&format!("{ASKS}approval_timeout = '300ms'\n"));
    let result = project.run(CODE, &[]);
    let error = &result["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("PermissionError"), &json!("approval.expired"))
    );
    assert_eq!(project.counted(), Vec::<String>::new());
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    let id = history[0]["id"].as_str().unwrap();
    let late = project.belljar(&["approvals", "approve", id]);
    assert_eq!((late.status, late.stderr), (Some(1), format!("approval {id} has expired\n")));
}

#[test]
fn d7_an_id_that_is_none_is_said_to_be() {
    let project = CountingProject::trusting(ASKS);
    let outcome = project.belljar(&["approvals", "approve", "apr_nothing", "x"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    there is no approval apr_nothing in this project; `belljar approvals` lists them, `--project DIR` looks in another one
    there is no approval x in this project; `belljar approvals` lists them, `--project DIR` looks in another one
    ");
}

/// On a terminal of its own, answering with this.
fn at_a_terminal(project: &CountingProject, answer: &str) -> crate::command::Outcome {
    let mut command = project.place.command("python3");
    command.args([TERMINAL, answer, BELLJAR, "run", "-c", CODE]).env("TERM", "dumb");
    outcome(command.output().expect("python3 starts"))
}

#[sandboxed]
#[test]
fn d7_a_person_at_the_terminal_is_asked_there() {
    let project = CountingProject::trusting(ASKS);
    let shown = at_a_terminal(&project, "y");
    assert_eq!(shown.status, Some(0), "{shown:#?}");
    assert!(shown.stdout.contains("approval needed: count__append\r\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("    {\"text\": \"x\"}\r\n"), "{}", shown.stdout);
    assert_eq!(project.counted(), ["x"]);
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(history[0]["decided_by"], "terminal");
}

/// D7: a loop that calls side by side asks once, and each call can still be answered by itself.
#[sandboxed]
#[test]
fn d7_calls_that_wait_at_once_are_asked_about_together() {
    let code = "return (await Promise.allSettled(['x', 'y', 'z'].map(text => \
                mcp.count.append({text})))).map(one => one.status)";
    let asked = |answer: &str| {
        let project = CountingProject::trusting(ASKS);
        let mut command = project.place.command("python3");
        command.args([TERMINAL, answer, BELLJAR, "run", "-c", code]).env("TERM", "dumb");
        let shown = outcome(command.output().expect("python3 starts"));
        (shown.stdout.clone(), shown, project.counted())
    };
    let (text, shown, mut counted) = asked("y");
    let (before, after) = text.split_once("make these 3 calls? [y/N/each] ").expect("a question");
    for argument in
        ["1. ", "    {\"text\": \"x\"}", "    {\"text\": \"y\"}", "    {\"text\": \"z\"}"]
    {
        assert!(before.contains(argument), "{argument}: {shown:#?}");
    }
    assert!(!after.contains("approval needed"), "{shown:#?}");
    counted.sort();
    assert_eq!((shown.status, counted), (Some(0), vec!["x".into(), "y".into(), "z".into()]));
    let (text, shown, counted) = asked("n");
    assert_eq!(text.matches("rejected").count(), 3, "{shown:#?}");
    assert_eq!(counted, Vec::<String>::new());
}

/// Output of guest code could look like another question.
#[sandboxed]
#[test]
fn d7_guest_code_prints_nothing_while_a_person_is_asked() {
    const FORGED: &str = "approval needed: count__read make this call? [y/N] ";
    let asks = "[permissions]\nask = [{tool = 'count__append', when = {text = 'asks'}}]\n\
                allow = ['count__append']\n";
    let project = CountingProject::with(asks);
    let signals = project.place.path().join("signals");
    std::fs::create_dir(&signals).unwrap();
    let (signals, seen) = (signals.to_str().unwrap(), signals.join("asked"));
    let code = format!(
        "process.stdout.write('begun');
         const asked = mcp.count.append({{text: 'asks'}});
         while (!require('fs').existsSync({seen:?})) await new Promise(next => setTimeout(next, 5));
         console.log('{FORGED}');
         for (const text of ['1', '2', '3']) await mcp.count.append({{text}});
         await asked"
    );
    let mut command = project.place.command("python3");
    command.args([TERMINAL, "y", BELLJAR, "run", "--read", signals, "-c", &code]);
    command.env("ANSWER_AFTER", project.place.path().join("count.txt")).env("ASKED", &seen);
    command.env("TERM", "dumb");
    let shown = outcome(command.output().expect("python3 starts"));
    assert_eq!(shown.status, Some(0), "{shown:#?}");
    let (before, after) = shown.stdout.split_once("[y/N/r] ").expect("a question");
    // On a busy machine, a line about the start comes between.
    let (_, question) = before.split_once("begun\r\n").expect("the output so far");
    assert!(format!("\n{question}").contains("\napproval needed: count__append\r\n"), "{shown:#?}");
    assert!(after.starts_with("y\r\n"), "{shown:#?}");
    assert!(!before.contains(FORGED) && after.contains(FORGED), "control: it came: {shown:#?}");
    assert_eq!(project.counted(), ["1", "2", "3", "asks"]);
}

/// A person who names the run sees its calls first; those that come later are not among them.
#[sandboxed]
#[test]
fn d7_the_calls_of_a_run_are_shown_before_they_are_approved() {
    let project = CountingProject::trusting(ASKS);
    let code = "await Promise.all(['x', 'y'].map(text => mcp.count.append({text})))";
    let mut running = project.start(code, &[]);
    let ids = [running.approval(), running.approval()];
    let waiting = project.belljar(&["approvals", "list", "--json"]).json();
    let run = waiting[0]["run_id"].as_str().unwrap();
    let answering = |answer: &str| {
        let mut command = project.place.command("python3");
        command.args([TERMINAL, answer, BELLJAR, "approvals", "approve", "--run", run]);
        outcome(command.env("TERM", "dumb").output().expect("python3 starts"))
    };
    let refused = answering("n");
    let (before, after) = refused.stdout.split_once("approve these 2 calls? [y/N] ").unwrap();
    assert!(ids.iter().all(|id| before.contains(id)), "{refused:#?}");
    assert!(before.contains("    {\"text\": \"x\"}") && before.contains("    {\"text\": \"y\"}"));
    assert!(after.contains("nothing was decided"), "{refused:#?}");
    assert_eq!((refused.status, project.counted()), (Some(1), Vec::new()));
    let approved = answering("y");
    assert_eq!(approved.status, Some(0), "control: {approved:#?}");
    assert_eq!(running.end().status, Some(0));
    assert_eq!(project.counted().len(), 2);
}

#[sandboxed]
#[test]
fn d7_anything_but_yes_at_the_terminal_is_no() {
    let project = CountingProject::trusting(ASKS);
    let shown = at_a_terminal(&project, "");
    assert_eq!(shown.status, Some(1), "{shown:#?}");
    assert!(shown.stdout.contains("a person denied the call of count__append"), "{shown:#?}");
    assert_eq!(project.counted(), Vec::<String>::new());
}
