//! The action of a node: code, a session that lives across nodes, or a tool.

use belljar_contract::{JsonMap, JsonValue};

use super::step::Steps;
use crate::code::{self, LanguageFields};
use crate::expression::is_template;
use crate::fault::{Diagnostics, shortened};
use crate::fields::{FieldReader, expected, milliseconds, text};
use crate::tasks::is_tool_name;
use crate::tree::{FileNode, FileTree, Position};
use belljar_contract::{EngineName, Language, LimitsRequest, TaskGrants};
use belljar_workflow::{Action, Code, ResultShape, SandboxAction, ToolAction};

/// `settings.code`: defaults for all code of a file.
#[derive(Debug, Clone)]
pub(super) struct CodeSettings {
    limits: LimitsRequest,
    grants: TaskGrants,
    /// Whether code sees the files of the workflow, if the file says so.
    files: Option<bool>,
}

impl Default for CodeSettings {
    fn default() -> Self {
        let limits = LimitsRequest {
            timeout_ms: Some(30_000),
            memory_mb: Some(256),
            output_bytes: Some(65_536),
            ..LimitsRequest::default()
        };
        Self { limits, grants: TaskGrants::default(), files: None }
    }
}

impl CodeSettings {
    /// Reads the mapping `settings.code`.
    pub(super) fn read(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<Self> {
        let mut fields = FieldReader::of(node, "`settings.code`", notes)?;
        let mut settings = Self::default();
        settings.limits = settings.limits(&mut fields, notes);
        settings.grants = code::grants(&mut fields, notes);
        if let Some(mode) = fields.take(&["sandbox_mode"], notes) {
            settings.grants.permissive |= is_permissive(mode, notes);
        }
        code::self_enabled(&mut fields, notes);
        if fields.flag(&["enabled"], notes) == Some(true) {
            let why = "only the operator can turn code execution on";
            notes.warn(node.at, "`enabled` in a file has no effect", why);
        }
        settings.files = code::filesystem(&mut fields, notes);
        fields.done(notes);
        Some(settings)
    }

    /// The limits of one call, with these as defaults.
    fn limits(&self, fields: &mut FieldReader<'_>, notes: &mut Diagnostics<'_>) -> LimitsRequest {
        let names = ["timeout_seconds", "timeout", "default_timeout"];
        let timeout = fields.take(&names, notes).and_then(|node| seconds(node, notes));
        let mut own = code::limits(fields, notes);
        own.timeout_ms = timeout.or(own.timeout_ms);
        own.or(&self.limits)
    }

    /// The code of a node: it sees `state` as a name, and its result goes into the state.
    pub(super) fn node(
        &self,
        (language, engine): (Language, Option<EngineName>),
        code: String,
        context: JsonMap,
    ) -> Code {
        Code {
            language,
            engine,
            code,
            template: false,
            shape: ResultShape::Node,
            context,
            intent: None,
            grants: self.grants.clone(),
            limits: Box::new(self.limits.clone()),
            files: self.files == Some(true),
            no_room: self.files == Some(false),
        }
    }
}

/// Reads `sandbox_mode`: which modules Python may import. The sandbox is the same in every mode.
fn is_permissive(node: &FileNode, notes: &mut Diagnostics<'_>) -> bool {
    let mode = text(node, notes);
    match mode.as_deref() {
        None | Some("restricted" | "permissive") => {}
        Some("e2b") => notes.fault(
            node.at,
            "`sandbox_mode: e2b` is not supported: code runs on this host, not at a service",
            "write `restricted`",
        ),
        Some(_) => expected(node, "`restricted` or `permissive`", notes),
    }
    mode.as_deref() == Some("permissive")
}

/// Reads a duration: seconds with an optional fraction, or `500ms`, `30s`, `5m`. In milliseconds.
pub(super) fn seconds(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<u64> {
    let value = match &node.tree {
        FileTree::Number(number) => number.as_f64(),
        FileTree::Text(text) if let Some(ms) = milliseconds(text) => return Some(ms),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Text(_)
        | FileTree::List(_)
        | FileTree::Map(_) => None,
    };
    let fits = value.filter(|seconds| *seconds > 0.0 && *seconds <= 1e9);
    if fits.is_none() {
        expected(node, "a number of seconds, or a time such as `500ms`, `30s`, `5m`", notes);
    }
    fits.map(|seconds| std::time::Duration::from_secs_f64(seconds).as_millis())
        .and_then(|ms| u64::try_from(ms.max(1)).ok())
}

/// Actions of other agent frameworks; here they are tools of a server of that name.
const ELSEWHERE: [&str; 41] = [
    "llm",
    "validate",
    "retry",
    "http",
    "file",
    "json",
    "csv",
    "data",
    "memory",
    "ltm",
    "rag",
    "web",
    "agent",
    "cloud",
    "duckdb",
    "graph",
    "vector",
    "storage",
    "cache",
    "session",
    "notify",
    "checkpoint",
    "trace",
    "opik",
    "plan",
    "reason",
    "reflection",
    "error",
    "firestore",
    "text",
    "search",
    "a2a",
    "llamaextract",
    "llamaindex",
    "mem0",
    "dspy",
    "execution",
    "schema",
    "markdown",
    "template",
    "bmad",
];

impl Steps<'_, '_> {
    /// Reads `uses` and `with` of a node.
    pub(super) fn uses(
        &mut self,
        uses: &str,
        at: Position,
        with: Option<&FileNode>,
    ) -> Option<Action> {
        let name = plain_name(uses);
        match name.as_str() {
            "code.execute" => self.execute(at, with).map(Action::CodeExecution),
            "code.sandbox" => self.sandbox(at, with).map(Action::Sandbox),
            "tools" | "tools.call" | "tool" | "mcp.call" => {
                self.any_tool(at, with).map(Action::McpTool)
            }
            "retry.loop" | "reflection.loop" | "plan.execute" => {
                let message =
                    format!("`{name}` is not supported: an action cannot run other nodes");
                self.notes.fault(at, message, "write a `while_loop`, or `goto` an earlier node");
                None
            }
            name => {
                let tool = self.tool_name(name, at)?;
                let arguments = with.map(|node| self.templates(node));
                self.object(arguments, with)
                    .map(|arguments| Action::McpTool(ToolAction { tool, arguments }))
            }
        }
    }

    fn tool_name(&mut self, name: &str, at: Position) -> Option<String> {
        if !is_tool_name(name) {
            let message = format!("`{}` is neither an action nor a tool", shortened(name));
            let help = "write `code.execute`, `code.sandbox` or a tool as `server.tool`";
            self.notes.fault(at, message, help);
            return None;
        }
        let server = name.split(['.', ':']).next().unwrap_or_default();
        if ELSEWHERE.contains(&server) {
            let help = format!("connect an MCP server called `{server}`, or change `uses`");
            let message = format!("`{name}` is not built in: it is called as an MCP tool");
            self.notes.warn(at, message, help);
        }
        Some(name.to_owned())
    }

    /// Reads `uses: tools`, where `with` names the tool.
    fn any_tool(&mut self, at: Position, with: Option<&FileNode>) -> Option<ToolAction> {
        let Some(with) = with else {
            self.notes.fault(at, "`with` is missing", "write `with: {tool: server.tool}`");
            return None;
        };
        let mut fields = FieldReader::of(with, "`with`", self.notes)?;
        let name = fields.text(&["tool", "name"], self.notes);
        let arguments = fields.take(&["arguments", "args"], self.notes);
        fields.done(self.notes);
        let tool = self.tool_name(&name.unwrap_or_default(), at)?;
        let values = arguments.map(|node| self.templates(node));
        self.object(values, arguments).map(|arguments| ToolAction { tool, arguments })
    }

    pub(super) fn object(
        &mut self,
        value: Option<JsonValue>,
        node: Option<&FileNode>,
    ) -> Option<JsonMap> {
        match (value, node) {
            (None | Some(JsonValue::Null), _) => Some(JsonMap::new()),
            (Some(JsonValue::Object(map)), _) => Some(map),
            (Some(_), Some(node)) => {
                expected(node, "a mapping", self.notes);
                None
            }
            (Some(_), None) => None,
        }
    }

    /// Reads `code.execute`: the result is a report, whether or not the code fails.
    fn execute(&mut self, at: Position, with: Option<&FileNode>) -> Option<Code> {
        let allowed = code::allowed(at, self.options, self.notes);
        let mut fields = self.with(at, with, "`code.execute`")?;
        let source = fields.take(&["code"], self.notes);
        let language = self.language(at, &mut fields);
        let limits = self.code.limits(&mut fields, self.notes);
        let grants = code::grants(&mut fields, self.notes).and(&self.code.grants);
        let files = code::filesystem(&mut fields, self.notes).or(self.code.files);
        let context = fields.take(&["context", "inputs"], self.notes);
        let values = context.map(|node| self.templates(node));
        let context = self.object(values, context);
        fields.done(self.notes);
        let (source, template) = self.source(at, source)?;
        let (language, engine) = language?;
        let code = Code {
            language,
            engine,
            code: source,
            template,
            shape: ResultShape::Report,
            context: context?,
            intent: None,
            grants,
            limits: Box::new(limits),
            files: files == Some(true),
            no_room: files == Some(false),
        };
        allowed.then_some(code)
    }

    /// Reads `code.sandbox`: a session that other nodes use by its id.
    fn sandbox(&mut self, at: Position, with: Option<&FileNode>) -> Option<SandboxAction> {
        let allowed = code::allowed(at, self.options, self.notes);
        let mut fields = self.with(at, with, "`code.sandbox`")?;
        let action = fields.text(&["action"], self.notes).unwrap_or_else(|| "execute".to_owned());
        let sandbox_id = fields.take(&["sandbox_id", "session_id"], self.notes);
        let sandbox_id = sandbox_id.map(|node| self.templates(node));
        let language = self.language(at, &mut fields);
        let limits = self.code.limits(&mut fields, self.notes);
        let source = fields.take(&["code"], self.notes);
        let _ = code::filesystem(&mut fields, self.notes);
        let own = code::grants(&mut fields, self.notes);
        if let Some((grant, _)) = own.asked().first()
            && action != "create"
        {
            let message = format!("`{}` has no effect here", grant.key());
            self.notes.warn(at, message, "set it where the sandbox is created");
        }
        let grants = own.and(&self.code.grants);
        fields.done(self.notes);
        let sandbox = match (action.as_str(), sandbox_id) {
            ("create", _) => {
                let ((language, engine), limits) = (language?, limits.into());
                SandboxAction::Create { language, engine, limits, grants }
            }
            ("list", _) => SandboxAction::List,
            ("execute", Some(sandbox_id)) => {
                let (code, template) = self.source(at, source)?;
                let code = if template { code } else { literal(code) };
                SandboxAction::Execute { sandbox_id, code, limits: limits.into() }
            }
            ("destroy", Some(sandbox_id)) => SandboxAction::Destroy { sandbox_id },
            ("execute" | "destroy", None) => {
                let help = "pass the id that `create` returned";
                self.notes.fault(at, format!("`{action}` needs a `sandbox_id`"), help);
                return None;
            }
            (other, _) => {
                let message = format!("unknown action `{}`", shortened(other));
                self.notes.fault(at, message, "actions: create, execute, destroy, list");
                return None;
            }
        };
        allowed.then_some(sandbox)
    }

    fn with<'t>(
        &mut self,
        at: Position,
        with: Option<&'t FileNode>,
        what: &'static str,
    ) -> Option<FieldReader<'t>> {
        let Some(with) = with else {
            self.notes.fault(at, format!("{what} needs `with`"), "");
            return None;
        };
        FieldReader::of(with, what, self.notes)
    }

    /// The language of a call and the engine if it names one; Python by default.
    fn language(
        &mut self,
        at: Position,
        fields: &mut FieldReader<'_>,
    ) -> Option<(Language, Option<EngineName>)> {
        let language = LanguageFields::take(fields, self.notes);
        language.read(("python", at), self.options, self.notes)
    }

    /// The code of a call, and whether it is a template.
    fn source(&mut self, at: Position, source: Option<&FileNode>) -> Option<(String, bool)> {
        let Some(node) = source else {
            self.notes.fault(at, "`code` is missing", "");
            return None;
        };
        let code = text(node, self.notes)?;
        if !is_template(&code) {
            return Some((code, false));
        }
        let whole = code.trim();
        if !(whole.starts_with("{{") && whole.ends_with("}}")) || whole.matches("{{").count() > 1 {
            let why = "a value could be run as code: pass values in `context` instead";
            self.notes.warn(node.at, "templates put values into code", why);
        }
        self.refuse_names(&code, node.at);
        Some((self.names.template(&code), true))
    }
}

/// The name without the prefix `actions.`: `actions.code_execute` becomes `code.execute`.
fn plain_name(uses: &str) -> String {
    let uses = uses.trim();
    match uses.strip_prefix("actions.") {
        Some(rest) if !rest.contains(['.', ':']) => rest.replacen('_', ".", 1),
        Some(rest) => rest.to_owned(),
        None => uses.to_owned(),
    }
}

/// Code in a form that the template engine does not change.
fn literal(code: String) -> String {
    if ["{{", "{%", "{#"].iter().any(|open| code.contains(open)) {
        return format!("{{% raw %}}{code}{{% endraw %}}");
    }
    code
}
