//! Code in a file: its language, engine, limits and grants.

use super::fault::{Diagnostics, near, shortened};
use super::fields::{FieldReader, expected, number, text};
use super::tree::{FileNode, FileTree, Position};
use super::{CodeExecution, FormatOptions};
use belljar_contract::{
    EngineName, Grant, Language, Limit, LimitsRequest, MAX_JSON_INTEGER, TaskGrants,
};
use serde_json::Value;

/// How code of workflows is turned on, for messages.
pub const CODE_SWITCH: &str = "the operator turns it on with `--enable-code-execution`, or for `belljar serve` \
                               with `enable_code_execution` in `[workflows]`";
/// How bash in workflows is turned on, for messages.
pub const SHELL_SWITCH: &str = "the operator turns it on with `--enable-shell`, or for `belljar serve` with \
                                `enable_shell` in `[workflows]`";
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

    /// The language, and the engine if the file names one. Code without a language
    /// has that of its engine, and without both the usual one; a fault about that one is noted at `at`.
    pub(super) fn read(
        self,
        (usual, at): (&str, Position),
        options: &FormatOptions,
        notes: &mut Diagnostics<'_>,
    ) -> Option<(Language, Option<EngineName>)> {
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
        if let Err(mismatch) = engine.check(language) {
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
        let message = format!("there is no engine `{}`", shortened(&name));
        notes.fault(node.at, message, format!("engines: {}", EngineName::names()));
    }
    engine
}

/// The language that a name in a file means; a fault when there is no engine for it.
fn language(
    name: &str,
    at: Position,
    options: &FormatOptions,
    notes: &mut Diagnostics<'_>,
) -> Option<Language> {
    let Some(known) = Language::from_name(name) else {
        let near = near(&name.to_ascii_lowercase(), Language::NAMES);
        let help = match near.is_empty() {
            true => format!("supported languages: {}", Language::NAMES.join(", ")),
            false => near,
        };
        notes.fault(at, format!("the language `{}` is not supported", shortened(name)), help);
        return None;
    };
    // When all code is off, that fault is reported already.
    if known == Language::Bash && options.code == CodeExecution::On {
        notes.fault(at, "the shell is off", format!("{SHELL_SWITCH}; a file cannot"));
        return None;
    }
    Some(known)
}

/// Notes a fault unless the operator allows code.
pub(super) fn allowed(at: Position, options: &FormatOptions, notes: &mut Diagnostics<'_>) -> bool {
    let on = options.code != CodeExecution::Off;
    if !on {
        notes.fault(at, "code execution is off", format!("{CODE_SWITCH}; a file cannot"));
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

/// Reads the limits of the contract's table, in any of their spellings.
pub(super) fn limits(fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) -> LimitsRequest {
    let mut limits = LimitsRequest::default();
    for limit in Limit::ALL {
        let node = fields.take_alike(&limit.names(), notes);
        if let Some(stated) = node.and_then(|node| number(node, 1..=MAX_JSON_INTEGER, notes)) {
            limits.set(*limit, stated);
        }
    }
    limits
}

/// Reads the grants of the contract's table, in any of their spellings.
pub(super) fn grants(fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) -> TaskGrants {
    let mut grants = TaskGrants::default();
    for grant in Grant::OF_TASKS {
        let Some(node) = fields.take_alike(&grant.names(), notes) else { continue };
        if *grant == Grant::Modules && items_of(node) > MAX_MODULES {
            let message = format!("more than {MAX_MODULES} modules");
            notes.fault(fields.at, message, "name fewer, or none");
            continue;
        }
        if let FileTree::List(items) = &node.tree
            && items.iter().filter(|item| text(item, notes).is_none()).count() > 0
        {
            continue;
        }
        // A single name is a list of one.
        let json = Value::from(&node.json());
        let set = grants.set(*grant, &json);
        if let Err(wanted) = set.or_else(|_| grants.set(*grant, &Value::Array(vec![json]))) {
            expected(node, wanted, notes);
        }
    }
    grants
}

fn items_of(node: &FileNode) -> usize {
    if let FileTree::List(items) = &node.tree { items.len() } else { 1 }
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
