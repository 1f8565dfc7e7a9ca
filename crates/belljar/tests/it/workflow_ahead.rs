//! F7: what runs ahead of a decision, through the real performer; and what code tasks are not given.

use std::{fs, process::Child};

use belljar_contract::{RunStatus, WorkflowStatus};
use belljar_testing::sandboxed;
use belljar_workflow::{WorkflowCommand, WorkflowEventKind};
use serde_json::{Value, json};

use crate::{
    command::{Place, block_on, outcome},
    ledger_support::{LedgerProject, Transport},
    workflow_support::WorkflowWatch,
};

/// A person is asked; a tool that only reads, one that does not, code with calls and code with files
/// would all rather not wait.
const AHEAD: &str = r#"
name: ahead
tasks:
  - {id: ok, message: go on?, by: human}
  - {id: look, tool: ledger:safe, arguments: {key: look}, speculate: true, depends_on: [ok]}
  - {id: act, tool: ledger:effect, arguments: {key: act}, speculate: true, depends_on: [ok]}
  - id: calls
    language: javascript
    code: |
      const one = await mcp.ledger.safe({ key: 'inner' });
      const denied = await tools.call('ledger__effect', { key: 'sneak' }).then(() => '', (e) => e.code);
      return { one: one.done, denied };
    speculate: true
    depends_on: [ok]
  - id: file
    language: bash
    code: echo ahead > /work/a.txt
    files: true
    speculate: true
    depends_on: [ok]
"#;

/// A workflow whose person has not decided, and all that may run ahead has done so.
struct Ahead {
    project: LedgerProject,
    watched: WorkflowWatch,
}

impl Ahead {
    fn start() -> (Self, Child) {
        let project = LedgerProject::with(Transport::Http, "allow = [\"ledger__*\"]");
        let path = project.place.path().join("work/belljar.toml");
        let said = fs::read_to_string(&path).unwrap();
        let said = said.replace("idempotent =", "read_only = [\"safe\"]\nidempotent =");
        fs::write(&path, said).unwrap();
        project.place.file("work/ahead.yaml", AHEAD);
        let run = [
            "workflow",
            "run",
            "ahead.yaml",
            "--id",
            "ahead",
            "--enable-code-execution",
            "--enable-shell",
        ];
        let host = project.start(&[&run[..], &["--json"]].concat(), None);
        project.until_line("answered safe look");
        project.until_line("answered safe inner");
        let store = project.store();
        project.until("the end of what runs ahead", || {
            let runs = block_on(store.runs(100, None)).unwrap();
            let ended = |run: &&belljar_store::RunSummary| {
                run.id.ends_with("_ahead") && run.status != RunStatus::Running
            };
            (runs.iter().filter(ended).count() == 2).then_some(())
        });
        let ahead = Self { watched: WorkflowWatch::of(&project.state()), project };
        ahead.project.until("a refusal", || ahead.is("act", Fate::Dropped).then_some(()));
        (ahead, host)
    }

    fn is(&self, task: &str, fate: Fate) -> bool {
        let task = task.to_owned();
        let happened = match fate {
            Fate::Adopted => WorkflowEventKind::SpeculationAdopted { task },
            Fate::Dropped => WorkflowEventKind::SpeculationDropped { task },
        };
        self.watched.events("ahead").iter().any(|event| event.happened == happened)
    }

    /// How the workflow ended after this.
    fn decided(&self, host: Child, command: impl Fn(String) -> WorkflowCommand) -> Value {
        let decision = self.watched.decisions("ahead").pop().expect("it is open");
        self.watched.send("ahead", &command(decision.id));
        outcome(host.wait_with_output().unwrap()).json()
    }
}

#[derive(Clone, Copy)]
enum Fate {
    Adopted,
    Dropped,
}

#[sandboxed]
#[test]
fn f7_what_ran_ahead_is_adopted_without_a_second_call() {
    let (ahead, host) = Ahead::start();
    // Nothing of it is to be seen before somebody has said yes.
    assert_eq!(ahead.watched.file("ahead", "a.txt"), None);
    assert_eq!(ahead.project.count("asked effect act"), 0, "it is not a tool that only reads");
    let ended = ahead.decided(host, |decision| WorkflowCommand::Approve { decision, value: None });
    assert_eq!(ended["status"], json!("completed"), "{ended}");
    for task in ["look", "calls", "file"] {
        assert!(ahead.is(task, Fate::Adopted), "{task}");
    }
    for (line, times) in [
        ("did safe look", 1),
        ("did safe inner", 1),
        ("did effect act", 1),
        ("asked effect sneak", 0),
    ] {
        assert_eq!(ahead.project.count(line), times, "{line}: {:?}", ahead.project.lines());
    }
    assert_eq!(ended["results"]["look"], json!({"done": "look"}));
    assert_eq!(ended["results"]["calls"]["one"], json!("inner"));
    assert_eq!(ended["results"]["calls"]["denied"], json!("permission.tool"));
    assert_eq!(ahead.watched.file("ahead", "a.txt").as_deref(), Some("ahead\n"));
    assert!(!ahead.is("act", Fate::Adopted));
}

#[sandboxed]
#[test]
fn f7_what_ran_ahead_in_vain_vanishes() {
    let (ahead, host) = Ahead::start();
    let ended = ahead.decided(host, |decision| WorkflowCommand::Reject { decision, reason: None });
    assert_eq!(ended["status"], json!("failed"), "{ended}");
    for task in ["look", "act", "calls", "file"] {
        assert!(ahead.is(task, Fate::Dropped), "{task}");
        assert!(ended["results"].get(task).is_none_or(Value::is_null), "{task}: {ended}");
    }
    let machine = ahead.watched.machine("ahead");
    assert_eq!((machine.status(), machine.files().len()), (WorkflowStatus::Failed, 0));
    for key in ["act", "sneak"] {
        assert_eq!(ahead.project.count(&format!("asked effect {key}")), 0, "{key}");
    }
}

/// A file gets the grants it asks for only if the operator allowed them when the workflow was made.
#[sandboxed]
#[test]
fn f1_code_is_given_no_paths_and_variables_but_what_the_operator_allowed() {
    let place = Place::new();
    let open = place.file("data/open/open.txt", "open");
    let secret = place.file("data/secret.txt", "secret");
    let (open, secret) = (open.to_str().unwrap(), secret.to_str().unwrap());
    let directory = place.path().join("data/open");
    let directory = directory.to_str().unwrap();
    let around = format!("{directory}/../secret.txt");
    let run = |grants: Value, code: &str, flags: &[&str]| {
        let task = json!({"id": "a", "language": "python", "code": code, "grants": grants});
        place.file("work/grants.json", json!({"tasks": [task]}).to_string());
        let run = [
            "workflow",
            "run",
            "grants.json",
            "--enable-code-execution",
            "--enable-shell",
            "--json",
        ];
        let ended = place.belljar(&[&run[..], flags].concat()).json();
        (ended["results"]["a"].clone(), ended["failure"]["code"].clone())
    };
    let read = |path: &str| format!("return open({path:?}).read()");
    let denied = (Value::Null, json!("permission.denied"));
    let reads = |path: &str, flags: &[&str]| run(json!({"read": [path]}), &read(path), flags);
    assert_eq!(reads(open, &["--read", directory]), (json!("open"), Value::Null));
    assert_eq!(reads(open, &[]), denied);
    assert_eq!(reads(secret, &["--read", directory]), denied);
    assert_eq!(reads(&around, &["--read", directory]), denied);
    // Nor is it there for code that does not ask.
    let (result, code) = run(json!({}), &read(secret), &["--read", directory]);
    assert_eq!((&result, code.is_null()), (&Value::Null, false));

    let token = "import os\nreturn os.environ.get('TOKEN', 'none')";
    let asks = json!({"env": ["TOKEN"]});
    assert_eq!(run(asks.clone(), token, &["--env", "TOKEN=abc"]), (json!("abc"), Value::Null));
    assert_eq!(run(asks.clone(), token, &[]), denied);
    assert_eq!(run(asks, token, &["--env", "OTHER=abc"]), denied);
    let silent = run(json!({}), token, &["--env", "TOKEN=abc"]);
    assert_eq!(silent, (json!("none"), Value::Null));
}
