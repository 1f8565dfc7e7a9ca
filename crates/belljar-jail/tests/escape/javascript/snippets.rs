//! The code that is tried, and how it has to end.

use super::{
    End::{self, Code, Refused, Value},
    Snippet,
};

pub(super) const GROUPS: &[(&str, &[Snippet])] =
    &[("refusals", REFUSALS), ("tricks", TRICKS), ("exhaustion", EXHAUSTION)];

const fn snippet(name: &'static str, code: &'static str, end: End) -> Snippet {
    Snippet { name, code, end }
}

const COMMAND: End = Refused("permission.command");
const FILE: End = Refused("permission.file");
const HOST: End = Refused("permission.host");
const MODULE: End = Refused("permission.module");
const NETWORK: End = Refused("permission.network");

/// Features of other runtimes: refused with a hint, and logged.
const REFUSALS: &[Snippet] = &[
    snippet("binding", "process.binding('net')", HOST),
    snippet("native_addon", "process.dlopen({ exports: {} }, '/lib/x.so')", HOST),
    snippet("kill", "process.kill(1, 'SIGKILL')", HOST),
    snippet("kill_of_the_group", "process.kill(0)", HOST),
    snippet("another_user", "process.setuid(0)", HOST),
    snippet("another_directory", "process.chdir('/proc')", HOST),
    snippet("standard_input", "return process.stdin.read()", HOST),
    snippet("deno", "return Deno.readTextFileSync('/etc/passwd')", FILE),
    snippet("deno_environment", "return Deno.env.get('PATH')", HOST),
    snippet("deno_command", "return new Deno.Command('id').outputSync()", COMMAND),
    snippet(
        "deno_network",
        "return await Deno.connect({ hostname: '1.1.1.1', port: 80 })",
        NETWORK,
    ),
    snippet("bun", "return Bun.file('/etc/passwd')", HOST),
    snippet("worker", "new Worker('data:text/javascript,1')", HOST),
    snippet("web_assembly", "await WebAssembly.instantiate(new Uint8Array(8))", HOST),
    snippet("require", "return require('child_process').execSync('id')", MODULE),
    snippet("import_expression", "return await import('net')", MODULE),
    snippet("import_statement", "import net from 'node:net'; return net", MODULE),
    snippet("import_of_engine_module", "return await import('std')", MODULE),
    snippet("import_of_url", "return await import('https://example.org/x.js')", MODULE),
    snippet("import_of_data", "return await import('data:text/javascript,1')", MODULE),
    snippet("fetch", "return await fetch('http://169.254.169.254/latest/meta-data/')", NETWORK),
    snippet("web_socket", "new WebSocket('ws://localhost')", NETWORK),
    snippet("request", "new XMLHttpRequest()", NETWORK),
    snippet("event_source", "new EventSource('http://localhost')", NETWORK),
    // The same, by code that is made at run time.
    snippet("function_constructor", "return Function('return process.kill(1)')()", HOST),
    snippet(
        "constructor_of_constructor",
        "return ({}).constructor.constructor('return process')().abort()",
        HOST,
    ),
    snippet(
        "async_function_constructor",
        "return await (async () => {}).constructor(\"return require('vm')\")()",
        MODULE,
    ),
    snippet(
        "generator_constructor",
        "return (function* () {}).constructor(\"yield require('vm')\")().next()",
        MODULE,
    ),
    snippet("import_in_made_function", "return await Function(\"return import('os')\")()", MODULE),
    snippet("import_in_eval", "return await eval(\"import('std')\")", MODULE),
    snippet("import_in_indirect_eval", "return await (0, eval)(\"import('bjson')\")", MODULE),
    snippet(
        "in_a_timer",
        "await new Promise((_, no) => setTimeout(() => { try { require('net') } \
         catch (error) { no(error) } }))",
        MODULE,
    ),
    snippet("in_a_getter", "return { get a() { return require('net') } }", MODULE),
    snippet("in_to_json", "return { toJSON() { return process.chdir('/') } }", HOST),
];

/// Tricks that must not get a script anywhere.
const TRICKS: &[Snippet] = &[
    // Nothing of the host's environment, user or machine is there to be read.
    snippet(
        "environment",
        "return [process.env.HOME ?? null, process.env['PATH'] ?? null, Object.keys(process.env), { ...process.env }]",
        Value("[null,null,[],{}]"),
    ),
    snippet(
        "machine",
        "const os = require('os'); return [os.hostname(), os.homedir(), os.networkInterfaces(), os.cpus().length, os.release()]",
        Value(r#"["belljar","/work",{},1,""]"#),
    ),
    snippet("main_module", "return typeof process.mainModule", Value("\"undefined\"")),
    // Code that ends itself ends its run, not the cell's answer.
    snippet("exit", "process.exit(0); return 1", Value("null")),
    snippet("exit_that_is_caught", "try { process.exit(0) } catch {} return 1", Value("null")),
    snippet(
        "exit_with_a_status",
        "for (;;) try { process.exit(3) } catch {}",
        Code(&["runtime.exit"]),
    ),
    snippet(
        "globals_of_the_engine",
        "return ['std', 'os', 'bjson', 'scriptArgs', 'print', '__loadScript', 'native', \
         'gc', 'navigator', 'read'].filter((name) => name in globalThis)",
        Value("[]"),
    ),
    // It finds one: its own decoy.
    snippet(
        "capture_of_the_library",
        include_str!("capture.js"),
        Value(r#"{"found":1,"looked":true}"#),
    ),
    snippet(
        "this_of_a_sloppy_function",
        "return (function () { return this === globalThis })()",
        Value("true"),
    ),
    snippet(
        "caller_and_arguments",
        "const seen = []; const spy = { get href() { try { seen.push(typeof (function f() { \
         return f.caller })()) } catch { seen.push('refused') } return 'x' } }; \
         await fetch(spy).catch(() => {}); return seen.every((what) => what !== 'function')",
        Value("true"),
    ),
    snippet(
        "prototype_of_parsed_data",
        "JSON.parse('{\"__proto__\": {\"polluted\": 1}}'); return ({}).polluted ?? null",
        Value("null"),
    ),
    snippet(
        "polluted_prototype_and_the_library",
        "Object.prototype.get = () => 'x'; Object.prototype.value = 1; Object.prototype.code = 'x'; \
         console.log({ a: 1 }); return [1]",
        Code(&["", "runtime.thrown", "serialization.unsupported"]),
    ),
    snippet(
        "species",
        "class Odd extends Array { static get [Symbol.species]() { return function () { return \
         process } } } return Odd.of(1, 2).map((x) => x)",
        Code(&["permission.host", "runtime.thrown", "serialization.unsupported"]),
    ),
    snippet(
        "proxy_as_value",
        "const log = []; return new Proxy({}, { ownKeys() { log.push(1); return ['a'] }, \
         getOwnPropertyDescriptor() { return { value: log.length, enumerable: true, configurable: \
         true } }, get(_, key) { return key === 'a' ? log.length : undefined } })",
        Code(&["", "serialization.unsupported", "runtime.thrown"]),
    ),
    snippet(
        "proxy_that_throws",
        "return new Proxy({}, { ownKeys() { throw new Error('no') }, get() { throw new Error('no') \
         } })",
        Code(&["serialization.unsupported", "runtime.thrown"]),
    ),
    snippet(
        "value_that_never_ends",
        "let depth = 0; return { toJSON() { depth++; return { next: this } } }",
        Code(&[
            "serialization.depth",
            "serialization.unsupported",
            "limit.timeout",
            "limit.result",
            "limit.memory",
            "runtime.stack_overflow",
        ]),
    ),
    snippet(
        "error_with_a_code_of_the_host",
        "throw Object.assign(new Error('x'), { code: 'run.aborted' })",
        Code(&["runtime.thrown"]),
    ),
    snippet(
        "refusal_with_a_code_of_the_host",
        "try { require('net') } catch (error) { error.code = 'sandbox.zygote_lost'; throw error }",
        Code(&["runtime.thrown", "permission.module"]),
    ),
    snippet(
        "error_that_is_a_proxy",
        "throw new Proxy(new Error('x'), { get() { throw new Error('y') }, getPrototypeOf() { \
         throw new Error('z') } })",
        Code(&["runtime.thrown"]),
    ),
    snippet(
        "sites_of_a_stack",
        "let sites; Error.prepareStackTrace = (_, all) => { sites = all; return '' }; try { \
         require('net') } catch (error) { error.stack } return (sites ?? []).filter((site) => typeof \
         site.getThis?.() === 'object' || typeof site.getFunction?.() === 'function').length > 100",
        Value("false"),
    ),
    snippet(
        "promise_of_the_body",
        "Promise.prototype.then = function () { throw new Error('taken') }; await null; return 1",
        Code(&["", "runtime.thrown", "runtime.stalled", "runtime.unhandled_rejection"]),
    ),
    snippet(
        "print_replaced",
        "console.log = () => {}; JSON.stringify = () => '{\"forged\":1}'; return { real: 1 }",
        Value(r#"{"real":1}"#),
    ),
    snippet(
        "shared_memory_wait",
        "return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)",
        Code(&["", "runtime.thrown", "limit.timeout"]),
    ),
];

/// Snippets that only the limits stop.
const EXHAUSTION: &[Snippet] = &[
    snippet("endless_loop", "while (true) {}", Code(&["limit.timeout", "limit.cpu"])),
    snippet(
        "endless_loop_that_catches",
        "for (;;) { try { for (;;) {} } catch {} finally { continue } }",
        Code(&["limit.timeout", "limit.cpu"]),
    ),
    snippet(
        "endless_microtasks",
        "const again = () => Promise.resolve().then(again); await again()",
        Code(&["limit.timeout", "limit.cpu", "limit.memory"]),
    ),
    snippet(
        "endless_timers",
        "setInterval(() => {}, 1); await new Promise(() => {})",
        Code(&["limit.timeout", "limit.cpu", "runtime.stalled"]),
    ),
    snippet(
        "giant_regular_expression",
        "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
        Code(&["limit.timeout", "limit.cpu"]),
    ),
    snippet(
        "atomic_wait",
        "return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        Code(&["limit.timeout", "runtime.thrown"]),
    ),
    snippet(
        "doubling_string",
        "let text = 'x'; for (;;) text += text + Math.random()",
        Code(&["limit.memory", "runtime.thrown"]),
    ),
    snippet(
        "doubling_array",
        "const all = []; for (;;) all.push(new Array(1000).fill(all))",
        Code(&["limit.memory"]),
    ),
    snippet(
        "giant_buffer",
        "return new ArrayBuffer(8e9).byteLength",
        Code(&["limit.memory", "runtime.thrown"]),
    ),
    snippet(
        "endless_recursion",
        "const f = () => f() + 1; return f()",
        Code(&["runtime.stack_overflow"]),
    ),
    snippet(
        "recursion_in_the_library",
        "let deep = []; for (let i = 0; i < 1e6; i++) deep = [deep]; console.log(deep); return 1",
        Code(&["", "runtime.stack_overflow", "limit.memory", "limit.timeout", "limit.cpu"]),
    ),
    snippet(
        "deep_value",
        "let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; return deep",
        Code(&["serialization.depth"]),
    ),
    snippet("flood", "for (;;) console.log('x'.repeat(1000))", Code(&["limit.output"])),
    snippet("flood_of_errors", "for (;;) console.error('x'.repeat(1000))", Code(&["limit.output"])),
    snippet(
        "flood_of_refusals",
        "for (;;) { try { require('net') } catch {} }",
        Code(&["limit.output", "limit.timeout", "limit.cpu"]),
    ),
    snippet("large_value", "return 'x'.repeat(20_000_000)", Code(&["limit.result"])),
    snippet(
        "deep_code",
        "return Function('return ' + '['.repeat(1e6))()",
        Code(&["runtime.thrown", "runtime.stack_overflow", "syntax.invalid"]),
    ),
];
