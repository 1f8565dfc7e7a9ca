//! From values to JSON (A8).

use belljar_contract::ErrorCode;
use belljar_wire::{GuestError, RunCommand};
use serde_json::json;

use crate::harness::{command, run, run_command, value};

/// A8: what JSON has a place for.
#[test]
fn values_become_json() {
    for (code, expected) in [
        ("null", json!(null)),
        ("undefined", json!(null)),
        ("true", json!(true)),
        ("-0", json!(0)),
        (
            "[0.1 + 0.2, 1e21, 1e-7, 1.5e300, -123456789012, 2 ** 53]",
            json!([
                0.1 + 0.2,
                1e21,
                1e-7,
                1.5e300,
                -123_456_789_012_i64,
                9_007_199_254_740_992_i64
            ]),
        ),
        (
            "'tab\\t quote\" back\\\\ nul\\0 é 😀 \\u2028'",
            json!("tab\t quote\" back\\ nul\0 é 😀 \u{2028}"),
        ),
        ("'a\\ud800b\\udc00'", json!("a\u{fffd}b\u{fffd}")),
        ("({ ['k\\ud800']: '\\u005cud800' })", json!({"k\u{fffd}": "\\ud800"})),
        ("({ a: undefined, b: 1, c: undefined })", json!({"b": 1})),
        ("[undefined, , 1]", json!([null, null, 1])),
        ("({ 2: 'b', 1: 'a', x: 'c' })", json!({"1": "a", "2": "b", "x": "c"})),
        ("({ [Symbol('s')]: 1, a: 2 })", json!({"a": 2})),
        (
            "Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { \
                value: 3 } })",
            json!({"own": 2}),
        ),
        ("Object.create(null, { a: { value: 1, enumerable: true } })", json!({"a": 1})),
        ("class P { x = 1; #y = 2; get z() { return 3 } } new P()", json!({"x": 1})),
        (
            "const shared = { a: 1 }; [shared, shared, { shared }]",
            json!([{"a": 1}, {"a": 1}, {"shared": {"a": 1}}]),
        ),
        ("(function () { return arguments })(1, 2)", json!({"0": 1, "1": 2})),
        ("new Proxy({ a: 1 }, {})", json!({"a": 1})),
        ("new Proxy([1, 2], {})", json!([1, 2])),
        ("({ get a() { return 'got' } })", json!({"a": "got"})),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A8: built-in objects become what they hold.
#[test]
fn builtins_become_what_they_hold() {
    for (code, expected) in [
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        (
            "new Map<any, any>([['a', 1], [2, { x: 3 }], [null, 4]])",
            json!({"a": 1, "2": {"x": 3}, "null": 4}),
        ),
        ("new Map<any, any>([[1, 'number'], ['1', 'text']])", json!({"1": "text"})),
        ("new Map([['fn', undefined]])", json!({})),
        ("new Set([1, 'a', [2]])", json!([1, "a", [2]])),
        ("/a+b/gi", json!("/a+b/gi")),
        ("new TypeError('bad')", json!({"name": "TypeError", "message": "bad"})),
        ("[new Number(1), new String('s'), new Boolean(false)]", json!([1, "s", false])),
        ("new Uint8Array([1, 2, 255])", json!([1, 2, 255])),
        ("new Float64Array([0.5, -1])", json!([0.5, -1])),
        ("new Uint8Array([104, 105, 33]).buffer", json!("aGkh")),
        ("new DataView(new Uint8Array([0, 104, 105, 0]).buffer, 1, 2)", json!("aGk=")),
        ("new ArrayBuffer(0)", json!("")),
        ("class MyMap extends Map {} new MyMap([['a', 1]])", json!({"a": 1})),
        ("Object.create(Map.prototype)", json!({})),
        ("Object.create(Date.prototype)", json!({})),
        (
            "[new Map([['nested', new Set([new Date(0)])]])]",
            json!([{"nested": ["1970-01-01T00:00:00.000Z"]}]),
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A8: `toJSON` is honoured, and told the key.
#[test]
fn to_json_is_honoured() {
    for (code, expected) in [
        ("({ toJSON() { return { x: 1 } } })", json!({"x": 1})),
        (
            "[{ toJSON(key: string) { return key } }, { a: { toJSON: (key: string) => key } }]",
            json!(["0", {"a": "a"}]),
        ),
        ("({ a: { toJSON() { return undefined } }, b: 1 })", json!({"b": 1})),
        ("({ toJSON() { return this } })", json!(null)),
        ("Date.prototype.toJSON = () => 'mine'; new Date(0)", json!("mine")),
        (
            "(BigInt.prototype as any).toJSON = function () { return String(this) }; [5n]",
            json!(["5"]),
        ),
    ] {
        let outcome = run(code);
        if code.contains("return this") {
            // Not its own value: it holds the function that says so.
            assert_eq!(
                outcome.place().1,
                "result.toJSON is a function, which JSON cannot represent"
            );
            continue;
        }
        assert_eq!((outcome.error, outcome.value), (None, expected), "{code}");
    }
}

/// A8: what is lost is marked.
#[test]
fn bug_12_what_json_cannot_tell_apart_is_lossy() {
    for (code, expected, lossy) in [
        ("new Map<any, any>([[1, 2], ['1', 3]])", json!({"1": 3}), true),
        ("[new Map<any, any>([[null, 1], ['null', 2]])]", json!([{"null": 2}]), true),
        ("new Map<any, any>([[1, 2], ['2', 3]])", json!({"1": 2, "2": 3}), false),
        ("new Map([[new Date(0), 1]]).size", json!(1), false),
        (r#"'a\ud800'"#, json!("a\u{fffd}"), true),
        (r#"({ 'k\udc00': 1 })"#, json!({"k\u{fffd}": 1}), true),
        (r#"['\ud83d\ude00', '\ufffd']"#, json!(["\u{1f600}", "\u{fffd}"]), false),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.value, outcome.lossy), (expected, lossy), "{code}");
    }
}

#[test]
fn bug_12_objects_as_keys_have_no_json() {
    let outcome = run("({ rows: new Map([[{ a: 1 }, 2], [{ b: 1 }, 3]]) })");
    let message = "result.rows is a Map with objects as keys, which JSON cannot represent";
    assert_eq!(
        (outcome.place().0, outcome.place().1),
        (ErrorCode::SerializationUnsupported, message)
    );
    let named = "new Map([[{ toString: () => 'k' }, 1], [[1, 2] as any, 2]])";
    assert_eq!(run(named).value, json!({"k": 1, "1,2": 2}));
}

#[test]
fn what_has_no_number_is_null_and_lossy() {
    for (code, expected, lossy) in [
        ("[NaN, Infinity, -Infinity, 1]", json!([null, null, null, 1]), true),
        ("new Date(NaN)", json!(null), true),
        ("new Float32Array([NaN])", json!([null]), true),
        ("[1, null]", json!([1, null]), false),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.value, outcome.lossy), (expected, lossy), "{code}");
    }
}

/// A8: what JSON has no place for is named by its path, with what to do about it.
#[test]
fn what_has_no_json_is_named() {
    const CALL: &str = "Call it and return what it gives, or leave it out.";
    const CONVERT: &str = "Convert it with String(value), or Number(value) if it is small enough.";
    const COLLECT: &str = "Collect its items first: [...iterator].";
    const AWAIT: &str = "Add `await` before it, or `await Promise.all(...)` for several.";
    const PLAIN: &str = "Return plain data: objects, arrays, strings, numbers, booleans, null.";
    for (code, what, hint) in [
        ("() => 1", " is a function", CALL),
        ("({ items: [1, 2, 3, { fn() {} }] })", ".items[3].fn is a function", CALL),
        ("class A {} A", " is a function", CALL),
        ("[Symbol('x')]", "[0] is a symbol", PLAIN),
        ("({ 'a key': { big: 5n } })", "[\"a key\"].big is a BigInt", CONVERT),
        ("new BigInt64Array(1)", "[0] is a BigInt", CONVERT),
        ("[Object(1n)]", "[0] is a BigInt", CONVERT),
        ("[Promise.resolve(1)]", "[0] is a promise", AWAIT),
        ("({ w: new WeakMap() })", ".w is a WeakMap", PLAIN),
        ("[new WeakRef({})]", "[0] is a WeakRef", PLAIN),
        ("[setTimeout(() => {}, 1)]", "[0] is a timer", PLAIN),
        ("(function* () { yield 1 })()", " is an iterator", COLLECT),
        ("new Map([['m', [1].values()]])", ".m is an iterator", COLLECT),
        ("[(async function* () {})()]", "[0] is an async iterator", COLLECT),
    ] {
        let message = format!("result{what}, which JSON cannot represent");
        let expected =
            GuestError::new(ErrorCode::SerializationUnsupported, message).with_hint(hint);
        assert_eq!(run(code).error, Some(expected), "{code}");
    }
}

/// A8: cycles are found, wherever they close.
#[test]
fn cycles_are_named() {
    for (code, path) in [
        ("const a: any = {}; a.self = a; a", "result.self"),
        ("const a: any = { list: [{}] }; a.list[0].up = a.list; a", "result.list[0].up"),
        ("const m: any = new Map(); m.set('m', m); m", "result.m"),
        ("const s: any = new Set(); s.add([s]); s", "result[0][0]"),
    ] {
        let message = format!("{path} contains itself");
        let outcome = run(code);
        assert_eq!(outcome.place(), (ErrorCode::SerializationUnsupported, &*message, None, None));
    }
}

/// A8: depth is limited, and the limit is where it says.
#[test]
fn depth_is_limited() {
    let nested = |levels: usize| {
        format!("let a: any = 1; for (let i = 0; i < {levels}; i++) a = {{ a }}; a")
    };
    assert_eq!(run(&nested(100)).error, None);
    let outcome = run(&nested(101));
    let message = format!("result{} is nested more than 100 levels deep", ".a".repeat(100));
    assert_eq!(outcome.place(), (ErrorCode::SerializationDepth, &*message, None, None));
}

/// A6, A8: a value over the limit is refused, at once.
#[test]
fn size_is_limited() {
    let run_limited = |code: &str, result_bytes: u32| {
        let mut limited = command(code);
        limited.limits.result_bytes = result_bytes;
        run_command(RunCommand { ..limited })
    };
    assert_eq!(run_limited("'x'.repeat(98)", 100).error, None);
    for (code, limit, shown) in [
        ("'x'.repeat(99)", 100, "100 bytes"),
        ("new Array(1e9)", 1 << 20, "1 MiB"),
        ("new Float64Array(1e6)", 1 << 20, "1 MiB"),
        ("Array.from({ length: 1e5 }, (_, i) => ({ i }))", 1 << 20, "1 MiB"),
        ("'\\u0001'.repeat(20)", 100, "100 bytes"),
        ("[[[[[]]]]]", 9, "9 bytes"),
        ("const a: any[] = []; a.length = 2 ** 32 - 1; a", 1 << 20, "1 MiB"),
    ] {
        let message = format!("the value is larger than {shown} of JSON");
        let outcome = run_limited(code, limit);
        assert_eq!(outcome.place(), (ErrorCode::LimitResult, &*message, None, None), "{code}");
    }
}

/// A7, A8: guest code that runs while the value is read may fail like any other.
#[test]
fn getters_and_proxies_that_throw_are_errors_of_the_code() {
    for (code, message, place) in [
        ("({ get a() { throw new Error('no a') } })", "Error: no a", (Some(1), Some(20))),
        (
            "({ toJSON() { throw new TypeError('no json') } })",
            "TypeError: no json",
            (Some(1), Some(21)),
        ),
        (
            "new Proxy({}, { ownKeys() { throw new RangeError('no keys') } })",
            "RangeError: no keys",
            (Some(1), Some(35)),
        ),
    ] {
        let (line, column) = place;
        assert_eq!(run(code).place(), (ErrorCode::RuntimeThrown, message, line, column), "{code}");
    }
}

/// A8: what the guest overrides does not change what a value becomes.
#[test]
fn overridden_builtins_change_nothing() {
    let code = "
        JSON.stringify = () => 'hacked';
        Object.keys = () => [];
        Array.prototype.map = Array.prototype.join = () => 'hacked';
        Map.prototype.forEach = Map.prototype.entries = () => 'hacked';
        Set.prototype.forEach = Set.prototype[Symbol.iterator] = () => 'hacked' as any;
        Date.prototype.toISOString = () => 'hacked';
        String = (() => 'hacked') as any;
        Array.isArray = (() => false) as any;
        [new Map([['a', 1]]), new Set([2]), new Date(0), [3], new Proxy([4], {})]";
    let expected = json!([{"a": 1}, [2], "1970-01-01T00:00:00.000Z", [3], [4]]);
    assert_eq!(value(code), expected);
}
