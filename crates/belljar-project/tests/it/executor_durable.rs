//! D7, D8: runs that wait for people and outlive their host, without one call being repeated.
//!
//! The host's end is played by dropping the run's future, which leaves the store as a killed host
//! does: `crash.rs` kills real ones.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use belljar_contract::{ErrorCode, Language, RunId, RunResult, RunStatus, Verdict};
use belljar_project::{Execution, ResumeError, ResumeOutcome, RunDurability, now_ms};
use belljar_store::{Approvals, ClaimReason, Lease, Store};
use belljar_tools::{CallObserver, NoObserver};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::executor_support::{Project, block_on, execution};

fn value(json: &serde_json::value::RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap()
}

fn durable(language: Language, code: &str) -> Execution {
    Execution { durability: RunDurability::Always, ..execution(language, code) }
}

async fn until(what: impl Fn() -> bool) {
    timeout(Duration::from_secs(20), async {
        while !what() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("it comes to that");
}

/// Starts a run and gives up on it as soon as something is so.
async fn abandoned(project: &Project, execution: Execution, when: impl Fn() -> bool) -> String {
    let id = format!("run_{}", now_ms());
    let run = project.executor.execute_as(id.clone().into(), execution, std::future::pending());
    tokio::select! {
        result = run => panic!("it ended: {result:?}"),
        () = until(when) => {}
    }
    id
}

async fn resumed(project: &Project, id: &str) -> RunResult {
    let resumed =
        project.executor.resume(&id.into(), Arc::new(NoObserver), std::future::pending()).await;
    match resumed.unwrap() {
        ResumeOutcome::Ran(result) => *result,
        ResumeOutcome::Ended(result) => panic!("it had ended: {result:?}"),
    }
}

const TS: &str = "const first = await mcp.test.note({ text: 'first' });
const at = [Date.now(), Math.random(), crypto.randomUUID()];
const [a, b] = await Promise.all([mcp.test.note({ text: 'a' }), mcp.test.slow({ ms: 50 })]);
await new Promise((r) => setTimeout(r, 30));
const held = await mcp.test.slow({ ms: 2000 });
const last = await mcp.test.note({ text: 'last' });
return { first, at, a, b, held, last };";

const PYTHON: &str = "import asyncio, random, time, uuid
first = mcp.test.note(text='first')
at = [time.time(), random.random(), str(uuid.uuid4()), list({'a', 'b', 'c'})]
a, b = await asyncio.gather(mcp.test.note(text='a'), mcp.test.slow(ms=50))
await asyncio.sleep(0.03)
held = mcp.test.slow(ms=2000)
last = mcp.test.note(text='last')
return {'first': first, 'at': at, 'a': a, 'b': b, 'held': held, 'last': last}";

#[test]
fn d8_a_run_goes_on_where_it_was() {
    block_on(async {
        for (language, code) in [(Language::TypeScript, TS), (Language::Python, PYTHON)] {
            let project = Project::new(json!({})).await;
            let effects = project.effects.clone();
            // Both notes are made, their outcomes are kept, and the long call is under way.
            let began = Instant::now();
            let seen = || effects.list().len() == 2 && began.elapsed() > Duration::from_millis(450);
            let id = abandoned(&project, durable(language, code), seen).await;
            let project = project.restarted(json!({})).await;
            let result = resumed(&project, &id).await;
            assert_eq!(result.error, None, "{language:?}");
            let result = value(&result.result);
            assert_eq!(result["first"], json!({ "noted": "first" }));
            assert_eq!(result["last"], json!({ "noted": "last" }));
            assert_eq!(project.effects.list(), ["first", "a", "last"], "{language:?}");
            // A second time, it is the same answer, from the store.
            let named = id.as_str().into();
            let again =
                project.executor.resume(&named, Arc::new(NoObserver), std::future::pending());
            let ResumeOutcome::Ended(again) = again.await.unwrap() else { panic!("it ran again") };
            let again: Value = serde_json::to_value(&again).unwrap();
            assert_eq!(again["result"], result);
            project.executor.shutdown().await;
        }
    });
}

#[test]
fn d8_a_call_in_doubt_is_for_a_person_to_decide() {
    block_on(async {
        for (verdict, expected, effects) in [
            (Verdict::Retry, json!("held"), vec!["x", "x"]),
            (Verdict::Use("{\"was\":7}".to_owned()), json!({ "was": 7 }), vec!["x"]),
            (Verdict::Deny, json!("tool.in_doubt"), vec!["x"]),
        ] {
            let code =
                "try { return await mcp.test.held({ text: 'x' }) } catch (e) { return e.code }";
            let project = Project::new(json!({})).await;
            let seen = project.effects.clone();
            let run = durable(Language::TypeScript, code);
            let id = abandoned(&project, run, || seen.list().len() == 1).await;
            let project = project.restarted(json!({})).await;
            let result = resumed(&project, &id).await;
            assert_eq!(result.status, RunStatus::InDoubt);
            let error = result.error.unwrap();
            assert_eq!(
                (error.code, error.tool_name.as_deref()),
                (ErrorCode::ToolInDoubt, Some("test__held"))
            );
            assert_eq!(project.effects.list(), ["x"]);
            let pending = project.store.approvals(Approvals::Pending, now_ms()).await.unwrap();
            let [question] = pending.as_slice() else { panic!("{pending:?}") };
            assert_eq!(question.asked.question.to_string(), "in_doubt");
            project.store.decide(&question.asked.id, verdict, "test", now_ms()).await.unwrap();
            project.effects.gate.0.add_permits(1);
            let result = resumed(&project, &id).await;
            assert_eq!(value(&result.result), expected);
            assert_eq!(project.effects.list(), effects);
            project.executor.shutdown().await;
        }
    });
}

#[test]
fn d8_a_call_that_can_be_repeated_is() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let effects = project.effects.clone();
        let code = "return await mcp.test.slow({ ms: 700 })";
        let run = durable(Language::TypeScript, code);
        let id = abandoned(&project, run, || effects.most_under_way() == 1).await;
        let project = project.restarted(json!({})).await;
        let result = resumed(&project, &id).await;
        assert_eq!((result.error, value(&result.result)), (None, json!(700)));
        project.executor.shutdown().await;
    });
}

#[test]
fn d7_an_approved_call_is_made_and_a_denied_one_is_not() {
    block_on(async {
        for (verdict, expected, effects) in [
            (Verdict::Approve, json!({ "noted": "x" }), vec!["x"]),
            (Verdict::Deny, json!("approval.denied"), vec![]),
        ] {
            let project = Project::new(json!({ "ask": ["test__note"] })).await;
            let store = project.store.clone();
            let decided = async {
                let question = loop {
                    let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap();
                    match pending.into_iter().next() {
                        Some(question) => break question,
                        None => sleep(Duration::from_millis(20)).await,
                    }
                };
                assert_eq!(question.asked.tool, "test__note");
                assert_eq!(question.asked.arguments, "{\"text\":\"x\"}");
                assert_eq!(question.asked.line, Some(2));
                assert!(question.asked.code_line.unwrap().starts_with("return await mcp"));
                // Longer than the run may take: its clock stands still meanwhile.
                sleep(Duration::from_millis(900)).await;
                store.decide(&question.asked.id, verdict, "test", now_ms()).await.unwrap();
            };
            let code =
                "try {\nreturn await mcp.test.note({ text: 'x' });\n} catch (e) { return e.code }";
            let mut short = execution(Language::TypeScript, code);
            short.request.limits.timeout = Duration::from_millis(600);
            let (result, ()) = tokio::join!(project.execute(short), decided);
            assert_eq!((&result.error, value(&result.result)), (&None, expected));
            assert_eq!(project.effects.list(), effects);
            project.executor.shutdown().await;
        }
    });
}

#[test]
fn d7_consent_survives_the_host() {
    block_on(async {
        let policy = json!({ "ask": ["test__note"] });
        let code = "const sum = await mcp.test.add({ a: 1, b: 2 });
            const noted = await mcp.test.note({ text: 'x' });
            return [sum, noted]";
        for language_code in [
            (Language::TypeScript, code),
            (Language::Python, "s = mcp.test.add(a=1, b=2)\nn = mcp.test.note(text='x')\n[s, n]"),
        ] {
            let project = Project::new(policy.clone()).await;
            let (language, code) = language_code;
            let id = format!("run_{}", now_ms());
            let run = project.executor.execute_as(
                id.clone().into(),
                execution(language, code),
                std::future::pending(),
            );
            let asked = async {
                while project
                    .store
                    .approvals(Approvals::Pending, now_ms())
                    .await
                    .unwrap()
                    .is_empty()
                {
                    sleep(Duration::from_millis(20)).await;
                }
                // The host stops, so the run is not given up and its question stays open.
                project.executor.prepare_to_stop();
            };
            tokio::select! {
                result = run => panic!("it ended: {result:?}"),
                () = asked => {}
            }
            let project = project.restarted(policy.clone()).await;
            let pending = project.store.approvals(Approvals::Pending, now_ms()).await.unwrap();
            let id_of_question = &pending.first().unwrap().asked.id;
            project.store.decide(id_of_question, Verdict::Approve, "test", now_ms()).await.unwrap();
            let result = resumed(&project, &id).await;
            assert_eq!((result.error, value(&result.result)), (None, json!([3, { "noted": "x" }])));
            assert_eq!(project.effects.list(), ["x"]);
            project.executor.shutdown().await;
        }
    });
}

#[test]
fn d7_nobody_who_decides_is_a_denial() {
    block_on(async {
        let project = Project::new(json!({ "ask": ["test__note"] })).await;
        let result = project.run(Language::TypeScript, "await mcp.test.note({ text: 'x' })").await;
        assert_eq!(result.error.unwrap().code, ErrorCode::ApprovalExpired);
        assert_eq!(project.effects.list(), Vec::<String>::new());
        project.executor.shutdown().await;
    });
}

/// Somebody else has the run now: whoever had it makes no further call.
#[test]
fn d8_a_run_that_was_taken_over_makes_no_further_call() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let code = "await mcp.test.note({ text: 'first' });
            await mcp.test.slow({ ms: 300 });
            try { await mcp.test.note({ text: 'last' }) } catch (e) { return e.code }";
        let id = format!("run_{}", now_ms());
        let run = durable(Language::TypeScript, code);
        let run = project.executor.execute_as(id.clone().into(), run, std::future::pending());
        let taken_over = async {
            until(|| project.effects.most_under_way() == 1).await;
            let seen = Lease { run_id: id.clone().into(), fence: 1 };
            project.store.claim_run(seen, "another", ClaimReason::Asked, now_ms()).await.unwrap();
        };
        let (result, ()) = tokio::join!(run, taken_over);
        assert_eq!(result.status, RunStatus::Interrupted);
        let error = result.error.unwrap();
        assert_eq!(error.code, ErrorCode::RunInterrupted);
        assert!(error.message.contains("taken"), "{}", error.message);
        assert_eq!(project.effects.list(), ["first"]);
        let record = project.store.run(&id.as_str().into()).await.unwrap().unwrap();
        assert_eq!((record.result_json, record.summary.owner.as_str()), (None, "another"));
        project.executor.shutdown().await;
    });
}

#[test]
fn d8_of_two_that_resume_a_run_in_one_process_one_does() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let effects = project.effects.clone();
        let code = "await mcp.test.slow({ ms: 200 }); return await mcp.test.note({ text: 'x' })";
        let run = durable(Language::TypeScript, code);
        let id = abandoned(&project, run, || effects.most_under_way() == 1).await;
        let resume = |late: Duration| {
            let (executor, id) = (project.executor.clone(), &id);
            async move {
                sleep(late).await;
                executor
                    .resume(&id.as_str().into(), Arc::new(NoObserver), std::future::pending())
                    .await
            }
        };
        let (at_once, too, later) = tokio::join!(
            resume(Duration::ZERO),
            resume(Duration::ZERO),
            resume(Duration::from_millis(100)),
        );
        let all = [at_once, too, later];
        let ran = all.iter().filter(|one| matches!(one, Ok(ResumeOutcome::Ran(_)))).count();
        let refused = |one: &&Result<_, _>| matches!(one, Err(ResumeError::StillRunning { .. }));
        assert_eq!((ran, all.iter().filter(refused).count()), (1, 2), "{all:?}");
        assert_eq!(project.effects.list(), ["x"]);
        project.executor.shutdown().await;
    });
}

/// E5: what is kept of a run is what its caller got, not more.
#[test]
fn e5_a_kept_result_is_within_the_budget() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let code = "return await mcp.test.rows({ n: 1000 })";
        let mut run = durable(Language::TypeScript, code);
        run.max_output_tokens = Some(200);
        let result = project.execute(run).await;
        let kept = project.store.run(&result.id).await.unwrap().unwrap().result_json.unwrap();
        let kept: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept["result"], value(&result.result));
        assert_eq!(kept["result"]["count"], 1000);
        project.executor.shutdown().await;
    });
}

/// Looks whether a run is on disk in the moment its id is told.
#[derive(Debug)]
struct Reader {
    store: Store,
    found: Mutex<Option<bool>>,
}

impl CallObserver for Reader {
    fn run_begins(&self, run_id: &RunId) {
        let look = || block_on(self.store.run(run_id)).unwrap().is_some();
        let found = std::thread::scope(|threads| threads.spawn(look).join().unwrap());
        *self.found.lock().unwrap() = Some(found);
    }
}

/// A host that is killed after it told the id of a durable run has not lost it.
#[test]
fn o2_the_id_of_a_durable_run_is_told_when_it_is_on_disk() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let store = project.executor.store().unwrap().clone();
        for (execution, is_kept) in [
            (durable(Language::TypeScript, "return 1"), true),
            // Control: of a run without a journal nothing is kept, and it is told all the same.
            (execution(Language::TypeScript, "return 1"), false),
        ] {
            let reader = Arc::new(Reader { store: store.clone(), found: Mutex::default() });
            let execution = Execution { observer: reader.clone(), ..execution };
            let result = project.execute(execution).await;
            assert_eq!(result.status, RunStatus::Completed, "{result:?}");
            assert_eq!(*reader.found.lock().unwrap(), Some(is_kept));
        }
    });
}
