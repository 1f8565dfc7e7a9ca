//! Reads the list of a server's tools, page by page.
//!
//! One badly described tool must not hide the others, so tools are parsed one at a time.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::unfolded::unfolded_bytes;
use belljar_catalogue::visible::is_deceptive;

use crate::{Annotations, Tool};

/// No server has more tools.
const MAX_TOOLS: usize = 10_000;
/// No list of tools is longer.
pub(super) const MAX_LIST_BYTES: usize = 64 << 20;
/// Nor do the tools of a server take more memory.
const MAX_UNFOLDED_BYTES: usize = 256 << 20;
/// No list has more pages.
const MAX_PAGES: usize = 1_000;
/// Longer names are refused.
const MAX_NAME_BYTES: usize = 1024;

/// One page of a list, unparsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolPage<'a> {
    #[serde(borrow)]
    tools: Definitions<'a>,
    next_cursor: Option<String>,
}

/// The first tools of a page, at most one more than a server may have; the rest is skipped.
struct Definitions<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Definitions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ToolsVisitor;
        impl<'de> Visitor<'de> for ToolsVisitor {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of tools")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() <= MAX_TOOLS {
                    match all.next_element()? {
                        Some(tool) => first.push(tool),
                        None => return Ok(first),
                    }
                }
                while all.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }
        }
        deserializer.deserialize_seq(ToolsVisitor).map(Self)
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
    unfolded: usize,
    has_left_out: bool,
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
            unfolded: 0,
            has_left_out: false,
        }
    }

    /// Where the next page begins.
    pub(super) fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    /// Adds a page: the `result` of an answer.
    pub(super) fn add(&mut self, json: &[u8]) -> Result<More, String> {
        self.pages += 1;
        self.bytes += json.len();
        if self.bytes > MAX_LIST_BYTES {
            return Err(too_long());
        }
        let page: ToolPage<'_> = serde_json::from_slice(json)
            .map_err(|error| format!("its list of tools is not valid: {error}"))?;
        // Before any of them is unfolded.
        if self.tools.len() + page.tools.0.len() > MAX_TOOLS {
            return Err(format!("it has more than {MAX_TOOLS} tools"));
        }
        for definition in page.tools.0 {
            self.add_tool(definition.get())?;
        }
        // An empty cursor is how some servers say that there is no more.
        let next = page.next_cursor.filter(|next| !next.is_empty());
        if next.is_some() && (next == self.cursor || self.pages == MAX_PAGES) {
            return Err("its list of tools does not end".to_owned());
        }
        self.cursor = next;
        Ok(if self.cursor.is_some() { More::Yes } else { More::No })
    }

    fn add_tool(&mut self, definition: &str) -> Result<(), String> {
        self.unfolded += unfolded_bytes(definition);
        if self.unfolded > MAX_UNFOLDED_BYTES {
            return Err(format!("its tools take over {} MB of memory", MAX_UNFOLDED_BYTES >> 20));
        }
        let Some(tool) = read_tool(&self.server, definition) else {
            self.left_out("skipped a tool without a valid name or schema");
            return Ok(());
        };
        if !self.names.insert(tool.name.clone()) {
            self.left_out("skipped a tool that is listed twice");
            return Ok(());
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Logged once for a list: a server that lists one bad tool may list thousands.
    fn left_out(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_left_out, true) {
            tracing::warn!(server = %self.server, "{why}");
        }
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

/// Whether a name is valid. Names are shown to the person who approves a call and are matched by rules, so
/// control characters, line breaks and invisible characters are refused.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(is_deceptive)
}

/// Parses a tool; `None` if its name or schema is not valid.
fn read_tool(server: &str, definition: &str) -> Option<Tool> {
    let raw: RawTool = serde_json::from_str(definition).ok()?;
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
