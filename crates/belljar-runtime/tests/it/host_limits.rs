//! Every limit ends a run with its own typed error (A6, A7), keeps what was printed before, and
//! leaves the next run unaffected (A10).

use std::time::Duration;

use belljar_contract::{ErrorCode, ErrorKind, Limit, Limits, RunRequest, RunResult, Tier};
use libtest_mimic::Trial;

use crate::harness::{host, run};

const MIB: u64 = 1 << 20;

pub(crate) fn trials() -> Vec<Trial> {
    trials! {
        current_thread:
            a_loop_without_end_is_a_timeout_with_its_line,
            waiting_too_long_is_a_timeout,
            burning_cpu_is_a_timeout_of_its_own,
            memory_bombs_are_memory_errors,
            large_code_and_context_are_refused,
            output_is_cut_and_then_fatal,
            a_large_value_is_a_limit_error,
            asking_for_more_than_the_maximum_is_refused,
            every_limit_above_its_maximum_is_refused_by_name,
            deep_recursion_is_a_stack_overflow,
            values_that_are_not_json_are_serialization_errors;
    }
}

fn limited(code: &str, change: impl FnOnce(&mut Limits)) -> RunRequest {
    let mut request = RunRequest::typescript(code);
    change(&mut request.limits);
    request
}

/// Runs a request that must fail, then one that must not.
async fn failure(request: RunRequest) -> RunResult {
    let host = host(1).await;
    let failed = host.run(request).await;
    let next = run(&host, "1 + 1").await;
    assert_eq!((next.success, next.result.get()), (true, "2"), "{:?}", next.error);
    host.shutdown().await;
    assert!(!failed.success);
    assert_eq!(failed.exit_code, 1);
    assert_eq!(failed.isolation.tier, Tier::Full);
    failed
}

#[track_caller]
fn assert_error(result: &RunResult, kind: ErrorKind, code: ErrorCode) {
    let error = result.error.as_ref().expect("an error");
    assert_eq!((error.kind, error.code), (kind, code), "{error:?}");
}

/// A6: wall time. The guest itself says where it was.
async fn a_loop_without_end_is_a_timeout_with_its_line() {
    let request = limited("console.log('before');\n\nwhile (true) {}", |limits| {
        limits.timeout = Duration::from_millis(300);
    });
    let result = failure(request).await;
    assert_error(&result, ErrorKind::TimeoutError, ErrorCode::LimitTimeout);
    assert_eq!(result.stdout, "before\n");
    assert_eq!(result.error.unwrap().line, Some(3));
}

/// A6: wall time, when the guest never comes back to its interpreter loop.
async fn waiting_too_long_is_a_timeout() {
    for code in [
        "console.log('before'); await new Promise(done => setTimeout(done, 60_000)); 1",
        "console.log('before'); const next = () => Promise.resolve().then(next); next(); await new Promise(() => {})",
        "console.log('before'); /^(a+)+$/.test('a'.repeat(40) + 'b')",
        "console.log('before'); const a = []; a.length = 4e9; a.fill(0)",
    ] {
        let request = limited(code, |limits| limits.timeout = Duration::from_millis(300));
        let result = failure(request).await;
        let error = result.error.as_ref().expect("an error");
        assert!(
            matches!(error.kind, ErrorKind::TimeoutError | ErrorKind::MemoryError),
            "{code}: {error:?}"
        );
        assert_eq!(result.stdout, "before\n", "{code}");
    }
}

/// A6: CPU time, shorter than wall time.
async fn burning_cpu_is_a_timeout_of_its_own() {
    let result = failure(limited("while (true) {}", |limits| {
        limits.cpu = Duration::from_millis(200);
        limits.timeout = Duration::from_secs(20);
    }))
    .await;
    assert_error(&result, ErrorKind::TimeoutError, ErrorCode::LimitCpu);
}

/// A6: memory, however it is asked for.
async fn memory_bombs_are_memory_errors() {
    for code in [
        "const a = []; while (true) a.push(new Array(1000).fill(1.5))",
        "'x'.repeat(1_000_000_000)",
        "let s = 'x'; while (true) s += s",
        "const all = []; while (true) all.push(new Uint8Array(10_000_000))",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
    ] {
        let result = failure(limited(code, |limits| limits.memory = 64 * MIB)).await;
        assert_error(&result, ErrorKind::MemoryError, ErrorCode::LimitMemory);
    }
}

/// A6: code and context sizes are checked before anything runs.
async fn large_code_and_context_are_refused() {
    let host = host(0).await;
    let exactly = format!("return 1;{}", " ".repeat(50_000 - 9));
    assert!(run(&host, &exactly).await.success, "50,000 bytes are allowed");
    let result = run(&host, &format!("{exactly} ")).await;
    assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitCode);
    assert_eq!(result.isolation.tier, Tier::Refused);
    let mut request = limited("context.length", |limits| limits.context_bytes = 10);
    request.context = Some(serde_json::value::to_raw_value(&vec![1; 100]).unwrap());
    let result = host.run(request).await;
    assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitContext);
    host.shutdown().await;
}

/// A6: output. 64 KiB are kept and marked, over 1 MB is an error, and what was kept stays.
async fn output_is_cut_and_then_fatal() {
    let host = host(1).await;
    let result = run(&host, "for (let i = 0; i < 100; i++) console.log('x'.repeat(999)); 7").await;
    assert_eq!((result.success, result.result.get()), (true, "7"));
    assert_eq!((result.stdout.len(), result.truncated.stdout), (64 << 10, true));
    assert!(!result.truncated.stderr);
    let flood = "while (true) console.error('y'.repeat(9999))";
    let result = failure(RunRequest::typescript(flood)).await;
    assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitOutput);
    assert_eq!((result.stderr.len(), result.truncated.stderr), (64 << 10, true));
    let small = limited("console.log('abcdef'); 1", |limits| limits.output_bytes = 3);
    let result = host.run(small).await;
    assert_eq!((&*result.stdout, result.truncated.stdout), ("abc", true));
    host.shutdown().await;
}

/// A6, A8: a value over its cap is an error, not a flood.
async fn a_large_value_is_a_limit_error() {
    let result = failure(RunRequest::typescript("'x'.repeat(50_000_000)")).await;
    assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitResult);
    let host = host(0).await;
    let result = run(&host, "'x'.repeat(15_000_000)").await;
    assert_eq!(result.result.get().len(), 15_000_002);
    host.shutdown().await;
}

/// A6: nothing goes above the operator's maximum.
async fn asking_for_more_than_the_maximum_is_refused() {
    let host = host(0).await;
    let result = host.run(limited("1", |limits| limits.memory = 1 << 50)).await;
    assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitMaximum);
    let result = host.run(limited("1", |limits| limits.timeout = Duration::ZERO)).await;
    assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitMaximum);
    host.shutdown().await;
}

/// A6: every row of the table of limits, by its name; at its maximum each of them is admitted.
async fn every_limit_above_its_maximum_is_refused_by_name() {
    let host = host(0).await;
    for limit in Limit::ALL {
        let name = limit.key();
        for amount in [0, limit.get(&Limits::MAXIMUM) * 2] {
            let result = host.run(limited("1", |limits| limit.set(limits, amount))).await;
            assert_error(&result, ErrorKind::LimitError, ErrorCode::LimitMaximum);
            assert_eq!(result.isolation.tier, Tier::Refused);
            let message = result.error.unwrap().message;
            assert!(message.starts_with(&format!("{name} of ")), "{name}: {message}");
        }
        let most = limit.get(&Limits::MAXIMUM);
        let result = host.run(limited("1", |limits| limit.set(limits, most))).await;
        assert!(result.success, "{name}: {:?}", result.error);
    }
    host.shutdown().await;
}

/// Deep recursion is an error of the code, not a crash of the cell.
async fn deep_recursion_is_a_stack_overflow() {
    for code in [
        "const f = (n: number): number => f(n + 1) + 1; f(0)",
        "const a: any = { toString: () => `${a}` }; `${a}`",
        "const o: any = { get x() { return this.x } }; o.x",
    ] {
        let result = failure(RunRequest::typescript(code)).await;
        assert_error(&result, ErrorKind::RuntimeError, ErrorCode::RuntimeStackOverflow);
    }
}

/// A8: values that are not JSON name the path.
async fn values_that_are_not_json_are_serialization_errors() {
    for code in ["const a: any = {}; a.a = a; a", "({ n: 10n })", "[() => 1]"] {
        let result = failure(RunRequest::typescript(code)).await;
        assert_error(&result, ErrorKind::SerializationError, ErrorCode::SerializationUnsupported);
    }
}
