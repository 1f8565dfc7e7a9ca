//! The values that the templates of a task see.

use std::collections::BTreeMap;

use belljar_contract::{JsonMap, JsonValue, exact_json};

use super::parts::{Home, NodeEnd, NodeId, NodePhase, ScopeId, ScopeKind, TaskNode, TaskScope};
use super::{Machine, view};
use crate::effect::TaskFailure;
use crate::template::TemplateNames;

/// Looks names up for the templates of one task or scope.
pub(crate) struct NameLookup<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) scope: ScopeId,
    pub(crate) node: Option<&'a TaskNode>,
    pub(crate) result: Option<&'a JsonValue>,
    pub(crate) args: Option<&'a JsonValue>,
    /// A task that is assumed to have ended with this result.
    pub(crate) assume: Option<(NodeId, &'a JsonValue)>,
    /// The round that is about to begin.
    pub(crate) round: Option<u32>,
    /// Tasks of a loop that have not run yet; their results are null.
    pub(crate) blank: &'a [crate::dag::Task],
}

impl<'a> NameLookup<'a> {
    /// Names as seen from a scope.
    pub(crate) fn of_scope(machine: &'a Machine, scope: ScopeId) -> Self {
        Self {
            machine,
            scope,
            node: None,
            result: None,
            args: None,
            assume: None,
            round: None,
            blank: &[],
        }
    }

    /// Names as seen from a node.
    pub(crate) fn of(machine: &'a Machine, node: &'a TaskNode) -> Self {
        Self { node: Some(node), ..Self::of_scope(machine, node.scope) }
    }

    fn scopes(&self) -> impl Iterator<Item = &'a TaskScope> {
        let machine = self.machine;
        std::iter::successors(machine.scopes.get(&self.scope), move |scope| {
            if matches!(scope.kind, ScopeKind::Flow(_)) {
                return None;
            }
            machine.scopes.get(&machine.nodes.get(scope.node?)?.scope)
        })
    }

    fn home(&self) -> Option<&'a Home> {
        self.machine.home(self.scope)
    }

    /// The containers around, nearest first, and the node itself.
    fn around(&self) -> impl Iterator<Item = &'a TaskNode> {
        let machine = self.machine;
        let containers = self.scopes().filter_map(move |scope| match scope.kind {
            ScopeKind::Flow(_) => None,
            ScopeKind::Each(_) | ScopeKind::Round(_) | ScopeKind::Fallback => {
                machine.nodes.get(scope.node?)
            }
        });
        self.node.into_iter().chain(containers)
    }

    fn task(&self, id: &str) -> Option<&'a TaskNode> {
        let node = self.scopes().find_map(|scope| scope.names.get(id))?;
        self.machine.nodes.get(*node)
    }

    fn result_of(&self, node: &TaskNode) -> Option<JsonValue> {
        if let Some((id, value)) = self.assume
            && id == node.id
        {
            return Some(value.clone());
        }
        node.has_ended().then(|| node.result.clone())
    }

    fn ended(&self) -> BTreeMap<&'a String, &'a TaskNode> {
        let mut found = BTreeMap::new();
        for scope in self.scopes() {
            for (name, id) in &scope.names {
                let Some(node) = self.machine.nodes.get(*id) else { continue };
                let assumed = self.assume.is_some_and(|(assumed, _)| assumed == node.id);
                if node.has_ended() || assumed {
                    found.entry(name).or_insert(node);
                }
            }
        }
        found
    }

    fn account(&self, node: &TaskNode) -> Option<JsonValue> {
        Some(exact_json!({
            "result": self.result_of(node)?,
            "status": view::status(node),
            "error": node.failure.as_ref().map(failure_for_templates),
        }))
    }

    fn iteration(&self) -> Option<u32> {
        self.round.or_else(|| {
            self.scopes().find_map(|scope| match scope.kind {
                ScopeKind::Round(round) => Some(round),
                ScopeKind::Flow(_) | ScopeKind::Each(_) | ScopeKind::Fallback => None,
            })
        })
    }

    /// Results of what the node depends on.
    pub(crate) fn deps(&self) -> Option<JsonMap> {
        let node = self.node?;
        let def = self.machine.def(node.def)?;
        let found = def.depends_on.iter().filter_map(|id| {
            let value = self.result_of(self.task(id)?)?;
            Some((id.clone(), value))
        });
        Some(found.collect())
    }

    fn is_blank(&self, id: &str) -> bool {
        self.blank.iter().any(|task| task.id == id)
    }
}

/// A failure as a template sees it.
fn failure_for_templates(failure: &TaskFailure) -> JsonValue {
    exact_json!({"code": failure.code, "message": failure.message, "details": failure.details})
}

impl TemplateNames for NameLookup<'_> {
    fn lenient(&self) -> bool {
        self.home().is_some_and(|home| home.settings.lenient)
    }

    fn roots(&self) -> Vec<&'static str> {
        let all = ["state", "inputs", "results", "tasks", "deps", "item", "index", "loop", "error"];
        let mut roots: Vec<&'static str> =
            all.into_iter().filter(|root| self.whole(root).is_some()).collect();
        roots.extend(self.result.map(|_| "result"));
        roots.extend(self.args.map(|_| "args"));
        roots
    }

    fn whole(&self, root: &str) -> Option<JsonValue> {
        match root {
            "state" => Some(JsonValue::Object(self.home()?.state.clone())),
            "inputs" => Some(JsonValue::Object(self.home()?.inputs.clone())),
            "results" => {
                let blank = self.blank.iter().map(|task| (task.id.clone(), JsonValue::Null));
                let ended = self.ended().into_iter();
                let ended =
                    ended.filter_map(|(id, node)| Some((id.clone(), self.result_of(node)?)));
                Some(JsonValue::Object(blank.chain(ended).collect()))
            }
            "tasks" => {
                let ended = self.ended().into_iter();
                let ended = ended.filter_map(|(id, node)| Some((id.clone(), self.account(node)?)));
                Some(JsonValue::Object(ended.collect()))
            }
            "deps" => self.deps().map(JsonValue::Object),
            "item" => self.around().find_map(|node| Some(node.item.as_ref()?.1.clone())),
            "index" => self.around().find_map(|node| Some(exact_json!(node.item.as_ref()?.0))),
            "loop" => Some(exact_json!({"iteration": self.iteration()?})),
            "error" => {
                self.around().find_map(|node| node.failure.as_ref().map(failure_for_templates))
            }
            "result" => self.result.cloned(),
            "args" => self.args.cloned(),
            _ => None,
        }
    }

    fn part(&self, root: &str, key: &str) -> Option<JsonValue> {
        match root {
            "state" => self.home()?.state.get(key).cloned(),
            "inputs" => self.home()?.inputs.get(key).cloned(),
            "results" => match self.task(key) {
                Some(node) => self.result_of(node),
                None => self.is_blank(key).then_some(JsonValue::Null),
            },
            "tasks" => self.account(self.task(key)?),
            "result" => self.result?.get(key).cloned(),
            "args" => self.args?.get(key).cloned(),
            _ => None,
        }
    }
}

impl NodeEnd {
    /// Whether it spreads to what depends on nothing else.
    pub(crate) fn spreads(self) -> bool {
        self == Self::Unmet
    }
}

impl NodePhase {
    /// Whether the node is done with, for those that depend on it.
    pub(crate) fn end(self) -> Option<NodeEnd> {
        match self {
            Self::Ended(end) => Some(end),
            Self::Waiting
            | Self::Ready
            | Self::Queued
            | Self::Running
            | Self::Backoff
            | Self::Inside
            | Self::Deciding
            | Self::Sleeping
            | Self::InDoubt => None,
        }
    }
}
