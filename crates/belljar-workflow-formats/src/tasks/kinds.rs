//! Reads the action of a task, by its `type` or by the fields it has.

use belljar_contract::JsonValue;

use super::{TaskReader, asked, condition, duration};
use crate::code::{self, LanguageFields};
use crate::expression;
use crate::fault::{near, shortened};
use crate::fields::{FieldReader, expected};
use crate::tree::{FileNode, FileTree, Position};
use belljar_contract::{LimitsRequest, TaskGrants};
use belljar_workflow::{
    Action, AtLimit, Code, Foreach, Goto, LoopAction, ResultShape, SandboxAction, ToolAction, Wait,
};

/// The spellings of a task's tool and of its arguments.
const TOOLS: [&str; 5] = ["tool", "toolId", "tool_id", "toolName", "tool_name"];
const ARGUMENTS: [&str; 4] = ["arguments", "args", "parameters", "params"];

/// The types of tasks, for hints.
const KINDS: [&str; 10] = [
    "mcp_tool",
    "code_execution",
    "sandbox",
    "approval",
    "foreach",
    "loop",
    "workflow",
    "wait",
    "pass",
    "capability",
];

impl TaskReader<'_, '_> {
    pub(super) fn action(
        &mut self,
        node: &FileNode,
        fields: &mut FieldReader<'_>,
    ) -> Option<Action> {
        let kind = match fields.text(&["type"], self.notes) {
            Some(kind) => kind,
            None => guessed(fields).map(str::to_owned).or_else(|| {
                let help = "add `tool`, `code`, `message`, `items`, `body` or a `type`";
                self.notes.fault(node.at, "the task does not say what to do", help);
                fields.hint(&["tool", "toolId", "code", "message", "items", "body", "arguments"]);
                None
            })?,
        };
        let at = node.at;
        match kind.as_str() {
            "mcp_tool" | "tool" => self.tool(at, fields).map(Action::McpTool),
            "code_execution" | "code" => {
                fields.ignore(&["tool"]);
                let arguments = fields.object(&ARGUMENTS, self.notes);
                let mut code = self.code(at, fields)?;
                for (key, value) in self.map(arguments.unwrap_or_default(), at) {
                    code.context.entry(key).or_insert(value);
                }
                Some(Action::CodeExecution(code))
            }
            "capability" => self.capability(at, fields),
            "sandbox" => self.sandbox(at, fields).map(Action::Sandbox),
            "approval" => self.approval(at, fields),
            "foreach" => self.foreach(at, fields).map(Action::Foreach),
            "loop" => self.repeat(at, fields).map(Action::Loop),
            "workflow" => self.nested(at, fields),
            "wait" => self.wait(at, fields).map(Action::Wait),
            "pass" => {
                let value = fields.take(&["value"], self.notes);
                let value = value.map(|node| self.values(node.json(), node.at));
                Some(Action::Pass { value: value.unwrap_or(JsonValue::Null) })
            }
            other => {
                let near = near(other, KINDS);
                let help = match other {
                    "bash" | "shell" | "python" | "javascript" | "typescript" => {
                        format!("write `type: code_execution` and `language: {other}`")
                    }
                    _ if near.is_empty() => format!("types are {}", KINDS.join(", ")),
                    _ => near,
                };
                let message = format!("unknown task type `{}`", shortened(other));
                self.notes.fault(at, message, help);
                None
            }
        }
    }

    pub(super) fn tool(
        &mut self,
        at: Position,
        fields: &mut FieldReader<'_>,
    ) -> Option<ToolAction> {
        let tool = self.needed(at, fields, &TOOLS, "a tool")?;
        if !is_tool_name(&tool) {
            let message = format!("`{}` is not the name of a tool", shortened(&tool));
            self.notes.fault(at, message, "write `server:tool`");
        }
        let arguments = fields.object(&ARGUMENTS, self.notes).unwrap_or_default();
        let arguments = self.map(arguments, at);
        // Other tools repeat in every task the settings that only code needs.
        fields.ignore(&["intent", "sandbox_config", "sandboxConfig"]);
        Some(ToolAction { tool, arguments })
    }

    pub(super) fn code(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<Code> {
        let allowed = code::allowed(at, self.options, self.notes);
        let source = self.needed(at, fields, &["code"], "`code`");
        let language = LanguageFields::take(fields, self.notes);
        let language = language.read(("typescript", at), self.options, self.notes);
        let context = fields.object(&["context"], self.notes).unwrap_or_default();
        let context = self.map(context, at);
        let intent = fields.text(&["intent"], self.notes);
        let (mut grants, mut limits) = self.bounds(fields);
        let mut has_files = None;
        if let Some(node) = fields.take(&["sandbox_config", "sandboxConfig"], self.notes) {
            let (more_grants, more_limits, files) = self.sandbox_config(node);
            has_files = files;
            (grants, limits) = (grants.and(&more_grants), limits.or(&more_limits));
        }
        let shape = fields.take(&["shape"], self.notes).and_then(|node| self.shape(node));
        // Before the first `?`: a field that is not taken is reported as unknown.
        let template = fields.flag(&["template"], self.notes).unwrap_or(false);
        let files = fields.flag(&["files"], self.notes).or(has_files).unwrap_or(false);
        let no_room = fields.flag(&["no_room"], self.notes).unwrap_or(has_files == Some(false));
        let (language, engine) = language?;
        let code = Code {
            language,
            engine,
            code: source?,
            template,
            shape: shape.unwrap_or_default(),
            context,
            intent,
            grants,
            limits: Box::new(limits),
            files,
            no_room,
        };
        allowed.then_some(code)
    }

    fn shape(&mut self, node: &FileNode) -> Option<ResultShape> {
        match super::text(node, self.notes)?.as_str() {
            "value" => Some(ResultShape::Value),
            "report" => Some(ResultShape::Report),
            "node" => Some(ResultShape::Node),
            _ => {
                expected(node, "`value`, `report` or `node`", self.notes);
                None
            }
        }
    }

    fn bounds(&mut self, fields: &mut FieldReader<'_>) -> (TaskGrants, LimitsRequest) {
        let grants = fields.take(&["grants"], self.notes).and_then(|node| {
            let mut fields = FieldReader::of(node, "`grants`", self.notes)?;
            let grants = code::grants(&mut fields, self.notes);
            fields.done(self.notes);
            Some(grants)
        });
        (grants.unwrap_or_default(), self.limits(fields))
    }

    fn limits(&mut self, fields: &mut FieldReader<'_>) -> LimitsRequest {
        let limits = fields.take(&["limits"], self.notes).and_then(|node| {
            let mut fields = FieldReader::of(node, "`limits`", self.notes)?;
            let limits = code::limits(&mut fields, self.notes);
            fields.done(self.notes);
            Some(limits)
        });
        limits.unwrap_or_default()
    }

    /// Reads `sandbox_config` of other DAG tools, and whether it allows files.
    fn sandbox_config(&mut self, node: &FileNode) -> (TaskGrants, LimitsRequest, Option<bool>) {
        let Some(mut fields) = FieldReader::of(node, "`sandbox_config`", self.notes) else {
            return Default::default();
        };
        let mut limits = code::limits(&mut fields, self.notes);
        let seconds =
            fields.number(&["timeout_seconds", "timeoutSeconds"], 1..=1_000_000, self.notes);
        let loose = fields.take(&["timeout"], self.notes);
        let loose = loose.and_then(|node| duration(node, self.notes));
        limits.timeout_ms = limits.timeout_ms.or(seconds.map(|s| s * 1_000)).or(loose);
        let grants = code::grants(&mut fields, self.notes);
        let files = code::filesystem(&mut fields, self.notes);
        fields.tolerate(
            &["permission_set", "permissionSet", "pii_protection", "cache"],
            "`grants` and policy decide what code may reach",
            self.notes,
        );
        fields.done(self.notes);
        (grants, limits, files)
    }

    /// Reads a capability, code stored by another tool: only its code can be run.
    fn capability(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<Action> {
        fields.ignore(&["tool"]);
        let id = fields.text(&["capability_id", "capabilityId", "capability"], self.notes);
        let arguments = fields.object(&ARGUMENTS, self.notes).unwrap_or_default();
        if !fields.has("code") {
            let name = id.map(|id| format!(" `{}`", shortened(&id))).unwrap_or_default();
            self.notes.fault(
                at,
                format!("the capability{name} is stored in another tool and cannot run here"),
                "write its code as `code`, or call a tool with `type: mcp_tool`",
            );
            return None;
        }
        self.notes.warn(at, "a capability with code runs as `code_execution`", "");
        let mut code = self.code(at, fields)?;
        for (key, value) in self.map(arguments, at) {
            code.context.entry(key).or_insert(value);
        }
        Some(Action::CodeExecution(code))
    }

    fn approval(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<Action> {
        let message = self.needed(at, fields, &["message", "prompt", "question"], "`message`")?;
        let by = fields.take(&["by"], self.notes).and_then(|node| asked(node, self.notes));
        let within = fields.number(&["decide_within_ms"], 1..=u64::MAX, self.notes);
        fields.ignore(&["tool", "arguments", "intent"]);
        Some(Action::Approval { message, by, decide_within_ms: within })
    }

    fn foreach(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<Foreach> {
        let items = fields.take(&["items", "over"], self.notes);
        let each = fields.take(&["do", "task", "each"], self.notes);
        let each = each.map(|node| self.task(node, Some("each")));
        let at_once = fields.number(
            &["at_once", "max_concurrency", "maxConcurrency", "concurrency"],
            1..=10_000,
            self.notes,
        );
        let fail_fast = fields.flag(&["fail_fast", "failFast"], self.notes).unwrap_or(true);
        fields.ignore(&["tool"]);
        let (Some(items), Some(each)) = (items, each) else {
            self.notes.fault(at, "a foreach needs `items` and `do`", "");
            return None;
        };
        let each = each?;
        if !each.depends_on.is_empty() {
            self.notes.fault(
                at,
                "the task inside a foreach cannot have `depends_on`",
                "put it on the foreach",
            );
        }
        Some(Foreach {
            items: self.values(items.json(), items.at),
            each: Box::new(each),
            at_once: at_once.and_then(|n| n.try_into().ok()),
            fail_fast,
        })
    }

    fn repeat(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<LoopAction> {
        let test = fields.take(&["while", "condition"], self.notes);
        let test = test.and_then(|node| condition(node, self.notes));
        let rounds = fields.number(
            &["max_rounds", "max_iterations", "maxIterations"],
            1..=100_000,
            self.notes,
        );
        let body = fields.list(&["body", "tasks", "steps"], self.notes);
        let body = body.map(|items| self.tasks(items)).unwrap_or_default();
        let goto = fields.list(&["goto"], self.notes).unwrap_or_default();
        let goto: Vec<Goto> = goto.iter().filter_map(|node| self.jump(node)).collect();
        let at_limit = fields.take(&["at_limit"], self.notes).and_then(|node| {
            match super::text(node, self.notes)?.as_str() {
                "fail" => Some(AtLimit::Fail),
                "end" => Some(AtLimit::End),
                _ => {
                    expected(node, "`fail` or `end`", self.notes);
                    None
                }
            }
        });
        if body.is_empty() {
            self.notes.fault(at, "a loop needs a `body` with tasks", "");
            return None;
        }
        for jump in goto.iter().filter(|jump| jump.to != "end") {
            if !body.iter().any(|task| task.id == jump.to) {
                let help = near(&jump.to, body.iter().map(|task| task.id.as_str()));
                let message = format!("`goto` names `{}`, which is not in the body", jump.to);
                self.notes.fault(at, message, help);
            }
        }
        let max_rounds = rounds.and_then(|n| n.try_into().ok()).unwrap_or(100);
        Some(LoopAction {
            condition: test,
            max_rounds,
            at_limit: at_limit.unwrap_or_default(),
            body,
            goto,
        })
    }

    fn jump(&mut self, node: &FileNode) -> Option<Goto> {
        let mut fields = FieldReader::of(node, "a jump", self.notes)?;
        let test = fields.take(&["if", "when"], self.notes);
        let test = test.and_then(|node| condition(node, self.notes));
        let to = self.needed(node.at, &mut fields, &["to"], "`to`");
        fields.done(self.notes);
        Some(Goto { condition: test, to: to? })
    }

    fn nested(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<Action> {
        let inputs = fields.object(&["inputs", "arguments", "args"], self.notes);
        let inputs = self.map(inputs.unwrap_or_default(), at);
        let Some(node) = fields.take(&["workflow", "dag"], self.notes) else {
            self.notes.fault(at, "a nested workflow needs `workflow`", "write its tasks there");
            return None;
        };
        if matches!(node.tree, FileTree::Text(_)) {
            let help = "write its tasks here; other files are not read";
            self.notes.fault(node.at, "a nested workflow must be written out, not named", help);
            return None;
        }
        self.dag(node).map(|dag| Action::Workflow { workflow: Box::new(dag), inputs })
    }

    fn wait(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<Wait> {
        let exact = fields.take(&["wait_ms", "duration_ms", "durationMs"], self.notes);
        let loose = fields.take(&["wait", "duration", "for"], self.notes);
        let until = fields.take(&["until_ms"], self.notes);
        fields.ignore(&["tool", "arguments"]);
        match (exact, loose, until) {
            (Some(node), None, None) => {
                Some(Wait::For { wait_ms: self.values(node.json(), node.at) })
            }
            (None, Some(node), None) => {
                duration(node, self.notes).map(|ms| Wait::For { wait_ms: ms.into() })
            }
            (None, None, Some(node)) => {
                Some(Wait::Until { until_ms: self.values(node.json(), node.at) })
            }
            _ => {
                let help = "write `wait: 30s`, `wait_ms` or `until_ms`";
                self.notes.fault(at, "a wait needs exactly one time", help);
                None
            }
        }
    }

    fn sandbox(&mut self, at: Position, fields: &mut FieldReader<'_>) -> Option<SandboxAction> {
        let allowed = code::allowed(at, self.options, self.notes);
        let action = self.needed(at, fields, &["do", "action"], "`do`")?;
        let sandbox_id = fields.take(&["sandbox_id"], self.notes).map(FileNode::json);
        let (grants, limits) = self.bounds(fields);
        let language = LanguageFields::take(fields, self.notes);
        let language = language.read(("python", at), self.options, self.notes);
        let code = fields.text(&["code"], self.notes);
        let sandbox = match (action.as_str(), sandbox_id, code) {
            ("create", None, None) => {
                let ((language, engine), limits) = (language?, limits.into());
                Some(SandboxAction::Create { language, engine, limits, grants })
            }
            ("execute", Some(sandbox_id), Some(code)) => {
                Some(SandboxAction::Execute { sandbox_id, code, limits: limits.into() })
            }
            ("destroy", Some(sandbox_id), None) => Some(SandboxAction::Destroy { sandbox_id }),
            ("list", None, None) => Some(SandboxAction::List),
            _ => None,
        };
        if sandbox.is_none() {
            let help = "write `do: create`, `do: list`, `do: execute` with `sandbox_id` and `code`, or \
                        `do: destroy` with `sandbox_id`";
            self.notes.fault(at, "the sandbox task does not say what to do", help);
        }
        sandbox.filter(|_| allowed)
    }

    fn needed(
        &mut self,
        at: Position,
        fields: &mut FieldReader<'_>,
        names: &[&'static str],
        what: &str,
    ) -> Option<String> {
        let node = fields.take(names, self.notes);
        if node.is_none() {
            self.notes.fault(at, format!("{what} is missing"), "");
        }
        node.and_then(|node| super::text(node, self.notes))
    }
}

/// The type of a task without `type`, by its fields.
fn guessed(fields: &FieldReader<'_>) -> Option<&'static str> {
    let pairs = [
        ("code", "code_execution"),
        ("tool", "mcp_tool"),
        ("toolId", "mcp_tool"),
        ("tool_id", "mcp_tool"),
        ("toolName", "mcp_tool"),
        ("tool_name", "mcp_tool"),
        ("message", "approval"),
        ("items", "foreach"),
        ("body", "loop"),
        ("workflow", "workflow"),
        ("wait", "wait"),
        ("wait_ms", "wait"),
        ("until_ms", "wait"),
        ("value", "pass"),
    ];
    pairs.into_iter().find(|(field, _)| fields.has(field)).map(|(_, kind)| kind)
}

/// Whether a text names a tool of a server, or is a template.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let split = [":", ".", "__"].into_iter().find_map(|between| name.split_once(between));
    split.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        && !name.contains(char::is_whitespace)
        && !expression::is_template(name)
}
