//! Code in a file: its language, engine, limits and grants.

use super::fault::{Diagnostics, near, shortened};
use super::fields::{FieldReader, text};
use super::tree::{FileNode, FileTree, Position};
use super::{CodeExecution, FormatOptions};
use belljar_contract::{EngineName, Language, LimitsRequest, MAX_JSON_INTEGER};
use belljar_workflow::{TaskGrants, WriteAccess};

/// The most modules a file may name: every code task carries the list.
const MAX_MODULES: usize = 256;

/// The fields `language` and `engine` of code, as the file has them.
#[derive(Clone, Copy)]
pub(super) struct LanguageFields<'t> {
    language: Option<&'t FileNode>,
    engine: Option<&'t FileNode>,
}

impl<'t> LanguageFields<'t> {
    pub(super) fn take(fields: &mut FieldReader<'t>, notes: &mut Diagnostics<'_>) -> Self {
        let language = fields.take(&["language"], notes);
        Self { language, engine: fields.take(&["engine"], notes) }
    }

    /// The language as Belljar writes it, and the engine if the file names one. Code without a language
    /// has that of its engine, and without both the usual one; a fault about that one is noted at `at`.
    pub(super) fn read(
        self,
        (usual, at): (&str, Position),
        options: &FormatOptions,
        notes: &mut Diagnostics<'_>,
    ) -> Option<(String, Option<EngineName>)> {
        let engine = match self.engine {
            None => None,
            Some(node) => Some((engine(node, notes)?, node.at)),
        };
        let (name, at) = match (self.language, engine) {
            (Some(node), _) => (text(node, notes)?, node.at),
            (None, Some((engine, at))) => {
                (Language::default_for(Some(engine)).as_str().to_owned(), at)
            }
            (None, None) => (usual.to_owned(), at),
        };
        let language = language(&name, at, options, notes)?;
        let Some((engine, at)) = engine else { return Some((language, None)) };
        let mismatch = Language::from_name(&language).and_then(|known| engine.check(known).err());
        if let Some(mismatch) = mismatch {
            notes.fault(at, mismatch.to_string(), mismatch.hint());
            return None;
        }
        Some((language, Some(engine)))
    }
}

fn engine(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<EngineName> {
    let name = text(node, notes)?;
    let engine = EngineName::from_name(&name);
    if engine.is_none() {
        let message = format!("no engine is called `{}`", shortened(&name));
        notes.fault(node.at, message, format!("engines: {}", EngineName::names()));
    }
    engine
}

/// The name of a language as Belljar writes it; a fault when there is no engine for it.
fn language(
    name: &str,
    at: Position,
    options: &FormatOptions,
    notes: &mut Diagnostics<'_>,
) -> Option<String> {
    let known = match name.to_ascii_lowercase().as_str() {
        "python" | "python3" | "py" => "python",
        "typescript" | "ts" => "typescript",
        "javascript" | "js" => "javascript",
        "bash" | "sh" | "shell" => "bash",
        other => {
            let near = near(other, ["python", "typescript", "javascript", "bash"]);
            let can = "supported languages: python, typescript, javascript, bash";
            let help = if near.is_empty() { can.to_owned() } else { near };
            notes.fault(at, format!("the language `{}` is not supported", shortened(name)), help);
            return None;
        }
    };
    // When all code is off, that fault is reported already.
    if known == "bash" && options.code == CodeExecution::On {
        notes.fault(
            at,
            "the shell is off",
            "the operator turns it on with `--enable-shell`, or for `belljar serve` with `enable_shell` \
             in `[workflows]`; a file cannot",
        );
        return None;
    }
    Some(known.to_owned())
}

/// Notes a fault unless the operator allows code.
pub(super) fn allowed(at: Position, options: &FormatOptions, notes: &mut Diagnostics<'_>) -> bool {
    let on = options.code != CodeExecution::Off;
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

/// Warns about the operator's switches in a file, where they have no effect.
pub(super) fn self_enabled(fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) {
    let at = fields.at;
    for (name, what) in [("enable_code_execution", "code execution"), ("enable_shell", "the shell")]
    {
        if fields.flag(&[name], notes) == Some(true) {
            let why = format!("only the operator can turn {what} on");
            notes.warn(at, format!("`{name}` in a file has no effect"), why);
        }
    }
}

/// Reads `limits`, in any of their spellings.
pub(super) fn limits(fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) -> LimitsRequest {
    let all = 1..=MAX_JSON_INTEGER;
    LimitsRequest {
        timeout_ms: fields.number(&["timeout_ms", "timeoutMs", "timeoutMS"], all.clone(), notes),
        memory_mb: fields.number(
            &[
                "memory_mb",
                "max_memory_mb",
                "maxMemoryMb",
                "memory_limit",
                "memoryLimit",
                "memoryLimitMb",
                "memoryLimitMB",
                "heap_limit_mb",
                "heapLimitMb",
                "heapLimitMB",
            ],
            all.clone(),
            notes,
        ),
        output_bytes: fields.number(
            &["output_bytes", "max_output_bytes", "maxOutputBytes"],
            all,
            notes,
        ),
        tool_calls: fields
            .number(&["tool_calls", "max_tool_calls", "maxToolCalls"], 0..=MAX_JSON_INTEGER, notes)
            .map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
        ..LimitsRequest::default()
    }
}

/// Reads `grants`, in any of their spellings.
pub(super) fn grants(fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) -> TaskGrants {
    let only = |names: Vec<(String, Position)>| names.into_iter().map(|(name, _)| name).collect();
    let given = fields.has("tools").then_some(());
    let tools = only(fields.texts(&["tools"], notes));
    TaskGrants {
        tools: given.map(|()| tools),
        read: only(fields.texts(&["read", "allowed_read_paths", "allowedReadPaths"], notes)),
        write: write_access(fields, &["write", "allowed_write_paths", "allowedWritePaths"], notes),
        env: only(fields.texts(&["env"], notes)),
        modules: modules(fields, notes),
        commands: only(fields.texts(&["commands"], notes)),
        permissive: fields.flag(&["permissive"], notes).unwrap_or(false),
    }
}

/// Reads which paths of the host code may write: true, false, or a list.
pub(super) fn write_access(
    fields: &mut FieldReader<'_>,
    names: &[&'static str],
    notes: &mut Diagnostics<'_>,
) -> WriteAccess {
    let is_said =
        |name: &&&str| fields.value(name).is_some_and(|tree| matches!(tree, FileTree::Bool(_)));
    if names.iter().find(is_said).is_some() {
        return WriteAccess::Said(fields.flag(names, notes).unwrap_or(false));
    }
    let paths = fields.texts(names, notes);
    match paths.is_empty() {
        true => WriteAccess::default(),
        false => WriteAccess::Paths(paths.into_iter().map(|(path, _)| path).collect()),
    }
}

/// Reads the modules that code may import; leaving them out is not the same as an empty list.
pub(super) fn modules(
    fields: &mut FieldReader<'_>,
    notes: &mut Diagnostics<'_>,
) -> Option<Vec<String>> {
    let names = ["modules", "allowed_modules", "allowedModules"];
    let given = names.iter().any(|name| fields.has(name));
    let listed = fields.texts(&names, notes);
    if listed.len() > MAX_MODULES {
        notes.fault(fields.at, format!("more than {MAX_MODULES} modules"), "name fewer, or none");
        return None;
    }
    given.then(|| listed.into_iter().map(|(name, _)| name).collect())
}

/// Refuses permissions that a cell cannot give, and says what to do instead.
pub(super) fn refuse_permissions(fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) {
    // A list of hosts asks for the network as well.
    let network = fields.take(&["allow_network", "allowNetwork"], notes);
    let wished = network.filter(|node| node.tree != FileTree::Bool(false)).map(|node| node.at);
    if let Some(at) = wished {
        notes.fault(
            at,
            "`allow_network` is not supported: code has no network",
            "remove it, and fetch through an MCP tool",
        );
    }
}

/// Reads `allow_filesystem`: whether code sees the files of the workflow. When it is false, the
/// code has no writable files of its own either.
pub(super) fn filesystem(
    fields: &mut FieldReader<'_>,
    notes: &mut Diagnostics<'_>,
) -> Option<bool> {
    let at = fields.at;
    let is_allowed = fields.flag(&["allow_filesystem", "allowFilesystem"], notes)?;
    if is_allowed {
        notes.warn(
            at,
            "`allow_filesystem` gives the files of the workflow, not those of the host",
            "put the files the code needs into the workflow, or grant host paths with `read`",
        );
    }
    Some(is_allowed)
}
