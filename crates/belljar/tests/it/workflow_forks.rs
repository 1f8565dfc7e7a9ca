//! F3, F6: workflows from checkpoints of others, and what goes when it is over.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    time::Duration,
};

use belljar_contract::Limits;
use belljar_project::{
    ProjectWorkflows, RecordCollector, Retention, SessionRegistry, Sweep, WorkflowOptions, now_ms,
};
use belljar_store::RecordKind;
use belljar_testing::sandboxed;
use belljar_workflow::{WorkflowStore as _, workflow_store::NewWorkflowRow};
use serde_json::{Value, json};

use crate::{
    command::{BELLJAR, block_on},
    ledger_support::{LedgerProject, Transport},
    mcp_support::{serve_in, within},
    workflow_support::WorkflowWatch,
};

/// Effects around changes of files.
const FILES: &str = r#"
settings: {files: true}
tasks:
  - {id: a, tool: ledger:effect, arguments: {key: a}}
  - {id: one, language: bash, code: "echo one > /work/f.txt", depends_on: [a]}
  - {id: two, language: bash, code: "echo two >> /work/f.txt", depends_on: [one]}
  - {id: b, tool: ledger:effect, arguments: {key: b}, depends_on: [two]}
"#;

fn scratch(project: &LedgerProject) -> Vec<String> {
    let path = project.place.path().join(".cache/belljar/workflows");
    let entries = fs::read_dir(path).expect("it was used").flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn ran() -> LedgerProject {
    let project = LedgerProject::new(Transport::Http);
    project.place.file("work/files.yaml", FILES);
    let run = [
        "workflow",
        "run",
        "files.yaml",
        "--id",
        "first",
        "--enable-code-execution",
        "--enable-shell",
    ];
    let ended = project.place.belljar(&run);
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    project
}

#[sandboxed]
#[test]
fn f3_a_fork_goes_on_from_a_checkpoint_and_repeats_nothing() {
    let project = ran();
    let belljar = |arguments: &[&str]| project.place.belljar(arguments);
    let shown = belljar(&["workflow", "show", "first", "--json"]).json();
    let checkpoints = shown["checkpoints"].as_array().unwrap();
    let after = |task: &str| {
        let found = checkpoints.iter().find(|one| one["after"] == task);
        found.unwrap_or_else(|| panic!("{task}: {shown}"))["checkpoint"].to_string()
    };
    let at = after("one");
    let forked = belljar(&["workflow", "fork", "first", "--at", &at, "--id", "second"]);
    assert_eq!((forked.status, &*forked.stdout), (Some(0), "second\n"), "{forked:#?}");
    assert!(forked.stderr.contains("belljar workflow resume second"), "{forked:#?}");
    let watched = WorkflowWatch::of(&project.state());
    assert_eq!(watched.file("second", "f.txt").as_deref(), Some("one\n"), "as it was then");
    // A command that is sent meanwhile is taken first.
    let args = ["workflow", "command", "second", "modify-args", "b", r#"{"key": "other"}"#];
    assert_eq!(belljar(&args).status, Some(0));
    let resumed = belljar(&["workflow", "resume", "second", "--json"]);
    assert_eq!(resumed.json()["status"], json!("completed"), "{resumed:#?}");
    for (key, times) in [("a", 1), ("b", 1), ("other", 1)] {
        assert_eq!(project.count(&format!("did effect {key}")), times, "{key}");
    }
    for id in ["first", "second"] {
        assert_eq!(watched.file(id, "f.txt").as_deref(), Some("one\ntwo\n"), "{id}");
        watched.check_events(id);
    }
    // Without a number, from the last one it could go on from.
    let last = belljar(&["workflow", "fork", "first", "--json"]).json();
    assert_eq!(last["checkpoint"].to_string(), after("two"), "{last}");
    let none = belljar(&["workflow", "fork", "first", "--at", "99999"]);
    assert_eq!(none.status, Some(2), "{none:#?}");
    let end = belljar(&["workflow", "fork", "first", "--at", &after("b")]);
    assert!(end.stderr.contains("had ended at that checkpoint"), "{end:#?}");
    let taken = belljar(&["workflow", "fork", "first", "--id", "second"]);
    assert!(taken.stderr.contains("second exists already"), "{taken:#?}");
}

#[sandboxed]
#[test]
fn f3_what_has_ended_leaves_no_files_behind_and_can_be_deleted() {
    let project = ran();
    assert_eq!(scratch(&project), Vec::<String>::new());
    let belljar = |arguments: &[&str]| project.place.belljar(arguments);
    belljar(&["workflow", "fork", "first", "--id", "open"]);
    let refused = belljar(&["workflow", "delete", "open"]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("belljar workflow command open abort"), "{refused:#?}");
    assert_eq!(belljar(&["workflow", "delete", "first"]).status, Some(0));
    let listed = belljar(&["workflow", "list", "--json"]).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!("open")));
    // A fork of it has its files.
    let resumed = belljar(&["workflow", "resume", "open", "--json"]);
    assert_eq!(resumed.json()["status"], json!("completed"), "{resumed:#?}");
    let watched = WorkflowWatch::of(&project.state());
    assert_eq!(watched.file("open", "f.txt").as_deref(), Some("one\ntwo\n"));
}

/// After a rollback nothing goes on until `continue`, and what was gone back over is out of reach.
#[sandboxed]
#[test]
fn f3_a_workflow_that_was_rolled_back_says_how_it_goes_on_and_where_it_can_go() {
    let project = LedgerProject::new(Transport::Http);
    let tasks = "tasks:\n  - {id: a, tool: ledger:effect, arguments: {key: a}}\n  \
                 - {id: b, tool: ledger:effect, arguments: {key: b}, depends_on: [a]}\n  \
                 - {id: c, tool: ledger:effect, arguments: {key: c}, depends_on: [b]}\n";
    project.place.file("work/three.yaml", tasks);
    let belljar = |arguments: &[&str]| project.place.belljar(arguments);
    let ended = belljar(&["workflow", "run", "three.yaml", "--id", "flow"]);
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    let checkpoints = || {
        let shown = belljar(&["workflow", "show", "flow", "--json"]).json();
        let rows = shown["checkpoints"].as_array().unwrap().iter();
        rows.map(|row| row["checkpoint"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let before = checkpoints();
    let to = before[before.len() - 2];
    let back = belljar(&["workflow", "rollback", "flow", "--to", &to.to_string()]);
    assert!(back.stderr.contains("belljar workflow command flow continue"), "{back:#?}");

    let after = checkpoints();
    for gone in before.iter().filter(|one| **one > to) {
        assert!(!after.contains(gone), "{gone} of {after:?}");
        let refused = belljar(&["workflow", "fork", "flow", "--at", &gone.to_string()]);
        assert_eq!(refused.status, Some(2), "{refused:#?}");
    }
    for one in &after {
        let (at, id) = (one.to_string(), format!("fork-{one}"));
        let forked = belljar(&["workflow", "fork", "flow", "--at", &at, "--id", &id]);
        assert_eq!(forked.status, Some(0), "{one}: {forked:#?}");
    }
    let shown = belljar(&["workflow", "show", "flow"]).stdout;
    let listed = shown.lines().skip_while(|line| !line.starts_with("CHECKPOINT")).skip(1);
    let listed = listed.map_while(|line| line.split_whitespace().next()?.parse().ok());
    assert_eq!(listed.collect::<Vec<u64>>(), after, "{shown}");
    let how = "the workflow is paused; to continue: belljar workflow command flow continue";
    let last = shown.lines().last();
    assert_eq!(last, Some(&*format!("{how}, then belljar workflow resume flow")), "{shown}");

    let mut resumed = project.start(&["workflow", "resume", "flow"], None);
    let mut heard = BufReader::new(resumed.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(heard.any(|line| line == how), "it ended, and said nothing of the pause");
    // The host that runs it takes the command at once.
    let shown = belljar(&["workflow", "show", "flow"]).stdout;
    assert_eq!(shown.lines().last(), Some(how), "{shown}");
    assert_eq!(belljar(&["workflow", "command", "flow", "continue"]).status, Some(0));
    assert!(heard.any(|line| line.ends_with("workflow completed")));
    assert_eq!(resumed.wait().unwrap().code(), Some(0));
}

/// A second workflow of an id is not the first: what the first did, it does itself.
#[sandboxed]
#[test]
fn f3_an_id_that_is_used_again_gets_nothing_of_the_workflow_that_had_it() {
    let project = LedgerProject::new(Transport::Http);
    let text = "tasks:\n  - {id: c, language: typescript, code: 'return mcp.ledger.effect({key: \"c\"})'}\n";
    project.place.file("work/again.yaml", text);
    let belljar = |arguments: &[&str]| project.place.belljar(arguments);
    for times in 1..=2 {
        let run = [
            "workflow",
            "run",
            "again.yaml",
            "--id",
            "same",
            "--enable-code-execution",
            "--enable-shell",
        ];
        let ended = belljar(&run);
        assert_eq!(ended.status, Some(0), "{ended:#?}");
        assert_eq!(project.count("did effect c"), times);
        assert_eq!(belljar(&["workflow", "delete", "same"]).status, Some(0));
    }
}

#[sandboxed]
#[test]
fn f3_workflows_that_ended_long_ago_are_forgotten() {
    let project = ran();
    project.place.belljar(&["workflow", "fork", "first", "--id", "open"]);
    let store = WorkflowWatch::of(&project.state()).store().clone();
    block_on(async {
        let (records, scratch) = (store.project_store(), project.place.path().join("scratch"));
        for (keep, forgotten) in
            [(None, 0), (Some(Duration::from_hours(1)), 0), (Some(Duration::ZERO), 1)]
        {
            let ages = keep.map(|keep| (RecordKind::Workflows, keep)).into_iter().collect();
            let retention = Retention { ages, max_size: None };
            let collector = RecordCollector::new(records.clone(), retention, &scratch);
            let later = now_ms() + 1;
            let would = collector.would_collect(later).await.unwrap();
            let collected = collector.collect(Sweep::Quick, later).await.unwrap();
            let went = collected.removed.get(&RecordKind::Workflows).copied().unwrap_or_default();
            assert_eq!(went.records, forgotten, "{keep:?}");
            assert_eq!(would.removed, collected.removed, "{keep:?}");
        }
        assert!(store.find("first").await.unwrap().is_none());
        assert!(store.find("open").await.unwrap().is_some(), "it has not ended");
    });
}

/// A workflow that a host could not continue is counted and stays its own: nobody takes it for one that a person
/// stopped.
#[sandboxed]
#[test]
fn f3_a_workflow_that_cannot_be_read_is_counted_and_has_an_owner() {
    let project = LedgerProject::new(Transport::Http);
    let store = belljar_store::Store::open(&project.state()).unwrap();
    block_on(async {
        let sandbox =
            belljar_project::Sandbox::builder().program(BELLJAR).pool(1).build().await.unwrap();
        let executor = belljar_project::Executor::new(sandbox, None, Some(store.clone()));
        let sessions = SessionRegistry::new(executor.sandbox().clone(), None).await;
        let options = WorkflowOptions::new(Limits::DEFAULT, project.place.path().join("scratch"));
        let flows = ProjectWorkflows::new(executor.clone(), sessions, options).await.unwrap();
        let new = |id: &str, caller: &str| NewWorkflowRow {
            id: id.to_owned(),
            name: id.to_owned(),
            caller: caller.to_owned(),
            snapshot: b"no machine".to_vec(),
            created_ms: 1,
        };
        store.create_workflow(new("stopped", "cli")).await.unwrap();
        store.create_workflow(new("broken", "client")).await.unwrap();
        let row = async |id: &str| store.workflow(id).await.unwrap().unwrap();
        // A look may find it still under way.
        while row("broken").await.fruitless_attempts < 3 {
            flows.drive_due().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        flows.stop().await;
        let broken = row("broken").await;
        let here = format!("{}:", std::process::id());
        assert!(broken.owner.starts_with(&here) && broken.lease_until_ms == 0, "{broken:?}");
        assert_eq!(row("stopped").await.fruitless_attempts, 0, "a person stopped it");
        executor.shutdown().await;
    });
}

#[sandboxed]
#[test]
fn e3_workflows_are_forked_and_forgotten_over_http() {
    let project = LedgerProject::new(Transport::Http);
    let server = serve_in(&project.place, &[]);
    let effect = |id: &str, on: &[&str]| json!({"id": id, "tool": "ledger:effect", "arguments": {"key": id}, "depends_on": on});
    let workflow = json!({"tasks": [effect("a", &[]), effect("b", &["a"])]});
    let asked = json!({"workflow": workflow, "id": "first", "wait_ms": 60_000});
    let ended = server.ask("POST /v1/workflows", &asked);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let fork = json!({"id": "second", "paused": true});
    server.ask("POST /v1/workflows/first/fork", &fork);
    let paused = within("a pause", || {
        let state = server.ask("GET /v1/workflows/second", &Value::Null);
        (state["status"] == "paused").then_some(state)
    });
    assert_eq!(project.count("did effect b"), 1, "{paused:#}");
    // Also from before it began.
    server.ask("POST /v1/workflows/first/fork", &json!({"id": "anew", "at": 0, "paused": true}));
    within("a pause", || {
        let state = server.ask("GET /v1/workflows/anew", &Value::Null);
        (state["status"] == "paused").then_some(())
    });
    assert_eq!(project.count("did effect a"), 1);
    let running = server.api("DELETE /v1/workflows/second", "");
    assert_eq!(running.status, 409, "{running:#?}");
    assert!(running.body.contains("\"code\":\"workflow.not_over\""), "{running:#?}");
    let command = |command: Value| server.ask("POST /v1/workflows/second/commands", &command);
    command(json!({"command": "continue"}));
    let ended = server.ask("GET /v1/workflows/second?wait_ms=60000", &Value::Null);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!((project.count("did effect a"), project.count("did effect b")), (1, 2));

    let late = server.api("POST /v1/workflows/first/fork", r#"{"at": 77}"#);
    assert_eq!(late.status, 422, "{late:#?}");
    assert_eq!(server.api("POST /v1/workflows/none/fork", "").status, 404);
    assert_eq!(server.api("DELETE /v1/workflows/second", "").status, 204);
    assert_eq!(server.api("GET /v1/workflows/second", "").status, 404);
    assert_eq!(server.api("GET /v1/workflows/first", "").status, 200);
}
