//! A host may die at any point (F3): what was done is done once, or somebody is asked.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonValue, exact_json};
use belljar_workflow::{
    DecisionKind, DoubtResolution, DriveError, DriveResult, Driver, LeaveReason,
    SqliteWorkflowStore, WhyNot, WorkflowCommand, WorkflowEventKind, WorkflowStore as _, Workflows,
};
use tokio_util::sync::CancellationToken;

use crate::{
    flawed_store::{FlawedStore, Pause},
    world::{Fate, World, create, dag, driver, events, options, store, tool},
};

/// Twelve tasks with parallel effects; those that do not read must not happen twice.
fn twelve() -> JsonValue {
    exact_json!([
        tool("a1", "read_a", &[]),
        tool("a2", "pay", &[]),
        tool("a3", "pay", &[]),
        tool("b1", "pay", &["a1"]),
        tool("b2", "read_b", &["a1", "a2"]),
        tool("b3", "pay", &["a2", "a3"]),
        tool("b4", "pay", &["a3"]),
        tool("c1", "pay", &["b1", "b2"]),
        tool("c2", "read_c", &["b3"]),
        tool("c3", "pay", &["b3", "b4"]),
        tool("d1", "pay", &["c1", "c2"]),
        tool("d2", "pay", &["d1", "c3"]),
    ])
}

/// Drives with a host that dies at the fated point. `None`: it died.
async fn first_life(
    store: &Arc<SqliteWorkflowStore>,
    world: &Arc<World>,
    fate: &Arc<Fate>,
) -> Option<DriveResult> {
    let struck = Arc::clone(fate);
    let mortal = FlawedStore::mortal((**store).clone(), Arc::new(move |_| struck.strikes()));
    let driver = Driver::new(Arc::new(mortal), Arc::clone(world), options("first"));
    let stop = CancellationToken::new();
    tokio::select! {
        biased;
        () = fate.killed() => None,
        driven = driver.run("flow", &stop) => Some(driven.unwrap()),
    }
}

/// Drives to the end with hosts that live; tasks in doubt are resolved by looking at the world.
async fn later_lives(flows: &Workflows<SqliteWorkflowStore>, world: &Arc<World>) -> DriveResult {
    let mut second = options("second");
    second.take_over = true;
    let driver = Driver::new(Arc::clone(flows.store()), Arc::clone(world), second);
    for round in 0.. {
        let driven = driver.run("flow", &CancellationToken::new()).await.unwrap();
        if driven.reason == LeaveReason::Ended {
            return driven;
        }
        assert_eq!(driven.reason, LeaveReason::Idle);
        let decisions = flows.look("flow", None).await.unwrap().decisions();
        assert!(!decisions.is_empty(), "it waits for nothing");
        for decision in decisions {
            assert_eq!(decision.kind, DecisionKind::InDoubt);
            let done = world.done().into_iter().find(|done| done.instance == decision.instance);
            let how = match done {
                Some(done) => DoubtResolution::Use {
                    value: exact_json!({"did": done.instance, "with": done.arguments}),
                },
                None => DoubtResolution::Retry,
            };
            let command = WorkflowCommand::Resolve { task: decision.instance.clone(), how };
            let id = format!("{} {round}", decision.instance);
            flows.send("flow", &id, "test", &command, 1).await.unwrap();
        }
    }
    unreachable!()
}

#[tokio::test]
async fn f3_a_host_that_dies_anywhere_repeats_nothing() {
    let kills = dies_everywhere(8).await + dies_everywhere(1).await;
    assert!(kills >= 60, "only {kills} points");
}

/// Kills a host at every point there is, one after the other; how many.
async fn dies_everywhere(concurrency: usize) -> usize {
    let (mut kills, mut doubts) = (0, 0);
    for point in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let mut dag = dag(twelve());
        dag.settings.concurrency = concurrency;
        let flows = create(&store, "flow", dag).await;
        let fate = Fate::at(point);
        let world = World::with_fate(Arc::clone(&fate));
        let first = first_life(&store, &world, &fate).await;
        let died = first.is_none();
        let world = world.survives();
        let driven = match first {
            Some(driven) => driven,
            None => later_lives(&flows, &world).await,
        };
        assert_eq!(driven.status, WorkflowStatus::Completed, "point {point}");
        assert_eq!(driven.output["d2"]["did"], "d2", "point {point}: {}", driven.output);
        let mut done = world.done();
        // Read-only calls may be repeated, under the same key.
        let reads: Vec<_> = done.extract_if(.., |done| done.tool.starts_with("read")).collect();
        assert!((3..=6).contains(&reads.len()), "point {point}: {reads:?}");
        let counts: BTreeMap<_, _> = done.iter().map(|done| (&done.instance, 1)).collect();
        assert_eq!((done.len(), counts.len()), (9, 9), "point {point}: {done:?}");
        let events = events(&flows, "flow").await;
        let count = |wanted: fn(&WorkflowEventKind) -> bool| {
            events.iter().filter(|event| wanted(&event.happened)).count()
        };
        assert_eq!(count(|what| matches!(what, WorkflowEventKind::WorkflowStarted { .. })), 1);
        assert_eq!(count(|what| matches!(what, WorkflowEventKind::WorkflowEnded { .. })), 1);
        assert_eq!(count(|what| matches!(what, WorkflowEventKind::TaskCompleted { .. })), 12);
        doubts += count(|what| matches!(what, WorkflowEventKind::TaskInDoubt { .. }));
        kills += usize::from(died);
        if !died {
            break;
        }
    }
    println!("{concurrency} at once: {kills} kills, {doubts} tasks in doubt");
    assert!(doubts > 0);
    kills
}

/// Death again and again: each life gets a little further.
#[tokio::test]
async fn f3_many_deaths_in_a_row() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let flows = create(&store, "flow", dag(twelve())).await;
    let mut world = Arc::new(World::default());
    for point in [2, 3, 5, 4, 6, 3] {
        let fate = Fate::at(point);
        let mortal = world.survives_with(Arc::clone(&fate));
        let struck = Arc::clone(&fate);
        let flawed_store =
            FlawedStore::mortal((*store).clone(), Arc::new(move |_| struck.strikes()));
        let mut again = options("mortal");
        again.take_over = true;
        let driver = Driver::new(Arc::new(flawed_store), Arc::clone(&mortal), again);
        let stop = CancellationToken::new();
        tokio::select! {
            biased;
            () = fate.killed() => {}
            driven = driver.run("flow", &stop) => { driven.unwrap(); }
        }
        world = mortal.survives();
    }
    let driven = later_lives(&flows, &world).await;
    assert_eq!(driven.status, WorkflowStatus::Completed);
    let counts = world.counts();
    for (instance, count) in counts {
        let reads = ["a1", "b2", "c2"].contains(&instance.as_str());
        assert!(count == 1 || reads, "{instance} was done {count} times");
    }
    events(&flows, "flow").await;
}

/// A host that stood still while another took over: its commit is refused, it says so, and nothing
/// of it is kept (F3).
#[tokio::test]
async fn f3_a_host_that_wakes_up_late_changes_nothing() {
    for commit in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (store(directory.path()), store(directory.path()));
        let flows = create(&two, "flow", dag(twelve())).await;
        let world = Arc::new(World::default());
        let pause = Pause::before(commit);
        let sleepy = FlawedStore::paused((*one).clone(), Arc::clone(&pause));
        let first = Driver::new(Arc::new(sleepy), Arc::clone(&world), options("first"));
        let stop = CancellationToken::new();
        let first = first.run("flow", &stop);
        tokio::pin!(first);
        tokio::select! {
            biased;
            () = pause.reached() => {}
            driven = &mut first => {
                assert_eq!(driven.unwrap().status, WorkflowStatus::Completed);
                assert!(commit >= 4, "only {commit} commits");
                return;
            }
        }
        let driven = later_lives(&flows, &world).await;
        assert_eq!(driven.status, WorkflowStatus::Completed, "commit {commit}");
        let before = events(&flows, "flow").await;
        pause.end();
        let late = first.await;
        assert!(matches!(late, Err(DriveError::Superseded { .. })), "commit {commit}: {late:?}");
        assert_eq!(events(&flows, "flow").await, before, "commit {commit}");
        for (instance, count) in world.counts() {
            let reads = ["a1", "b2", "c2"].contains(&instance.as_str());
            assert!(count == 1 || reads, "commit {commit}: {instance} was done {count} times");
        }
    }
}

/// A host that dies while it goes back: what undoes is done once, or the report says that nobody
/// knows (F6).
#[tokio::test]
async fn f6_a_host_that_dies_while_going_back() {
    let mut kills = 0;
    for point in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let undoable = |id: &str, after: &[&str]| {
            let mut task = tool(id, "pay", after);
            task["compensate"] = exact_json!({"tool": {"tool": "refund", "arguments": {"of": id}}});
            task
        };
        let tasks =
            exact_json!([tool("a", "pay", &[]), undoable("b", &["a"]), undoable("c", &["b"])]);
        let flows = create(&store, "flow", dag(tasks)).await;
        let world = Arc::new(World::default());
        driver(&store, &world, "before").run("flow", &CancellationToken::new()).await.unwrap();
        let checkpoints = store.checkpoints("flow", None, 9).await.unwrap();
        let to = checkpoints.into_iter().find(|row| row.name == "a").unwrap().seq;
        flows.send("flow", "back", "test", &WorkflowCommand::RollBack { to }, 1).await.unwrap();
        let fate = Fate::at(point);
        let mortal = world.survives_with(Arc::clone(&fate));
        let died = first_life(&store, &mortal, &fate).await.is_none();
        let world = mortal.survives();
        let mut second = options("second");
        second.take_over = true;
        let second = Driver::new(Arc::clone(&store), Arc::clone(&world), second);
        let driven = second.run("flow", &CancellationToken::new()).await.unwrap();
        assert_eq!(driven.status, WorkflowStatus::Paused, "point {point}");
        let answer = flows.answer("flow", "back", Duration::ZERO).await.unwrap().unwrap();
        assert!(answer.refused.is_none(), "point {point}: {answer:?}");
        let machine = flows.look("flow", None).await.unwrap();
        let report = machine.last_rollback().unwrap();
        let refunds = |id: &str| {
            let done = world.done();
            done.iter().filter(|done| done.tool == "refund" && done.arguments["of"] == id).count()
        };
        for id in ["b", "c"] {
            let (undone, unknown) = (
                report.undone.iter().any(|instance| instance == id),
                report
                    .not_undone
                    .iter()
                    .any(|not| not.instance == id && not.why == WhyNot::InDoubt),
            );
            assert!(undone != unknown, "point {point}: {report:?}");
            assert!(refunds(id) <= 1, "point {point}: {id} was undone twice");
            assert!(unknown || refunds(id) == 1, "point {point}: {report:?}");
        }
        events(&flows, "flow").await;
        kills += usize::from(died);
        if !died {
            break;
        }
    }
    println!("{kills} kills while going back");
    assert!(kills >= 8, "only {kills} points");
}

/// Commands that were sent are obeyed once, whenever the host dies (F5).
#[tokio::test]
async fn f5_commands_survive_a_host_that_dies() {
    for point in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let tasks = exact_json!([tool("a", "read", &[]), tool("b", "read", &["a"])]);
        let flows = create(&store, "flow", dag(tasks)).await;
        let extra =
            belljar_contract::json_value::from_value(tool("extra", "read", &["b"])).unwrap();
        let commands = [
            ("pause", WorkflowCommand::Pause),
            ("inject", WorkflowCommand::InjectTasks { tasks: vec![extra] }),
            ("continue", WorkflowCommand::Continue),
            ("wrong", WorkflowCommand::RollBack { to: 999 }),
        ];
        for (id, command) in &commands {
            flows.send("flow", id, "test", command, 1).await.unwrap();
        }
        let fate = Fate::at(point);
        let world = World::with_fate(Arc::clone(&fate));
        let died = first_life(&store, &world, &fate).await.is_none();
        let world = world.survives();
        let driven = later_lives(&flows, &world).await;
        assert_eq!(driven.status, WorkflowStatus::Completed, "point {point}");
        assert_eq!(world.counts().len(), 3, "point {point}");
        for (id, _) in &commands {
            let answer = flows.answer("flow", id, Duration::ZERO).await.unwrap().unwrap();
            assert_eq!(answer.refused.is_none(), *id != "wrong", "point {point}: {answer:?}");
        }
        let events = events(&flows, "flow").await;
        let count = |wanted: fn(&WorkflowEventKind) -> bool| {
            events.iter().filter(|event| wanted(&event.happened)).count()
        };
        assert_eq!(
            count(|what| matches!(what, WorkflowEventKind::WorkflowPaused)),
            1,
            "point {point}"
        );
        assert_eq!(count(|what| matches!(what, WorkflowEventKind::TasksInjected { .. })), 1);
        if !died {
            assert!(point >= 10);
            return;
        }
    }
}

/// A driver that is asked to stop before it begins starts nothing, and leaves nothing in doubt.
#[tokio::test]
async fn f3_a_host_that_is_stopped_at_once_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    create(&store, "flow", dag(twelve())).await;
    let world = Arc::new(World::default());
    let (host, stop) = (driver(&store, &world, "me"), CancellationToken::new());
    stop.cancel();
    for _ in 0..3 {
        assert_eq!(host.run("flow", &stop).await.unwrap().reason, LeaveReason::Stopped);
    }
    assert_eq!(world.done(), []);
    let driven = host.run("flow", &CancellationToken::new()).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Completed));
    assert_eq!(world.done().len(), 12);
}

/// A graceful stop leaves nothing in doubt, and what had not begun begins later.
#[tokio::test]
async fn f3_a_stopped_host_leaves_it_resumable() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks = exact_json!([tool("a", "slow_pay", &[]), tool("b", "pay", &["a"])]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let (first, stop) = (driver(&store, &world, "first"), CancellationToken::new());
    let (driven, ()) = tokio::join!(first.run("flow", &stop), async {
        world.began().await;
        stop.cancel();
        tokio::time::sleep(Duration::from_millis(20)).await;
        world.release();
    });
    assert_eq!(driven.unwrap().reason, LeaveReason::Stopped);
    // `b` is noted and was not begun; nobody has the workflow.
    assert_eq!(world.counts().len(), 1);
    let second = driver(&store, &world, "second");
    let driven = second.run("flow", &CancellationToken::new()).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Completed));
    assert_eq!(world.done().len(), 2);
    let events = events(&flows, "flow").await;
    let doubted =
        events.iter().any(|event| matches!(event.happened, WorkflowEventKind::TaskInDoubt { .. }));
    assert!(!doubted);
}
