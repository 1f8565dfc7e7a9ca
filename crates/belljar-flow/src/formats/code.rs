//! Code in a file: its language, what it may use up and reach.

use super::fault::{Notes, near, shortened};
use super::fields::Fields;
use super::tree::At;
use super::{CodeExecution, Options};
use crate::dag::{Grants, Limits};

/// How many modules may be named: every code task has the list.
const MAX_MODULES: usize = 256;

/// A language as it is called here; a fault when there is no engine for it.
pub(super) fn language(name: &str, at: At, notes: &mut Notes<'_>) -> Option<String> {
    let known = match name.to_ascii_lowercase().as_str() {
        "python" | "python3" | "py" => "python",
        "typescript" | "ts" => "typescript",
        "javascript" | "js" => "javascript",
        "bash" | "sh" | "shell" => "bash",
        other => {
            let near = near(other, ["python", "typescript", "javascript", "bash"]);
            let can = "languages are python, typescript, javascript and bash";
            let help = if near.is_empty() { can.to_owned() } else { near };
            notes.fault(at, format!("the language `{}` is not supported", shortened(name)), help);
            return None;
        }
    };
    Some(known.to_owned())
}

/// Notes a fault when the operator has not allowed code.
pub(super) fn allowed(at: At, options: &Options, notes: &mut Notes<'_>) -> bool {
    let on = options.code == CodeExecution::On;
    if !on {
        notes.fault(
            at,
            "code execution is off",
            "the operator turns it on with `--enable-code-execution`, or for `belljar serve` with \
             `enable_code_execution` in `[workflows]`; a file cannot",
        );
    }
    on
}

/// Reads `enable_code_execution` of a file, which has no effect.
pub(super) fn self_enabled(fields: &mut Fields<'_>, notes: &mut Notes<'_>) {
    let at = fields.at;
    if fields.flag(&["enable_code_execution"], notes) == Some(true) {
        let why = "only the operator can turn code execution on";
        notes.warn(at, "`enable_code_execution` in a file has no effect", why);
    }
}

/// `limits` as they are called here.
pub(super) fn limits(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Limits {
    let all = 1..=u64::MAX;
    Limits {
        timeout_ms: fields.number(&["timeout_ms", "timeoutMs"], all.clone(), notes),
        memory_mb: fields.number(
            &[
                "memory_mb",
                "max_memory_mb",
                "maxMemoryMb",
                "memory_limit",
                "memoryLimit",
                "memoryLimitMb",
            ],
            all.clone(),
            notes,
        ),
        output_bytes: fields.number(
            &["output_bytes", "max_output_bytes", "maxOutputBytes"],
            all,
            notes,
        ),
        tool_calls: fields.number(
            &["tool_calls", "max_tool_calls", "maxToolCalls"],
            0..=u64::MAX,
            notes,
        ),
    }
}

/// `grants` as they are called here.
pub(super) fn grants(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Grants {
    let only = |names: Vec<(String, At)>| names.into_iter().map(|(name, _)| name).collect();
    let given = fields.has("tools").then_some(());
    let tools = only(fields.texts(&["tools"], notes));
    Grants {
        tools: given.map(|()| tools),
        read: only(fields.texts(&["read", "allowed_read_paths", "allowedReadPaths"], notes)),
        env: only(fields.texts(&["env"], notes)),
        modules: modules(fields, notes),
        commands: only(fields.texts(&["commands"], notes)),
    }
}

/// The modules code may import; not saying is not the same as none.
pub(super) fn modules(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Vec<String>> {
    let names = ["modules", "allowed_modules", "allowedModules"];
    let given = names.iter().any(|name| fields.has(name));
    let listed = fields.texts(&names, notes);
    if listed.len() > MAX_MODULES {
        notes.fault(fields.at, format!("more than {MAX_MODULES} modules"), "name fewer, or none");
        return None;
    }
    given.then(|| listed.into_iter().map(|(name, _)| name).collect())
}

/// Wishes that a cell cannot grant: each says what to do instead.
pub(super) fn wishes(fields: &mut Fields<'_>, notes: &mut Notes<'_>) {
    let at = |fields: &mut Fields<'_>, names: &[&'static str], notes: &mut Notes<'_>| {
        let node = fields.take(names, notes)?;
        matches!(&node.tree, super::tree::Tree::Bool(true)).then_some(node.at)
    };
    if let Some(at) = at(fields, &["allow_network", "allowNetwork"], notes) {
        notes.fault(
            at,
            "`allow_network` is not supported: code has no network",
            "call a tool for what the code would fetch, and remove this",
        );
    }
    if let Some(at) = at(fields, &["allow_filesystem", "allowFilesystem"], notes) {
        notes.warn(
            at,
            "`allow_filesystem` gives the files of the workflow, not those of the host",
            "put what the code needs there, or grant paths with `read`",
        );
    }
}
