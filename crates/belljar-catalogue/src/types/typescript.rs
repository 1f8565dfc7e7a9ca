//! The catalogue as declarations of TypeScript.

use std::fmt::Write as _;

use super::{
    names::TypeNames,
    outline::{ResultType, ServerOutline, ToolOutline, ValueShapes, outlines},
    text::{FIELD_TEXT, TOOL_TEXT, doc_comment, mentioned, quoted},
};
use crate::{
    Tool,
    names::{Catalogue, Style},
    schema::{ObjectType, Rest, Schema, TupleType, Type},
};

/// The declarations that every program has, whatever the tools.
const PREAMBLE: &str = include_str!("preamble.d.ts");

/// The chosen tools as a `.d.ts`: `mcp.server.tool(args)` for each, and what else code can call.
pub fn typescript(
    catalogue: &Catalogue,
    chosen: impl Fn(&Tool) -> bool,
    shapes: &ValueShapes,
) -> String {
    let mut names = TypeNames::default();
    let (mut types, mut servers) = (String::new(), String::new());
    for server in outlines(catalogue, &chosen, shapes, Style::Camel) {
        write_server(&server, &mut names, &mut types, &mut servers);
    }
    let mcp = if servers.is_empty() { "{}".to_owned() } else { format!("{{\n{servers}}}") };
    let types = if types.is_empty() { types } else { format!("\n{types}") };
    format!("{PREAMBLE}{types}\n/** The tools, by server. */\ndeclare const mcp: {mcp};\n")
}

fn write_server(
    server: &ServerOutline<'_>,
    names: &mut TypeNames,
    types: &mut String,
    out: &mut String,
) {
    // The exact name always resolves, so a server without an alias is still there in quotes.
    let key = server.alias.clone().unwrap_or_else(|| quoted(server.name));
    let _ = writeln!(out, "  readonly {key}: {{");
    for outline in &server.tools {
        let written = names_of_definitions(outline, names);
        types.push_str(&written.definitions());
        match &outline.alias {
            Some(alias) => out.push_str(&written.method(alias, "    ")),
            // Names beyond ASCII are written as they are; the others could be mistaken.
            None if !outline.tool.name.is_ascii() => {
                out.push_str(&written.method(&quoted(&outline.tool.name), "    "));
            }
            None => {
                let name = mentioned(&outline.tool.name);
                let call = mentioned(&outline.tool.qualified_name());
                let _ = writeln!(
                    out,
                    "    // {name} has no name of its own here: tools.call({call}, args)"
                );
            }
        }
    }
    out.push_str("  };\n");
}

/// One tool with the names of its types.
pub(super) struct NamedOutline<'a> {
    outline: &'a ToolOutline<'a>,
    arguments: Vec<String>,
    result: Vec<String>,
}

/// Gives each definition of a tool its name.
pub(super) fn names_of_definitions<'a>(
    outline: &'a ToolOutline<'a>,
    names: &mut TypeNames,
) -> NamedOutline<'a> {
    let mut named = |schema: &Schema| -> Vec<String> {
        let prefix = format!("{} {}", outline.tool.server, outline.tool.name);
        let give =
            |definition: &crate::schema::Definition| names.give(&[&prefix, &definition.name]);
        schema.definitions.iter().map(give).collect()
    };
    let arguments = named(&outline.arguments);
    let result = match &outline.result {
        ResultType::Declared(schema) | ResultType::Learned(schema) => named(schema),
        ResultType::Anything => Vec::new(),
    };
    NamedOutline { outline, arguments, result }
}

impl NamedOutline<'_> {
    /// The types the method refers to by name.
    pub(super) fn definitions(&self) -> String {
        let mut out = define(&self.outline.arguments, &self.arguments);
        if let ResultType::Declared(schema) | ResultType::Learned(schema) = &self.outline.result {
            out.push_str(&define(schema, &self.result));
        }
        out
    }

    /// The method, with its description as a comment.
    fn method(&self, name: &str, indent: &str) -> String {
        let tool = self.outline.tool;
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let comment = doc_comment(text, TOOL_TEXT, indent);
        format!("{comment}{indent}{name}{};\n", self.signature(indent))
    }

    /// The part after the name: `(args: {…}): Promise<…>`.
    pub(super) fn signature(&self, indent: &str) -> String {
        let optional = if self.outline.takes_nothing_needed() { "?" } else { "" };
        let schema = &self.outline.arguments;
        let empty = |object: &ObjectType| object.fields.is_empty() && object.rest.typed().is_none();
        let arguments = if matches!(&schema.root, Type::Object(object) if empty(object)) {
            "Record<string, never>".to_owned()
        } else {
            TypePrinter { names: &self.arguments }.written(&schema.root, indent)
        };
        let result = match &self.outline.result {
            ResultType::Declared(schema) => {
                TypePrinter { names: &self.result }.written(&schema.root, indent)
            }
            ResultType::Learned(schema) => {
                let learned = TypePrinter { names: &self.result }.written(&schema.root, indent);
                format!("/* as seen so far */ {learned}")
            }
            ResultType::Anything => "any".to_owned(),
        };
        format!("(args{optional}: {arguments}): Promise<{result}>")
    }
}

fn define(schema: &Schema, names: &[String]) -> String {
    let printer = TypePrinter { names };
    let mut out = String::new();
    for (definition, name) in schema.definitions.iter().zip(names) {
        let _ = writeln!(out, "type {name} = {};", printer.written(&definition.kind, ""));
    }
    out
}

/// Writes types that refer to definitions by these names.
pub(super) struct TypePrinter<'a> {
    pub(super) names: &'a [String],
}

impl TypePrinter<'_> {
    /// The type, continued on lines with this indent.
    pub(super) fn written(&self, kind: &Type, indent: &str) -> String {
        match kind {
            Type::Unknown => "unknown".to_owned(),
            Type::Never => "never".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Integer | Type::Number => "number".to_owned(),
            Type::String => "string".to_owned(),
            Type::Literal(value) => value.as_str().map_or_else(|| value.to_string(), quoted),
            Type::Array(items) => format!("{}[]", self.enclosed(items, indent)),
            Type::Tuple(tuple) => self.tuple(tuple, indent),
            Type::Object(object) => self.object(object, indent),
            Type::Union(types) => self.joined(types, " | ", indent),
            Type::Both(types) => self.joined(types, " & ", indent),
            Type::Named(name) => {
                self.names.get(*name).cloned().unwrap_or_else(|| "unknown".to_owned())
            }
        }
    }

    fn joined(&self, types: &[Type], between: &str, indent: &str) -> String {
        let types: Vec<String> = types.iter().map(|kind| self.enclosed(kind, indent)).collect();
        types.join(between)
    }

    /// In brackets where an operator beside it would bind stronger.
    fn enclosed(&self, kind: &Type, indent: &str) -> String {
        let written = self.written(kind, indent);
        let compound = matches!(kind, Type::Union(_) | Type::Both(_));
        if compound { format!("({written})") } else { written }
    }

    fn tuple(&self, tuple: &TupleType, indent: &str) -> String {
        let mut places: Vec<String> = Vec::new();
        for (at, item) in tuple.items.iter().enumerate() {
            let optional = if at < tuple.required { "" } else { "?" };
            places.push(format!("{}{optional}", self.enclosed(item, indent)));
        }
        if let Some(rest) = &tuple.rest {
            places.push(format!("...{}[]", self.enclosed(rest, indent)));
        }
        format!("[{}]", places.join(", "))
    }

    fn object(&self, object: &ObjectType, indent: &str) -> String {
        if object.fields.is_empty() {
            return match &object.rest {
                Rest::Closed => "{}".to_owned(),
                Rest::Unsaid => "Record<string, unknown>".to_owned(),
                Rest::Typed(kind) => format!("{{ [key: string]: {} }}", self.written(kind, indent)),
            };
        }
        let deeper = format!("{indent}  ");
        let mut out = String::from("{\n");
        for field in &object.fields {
            out.push_str(&doc_comment(&field.note.text(), FIELD_TEXT, &deeper));
            let optional = if field.required { "" } else { "?" };
            let kind = self.written(&field.kind, &deeper);
            let _ = writeln!(out, "{deeper}{}{optional}: {kind};", key(&field.name));
        }
        if let Some(rest) = object.rest.typed() {
            let _ =
                writeln!(out, "{deeper}[key: string]: {};", self.any_field(object, rest, &deeper));
        }
        let _ = write!(out, "{indent}}}");
        out
    }

    /// The type of further fields: TypeScript requires it to include the types of the known ones.
    fn any_field(&self, object: &ObjectType, rest: &Type, indent: &str) -> String {
        if *rest == Type::Unknown {
            return "unknown".to_owned();
        }
        let mut types: Vec<String> = vec![self.enclosed(rest, indent)];
        for field in &object.fields {
            let kind = self.enclosed(&field.kind, indent);
            if !types.contains(&kind) {
                types.push(kind);
            }
        }
        if object.fields.iter().any(|field| !field.required) {
            types.push("undefined".to_owned());
        }
        types.join(" | ")
    }
}

/// The name of a field, in quotes unless it is an identifier.
fn key(name: &str) -> String {
    let identifier = name
        .starts_with(|first: char| first.is_ascii_alphabetic() || "_$".contains(first))
        && name.chars().all(|part| part.is_ascii_alphanumeric() || "_$".contains(part));
    if identifier { name.to_owned() } else { quoted(name) }
}
