//! The guest's `console`: which stream, which text, and never too much of it (A1).

use belljar_contract::Stream;

use crate::harness::run;

/// The output by stream and in order.
fn prints(code: &str) -> Vec<(Stream, String)> {
    let outcome = run(code);
    assert_eq!(outcome.error, None, "{code}");
    outcome.prints
}

fn out(text: &str) -> (Stream, String) {
    (Stream::Stdout, text.into())
}

fn err(text: &str) -> (Stream, String) {
    (Stream::Stderr, text.into())
}

#[test]
fn a1_each_method_has_its_stream() {
    let code = "console.log('a'); console.info('b'); console.debug('c');
        console.warn('d'); console.error('e'); console.log(); console.dir('s');";
    let expected =
        [out("a\n"), out("b\n"), out("c\n"), err("d\n"), err("e\n"), out("\n"), out("'s'\n")];
    assert_eq!(prints(code), expected);
}

/// A1. The expected texts are Node's.
#[test]
fn arguments_are_formatted_as_in_node() {
    let code = r#"
        console.log("%s %d %i %f %j %c. %%", "s", "42.5", "42.5", "42.5", { a: 1 }, "css", "extra", { z: 1 });
        console.log("%s|%s|%s|%s|%s|%s", { a: { b: 1 } }, [1, [2, [3]]], null, undefined, 5n, Symbol("q"));
        console.log("%d|%d|%d|%d", {}, 5n, Symbol("a"), -0);
        console.log("%o", { f() {} });
        console.log("%O", { a: { b: { c: { d: 1 } } } });
        console.log("%s", class A {}, new Date(0));
        console.log("%s", { toString() { return "own"; } });
        console.log("100%", "a"); console.log("%x", "a"); console.log("%%"); console.log("%s");
        console.log(1, "a%s", "b"); console.log("a", ["b"], { c: "d" });
        const cycle = {}; cycle.cycle = cycle; console.log("%j", cycle);
    "#;
    let expected = [
        "s 42.5 42 42.5 {\"a\":1} . % extra { z: 1 }\n",
        "{ a: [Object] }|[ 1, [Array] ]|null|undefined|5n|Symbol(q)\n",
        "NaN|5n|NaN|-0\n",
        "{ f: [Function: f] { [length]: 0, [name]: 'f' } }\n",
        "{ a: { b: { c: [Object] } } }\n",
        "class A {} 1970-01-01T00:00:00.000Z\n",
        "own\n",
        "100% a\n",
        "%x a\n",
        "%%\n",
        "%s\n",
        "1 a%s b\n",
        "a [ 'b' ] { c: 'd' }\n",
        "[Circular]\n",
    ];
    assert_eq!(prints(code), expected.map(out));
}

#[test]
fn a1_groups_indent_counts_count_and_assertions_speak_up() {
    let code = r#"
        console.group("outer"); console.log("a\nb"); console.groupCollapsed();
        console.log({ a: 1 }); console.groupEnd(); console.warn("w"); console.groupEnd(); console.groupEnd();
        console.count(); console.count("x"); console.count(); console.countReset(); console.count();
        console.countReset("none"); console.timeEnd("none");
        console.assert(true, "no"); console.assert(false); console.assert(false, "m %s", 1);
        console.assert(false, { a: 1 });
        console.dir({ a: { b: 1 } }, { depth: 0 });
    "#;
    let expected = [
        out("outer\n"),
        out("  a\n  b\n"),
        out("    { a: 1 }\n"),
        err("  w\n"),
        out("default: 1\n"),
        out("x: 1\n"),
        out("default: 2\n"),
        out("default: 1\n"),
        err("Warning: Count for 'none' does not exist\n"),
        err("Warning: No such label 'none' for console.timeEnd()\n"),
        err("Assertion failed\n"),
        err("Assertion failed: m 1\n"),
        err("Assertion failed { a: 1 }\n"),
        out("{ a: [Object] }\n"),
    ];
    assert_eq!(prints(code), expected);
}

/// A1. The expected texts are Node's.
#[test]
fn tables_are_drawn() {
    let code = r#"
        console.table([{ a: 1, b: "x" }, { a: 2, c: { d: 1 } }]);
        console.table([1, "two", { a: 3 }]);
        console.table(new Map([["k", 1]]));
        console.table([{ a: 1, b: 2 }], ["b"]);
        console.table(5);
    "#;
    let expected = [
        "┌─────────┬───┬─────┬──────────┐\n│ (index) │ a │ b   │ c        │\n├─────────┼───┼─────┼──────────┤\n\
         │ 0       │ 1 │ 'x' │          │\n│ 1       │ 2 │     │ { d: 1 } │\n└─────────┴───┴─────┴──────────┘\n",
        "┌─────────┬───┬────────┐\n│ (index) │ a │ Values │\n├─────────┼───┼────────┤\n│ 0       │   │ 1      │\n\
         │ 1       │   │ 'two'  │\n│ 2       │ 3 │        │\n└─────────┴───┴────────┘\n",
        "┌───────────────────┬─────┬────────┐\n│ (iteration index) │ Key │ Values │\n\
         ├───────────────────┼─────┼────────┤\n│ 0                 │ 'k' │ 1      │\n\
         └───────────────────┴─────┴────────┘\n",
        "┌─────────┬───┐\n│ (index) │ b │\n├─────────┼───┤\n│ 0       │ 2 │\n└─────────┴───┘\n",
        "5\n",
    ];
    assert_eq!(prints(code), expected.map(out));
}

/// A1. The duration is not ours to know, its shape is.
#[test]
fn timers_say_how_long() {
    let code = r#"
        console.time(); console.timeLog("default", { a: 1 }); console.timeEnd(); console.time("t"); console.time("t");
    "#;
    let shapes: Vec<_> = prints(code)
        .into_iter()
        .map(|(stream, text)| {
            let mut shape = text.replace(|c: char| c.is_ascii_digit(), "0");
            for longer in ["00", "0.0"] {
                while shape.contains(longer) {
                    shape = shape.replace(longer, "0");
                }
            }
            (stream, shape)
        })
        .collect();
    let again = err("Warning: Label 't' already exists for console.time()\n");
    assert_eq!(shapes, [out("default: 0ms { a: 0 }\n"), out("default: 0ms\n"), again]);
}

/// A1. Errors show the class, the message and the agent's own lines; Node's shape.
#[test]
fn errors_print_with_the_agents_lines() {
    let code = "class HttpError extends Error {}
function fail() { throw new HttpError('gone'); }
try { fail(); } catch (error) { console.log(error); }
console.log({ e: new TypeError('bad', { cause: 'why' }) });
console.log(Object.assign(new Error('coded'), { code: 'E1' }));
const named = new Error('x'); named.name = 'Custom'; console.log([named]);
console.log(new AggregateError([1], 'many'));";
    let expected = [
        "HttpError: gone\n    at fail (main.ts:2:25)\n    at main.ts:3:7\n",
        "{\n  e: TypeError: bad\n      at main.ts:4:18 {\n    [cause]: 'why'\n  }\n}\n",
        "Error: coded\n    at main.ts:5:27 {\n  code: 'E1'\n}\n",
        "[\n  Custom: x\n      at main.ts:6:15\n]\n",
        "AggregateError: many\n    at main.ts:7:13 {\n  [errors]: [ 1 ]\n}\n",
    ];
    let actual: Vec<String> = prints(code).into_iter().map(|(_, text)| text).collect();
    assert_eq!(actual, expected);
}

/// A1. Whatever it is given, printing ends, bounded, and does not throw.
#[test]
fn hostile_values_are_printed_all_the_same() {
    let code = r#"
        const revoked = Proxy.revocable({}, {}); revoked.revoke();
        console.log(revoked.proxy, [revoked.proxy]);
        console.log(new Proxy({}, { ownKeys() { throw 1; }, getPrototypeOf() { throw 2; }, get() { throw 3; } }));
        let endless; endless = new Proxy({}, { getPrototypeOf() { return endless; } });
        console.log(Object.create(endless));
        console.log({ get [Symbol.toStringTag]() { throw 1; } });
        console.log("%s %d %j", ...Array(3).fill({ toString() { throw 1; }, toJSON() { throw 2; } }));
        const unnamed = function () {}; Object.defineProperty(unnamed, "name", { get() { throw 1; } });
        console.log(unnamed);
        console.dir({ a: 1 }, { get depth() { throw new Error("no depth"); } });
        console.log("\ud800 x", { a: "\udc00" });
        Object.keys = () => { throw 1; }; Map.prototype.entries = () => { throw 1; };
        console.log(new Map([[{ a: 1 }, 2]]));
    "#;
    let expected = [
        "<Revoked Proxy> [ <Revoked Proxy> ]\n",
        "{}\n",
        "Object <Complex prototype> {}\n",
        "{ [Symbol(Symbol.toStringTag)]: [Getter] }\n",
        "[could not be converted] [could not be converted] [could not be converted]\n",
        "[Function (anonymous)]\n",
        "[this value could not be printed: no depth]\n",
        "\u{fffd} x { a: '\\udc00' }\n",
        "Map(1) { { a: 1 } => 2 }\n",
    ];
    assert_eq!(prints(code), expected.map(out));
}

/// A1. One print has at most 256 KiB of text, and says what is missing.
#[test]
fn a_print_is_bounded() {
    let code = r#"
        const mark = () => console.log("\u0001");
        console.log("x".repeat(300_000)); mark();
        const wide = {}; for (let i = 0; i < 200_000; i++) wide["key" + i] = i;
        console.log(wide); mark();
        let deep = {}; const top = deep; for (let i = 0; i < 100_000; i++) deep = deep.n = {};
        console.dir(top, { depth: Infinity }); mark();
        console.log(Array.from({ length: 1_000_000 }, (_, i) => i)); mark();
        const sparse = []; sparse[4294967294] = 1; sparse[7] = 2; console.log(sparse);
    "#;
    let outcome = run(code);
    let printed = outcome.stdout();
    let prints: Vec<&str> = printed.split("\u{1}\n").collect();
    let long = format!("{}\n... [cut here: 37856 more characters]\n", "x".repeat(256 << 10));
    let shown = prints[1].lines().count() - 3;
    let lines: String = (0..shown).map(|i| format!("  key{i}: {i},\n")).collect();
    let wide = format!("{{\n{lines}  ... {} more properties\n}}\n", 200_000 - shown);
    let sparse = "[ <7 empty items>, 2, <4294967286 empty items>, 1 ]\n";
    assert_eq!(outcome.error, None);
    assert_eq!([prints[0], prints[1], prints[4]], [long.as_str(), wide.as_str(), sparse]);
    assert_eq!(prints.len(), 5);
    for text in &prints {
        assert!(text.len() < (256 << 10) + 100, "{} bytes", text.len());
    }
}
