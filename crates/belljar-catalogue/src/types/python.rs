//! The catalogue as a stub of Python.
//!
//! Objects become `TypedDict`s with names of their own, since Python has no way to write one in
//! place. A tool takes its arguments by name; where a name is none Python could take, as one dict.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    names::TypeNames,
    outline::{ResultType, ServerOutline, ToolOutline, ValueShapes, outlines},
    text::{FIELD_TEXT, TOOL_TEXT, doc_string, mentioned, quoted, remark},
};
use crate::{
    Tool,
    names::{Catalogue, Style, is_python_keyword},
    schema::{ObjectType, Schema, SchemaField, TupleType, Type},
};

/// The declarations that every program has, whatever the tools.
const PREAMBLE: &str = include_str!("preamble.pyi");

/// Types of Python's own that stubs use, and tools could be called by.
const OWN_TYPES: [&str; 6] = ["bool", "dict", "float", "int", "list", "str"];

/// The chosen tools as a `.pyi`: `mcp.server.tool(name=value)` for each, and what else code can
/// call.
pub fn python(
    catalogue: &Catalogue,
    chosen: impl Fn(&Tool) -> bool,
    shapes: &ValueShapes,
) -> String {
    let mut stub = Stub::default();
    let mut classes = String::new();
    let mut attributes = String::new();
    for server in outlines(catalogue, &chosen, shapes, Style::Snake) {
        let class = stub.names.give(&[server.name, "server"]);
        classes.push_str(&stub.server(&server, &class));
        match &server.alias {
            Some(alias) => {
                let _ = writeln!(attributes, "    {alias}: {class}");
            }
            None => {
                let name = mentioned(server.name);
                let _ =
                    writeln!(attributes, "    # {name} has no name of its own here: mcp[{name}]");
            }
        }
    }
    let _ = writeln!(attributes, "    def __getitem__(self, server: Builtins.str, /) -> Any: ...");
    let typing: Vec<&str> = stub.uses.into_iter().collect();
    let types = stub.types;
    // Only what is used is imported: checkers complain about the rest.
    let imports = format!(
        "# Functions that code can call in a Belljar cell. Made from the catalogue of tools; do not edit.\n\
         import builtins as Builtins\nfrom collections.abc import Mapping\n\
         from typing import Any, TypeVar{}{}\n",
        if typing.is_empty() { "" } else { ", " },
        typing.join(", ")
    );
    let body = format!(
        "{PREAMBLE}{types}{classes}\nclass Mcp_Servers:\n    \"\"\"The tools, by server.\"\"\"\n\n{attributes}\nmcp: Mcp_Servers\n"
    );
    format!("{imports}{body}")
}

#[derive(Default)]
struct Stub {
    names: TypeNames,
    /// The classes written so far.
    types: String,
    /// The names of `typing` that it uses.
    uses: BTreeSet<&'static str>,
    /// Whether a tool of this server has the name of a built-in type and hides it in the class.
    shadowed: bool,
}

impl Stub {
    /// A word of `typing`.
    fn word(&mut self, word: &'static str) -> &'static str {
        self.uses.insert(word);
        word
    }

    /// A type of Python's own.
    fn own(&self, name: &str) -> String {
        if self.shadowed { format!("Builtins.{name}") } else { name.to_owned() }
    }

    fn server(&mut self, server: &ServerOutline<'_>, class: &str) -> String {
        let aliases = || server.tools.iter().filter_map(|outline| outline.alias.as_deref());
        self.shadowed = aliases().any(|alias| OWN_TYPES.contains(&alias));
        let text = self.own("str");
        let mut out = format!("\nclass {class}:\n");
        for outline in &server.tools {
            match &outline.alias {
                Some(alias) => out.push_str(&self.method(outline, alias)),
                None => {
                    let name = mentioned(&outline.tool.name);
                    let call = mentioned(&outline.tool.qualified_name());
                    let _ = writeln!(
                        out,
                        "    # {name} has no name of its own here: tools.call({call}, {{...}})"
                    );
                }
            }
        }
        let _ = writeln!(out, "    def __getitem__(self, tool: {text}, /) -> Any: ...");
        out
    }

    fn method(&mut self, outline: &ToolOutline<'_>, alias: &str) -> String {
        let tool = outline.tool;
        let base = format!("{} {}", tool.server, tool.name);
        let mut writer = StubWriter::new(self, &outline.arguments, &base);
        let (parameters, notes) = writer.parameters(outline);
        let result = match &outline.result {
            ResultType::Declared(schema) | ResultType::Learned(schema) => {
                let mut writer = StubWriter::new(self, schema, &base);
                writer.written(&schema.root, &[&base, "result"])
            }
            ResultType::Anything => "Any".to_owned(),
        };
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let mut text = text.trim_end().to_owned();
        if matches!(outline.result, ResultType::Learned(_)) {
            text.push_str("\n\nThe type of the result is as seen so far.");
        }
        // Notes come after the description and are not cut with it.
        let mut documented: Vec<String> =
            doc_string(&text, TOOL_TEXT, "        ").into_iter().collect();
        documented.extend(notes);
        let body = if documented.is_empty() {
            " ...\n".to_owned()
        } else {
            format!("\n{}        ...\n", documented.concat())
        };
        format!("    def {alias}(self{parameters}) -> {result}:{body}")
    }
}

/// Writes the types of one schema.
struct StubWriter<'a> {
    stub: &'a mut Stub,
    schema: &'a Schema,
    /// The names of the definitions.
    names: Vec<String>,
}

impl<'a> StubWriter<'a> {
    fn new(stub: &'a mut Stub, schema: &'a Schema, base: &str) -> Self {
        let definitions = schema.definitions.iter();
        let names: Vec<String> =
            definitions.map(|definition| stub.names.give(&[base, &definition.name])).collect();
        let mut writer = Self { stub, schema, names };
        for at in 0..writer.schema.definitions.len() {
            writer.define(at, base);
        }
        writer
    }

    fn define(&mut self, at: usize, base: &str) {
        let schema = self.schema;
        let (Some(definition), Some(name)) =
            (schema.definitions.get(at), self.names.get(at).cloned())
        else {
            return;
        };
        if let Type::Object(object) = &definition.kind
            && !object.fields.is_empty()
        {
            return self.class(object, &name, base);
        }
        let written = self.written(&definition.kind, &[base, &definition.name]);
        // In quotes, because it may refer to itself.
        let alias = self.stub.word("TypeAlias");
        let _ = writeln!(self.stub.types, "{name}: {alias} = {}", quoted(&written));
    }

    /// The parameters after `self`, and the notes on them.
    fn parameters(&mut self, outline: &ToolOutline<'_>) -> (String, Vec<String>) {
        let base = format!("{} {}", outline.tool.server, outline.tool.name);
        let schema = self.schema;
        let object = if let Type::Object(object) = &schema.root { Some(object) } else { None };
        let by_name =
            |object: &&ObjectType| object.fields.iter().all(|field| is_parameter(&field.name));
        let Some(object) = object.filter(by_name) else {
            let kind = self.written(&schema.root, &[&base, "arguments"]);
            let default = if outline.takes_nothing_needed() { " = ..." } else { "" };
            return (format!(", args: {kind}{default}, /"), Vec::new());
        };
        let mut parameters = String::new();
        let mut notes = Vec::new();
        for field in &object.fields {
            let kind = self.written(&field.kind, &[&base, &field.name]);
            let default = if field.required { "" } else { " = ..." };
            let _ = write!(parameters, ", {}: {kind}{default}", field.name);
            let note = remark(&field.note.text(), FIELD_TEXT);
            if !note.is_empty() {
                notes.push(format!(
                    "        # {}: {}\n",
                    field.name,
                    note.trim_start_matches([' ', '#'])
                ));
            }
        }
        if let Some(rest) = object.rest.typed() {
            let kind = self.written(rest, &[&base, "others"]);
            let _ = write!(parameters, ", **others: {kind}");
        }
        let star = if object.fields.is_empty() { "" } else { ", *" };
        (format!("{star}{parameters}"), notes)
    }

    /// The type as an expression; objects within it get classes called by `path`.
    fn written(&mut self, kind: &Type, path: &[&str]) -> String {
        match kind {
            Type::Unknown | Type::Both(_) => "Any".to_owned(),
            Type::Never => self.stub.word("Never").to_owned(),
            Type::Null => "None".to_owned(),
            Type::Boolean => self.stub.own("bool"),
            Type::Integer => self.stub.own("int"),
            Type::Number => self.stub.own("float"),
            Type::String => self.stub.own("str"),
            Type::Literal(value) => match literal(value) {
                Some(inside) => format!("{}[{inside}]", self.stub.word("Literal")),
                None => self.stub.own("float"),
            },
            Type::Array(items) => self.list(items, path),
            Type::Tuple(tuple) => self.tuple(tuple, path),
            Type::Object(object) => self.object(object, path),
            Type::Union(types) => self.union(types, path),
            Type::Named(name) => self.names.get(*name).cloned().unwrap_or_else(|| "Any".to_owned()),
        }
    }

    /// JSON has lists only; that a place has its own type is kept as far as Python can say it.
    fn tuple(&mut self, tuple: &TupleType, path: &[&str]) -> String {
        let places: Vec<Type> = tuple.items.iter().chain(tuple.rest.as_deref()).cloned().collect();
        if places.is_empty() {
            return self.list(&Type::Unknown, path);
        }
        format!("{}[{}]", self.stub.own("list"), self.union(&places, path))
    }

    fn list(&mut self, items: &Type, path: &[&str]) -> String {
        format!("{}[{}]", self.stub.own("list"), self.written(items, path))
    }

    fn union(&mut self, types: &[Type], path: &[&str]) -> String {
        let mut written: Vec<String> = Vec::new();
        for kind in types {
            let one = self.written(kind, path);
            if !written.contains(&one) {
                written.push(one);
            }
        }
        if written.iter().any(|one| one == "Any") {
            return "Any".to_owned();
        }
        let literals: Vec<&str> = written.iter().filter_map(|one| literal_inside(one)).collect();
        if literals.len() > 1 {
            let joined = format!("Literal[{}]", literals.join(", "));
            let mut others: Vec<String> = vec![joined];
            others.extend(written.iter().filter(|one| literal_inside(one).is_none()).cloned());
            written = others;
        }
        written.join(" | ")
    }

    fn object(&mut self, object: &ObjectType, path: &[&str]) -> String {
        if object.fields.is_empty() {
            let values = match object.rest.typed() {
                Some(kind) => self.written(kind, path),
                None => "Any".to_owned(),
            };
            return format!("{}[{}, {values}]", self.stub.own("dict"), self.stub.own("str"));
        }
        let name = self.stub.names.give(path);
        let base = path.join(" ");
        self.class(object, &name, &base);
        name
    }

    fn class(&mut self, object: &ObjectType, name: &str, base: &str) {
        let typed_dict = self.stub.word("TypedDict");
        let mut fields: Vec<(&SchemaField, String)> = Vec::new();
        // A field without a name is one too, but not to Python's checkers.
        for field in object.fields.iter().filter(|field| !field.name.is_empty()) {
            let kind = self.written(&field.kind, &[base, &field.name]);
            let optional = |stub: &mut Stub| format!("{}[{kind}]", stub.word("NotRequired"));
            let kind = if field.required { kind } else { optional(self.stub) };
            fields.push((field, kind));
        }
        let attributes = object.fields.iter().all(|field| is_attribute(&field.name));
        let mut out = match attributes {
            true => format!("\nclass {name}({typed_dict}):\n"),
            false => format!("\n{name} = {typed_dict}({}, {{\n", quoted(name)),
        };
        for (field, kind) in fields {
            let note = remark(&field.note.text(), FIELD_TEXT);
            let _ = match attributes {
                true => writeln!(out, "    {}: {kind}{note}", field.name),
                // Quoted, because it may refer to itself or to a class further down.
                false => writeln!(out, "    {}: {},{note}", quoted(&field.name), quoted(&kind)),
            };
        }
        if !attributes {
            out.push_str("})\n");
        }
        self.stub.types.push_str(&out);
    }
}

/// The text in the brackets of `Literal[…]`, if the type is one.
fn literal_inside(written: &str) -> Option<&str> {
    written.strip_prefix("Literal[")?.strip_suffix(']')
}

/// The text in the brackets of `Literal`; `None` for a number with a fraction, which Python cannot express.
fn literal(value: &serde_json::Value) -> Option<String> {
    match (value.as_str(), value.as_bool()) {
        (Some(text), _) => Some(quoted(text)),
        (None, Some(true)) => Some("True".to_owned()),
        (None, Some(false)) => Some("False".to_owned()),
        (None, None) => (!value.is_f64()).then(|| value.to_string()),
    }
}

/// Whether a field can be written as an attribute: ASCII, no keyword, not mangled.
fn is_attribute(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let identifier = starts && name.chars().all(|part| part.is_ascii_alphanumeric() || part == '_');
    // A field called `str` would be what `str` means in the lines after it.
    let own = OWN_TYPES.contains(&name);
    identifier && !name.starts_with("__") && !is_python_keyword(name) && !own
}

/// Whether a field can be written as a parameter.
fn is_parameter(name: &str) -> bool {
    (is_attribute(name) || OWN_TYPES.contains(&name)) && name != "self" && name != "others"
}
