//! `fs` on real files: Node's functions with Node's answers (A1, C2).

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Place, run};

/// Runs code in which `$DIR` is a directory of its own.
#[track_caller]
pub(crate) fn value_in(place: &Place, code: &str) -> Value {
    let directory = place.path().to_str().expect("a path is UTF-8");
    let outcome = run(&code.replace("$DIR", directory));
    assert_eq!(outcome.error, None, "{code}");
    outcome.value
}

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    let place = Place::new();
    for (code, expected) in cases {
        assert_eq!(value_in(&place, code), *expected, "{code}");
    }
}

/// A1: what is written can be read, in every encoding.
#[test]
fn files_are_written_and_read() {
    check(&[
        ("fs.writeFileSync('$DIR/a.txt', 'héllo €')", Value::Null),
        ("fs.readFileSync('$DIR/a.txt', 'utf8')", json!("héllo €")),
        ("fs.readFileSync('$DIR/a.txt', { encoding: 'UTF-8' })", json!("héllo €")),
        ("fs.readFileSync('$DIR/a.txt').length", json!(10)),
        ("[...fs.readFileSync('$DIR/a.txt')].slice(0, 3)", json!([104, 195, 169])),
        ("fs.readFileSync('$DIR/a.txt', 'base64')", json!("aMOpbGxvIOKCrA==")),
        ("fs.readFileSync('$DIR/a.txt', 'base64url')", json!("aMOpbGxvIOKCrA")),
        ("fs.readFileSync('$DIR/a.txt', 'hex')", json!("68c3a96c6c6f20e282ac")),
        ("fs.readFileSync('$DIR/a.txt', 'latin1').length", json!(10)),
        (
            "fs.appendFileSync('$DIR/a.txt', '!'); fs.readFileSync('$DIR/a.txt', 'utf8')",
            json!("héllo €!"),
        ),
        (
            "fs.writeFileSync('$DIR/b', 'aGk=', 'base64'); fs.readFileSync('$DIR/b', 'utf8')",
            json!("hi"),
        ),
        (
            "fs.writeFileSync('$DIR/b', '6869zz', 'hex'); fs.readFileSync('$DIR/b', 'utf8')",
            json!("hi"),
        ),
        ("fs.writeFileSync('$DIR/b', 'é', 'latin1'); [...fs.readFileSync('$DIR/b')]", json!([233])),
        (
            "fs.writeFileSync('$DIR/b', 'é', 'utf16le'); fs.readFileSync('$DIR/b', 'utf16le')",
            json!("é"),
        ),
        (
            "fs.writeFileSync('$DIR/b', new Uint16Array([0x6968])); fs.readFileSync('$DIR/b', 'utf8')",
            json!("hi"),
        ),
        (
            "fs.writeFileSync('$DIR/b', 'x', { flag: 'a' }); fs.readFileSync('$DIR/b', 'ascii')",
            json!("hix"),
        ),
        (
            "fs.writeFileSync('$DIR/b', 'HE', { flag: 'r+' }); fs.readFileSync('$DIR/b', 'utf8')",
            json!("HEx"),
        ),
        (
            "fs.writeFileSync('$DIR/b', '\\ud800'); fs.readFileSync('$DIR/b', 'utf8')",
            json!("\u{fffd}"),
        ),
        (
            "fs.writeFileSync('$DIR/b', new Uint8Array([255, 65])); fs.readFileSync('$DIR/b', 'utf8')",
            json!("\u{fffd}A"),
        ),
        (
            "fs.writeFileSync('$DIR/empty', ''); [fs.readFileSync('$DIR/empty', 'utf8'), fs.readFileSync('$DIR/empty').length]",
            json!(["", 0]),
        ),
        ("fs.truncateSync('$DIR/a.txt', 1); fs.readFileSync('$DIR/a.txt', 'utf8')", json!("h")),
        ("fs.readFileSync(new URL('file://$DIR/a.txt'), 'utf8')", json!("h")),
        ("fs.readFileSync(new TextEncoder().encode('$DIR/a.txt'), 'utf8')", json!("h")),
    ]);
}

/// A1: without an encoding there are bytes that know how to be text.
#[test]
fn bytes_are_like_a_buffer() {
    check(&[
        (
            "fs.writeFileSync('$DIR/a', 'h\\u00e9llo'); const b = fs.readFileSync('$DIR/a');
             [b instanceof Uint8Array, `${b}`, b.toString('hex'), b.toString('utf8', 0, 1), b.subarray(0, 1).toString()]",
            json!([true, "héllo", "68c3a96c6c6f", "h", "h"]),
        ),
        ("fs.writeFileSync('$DIR/j', '{\"a\": 1}'); JSON.parse(fs.readFileSync('$DIR/j')).a", json!(1)),
        ("fs.readFileSync('$DIR/a')", json!([104, 195, 169, 108, 108, 111])),
        ("fs.readFileSync('$DIR/a').equals(new TextEncoder().encode('h\\u00e9llo'))", json!(true)),
        ("new TextDecoder().decode(fs.readFileSync('$DIR/a'))", json!("héllo")),
    ]);
}

/// A1: large files go in and out whole.
#[test]
fn large_files_are_whole() {
    check(&[
        (
            "const text = '\\u{1f600}x'.repeat(400_000); fs.writeFileSync('$DIR/big', text);
             [fs.statSync('$DIR/big').size, fs.readFileSync('$DIR/big', 'utf8') === text]",
            json!([2_000_000, true]),
        ),
        (
            "const bytes = new Uint8Array(3_000_000).map((_, i) => i); fs.writeFileSync('$DIR/big', bytes);
             const read = fs.readFileSync('$DIR/big'); [read.length, read.every((byte, i) => byte === (i & 255))]",
            json!([3_000_000, true]),
        ),
    ]);
}

/// A1: directories are made, listed and removed.
#[test]
fn directories_are_handled() {
    check(&[
        ("fs.mkdirSync('$DIR/one')", Value::Null),
        ("fs.mkdirSync('$DIR/x/y/z', { recursive: true }).endsWith('/x')", json!(true)),
        ("fs.mkdirSync('$DIR/x/y', { recursive: true }) ?? null", Value::Null),
        ("fs.writeFileSync('$DIR/x/f.txt', '1'); fs.readdirSync('$DIR')", json!(["one", "x"])),
        (
            "fs.readdirSync('$DIR', { recursive: true })",
            json!(["one", "x", "x/f.txt", "x/y", "x/y/z"]),
        ),
        (
            "fs.readdirSync('$DIR/x', { withFileTypes: true }).map((e) => [e.name, e.isFile(), e.isDirectory(), e.isSymbolicLink()])",
            json!([["f.txt", true, false, false], ["y", false, true, false]]),
        ),
        ("fs.rmdirSync('$DIR/one'); fs.existsSync('$DIR/one')", json!(false)),
        ("fs.rmSync('$DIR/x', { recursive: true }); fs.readdirSync('$DIR')", json!([])),
        ("fs.rmSync('$DIR/nothing', { force: true })", Value::Null),
        (
            "const d = fs.mkdtempSync('$DIR/t-'); [/t-\\w{6}$/.test(d), fs.statSync(d).isDirectory()]",
            json!([true, true]),
        ),
    ]);
}

/// A1: files are moved, copied, examined and removed.
#[test]
fn files_are_handled() {
    check(&[
        ("fs.writeFileSync('$DIR/a', 'abc'); fs.renameSync('$DIR/a', '$DIR/b'); fs.existsSync('$DIR/a')", json!(false)),
        ("fs.copyFileSync('$DIR/b', '$DIR/c'); fs.readFileSync('$DIR/c', 'utf8')", json!("abc")),
        ("fs.copyFileSync('$DIR/b', '$DIR/b'); fs.readFileSync('$DIR/b', 'utf8')", json!("abc")),
        (
            "const s = fs.statSync('$DIR/b'); [s.isFile(), s.isDirectory(), s.size, s.mtime instanceof Date,
             Math.abs(Date.now() - s.mtimeMs) < 60000, (s.mode & 0o400) > 0]",
            json!([true, false, 3, true, true, true]),
        ),
        ("fs.statSync('$DIR/none', { throwIfNoEntry: false }) ?? 'none'", json!("none")),
        ("fs.lstatSync('$DIR').isDirectory()", json!(true)),
        ("[fs.existsSync('$DIR/b'), fs.existsSync('$DIR/zzz'), fs.existsSync(undefined)]", json!([true, false, false])),
        ("fs.accessSync('$DIR/b', fs.constants.R_OK | fs.constants.W_OK)", Value::Null),
        ("fs.mkdirSync('$DIR/d/e', { recursive: true }); fs.writeFileSync('$DIR/d/e/f', '1');
          fs.cpSync('$DIR/d', '$DIR/d2', { recursive: true }); fs.readFileSync('$DIR/d2/e/f', 'utf8')", json!("1")),
        ("fs.unlinkSync('$DIR/b'); fs.rmSync('$DIR/c'); fs.readdirSync('$DIR')", json!(["d", "d2"])),
    ]);
}

/// A1: links are seen as such, and not followed when they are removed.
#[test]
fn links_are_links() {
    let place = Place::new();
    fs::create_dir(place.path().join("dir")).unwrap();
    fs::write(place.path().join("dir/file"), "x").unwrap();
    std::os::unix::fs::symlink("dir", place.path().join("link")).unwrap();
    let code = "const s = [fs.lstatSync('$DIR/link').isSymbolicLink(), fs.statSync('$DIR/link').isDirectory(),
            fs.readdirSync('$DIR', { withFileTypes: true }).map((e) => e.isSymbolicLink())];
        fs.rmSync('$DIR/link', { recursive: true }); [...s, fs.readdirSync('$DIR/dir')]";
    assert_eq!(value_in(&place, code), json!([true, true, [false, true], ["file"]]));
}

/// A1: the same with promises and with callbacks.
#[test]
fn promises_and_callbacks_do_the_same() {
    check(&[
        (
            "await fs.promises.mkdir('$DIR/p'); await fs.promises.writeFile('$DIR/p/a', 'x');
             await fs.promises.appendFile('$DIR/p/a', 'y'); await fs.promises.copyFile('$DIR/p/a', '$DIR/p/b');
             await fs.promises.rename('$DIR/p/b', '$DIR/p/c'); await fs.promises.access('$DIR/p/c');
             [await fs.promises.readFile('$DIR/p/a', 'utf8'), await fs.promises.readdir('$DIR/p'),
              (await fs.promises.stat('$DIR/p/a')).size]",
            json!(["xy", ["a", "c"], 2]),
        ),
        ("await fs.promises.readFile('$DIR/none').catch((e) => [e.code, e instanceof Error])", json!(["ENOENT", true])),
        ("await fs.promises.rm('$DIR/p', { recursive: true, force: true }); fs.existsSync('$DIR/p')", json!(false)),
        (
            "await new Promise((done) => fs.writeFile('$DIR/cb', 'z', () => fs.readFile('$DIR/cb', 'utf8', (e, t) => done([e, t]))))",
            json!([null, "z"]),
        ),
        ("await new Promise((done) => fs.readFile('$DIR/none', (e) => done(e.code)))", json!("ENOENT")),
        ("await new Promise((done) => fs.exists('$DIR/cb', done))", json!(true)),
        ("let order = 'a'; fs.stat('$DIR', () => { order += 'c' }); order += 'b'; await new Promise((r) => setTimeout(r, 5)); order", json!("abc")),
    ]);
}
