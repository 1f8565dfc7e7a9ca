//! Hints: what an agent can do about an error.

use belljar_contract::Grant;
use belljar_wire::GuestError;

/// A hint, and the grant that would have helped. The host adds how to ask for a grant, in the words of
/// whoever reads the error.
#[derive(Debug, Default)]
pub(super) struct Advice {
    pub(super) hint: Option<String>,
    pub(super) missing: Option<(Grant, String)>,
}

impl Advice {
    /// A hint that no grant belongs to.
    pub(super) fn of(hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), missing: None }
    }

    /// The error with this advice.
    pub(super) fn apply(self, mut error: GuestError) -> GuestError {
        error.hint = self.hint;
        match self.missing {
            Some((kind, name)) => error.with_missing(kind, name),
            None => error,
        }
    }
}

/// For code that is still running when its time is up.
pub(super) const TIMEOUT_RUNNING: &str =
    "The code was still running there. Look for a loop that does not end, or do less work.";

/// For code that sleeps when its time is up.
pub(super) const TIMEOUT_WAITING: &str =
    "The code was waiting for timers. Wait for less time, or clear intervals when they are done.";

/// For code that used up its memory.
pub(super) const MEMORY: &str = "Work on smaller pieces, and keep only what is needed for the \
    result instead of copies of the data.";

/// For code that calls itself too often.
pub(super) const STACK_OVERFLOW: &str =
    "Look for a recursion that does not end; for deep data use a loop with an explicit stack.";

/// For code that waits for ever.
pub(super) const STALLED: &str = "The code awaits a promise that is never resolved. Check that each `new Promise(...)` calls resolve.";

/// The message for a module that was asked for.
pub(super) fn module_refused(module: &str) -> String {
    format!("module \"{module}\" cannot be imported")
}

/// The hint for code that failed after it read variables that were not granted.
pub(super) fn for_missed_variables(names: &[String]) -> Option<Advice> {
    let first = names.first()?;
    let listed = names.join(", ");
    let hint = format!(
        "process.env has no {listed}: code sees a variable of the host only if it is granted; `context` can \
         pass the value instead."
    );
    Some(Advice { hint: Some(hint), missing: Some((Grant::Env, first.clone())) })
}

/// Hints for messages of the engine.
pub(super) fn for_message(message: &str) -> Option<&'static str> {
    let is = |start: &str, end: &str| message.starts_with(start) && message.ends_with(end);
    if is("ReferenceError: ", " is not defined") {
        return Some("Define it first, or check its spelling. Input is in `context`.");
    }
    if is("TypeError: cannot read property ", " of undefined")
        || is("TypeError: cannot read property ", " of null")
    {
        return Some(
            "Check the value before the dot: the name may be wrong, or an `await` missing. Use \
             `?.` where it may be absent.",
        );
    }
    if let Some(hint) = for_missing_member(message) {
        return Some(hint);
    }
    if is("TypeError: fs.", "is not a function") {
        return Some(
            "fs has readFile, writeFile, appendFile, readdir, stat, lstat, access, exists, mkdir, \
             mkdtemp, rm, rmdir, unlink, rename, copyFile, cp and truncate, as …Sync, with a \
             callback, and in fs.promises.",
        );
    }
    if is("TypeError: ", "not a function") {
        return Some("Check what is called there: a wrong name, or a missing `await` before it.");
    }
    if is("TypeError: ", "is not iterable") {
        return Some("Only arrays, strings, Maps, Sets and the like can be looped over or spread.");
    }
    None
}

/// Hints for members that other runtimes have.
fn for_missing_member(message: &str) -> Option<&'static str> {
    let callee = message.strip_prefix("TypeError: ")?.strip_suffix(" is not a function")?;
    let hint = match callee {
        "Intl.DisplayNames" | "Intl.DurationFormat" => {
            "It is not available: there are no names of regions, languages and currencies, and no \
             durations. Intl has NumberFormat, DateTimeFormat, PluralRules, RelativeTimeFormat, \
             ListFormat, Collator, Segmenter and Locale. Write the few names yourself."
        }
        "crypto.createHash" | "crypto.createHmac" | "crypto.randomBytes" | "crypto.randomInt" => {
            "The global `crypto` is the web's. Write: import crypto from \"node:crypto\"."
        }
        "crypto.createCipheriv"
        | "crypto.createDecipheriv"
        | "crypto.scryptSync"
        | "crypto.pbkdf2Sync"
        | "crypto.createSign"
        | "crypto.createVerify"
        | "crypto.generateKeyPairSync" => {
            "node:crypto has hashes, HMAC and randomness here; no ciphers and no keys. Use language \
             python for those."
        }
        "util.parseArgs" => "There is no command line to parse. Input is in `context`.",
        _ => return None,
    };
    Some(hint)
}

/// The hint for a value that JSON cannot represent.
pub(super) fn for_unsupported(kind: &str) -> &'static str {
    match kind {
        "a promise" => "Add `await` before it, or `await Promise.all(...)` for several.",
        "a BigInt" => "Convert it with String(value), or Number(value) if it is small enough.",
        "a function" => "Call it and return what it gives, or leave it out.",
        "a Map with objects as keys" => "Return its entries: [...map], or use texts as keys.",
        "an iterator" | "an async iterator" => "Collect its items first: [...iterator].",
        _ => "Return plain data: objects, arrays, strings, numbers, booleans, null.",
    }
}

/// A time span for people.
pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        whole if whole >= 1000 && whole % 1000 == 0 => format!("{} s", whole / 1000),
        other => format!("{other} ms"),
    }
}

/// A size for people.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        whole if whole >= 1 << 20 && whole % (1 << 20) == 0 => format!("{} MiB", whole >> 20),
        other => format!("{other} bytes"),
    }
}
