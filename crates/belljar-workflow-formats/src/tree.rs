//! A file as a tree whose nodes know their positions. One parser reads YAML and JSON.
//!
//! The length of a file, its depth, and its size after following aliases are limited.

use std::collections::{BTreeMap, BTreeSet};

use belljar_contract::{JsonMap, JsonNumber, JsonValue};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::fault::{Diagnostics, shortened};
use super::scalar;

/// The longest file, in bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// How deeply a file may be nested.
const MAX_DEPTH: usize = 64;
/// The most nodes of a file, aliases followed.
const MAX_PARTS: usize = 100_000;
/// The most bytes of text in them, aliases followed.
const MAX_BYTES: usize = 4 << 20;

/// A line and column of a file, from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Position {
    /// The beginning of a file.
    pub(super) const TOP: Self = Self { line: 1, column: 1 };

    fn of(span: Span) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: number(span.start.line()).max(1), column: number(span.start.col() + 1) }
    }
}

/// A node of a file and its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileNode {
    pub(super) at: Position,
    pub(super) tree: FileTree,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FileTree {
    Null,
    Bool(bool),
    Number(JsonNumber),
    Text(String),
    List(Vec<FileNode>),
    Map(Vec<TreeEntry>),
}

/// A key of a mapping, its position and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TreeEntry {
    pub(super) key: String,
    pub(super) at: Position,
    pub(super) value: FileNode,
    /// The entry came by `<<` into a mapping that has not ended.
    merged: bool,
}

impl FileNode {
    /// The kind of the node, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match &self.tree {
            FileTree::Null => "nothing",
            FileTree::Bool(_) => "a boolean",
            FileTree::Number(_) => "a number",
            FileTree::Text(_) => "text",
            FileTree::List(_) => "a list",
            FileTree::Map(_) => "a mapping",
        }
    }

    /// The value under a key of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&FileNode> {
        match &self.tree {
            FileTree::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::List(_) => None,
        }
    }

    /// The node as JSON, without positions.
    pub(super) fn json(&self) -> JsonValue {
        match &self.tree {
            FileTree::Null => JsonValue::Null,
            FileTree::Bool(value) => JsonValue::Bool(*value),
            FileTree::Number(number) => JsonValue::Number(number.clone()),
            FileTree::Text(text) => JsonValue::String(text.clone()),
            FileTree::List(items) => JsonValue::Array(items.iter().map(Self::json).collect()),
            FileTree::Map(entries) => JsonValue::Object(
                entries.iter().map(|e| (e.key.clone(), e.value.json())).collect::<JsonMap>(),
            ),
        }
    }

    fn size(&self) -> Size {
        let own = Size { parts: 1, bytes: 0 };
        match &self.tree {
            FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) => own,
            FileTree::Text(text) => Size { parts: 1, bytes: text.len() },
            FileTree::List(items) => items.iter().fold(own, |sum, item| sum.and(item.size())),
            FileTree::Map(entries) => entries.iter().fold(own, |sum, entry| {
                sum.and(entry.value.size()).and(Size { parts: 0, bytes: entry.key.len() })
            }),
        }
    }

    fn depth(&self) -> usize {
        match &self.tree {
            FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) | FileTree::Text(_) => 1,
            FileTree::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            FileTree::Map(entries) => {
                1 + entries.iter().map(|e| e.value.depth()).max().unwrap_or(0)
            }
        }
    }
}

/// The size of a tree, for the limits.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    parts: usize,
    bytes: usize,
}

impl Size {
    fn and(self, other: Self) -> Self {
        Self { parts: self.parts + other.parts, bytes: self.bytes + other.bytes }
    }
}

/// Parses a text into one tree; faults go to `notes`.
pub(super) fn parse(text: &str, notes: &mut Diagnostics<'_>) -> Option<FileNode> {
    if text.len() > MAX_TEXT {
        notes.fault(
            Position::TOP,
            format!("the file has {} bytes, at most {MAX_TEXT} are allowed", text.len()),
            "split it, or move data out of it",
        );
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = scalar::join_surrogates(text);
    let mut growing = TreeBuilder::default();
    for event in Parser::new_from_str(&text) {
        match event {
            Ok((event, span)) => {
                if let Err((message, help)) = growing.take(event, Position::of(span)) {
                    notes.fault(Position::of(span), message, help);
                    return None;
                }
            }
            Err(error) => {
                let at = Position::of(Span::empty(*error.marker()));
                notes.fault(at, format!("not valid YAML or JSON: {}", error.info()), "");
                return None;
            }
        }
    }
    if growing.root.is_none() {
        notes.fault(Position::TOP, "the file is empty", "write `nodes:` or `tasks:`");
    }
    growing.root
}

/// A fault and what to do about it.
type ParseFault = (String, &'static str);

/// Builds a tree from the parser's events.
#[derive(Debug, Default)]
struct TreeBuilder {
    open: Vec<OpenContainer>,
    anchors: BTreeMap<usize, (FileNode, Size)>,
    size: Size,
    root: Option<FileNode>,
}

/// A list or mapping that has not ended.
#[derive(Debug)]
struct OpenContainer {
    at: Position,
    anchor: usize,
    kind: ContainerItems,
}

#[derive(Debug)]
enum ContainerItems {
    List(Vec<FileNode>),
    Map {
        entries: Vec<TreeEntry>,
        seen: BTreeSet<String>,
        key: Option<(String, Position)>,
        merged: bool,
    },
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), ParseFault> {
        match event {
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            Event::Scalar(text, style, anchor, tag) => {
                let tag = core_tag(tag.as_deref())?;
                let plain = matches!(style, ScalarStyle::Plain) && tag != Some("str");
                let tree =
                    if plain { scalar::resolve(&text) } else { FileTree::Text(text.into_owned()) };
                self.ended(FileNode { at, tree }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                core_tag(tag.as_deref())?;
                self.begun(OpenContainer { at, anchor, kind: ContainerItems::List(Vec::new()) })
            }
            Event::MappingStart(anchor, tag) => {
                core_tag(tag.as_deref())?;
                let kind = ContainerItems::Map {
                    entries: Vec::new(),
                    seen: BTreeSet::new(),
                    key: None,
                    merged: false,
                };
                self.begun(OpenContainer { at, anchor, kind })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(OpenContainer { at, anchor, kind: ContainerItems::List(items) }) => {
                    self.ended(FileNode { at, tree: FileTree::List(items) }, anchor)
                }
                Some(OpenContainer {
                    at,
                    anchor,
                    kind: ContainerItems::Map { entries, merged, .. },
                }) => {
                    let entries = if merged { merged_entries(entries) } else { entries };
                    self.ended(FileNode { at, tree: FileTree::Map(entries) }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(anchor, at),
        }
    }

    fn begun(&mut self, open: OpenContainer) -> Result<(), ParseFault> {
        if self.open.is_empty() && self.root.is_some() {
            return Err(second());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err((format!("nested more than {MAX_DEPTH} levels deep"), "flatten it"));
        }
        self.open.push(open);
        Ok(())
    }

    /// Follows an alias; its target counts as if it had been written out.
    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), ParseFault> {
        let Some((node, size)) = self.anchors.get(&anchor) else {
            return Err(("the alias refers to itself".into(), "write the value out"));
        };
        let grown = self.size.and(*size);
        if grown.parts > MAX_PARTS || grown.bytes > MAX_BYTES {
            return Err(("aliases make the file too large".into(), "use fewer of them"));
        }
        if self.open.len() + node.depth() > MAX_DEPTH {
            return Err((format!("nested more than {MAX_DEPTH} levels deep"), "flatten it"));
        }
        let node = FileNode { at, tree: node.tree.clone() };
        self.size = grown;
        self.place(node)
    }

    fn ended(&mut self, node: FileNode, anchor: usize) -> Result<(), ParseFault> {
        self.size.parts += 1;
        if let FileTree::Text(text) = &node.tree {
            self.size.bytes += text.len();
        }
        if self.size.parts > MAX_PARTS || self.size.bytes > MAX_BYTES {
            return Err((format!("more than {MAX_PARTS} values"), "split the file"));
        }
        if anchor > 0 {
            let size = node.size();
            self.size = self.size.and(size);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.place(node)
    }

    fn place(&mut self, node: FileNode) -> Result<(), ParseFault> {
        match self.open.last_mut().map(|open| &mut open.kind) {
            None if self.root.is_some() => Err(second()),
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some(ContainerItems::List(items)) => {
                items.push(node);
                Ok(())
            }
            Some(ContainerItems::Map { entries, seen, key, merged }) => match key.take() {
                None => {
                    let name = key_of(&node)?;
                    if !seen.insert(name.clone()) {
                        return Err((
                            format!("the key `{}` is written twice", shortened(&name)),
                            "keep one of them",
                        ));
                    }
                    *key = Some((name, node.at));
                    Ok(())
                }
                Some((name, _)) if name == "<<" => {
                    *merged = true;
                    merge(node, entries)
                }
                Some((key, at)) => {
                    entries.push(TreeEntry { key, at, value: node, merged: false });
                    Ok(())
                }
            },
        }
    }
}

fn second() -> ParseFault {
    ("the file holds a second document".into(), "put each workflow in its own file")
}

/// The entries of a mapping with merges: its own entries win, then those of the first merge.
fn merged_entries(entries: Vec<TreeEntry>) -> Vec<TreeEntry> {
    let (mut kept, merged): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| !entry.merged);
    let mut known: BTreeSet<String> = kept.iter().map(|entry| entry.key.clone()).collect();
    let fresh = merged.into_iter().filter(|entry| known.insert(entry.key.clone()));
    kept.extend(fresh.map(|entry| TreeEntry { merged: false, ..entry }));
    kept
}

/// Adds the entries of the mapping, or list of mappings, that `<<` names.
fn merge(node: FileNode, entries: &mut Vec<TreeEntry>) -> Result<(), ParseFault> {
    let wrong = || ("`<<` takes a mapping or a list of mappings".to_owned(), "write `<<: *anchor`");
    match node.tree {
        FileTree::Map(more) => {
            entries.extend(more.into_iter().map(|entry| TreeEntry { merged: true, ..entry }));
            Ok(())
        }
        FileTree::List(items) => items.into_iter().try_for_each(|item| match item.tree {
            FileTree::Map(_) => merge(item, entries),
            FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::List(_) => Err(wrong()),
        }),
        FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) | FileTree::Text(_) => {
            Err(wrong())
        }
    }
}

fn key_of(node: &FileNode) -> Result<String, ParseFault> {
    match &node.tree {
        FileTree::Text(text) => Ok(text.clone()),
        FileTree::Bool(value) => Ok(value.to_string()),
        FileTree::Number(number) => Ok(number.to_string()),
        FileTree::Null => Err(("a key is empty".into(), "give it a name")),
        FileTree::List(_) | FileTree::Map(_) => {
            Err(("a key is a list or mapping".into(), "use text as the key"))
        }
    }
}

/// The name of a core tag of YAML; other tags are refused.
fn core_tag(tag: Option<&saphyr_parser::Tag>) -> Result<Option<&str>, ParseFault> {
    match tag {
        None => Ok(None),
        Some(tag) if tag.is_yaml_core_schema() => Ok(Some(&tag.suffix)),
        Some(tag) if tag.handle == "!" && tag.suffix.is_empty() => Ok(Some("str")),
        Some(tag) => Err((format!("the tag `{tag}` is not supported"), "remove it")),
    }
}
