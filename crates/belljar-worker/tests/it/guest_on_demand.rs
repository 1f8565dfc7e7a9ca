//! The parts of the guest library that are compiled when they are touched: they look like any
//! built-in, and guest code that came first cannot get behind them (A1).

use serde_json::json;

use crate::harness::{run, value};

#[test]
fn a1_globals_look_like_built_ins() {
    let code = r#"
        const names = ["TextEncoder", "URL", "structuredClone", "AbortController", "crypto", "performance", "Intl", "data"];
        const listed = Object.keys(globalThis);
        return names.map((name) => {
            const type = typeof globalThis[name];
            const { value, writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(globalThis, name);
            return [name, type, typeof value, writable, enumerable, configurable, listed.includes(name)];
        });
    "#;
    let expected = json!([
        ["TextEncoder", "function", "function", true, false, true, false],
        ["URL", "function", "function", true, false, true, false],
        ["structuredClone", "function", "function", true, false, true, false],
        ["AbortController", "function", "function", true, false, true, false],
        ["crypto", "object", "object", true, false, true, false],
        ["performance", "object", "object", true, false, true, false],
        ["Intl", "object", "object", true, false, true, false],
        ["data", "object", "object", true, false, true, false],
    ]);
    assert_eq!(value(code), expected);
}

/// A1. A name the code takes for itself is the code's.
#[test]
fn globals_can_be_replaced() {
    let code = "const data = [1]; globalThis.URL = 5; crypto = { own: true };
        return [data, URL, crypto, typeof URLSearchParams];";
    assert_eq!(value(code), json!([[1], 5, {"own": true}, "function"]));
}

/// A1. The classes of one file are the same objects however they are reached.
#[test]
fn a_file_is_evaluated_once() {
    let code = "const first = AbortSignal; const { signal } = new AbortController();
        return [signal instanceof first, AbortSignal === first, new Intl.NumberFormat() instanceof Intl.NumberFormat,
            Intl.NumberFormat('en') instanceof Intl.NumberFormat, new URL('http://a').searchParams instanceof URLSearchParams];";
    assert_eq!(value(code), json!([true, true, true, true, true]));
}

/// A1. Code that has patched whatever it can reach, before the library is compiled, is not handed
/// the object through which the library reaches Rust.
#[test]
fn native_is_not_handed_to_guest_code() {
    let code = r#"
        const seen = new Set();
        const note = (...values) => values.forEach((v) => v !== null && typeof v === "object" && seen.add(v));
        const apply = Reflect.apply;
        const add = Set.prototype.add;
        const wrapped = [Object, Reflect, Array, Array.prototype, Map.prototype, Function.prototype, String.prototype,
            RegExp.prototype, Number, Math];
        for (const holder of wrapped) {
            for (const name of Object.getOwnPropertyNames(holder)) {
                const { value, configurable } = Object.getOwnPropertyDescriptor(holder, name);
                if (typeof value !== "function" || !configurable || name === "constructor") continue;
                Object.defineProperty(holder, name, {
                    value: function (...args) { apply(add, seen, [this]); for (let i = 0; i < args.length; i++) apply(add, seen, [args[i]]); return apply(value, this, args); },
                    writable: true, configurable: true,
                });
            }
        }
        for (const name of ["intl", "stdlib", "expose", "printAs", "tableText", "items", "decimal", "resolve", "data", "get", "value"]) {
            let current;
            Object.defineProperty(Object.prototype, name, {
                get() { apply(add, seen, [this]); return current; },
                set(value) { apply(add, seen, [this]); Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true }); },
                configurable: true,
            });
        }
        const attempts = [() => (5).toLocaleString(), () => new Date().toLocaleString(), () => "a".localeCompare("b"), () => new URL("http://a"),
            () => new TextEncoder(), () => structuredClone({}), () => new AbortController(), () => crypto.randomUUID(), () => data.countBy([], "x"),
            () => console.table([1]), () => new Intl.ListFormat("en"), () => new Intl.RelativeTimeFormat("en"), () => console.log({ a: [1] })];
        let worked = 0;
        for (const attempt of attempts) { try { attempt(); worked += 1; } catch {} }
        for (const name of ["get", "value"]) delete Object.prototype[name];
        const has = (object, name) => { try { return object !== null && typeof object === "object" && name in object; } catch { return false; } };
        const leaked = [...seen].filter((object) => has(object, "libraryFile") || has(object, "fillRandom"));
        return [worked > 0, seen.size > 50, leaked.length];
    "#;
    let outcome = run(code);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.value, json!([true, true, 0]));
}
