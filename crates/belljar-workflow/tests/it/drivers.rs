//! Drivers among themselves, with time, and with an store that fails.

use std::{sync::Arc, time::Duration};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, JsonValue, exact_json};
use belljar_workflow::{
    DriveError, Driver, DriverClock as _, DriverOptions, LeaveReason, SqliteWorkflowStore,
    WhenIdle, WorkflowCommand, WorkflowEvent, WorkflowEventKind, WorkflowStore as _,
    WorkflowStoreError,
    workflow_store::{
        ClaimReason, LeaseRequest, ResumeExclusions, WorkflowBatch, WorkflowInputRow,
    },
};
use tokio_util::sync::CancellationToken;

use crate::{
    flawed_store::FlawedStore,
    world::{TestClock, World, create, create_with, dag, driver, events, options, store, tool},
};

fn never() -> CancellationToken {
    CancellationToken::new()
}

#[tokio::test]
async fn f1_a_workflow_runs_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks = exact_json!([
        tool("a", "pay", &[]),
        tool("b", "pay", &[]),
        {"id": "c", "type": "mcp_tool", "tool": "pay", "depends_on": ["a", "b"],
         "arguments": {"sum": "{{ results.a.did }}-{{ results.b.did }}"}}
    ]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let driven = driver(&store, &world, "me").run("flow", &never()).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Completed));
    assert_eq!(driven.output["c"]["with"], exact_json!({"sum": "a-b"}));
    events(&flows, "flow").await;
    // Driven again it is what it was, and nothing is done.
    let again = driver(&store, &world, "other").run("flow", &never()).await.unwrap();
    assert_eq!((again.reason, again.output, again.commits), (LeaveReason::Ended, driven.output, 0));
    assert_eq!(world.done().len(), 3);
}

/// One of two hosts has it; the other is refused and says so (F3).
#[tokio::test(flavor = "multi_thread")]
async fn f3_two_hosts_race_for_one_workflow() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (store(directory.path()), store(directory.path()));
    for round in 0..5 {
        let flow = format!("flow {round}");
        let tasks: Vec<JsonValue> = (0..8).map(|at| tool(&format!("t{at}"), "pay", &[])).collect();
        let flows = create(&one, &flow, dag(exact_json!(tasks))).await;
        let world = Arc::new(World::default());
        let (first, second) = (driver(&one, &world, "one"), driver(&two, &world, "two"));
        let stop = never();
        let outcomes = tokio::join!(first.run(&flow, &stop), second.run(&flow, &stop));
        let mut won = 0;
        for outcome in [outcomes.0, outcomes.1] {
            match outcome {
                Ok(driven) => won += usize::from(driven.status == WorkflowStatus::Completed),
                Err(DriveError::Store(WorkflowStoreError::Held { .. })) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        // A driver that comes after the first has finished finds the workflow ended.
        assert!(won >= 1);
        assert_eq!(world.done().len(), 8);
        events(&flows, &flow).await;
    }
}

/// Of several hosts that take up the same, one does and one is counted; and whose it was is known when
/// it could not go on (F3).
#[tokio::test]
async fn f3_a_workflow_that_is_taken_up_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    create(&store, "flow", dag(exact_json!([tool("a", "pay", &[])]))).await;
    let world = Arc::new(World::default());
    let host = |owner: &str| {
        let options = DriverOptions { why: ClaimReason::Found, ..options(owner) };
        Driver::new(Arc::clone(&store), Arc::clone(&world), options)
    };
    let row = async || store.find("flow").await.unwrap().unwrap();
    let claim = host("one").claim("flow").await.unwrap();
    for other in ["two", "three"] {
        let refused = host(other).claim("flow").await;
        assert!(
            matches!(refused, Err(DriveError::Store(WorkflowStoreError::Held { .. }))),
            "{refused:?}"
        );
    }
    assert_eq!(row().await.fruitless_attempts, 1);
    host("one").give_up(claim).await;
    let given_up = row().await;
    assert_eq!(
        (given_up.fruitless_attempts, &*given_up.owner, given_up.lease_until_ms),
        (1, "one", 0)
    );
    let claim = host("two").claim("flow").await.unwrap();
    assert_eq!(row().await.fruitless_attempts, 2);
    let claimed = host("two").read(claim).await.unwrap();
    let driven = host("two").drive(claimed, &never()).await.unwrap();
    assert_eq!((driven.status, row().await.fruitless_attempts), (WorkflowStatus::Completed, 0));
}

/// A superseded driver cancels its tasks, writes nothing more, and says why (F3).
#[tokio::test(flavor = "multi_thread")]
async fn f3_a_superseded_host_stops_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (store(directory.path()), store(directory.path()));
    let tasks = exact_json!([tool("a", "slow_read", &[]), tool("b", "read", &["a"])]);
    let flows = create(&one, "flow", dag(tasks)).await;
    let (old, new) = (Arc::new(World::default()), Arc::new(World::default()));
    let mut first = options("one");
    // It notices at the latest when it renews its claim.
    first.lease_ms = 300;
    let first = Driver::new(Arc::clone(&one), Arc::clone(&old), first);
    let running = tokio::spawn(async move { first.run("flow", &never()).await });
    old.began().await;
    let mut taking = options("two");
    taking.take_over = true;
    let second = Driver::new(Arc::clone(&two), Arc::clone(&new), taking);
    let (stop, seen) = (never(), new.began());
    let (driven, superseded) = tokio::join!(second.run("flow", &stop), async {
        seen.await;
        let superseded = running.await.unwrap();
        new.release();
        superseded
    });
    let Err(DriveError::Superseded { flow, held, current }) = superseded else {
        panic!("{superseded:?}");
    };
    assert_eq!((flow.as_str(), held, current), ("flow", 1, 2));
    assert_eq!(driven.unwrap().status, WorkflowStatus::Completed);
    // The old host's task was cancelled before it did anything.
    assert_eq!((old.done().len(), new.done().len()), (0, 2));
    events(&flows, "flow").await;
}

/// A commit that fails is never only logged: the driver ends, and nothing more is performed.
#[tokio::test]
async fn f3_a_failed_commit_ends_the_driver() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks =
        exact_json!([tool("a", "pay", &[]), tool("b", "pay", &["a"]), tool("c", "pay", &["b"])]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let full = Arc::new(FlawedStore::with_room((*store).clone(), 2));
    let failing = Driver::new(full, Arc::clone(&world), options("full"));
    let failed = failing.run("flow", &never()).await;
    assert!(matches!(failed, Err(DriveError::Store(WorkflowStoreError::Failed(_)))), "{failed:?}");
    assert_eq!(world.done().len(), 2);
    // `b` was begun and its outcome was lost: somebody is asked.
    let driven = driver(&store, &world, "next").run("flow", &never()).await.unwrap();
    assert_eq!(driven.reason, LeaveReason::Idle);
    let events = events(&flows, "flow").await;
    let doubted = events
        .iter()
        .any(|event| matches!(&event.happened, WorkflowEventKind::TaskInDoubt { task, .. } if task == "b"));
    assert!(doubted, "{events:?}");
    assert_eq!(world.done().len(), 2);
}

/// A fork goes on from its checkpoint with effects of its own; what it came from is left alone.
#[tokio::test]
async fn f3_a_fork_goes_its_own_way() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks =
        exact_json!([tool("a", "pay", &[]), tool("b", "pay", &["a"]), tool("c", "pay", &["b"])]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let driver = driver(&store, &world, "me");
    driver.run("flow", &never()).await.unwrap();
    let before = events(&flows, "flow").await;
    let checkpoints = store.checkpoints("flow", None, 9).await.unwrap();
    let to = checkpoints.iter().find(|row| row.name == "b").unwrap().seq;
    store.fork("flow", to, "fork", 2, None).await.unwrap();
    let driven = driver.run("fork", &never()).await.unwrap();
    assert_eq!(driven.status, WorkflowStatus::Completed);
    let done = world.done();
    let did: Vec<&str> = done.iter().map(|done| done.instance.as_str()).collect();
    assert_eq!(did, ["a", "b", "c", "c"]);
    assert_ne!(done[2].key, done[3].key);
    assert_eq!(events(&flows, "flow").await, before);
    events(&flows, "fork").await;
    // Also back to before it was forked.
    let to = checkpoints.iter().find(|row| row.name == "a").unwrap().seq;
    flows.send("fork", "back", "test", &WorkflowCommand::RollBack { to }, 1).await.unwrap();
    flows.send("fork", "on", "test", &WorkflowCommand::Continue, 1).await.unwrap();
    let driven = driver.run("fork", &never()).await.unwrap();
    let answer = flows.answer("fork", "back", Duration::ZERO).await.unwrap().unwrap();
    assert!(answer.refused.is_none(), "{answer:?}");
    assert!(
        [WorkflowStatus::Completed, WorkflowStatus::Paused].contains(&driven.status),
        "{driven:?}"
    );
}

/// A workflow that needs a host is found; one that only waits is not, until it is commanded or due (F3).
#[tokio::test]
async fn f3_dispatch_finds_what_needs_a_host() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let ask = exact_json!({"id": "ask", "type": "approval", "message": "well?"});
    let nap = exact_json!({"id": "nap", "type": "wait", "until_ms": 5_000_000_000_000_u64});
    let flows = create(&store, "new", dag(exact_json!([tool("a", "pay", &[])]))).await;
    create(&store, "asking", dag(exact_json!([ask]))).await;
    create(&store, "asleep", dag(exact_json!([nap]))).await;
    let world = Arc::new(World::default());
    let driver = driver(&store, &world, "me");
    assert_eq!(driver.run("asking", &never()).await.unwrap().reason, LeaveReason::Idle);
    let stop = never();
    stop.cancel();
    assert_eq!(driver.run("asleep", &stop).await.unwrap().reason, LeaveReason::Stopped);
    let found = async |now_ms| -> Vec<String> {
        let rows = store.abandoned(now_ms, ResumeExclusions::default(), 9).await.unwrap();
        rows.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(found(2_000_000_000_000).await, ["new"]);
    assert_eq!(found(5_000_000_000_000).await, ["new", "asleep"]);
    flows
        .send("asking", "stop", "test", &WorkflowCommand::Abort { reason: None }, 1)
        .await
        .unwrap();
    assert_eq!(found(2_000_000_000_000).await, ["new", "asking"]);
    for id in ["new", "asking"] {
        assert_eq!(driver.run(id, &never()).await.unwrap().reason, LeaveReason::Ended);
    }
    assert_eq!(found(2_000_000_000_000).await, Vec::<String>::new());
}

/// A driver that rests leaves what only a person or a far time can change, and stays its owner.
#[tokio::test]
async fn f1_what_waits_for_long_is_left_to_rest() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let world = Arc::new(World::default());
    let rests = DriverOptions { idle: WhenIdle::Rest { at_least_ms: 60_000 }, ..options("me") };
    let driver = Driver::new(Arc::clone(&store), Arc::clone(&world), rests);
    let nap = |ms: u64| exact_json!([{"id": "nap", "type": "wait", "wait_ms": ms}]);
    let ask = exact_json!([{"id": "ask", "type": "approval", "message": "well?"}]);
    create(&store, "asks", dag(ask)).await;
    create(&store, "long", dag(nap(3_600_000))).await;
    create(&store, "short", dag(nap(1))).await;
    for id in ["asks", "long"] {
        let driven = driver.run(id, &never()).await.unwrap();
        assert_eq!(driven.reason, LeaveReason::Idle, "{id}");
        let row = store.find(id).await.unwrap().unwrap();
        assert_eq!((row.owner.as_str(), row.lease_until_ms), ("me", 0), "{id}");
    }
    // It can be waited for.
    assert_eq!(driver.run("short", &never()).await.unwrap().reason, LeaveReason::Ended);
}

/// Inputs that a machine takes otherwise than they were taken are not gone on with.
#[tokio::test]
async fn f3_a_replay_that_differs_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    create(&store, "flow", dag(exact_json!([tool("a", "pay", &[])]))).await;
    let (owner, now_ms) = ("odd".to_owned(), 1);
    let request =
        LeaseRequest { owner, now_ms, until_ms: 2, take_over: false, why: ClaimReason::Asked };
    let lease = store.claim("flow", request).await.unwrap();
    let body = serde_json::to_vec(&exact_json!({"now_ms": 1, "input": "begin"})).unwrap();
    let inputs = vec![WorkflowInputRow { seq: 1, checkpoint: None, body }];
    store
        .commit(&lease, WorkflowBatch { now_ms, inputs, ..WorkflowBatch::default() })
        .await
        .unwrap();
    let world = Arc::new(World::default());
    let driven = driver(&store, &world, "me").run("flow", &never()).await;
    assert!(matches!(driven, Err(DriveError::Damaged { .. })), "{driven:?}");
    assert_eq!(world.done(), []);
    // Nobody is kept from looking at it.
    assert_eq!(store.find("flow").await.unwrap().unwrap().lease_until_ms, 0);
}

/// Timers go by the driver's clock, and the claim is renewed while one waits.
#[tokio::test]
async fn f2_time_passes_by_the_drivers_clock() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let tasks = exact_json!([
        {"id": "nap", "type": "wait", "wait_ms": 3_600_000},
        tool("after", "pay", &["nap"])
    ]);
    create(&store, "flow", dag(tasks)).await;
    let (world, clock) = (Arc::new(World::default()), TestClock::new());
    let driver = Driver::with_clock(
        Arc::clone(&store),
        Arc::clone(&world),
        clock.clone(),
        options("sleeper"),
    );
    let began = clock.now_ms();
    let stop = never();
    let running = driver.run("flow", &stop);
    tokio::pin!(running);
    let driven = loop {
        tokio::select! {
            driven = &mut running => break driven.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(10)) => clock.advance(600_000),
        }
    };
    assert_eq!(driven.status, WorkflowStatus::Completed);
    assert!(clock.now_ms() - began >= 3_600_000);
    assert_eq!(world.done().len(), 1);
}

/// A clock that is set back makes no wait longer and no timeout later, one that is set forward ends
/// none early; claims are told by what the clock shows.
#[tokio::test]
async fn reliability_13_waits_and_timeouts_do_not_follow_the_clock_on_the_wall() {
    for jump_ms in [-3_600_000, 3_600_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let mut slow = tool("slow", "stubborn_pay", &[]);
        slow["timeout_ms"] = exact_json!(4_000);
        slow["on_error"] = exact_json!("continue");
        let tasks = exact_json!([slow, {"id": "nap", "type": "wait", "wait_ms": 4_000}]);
        let flows = create(&store, "flow", dag(tasks)).await;
        let (world, clock) = (Arc::new(World::default()), TestClock::new());
        let began = clock.now_ms();
        let patience = DriverOptions { grace_ms: 10, ..options("me") };
        let (of, by) = (Arc::clone(&store), Arc::clone(&world));
        let driver = Driver::with_clock(of, by, clock.clone(), patience);
        let stop = never();
        let running = driver.run("flow", &stop);
        tokio::pin!(running);
        tokio::select! {
            driven = &mut running => panic!("nothing has passed: {driven:?}"),
            () = world.began() => clock.set_wall(jump_ms),
        }
        // Nothing is over as long as no time has passed, and after four seconds all is.
        let driven = loop {
            tokio::select! {
                driven = &mut running => break driven.unwrap(),
                () = tokio::time::sleep(Duration::from_millis(5)) => clock.advance(500),
            }
        };
        assert_eq!(driven.status, WorkflowStatus::Completed);
        let ended = flows.look("flow", None).await.unwrap();
        for task in ["slow", "nap"] {
            let task = ended.task(task).unwrap();
            let took = task.ended_ms.unwrap() - task.started_ms.unwrap();
            assert!((4_000..10_000).contains(&took), "{jump_ms}: {task:?}");
        }
        assert!(clock.now_ms() - began < 60_000, "{jump_ms}");
        let row = store.find("flow").await.unwrap().unwrap();
        let told = row.finished_ms.unwrap() - clock.wall_ms();
        assert!(told.abs() < 60_000, "{row:?}");
    }
}

/// A task that does not end when it is cancelled is dropped.
#[tokio::test]
async fn f5_a_stubborn_task_does_not_hold_up_an_abort() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let flows = create(&store, "flow", dag(exact_json!([tool("a", "stubborn_pay", &[])]))).await;
    let world = Arc::new(World::default());
    let mut impatient = options("me");
    impatient.grace_ms = 30;
    let driver = Driver::new(Arc::clone(&store), Arc::clone(&world), impatient);
    let stop = never();
    let (driven, ()) = tokio::join!(driver.run("flow", &stop), async {
        world.began().await;
        let abort = WorkflowCommand::Abort { reason: None };
        flows.send("flow", "stop", "test", &abort, 1).await.unwrap();
    });
    assert_eq!(driven.unwrap().status, WorkflowStatus::Aborted);
    assert_eq!(world.done().len(), 0);
}

/// A task that is cancelled by the very round that starts it is not begun (F1).
#[tokio::test]
async fn f1_what_is_cancelled_before_it_begins_is_not_begun() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let each = exact_json!({"id": "one", "type": "mcp_tool", "tool": "pay",
                      "arguments": {"fail": "{{ item }}"}});
    let tasks = exact_json!([{"id": "each", "type": "foreach", "items": [false, true, false, false],
                        "at_once": 2, "do": each}]);
    let flows = create(&store, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    // Both of the first two end before the next step: one starts a third, the other stops it all.
    let driven = driver(&store, &world, "me").run("flow", &never()).await.unwrap();
    assert_eq!((driven.reason, driven.status), (LeaveReason::Ended, WorkflowStatus::Failed));
    let did: Vec<String> = world.done().into_iter().map(|done| done.instance).collect();
    assert_eq!(did, ["each[0]"]);
    // Control: the third was started, as far as the machine is concerned.
    let started = |event: &WorkflowEvent| matches!(&event.happened, WorkflowEventKind::TaskStarted { task, .. } if task == "each[2]");
    assert!(events(&flows, "flow").await.iter().any(started));
}

/// Commits are shared by what is ready at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_thousand_tasks_share_commits() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let each = exact_json!({"id": "one", "type": "mcp_tool", "tool": "pay",
                      "arguments": {"item": "{{ item }}"}});
    let tasks = exact_json!([{"id": "each", "type": "foreach", "items": "{{ inputs.items }}",
                        "at_once": 64, "do": each}]);
    let mut dag = dag(tasks);
    dag.settings.concurrency = 64;
    let items: Vec<u32> = (0..1_000).collect();
    let inputs = JsonMap::from_iter([("items".to_owned(), exact_json!(items))]);
    let flows = create_with(&store, "flow", dag, inputs).await;
    let world = Arc::new(World::default());
    let began = std::time::Instant::now();
    let driven = driver(&store, &world, "me").run("flow", &never()).await.unwrap();
    println!("{} commits, {:?} a task", driven.commits, began.elapsed() / 1_000);
    assert_eq!(driven.status, WorkflowStatus::Completed);
    assert_eq!(world.done().len(), 1_000);
    assert!(driven.commits < 500, "{} commits", driven.commits);
    events(&flows, "flow").await;
}

/// A driver that stays is woken by a command from another process.
#[tokio::test(flavor = "multi_thread")]
async fn f5_a_command_from_another_process_is_heard() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (store(directory.path()), store(directory.path()));
    let tasks = exact_json!([{"id": "ask", "type": "approval", "message": "well?"},
                       tool("then", "pay", &["ask"])]);
    create(&one, "flow", dag(tasks)).await;
    let world = Arc::new(World::default());
    let stays = DriverOptions { idle: WhenIdle::Stay, ..options("me") };
    let driver: Driver<SqliteWorkflowStore, World> = Driver::new(one, Arc::clone(&world), stays);
    let stop = never();
    let flows = belljar_workflow::Workflows::new(two);
    let (driven, ()) = tokio::join!(driver.run("flow", &stop), async {
        let decision = loop {
            let machine = flows.look("flow", None).await.unwrap();
            if let Some(decision) = machine.decisions().first() {
                break decision.id.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let approve = WorkflowCommand::Approve { decision, value: None };
        flows.send("flow", "yes", "test", &approve, 1).await.unwrap();
        let answer = flows.answer("flow", "yes", Duration::from_secs(20)).await.unwrap();
        assert!(answer.unwrap().refused.is_none());
    });
    assert_eq!(driven.unwrap().status, WorkflowStatus::Completed);
    assert_eq!(world.done().len(), 1);
}
