//! D2, D3, D4, D8: how JavaScript calls tools, and that a replay does the same again.

use std::sync::{Arc, Mutex};

use belljar_contract::ErrorCode;
use belljar_wire::{Command, Durable, Event, RunCommand, ToolCall, ToolFault, ToolReply};
use belljar_worker::quickjs::QuickJs;
use serde_json::{Value, json};

use crate::harness::{self, Outcome, command, run_with};

fn reply(call: u32, value: &Value) -> Command {
    let outcome = Ok(value.to_string().into_bytes());
    Command::ToolReply(ToolReply { call, now_ms: None, outcome })
}

fn fault(call: u32, fault: &ToolFault) -> Command {
    Command::ToolReply(ToolReply { call, now_ms: None, outcome: Err(fault.to_json()) })
}

/// Runs code whose calls this function answers, one by one.
fn answered(code: &str, mut answer: impl FnMut(&ToolCall) -> Command + Send + 'static) -> Outcome {
    run_with(
        || QuickJs::warm().expect("the engine warms"),
        command(code),
        move |ask| {
            let Event::ToolCall(call) = ask else { unreachable!("{ask:?}") };
            vec![answer(&call)]
        },
    )
}

/// A tool that gives back what it was asked.
fn echo(call: &ToolCall) -> Command {
    let arguments: Value = serde_json::from_slice(&call.arguments).expect("arguments are JSON");
    reply(call.call, &json!([call.server, call.tool, arguments, call.line]))
}

#[track_caller]
fn echoed(code: &str) -> Value {
    let outcome = answered(code, echo);
    assert_eq!(outcome.error, None, "{code}");
    outcome.value
}

#[test]
fn d2_a_tool_is_called_by_server_and_name() {
    assert_eq!(
        echoed("\nreturn await mcp.files.readFile({ path: '/x', when: new Date(0) })"),
        json!(["files", "readFile", { "path": "/x", "when": "1970-01-01T00:00:00.000Z" }, 2])
    );
    assert_eq!(
        echoed("return await mcp['my-server']['a.b']()"),
        json!(["my-server", "a.b", {}, 1])
    );
    assert_eq!(
        echoed("return await tools.call('files__read', { n: 1 })"),
        json!([null, "files__read", { "n": 1 }, 1])
    );
    assert_eq!(echoed("return await __callTool__('a__b')"), json!([null, "a__b", {}, 1]));
    assert_eq!(
        echoed("return await tools.search('read a file', 3)"),
        json!(["belljar", "search", { "intent": "read a file", "k": 3 }, 1])
    );
    assert_eq!(
        echoed("return await load('blob_1')"),
        json!(["belljar", "load", { "handle": "blob_1" }, 1])
    );
}

#[test]
fn d4_no_name_is_special() {
    let code = "const names = ['__proto__', 'constructor', 'hasOwnProperty', 'prototype', 'für'];
        const all = await Promise.all(names.flatMap((n) => [mcp[n].x(), mcp.s[n]()]));
        return [all.map(([s, t]) => `${s}.${t}`), ({}).x, Object.getPrototypeOf(mcp),
                typeof mcp.s.then, mcp.a === mcp.a, mcp.a.b === mcp.a.b];";
    let [names, polluted, prototype, then, same_server, same_tool] =
        echoed(code).as_array().expect("a list").clone().try_into().expect("six");
    assert_eq!(
        names,
        json!([
            "__proto__.x",
            "s.__proto__",
            "constructor.x",
            "s.constructor",
            "hasOwnProperty.x",
            "s.hasOwnProperty",
            "prototype.x",
            "s.prototype",
            "für.x",
            "s.für"
        ])
    );
    assert_eq!([polluted, prototype, then], [Value::Null, Value::Null, json!("undefined")]);
    assert_eq!([same_server, same_tool], [json!(true), json!(true)]);
}

#[test]
fn d2_calls_are_under_way_at_the_same_time() {
    // The host answers nothing before it has all three, and then the last one first.
    let mut seen = Vec::new();
    let outcome = run_with(
        || QuickJs::warm().expect("the engine warms"),
        command("return await Promise.all([1, 2, 3].map((n) => mcp.s.t({ n })))"),
        move |ask| {
            let Event::ToolCall(call) = ask else { unreachable!("{ask:?}") };
            seen.push(call.call);
            if seen.len() < 3 {
                return Vec::new();
            }
            seen.iter().rev().map(|call| reply(*call, &json!(call * 10))).collect()
        },
    );
    assert_eq!((outcome.error, outcome.value), (None, json!([10, 20, 30])));
}

#[test]
fn d2_timers_go_on_while_a_call_waits() {
    let code = "let ticks = 0;
        const timer = setInterval(() => { ticks += 1; }, 1);
        const first = await mcp.s.t();
        clearInterval(timer);
        return [first, ticks > 0 || 'no tick'];";
    let outcome = answered(code, |call| {
        std::thread::sleep(std::time::Duration::from_millis(60));
        reply(call.call, &json!("done"))
    });
    assert_eq!((outcome.error, outcome.value), (None, json!(["done", true])));
}

#[test]
fn d3_a_tools_error_can_be_caught() {
    let code = "try { await mcp.s.t(); } catch (e) {
        return [e instanceof ToolError, e.name, e.message, e.code, e.toolName, e.hint];
    }";
    let outcome = answered(code, |call| {
        let failed = ToolFault::new(ErrorCode::ToolFailed, "no such row").of_tool("s__t");
        fault(call.call, &failed.with_hint("look again"))
    });
    assert_eq!(
        (outcome.error, outcome.value),
        (None, json!([true, "ToolError", "no such row", "tool.failed", "s__t", "look again"]))
    );
}

#[test]
fn d3_uncaught_it_names_tool_and_line() {
    let outcome = answered("const a = 1;\n\nawait mcp.s.t({ a });", |call| {
        fault(call.call, &ToolFault::new(ErrorCode::ToolFailed, "no such row").of_tool("s__t"))
    });
    let error = outcome.error.expect("it fails");
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::ToolFailed, "ToolError: no such row")
    );
    assert_eq!((error.tool_name.as_deref(), error.line), (Some("s__t"), Some(3)));
}

#[test]
fn d6_a_refused_call_is_a_permission_error() {
    let outcome = answered("await mcp.s.t();", |call| {
        fault(call.call, &ToolFault::new(ErrorCode::ApprovalDenied, "no").of_tool("s__t"))
    });
    let error = outcome.error.expect("it fails");
    assert_eq!((error.code, error.tool_name.as_deref()), (ErrorCode::ApprovalDenied, Some("s__t")));
    assert_eq!(error.message, "PermissionError: no");
}

#[test]
fn a8_arguments_that_are_not_json_never_leave() {
    let code = "return await mcp.s.t({ a: { f() {} } })";
    let outcome = answered(code, |call| unreachable!("{call:?}"));
    let error = outcome.error.expect("it fails");
    assert_eq!(error.code, ErrorCode::SerializationUnsupported, "{error:?}");
    assert!(error.message.contains("a.f"), "{}", error.message);
}

/// A7: arguments that are no object are the host's to refuse, which knows the tool's own name.
#[test]
fn a7_arguments_of_another_shape_are_refused_by_the_host() {
    for (code, sent) in [("await mcp.s.T('text')", "\"text\""), ("await mcp.s.T([1])", "[1]")] {
        let outcome = answered(code, move |call| {
            assert_eq!(call.arguments, sent.as_bytes());
            fault(call.call, &ToolFault::new(ErrorCode::ToolArguments, "no").of_tool("s__t"))
        });
        let error = outcome.error.expect("it fails");
        let told = (error.code, error.tool_name.as_deref());
        assert_eq!(told, (ErrorCode::ToolArguments, Some("s__t")), "{code}");
    }
}

#[test]
fn d2_a_large_value_arrives_whole() {
    let rows: Vec<Value> = (0..100_000).map(|n| json!({ "n": n, "name": "row" })).collect();
    let rows = Value::from(rows);
    let outcome =
        answered("const r = await mcp.s.t(); return [r.length, r.at(-1).n]", move |call| {
            reply(call.call, &rows)
        });
    assert_eq!((outcome.error, outcome.value), (None, json!([100_000, 99_999])));
}

#[test]
fn a_call_nobody_waits_for_is_made_all_the_same() {
    let calls = Arc::new(Mutex::new(0));
    let counted = calls.clone();
    let outcome = answered("mcp.s.t(); console.log('over')", move |call| {
        *counted.lock().expect("no panic") += 1;
        echo(call)
    });
    assert_eq!((outcome.error, *calls.lock().expect("no panic")), (None, 1));
}

const START: f64 = 1_700_000_000_000.0;

fn durable(code: &str) -> RunCommand {
    let durable = Some(Durable { seed: "5a".repeat(32), now_ms: START });
    RunCommand { durable, ..command(code) }
}

/// Everything the code asked of the host.
type SentEvents = Arc<Mutex<Vec<Event>>>;

/// Runs a durable program: calls are answered at once, each taking 10 ms of its time; timers come
/// when they are due.
fn play(code: &str) -> (Outcome, Vec<Event>) {
    let asked = SentEvents::default();
    let (heard, mut now) = (asked.clone(), START);
    let outcome = run_with(
        || QuickJs::warm().expect("the engine warms"),
        durable(code),
        move |ask| {
            heard.lock().expect("no panic").push(ask.clone());
            if let Event::TimerWanted { at_ms } = ask {
                now = now.max(at_ms);
                return vec![Command::Timer { now_ms: now }];
            }
            let Event::ToolCall(ToolCall { call, .. }) = ask else { unreachable!("{ask:?}") };
            now += 10.0;
            let outcome = Ok(json!(call).to_string().into_bytes());
            vec![Command::ToolReply(ToolReply { call, now_ms: Some(now), outcome })]
        },
    );
    let asked = asked.lock().expect("no panic").clone();
    (outcome, asked)
}

#[test]
fn d8_time_stands_still_between_inputs() {
    let code = "const t = () => [Date.now(), new Date().getTime(), performance.now()];
        const before = t();
        for (let i = 0; i < 1e6; i++);
        const still = t();
        await mcp.s.t();
        const after = t();
        await new Promise((r) => setTimeout(r, 500));
        return [before, still, after, t()].map(([a, b, c]) => [a - 1700000000000, a === b, c]);";
    let (outcome, _) = play(code);
    assert_eq!(
        (outcome.error, outcome.value),
        (None, json!([[0, true, 0], [0, true, 0], [10, true, 10], [510, true, 510]]))
    );
}

#[test]
fn d8_a_replay_does_the_same_again() {
    let code = "const ids = [crypto.randomUUID(), Math.random()];
        const bytes = [...crypto.getRandomValues(new Uint8Array(9))];
        const race = await Promise.race([mcp.s.slow({ ids }),
            new Promise((r) => setTimeout(() => r('timer'), 3))]);
        let n = 0;
        const timer = setInterval(() => { n += 1; }, 0);
        const all = await Promise.all([mcp.s.a({ n, bytes }), mcp.s.b({ at: Date.now() })]);
        clearInterval(timer);
        console.log(String(new Date()), Date(), n);
        return { ids, bytes, race, all, n, date: new Date() };";
    let (first, asked_first) = play(code);
    let (second, asked_second) = play(code);
    assert_eq!(first.error, None);
    assert_eq!((&first.value, &first.prints), (&second.value, &second.prints));
    assert_eq!(asked_first, asked_second);
    // Control: without a seed, two runs differ.
    let random = || harness::value("return crypto.randomUUID()");
    assert_ne!(random(), random());
}

#[test]
fn d8_immediates_do_not_keep_inputs_away() {
    let code = "let done = false;
        mcp.s.t().then(() => { done = true; });
        let rounds = 0;
        while (!done) { rounds += 1; await new Promise((r) => setImmediate(r)); }
        return rounds;";
    let (first, _) = play(code);
    let (second, _) = play(code);
    assert_eq!((first.error, &first.value), (None, &second.value));
}

#[test]
fn d8_dates_are_still_dates() {
    let code = "class Day extends Date {}
        return [new Date(2020, 1, 2) instanceof Date, new Day().getTime() === Date.now(),
            Date.UTC(1970, 0), Date.parse('1970-01-01'), Date.name, Date.length,
            new Date(0).constructor === Date, typeof Date()];";
    let (outcome, _) = play(code);
    assert_eq!(
        (outcome.error, outcome.value),
        (None, json!([true, true, 0, 0, "Date", 7, true, "string"]))
    );
}
