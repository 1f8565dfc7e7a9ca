//! The errors that the agent gets when its code throws (A7).

use belljar_contract::ErrorCode;
use belljar_wire::GuestError;
use serde_json::json;

use crate::harness::{run, value};

/// A7: name and message, and the class of a subclass.
#[test]
fn messages_name_the_error() {
    for (code, message) in [
        ("throw new Error('boom')", "Error: boom"),
        ("throw new RangeError('far')", "RangeError: far"),
        ("throw new Error()", "Error"),
        (
            "class ValidationError extends Error {} throw new ValidationError('bad')",
            "ValidationError: bad",
        ),
        ("class E extends TypeError { name = 'Custom' } throw new E('bad')", "Custom: bad"),
        ("const e = new Error('m'); e.name = ''; throw e", "m"),
        ("await Promise.reject(new Error('rejected'))", "Error: rejected"),
        ("throw new DOMException('stop', 'AbortError')", "AbortError: stop"),
        ("throw { name: 'Parsed', message: 'again', stack: 'x' }", "Parsed: again"),
        ("null.x", "TypeError: cannot read property 'x' of null"),
        (
            "const e: any = new Error('x'); Object.defineProperty(e, 'message', { get() { throw \
                1 } }); throw e",
            "Error",
        ),
    ] {
        let outcome = run(code);
        assert_eq!(
            (outcome.place().0, outcome.place().1),
            (ErrorCode::RuntimeThrown, message),
            "{code}"
        );
    }
}

/// A7: values that are no errors are shown as they are.
#[test]
fn thrown_values_are_shown() {
    for (code, shown) in [
        ("throw 'text'", "Uncaught 'text'"),
        ("throw 42", "Uncaught 42"),
        ("throw { code: 7, list: [1] }", "Uncaught { code: 7, list: [ 1 ] }"),
        ("throw null", "Uncaught null"),
        ("throw undefined", "Uncaught undefined"),
        ("throw Symbol('s')", "Uncaught Symbol(s)"),
    ] {
        let hint = "Throw an Error to get a stack: throw new Error(message).";
        let expected = GuestError::new(ErrorCode::RuntimeThrown, shown).with_hint(hint);
        assert_eq!(run(code).error, Some(expected), "{code}");
    }
}

/// A7: causes and the parts of an AggregateError are in the stack.
#[test]
fn errors_behind_errors_are_told() {
    let code = "function inner() { throw new TypeError('root') }
try { inner() } catch (e) { throw new Error('outer', { cause: e }) }";
    assert_eq!(
        run(code).failure().stack.as_deref(),
        Some(
            "    at main.ts:2:35
Caused by: TypeError: root
    at inner (main.ts:1:26)
    at main.ts:2:7"
        )
    );
    let code = "await Promise.any([Promise.reject(new Error('a')), Promise.reject('b')])";
    let outcome = run(code);
    let error = outcome.failure();
    assert_eq!(error.message, "AggregateError: All promises were rejected");
    assert_eq!(
        error.stack.as_deref(),
        Some("    at main.ts:1:60\n[errors 0]: Error: a\n    at main.ts:1:35\n[errors 1]: 'b'")
    );
    let code = "const e: any = new Error('loop'); e.cause = e; throw e";
    let stack = run(code).failure().stack.clone().unwrap_or_default();
    assert_eq!(stack.matches("Caused by: Error: loop").count(), 8);
}

/// A7: mistakes models make get a hint.
#[test]
fn common_mistakes_have_hints() {
    const DEFINE: &str = "Define it first, or check its spelling. Input is in `context`.";
    const CALLED: &str =
        "Check what is called there: a wrong name, or a missing `await` before it.";
    const BEFORE: &str = "Check the value before the dot: the name may be wrong, or an `await` \
        missing. Use `?.` where it may be absent.";
    const LOOPED: &str =
        "Only arrays, strings, Maps, Sets and the like can be looped over or spread.";
    const PYTHON: &str = "That is Python. Write null, true, false, console.log(...), value.length.";
    for (code, message, hint) in [
        ("undefinedThing + 1", "ReferenceError: undefinedThing is not defined", DEFINE),
        ("const o: any = {}; o.a()", "TypeError: o.a is not a function", CALLED),
        (
            "const data: any = Promise.resolve([1]); data.map((x: any) => x)",
            "TypeError: data.map is not a function",
            CALLED,
        ),
        ("const o: any = {}; o.a(JSON.stringify(o))", "TypeError: o.a is not a function", CALLED),
        ("const o: any = {}; o.a(\n  o,\n  1)", "TypeError: o.a is not a function", CALLED),
        ("const f: any = 1, g: any = () => 2; f(g(1))", "TypeError: not a function", CALLED),
        ("[1].map(5 as any)", "TypeError: not a function", CALLED),
        ("for (const x of 5 as any) {}", "TypeError: value is not iterable", LOOPED),
        ("const o: any = {}; o.a.b", "TypeError: cannot read property 'b' of undefined", BEFORE),
        ("print('x')", "ReferenceError: print does not exist here", PYTHON),
    ] {
        let outcome = run(code);
        let error = outcome.failure();
        assert_eq!((&*error.message, error.hint.as_deref()), (message, Some(hint)), "{code}");
    }
}

/// A7: errors that are caught are the agent's own business.
#[test]
fn caught_errors_are_ordinary() {
    for (code, expected) in [
        ("try { null.x } catch (e) { e instanceof TypeError }", json!(true)),
        (
            "try { throw new Error('m', { cause: 'c' }) } catch (e) { [e.message, e.cause] }",
            json!(["m", "c"]),
        ),
        ("try { (function f() { f() })() } catch (e) { e.name }", json!("RangeError")),
        ("try { JSON.parse('{') } catch (e) { e.name }", json!("SyntaxError")),
        ("try { eval('let 1') } catch (e) { e.name }", json!("SyntaxError")),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A7: `stack` reads as agents know it, with their own lines.
#[test]
fn stacks_read_like_nodes() {
    let code = "interface Gone { a: string }
function f(): never { throw new RangeError('deep') }
class Own extends Error { constructor(m: string) { super(m); Error.captureStackTrace(this, Own) } }
const stacks: any[] = [];
try { f() } catch (e) { stacks.push(e.stack) }
try { throw new Own('own') } catch (e) { stacks.push(e.stack) }
const set = new Error('x'); set.stack = 'mine'; stacks.push(set.stack);
stacks";
    assert_eq!(
        value(code),
        json!([
            "RangeError: deep\n    at f (main.ts:2:29)\n    at main.ts:5:7",
            "Error: own\n    at main.ts:6:13",
            "mine"
        ])
    );
}

/// A7: an error thrown by what is evaluated at run time has no line of the agent's but the call's.
#[test]
fn evaluated_code_is_not_the_agents() {
    let outcome = run("1;\neval('throw new Error(1)')");
    assert_eq!(outcome.place(), (ErrorCode::RuntimeThrown, "Error: 1", Some(2), Some(1)));
}
