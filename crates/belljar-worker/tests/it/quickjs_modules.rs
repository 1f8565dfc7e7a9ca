//! Imports, exports and what Node's two kinds of modules ask about themselves (A1).

use belljar_contract::{ErrorCode, Language};
use serde_json::{Value, json};

use crate::harness::{command, run, run_command, value};

fn javascript(code: &str) -> crate::harness::Outcome {
    let mut command = command(code);
    command.language = Language::JavaScript;
    run_command(command)
}

/// A1: every module is there by both names, and in both ways.
#[test]
fn modules_are_imported_by_every_name() {
    for name in [
        "assert",
        "assert/strict",
        "buffer",
        "console",
        "crypto",
        "events",
        "fs",
        "fs/promises",
        "os",
        "path",
        "path/posix",
        "perf_hooks",
        "process",
        "querystring",
        "string_decoder",
        "timers",
        "timers/promises",
        "url",
        "util",
        "util/types",
    ] {
        let code = format!(
            "import one from '{name}'; import * as two from 'node:{name}';
             const three = await import('{name}');
             [one === require('node:{name}'), two.default === one, three.default === one, Object.keys(one).length > 0]"
        );
        assert_eq!(value(&code), json!([true, true, true, true]), "{name}");
        assert_eq!(javascript(&code).value, json!([true, true, true, true]), "{name}");
    }
}

/// A7: a name that a module here does not have is told at the import, with those it has.
#[test]
fn missing_exports_are_named() {
    let outcome = run("import { cpus, setPriority } from 'node:os'; cpus(); setPriority(1)");
    let message = "SyntaxError: The requested module 'node:os' does not provide an export named 'setPriority'";
    assert_eq!(outcome.told(), (ErrorCode::RuntimeThrown, message));
    assert!(
        outcome.hint().starts_with("Of node:os, this is available: EOL, "),
        "{}",
        outcome.hint()
    );
}

/// A1: TypeScript's compilers drop what is imported and never used; JavaScript means what it says.
#[test]
fn unused_imports_are_dropped() {
    for code in [
        "import _ from 'lodash'; 'ok'",
        "import * as math from 'mathjs'; import { Heap } from 'heap-js'; 'ok'",
        "import { z } from 'zod'; type T = z.infer<typeof z>; 'ok'",
        "import { Foo } from './types'; const x: Foo = 1 as Foo; function f<T extends Foo>(a: T): Foo { return a } class A implements Foo {} 'ok'",
        "import type { A } from 'm'; import { type B } from 'm'; 'ok'",
    ] {
        let outcome = run(code);
        assert_eq!((outcome.error, outcome.value), (None, json!("ok")), "{code}");
    }
    for code in [
        "import _ from 'lodash'; _.chunk([1], 1)",
        "import { z } from 'zod'; const f = () => ({ z }); 'ok'",
        "import 'lodash'; 'ok'",
        "import { A, b } from 'm'; let x: A = b; 'ok'",
    ] {
        assert_eq!(run(code).told().0, ErrorCode::PermissionModule, "{code}");
    }
    assert_eq!(javascript("import _ from 'lodash'; 'ok'").told().0, ErrorCode::PermissionModule);
}

/// A1: what is exported as default is the value of code that returns nothing else.
#[test]
fn the_default_export_is_the_value() {
    let cases: [(&str, Value); 20] = [
        ("export default 5", json!(5)),
        ("export default { a: 1 }; console.log('x'); 7", json!({"a": 1})),
        ("export default await Promise.resolve(6)", json!(6)),
        ("if (true) { return 1 } export default 2", json!(1)),
        ("const result = [1]; export default result;", json!([1])),
        ("const x = 1; export { x as default }", json!(1)),
        ("export = 5", json!(5)),
        // A function nobody else calls is called.
        ("export default function main() { return 42 }", json!(42)),
        ("export default async function () { return 43 }", json!(43)),
        ("export default async (input) => [input.n ?? 'none']", json!(["none"])),
        ("const main = async () => 44; export default main;", json!(44)),
        ("function main() { return 45 } export { main as default }", json!(45)),
        // One that the code calls itself is not called again.
        ("export default function main(n) { return n } main(46)", json!(46)),
        ("let n = 0; function main() { return ++n } export default main; main()", json!(1)),
        // Others export nothing that could be a value.
        ("const x = 1; export { x }; x + 1", json!(2)),
        ("export const x = 1; export function f() {} export class C {}", json!(null)),
        ("class A {} export default A; 3", json!(3)),
        ("export default class { } 4", json!(4)),
        ("export default interface I { a: 1 } 5", json!(5)),
        ("export {}; export type { T } from 'm'; 6", json!(6)),
    ];
    for (code, expected) in cases {
        assert_eq!(value(code), expected, "{code}");
    }
    // Control: what has no JSON is an error, not nothing.
    assert_eq!(run("export default { f() {} }").told().0, ErrorCode::SerializationUnsupported);
}

/// A1: code that is a program and a module in Node runs as the program.
#[test]
fn code_is_the_main_module() {
    for (code, expected) in [
        ("let ran = 0; if (require.main === module) ran = 1; ran", json!(1)),
        ("let ran = 0; if (module == require.main) { ran = 2 } ran", json!(2)),
        ("function f() { return 3 } console.log(f()); module.exports = { f };", json!(null)),
        ("exports.f = () => 1; module.exports.g = () => 2; 5", json!(5)),
        ("exports = module.exports = () => 1;", json!(null)),
        ("const exports = {}; exports.a = 1; exports", json!({"a": 1})),
        ("(function (exports) { exports.b = 2; return exports })({})", json!({"b": 2})),
        ("[typeof module, typeof exports]", json!(["undefined", "undefined"])),
        (
            "import { fileURLToPath } from 'url'; import path from 'path'; const __dirname = path.dirname(fileURLToPath(import.meta.url)); __dirname",
            json!("/work"),
        ),
        (
            "[__dirname, __filename, import.meta.dirname]",
            json!(["/work", "/work/main.js", "/work"]),
        ),
        ("import.meta.url === `file://${process.argv[1]}`", json!(true)),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A7: a module that is not here is refused with words about that very module.
#[test]
fn each_module_has_its_own_hint() {
    for (module, hint) in [
        ("lodash", "lodash is not here. Use `data.groupBy`"),
        ("lodash/fp", "lodash is not here. Use `data.groupBy`"),
        ("zod", "There is no validation library."),
        ("dayjs", "Use `data.parseDate`"),
        ("axios", "Use `fetch`, which reaches granted hosts"),
        ("child_process", "There is no subprocess in this language."),
        ("node:http", "Use `fetch`, which reaches granted hosts"),
        ("uuid", "Use crypto.randomUUID()."),
        ("js-md5", "Use import { createHash } from \"node:crypto\"."),
        ("zlib", "Compression is not available in JavaScript."),
        ("some-package", "These modules of Node can be imported: assert, "),
    ] {
        for code in [
            format!("import x from '{module}'; x()"),
            format!("require('{module}')"),
            format!("await import('{module}')"),
        ] {
            let outcome = run(&code);
            assert_eq!(outcome.told().0, ErrorCode::PermissionModule, "{code}");
            assert!(outcome.hint().starts_with(hint), "{code}: {}", outcome.hint());
        }
    }
}
