//! Searching the current catalogue for tools by intent.
//!
//! [`Finder`] keeps one index in step with the catalogue: only tools that changed are read again, and the
//! index is cached in a file beside the cached lists of tools. It holds nothing but what the servers say;
//! a damaged or old file is built again.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use belljar_contract::RunId;
use belljar_search::{Document, Index, Key, Parameter, Query, SearchHit, UsageHistory};
use belljar_store::{AuditFilter, Store};
use serde_json::Value;

use crate::{Catalogue, Tool, ToolGrants};

/// How many calls of the audit are read to learn which tools are used together.
const MOST_CALLS: u32 = 5_000;
/// The audit is read again after this many milliseconds.
const LEARN_EVERY_MS: i64 = 60_000;
/// The outcome of a successful call in the audit.
const WENT_WELL: &str = "ok";

/// One result of a search, with the reasons for its rank.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The tool that was found.
    pub tool: Tool,
    /// Higher is better; only to be compared within one search.
    pub score: f64,
    /// How well its words fit, from 0 to 1.
    pub words: f64,
    /// How well its meaning fits, from 0 to 1.
    pub meaning: f64,
    /// The words of the intent that were found in it, best first.
    pub why: Vec<String>,
}

/// A search for tools.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    /// The wanted ability of the tool, in natural language.
    pub intent: String,
    /// How many results are wanted.
    pub k: usize,
    /// A guess what the server is about.
    pub server_hint: Option<String>,
    /// Only tools that these grants allow.
    pub grants: ToolGrants,
}

/// Finds tools. Cheap to clone; clones share the index.
#[derive(Debug, Clone, Default)]
pub struct Finder {
    shared: Arc<Mutex<FinderState>>,
    /// Where the index is cached.
    file: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct FinderState {
    index: Index,
    /// The version of the catalogue in the index.
    version: Option<String>,
    usage: UsageHistory,
    learned_ms: Option<i64>,
}

impl ToolQuery {
    /// The `k` tools that fit an intent best, whatever they are.
    pub fn new(intent: impl Into<String>, k: usize) -> Self {
        Self { intent: intent.into(), k, ..Self::default() }
    }
}

impl Finder {
    /// Keeps its index in a file, if one is named.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { shared: Arc::default(), file }
    }

    /// The tools that fit best, best first; fewer if fewer fit at all. Blocks: a new catalogue is
    /// indexed first, which may take seconds.
    pub fn search(&self, catalogue: &Catalogue, query: &ToolQuery) -> Vec<Hit> {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if state.version.as_deref() != Some(catalogue.version()) {
            self.catch_up(&mut state, catalogue);
        }
        let may_find = |key: &Key| query.grants.may_use(&qualified(key));
        let search = Query {
            server_hint: query.server_hint.as_deref(),
            may_find: query.grants.only.is_some().then_some(&may_find),
            usage: Some(&state.usage).filter(|usage| !usage.is_empty()),
            ..Query::new(&query.intent, query.k)
        };
        let found = state.index.search(&search);
        found.into_iter().filter_map(|found| hit(catalogue, found)).collect()
    }

    fn catch_up(&self, state: &mut FinderState, catalogue: &Catalogue) {
        if let (None, Some(file)) = (&state.version, &self.file) {
            // A missing or unusable file means an empty index.
            state.index = Index::load(file).unwrap_or_default();
        }
        let update = state.index.update(catalogue.tools().iter().map(document));
        state.version = Some(catalogue.version().to_owned());
        let is_changed = update.read + update.removed > 0;
        if let Some(file) = self.file.as_ref().filter(|_| is_changed)
            && let Err(error) = state.index.save(file)
        {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "cannot save the index of tools"
            );
        }
    }

    /// Learns from the audit which tools were used together, at most once a minute.
    pub(crate) async fn learn(&self, store: &Store, now_ms: i64) {
        {
            let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            if state.learned_ms.is_some_and(|learned| now_ms - learned < LEARN_EVERY_MS) {
                return;
            }
            state.learned_ms = Some(now_ms);
        }
        let Ok(rows) = store.audit_rows(AuditFilter::default(), MOST_CALLS).await else { return };
        let mut runs: BTreeMap<RunId, Vec<Key>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.outcome == WENT_WELL) {
            if let Some((server, name)) = row.tool.split_once("__") {
                let key = Key { server: server.to_owned(), name: name.to_owned() };
                runs.entry(row.run_id).or_default().push(key);
            }
        }
        let mut usage = UsageHistory::default();
        runs.into_values().for_each(|run| usage.note(run));
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).usage = usage;
    }
}

fn qualified(key: &Key) -> String {
    format!("{}__{}", key.server, key.name)
}

fn hit(catalogue: &Catalogue, found: SearchHit<'_>) -> Option<Hit> {
    let Key { server, name } = found.key;
    let by_name = |tool: &Tool| (&tool.server, &tool.name).cmp(&(server, name));
    let at = catalogue.tools().binary_search_by(by_name).ok()?;
    Some(Hit {
        tool: catalogue.tools().get(at)?.clone(),
        score: found.score.into(),
        words: found.parts.words.into(),
        meaning: found.parts.meaning.into(),
        why: found.words,
    })
}

/// The searchable texts of a tool.
fn document(tool: &Tool) -> Document<'_> {
    let arguments = tool.input_schema.get("properties").and_then(Value::as_object);
    let parameters = arguments.into_iter().flatten().map(|(name, schema)| {
        let choices = schema.get("enum").and_then(Value::as_array);
        Parameter {
            name,
            description: schema.get("description").and_then(Value::as_str).unwrap_or_default(),
            choices: choices.into_iter().flatten().filter_map(Value::as_str).collect(),
        }
    });
    Document {
        server: &tool.server,
        name: &tool.name,
        title: tool.title.as_deref().unwrap_or_default(),
        description: tool.description.as_deref().unwrap_or_default(),
        parameters: parameters.collect(),
    }
}

#[cfg(test)]
mod tests;
