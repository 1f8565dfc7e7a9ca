//! Time, memory and stack run out with an error, never with a crash (A6).

use std::time::{Duration, Instant};

use belljar_contract::ErrorCode;
use serde_json::json;

use crate::harness::{Outcome, command, run, run_command};

fn run_for(code: &str, wall_ms: u64) -> Outcome {
    let mut command = command(code);
    command.limits.wall_ms = wall_ms;
    run_command(command)
}

fn run_in(code: &str, memory_mib: u64) -> Outcome {
    let mut command = command(code);
    command.limits.memory_bytes = memory_mib << 20;
    run_command(command)
}

/// A6: code that does not end is stopped, and told where it was.
#[test]
fn endless_code_times_out_where_it_is() {
    for (code, line) in [
        ("let n = 0;\nwhile (true) {\n  n++;\n}", Some(2)),
        ("function spin(x: number) {\n  for (;;) x += Math.abs(x);\n}\nspin(1)", Some(2)),
        ("try {\n  for (let i = 0; ; i++) i--;\n} catch {} finally { while (true) {} }", Some(2)),
        ("setTimeout(() => {\n  let i = 0; while (true) i++;\n}, 1)", Some(2)),
        ("/^(a+)+$/.test('a'.repeat(60) + 'b')", Some(1)),
        ("({ get a() { let i = 0; while (true) i++ } })", Some(1)),
    ] {
        let began = Instant::now();
        let outcome = run_for(code, 150);
        assert!(began.elapsed() < Duration::from_secs(10), "{code}");
        let error = outcome.failure();
        assert_eq!((error.code, error.line), (ErrorCode::LimitTimeout, line), "{code}");
        let message = format!("timed out after 150 ms, at line {}", line.unwrap_or_default());
        assert_eq!(error.message, message, "{code}");
    }
}

/// A6: so is code that never stops awaiting, though then the line is not always known.
#[test]
fn endless_awaiting_times_out() {
    let outcome = run_for("async function f() {\n  while (true) await null;\n}\nawait f()", 150);
    let hint =
        "The code was still running there. Look for a loop that does not end, or do less work.";
    let error = outcome.failure();
    assert_eq!((error.code, error.hint.as_deref()), (ErrorCode::LimitTimeout, Some(hint)));
}

/// A6: code that waits too long is stopped too, and nothing of it is lost.
#[test]
fn waiting_code_times_out() {
    for code in [
        "console.log('before'); await new Promise((r) => setTimeout(r, 60_000))",
        "console.log('before'); setInterval(() => {}, 10)",
    ] {
        let outcome = run_for(code, 1000);
        let place = (ErrorCode::LimitTimeout, "timed out after 1 s", None, None);
        assert_eq!(outcome.place(), place, "{code}");
        assert_eq!(outcome.stdout(), "before\n");
    }
}

/// A6: a deadline cannot be caught, in promises neither.
#[test]
fn the_deadline_is_final() {
    let code = "
        const spin = async () => { await null; let i = 0; while (true) i++ };
        for (let i = 0; i < 3; i++) { try { await spin() } catch (e) { console.log('caught') } }
        'survived'";
    let outcome = run_for(code, 100);
    assert_eq!((outcome.place().0, outcome.stdout()), (ErrorCode::LimitTimeout, String::new()));
}

/// A6: memory runs out as an error with the limit's value.
#[test]
fn memory_is_limited() {
    for code in [
        "const all = []; while (true) all.push({ x: 1, y: [1, 2] })",
        "const all = []; for (let i = 0; ; i++) all.push('text ' + i)",
        "const all = []; while (true) all.push(new Array(1000).fill(0))",
        "const all: any[] = []; const f = async () => { while (true) all.push({}) }; await f()",
        "globalThis.all = []; const f = async () => { await null; while (true) all.push([]) }; \
            await (async () => await f())()",
        "const all = new Map(); for (let i = 0; ; i++) all.set(i, { i })",
        "new Uint8Array(1e9)",
        "globalThis.all = []; setTimeout(() => { while (true) all.push({}) }, 1)",
        "const p = Promise.resolve(); globalThis.all = []; while (true) all.push(p.then(() => 1))",
        "JSON.parse('[' + '{},'.repeat(1e7) + '1]')",
        "const o: any = {}; for (let i = 0; ; i++) o['k' + i] = i",
        "const a = new Array(2e7).fill('x'); a.join(',')",
    ] {
        let outcome = run_in(code, 32);
        let seen = (outcome.place().0, outcome.place().1);
        assert_eq!(seen, (ErrorCode::LimitMemory, "out of memory: the limit is 32 MiB"), "{code}");
    }
    for code in ["let s = 'x'; while (true) s += s", "'x'.repeat(2 ** 30)"] {
        let outcome = run_in(code, 32);
        let message = "a string grew too long: the limit is 32 MiB";
        assert_eq!((outcome.place().0, outcome.place().1), (ErrorCode::LimitMemory, message));
    }
}

/// A6: the same work within the limit is fine, and so is what catches the error.
#[test]
fn memory_within_the_limit_is_fine() {
    let outcome =
        run_in("const all = []; for (let i = 0; i < 1e5; i++) all.push({ i }); all.length", 32);
    assert_eq!((outcome.error, outcome.value), (None, json!(100_000)));
    let code = "const all: any = []; try { while (true) all.push(new Array(1000).fill(0)) } \
        catch (e) { all.length = 0; 'went on' }";
    assert_eq!(run_in(code, 32).value, json!("went on"));
}

/// A6: endless recursion is an error, however it recurses; the process survives.
#[test]
fn the_stack_is_limited() {
    for code in [
        "function f(): any { return f() } f()",
        "const f = (): any => [1].map(f); f()",
        "const o: any = { toString: () => `${o}` }; `${o}`",
        "class A { get x(): any { return this.x } } new A().x",
        "const a: any[] = []; a[0] = a; a.toString()",
        "let a: any = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)",
        "let p: any = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x",
        "JSON.parse('['.repeat(1e6))",
        "eval('('.repeat(1e5))",
        "const f = async (): Promise<any> => f(); await f()",
        "const p: any = new Proxy({}, { get: (t, k, r) => r[k] }); p.x",
    ] {
        let outcome = run_for(code, 5000);
        let seen = (outcome.place().0, outcome.place().1);
        let message = "RangeError: Maximum call stack size exceeded";
        assert_eq!(seen, (ErrorCode::RuntimeStackOverflow, message), "{code}");
    }
    let deep = "const f = (n: number): number => (n === 0 ? 0 : 1 + f(n - 1)); f(2000)";
    assert_eq!(run(deep).value, json!(2000));
}
