//! Names that agents know from other runtimes and that do not exist here, with their replacements.
//!
//! They stay undefined, so that `typeof` is right; code that uses one anyway ends in a
//! ReferenceError, whose code and hint are here.

use belljar_contract::ErrorCode;

use super::hints;

/// A name that does not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingName {
    /// A refusal, for names that would reach out of the cell; otherwise an ordinary error.
    pub(super) code: ErrorCode,
    pub(super) hint: &'static str,
}

const NO_BROWSER: &str = "This is not a browser: there is no page, no storage and no user to ask. \
    Input is in `context`, output is console.log and `return`.";
const NO_DIRECTORY: &str = "The code is not in a file. Relative paths begin at /work.";
const NO_EXPORTS: &str = "Nothing can import from this code. Use `return value`.";
const NO_HOST: &str = "There is no access to the host here: no process, no environment, no \
    subprocess. Input is in `context`.";

/// The hint for a name that is not defined.
pub(super) fn lookup(name: &str) -> Option<MissingName> {
    let (code, hint) = match name {
        "fsPromises" => (ErrorCode::RuntimeThrown, "Use fs.promises."),
        "path" => (ErrorCode::RuntimeThrown, "Write: import path from \"node:path\"."),
        "__dirname" | "__filename" => (ErrorCode::PermissionFile, NO_DIRECTORY),
        "Bun" | "os" | "child_process" | "exec" | "spawn" | "execSync" => {
            (ErrorCode::PermissionHost, NO_HOST)
        }
        "axios" | "http" | "https" | "net" => (
            ErrorCode::PermissionNetwork,
            "Network access is not available in this run; pass the data in with `context`.",
        ),
        "WebAssembly" => (
            ErrorCode::PermissionHost,
            "WebAssembly is not available. Write the computation in TypeScript.",
        ),
        "localStorage" | "sessionStorage" | "indexedDB" | "window" | "document" | "navigator"
        | "location" | "alert" | "prompt" | "confirm" => (ErrorCode::RuntimeThrown, NO_BROWSER),
        "module" | "exports" => (ErrorCode::RuntimeThrown, NO_EXPORTS),
        "Buffer" => (
            ErrorCode::RuntimeThrown,
            "Use Uint8Array with TextEncoder/TextDecoder, and btoa/atob for base64.",
        ),
        "_" | "lodash" | "moment" | "dayjs" | "z" | "zod" | "cheerio" | "uuid" => {
            (ErrorCode::RuntimeThrown, hints::MODULE)
        }
        "None" | "True" | "False" | "print" | "len" | "elif" => (
            ErrorCode::RuntimeThrown,
            "That is Python. Write null, true, false, console.log(...), value.length.",
        ),
        _ => return None,
    };
    Some(MissingName { code, hint })
}
