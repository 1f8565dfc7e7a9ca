//! TypeScript in a session: what one run declares is there in the next (B1).

use belljar_contract::{ErrorCode, Language, Stream};
use belljar_wire::{Command, Event, RunCommand, ToolReply};
use belljar_worker::quickjs::QuickJs;
use serde_json::{Value, json};

use crate::harness::{Outcome, codes, command, run, run_session, stack_of_old};

/// Runs code, one after the other, in one session.
fn session(codes: &[&str]) -> Vec<Outcome> {
    session_of(codes.iter().map(|code| command(code)).collect())
}

fn session_of(commands: Vec<RunCommand>) -> Vec<Outcome> {
    let warm = || QuickJs::warm().expect("the engine warms");
    run_session(warm, commands, |ask| unreachable!("nobody answers {ask:?}"))
}

/// The value of the last of runs that must all succeed.
#[track_caller]
fn last(codes: &[&str]) -> Value {
    let outcomes = session(codes);
    for (code, outcome) in codes.iter().zip(&outcomes) {
        assert_eq!(outcome.error, None, "{code}");
    }
    outcomes.into_iter().next_back().expect("there is a run").value
}

/// B1: whatever declares a name at the top level, later runs have it.
#[test]
fn b1_names_outlive_their_run() {
    let declared = "
        let a = 1, unset;
        const b: number = 2;
        var c = 3;
        d = 4;
        class E { static n = 5; m() { return E.n; } }
        function f(this: void, n = 6): number { return n; }
        async function* g() { yield 7; }
        const h = () => 8;
        enum I { Nine = 9 }
        namespace J { export const ten = 10; }
        export const k = 11;
        const enum L { Twelve = 12 }
    ";
    let used = "let m = 0;
        for await (const n of g()) m = n;
        return [a, b, c, d, new E().m(), f(), m, h(), I.Nine, I[9], J.ten, k, L.Twelve, unset];";
    let expected = json!([1, 2, 3, 4, 5, 6, 7, 8, 9, "Nine", 10, 11, 12, null]);
    assert_eq!(last(&[declared, used]), expected);
    // Control: without a session nothing stays.
    assert_eq!(run("typeof a").value, json!("undefined"));
}

/// B1: patterns bind as they do in single runs.
#[test]
fn b1_patterns_bind_their_names() {
    let declared = "
        const { a, b: [c, , d = 3], ...rest }: any = { a: 1, b: [2, 0], e: 4, f: 5 };
        let [g, { h = () => 7 } = {}, ...others] = [6, undefined, 8, 9] as any;
        const { ['x' + 1]: i, [`y`]: { z: j } } = { x1: 10, y: { z: 11 } };
        var { length: k } = 'twelve chars';
    ";
    let used = "[a, c, d, rest, g, h(), h.name, others, i, j, k]";
    let expected = json!([1, 2, 3, {"e": 4, "f": 5}, 6, 7, "h", [8, 9], 10, 11, 12]);
    assert_eq!(last(&[declared, used]), expected);
}

/// B1: a name may be declared again, as anything.
#[test]
fn b1_names_may_be_declared_again() {
    let codes = ["const x = 1", "let x = 2; var y = x", "class x {}", "function x() { return y; }"];
    for count in 1..=codes.len() {
        let mut runs: Vec<_> = codes.into_iter().take(count).collect();
        runs.push("typeof x + (typeof x === 'function' ? x.name : x)");
        let expected = ["number1", "number2", "functionx", "functionx"];
        assert_eq!(json!(expected.get(count - 1)), last(&runs));
    }
    assert_eq!(last(&["let x = 5", "let x; return x === undefined"]), json!(true));
    assert_eq!(last(&["var x = 5", "var x; return x"]), json!(5));
    assert_eq!(last(&["enum E { A }", "enum E { B } return [E.A, E.B]"]), json!([null, 0]));
    assert_eq!(
        last(&["namespace N { export const a = 1 }", "namespace N { export const b = 2 } N"]),
        json!({"b": 2})
    );
    // In one and the same run it stays the mistake it is.
    let outcomes = session(&["let x = 1; let x = 2;"]);
    let told = outcomes.first().map(Outcome::told);
    let message = "SyntaxError: Identifier `x` has already been declared";
    assert_eq!(told, Some((ErrorCode::SyntaxInvalid, message)));
}

/// B1: functions of an earlier run see what names mean now.
#[test]
fn b1_functions_see_later_changes() {
    let defined = "let n = 1;
        const step = () => n;
        function twice() { return 2 * step(); }
        class Counter { now() { return twice(); } }
        function fact(k) { return k < 2 ? 1 : k * fact(k - 1); }";
    assert_eq!(last(&[defined, "n = 5; new Counter().now()"]), json!(10));
    assert_eq!(last(&[defined, "let n = 6; twice()"]), json!(12));
    assert_eq!(last(&[defined, "const step = () => 100; new Counter().now()"]), json!(200));
    let renewed = "function fact() { return 10; } old(3)";
    assert_eq!(last(&[defined, "const old = fact", renewed]), json!(30));
    assert_eq!(
        last(&[
            "const add = () => { total = (globalThis.total ?? 0) + 1; }",
            "add(); add(); total"
        ]),
        json!(2)
    );
}

/// B1: `var` reaches the session from inside of blocks; `let` does not.
#[test]
fn b1_blocks_keep_what_is_theirs() {
    let code = "
        before = [typeof late, hoisted()];
        function hoisted() { return 'up'; }
        for (var i = 0, j = 9; i < 3; i++) { let inner = i; }
        for (let k = 0; k < 1; k++);
        for (var [p, q] of [[1, 2]]);
        for (var key in { one: 1 });
        outer: for (const x of [1]) { for (;;) { var late = x; break outer; } }
        if (true) var single = 1;
        try { throw 1; } catch (error) { var caught = error; }
        switch (1) { case 1: var cased = 1; }
        (() => { var hidden = 1; })();
        class Holder { static { var hiddenToo = 1; } }
    ";
    let used = "[before, i, j, typeof k, typeof x, typeof inner, p, q, key, late, single, caught,
        cased, typeof hidden, typeof hiddenToo]";
    let expected = json!([
        ["undefined", "up"],
        3,
        9,
        "undefined",
        "undefined",
        "undefined",
        1,
        2,
        "one",
        1,
        1,
        1,
        1,
        "undefined",
        "undefined"
    ]);
    assert_eq!(last(&[code, used]), expected);
}

/// B1: the value of a run is what it is in single runs, and so is everything about its errors.
#[test]
fn b1_a_run_in_a_session_is_like_any_other() {
    for code in [
        "const x = 1;",
        "let x = 1; x",
        "function f() {} class A {}",
        "const { a } = { a: 1 }; a + 1",
        "const x = await Promise.resolve(4); return x;",
        "'just text'",
        "if (true) { const x = 1; x + 1 } else 3",
        "for (let i = 0; i < 3; i++) { if (i === 1) return i; }",
        "'use strict'; let x = 1; var y = 2; function f() { return this } [x, y, f() === undefined]",
        "setTimeout(() => console.log('later'), 1)",
        "import path from 'node:path'; import { readFileSync as read } from 'fs'; path.join('a')",
        "const x = 1; x = 2;",
        "const { a: [b] } = { a: [1] }; [b] = [2];",
        "const rows: number[] = [1];\nconst sum = rows.reduce((a, b) => a + b);\nsum.missing();",
        "const x = {};\nlet y = 1, z = x.deep.er;",
        "const boom = () => {\n  throw new RangeError('no');\n};\n  boom();",
        "class Bad { constructor() { undefinedName; } }\nconst bad = new Bad();",
        "async function later() {\n  await null;\n  throw new Error('late');\n}\nlater();\nawait 1;",
        "const { a: { b } } = {} as any;",
        "function deep(n) { return deep(n + 1) + 1; }\ndeep(0);",
        "let x = ;",
        "using x = null;",
        "@dec class A {}",
        "let x = fetch('https://example.com');\nawait x;",
        "const never = new Promise(() => {});\nawait never;",
    ] {
        let single = run(code);
        let outcomes = session(&["let unrelated = 1;", code]);
        assert_eq!(outcomes.get(1), Some(&single), "{code}");
    }
    let javascript = RunCommand { language: Language::JavaScript, ..command("const x = 2;") };
    let outcomes = session_of(vec![javascript, command("x as number")]);
    assert_eq!(outcomes.get(1).map(|outcome| &outcome.value), Some(&json!(2)));
}

/// B1: the state is there after an exception, a syntax error, a timeout, an empty memory.
#[test]
fn b1_state_outlives_failures() {
    let hurried = |code: &str| {
        let mut command = command(code);
        command.limits.wall_ms = 200;
        command
    };
    let cramped = |code: &str| {
        let mut command = command(code);
        command.limits.memory_bytes = 64 << 20;
        command
    };
    let endless = "kept.push('endless'); (async () => { for (;;) { kept; await null; } })();";
    let outcomes = session_of(vec![
        command("const kept = ['first'];"),
        command("kept.push('thrown'); throw new Error('x')"),
        command("kept.push( "),
        hurried("kept.push('loop'); for (;;) ;"),
        hurried(endless),
        hurried("kept.push('waited'); await new Promise((f) => setTimeout(f, 60000));"),
        cramped(
            "kept.push('full'); var hoard = []; for (;;) hoard.push('x'.repeat(1000) + hoard.length);",
        ),
        cramped("kept.push(hoard.length > 1000); hoard = null;"),
        cramped("kept.push(new Array(1e6).fill(1).length);"),
        command("kept"),
    ]);
    use ErrorCode as Code;
    let expected = [
        None,
        Some(Code::RuntimeThrown),
        Some(Code::SyntaxInvalid),
        Some(Code::LimitTimeout),
        Some(Code::LimitTimeout),
        Some(Code::LimitTimeout),
        Some(Code::LimitMemory),
        None,
        None,
        None,
    ];
    assert_eq!(codes(&outcomes), expected, "{outcomes:#?}");
    let kept = json!(["first", "thrown", "loop", "endless", "waited", "full", true, 1_000_000]);
    assert_eq!(outcomes.last().map(|outcome| &outcome.value), Some(&kept));
}

/// B1: what a run leaves waiting is dropped; it neither speaks in a later run nor harms it.
#[test]
fn b1_leftovers_of_a_run_are_dropped() {
    let hurried = |code: &str| {
        let mut command = command(code);
        command.limits.wall_ms = 100;
        command
    };
    let outcomes = session_of(vec![
        command(
            "var said = 0; const say = (text) => { said += 1; console.log(text); };
            const ticking = setInterval(() => say('interval'), 5);
            setTimeout(() => say('timeout'), 10).unref();
            setImmediate(() => say('immediate'));
            console.group('open');
            throw new Error('first');",
        ),
        command(
            "clearInterval(ticking); ticking.refresh(); await new Promise((f) => setTimeout(f, 30)); console.log('b'); said",
        ),
        hurried("Promise.reject(new Error('nobody looks')); for (;;) ;"),
        hurried("(async () => { for (;;) { await null; say('job'); } })(); said = 0;"),
        command("const before = said; await new Promise((f) => setTimeout(f, 30)); said - before"),
        command(
            "let settle; const late = new Promise((f) => { settle = f; }).then((n) => n + 1); 1",
        ),
        command("settle(41); await late"),
        command("Promise.reject(new Error('of this run')); await 1;"),
        command("2"),
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!(at(0).told(), (ErrorCode::RuntimeThrown, "Error: first"));
    assert_eq!(
        (at(1).error.as_ref(), at(1).stdout().as_str(), &at(1).value),
        (None, "b\n", &json!(0))
    );
    assert_eq!(at(2).told().0, ErrorCode::LimitTimeout);
    assert_eq!(at(3).told().0, ErrorCode::LimitTimeout);
    assert_eq!(
        (at(4).error.as_ref(), at(4).stdout().as_str(), &at(4).value),
        (None, "", &json!(0))
    );
    assert_eq!(at(6).value, json!(42));
    assert_eq!(at(7).told(), (ErrorCode::RuntimeUnhandledRejection, "Error: of this run"));
    assert_eq!((at(8).error.as_ref(), &at(8).value), (None, &json!(2)));
}

/// B1: context, grants, limits and what is printed are each run's own.
#[test]
fn b1_context_and_grants_are_of_one_run() {
    let granted = |code: &str, context: &str, env: &[(&str, &str)]| {
        let mut command = command(code);
        command.context = context.into();
        let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        command.grants.env = pairs.collect();
        command
    };
    let mut small = command("'x'.repeat(100)");
    small.limits.result_bytes = 50;
    let outcomes = session_of(vec![
        granted(
            "const first = context; console.log('one'); process.env.A",
            r#"{"n":1}"#,
            &[("A", "a")],
        ),
        granted("let n = context.n; context = 'mine'; return [n, first.n, NaN]", r#"{"n":2}"#, &[]),
        granted("context", "", &[]),
        granted("process.env.A", "", &[]),
        small,
        command("'x'.repeat(100).length"),
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!((&at(0).value, at(0).stdout()), (&json!("a"), "one\n".to_owned()));
    assert_eq!((&at(1).value, at(1).lossy), (&json!([2, 1, null]), true));
    assert_eq!((&at(2).value, at(2).lossy, at(2).prints.len()), (&json!({}), false, 0));
    assert_eq!((&at(3).error, &at(3).value), (&None, &json!(null)));
    assert_eq!(at(4).told().0, ErrorCode::LimitResult);
    assert_eq!(at(5).value, json!(100));
}

/// B1: errors in functions of earlier runs are told where those were written.
#[test]
fn b1_frames_are_of_the_right_run() {
    let outcomes = session(&[
        "type T = { a: number };\n\nfunction outer(f: () => T) {\n  return inner(f);\n}\nconst inner = (f: any) => f().a;",
        "1",
        "\n\nouter(() => { throw new TypeError('here'); });",
        "outer(() => null as any);",
        "try { outer(() => null as any); } catch (error) { return error.stack; }",
        "const spin = () => {\n  for (;;) ;\n};",
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run").failure();
    let stack = "    at main.ts:3:21\n    at inner (<run 1>:6:27)\n    at outer (<run 1>:4:10)\n    at main.ts:3:1";
    assert_eq!(
        (at(2).stack.as_deref(), at(2).line, at(2).column),
        (Some(stack), Some(3), Some(21))
    );
    let stack = "    at inner (<run 1>:6:27)\n    at outer (<run 1>:4:10)\n    at main.ts:1:1";
    assert_eq!((at(3).stack.as_deref(), at(3).line, at(3).column), (Some(stack), Some(1), Some(1)));
    let stack = "TypeError: cannot read property 'a' of null\n    at inner (<run 1>:6:27)\n    \
        at outer (<run 1>:4:10)\n    at main.ts:1:7";
    assert_eq!(outcomes.get(4).map(|outcome| &outcome.value), Some(&json!(stack)));
    let mut late = command("spin();");
    late.limits.wall_ms = 100;
    let outcomes = session_of(vec![command("const spin = () => {\n  for (;;) ;\n};"), late]);
    let message = "timed out after 100 ms, at line 2 of <run 1>";
    assert_eq!(outcomes.get(1).map(Outcome::told), Some((ErrorCode::LimitTimeout, message)));
}

/// B1: what is remembered of earlier code is bounded; older functions still work.
#[test]
fn b1_old_sources_are_forgotten() {
    let first = "function old() {\n  throw new Error('old');\n}";
    let filler = format!("/* {} */ 1", "x".repeat(1 << 20));
    let stack_after = |fillers| stack_of_old(session, first, &filler, fillers);
    let whole = "    at old (<run 1>:2:9)\n    at main.ts:1:1";
    assert_eq!(stack_after(1).as_deref(), Some(whole));
    assert_eq!(stack_after(4).as_deref(), Some("    at main.ts:1:1"));
}

/// B1: code may take any name for itself; the library goes on.
#[test]
fn b1_taking_names_does_not_break_the_library() {
    let taking = "const names = Object.getOwnPropertyNames(globalThis)
        .filter((name) => !['globalThis', 'undefined', 'NaN', 'Infinity'].includes(name));
        const real = {}; for (const name of names) real[name] = globalThis[name];
        real.console.log(names.length > 80);";
    let all = "for (const name of names) globalThis[name] = 0; names.length;";
    let used =
        "const { console, URL, TextEncoder, structuredClone, Intl, crypto, fs, data, mcp } = real;
        const out = [];
        const seen = (f) => { try { out.push(f()); } catch (error) { out.push(`${error}`); } };
        console.log({ a: [1, new real.Map([[1, 2]])] });
        console.table([{ a: 1 }]);
        seen(() => new URL('/a?b=1', 'http://x.y').searchParams.get('b'));
        seen(() => new TextEncoder().encode('é').length);
        seen(() => structuredClone({ a: new real.Date(0) }).a.getTime());
        seen(() => (1234.5).toLocaleString('de-DE'));
        seen(() => new real.Date(0).toLocaleDateString('en-US', { dateStyle: 'long' }));
        seen(() => crypto.randomUUID().length);
        seen(() => data.groupBy([{ k: 1 }, { k: 1 }], 'k') !== undefined);
        seen(() => { try { fs.readFileSync('/nowhere/x'); } catch (error) { return error.code; } });
        seen(() => real.btoa('bell'));
        await new real.Promise((done) => real.setTimeout(done, 2));
        try { await mcp.shop.list({ live: () => 1 }); } catch (error) { out.push(error.name); }
        return out;";
    for loaded in [
        "",
        "real.console.table([]); mcp; fs; data; URL; TextEncoder; structuredClone; crypto; new Intl.NumberFormat(); ",
    ] {
        let outcomes =
            session(&[taking, &format!("{loaded}{all}"), used, "context.x ?? null", "fetch"]);
        let at = |index: usize| outcomes.get(index).expect("there is such a run");
        assert_eq!(at(2).error, None);
        let table =
            "┌─────────┬───┐\n│ (index) │ a │\n├─────────┼───┤\n│ 0       │ 1 │\n└─────────┴───┘\n";
        assert_eq!(at(2).stdout(), format!("{{ a: [ 1, Map(1) {{ 1 => 2 }} ] }}\n{table}"));
        let expected = json!([
            "1",
            2,
            0,
            "1.234,5",
            "January 1, 1970",
            36,
            true,
            "ENOENT",
            "YmVsbA==",
            "ToolError"
        ]);
        assert_eq!(at(2).value, expected);
        assert_eq!((at(3).error.as_ref(), &at(4).value), (None, &json!(0)));
    }
    // The names agents are most likely to take.
    let usual = "const fs = require('fs'), path = 1, data = [1], tools = 2, console2 = console;
        class Event {} let URL = 'u'; function output() {} var performance = 3;";
    let value = last(&[
        usual,
        "[typeof fs.readFileSync, path, data, tools, URL, performance, new Event() instanceof Event]",
    ]);
    assert_eq!(value, json!(["function", 1, [1], 2, "u", 3, true]));
}

/// B1: a constant is one in the run that declares it, and its value is there later.
#[test]
fn b1_constants_are_constant_in_their_run() {
    let outcomes = session(&["const x = 1;\nconst f = () => { x = 2; };\nf();", "x", "x = 3; x"]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!(
        at(0).place(),
        (ErrorCode::RuntimeThrown, "TypeError: 'x' is read-only", Some(2), Some(19))
    );
    assert_eq!((&at(1).value, &at(2).value), (&json!(1), &json!(3)));
}

/// B1: tools can be called in every run; a call an earlier run did not wait for is forgotten.
#[test]
fn b1_tools_are_there_in_each_run() {
    let commands = [
        "const call = (n: number) => mcp.shop.double({ n }); await call(1)",
        "call(-1); throw new Error('gone')",
        "await Promise.all([call(2), tools.call('shop__double', { n: 3 })])",
    ];
    let warm = || QuickJs::warm().expect("the engine warms");
    let outcomes = run_session(warm, commands.iter().map(|code| command(code)).collect(), |ask| {
        let Event::ToolCall(call) = ask else { unreachable!("{ask:?}") };
        let arguments: Value = serde_json::from_slice(&call.arguments).expect("JSON");
        let n = arguments.get("n").and_then(Value::as_i64).expect("a number");
        let outcome = Ok((2 * n).to_string().into_bytes());
        if n < 0 {
            return Vec::new();
        }
        vec![Command::ToolReply(ToolReply { call: call.call, outcome, now_ms: None })]
    });
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!(at(0).value, json!(2));
    assert_eq!(at(1).told(), (ErrorCode::RuntimeThrown, "Error: gone"));
    assert_eq!((at(2).error.as_ref(), &at(2).value), (None, &json!([4, 6])));
}

/// B1: output of one run is not that of another, and denials neither.
#[test]
fn b1_output_is_each_runs_own() {
    let outcomes = session(&[
        "console.log(1); console.error(2); try { fetch('x').catch(() => 0) } catch {}",
        "console.log(3)",
    ]);
    let printed: Vec<_> = outcomes
        .iter()
        .map(|one| (one.stdout(), one.printed(Stream::Stderr), one.denied.len()))
        .collect();
    let text = str::to_owned;
    assert_eq!(printed, [(text("1\n"), text("2\n"), 1), (text("3\n"), text(""), 0)]);
}
