//! Sessions whose zygotes are a real program.

use belljar_contract::{Language, RunResult};
use belljar_project::{Sandbox, Session};
use serde_json::Value;

use crate::zygote::zygote;

/// A sandbox with nothing parked, of the program under test.
pub(crate) async fn sandbox() -> Sandbox {
    let builder = Sandbox::builder().program(zygote()).pool(0).ready([]);
    builder.build().await.expect("this machine can confine a zygote")
}

/// A session with the default limits.
pub(crate) async fn session(sandbox: &Sandbox, language: Language) -> Session {
    sandbox.session(language).open().await.expect("there is room for a session")
}

/// The value of code, which must succeed.
pub(crate) async fn value(session: &Session, code: &str) -> Value {
    let result = session.run(code).await;
    assert!(result.success, "{code}: {:?}", result.error);
    json(&result)
}

/// The value of a result.
pub(crate) fn json(result: &RunResult) -> Value {
    serde_json::from_str(result.result.get()).expect("a value is JSON")
}

/// The message of a run that must fail.
pub(crate) async fn failure(session: &Session, code: &str) -> String {
    let result = session.run(code).await;
    let error = result.error.unwrap_or_else(|| panic!("{code}: {:?}", result.result));
    error.message
}

/// The same few things said in each language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phrases {
    pub(crate) language: Language,
    /// `x` is 1.
    pub(crate) set: &'static str,
    /// `x` is 2.
    pub(crate) change: &'static str,
    /// `x`, or `null` where it is not known.
    pub(crate) get: &'static str,
    /// `x + 1`.
    pub(crate) next: &'static str,
    /// An exception.
    pub(crate) fail: &'static str,
    /// A function that adds 40.
    pub(crate) define: &'static str,
    /// It, applied to 2.
    pub(crate) call: &'static str,
    /// Writes `one` to `note.txt`.
    pub(crate) write: &'static str,
    /// Writes `two` to it.
    pub(crate) overwrite: &'static str,
    /// Reads it.
    pub(crate) read: &'static str,
    /// Never ends, and does not notice.
    pub(crate) spin: &'static str,
}

pub(crate) const TYPESCRIPT: Phrases = Phrases {
    language: Language::TypeScript,
    set: "x = 1",
    change: "x = 2; x",
    get: "typeof x === 'undefined' ? null : x",
    next: "x + 1",
    fail: "throw new Error('no')",
    define: "function plus(n: number): number { return n + 40 }",
    call: "plus(2)",
    write: "fs.writeFileSync('note.txt', 'one')",
    overwrite: "fs.writeFileSync('note.txt', 'two')",
    read: "fs.readFileSync('note.txt', 'utf8')",
    spin: "while (true) {}",
};

pub(crate) const PYTHON: Phrases = Phrases {
    language: Language::Python,
    set: "x = 1",
    change: "x = 2\nx",
    get: "globals().get('x')",
    next: "x + 1",
    fail: "raise ValueError('no')",
    define: "def plus(n):\n    return n + 40",
    call: "plus(2)",
    write: "with open('note.txt', 'w') as f:\n    f.write('one')",
    overwrite: "with open('note.txt', 'w') as f:\n    f.write('two')",
    read: "open('note.txt').read()",
    spin: "while True: pass",
};

pub(crate) const BASH: Phrases = Phrases {
    language: Language::Bash,
    set: "x=1",
    change: "x=2; echo $x",
    get: "echo ${x-null}",
    next: "echo $((x + 1))",
    fail: "false; exit 3",
    define: "plus() { echo $(($1 + 40)); }",
    call: "plus 2",
    write: "printf one > note.txt",
    overwrite: "printf two > note.txt",
    read: "text=$(cat note.txt) && printf '\"%s\"\\n' \"$text\"",
    spin: "while :; do :; done",
};

pub(crate) const ALL: [Phrases; 3] = [TYPESCRIPT, PYTHON, BASH];
