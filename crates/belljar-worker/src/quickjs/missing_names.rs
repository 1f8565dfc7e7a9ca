//! Names that agents know from other runtimes and that do not exist here, with their replacements.
//!
//! They stay undefined, so that `typeof` is right; code that uses one anyway ends in a
//! ReferenceError, whose code and hint are here.

use belljar_contract::ErrorCode;

use super::node_modules;

/// A name that does not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingName {
    /// A refusal, for names that would reach out of the cell; otherwise an ordinary error.
    pub(super) code: ErrorCode,
    pub(super) hint: &'static str,
}

const NO_BROWSER: &str = "This is not a browser: there is no page, no storage and no user to ask. \
    Input is in `context`, output is console.log and `return`.";
const NO_EXPORTS: &str = "Nothing can import from this code. Use `return value`.";
const NO_HOST: &str = "There is no access to the host here: no process, no environment, no \
    subprocess. Input is in `context`.";

/// The hint for a name that is not defined.
pub(super) fn lookup(name: &str) -> Option<MissingName> {
    let (code, hint) = match name {
        "fsPromises" => (ErrorCode::RuntimeThrown, "Use fs.promises."),
        "path" => (ErrorCode::RuntimeThrown, "Write: import path from \"node:path\"."),
        "os" => (ErrorCode::RuntimeThrown, "Write: import os from \"node:os\"."),
        "util" => (ErrorCode::RuntimeThrown, "Write: import util from \"node:util\"."),
        "assert" => (ErrorCode::RuntimeThrown, "Write: import assert from \"node:assert\"."),
        "EventEmitter" => {
            (ErrorCode::RuntimeThrown, "Write: import { EventEmitter } from \"node:events\".")
        }
        "createHash" => {
            (ErrorCode::RuntimeThrown, "Write: import { createHash } from \"node:crypto\".")
        }
        "Bun" | "child_process" | "exec" | "spawn" | "execSync" => {
            (ErrorCode::PermissionHost, NO_HOST)
        }
        "axios" | "http" | "https" | "net" => (ErrorCode::PermissionNetwork, node_modules::NETWORK),
        "WebAssembly" => (
            ErrorCode::PermissionHost,
            "WebAssembly is not available. Write the computation in TypeScript.",
        ),
        "localStorage" | "sessionStorage" | "indexedDB" | "window" | "document" | "navigator"
        | "location" | "alert" | "prompt" | "confirm" => (ErrorCode::RuntimeThrown, NO_BROWSER),
        "module" | "exports" => (ErrorCode::RuntimeThrown, NO_EXPORTS),
        "_" => (ErrorCode::RuntimeThrown, node_modules::hint_for("lodash")),
        "z" => (ErrorCode::RuntimeThrown, node_modules::hint_for("zod")),
        "lodash" | "moment" | "dayjs" | "zod" | "cheerio" | "uuid" => {
            (ErrorCode::RuntimeThrown, node_modules::hint_for(name))
        }
        "None" | "True" | "False" | "print" | "len" | "elif" => (
            ErrorCode::RuntimeThrown,
            "That is Python. Write null, true, false, console.log(...), value.length.",
        ),
        _ => (ErrorCode::RuntimeThrown, hint_for_other(name)?),
    };
    Some(MissingName { code, hint })
}

/// Names of the web and of test runners; none of them reaches out of the cell.
fn hint_for_other(name: &str) -> Option<&'static str> {
    Some(match name {
        "Temporal" => {
            "Temporal is not available. Use Date, Intl.DateTimeFormat, and `data.parseDate`, \
             `data.addTime`, `data.diffTime`, `data.formatDate`."
        }
        "CompressionStream" | "DecompressionStream" => node_modules::hint_for("zlib"),
        "MessageChannel" | "MessagePort" | "BroadcastChannel" => {
            "There is one thread and nobody to send to. Use EventTarget, or node:events."
        }
        "DOMParser" | "XMLSerializer" => node_modules::hint_for("jsdom"),
        "FileReader" => "Use `await blob.text()` or `await blob.arrayBuffer()`.",
        "Image" | "Audio" | "HTMLElement" | "requestAnimationFrame" | "customElements" => {
            NO_BROWSER
        }
        "describe" | "it" | "test" | "expect" => node_modules::hint_for("jest"),
        _ => return None,
    })
}
