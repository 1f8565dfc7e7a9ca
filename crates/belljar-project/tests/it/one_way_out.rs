//! Every result leaves the executor the same way: what the caller gets, what the record says and what the
//! event says is one status and one error, on every path (F4).

use std::{future::pending, sync::Arc, time::Duration};

use belljar_contract::{
    ErrorCode, JsonMap, Language, Limits, RunId, RunResult, RunStatus, Verdict,
};
use belljar_project::{
    Execution, ProjectWorkflows, ResumeOutcome, RunDurability, SessionRegistry, SessionSpec,
    WorkflowOptions, WorkflowSubmission, now_ms,
};
use belljar_store::{Approvals, Store};
use belljar_testing::sandboxed;
use belljar_tools::NoObserver;
use belljar_workflow::{Action, Dag, Task, ToolAction};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::executor_support::{Project, block_on, execution};

/// How a run ended, as somebody says it.
type Ending = (RunStatus, Option<ErrorCode>);

fn ending(result: &RunResult) -> Ending {
    (result.status, result.error.as_ref().map(|error| error.code))
}

/// The last event of a run; its first one says that it began.
async fn posted(store: &Store, id: &RunId) -> Ending {
    let ends = ["code_execution_completed", "code_execution_failed", "code_execution_paused"];
    let last = async {
        loop {
            store.flush().await.unwrap();
            let events = store.events(0, 100, Some(id)).await.unwrap();
            let first = &events.first().expect("it began").name;
            assert_eq!(first, "code_execution_started", "{id}");
            match events.into_iter().next_back() {
                Some(last) if ends.contains(&last.name.as_str()) => return last,
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let last = timeout(Duration::from_secs(20), last).await.expect("every start has an end");
    let data: Value = serde_json::from_str(&last.data_json).unwrap();
    if last.name == "code_execution_completed" {
        return (RunStatus::Completed, None);
    }
    let status = serde_json::from_value(data["status"].clone()).unwrap();
    (status, serde_json::from_value(data["error"].clone()).unwrap())
}

/// The outcome in the record of a run, if it has one. A record without a result has no error.
async fn recorded(store: &Store, id: &RunId) -> Option<(RunStatus, Option<Ending>)> {
    let record = store.run(id).await.unwrap()?;
    let result = record.result_json.map(|json| serde_json::from_str::<RunResult>(&json).unwrap());
    Some((record.summary.status, result.as_ref().map(ending)))
}

/// Whether a path leaves a record.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Record {
    None,
    /// With a result, because the run is over.
    Whole,
    /// With a status only: it can be resumed.
    Status,
}

async fn assert_same(store: &Store, path: &str, id: &RunId, told: Ending, record: Record) {
    assert_eq!(posted(store, id).await, told, "{path}: event");
    let expected = match record {
        Record::None => None,
        Record::Whole => Some((told.0, Some(told))),
        Record::Status => Some((told.0, None)),
    };
    assert_eq!(recorded(store, id).await, expected, "{path}: record");
}

fn typescript(code: &str, durability: RunDurability) -> Execution {
    Execution { durability, ..execution(Language::TypeScript, code) }
}

const THROWS: &str = "throw new Error('no')";
const WAITS: &str = "await mcp.test.note({ text: 'waits' }); await mcp.test.slow({ ms: 60000 })";

#[sandboxed]
#[test]
fn f4_record_event_and_caller_say_the_same() {
    use RunDurability::{Always, Never};
    block_on(async {
        let project = Project::new(json!({})).await;
        let (executor, store) = (&project.executor, &project.store);
        let completed = (RunStatus::Completed, None);
        let failed = (RunStatus::Failed, Some(ErrorCode::RuntimeThrown));
        for (path, code, durability, told, record) in [
            ("fresh", "return 1", Never, completed, Record::None),
            ("fresh, failed", THROWS, Never, failed, Record::None),
            ("durable", "return 1", Always, completed, Record::Whole),
            ("durable, failed", THROWS, Always, failed, Record::Whole),
        ] {
            let result = project.execute(typescript(code, durability)).await;
            assert_eq!(ending(&result), told, "{path}");
            assert_same(store, path, &result.id, told, record).await;
        }
        for is_cached in [false, true] {
            let cache = Some(Duration::from_secs(60));
            let result =
                project.execute(Execution { cache, ..typescript("return 7", Never) }).await;
            assert_eq!(result.cached, is_cached);
            assert_same(store, "cached", &result.id, completed, Record::None).await;
        }
        let spec = SessionSpec::new(Language::TypeScript);
        let session = executor.sandbox().open_session(spec).await.unwrap();
        let refused = (RunStatus::Failed, Some(ErrorCode::RequestInvalid));
        for (path, code, durability, told) in [
            ("session", "1", Never, completed),
            ("session, failed", THROWS, Never, failed),
            ("session, refused", "1", Always, refused),
        ] {
            let id = belljar_runtime::run_id();
            let run = executor.execute_in(&session, id, typescript(code, durability), pending());
            let result = run.await;
            assert_eq!(ending(&result), told, "{path}");
            assert_same(store, path, &result.id, told, Record::None).await;
        }
        project.executor.shutdown().await;
    });
}

/// A run that its caller aborts or drops, while its host goes on, stops, or says why.
#[sandboxed]
#[test]
fn f4_record_event_and_caller_say_the_same_of_a_run_that_is_cut_off() {
    use RunDurability::{Always, Never};
    block_on(async {
        let aborted = (RunStatus::Aborted, Some(ErrorCode::RunAborted));
        let interrupted = (RunStatus::Interrupted, Some(ErrorCode::RunInterrupted));
        for (path, durability, is_stopping, is_dropped, told, record) in [
            ("aborted", Never, false, false, aborted, Record::None),
            ("aborted, durable", Always, false, false, aborted, Record::Status),
            ("aborted, durable, stopping", Always, true, false, interrupted, Record::Status),
            ("dropped", Never, false, true, aborted, Record::None),
            ("dropped, durable", Always, false, true, aborted, Record::Status),
            ("dropped, durable, stopping", Always, true, true, interrupted, Record::Status),
        ] {
            let project = Project::new(json!({})).await;
            let (executor, store) = (&project.executor, &project.store);
            let id = belljar_runtime::run_id();
            let under_way = async {
                while project.effects.list().is_empty() {
                    sleep(Duration::from_millis(5)).await;
                }
                if is_stopping {
                    executor.prepare_to_stop();
                }
            };
            let run = typescript(WAITS, durability);
            if is_dropped {
                tokio::select! {
                    result = executor.execute_as(id.clone(), run, pending()) => {
                        panic!("{path}: {result:?}")
                    }
                    () = under_way => {}
                }
            } else {
                let because = async {
                    under_way.await;
                    executor.abort_because("terminated");
                };
                let result = executor.execute_as(id.clone(), run, because).await;
                assert_eq!(ending(&result), told, "{path}");
                if told == aborted {
                    assert_eq!(result.error.unwrap().message, "terminated", "{path}");
                }
            }
            assert_same(store, path, &id, told, record).await;
            if record == Record::Status {
                let resumed = executor.resume(&id, Arc::new(NoObserver), async {}).await.unwrap();
                let ResumeOutcome::Ran(resumed) = resumed else { panic!("it had not ended") };
                assert_same(store, "resumed", &id, ending(&resumed), Record::Status).await;
            }
            project.executor.shutdown().await;
        }
    });
}

/// Before the code runs, servers may be started and searched: an abort is heard then, too.
#[sandboxed]
#[test]
fn f4_a_run_that_is_aborted_before_it_begins_ends_like_any_other() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let run = typescript("return 1", RunDurability::Always);
        let result = project.executor.execute(run, async {}).await;
        let told = (RunStatus::Aborted, Some(ErrorCode::RunAborted));
        assert_eq!(ending(&result), told);
        assert_same(&project.store, "not begun", &result.id, told, Record::None).await;
        project.executor.shutdown().await;
    });
}

/// A tool task that a person decides about: its record is that of a run without code.
#[sandboxed]
#[test]
fn f4_record_and_event_of_a_tool_task_say_the_same() {
    block_on(async {
        for (verdict, told, effects) in [
            (Verdict::Approve, (RunStatus::Completed, None), 1),
            (Verdict::Deny, (RunStatus::Failed, Some(ErrorCode::ApprovalDenied)), 0),
        ] {
            let project = Project::new(json!({ "ask": ["test__note"] })).await;
            let (executor, store) = (project.executor.clone(), project.store.clone());
            let sandbox = executor.sandbox().clone();
            let sessions = SessionRegistry::new(sandbox, Some(store.clone())).await;
            let scratch = project.directory.path().join("scratch");
            let options = WorkflowOptions::new(Limits::DEFAULT, scratch);
            let workflows = ProjectWorkflows::new(executor, sessions, options).await.unwrap();
            let arguments = JsonMap::from([("text", "noted")]);
            let call = ToolAction { tool: "test:note".to_owned(), arguments };
            let tasks = vec![Task::new("one", Action::McpTool(call))];
            let dag = Dag { name: "one".to_owned(), tasks, ..Dag::default() };
            let id = workflows.create(WorkflowSubmission::new(dag, "test")).await.unwrap();
            let decided = async {
                loop {
                    let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap();
                    if let Some(approval) = pending.first() {
                        let asked = &approval.asked;
                        let decision = store.decide(&asked.id, verdict.clone(), "test", now_ms());
                        decision.await.unwrap();
                        return asked.run_id.clone();
                    }
                    sleep(Duration::from_millis(5)).await;
                }
            };
            let never = CancellationToken::new();
            let (driven, run_id) = tokio::join!(workflows.run(&id, &never), decided);
            let failure = driven.unwrap().failure.map(|failure| failure.code);
            assert_eq!(failure.is_some(), told.1.is_some(), "{failure:?}");
            assert_same(&store, "tool task", &run_id, told, Record::Whole).await;
            assert_eq!(project.effects.list().len(), effects);
            project.executor.shutdown().await;
        }
    });
}
