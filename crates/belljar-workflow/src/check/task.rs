//! Checks of a single task.

use std::rc::Rc;

use belljar_contract::JsonMap;

use super::names::VisibleNames;
use super::{AT_ONCE, Checker, bad_id};
use crate::dag::{
    Action, Code, Compensation, Foreach, LoopAction, OnError, Retry, SandboxAction, Task,
    ToolAction, Wait,
};
use crate::template::near;

impl Checker<'_> {
    pub(super) fn task(&mut self, task: &Task, sight: &VisibleNames<'_>, depth: usize) {
        if let Some(when) = &task.when {
            self.condition(when, sight, "when");
        }
        if task.timeout_ms == Some(0) {
            self.fault(sight.path, "timeout_ms", "must be greater than 0", Vec::new());
        }
        self.action(task, sight, depth);
        self.retry_undo_and_speculation(task, sight);
        let after = VisibleNames { more: &["result"], ..sight.clone() };
        for (part, template) in &task.output {
            self.templates(template, &after, &format!("output.{part}"));
        }
        if let OnError::Fallback(fallback) = &task.on_error {
            self.inner(fallback, &VisibleNames { error: true, ..sight.clone() }, "fallback", depth);
        }
    }

    fn action(&mut self, task: &Task, sight: &VisibleNames<'_>, depth: usize) {
        match &task.action {
            Action::McpTool(call) => self.tool(call, sight, ""),
            Action::CodeExecution(code) => self.code(code, sight, ""),
            Action::Sandbox(action) => self.sandbox(action, sight),
            Action::Approval { message, decide_within_ms, .. } => {
                self.text(message, sight, "message");
                if *decide_within_ms == Some(0) {
                    self.fault(
                        sight.path,
                        "decide_within_ms",
                        "must be greater than 0",
                        Vec::new(),
                    );
                }
            }
            Action::Foreach(foreach) => self.foreach(foreach, sight, depth),
            Action::Loop(rounds) => self.rounds(rounds, sight, depth),
            Action::Workflow { workflow, inputs } => {
                self.map(inputs, sight, "inputs");
                if depth < super::DEPTH {
                    self.workflow(workflow, sight.path, depth + 1);
                } else {
                    self.list(&workflow.tasks, sight, depth + 1);
                }
            }
            Action::Wait(Wait::For { wait_ms: time } | Wait::Until { until_ms: time }) => {
                if !time.is_number() && !time.is_string() {
                    self.fault(sight.path, "wait", "not a number of milliseconds", Vec::new());
                }
                self.templates(time, sight, "wait");
            }
            Action::Pass { value } => self.templates(value, sight, "value"),
        }
    }

    fn tool(&mut self, call: &ToolAction, sight: &VisibleNames<'_>, place: &str) {
        if call.tool.trim().is_empty() {
            self.fault(sight.path, &format!("{place}tool"), "the tool is missing", Vec::new());
        } else if let Some(Err(near)) = self.tools.map(|known| known(&call.tool)) {
            let what = format!("there is no tool {}", call.tool);
            self.fault(sight.path, &format!("{place}tool"), what, near);
        }
        self.map(&call.arguments, sight, &format!("{place}arguments"));
    }

    fn code(&mut self, code: &Code, sight: &VisibleNames<'_>, place: &str) {
        if code.code.trim().is_empty() {
            self.fault(sight.path, &format!("{place}code"), "the code is missing", Vec::new());
        }
        if code.template {
            self.text(&code.code, sight, &format!("{place}code"));
        }
        self.map(&code.context, sight, &format!("{place}context"));
    }

    fn map(&mut self, map: &JsonMap, sight: &VisibleNames<'_>, part: &str) {
        for (key, value) in map {
            self.templates(value, sight, &format!("{part}.{key}"));
        }
    }

    fn sandbox(&mut self, action: &SandboxAction, sight: &VisibleNames<'_>) {
        match action {
            SandboxAction::Create { .. } | SandboxAction::List => {}
            SandboxAction::Execute { sandbox_id, code, .. } => {
                self.templates(sandbox_id, sight, "sandbox_id");
                self.text(code, sight, "code");
            }
            SandboxAction::Destroy { sandbox_id } => {
                self.templates(sandbox_id, sight, "sandbox_id")
            }
        }
    }

    fn foreach(&mut self, foreach: &Foreach, sight: &VisibleNames<'_>, depth: usize) {
        if !foreach.items.is_string() && !foreach.items.is_array() {
            self.fault(sight.path, "items", "neither a list nor a template", Vec::new());
        }
        self.templates(&foreach.items, sight, "items");
        if foreach.at_once.is_some_and(|bound| !(1..=AT_ONCE).contains(&bound)) {
            let what = format!("must be between 1 and {AT_ONCE}");
            self.fault(sight.path, "at_once", what, Vec::new());
        }
        self.inner(&foreach.each, &VisibleNames { item: true, ..sight.clone() }, "do", depth);
    }

    /// Checks a task that is alone inside another.
    fn inner(&mut self, task: &Task, sight: &VisibleNames<'_>, part: &str, depth: usize) {
        self.seen += 1;
        if depth >= super::DEPTH {
            let what = format!("more than {} containers deep", super::DEPTH);
            return self.fault(sight.path, part, what, Vec::new());
        }
        if !task.depends_on.is_empty() {
            let what = "a task inside another cannot have dependencies";
            self.fault(sight.path, &format!("{part}.depends_on"), what, Vec::new());
        }
        if !task.id.is_empty()
            && let Some(what) = bad_id(&task.id)
        {
            self.fault(sight.path, &format!("{part}.id"), what, Vec::new());
        }
        let path = format!("{}/{part}", sight.path);
        self.task(task, &VisibleNames { path: &path, ..sight.clone() }, depth + 1);
    }

    fn rounds(&mut self, rounds: &LoopAction, sight: &VisibleNames<'_>, depth: usize) {
        if rounds.body.is_empty() {
            self.fault(sight.path, "body", "the body has no tasks", Vec::new());
        }
        if !(1..=100_000).contains(&rounds.max_rounds) {
            self.fault(sight.path, "max_rounds", "must be between 1 and 100000", Vec::new());
        }
        let mut inside =
            VisibleNames { round: true, results: sight.all(), order: None, ..sight.clone() };
        self.list(&rounds.body, &inside, depth + 1);
        let ids: Vec<String> = rounds.body.iter().map(|task| task.id.clone()).collect();
        let body = rounds.body.iter().map(|task| task.id.as_str());
        inside.results = Rc::new(inside.results.iter().copied().chain(body).collect());
        if let Some(condition) = &rounds.condition {
            self.condition(condition, &inside, "while");
        }
        for goto in &rounds.goto {
            if let Some(condition) = &goto.condition {
                self.condition(condition, &inside, "goto.if");
            }
            if goto.to != "end" && !ids.contains(&goto.to) {
                let what = format!("there is no task {} in the loop", goto.to);
                self.fault(sight.path, "goto.to", what, near(&goto.to, &ids));
            }
        }
    }

    /// Checks `retry`, `compensate` and `speculate`.
    fn retry_undo_and_speculation(&mut self, task: &Task, sight: &VisibleNames<'_>) {
        let performs = matches!(
            task.action,
            Action::McpTool(_) | Action::CodeExecution(_) | Action::Sandbox(_)
        );
        if let Some(retry) = &task.retry {
            self.retry(retry, performs, sight);
        }
        if task.speculate && !matches!(task.action, Action::McpTool(_) | Action::CodeExecution(_)) {
            self.fault(
                sight.path,
                "speculate",
                "only tool and code tasks can run ahead of a decision",
                Vec::new(),
            );
        }
        let Some(compensate) = &task.compensate else { return };
        if !performs {
            let what = "only tool, code and sandbox tasks can be undone";
            self.fault(sight.path, "compensate", what, Vec::new());
        }
        let after = VisibleNames { more: &["result", "args"], ..sight.clone() };
        match compensate {
            Compensation::Tool(call) => self.tool(call, &after, "compensate."),
            Compensation::Code(code) => self.code(code, &after, "compensate."),
        }
    }

    fn retry(&mut self, retry: &Retry, performs: bool, sight: &VisibleNames<'_>) {
        if !performs {
            let what = "only tool, code and sandbox tasks can be retried";
            self.fault(sight.path, "retry", what, Vec::new());
        }
        if !(1..=1000).contains(&retry.attempts) {
            self.fault(sight.path, "retry.attempts", "must be between 1 and 1000", Vec::new());
        }
        if !(retry.backoff.factor.is_finite() && retry.backoff.factor >= 1.0) {
            self.fault(sight.path, "retry.backoff.factor", "must be at least 1", Vec::new());
        }
    }
}
