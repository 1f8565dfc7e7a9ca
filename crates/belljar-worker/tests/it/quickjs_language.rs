//! The language that runs, and the value of a program (A1).

use belljar_contract::Language;
use belljar_wire::RunCommand;
use serde_json::json;

use crate::harness::{command, run_command, value};

/// A1: `return` at the top level, inside blocks too, and `await`.
#[test]
fn an_explicit_return_is_the_value() {
    for (code, expected) in [
        ("return 1 + 1", json!(2)),
        ("for (const x of [1, 2, 3]) { if (x > 1) return x }", json!(2)),
        ("const x = await Promise.resolve(4); return x + 1", json!(5)),
        ("return", json!(null)),
        // A return anywhere means the last expression is not the value.
        ("if (false) { return 1 } 2", json!(null)),
        ("try { return 1 } finally { 2 }", json!(1)),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: without a `return`, the last expression is the value, wherever control may end.
#[test]
fn the_last_expression_is_the_value() {
    for (code, expected) in [
        ("1 + 1", json!(2)),
        ("const x = 3; x * 2;", json!(6)),
        ("'just a string'", json!("just a string")),
        ("\"use strict\"; 5", json!(5)),
        ("({ a: 1 })", json!({"a": 1})),
        ("[1, 2]", json!([1, 2])),
        ("await Promise.resolve('waited')", json!("waited")),
        ("Promise.resolve('adopted')", json!("adopted")),
        ("if (1 > 2) { 'then' } else { 'else' }", json!("else")),
        ("if (1 > 2) 'then'; else if (2 > 1) 'elif'; else 'else'", json!("elif")),
        ("if (1 > 2) { 'then' }", json!(null)),
        ("{ const a = 2; { a + 1 } }", json!(3)),
        ("try { JSON.parse('{') } catch (e) { e.name }", json!("SyntaxError")),
        ("try { 'fine' } catch (e) { 'caught' } finally { 'done' }", json!("fine")),
        ("main(); function main() { return 7 }", json!(7)),
        ("(function () { return 8 })()", json!(8)),
        ("[1, 2].map((x) => { return x * 2 })", json!([2, 4])),
        ("5; ;", json!(5)),
        ("let y = 1", json!(null)),
        ("function f() { return 1 }", json!(null)),
        ("for (const x of [1]) { x }", json!(null)),
        ("while (false) { 1 }", json!(null)),
        ("", json!(null)),
        ("// nothing but a comment", json!(null)),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: code is sloppy unless it asks to be strict, and has modern syntax and built-ins.
#[test]
fn the_language_is_modern_javascript() {
    for (code, expected) in [
        ("x = 1; x + 1", json!(2)),
        ("'use strict'; try { y = 1 } catch (e) { e.name }", json!("ReferenceError")),
        ("this === globalThis", json!(true)),
        ("const { a, ...rest } = { a: 1, b: 2, c: 3 }; rest", json!({"b": 2, "c": 3})),
        ("null?.x ?? 'default'", json!("default")),
        (
            "class A { #p = 1; static s = 2; get p() { return this.#p } } [new A().p, A.s]",
            json!([1, 2]),
        ),
        (
            "Object.groupBy([1, 2, 3], (x) => x % 2 ? 'odd' : 'even')",
            json!({"odd": [1, 3], "even": [2]}),
        ),
        ("[3, 1, 2].toSorted().at(-1)", json!(3)),
        ("[...new Set([1, 2]).union(new Set([2, 3]))]", json!([1, 2, 3])),
        (
            "async function* g() { yield 1; yield 2 } const out = []; for await (const x of \
                g()) out.push(x); out",
            json!([1, 2]),
        ),
        ("await Array.fromAsync([Promise.resolve(1), 2])", json!([1, 2])),
        ("/(?<year>\\d{4})/.exec('in 2024').groups.year", json!("2024")),
        ("`a${1}b`", json!("a1b")),
        ("String.raw`\\n`", json!("\\n")),
        ("eval('1 + 2')", json!(3)),
        ("new Function('a', 'return a + 1')(1)", json!(2)),
        ("label: for (;;) { for (;;) { break label } } 'out'", json!("out")),
        ("1_000_000 + 0b11 + 0o17", json!(1_000_018)),
        ("`a\0b`.length", json!(3)),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: all of TypeScript that has a meaning at run time has it, the rest is stripped.
#[test]
fn typescript_is_lowered() {
    for (code, expected) in [
        ("enum A { X, Y = 5, Z } [A.X, A.Y, A.Z, A[5]]", json!([0, 5, 6, "Y"])),
        ("enum S { A = 'a', B = `b` } S", json!({"A": "a", "B": "b"})),
        ("const enum C { A = 1 << 2, B } C.B", json!(5)),
        (
            "namespace N { export const x = 1; export function f() { return x + 1 } } N.f()",
            json!(2),
        ),
        ("namespace A.B { export const c = 3 } A.B.c", json!(3)),
        (
            "class P { constructor(private x: number, readonly y = 2) {} sum() { return this.x \
                + this.y } } new P(1).sum()",
            json!(3),
        ),
        ("const o = { a: 1 } satisfies Record<string, number>; o.a as unknown as string", json!(1)),
        ("const x: number | undefined = 4; x!", json!(4)),
        ("const x = <any>5; x", json!(5)),
        (
            "abstract class A { abstract f(): number; g() { return this.f() } } class B extends \
                A { f() { return 9 } } new B().g()",
            json!(9),
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: types are stripped, wherever they stand.
#[test]
fn types_are_stripped() {
    for (code, expected) in [
        (
            "function f(a: string): string; function f(a: number): number; function f(a: any) { \
                return a } f(3)",
            json!(3),
        ),
        (
            "declare const nope: number; interface I { a: string } type T = keyof I; let t: T = \
                'a'; t",
            json!("a"),
        ),
        (
            "function id<T extends object>(x: T): T { return x } id<{ a: number }>({ a: 1 })",
            json!({"a": 1}),
        ),
        (
            "class A<T> { value?: T; static create<U>(this: void) { return new A<U>() } } \
                A.create().value ?? 'none'",
            json!("none"),
        ),
        (
            "class A { private _x = 1; get x(): number { return this._x } set x(v: number) { \
                this._x = v } } const a = new A(); a.x = 4; a.x",
            json!(4),
        ),
        ("let f = async <T,>(x: T): Promise<T> => x; await f(2)", json!(2)),
        (
            "function assertIsString(x: unknown): asserts x is string {} assertIsString(1); 'ok'",
            json!("ok"),
        ),
        ("let tuple: [a: string, b?: number] = ['x']; tuple", json!(["x"])),
        (
            "import type { A } from './types'; import { type B } from 'b'; export type C = A; \
                export {}; 1",
            json!(1),
        ),
        (
            "export const a = 1; export function f() { return a } export class K {} export enum \
                E { X = 3 } f() + E.X",
            json!(4),
        ),
        ("using r = { [Symbol.dispose]() { console.log('gone') } }; 'used'", json!("used")),
        (
            "for (const [k, v] of Object.entries({ a: 1 }) as [string, number][]) { return k + v }",
            json!("a1"),
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: the same code is JavaScript when it is asked to be.
#[test]
fn javascript_runs_as_javascript() {
    let run = |code: &str| {
        let command = RunCommand {
            language: Language::JavaScript,
            file_name: "main.js".into(),
            ..command(code)
        };
        run_command(command).value
    };
    assert_eq!(run("const x = 1 < 2; x"), json!(true));
    // Type arguments in TypeScript, two comparisons in JavaScript.
    assert_eq!(run("const f = 3, T = 2; f<T>(1)"), json!(false));
    assert_eq!(value("const f: any = (x: number) => x; f<T>(1)"), json!(1));
}

/// A1: runs of one engine do not see one another's randomness.
#[test]
fn randomness_is_of_the_run() {
    let sample = "[Math.random(), Math.random()]";
    let (first, second) = (value(sample), value(sample));
    assert_ne!(first, second);
    let in_range = value(
        "let ok = true, sum = 0; for (let i = 0; i < 10000; i++) { const x = Math.random(); ok \
            &&= x >= 0 && x < 1; sum += x } [ok, sum > 4500 && sum < 5500]",
    );
    assert_eq!(in_range, json!([true, true]));
}

/// A4: what the library uses itself is out of reach.
#[test]
fn natives_are_not_reachable() {
    for code in [
        "typeof native",
        "typeof $belljar",
        "typeof globalThis.print",
        "typeof __belljar",
        "Object.getOwnPropertyNames(globalThis).some((name) => /native|belljar/i.test(name)) ? \
            'leak' : 'undefined'",
    ] {
        assert_eq!(value(code), json!("undefined"), "{code}");
    }
}
