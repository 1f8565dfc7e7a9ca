//! Facts about the tools that workflows name.
//!
//! Whether a call is repeatable must be known when its intent is written, so tools are looked up
//! before a workflow is driven. An unknown tool counts as not repeatable.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use belljar_tools::{Bridge, Glob, ResolveError, Tool, ToolGrants, ToolReach};
use belljar_workflow::{Dag, DagFaults, check};
use tokio::task::JoinSet;

use super::walk;

/// Facts about one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolFacts {
    /// The qualified name, `server__tool`.
    pub(super) name: String,
    /// Whether it changes nothing.
    pub(super) read_only: bool,
    /// Whether a repeated call does no harm.
    pub(super) repeatable: bool,
    /// Whether a call may have to wait for a person.
    pub(super) may_ask: bool,
}

/// Facts by the names that workflows use.
#[derive(Debug, Default)]
pub(super) struct ToolFactCache(Mutex<HashMap<String, ToolFacts>>);

/// For each name, whether it is a tool; if not, similar names.
pub(super) type LookupResults = BTreeMap<String, Result<(), Vec<String>>>;

impl ToolFactCache {
    pub(super) fn get(&self, name: &str) -> Option<ToolFacts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Looks up unknown names in parallel. If a server fails or is slow, its tools stay unknown:
    /// the call itself will report the error, and no other task has to wait.
    pub(super) async fn look_up(&self, bridge: &Bridge, names: &BTreeSet<String>) -> LookupResults {
        let mut found = LookupResults::new();
        let mut asked = JoinSet::new();
        for name in names.iter().cloned() {
            if self.get(&name).is_some() {
                found.insert(name, Ok(()));
                continue;
            }
            let bridge = bridge.clone();
            asked.spawn(async move { (look_up_one(&bridge, &name).await, name) });
        }
        while let Some(looked) = asked.join_next().await {
            match looked {
                Ok((LookupOutcome::Found(fact), name)) => {
                    let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    all.insert(name.clone(), fact);
                    found.insert(name, Ok(()));
                }
                Ok((LookupOutcome::Missing(near), name)) => {
                    found.insert(name, Err(near));
                }
                Ok((LookupOutcome::Unreachable, _)) | Err(_) => {}
            }
        }
        found
    }
}

/// Finds every fault of a workflow, including unknown tools if a bridge is given.
pub async fn check_workflow(dag: &Dag, bridge: Option<&Bridge>) -> Result<(), DagFaults> {
    let found = match bridge {
        Some(bridge) => ToolFactCache::default().look_up(bridge, &walk::tools(dag)).await,
        None => LookupResults::new(),
    };
    check_with(dag, &found)
}

/// Checks a workflow with the results of a lookup.
pub(super) fn check_with(dag: &Dag, found: &LookupResults) -> Result<(), DagFaults> {
    let check_tool = |name: &str| match found.get(name) {
        Some(Err(near)) => Err(near.clone()),
        Some(Ok(())) | None => Ok(()),
    };
    check(dag, Some(&check_tool))
}

enum LookupOutcome {
    Found(ToolFacts),
    Missing(Vec<String>),
    Unreachable,
}

async fn look_up_one(bridge: &Bridge, name: &str) -> LookupOutcome {
    let servers = bridge.servers();
    let (server, tool) = parts(&servers, name);
    let catalogue = match server {
        Some(server) => match bridge.catalogue_soon(server).await {
            Ok(catalogue) => catalogue,
            Err(_) => return LookupOutcome::Unreachable,
        },
        None => {
            let (catalogue, failures) = bridge.catalogue().await;
            if !failures.is_empty() && catalogue.resolve(None, tool).is_err() {
                return LookupOutcome::Unreachable;
            }
            catalogue
        }
    };
    match catalogue.resolve(server, tool) {
        Ok(tool) => LookupOutcome::Found(fact(bridge, tool).await),
        Err(ResolveError::UnknownServer { servers, .. }) => LookupOutcome::Missing(servers),
        Err(ResolveError::UnknownTool { nearest, .. }) => {
            let whole = |near: String| match server {
                Some(server) => format!("{server}:{near}"),
                None => near,
            };
            LookupOutcome::Missing(nearest.into_iter().map(whole).collect())
        }
        Err(ResolveError::Ambiguous { candidates, .. }) => LookupOutcome::Missing(candidates),
    }
}

async fn fact(bridge: &Bridge, tool: &Tool) -> ToolFacts {
    let name = tool.qualified_name();
    let read_only = bridge.reach(tool) == ToolReach::ReadOnly;
    ToolFacts {
        read_only,
        repeatable: read_only || bridge.is_repeatable(tool),
        may_ask: bridge.may_ask(&only_tool(&name)).await,
        name,
    }
}

/// Grants one tool, without skipping any approval.
pub(super) fn only_tool(name: &str) -> ToolGrants {
    ToolGrants { only: Some(vec![Glob::new(name)]), given: Vec::new() }
}

/// A tool as `server__tool`, in whatever form a workflow writes it.
pub(super) fn qualified(servers: &[String], name: &str) -> String {
    match parts(servers, name) {
        (Some(server), tool) => format!("{server}__{tool}"),
        (None, tool) => tool.to_owned(),
    }
}

/// Splits a name into a configured server and a tool.
fn parts<'n>(servers: &[String], name: &'n str) -> (Option<&'n str>, &'n str) {
    for between in [":", "__", ".", "/"] {
        for (at, _) in name.match_indices(between) {
            let (Some(server), Some(tool)) = (name.get(..at), name.get(at + between.len()..))
            else {
                continue;
            };
            if !tool.is_empty() && servers.iter().any(|known| known == server) {
                return (Some(server), tool);
            }
        }
    }
    (None, name)
}

#[cfg(test)]
mod tests {
    use super::qualified;

    #[test]
    fn f8_a_tool_is_named_in_the_ways_people_write_it() {
        let servers = ["fs".to_owned(), "my.files".to_owned()];
        for (written, meant) in [
            ("fs:read", "fs__read"),
            ("fs.read", "fs__read"),
            ("fs__read", "fs__read"),
            ("fs:read:all", "fs__read:all"),
            ("my.files.read", "my.files__read"),
            ("other:read", "other:read"),
            ("read", "read"),
        ] {
            assert_eq!(qualified(&servers, written), meant, "{written}");
        }
    }
}
