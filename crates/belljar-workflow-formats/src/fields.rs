//! Reads the fields of a mapping by name, in any of their spellings; a field that is never read is
//! a fault.

use belljar_contract::is_spelled_alike;
use belljar_contract::{JsonMap, JsonValue};

use super::fault::{Diagnostics, near, shortened};
use super::tree::{FileNode, FileTree, Position, TreeEntry};

/// The fields of one mapping that have not been read yet.
#[derive(Debug)]
pub(super) struct FieldReader<'t> {
    pub(super) at: Position,
    what: &'static str,
    left: Vec<&'t TreeEntry>,
    asked: Vec<&'static str>,
}

impl<'t> FieldReader<'t> {
    /// Begins to read `node`, which messages call `what`; a fault when it is not a mapping.
    pub(super) fn of(
        node: &'t FileNode,
        what: &'static str,
        notes: &mut Diagnostics<'_>,
    ) -> Option<Self> {
        match &node.tree {
            FileTree::Map(entries) => {
                Some(Self { at: node.at, what, left: entries.iter().collect(), asked: Vec::new() })
            }
            FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::List(_) => {
                expected(node, &format!("{what}: a mapping"), notes);
                None
            }
        }
    }

    /// Takes the field with one of these names, which mean the same; the first is the name that
    /// Belljar uses.
    pub(super) fn take(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Option<&'t FileNode> {
        self.take_if(names, |name, key| name == key, notes)
    }

    /// Takes the field with one of these names, in `snake_case` or `camelCase`.
    pub(super) fn take_alike(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Option<&'t FileNode> {
        self.take_if(names, is_spelled_alike, notes)
    }

    fn take_if(
        &mut self,
        names: &[&'static str],
        is_same: impl Fn(&str, &str) -> bool,
        notes: &mut Diagnostics<'_>,
    ) -> Option<&'t FileNode> {
        self.asked.extend(names);
        let mut found: Option<&TreeEntry> = None;
        let mut left = Vec::with_capacity(self.left.len());
        for entry in std::mem::take(&mut self.left) {
            match found {
                _ if !names.iter().any(|name| is_same(name, &entry.key)) => left.push(entry),
                None => found = Some(entry),
                Some(first) => notes.fault(
                    entry.at,
                    format!("`{}` and `{}` mean the same", first.key, entry.key),
                    "keep one of them",
                ),
            }
        }
        self.left = left;
        found.map(|entry| &entry.value).filter(|node| node.tree != FileTree::Null)
    }

    /// Whether the mapping has a field with a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.iter().any(|entry| entry.key == name && entry.value.tree != FileTree::Null)
    }

    /// Accepts fields that have no meaning here.
    pub(super) fn ignore(&mut self, names: &[&'static str]) {
        self.asked.extend(names);
        self.left.retain(|entry| !names.contains(&entry.key.as_str()));
    }

    /// Adds names that an unknown field may be mistaken for.
    pub(super) fn hint(&mut self, names: &[&'static str]) {
        self.asked.extend(names);
    }

    /// Accepts fields that have no meaning here, with a warning.
    pub(super) fn tolerate(
        &mut self,
        names: &[&'static str],
        why: &str,
        notes: &mut Diagnostics<'_>,
    ) {
        self.asked.extend(names);
        for entry in self.left.extract_if(.., |entry| names.contains(&entry.key.as_str())) {
            notes.warn(entry.at, format!("`{}` has no effect", entry.key), why);
        }
    }

    /// Refuses fields that have no meaning here, with the reason.
    pub(super) fn refuse(
        &mut self,
        names: &[&'static str],
        why: &str,
        notes: &mut Diagnostics<'_>,
    ) {
        self.asked.extend(names);
        for entry in self.left.extract_if(.., |entry| names.contains(&entry.key.as_str())) {
            notes.fault(entry.at, format!("`{}` is not supported", entry.key), why);
        }
    }

    /// Ends reading: every field that was not read is a fault.
    pub(super) fn done(self, notes: &mut Diagnostics<'_>) {
        for entry in &self.left {
            if notes.full() {
                return;
            }
            let near = near(&entry.key, self.asked.iter().copied());
            let help = if near.is_empty() { self.usual_name(&entry.key) } else { near };
            let message = format!("`{}` is not supported in {}", shortened(&entry.key), self.what);
            notes.fault(entry.at, message, help);
        }
    }

    /// Belljar's name for a field that is often called something else.
    fn usual_name(&self, key: &str) -> String {
        let here = match key.to_ascii_lowercase().replace('_', "").as_str() {
            "retries" | "maxretries" | "retrycount" => "`retry: {attempts: 3}`",
            "needs" | "requires" | "after" | "upstream" => "`depends_on`",
            "timeoutseconds" | "timeoutsecs" | "timeoutsec" | "timeouts" => "`timeout: 30s`",
            "command" | "script" | "cmd" => "`code` and `language: bash`",
            _ => return String::new(),
        };
        if self.what == "a task" { format!("write {here}") } else { String::new() }
    }

    /// Takes a field that holds text.
    pub(super) fn text(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Option<String> {
        self.take(names, notes).and_then(|node| text(node, notes))
    }

    /// Takes a field that is true or false.
    pub(super) fn flag(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Option<bool> {
        self.take(names, notes).and_then(|node| match &node.tree {
            FileTree::Bool(value) => Some(*value),
            FileTree::Null
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::List(_)
            | FileTree::Map(_) => {
                expected(node, "true or false", notes);
                None
            }
        })
    }

    /// Takes a field that holds a whole number within bounds.
    pub(super) fn number(
        &mut self,
        names: &[&'static str],
        bounds: std::ops::RangeInclusive<u64>,
        notes: &mut Diagnostics<'_>,
    ) -> Option<u64> {
        let node = self.take(names, notes)?;
        number(node, bounds, notes)
    }

    /// Takes a list of texts; a single text is a list of one.
    pub(super) fn texts(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Vec<(String, Position)> {
        match self.take(names, notes) {
            None => Vec::new(),
            Some(node) => match &node.tree {
                FileTree::List(items) => {
                    items.iter().filter_map(|item| Some((text(item, notes)?, item.at))).collect()
                }
                FileTree::Text(one) => vec![(one.clone(), node.at)],
                FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) | FileTree::Map(_) => {
                    expected(node, "a list of names", notes);
                    Vec::new()
                }
            },
        }
    }

    /// Takes a field that holds a list.
    pub(super) fn list(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Option<&'t [FileNode]> {
        let node = self.take(names, notes)?;
        match &node.tree {
            FileTree::List(items) => Some(items),
            FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::Map(_) => {
                expected(node, "a list", notes);
                None
            }
        }
    }

    /// Takes a field that holds a mapping, as JSON.
    pub(super) fn object(
        &mut self,
        names: &[&'static str],
        notes: &mut Diagnostics<'_>,
    ) -> Option<JsonMap> {
        let node = self.take(names, notes)?;
        match node.json() {
            JsonValue::Object(map) => Some(map),
            JsonValue::Null
            | JsonValue::Bool(_)
            | JsonValue::Number(_)
            | JsonValue::String(_)
            | JsonValue::Array(_) => {
                expected(node, "a mapping", notes);
                None
            }
        }
    }
}

/// The text of a node; a fault when it is something else.
pub(super) fn text(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<String> {
    match &node.tree {
        FileTree::Text(text) => Some(text.clone()),
        FileTree::Bool(_) | FileTree::Number(_) => {
            notes.fault(
                node.at,
                format!("expected text, found {}", node.kind()),
                "put it in quotes",
            );
            None
        }
        FileTree::Null | FileTree::List(_) | FileTree::Map(_) => {
            expected(node, "text", notes);
            None
        }
    }
}

/// A duration with its unit, as in `500ms`, `1.5s`, `5m` or `2h`, in milliseconds.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(at);
    let unit = match unit.trim() {
        "ms" => 1.0,
        "s" | "sec" | "seconds" => 1_000.0,
        "m" | "min" | "minutes" => 60_000.0,
        "h" | "hours" => 3_600_000.0,
        _ => return None,
    };
    let ms = digits.parse::<f64>().ok()? * unit;
    // Within the range where every whole number is exact.
    let fits = (1.0..9e15).contains(&ms);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
    let whole = fits.then_some(ms as u64);
    whole
}

/// A whole number within bounds; a fault when it is something else.
pub(super) fn number(
    node: &FileNode,
    bounds: std::ops::RangeInclusive<u64>,
    notes: &mut Diagnostics<'_>,
) -> Option<u64> {
    let value = match &node.tree {
        FileTree::Number(number) => number.as_u64(),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Text(_)
        | FileTree::List(_)
        | FileTree::Map(_) => None,
    };
    let fits = value.filter(|value| bounds.contains(value));
    if fits.is_none() {
        let (low, high) = (bounds.start(), bounds.end());
        let wanted = if *high == u64::MAX {
            format!("a whole number of at least {low}")
        } else {
            format!("a whole number from {low} to {high}")
        };
        expected(node, &wanted, notes);
    }
    fits
}

/// Notes a fault that says what was expected and what is there.
pub(super) fn expected(node: &FileNode, wanted: &str, notes: &mut Diagnostics<'_>) {
    let got = match &node.tree {
        FileTree::Number(number) => number.to_string(),
        FileTree::Text(text) if text.len() <= 40 => format!("`{text}`"),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Text(_)
        | FileTree::List(_)
        | FileTree::Map(_) => node.kind().to_owned(),
    };
    notes.fault(node.at, format!("expected {wanted}, found {got}"), "");
}
