//! Workflows from checkpoints of others.

use std::{sync::Arc, time::Duration};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonValue, exact_json};
use belljar_workflow::{
    Driver, LeaveReason, SqliteWorkflowStore, WhyNot, WorkflowCommand, WorkflowError,
    WorkflowEventKind, WorkflowStore as _, WorkflowStoreError, Workflows,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::world::{World, create, dag, driver, events, store, tool};

/// Two effects that can be undone, and one that comes after them.
fn tasks() -> JsonValue {
    let undone = |id: &str, after: &[&str]| {
        let mut task = tool(id, "pay", after);
        task["compensate"] = exact_json!({"tool": {"tool": "refund", "arguments": {"of": id}}});
        task
    };
    exact_json!([undone("a", &[]), undone("b", &["a"]), tool("c", "pay", &["b"])])
}

/// A workflow of these that has ended, and who drove it.
struct TestRun {
    _kept: TempDir,
    store: Arc<SqliteWorkflowStore>,
    flows: Workflows<SqliteWorkflowStore>,
    world: Arc<World>,
    driver: Driver<SqliteWorkflowStore, World>,
    stop: CancellationToken,
}

async fn ran() -> TestRun {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let flows = create(&store, "flow", dag(tasks())).await;
    let (world, stop) = (Arc::new(World::default()), CancellationToken::new());
    let driver = driver(&store, &world, "me");
    driver.run("flow", &stop).await.unwrap();
    TestRun { _kept: directory, store, flows, world, driver, stop }
}

async fn after(store: &SqliteWorkflowStore, task: &str) -> u64 {
    let rows = store.checkpoints("flow", None, 99).await.unwrap();
    // The first of the name is the last of the list.
    rows.iter().rfind(|row| row.name == task).unwrap().seq
}

async fn accepted(flows: &Workflows<SqliteWorkflowStore>, flow: &str, id: &str) {
    let answer = flows.answer(flow, id, Duration::ZERO).await.unwrap().unwrap();
    assert!(answer.refused.is_none(), "{answer:?}");
}

#[tokio::test]
async fn f6_a_checkpoint_that_was_rolled_back_is_not_forked() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let flows = create(&store, "flow", dag(tasks())).await;
    let none = flows.fork("flow", None, "early", 2, None).await.unwrap_err();
    assert!(none.to_string().contains("has no checkpoint yet"), "{none}");
    let (world, stop) = (Arc::new(World::default()), CancellationToken::new());
    let driver = driver(&store, &world, "me");
    driver.run("flow", &stop).await.unwrap();
    let (first, second) = (after(&store, "a").await, after(&store, "b").await);
    flows.fork("flow", Some(second), "control", 2, None).await.unwrap();
    flows.send("flow", "back", "test", &WorkflowCommand::RollBack { to: first }, 1).await.unwrap();
    driver.run("flow", &stop).await.unwrap();
    accepted(&flows, "flow", "back").await;
    // Its payment was given back: nobody goes on as if it had not been.
    let refused = flows.fork("flow", Some(second), "fork", 2, None).await;
    let Err(WorkflowError::Store(WorkflowStoreError::Conflict(why))) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("rolled back"), "{why}");
    assert_eq!(store.find("fork").await.unwrap(), None);
    let at = flows.fork("flow", None, "newest", 2, None).await.unwrap();
    assert!(at == first || at > second + 1, "{at} is on a branch that is alive");
    assert_eq!(flows.fork("flow", Some(first), "older", 2, None).await.unwrap(), first);
}

#[tokio::test]
async fn f6_a_fork_does_not_undo_what_the_other_did() {
    let TestRun { _kept, store, flows, world, driver, stop } = ran().await;
    let (begin, at) = (after(&store, "begin").await, after(&store, "a").await);
    flows.fork("flow", Some(at), "fork", 2, None).await.unwrap();
    assert_eq!(driver.run("fork", &stop).await.unwrap().status, WorkflowStatus::Completed);
    flows.send("fork", "back", "test", &WorkflowCommand::RollBack { to: begin }, 1).await.unwrap();
    let driven = driver.run("fork", &stop).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Idle, WorkflowStatus::Paused));
    accepted(&flows, "fork", "back").await;
    let refunds: Vec<JsonValue> = world
        .done()
        .into_iter()
        .filter_map(|done| (done.tool == "refund").then(|| done.arguments["of"].clone()))
        .collect();
    assert_eq!(refunds, ["b"], "its own, and not the other's");
    let report = events(&flows, "fork").await.into_iter().find_map(|event| {
        let WorkflowEventKind::RolledBack { report } = event.happened else { return None };
        Some(report)
    });
    let report = report.unwrap();
    assert_eq!(report.undone, ["b"]);
    let left: Vec<(&str, WhyNot)> =
        report.not_undone.iter().map(|not| (not.instance.as_str(), not.why)).collect();
    assert_eq!(left, [("c", WhyNot::NoCompensation), ("a", WhyNot::DoneBeforeFork)]);
    // Control: the other undoes both of its own.
    flows.send("flow", "back", "test", &WorkflowCommand::RollBack { to: begin }, 1).await.unwrap();
    driver.run("flow", &stop).await.unwrap();
    assert_eq!(world.done().iter().filter(|done| done.tool == "refund").count(), 3);
}

#[tokio::test]
async fn f3_a_fork_that_is_paused_is_never_without_its_pause() {
    let TestRun { _kept, store, flows, world, driver, stop } = ran().await;
    let at = after(&store, "a").await;
    let mut parent = "flow".to_owned();
    for (number, at) in [(1, at), (2, at), (3, 0)] {
        // Also of one that was paused itself, and before the beginning.
        let id = format!("fork {number}");
        let pause = format!("pause {number}");
        flows.fork(&parent, Some(at), &id, 2, Some((&pause, "test"))).await.unwrap();
        let driven = driver.run(&id, &stop).await.unwrap();
        assert_eq!(
            (driven.reason, driven.status),
            (LeaveReason::Idle, WorkflowStatus::Paused),
            "{id}"
        );
        accepted(&flows, &id, &pause).await;
        parent = id;
    }
    assert_eq!(world.done().len(), 3, "{:?}", world.done());
}
