//! What is known of the tools that workflows name.
//!
//! Whether a call may be repeated has to be said at once, when its intent is written; so tools are
//! looked up before a workflow is driven. Of a tool nobody has looked up, the worst is assumed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use belljar_flow::{Dag, Faults, check};
use belljar_tools::{Bridge, Glob, ResolveError, Tool, ToolGrants, ToolReach};
use tokio::task::JoinSet;

use super::walk;

/// What is known of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    /// As `server__tool`.
    pub(super) name: String,
    /// It changes nothing.
    pub(super) read_only: bool,
    /// Calling it twice does no harm.
    pub(super) repeatable: bool,
    /// A call may have to wait for a person.
    pub(super) may_ask: bool,
}

/// Facts, by the names that workflows use.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<String, Fact>>);

/// Which names mean tools; for those that do not, names that are near.
pub(super) type Found = BTreeMap<String, Result<(), Vec<String>>>;

impl Known {
    pub(super) fn get(&self, name: &str) -> Option<Fact> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Looks up names that are not known yet, all at once. A server that cannot be asked, or does not
    /// answer soon, leaves its tools unknown: the call itself will say what is wrong with it, and no
    /// other task has to wait for that.
    pub(super) async fn learn(&self, bridge: &Bridge, names: &BTreeSet<String>) -> Found {
        let mut found = Found::new();
        let mut asked = JoinSet::new();
        for name in names.iter().cloned() {
            if self.get(&name).is_some() {
                found.insert(name, Ok(()));
                continue;
            }
            let bridge = bridge.clone();
            asked.spawn(async move { (look(&bridge, &name).await, name) });
        }
        while let Some(looked) = asked.join_next().await {
            match looked {
                Ok((Looked::Found(fact), name)) => {
                    let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    all.insert(name.clone(), fact);
                    found.insert(name, Ok(()));
                }
                Ok((Looked::Missing(near), name)) => {
                    found.insert(name, Err(near));
                }
                Ok((Looked::Unreachable, _)) | Err(_) => {}
            }
        }
        found
    }
}

/// Finds everything that is wrong with a workflow, with the tools of a project if they are given.
pub async fn check_workflow(dag: &Dag, bridge: Option<&Bridge>) -> Result<(), Faults> {
    let found = match bridge {
        Some(bridge) => Known::default().learn(bridge, &walk::tools(dag)).await,
        None => Found::new(),
    };
    check_with(dag, &found)
}

/// The same, with what is known of its tools.
pub(super) fn check_with(dag: &Dag, found: &Found) -> Result<(), Faults> {
    let known = |name: &str| match found.get(name) {
        Some(Err(near)) => Err(near.clone()),
        Some(Ok(())) | None => Ok(()),
    };
    check(dag, Some(&known))
}

enum Looked {
    Found(Fact),
    Missing(Vec<String>),
    Unreachable,
}

async fn look(bridge: &Bridge, name: &str) -> Looked {
    let servers = bridge.servers();
    let (server, tool) = parts(&servers, name);
    let catalogue = match server {
        Some(server) => match bridge.catalogue_soon(server).await {
            Ok(catalogue) => catalogue,
            Err(_) => return Looked::Unreachable,
        },
        None => {
            let (catalogue, failures) = bridge.catalogue().await;
            if !failures.is_empty() && catalogue.resolve(None, tool).is_err() {
                return Looked::Unreachable;
            }
            catalogue
        }
    };
    match catalogue.resolve(server, tool) {
        Ok(tool) => Looked::Found(fact(bridge, tool).await),
        Err(ResolveError::UnknownServer { servers, .. }) => Looked::Missing(servers),
        Err(ResolveError::UnknownTool { nearest, .. }) => {
            let whole = |near: String| match server {
                Some(server) => format!("{server}:{near}"),
                None => near,
            };
            Looked::Missing(nearest.into_iter().map(whole).collect())
        }
        Err(ResolveError::Ambiguous { candidates, .. }) => Looked::Missing(candidates),
    }
}

async fn fact(bridge: &Bridge, tool: &Tool) -> Fact {
    let name = tool.qualified_name();
    let read_only = bridge.reach(tool) == ToolReach::ReadOnly;
    Fact {
        read_only,
        repeatable: read_only || bridge.is_repeatable(tool),
        may_ask: bridge.may_ask(&only(&name)).await,
        name,
    }
}

/// This tool and no other, and nothing that policy would ask about without asking.
pub(super) fn only(name: &str) -> ToolGrants {
    ToolGrants { only: Some(vec![Glob::new(name)]), given: Vec::new() }
}

/// A tool as `server__tool`, however a workflow writes it.
pub(super) fn qualified(servers: &[String], name: &str) -> String {
    match parts(servers, name) {
        (Some(server), tool) => format!("{server}__{tool}"),
        (None, tool) => tool.to_owned(),
    }
}

/// The server that is meant, if it is one there is, and the tool.
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
