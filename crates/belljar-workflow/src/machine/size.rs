//! The size of a workflow. A workflow that grows too large fails.

use belljar_contract::{JsonMap, JsonValue};

use super::Machine;
use super::parts::{ScopeKind, SideEffectKind, TaskNode, TaskScope};
use crate::bounds::{GROWTH_BYTES, INSTANCES, STATE_BYTES, STEPS, bytes_of};
use crate::effect::{TaskFailure, TaskWork};

/// About what a node takes besides its values.
const NODE_BYTES: usize = 100;

impl Machine {
    /// Counts bytes added to the state.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.grown = self.grown.saturating_add(bytes);
    }

    /// Why the workflow exceeds its limits, after so many steps of one input.
    pub(super) fn beyond_bounds(&mut self, steps: usize) -> Option<TaskFailure> {
        if steps > STEPS {
            return Some(too_large(format!("more than {STEPS} tasks began because of one input")));
        }
        if self.nodes.len() > INSTANCES || self.defs.len() > INSTANCES {
            return Some(too_large(format!(
                "the workflow has more than {INSTANCES} task instances"
            )));
        }
        if self.grown < GROWTH_BYTES {
            return None;
        }
        self.grown = 0;
        let bytes = self.bytes();
        (bytes > STATE_BYTES).then(|| {
            too_large(format!(
                "the values of the workflow have {bytes} bytes; at most {STATE_BYTES} are allowed"
            ))
        })
    }

    /// Bytes of all values of the workflow.
    fn bytes(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(bytes_of_node).sum();
        let scopes: usize = self.scopes.values().map(bytes_of_scope).sum();
        let held: usize = self.decisions.values().map(|pending| bytes_of(&pending.held)).sum();
        let traces = self.traces.iter().map(|trace| match &trace.kind {
            SideEffectKind::Undo(work) => NODE_BYTES + bytes_of_work(work),
            SideEffectKind::Broken(failure) => NODE_BYTES + bytes_of_failure(Some(failure)),
            SideEffectKind::Doubt(failure) => NODE_BYTES + bytes_of_failure(failure.as_ref()),
            SideEffectKind::Lasting | SideEffectKind::Elsewhere => NODE_BYTES,
        });
        nodes + scopes + held + traces.sum::<usize>() + self.files.bytes()
    }
}

fn too_large(message: String) -> TaskFailure {
    TaskFailure { lasting: true, ..TaskFailure::new("workflow.too_large", message) }
}

fn bytes_of_node(node: &TaskNode) -> usize {
    let item = node.item.as_ref().map_or(0, |(_, item)| bytes_of(item));
    let work = node.work.as_ref().map_or(0, bytes_of_work);
    let ahead = node.ahead.as_ref().map_or(0, |ahead| bytes_of_work(&ahead.work));
    let failure = bytes_of_failure(node.failure.as_ref());
    NODE_BYTES + node.name.len() + bytes_of(&node.result) + item + work + ahead + failure
}

fn bytes_of_scope(scope: &TaskScope) -> usize {
    let all = |values: &[JsonValue]| values.iter().map(bytes_of).sum::<usize>();
    match &scope.kind {
        ScopeKind::Flow(home) => {
            let values = home.state.iter().chain(&home.inputs);
            values.map(|(key, value)| key.len() + bytes_of(value)).sum()
        }
        ScopeKind::Each(each) => {
            let failures = each.failures.iter();
            let failures = failures.map(|(_, failure)| bytes_of_failure(Some(failure)));
            all(&each.items) + all(&each.results) + failures.sum::<usize>()
        }
        ScopeKind::Round(_) | ScopeKind::Fallback => 0,
    }
}

/// Bytes of one task's work.
pub(super) fn bytes_of_work(work: &TaskWork) -> usize {
    let map = |map: &JsonMap| -> usize {
        map.iter().map(|(key, value)| key.len() + bytes_of(value)).sum()
    };
    match work {
        TaskWork::McpTool(call) => map(&call.arguments),
        TaskWork::CodeExecution(code) => map(&code.context) + code.code.len(),
        TaskWork::Sandbox { action } => match action {
            crate::dag::SandboxAction::Execute { code, .. } => code.len(),
            crate::dag::SandboxAction::Create { .. }
            | crate::dag::SandboxAction::Destroy { .. }
            | crate::dag::SandboxAction::List => 0,
        },
        TaskWork::RestoreSandbox { .. } => 0,
    }
}

fn bytes_of_failure(failure: Option<&TaskFailure>) -> usize {
    failure
        .map_or(0, |failure| failure.message.len() + failure.details.as_ref().map_or(0, bytes_of))
}
