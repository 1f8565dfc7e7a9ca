//! One tool in a few lines, for a model that is about to call it.

use super::{
    names::TypeNames,
    outline::{ToolOutline, ValueShapes},
    text::{TOOL_TEXT, quoted},
    typescript::names_of_definitions,
};
use crate::{
    Tool,
    names::{Catalogue, Style},
    visible::prose,
};

/// The purpose of a tool, its signature in TypeScript, and how Python calls it.
pub fn describe(catalogue: &Catalogue, tool: &Tool, shapes: &ValueShapes) -> String {
    let outline = ToolOutline::new(catalogue, tool, shapes, Style::Camel);
    let mut names = TypeNames::default();
    let written = names_of_definitions(&outline, &mut names);
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let mut lines = prose(text, TOOL_TEXT);
    lines.push(format!("{}{}", called(catalogue, tool, Style::Camel), written.signature("")));
    lines.extend(written.definitions().lines().map(str::to_owned));
    lines.push(format!("In Python: {}(name=value, …)", called(catalogue, tool, Style::Snake)));
    lines.join("\n")
}

/// How code names the tool.
fn called(catalogue: &Catalogue, tool: &Tool, style: Style) -> String {
    let server = match catalogue.server_alias(&tool.server, style) {
        Some(alias) => format!("mcp.{alias}"),
        None => format!("mcp[{}]", quoted(&tool.server)),
    };
    match catalogue.alias(tool, style) {
        Some(alias) => format!("{server}.{alias}"),
        None => format!("{server}[{}]", quoted(&tool.name)),
    }
}
