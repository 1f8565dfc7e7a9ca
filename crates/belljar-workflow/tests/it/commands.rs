//! Every command while tasks run, twice, after the end, and to nobody (F5).

use std::{sync::Arc, time::Duration};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, exact_json};
use belljar_workflow::{
    DoubtResolution, Driver, DriverOptions, LeaveReason, SqliteWorkflowStore, WorkflowCommand,
    WorkflowError, WorkflowEventKind, WorkflowStoreError, Workflows,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::world::{World, create, dag, driver, events, options, store, tool};

fn every_command() -> Vec<(&'static str, WorkflowCommand)> {
    let task = belljar_contract::json_value::from_value(tool("extra", "pay", &["a"])).unwrap();
    let other = belljar_contract::json_value::from_value(tool("other", "pay", &["a"])).unwrap();
    let id = || "nothing".to_owned();
    vec![
        ("pause", WorkflowCommand::Pause),
        ("continue", WorkflowCommand::Continue),
        ("inject", WorkflowCommand::InjectTasks { tasks: vec![task] }),
        ("replan", WorkflowCommand::Replan { tasks: vec![other], reason: None }),
        ("skip", WorkflowCommand::Skip { task: "b".to_owned() }),
        (
            "modify_args",
            WorkflowCommand::ModifyArgs { task: "b".to_owned(), arguments: JsonMap::new() },
        ),
        ("approve", WorkflowCommand::Approve { decision: id(), value: None }),
        ("reject", WorkflowCommand::Reject { decision: id(), reason: None }),
        ("modify", WorkflowCommand::Modify { decision: id(), arguments: None, value: None }),
        ("resolve", WorkflowCommand::Resolve { task: id(), how: DoubtResolution::Retry }),
        ("roll back", WorkflowCommand::RollBack { to: 77 }),
        ("abort", WorkflowCommand::Abort { reason: Some("enough".to_owned()) }),
    ]
}

async fn answers(
    flows: &Workflows<SqliteWorkflowStore>,
    suffix: &str,
) -> Vec<(&'static str, Option<String>)> {
    let mut answers = Vec::new();
    for (name, _) in every_command() {
        let id = format!("{name}{suffix}");
        let answer = flows.answer("flow", &id, Duration::from_secs(20)).await.unwrap();
        answers.push((name, answer.expect(&id).refused));
    }
    answers
}

#[tokio::test]
async fn f5_every_command_is_answered_while_running_twice_and_after_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks = exact_json!([tool("a", "slow_pay", &[]), tool("b", "pay", &["a"])]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let (driver, stop) = (driver(&store, &world, "me"), CancellationToken::new());
    let (driven, while_running) = tokio::join!(driver.run("flow", &stop), async {
        world.began().await;
        for (name, command) in every_command() {
            for repeated in [false, true] {
                let sent = flows.send("flow", name, "test", &command, 1).await.unwrap();
                assert_eq!(sent.repeated, repeated, "{name}");
            }
        }
        answers(&flows, "").await
    });
    let driven = driven.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Aborted));
    let accepted = ["pause", "continue", "inject", "replan", "abort"];
    for (name, refused) in &while_running {
        if accepted.contains(name) {
            assert_eq!(*refused, None, "{name}");
        }
        if ["approve", "reject", "modify", "resolve", "roll back"].contains(name) {
            assert!(refused.is_some(), "{name}");
        }
    }
    for (name, command) in every_command() {
        flows.send("flow", &format!("{name} late"), "test", &command, 1).await.unwrap();
    }
    let late = driver.run("flow", &stop).await.unwrap();
    assert_eq!((late.reason, late.status), (LeaveReason::Ended, WorkflowStatus::Aborted));
    for (name, refused) in answers(&flows, " late").await {
        assert!(refused.is_some(), "{name} after the end");
    }
    // The first answers stay.
    assert_eq!(answers(&flows, "").await, while_running);
    assert_eq!(world.done(), []);
    events(&flows, "flow").await;
}

#[tokio::test]
async fn f5_a_command_to_nobody_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let flows = Workflows::new(store(directory.path()));
    for (name, command) in every_command() {
        let refused = flows.send("none", name, "test", &command, 1).await;
        let unknown = matches!(&refused, Err(WorkflowError::Store(WorkflowStoreError::Unknown(_))));
        assert!(unknown, "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn f5_what_is_no_command_is_answered_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let flows = create(&store, "flow", dag(exact_json!([tool("a", "pay", &[])]))).await;
    let (id, sender, body) = ("x".to_owned(), "test".to_owned(), b"{\"command\":\"fly\"}".to_vec());
    let odd =
        belljar_workflow::workflow_store::QueuedCommand { seq: 0, id, sender, at_ms: 1, body };
    belljar_workflow::WorkflowStore::send(&*store, "flow", odd).await.unwrap();
    let world = Arc::new(World::default());
    let driven = driver(&store, &world, "me").run("flow", &CancellationToken::new()).await;
    assert_eq!(driven.unwrap().status, WorkflowStatus::Completed);
    let answer = flows.answer("flow", "x", Duration::ZERO).await.unwrap().unwrap();
    assert!(answer.refused.unwrap().contains("not a valid command"));
}

/// A workflow whose host dies while `a` is under way, and what the next host begins, with these
/// commands sent in between.
/// The directory has the store's file: without it nothing can be asked of the store any more.
async fn after_a_crash(
    commands: &[WorkflowCommand],
) -> ((Arc<SqliteWorkflowStore>, TempDir), Vec<(String, bool)>, WorkflowStatus) {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks = exact_json!([tool("a", "slow_read", &[]), tool("b", "read", &["a"])]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let (world, stop) = (Arc::new(World::default()), CancellationToken::new());
    let dies = driver(&store, &world, "one");
    tokio::select! {
        driven = dies.run("flow", &stop) => panic!("{driven:?}"),
        () = world.began() => {}
    }
    for (at, command) in commands.iter().enumerate() {
        flows.send("flow", &format!("c{at}"), "test", command, 1).await.unwrap();
    }
    let next = Arc::new(World::default());
    let options = DriverOptions { take_over: true, ..options("two") };
    next.release();
    let driver = Driver::new(Arc::clone(&store), Arc::clone(&next), options);
    let status = driver.run("flow", &stop).await.unwrap().status;
    for (at, command) in commands.iter().enumerate() {
        let answer = flows.answer("flow", &format!("c{at}"), Duration::ZERO).await.unwrap();
        assert_eq!(answer.unwrap().refused, None, "{command:?}");
    }
    events(&flows, "flow").await;
    ((store, directory), next.begun(), status)
}

/// Commands sent while nobody was there hold before anything is begun again.
#[tokio::test]
async fn f5_commands_that_waited_are_taken_before_tasks_are_begun_again() {
    let again = |name: &str| (name.to_owned(), true);
    let first = |name: &str| (name.to_owned(), false);
    let (_, begun, status) = after_a_crash(&[]).await;
    assert_eq!(
        (begun, status),
        (vec![again("a"), first("b")], WorkflowStatus::Completed),
        "control"
    );
    let (_, begun, status) = after_a_crash(&[WorkflowCommand::Abort { reason: None }]).await;
    assert_eq!((begun, status), (vec![], WorkflowStatus::Aborted));
    let (_, begun, status) = after_a_crash(&[WorkflowCommand::Skip { task: "a".to_owned() }]).await;
    assert_eq!((begun, status), (vec![first("b")], WorkflowStatus::Completed));
    let (_, begun, status) = after_a_crash(&[WorkflowCommand::RollBack { to: 1 }]).await;
    assert_eq!((begun, status), (vec![], WorkflowStatus::Paused));
    let arguments = JsonMap::from_iter([("of".to_owned(), exact_json!("x"))]);
    let modify = WorkflowCommand::ModifyArgs { task: "b".to_owned(), arguments };
    let ((store, _directory), _, status) = after_a_crash(&[modify]).await;
    assert_eq!(status, WorkflowStatus::Completed);
    let output = Workflows::new(store).look("flow", None).await.unwrap().output().clone();
    assert_eq!(output["b"]["with"]["of"], "x");
}

/// Paused, a workflow begins nothing again; what was under way goes on when it does.
#[tokio::test]
async fn f5_what_was_under_way_when_it_was_paused_waits_for_its_end() {
    let ((store, _directory), begun, status) = after_a_crash(&[WorkflowCommand::Pause]).await;
    assert_eq!((begun, status), (vec![], WorkflowStatus::Paused));
    let row = belljar_workflow::WorkflowStore::find(&*store, "flow").await.unwrap().unwrap();
    assert_eq!(row.due_ms, i64::MAX, "nobody has to look after it");
    let (world, stop) = (Arc::new(World::default()), CancellationToken::new());
    let driven = driver(&store, &world, "three").run("flow", &stop).await.unwrap();
    assert_eq!((driven.reason, world.begun()), (LeaveReason::Idle, vec![]));
    Workflows::new(Arc::clone(&store))
        .send("flow", "on", "test", &WorkflowCommand::Continue, 1)
        .await
        .unwrap();
    world.release();
    let driven = driver(&store, &world, "four").run("flow", &stop).await.unwrap();
    assert_eq!(driven.status, WorkflowStatus::Completed);
    // Two hosts later it is still known that the first may have done it.
    assert_eq!(world.begun(), [("a".to_owned(), true), ("b".to_owned(), false)]);
}

/// A command sent before a workflow has begun holds when it does: its first tasks are not begun.
#[tokio::test]
async fn f5_what_is_paused_before_it_begins_begins_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let nap = exact_json!({"id": "nap", "type": "wait", "wait_ms": 1});
    let tasks = exact_json!([tool("a", "pay", &[]), tool("b", "pay", &["a"]), nap]);
    let flows = create(&store, "flow", dag(tasks)).await;
    flows.send("flow", "halt", "test", &WorkflowCommand::Pause, 1).await.unwrap();
    let (world, stop) = (Arc::new(World::default()), CancellationToken::new());
    let driven = driver(&store, &world, "one").run("flow", &stop).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Idle, WorkflowStatus::Paused));
    assert_eq!(world.begun(), []);
    flows
        .send("flow", "skip", "test", &WorkflowCommand::Skip { task: "b".to_owned() }, 1)
        .await
        .unwrap();
    flows.send("flow", "on", "test", &WorkflowCommand::Continue, 1).await.unwrap();
    let driven = driver(&store, &world, "two").run("flow", &stop).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Completed));
    // It is the first to do so, though another host had the workflow before.
    assert_eq!(world.begun(), [("a".to_owned(), false)]);
    events(&flows, "flow").await;
}

/// Back to a checkpoint: what came after is forgotten and compensated, and it goes on from there.
#[tokio::test]
async fn f6_back_to_a_checkpoint_and_on() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let mut second = tool("b", "pay", &["a"]);
    second["compensate"] = exact_json!({"tool": {"tool": "refund", "arguments": {"of": "b"}}});
    let tasks = exact_json!([tool("a", "pay", &[]), second, tool("c", "pay", &["b"])]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let (driver, stop) = (driver(&store, &world, "me"), CancellationToken::new());
    driver.run("flow", &stop).await.unwrap();
    let checkpoints = belljar_workflow::WorkflowStore::checkpoints(&*store, "flow", None, 9).await;
    let to = checkpoints.unwrap().into_iter().find(|row| row.name == "a").unwrap().seq;
    flows.send("flow", "back", "test", &WorkflowCommand::RollBack { to }, 1).await.unwrap();
    let driven = driver.run("flow", &stop).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Idle, WorkflowStatus::Paused));
    let answer = flows.answer("flow", "back", Duration::ZERO).await.unwrap().unwrap();
    assert!(answer.refused.is_none(), "{answer:?}");
    flows.send("flow", "on", "test", &WorkflowCommand::Continue, 1).await.unwrap();
    let driven = driver.run("flow", &stop).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Completed));
    let did: Vec<String> = world.done().into_iter().map(|done| done.tool).collect();
    assert_eq!(did, ["pay", "pay", "pay", "refund", "pay", "pay"]);
    let events = events(&flows, "flow").await;
    let report = events.into_iter().find_map(|event| {
        let WorkflowEventKind::RolledBack { report } = event.happened else { return None };
        Some(report)
    });
    let report = report.unwrap();
    assert_eq!((report.to, report.undone.len(), report.not_undone.len()), (to, 1, 1));
}
