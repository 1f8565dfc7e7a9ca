//! The catalogue: an immutable snapshot of all tools, and how names in guest code are resolved in it.
//!
//! Calls always use the original name. The exact spelling wins; only when no tool has it are case and
//! separators ignored, and then exactly one tool must match. A name that matches several is an error that
//! lists them: the order in which servers or tools were found never decides.

mod error;
mod identifier;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use belljar_contract::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use error::ResolveError;
pub(crate) use identifier::is_python_keyword;
pub use identifier::{Style, identifier};

use crate::{
    Tool,
    spelling::{fold, nearest},
};

/// Longer names have to be spelt exactly.
const MAX_FOLDED: usize = 256;
/// Separators between server and tool, besides `__`.
const SEPARATORS: [&str; 4] = ["__", ":", ".", "/"];

/// All tools of all servers at one moment. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Catalogue {
    inner: Arc<CatalogueIndex>,
}

#[derive(Debug)]
struct CatalogueIndex {
    /// By server, then name.
    tools: Vec<Tool>,
    version: String,
    servers: BTreeMap<String, ServerIndex>,
    /// `server__tool`; two tools can share it when a server's name holds `__`.
    qualified: HashMap<String, Vec<usize>>,
    bare: HashMap<String, Vec<usize>>,
    bare_folded: HashMap<String, Vec<usize>>,
}

#[derive(Debug, Default)]
struct ServerIndex {
    tools: Vec<usize>,
    exact: HashMap<String, usize>,
    folded: HashMap<String, Vec<usize>>,
}

impl Catalogue {
    /// A snapshot of `tools`. Of two tools with the same server and name one is used, whichever the
    /// order.
    pub fn new(tools: Vec<Tool>) -> Self {
        let mut keyed: Vec<(String, Tool)> =
            tools.into_iter().map(|tool| (canonical(&tool), tool)).collect();
        keyed.sort_by(|(left_text, left), (right_text, right)| {
            (&left.server, &left.name, left_text).cmp(&(&right.server, &right.name, right_text))
        });
        keyed.dedup_by(|(_, later), (_, kept)| {
            later.server == kept.server && later.name == kept.name
        });
        let mut hash = Sha256::new();
        for (text, _) in &keyed {
            hash.update(text.len().to_le_bytes());
            hash.update(text.as_bytes());
        }
        let version = hex::encode(&hash.finalize());
        let tools: Vec<Tool> = keyed.into_iter().map(|(_, tool)| tool).collect();
        Self { inner: Arc::new(CatalogueIndex::new(tools, version)) }
    }

    /// A hash of all tools: it changes when anything in any of them does.
    pub fn version(&self) -> &str {
        &self.inner.version
    }

    /// All tools, by server and name.
    pub fn tools(&self) -> &[Tool] {
        &self.inner.tools
    }

    /// The names of the servers that have tools, sorted.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.inner.servers.keys().map(String::as_str)
    }

    /// The tools of the server with exactly this name, by name.
    pub fn tools_of(&self, server: &str) -> impl Iterator<Item = &Tool> {
        let indices = self.inner.servers.get(server).map(|known| known.tools.as_slice());
        indices.unwrap_or_default().iter().filter_map(|at| self.inner.tools.get(*at))
    }

    /// The identifier of a tool in the typed wrapper; `None` if it has to be called with `tools.call`,
    /// because its name makes no identifier or another tool of the server has the same.
    pub fn alias(&self, tool: &Tool, style: Style) -> Option<String> {
        let alias = identifier(&tool.name, style)?;
        let server = self.inner.servers.get(&tool.server)?;
        // An identifier keeps all letters and digits, so only names that fold alike can collide.
        (server.folded.get(&fold(&tool.name))?.len() == 1).then_some(alias)
    }

    /// The identifier of a server in the typed wrapper; `None` if its name makes no identifier or
    /// another server has the same.
    pub fn server_alias(&self, server: &str, style: Style) -> Option<String> {
        let alias = identifier(server, style)?;
        let folded = fold(server);
        (self.servers().filter(|other| fold(other) == folded).count() == 1).then_some(alias)
    }

    /// Resolves a name in guest code: a tool of the given server, or, without one, a name that includes
    /// the server (`server__tool`, `server:tool`, `server.tool`) or that only one server has.
    pub fn resolve(&self, server: Option<&str>, tool: &str) -> Result<&Tool, ResolveError> {
        let at = match server {
            Some(server) => self.inner.of_server(server, tool),
            None => self.inner.unqualified(tool),
        }?;
        // Indices are of this very snapshot.
        self.inner.tools.get(at).ok_or_else(|| self.inner.unknown(server, tool))
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl CatalogueIndex {
    fn new(tools: Vec<Tool>, version: String) -> Self {
        let mut servers: BTreeMap<String, ServerIndex> = BTreeMap::new();
        let mut qualified: HashMap<String, Vec<usize>> = HashMap::new();
        let mut bare: HashMap<String, Vec<usize>> = HashMap::new();
        let mut bare_folded: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, tool) in tools.iter().enumerate() {
            let folded = fold(&tool.name);
            let server = servers.entry(tool.server.clone()).or_default();
            server.tools.push(at);
            server.exact.insert(tool.name.clone(), at);
            // A name without letters and digits folds to nothing, which is like no other name.
            if !folded.is_empty() {
                server.folded.entry(folded.clone()).or_default().push(at);
                bare_folded.entry(folded).or_default().push(at);
            }
            qualified.entry(tool.qualified_name()).or_default().push(at);
            bare.entry(tool.name.clone()).or_default().push(at);
        }
        Self { tools, version, servers, qualified, bare, bare_folded }
    }

    fn of_server(&self, server: &str, tool: &str) -> Result<usize, ResolveError> {
        let known = match self.servers.get(server) {
            Some(known) => known,
            None => self.folded_server(server, tool)?,
        };
        if let Some(at) = known.exact.get(tool) {
            return Ok(*at);
        }
        let found = known.folded.get(&foldable(tool)).map(Vec::as_slice).unwrap_or_default();
        self.only(tool, found.iter().copied())
            .unwrap_or_else(|| Err(self.unknown(Some(server), tool)))
    }

    fn folded_server(&self, server: &str, tool: &str) -> Result<&ServerIndex, ResolveError> {
        let mut found = self.servers_like(server);
        match (found.pop(), found.is_empty()) {
            (Some((_, known)), true) => Ok(known),
            (Some((last, _)), false) => {
                let mut candidates: Vec<String> =
                    found.into_iter().map(|(name, _)| name.clone()).collect();
                candidates.push(last.clone());
                Err(ResolveError::Ambiguous { name: server.to_owned(), candidates })
            }
            (None, _) => Err(self.unknown(Some(server), tool)),
        }
    }

    fn servers_like(&self, server: &str) -> Vec<(&String, &ServerIndex)> {
        let folded = foldable(server);
        let like = self.servers.iter().filter(|(name, _)| fold(name) == folded);
        if folded.is_empty() { Vec::new() } else { like.collect() }
    }

    fn unqualified(&self, name: &str) -> Result<usize, ResolveError> {
        let at = |found: Option<&Vec<usize>>| found.cloned().unwrap_or_default();
        let exact = self.only(name, at(self.qualified.get(name)));
        let spelt = || {
            let parts = splits(name).filter_map(|(server, tool)| {
                self.servers.get(server).and_then(|known| known.exact.get(tool)).copied()
            });
            self.only(name, parts.chain(at(self.bare.get(name))))
        };
        let folded = || {
            let parts = splits(name).flat_map(|(server, tool)| {
                let folded = foldable(tool);
                self.servers_like(server)
                    .into_iter()
                    .flat_map(move |(_, known)| at(known.folded.get(&folded)))
                    .collect::<Vec<_>>()
            });
            let bare = at(self.bare_folded.get(&foldable(name)));
            if name.len() > MAX_FOLDED { None } else { self.only(name, parts.chain(bare)) }
        };
        exact.or_else(spelt).or_else(folded).unwrap_or_else(|| Err(self.unknown(None, name)))
    }

    /// The only tool found, an error if there are several, or `None`.
    fn only(
        &self,
        name: &str,
        found: impl IntoIterator<Item = usize>,
    ) -> Option<Result<usize, ResolveError>> {
        let found: BTreeSet<usize> = found.into_iter().collect();
        let first = *found.first()?;
        if found.len() == 1 {
            return Some(Ok(first));
        }
        let candidates =
            found.iter().filter_map(|at| self.tools.get(*at)).map(Tool::qualified_name).collect();
        Some(Err(ResolveError::Ambiguous { name: name.to_owned(), candidates }))
    }

    fn unknown(&self, server: Option<&str>, tool: &str) -> ResolveError {
        let servers: Vec<String> = self.servers.keys().cloned().collect();
        let known = server.and_then(|server| {
            self.servers.get_key_value(server).or_else(|| self.servers_like(server).pop())
        });
        match (server, known) {
            (Some(server), None) => {
                let near = nearest(server, servers.iter().map(String::as_str), 3);
                ResolveError::UnknownServer { server: server.to_owned(), nearest: near, servers }
            }
            (Some(_), Some((server, known))) => {
                let names = known.exact.keys().map(String::as_str);
                let nearest = nearest(tool, names, 3);
                ResolveError::UnknownTool {
                    name: tool.to_owned(),
                    server: Some(server.clone()),
                    nearest,
                    servers,
                }
            }
            (None, _) => ResolveError::UnknownTool {
                name: tool.to_owned(),
                server: None,
                nearest: self.nearest_of_all(tool),
                servers,
            },
        }
    }

    /// Qualified names like a name that may or may not say the server.
    fn nearest_of_all(&self, name: &str) -> Vec<String> {
        let qualified: Vec<String> = self.tools.iter().map(Tool::qualified_name).collect();
        let near = nearest(name, qualified.iter().map(String::as_str), 3);
        if !near.is_empty() {
            return near;
        }
        let bare = splits(name).last().map_or(name, |(_, tool)| tool);
        let near = nearest(bare, self.bare.keys().map(String::as_str), 3);
        let owners = |bare: &String| self.bare.get(bare).cloned().unwrap_or_default();
        let found = near.iter().flat_map(owners).filter_map(|at| self.tools.get(at));
        found.map(Tool::qualified_name).take(3).collect()
    }
}

/// The folded name; empty, which matches nothing, if it is too long.
fn foldable(name: &str) -> String {
    if name.len() > MAX_FOLDED { String::new() } else { fold(name) }
}

/// Every way to read a name as server and tool.
fn splits(name: &str) -> impl Iterator<Item = (&str, &str)> {
    SEPARATORS.iter().flat_map(move |separator| {
        name.match_indices(separator)
            .filter_map(move |(at, _)| Some((name.get(..at)?, name.get(at + separator.len()..)?)))
    })
}

/// The tool as text that does not depend on the order of keys.
fn canonical(tool: &Tool) -> String {
    let value = serde_json::to_value(tool).map(sorted).unwrap_or_default();
    value.to_string()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests;
