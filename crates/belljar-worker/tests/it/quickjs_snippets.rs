//! TypeScript and JavaScript as models write it: each snippet gives its value, or is refused with
//! words that name the remedy (A1, A7, A8).

use belljar_contract::RunError;
use serde_json::Value;

use crate::harness::{run, value};

/// Snippets that run, each with its value as JSON: that of Node 20, where Node can run it.
const WORKING: &[(&str, &str)] = &[
    // Reading the process.
    ("process.env.API_BASE ?? \"https://example.org\"", r#""https://example.org""#),
    ("const isProd = process.env.NODE_ENV === 'production'; isProd", r#"false"#),
    ("typeof process !== 'undefined' && process.env.DEBUG ? 'debug' : 'quiet'", r#""quiet""#),
    ("process.platform === 'win32' ? '\\\\' : '/'", r#""/""#),
    ("const [, , name = 'world'] = process.argv; `hello ${name}`", r#""hello world""#),
    ("const t = process.hrtime.bigint(); process.hrtime.bigint() >= t", r#"true"#),
    ("process.memoryUsage().heapUsed >= 0", r#"true"#),
    (
        "const main = async () => { console.log('done') }; main().then(() => process.exit(0))",
        r#"null"#,
    ),
    // Bytes and hashes.
    ("Buffer.from('hello').toString('base64')", r#""aGVsbG8=""#),
    ("Buffer.from('aGVsbG8=', 'base64').toString('utf-8')", r#""hello""#),
    ("Buffer.from([0xde, 0xad]).toString('hex')", r#""dead""#),
    (
        "import { createHash } from 'crypto'; createHash('md5').update('a').digest('hex')",
        r#""0cc175b9c0f1b6a831c399e269772661""#,
    ),
    (
        "const h = await crypto.subtle.digest('SHA-1', new TextEncoder().encode('a')); [...new Uint8Array(h)].map((b) => b.toString(16).padStart(2, '0')).join('')",
        r#""86f7e437faa5a7fce15d1ddcb9eaeaea377667b8""#,
    ),
    ("const { randomUUID } = require('crypto'); randomUUID().length", r#"36"#),
    // Modules.
    ("import assert from 'node:assert'; assert.strictEqual(1 + 1, 2); 'ok'", r#""ok""#),
    ("import * as assert from 'assert'; assert.deepEqual([1, 2], [1, 2]); 'ok'", r#""ok""#),
    ("import util from 'util'; util.inspect({ a: 1 })", r#""{ a: 1 }""#),
    ("import os from 'os'; os.EOL", r#""\n""#),
    (
        "import { EventEmitter } from 'events'; const bus = new EventEmitter(); const seen: number[] = []; bus.on('n', (n) => seen.push(n)); bus.emit('n', 1); seen",
        r#"[1]"#,
    ),
    ("import { fileURLToPath } from 'url'; fileURLToPath('file:///a/b')", r#""/a/b""#),
    ("import path from 'path'; path.join(__dirname, 'data.csv')", r#""/work/data.csv""#),
    (
        "import { setTimeout as sleep } from 'timers/promises'; await sleep(1); 'slept'",
        r#""slept""#,
    ),
    (
        "const qs = require('querystring'); qs.stringify({ a: 1, b: ['x', 'y'] })",
        r#""a=1&b=x&b=y""#,
    ),
    ("import { z } from 'zod'; import _ from 'lodash'; 2 + 2", r#"4"#),
    // Exports.
    ("export default { total: 3, items: [1, 2] }", r#"{"total": 3, "items": [1, 2]}"#),
    ("export default async function run() { return [1, 2, 3].length }", r#"3"#),
    ("const x = 5; export { x }; x", r#"5"#),
    (
        "function add(a, b) { return a + b } console.log(add(1, 2)); module.exports = { add };",
        r#"null"#,
    ),
    ("async function main() { return 7 } if (require.main === module) { await main() }", r#"7"#),
    // The web.
    ("const b = new Blob(['a,b\\n1,2']); (await b.text()).split('\\n').length", r#"2"#),
    ("const r = new Response(JSON.stringify({ ok: true })); (await r.json()).ok", r#"true"#),
    ("const h = new Headers({ Accept: 'text/html' }); h.get('accept')", r#""text/html""#),
    ("const f = new FormData(); f.set('a', '1'); Object.fromEntries(f)", r#"{"a": "1"}"#),
    (
        "const s = new ReadableStream({ start(c) { c.enqueue('x'); c.close() } }); const out: string[] = []; for await (const x of s) out.push(x); out",
        r#"["x"]"#,
    ),
    (
        "new URLPattern({ pathname: '/users/:id' }).exec('https://a.b/users/42')?.pathname.groups",
        r#"{"id": "42"}"#,
    ),
    ("const c = new AbortController(); c.abort(); c.signal.aborted", r#"true"#),
    ("globalThis === global", r#"true"#),
    ("structuredClone(new Map([['a', [1]]]))", r#"{"a": [1]}"#),
    ("new Map([[new Date(0), 1]])", r#"{"1970-01-01T00:00:00.000Z": 1}"#),
    ("new Set(['b', 'a']).size", r#"2"#),
];

#[test]
fn a1_what_models_write_runs() {
    for (code, expected) in WORKING {
        let expected: Value = serde_json::from_str(expected).expect("the table holds JSON");
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: and prints what it means to print.
#[test]
fn a1_what_models_write_prints() {
    for (code, printed) in [
        ("process.stdout.write('loading'); process.stdout.write('...\\n')", "loading...\n"),
        ("console.log(Buffer.from('hi'))", "<Buffer 68 69>\n"),
        ("console.log('before'); process.exit(0); console.log('after')", "before\n"),
        (
            "process.on('exit', (code) => console.log('exit', code)); console.log('body')",
            "body\nexit 0\n",
        ),
        ("console.log(new Headers({ a: '1' }))", "Headers { a: '1' }\n"),
        (
            "import { inspect } from 'util'; class Money { constructor(n) { this.n = n } [inspect.custom]() { return `<${this.n}>` } } console.log(new Money(5), [new Money(6)], Money.prototype.constructor === Money)",
            "<5> [ <6> ] true\n",
        ),
        (
            "class Tree { [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) { return { depth, text: inspect('x', options), self: this === it } } } const it = new Tree(); console.log(it)",
            "{ depth: 2, text: \"'x'\", self: true }\n",
        ),
        (
            "URL.length; Headers.length; console.log(Object.assign(Object.create(null), { a: 1 }))",
            "[Object: null prototype] { a: 1 }\n",
        ),
        (
            "console.log(String(new Date(0)), new Date(0).toTimeString(), `${new Date(NaN)}`)",
            "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time) 00:00:00 GMT+0000 (Coordinated Universal Time) Invalid Date\n",
        ),
        (
            "try { new Date(NaN).toISOString() } catch (e) { console.log(`${e}`) }",
            "RangeError: Invalid time value\n",
        ),
        (
            "try { await Promise.any([Promise.reject(1)]) } catch (e) { console.log(`${e}`, e.errors) }",
            "AggregateError: All promises were rejected [ 1 ]\n",
        ),
        ("console.log(await Promise.any([Promise.reject(1), 2]))", "2\n"),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.error.as_ref(), outcome.stdout().as_str()), (None, printed), "{code}");
    }
}

/// Snippets that cannot run, each with its message and its remedy.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "import _ from 'lodash'; _.groupBy([1], (x) => x)",
        "module \"lodash\" cannot be imported",
        "data.groupBy",
    ),
    (
        "const dayjs = require('dayjs'); dayjs()",
        "module \"dayjs\" cannot be imported",
        "data.parseDate",
    ),
    ("import { z } from 'zod'; z.string().parse(1)", "module \"zod\" cannot be imported", "typeof"),
    (
        "import axios from 'axios'; await axios.get('https://a.b')",
        "module \"axios\" cannot be imported",
        "`context`",
    ),
    ("await fetch('https://api.example.com')", "needs the network", "`context`"),
    (
        "import { execSync } from 'child_process'; execSync('ls')",
        "cannot be imported",
        "language bash",
    ),
    (
        "import * as readline from 'readline'; readline.createInterface({})",
        "cannot be imported",
        "`context`",
    ),
    ("process.stdin.on('data', () => {})", "process.stdin is not available", "`context`"),
    ("import zlib from 'zlib'; zlib.gzipSync('x')", "cannot be imported", "language python"),
    (
        "if (!process.env.OPENAI_API_KEY) { throw new Error('OPENAI_API_KEY not set') }",
        "OPENAI_API_KEY not set",
        "--env OPENAI_API_KEY",
    ),
    (
        "if (!process.env.TOKEN) { console.error('no token'); process.exit(1) }",
        "status 1",
        "--env TOKEN",
    ),
    ("Temporal.Now.plainDateISO()", "Temporal does not exist here", "data.parseDate"),
    (
        "new Intl.DisplayNames('en', { type: 'region' }).of('US')",
        "Intl.DisplayNames is not a function",
        "Intl has NumberFormat",
    ),
    ("crypto.createHash('sha256')", "crypto.createHash is not a function", "node:crypto"),
    (
        "import crypto from 'crypto'; crypto.createCipheriv('aes-256-gcm', '', '')",
        "is not a function",
        "language python",
    ),
    (
        "await crypto.subtle.encrypt({ name: 'AES-GCM' }, {} as any, new Uint8Array())",
        "crypto.subtle.encrypt is not supported",
        "",
    ),
    (
        "import { createReadStream } from 'fs'; createReadStream('x')",
        "does not provide an export named 'createReadStream'",
        "readFile",
    ),
    (
        "import { Worker } from 'node:worker_threads'; new Worker('x.js')",
        "module \"node:worker_threads\" cannot be imported",
        "no threads",
    ),
    ("new Worker('x.js')", "Worker needs a thread of its own", "Promise.all"),
    ("localStorage.getItem('x')", "localStorage does not exist here", "`context`"),
    ("describe('x', () => {})", "describe does not exist here", "node:assert"),
    ("os.cpus()", "os does not exist here", "import os from \"node:os\""),
    ("new CompressionStream('gzip')", "CompressionStream does not exist here", "language python"),
    ("({ n: 10n ** 20n })", "result.n is a BigInt", "String(value)"),
    ("new Map([[{ a: 1 }, 1], [{ a: 2 }, 2]])", "a Map with objects as keys", "[...map]"),
];

/// A7: what cannot run says what to do instead.
#[test]
fn a7_what_cannot_run_names_the_remedy() {
    for (code, message, remedy) in REFUSED {
        let outcome = run(code);
        let error = outcome.failure();
        assert!(error.message.contains(message), "{code}: {}", error.message);
        // As the host completes it for a person at a command line.
        let told = RunError::from(error.clone()).hint.unwrap_or_default();
        assert!(told.contains(remedy), "{code}: {told}");
        assert!(remedy.is_empty() || !told.is_empty(), "{code}");
    }
}

/// A8: what is lost on the way to JSON is marked.
#[test]
fn a8_losses_are_marked() {
    for (code, lossy) in [
        ("new Map<any, number>([[1, 1], ['1', 2]])", true),
        ("new Map([['a', 1], ['b', 2]])", false),
        ("new Map([[[1, 2], 1]])", true),
        ("new Map([[Symbol('a'), 1]])", true),
        ("'\\ud800'", true),
        ("({ '\\udc00': 1 })", true),
        ("'😀'", false),
        ("[NaN]", true),
    ] {
        assert_eq!(run(code).lossy, lossy, "{code}");
    }
}
