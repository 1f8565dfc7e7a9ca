//! B1, B2, B3: what is asked of a session, in every language, and what one crash costs.

use belljar_runtime::RunOptions;
use belljar_testing::sandboxed;
use std::time::Duration;

use belljar_contract::{ErrorCode, Limits, RunRequest, RunStatus};
use belljar_project::SessionPhase;
use serde_json::json;

use crate::{
    descendants::descendants,
    host_support::eventually,
    session_support::{ALL, BASH, PYTHON, TYPESCRIPT, failure, sandbox, session, value},
};

#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b1_variables_functions_and_files_stay_also_after_an_exception() {
    let sandbox = sandbox().await;
    for words in ALL {
        let session = session(&sandbox, words.language).await;
        assert_eq!(value(&session, words.get).await, json!(null), "{words:?}");
        value(&session, words.set).await;
        assert_eq!(value(&session, words.next).await, json!(2), "{words:?}");
        let failed = session.run(words.fail).await;
        assert_eq!((failed.success, failed.session_id.as_ref()), (false, Some(session.id())));
        assert_eq!(value(&session, words.next).await, json!(2), "{words:?}");
        value(&session, words.define).await;
        assert_eq!(value(&session, words.call).await, json!(42), "{words:?}");
        value(&session, words.write).await;
        assert_eq!(value(&session, words.read).await, json!("one"), "{words:?}");
        assert_eq!(session.info().runs, 9);
        // Another session of the same language sees none of it.
        let other = self::session(&sandbox, words.language).await;
        assert_eq!(value(&other, words.get).await, json!(null), "{words:?}");
        assert!(!other.run(words.call).await.success, "{words:?}");
        assert!(!other.run(words.read).await.success, "{words:?}");
    }
    sandbox.shutdown().await;
}

/// B1: TypeScript's declarations live on the session's scope and may be made again.
#[sandboxed]
#[tokio::test]
async fn b1_declarations_of_typescript_live_on_and_may_be_made_again() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, TYPESCRIPT.language).await;
    value(&session, "let a: number = 1; const b = 2; class C { n = 3 }; var d = 4").await;
    assert_eq!(value(&session, "[a, b, new C().n, d]").await, json!([1, 2, 3, 4]));
    value(&session, "let a = 10; const b = 20; class C { n = 30 }").await;
    assert_eq!(value(&session, "[a, b, new C().n, d]").await, json!([10, 20, 30, 4]));
    value(&session, "function get() { return a }").await;
    value(&session, "a = 11").await;
    assert_eq!(value(&session, "get()").await, json!(11));
    assert_eq!(value(&session, "return await Promise.resolve(a + 1)").await, json!(12));
    sandbox.shutdown().await;
}

/// B1: imports stay, and `context` is each run's own.
#[sandboxed]
#[tokio::test]
async fn b1_imports_stay_and_context_is_each_runs_own() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    value(&session, "import json as j\nclass P:\n    n = 5").await;
    assert_eq!(value(&session, "j.loads('[1]') + [P().n]").await, json!([1, 5]));
    let with = |context: &str| {
        let mut request = RunRequest::new(PYTHON.language, "context['n']");
        request.context = serde_json::value::RawValue::from_string(context.to_owned()).ok();
        session.run_with(request, RunOptions::default(), std::future::pending())
    };
    assert_eq!(with("{\"n\": 1}").await.result.get(), "1");
    assert_eq!(with("{\"n\": 2}").await.result.get(), "2");
    sandbox.shutdown().await;
}

/// B1, B3: calls to one session are answered one after the other, in the order they came.
#[sandboxed]
#[tokio::test]
async fn b1_calls_are_answered_in_the_order_they_came() {
    let sandbox = sandbox().await;
    for words in [TYPESCRIPT, PYTHON] {
        let session = session(&sandbox, words.language).await;
        let begin = if words.language == PYTHON.language { "said = []" } else { "said = []; 0" };
        value(&session, begin).await;
        let mut calls = tokio::task::JoinSet::new();
        for n in 0..20_u32 {
            let (session, words) = (session.clone(), words);
            let code = match words.language == PYTHON.language {
                true => format!("said.append({n})\nlen(said)"),
                false => format!("said.push({n}); said.length"),
            };
            // Each is in the queue before the next one is asked.
            let before = session.info().waiting;
            let waiting = session.clone();
            calls.spawn(async move { session.run(code).await });
            eventually("it waits", || {
                waiting.info().waiting > before || waiting.info().runs > u64::from(n)
            })
            .await;
        }
        while let Some(result) = calls.join_next().await {
            assert!(result.expect("it is not broken off").success);
        }
        let expected: Vec<u32> = (0..20).collect();
        assert_eq!(value(&session, "said").await, json!(expected));
    }
    sandbox.shutdown().await;
}

/// B2: a guest that dies is told of with its reason, its processes are gone, and others go on.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b2_a_crash_is_told_and_touches_nobody_else() {
    let sandbox = sandbox().await;
    for words in ALL {
        let other = session(&sandbox, words.language).await;
        value(&other, words.set).await;
        let before = descendants(std::process::id());
        let session = session(&sandbox, words.language).await;
        value(&session, words.set).await;
        let own: Vec<u32> = descendants(std::process::id())
            .into_iter()
            .filter(|pid| !before.contains(pid))
            .collect();
        let guest = *own.last().expect("there is a guest");
        kill(guest);
        let ending = session.ended().await;
        assert_eq!(ending.code, "sandbox.crashed", "{ending:?}");
        assert!(ending.message.contains("signal 9"), "{ending:?}");
        let gone = || descendants(std::process::id()).iter().all(|pid| !own.contains(pid));
        eventually("nothing is left of it", gone).await;
        let refused = session.run(words.get).await.error.expect("it has ended");
        assert_eq!(refused.code, ErrorCode::SessionEnded);
        assert!(refused.message.contains("signal 9"), "{}", refused.message);
        assert_eq!(value(&other, words.next).await, json!(2), "{words:?}");
    }
    sandbox.shutdown().await;
}

#[expect(clippy::cast_possible_wrap, reason = "a process number")]
fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
}

/// B3: a run that never ends is ended; what the engine notices itself leaves the session as it is.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b3_a_run_that_goes_on_too_long_is_ended() {
    let sandbox = sandbox().await;
    for words in ALL {
        let session = session(&sandbox, words.language).await;
        value(&session, words.set).await;
        let mut request = RunRequest::new(words.language, words.spin);
        request.limits.timeout = Duration::from_millis(300);
        let result = session.run_with(request, RunOptions::default(), std::future::pending()).await;
        let error = result.error.expect("it cannot end");
        assert_eq!(error.code, ErrorCode::LimitTimeout, "{words:?}: {error:?}");
        match session.info().phase {
            SessionPhase::Live => assert_eq!(value(&session, words.next).await, json!(2)),
            phase @ (SessionPhase::Lost(_) | SessionPhase::Ended(_)) => {
                // Nobody knows where it was: it is over, and the error has said so.
                assert!(matches!(phase, SessionPhase::Ended(_)), "{phase:?}");
                let hint = error.hint.unwrap_or_default();
                assert!(hint.contains("session has ended"), "{words:?}: {hint}");
            }
        }
    }
    sandbox.shutdown().await;
}

/// B3: aborting a run, and giving one up, end its guest and nothing else.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b3_a_run_that_is_aborted_takes_its_guest_with_it() {
    let sandbox = sandbox().await;
    let (aborted, dropped) =
        (session(&sandbox, PYTHON.language).await, session(&sandbox, PYTHON.language).await);
    let request = || RunRequest::new(PYTHON.language, "print('begun')\nwhile True: pass");
    let abort = tokio::time::sleep(Duration::from_millis(300));
    let result = aborted.run_with(request(), RunOptions::default(), abort).await;
    assert_eq!((result.status, &*result.stdout), (RunStatus::Aborted, "begun\n"));
    let never = std::future::pending();
    let run = dropped.run_with(request(), RunOptions::default(), never);
    assert!(tokio::time::timeout(Duration::from_millis(300), run).await.is_err());
    for session in [aborted, dropped] {
        assert_eq!(session.ended().await.code, "run.aborted");
    }
    sandbox.shutdown().await;
}

/// B3: limits of a session hold for its runs, and those of a run for it alone.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b3_limits_are_the_sessions_and_the_runs() {
    let sandbox = sandbox().await;
    let limits = Limits { memory: 64 << 20, ..Limits::DEFAULT };
    for (words, hog) in [
        (PYTHON, "y = bytearray(300 << 20)"),
        (
            TYPESCRIPT,
            "(() => { const y = []; while (true) y.push(new Uint8Array(1 << 20).fill(1)) })()",
        ),
    ] {
        let session = sandbox.session(words.language).limits(limits).open().await.unwrap();
        value(&session, words.set).await;
        // A run's request beyond the session does not help it.
        let request = RunRequest::new(words.language, hog);
        let result = session.run_with(request, RunOptions::default(), std::future::pending()).await;
        let error = result.error.expect("there is no room");
        assert_eq!(error.code, ErrorCode::LimitMemory, "{words:?} {error:?}");
        if matches!(session.info().phase, SessionPhase::Live) {
            assert_eq!(value(&session, words.next).await, json!(2), "{words:?}");
        }
    }
    let session = session(&sandbox, TYPESCRIPT.language).await;
    let mut small = RunRequest::new(TYPESCRIPT.language, "'x'.repeat(100_000)");
    small.limits.result_bytes = 1000;
    let result = session.run_with(small, RunOptions::default(), std::future::pending()).await;
    assert_eq!(result.error.expect("too large").code, ErrorCode::LimitResult);
    assert_eq!(value(&session, "'x'.repeat(100_000).length").await, json!(100_000));
    let python = RunRequest::new(PYTHON.language, "1");
    let refused = session.run_with(python, RunOptions::default(), std::future::pending()).await;
    assert_eq!(refused.error.expect("another language").code, ErrorCode::RequestInvalid);
    let mut granted = RunRequest::typescript("1");
    granted.grants.read.push("/etc".into());
    let refused = session.run_with(granted, RunOptions::default(), std::future::pending()).await;
    assert_eq!(refused.error.expect("no grants").code, ErrorCode::RequestInvalid);
    sandbox.shutdown().await;
}

/// A9: metrics of a run are its own, not its session's.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b1_what_a_run_used_is_told_apart_from_earlier_ones() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    let busy = session.run("t = 0\nfor n in range(4_000_000): t += n\nt").await;
    let idle = session.run("1").await;
    assert!(busy.metrics.cpu_ms > 50.0, "{:?}", busy.metrics);
    assert!(idle.metrics.cpu_ms < busy.metrics.cpu_ms / 5.0, "{:?}", idle.metrics);
    let large = session.run("y = bytearray(80 << 20)\ndel y").await;
    let small = session.run("1").await;
    assert!(large.metrics.memory_mb > 80.0, "{:?}", large.metrics);
    assert!(small.metrics.memory_mb < large.metrics.memory_mb - 40.0, "{:?}", small.metrics);
    sandbox.shutdown().await;
}

/// B2: a session that is destroyed leaves no process, also in the middle of a run.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b2_destroyed_sessions_leave_nothing() {
    let sandbox = sandbox().await;
    for (n, words) in ALL.into_iter().enumerate() {
        // The zygote stays, and its warden.
        let before = 2 * (n + 1);
        drop(session(&sandbox, words.language).await);
        eventually("it is gone", || descendants(std::process::id()).len() == before).await;
        let busy = session(&sandbox, words.language).await;
        let running = tokio::spawn({
            let (busy, code) = (busy.clone(), words.spin);
            async move { busy.run(code).await }
        });
        eventually("it runs", || busy.info().runs == 1).await;
        busy.destroy().await;
        let error = running.await.expect("a result").error.expect("it was ended");
        assert_eq!(error.code, ErrorCode::SessionEnded, "{error:?}");
        eventually("nothing is left", || descendants(std::process::id()).len() == before).await;
    }
    sandbox.shutdown().await;
    assert_eq!(descendants(std::process::id()), Vec::<u32>::new());
}

/// B1: what a shell leaves behind is text; no process of one run is there in the next.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b1_a_shells_processes_end_with_their_run() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, BASH.language).await;
    value(&session, "mkdir deep; cd deep; shopt -s nullglob; alias hi='echo 7'; a=(1 'b c')").await;
    assert_eq!(value(&session, "echo \"\\\"${PWD##*/} ${a[1]}\\\"\"").await, json!("deep b c"));
    let before = descendants(std::process::id()).len();
    value(&session, "(sleep 300 >/dev/null 2>&1 &) ; sleep 300 >/dev/null 2>&1 & echo 1").await;
    eventually("they are gone", || descendants(std::process::id()).len() <= before).await;
    let told = failure(&session, "exit 4").await;
    assert!(told.contains('4'), "{told}");
    assert_eq!(value(&session, "echo ${#a[@]}").await, json!(2));
    sandbox.shutdown().await;
}
