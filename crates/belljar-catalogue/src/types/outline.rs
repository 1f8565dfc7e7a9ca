//! The parts of a tool that are printed, in any language.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Tool,
    names::{Catalogue, Style},
    schema::{ObjectType, Rest, Schema, Type, is_wrapped},
    shape::ValueShape,
};

/// Shapes learned from results, by the qualified name of the tool.
pub type ValueShapes = BTreeMap<String, ValueShape>;

/// A server with those of its tools that are printed.
pub(super) struct ServerOutline<'a> {
    pub(super) name: &'a str,
    /// `None` if code has to write its name in quotes.
    pub(super) alias: Option<String>,
    pub(super) tools: Vec<ToolOutline<'a>>,
}

/// A tool with the types that are printed.
pub(super) struct ToolOutline<'a> {
    pub(super) tool: &'a Tool,
    /// `None` if it has to be called with `tools.call`.
    pub(super) alias: Option<String>,
    pub(super) arguments: Schema,
    pub(super) result: ResultType,
}

/// The type of a result, and where it is known from.
pub(super) enum ResultType {
    /// The server declares it.
    Declared(Schema),
    /// Learned from results so far.
    Learned(Schema),
    /// Unknown: text, or any JSON in it.
    Anything,
}

/// The chosen tools, by server.
pub(super) fn outlines<'a>(
    catalogue: &'a Catalogue,
    chosen: &dyn Fn(&Tool) -> bool,
    shapes: &ValueShapes,
    style: Style,
) -> Vec<ServerOutline<'a>> {
    let servers = catalogue.servers().map(|name| ServerOutline {
        name,
        alias: catalogue.server_alias(name, style),
        tools: catalogue
            .tools_of(name)
            .filter(|tool| chosen(tool))
            .map(|tool| ToolOutline::new(catalogue, tool, shapes, style))
            .collect(),
    });
    servers.filter(|server| !server.tools.is_empty()).collect()
}

impl<'a> ToolOutline<'a> {
    pub(super) fn new(
        catalogue: &Catalogue,
        tool: &'a Tool,
        shapes: &ValueShapes,
        style: Style,
    ) -> Self {
        let mut arguments = Schema::read(&tool.input_schema);
        // Arguments are always an object, also where the schema forgets to say so.
        if matches!(arguments.root, Type::Unknown | Type::Never) {
            let rest = Rest::Typed(Box::new(Type::Unknown));
            arguments.root = Type::Object(ObjectType { fields: Vec::new(), rest });
        }
        Self {
            tool,
            alias: catalogue.alias(tool, style),
            arguments,
            result: returned(tool, shapes),
        }
    }

    /// Whether it can be called without arguments.
    pub(super) fn takes_nothing_needed(&self) -> bool {
        let Type::Object(object) = &self.arguments.root else { return false };
        object.fields.iter().all(|field| !field.required)
    }
}

fn returned(tool: &Tool, shapes: &ValueShapes) -> ResultType {
    let declared = tool.output_schema.as_ref().map(|schema| match schema.get("properties") {
        // The result rule unwraps it, so it is written unwrapped, with the definitions it refers to.
        Some(properties) if is_wrapped(schema) => match properties.get("result") {
            Some(inner) => Schema::read(&with_definitions(inner, schema)),
            None => Schema::read(schema),
        },
        _ => Schema::read(schema),
    });
    let learned = || shapes.get(&tool.qualified_name()).filter(|shape| !shape.is_empty());
    match (declared, learned()) {
        (Some(schema), _) if schema.root != Type::Unknown => ResultType::Declared(schema),
        (_, Some(shape)) => ResultType::Learned(Schema::read(&shape.to_schema())),
        (_, None) => ResultType::Anything,
    }
}

fn with_definitions(inner: &Value, outer: &Value) -> Value {
    let mut inner = inner.clone();
    if let (Some(fields), Some(outer)) = (inner.as_object_mut(), outer.as_object()) {
        for keyword in ["$defs", "definitions"] {
            if let Some(definitions) = outer.get(keyword) {
                fields.entry(keyword).or_insert_with(|| definitions.clone());
            }
        }
    }
    inner
}
