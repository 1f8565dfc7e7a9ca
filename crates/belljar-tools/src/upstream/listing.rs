//! The list of a server's tools, page by page, and what is made of each.
//!
//! One tool that is described badly must not hide the others, so tools are read one at a time.

use std::collections::HashSet;

use rmcp::model::ServerResult;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Annotations, Tool, visible::is_deceptive};

/// No server has more tools.
const MAX_TOOLS: usize = 10_000;
/// No list of tools is longer.
pub(super) const MAX_LIST_BYTES: usize = 64 << 20;
/// No list has more pages.
const MAX_PAGES: usize = 1_000;
/// Code cannot say longer names.
const MAX_NAME_BYTES: usize = 1024;

/// A part of a list.
#[derive(Debug)]
pub(super) struct Page {
    tools: Vec<Value>,
    next: Option<String>,
    bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage {
    tools: Vec<Value>,
    next_cursor: Option<String>,
}

impl Page {
    /// Reads the `result` of an answer.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, String> {
        if json.len() > MAX_LIST_BYTES {
            return Err(too_long());
        }
        let raw: RawPage = serde_json::from_slice(json)
            .map_err(|error| format!("its list of tools is none: {error}"))?;
        Ok(Self { tools: raw.tools, next: raw.next_cursor, bytes: json.len() })
    }

    /// The same of an answer that has been read already.
    pub(super) fn from_protocol(result: &ServerResult) -> Result<Self, String> {
        let json = serde_json::to_vec(result).map_err(|error| error.to_string())?;
        Self::from_json(&json)
    }
}

fn too_long() -> String {
    format!("its list of tools is over {} MB", MAX_LIST_BYTES >> 20)
}

/// Whether there is more of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Yes,
    No,
}

impl More {
    pub(super) fn is_last(self) -> bool {
        self == Self::No
    }
}

/// A list that is being read.
#[derive(Debug)]
pub(super) struct Listing {
    server: String,
    tools: Vec<Tool>,
    names: HashSet<String>,
    cursor: Option<String>,
    pages: usize,
    bytes: usize,
}

impl Listing {
    pub(super) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            tools: Vec::new(),
            names: HashSet::new(),
            cursor: None,
            pages: 0,
            bytes: 0,
        }
    }

    /// Where the next page begins.
    pub(super) fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    /// Adds a page.
    pub(super) fn add(&mut self, page: Page) -> Result<More, String> {
        self.pages += 1;
        self.bytes += page.bytes;
        if self.bytes > MAX_LIST_BYTES {
            return Err(too_long());
        }
        for value in page.tools {
            let Some(tool) = read_tool(&self.server, value) else {
                tracing::warn!(server = %self.server, "a tool without a proper name or schema is left out");
                continue;
            };
            if !self.names.insert(tool.name.clone()) {
                tracing::warn!(server = %self.server, tool = %tool.name, "listed twice");
                continue;
            }
            self.tools.push(tool);
        }
        if self.tools.len() > MAX_TOOLS {
            return Err(format!("it has more than {MAX_TOOLS} tools"));
        }
        // An empty cursor is how some servers say that there is no more.
        let next = page.next.filter(|next| !next.is_empty());
        if next.is_some() && (next == self.cursor || self.pages == MAX_PAGES) {
            return Err("its list of tools does not end".to_owned());
        }
        self.cursor = next;
        Ok(if self.cursor.is_some() { More::Yes } else { More::No })
    }

    pub(super) fn into_tools(self) -> Vec<Tool> {
        self.tools
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    annotations: Option<Map<String, Value>>,
}

/// Whether a tool can be called so. A name is what a person is asked about and what rules and audit
/// rows go by: one that a terminal obeys, that takes several lines or that looks like another is none.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(is_deceptive)
}

/// A tool as its server describes it; `None` if it cannot be called by what it says.
fn read_tool(server: &str, value: Value) -> Option<Tool> {
    let raw: RawTool = serde_json::from_value(value).ok()?;
    if !is_name(&raw.name) {
        return None;
    }
    let annotations = raw.annotations.unwrap_or_default();
    let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
    let own_title = || annotations.get("title").and_then(Value::as_str).map(str::to_owned);
    Some(Tool {
        server: server.to_owned(),
        name: raw.name,
        title: raw.title.or_else(own_title),
        description: raw.description,
        input_schema: match raw.input_schema {
            None | Some(Value::Null | Value::Bool(true)) => json!({"type": "object"}),
            Some(schema @ Value::Object(_)) => schema,
            Some(_) => return None,
        },
        output_schema: raw.output_schema.filter(Value::is_object),
        annotations: Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
    })
}
