//! The demo's MCP server: a separate process that speaks over standard streams, like any other
//! server, and serves a made-up repository.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::commits::{Repository, repository};

/// The tool that lists all commits.
pub(super) const LIST: &str = "list_commits";
const GET: &str = "get_commit";

/// Serves the parent process until it closes the streams.
pub(super) async fn serve() -> anyhow::Result<()> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let stop = CancellationToken::new();
    Ok(belljar_server::serve_streams(DemoServer, input, output, stop).await?)
}

#[derive(Debug)]
struct DemoServer;

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let this = Implementation::new("belljar-demo", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(this)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        answer(&request.name, &arguments).map(CallToolResponse::from)
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name, text, input: Value, output: Value| {
        Tool::new(name, text, object(input))
            .with_raw_output_schema(Arc::new(object(output)))
            .with_annotations(ToolAnnotations::new().read_only(true))
    };
    let repo = json!({ "type": "string", "description": "owner/name" });
    let list = json!({
        "type": "object",
        "properties": { "repo": repo, "since": { "type": "string", "description": "a date" } },
        "required": ["repo"],
        "additionalProperties": false,
    });
    let get = json!({
        "type": "object",
        "properties": { "repo": repo, "sha": { "type": "string" } },
        "required": ["repo", "sha"],
        "additionalProperties": false,
    });
    let many = fields(json!({ "commits": { "type": "array", "items": commit_schema() } }));
    vec![
        tool(LIST, "Lists commits with the files they change, oldest first.", list, many),
        tool(GET, "Gets one commit with the files it changes.", get, commit_schema()),
    ]
}

fn commit_schema() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let author = fields(json!({ "name": text, "email": text }));
    let file = fields(json!({
        "path": text, "status": text, "additions": number, "deletions": number, "blob": text,
    }));
    fields(json!({
        "sha": text, "parents": { "type": "array", "items": text }, "author": author,
        "date": text, "message": text, "files": { "type": "array", "items": file },
    }))
}

/// A schema of an object that requires all of these fields.
fn fields(properties: Value) -> Value {
    let required: Vec<String> =
        properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Answers a call of one of the demo's tools.
fn answer(tool: &str, arguments: &JsonObject) -> Result<CallToolResult, ErrorData> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    match tool {
        LIST => {
            let mut found = repository();
            found.keep_since(text("since"));
            Ok(listed(&found))
        }
        GET => Ok(match repository().find(text("sha")) {
            Some(commit) => structured("one commit".to_owned(), json!(commit)),
            None => CallToolResult::error(vec![ContentBlock::text(format!(
                "there is no commit {}",
                text("sha")
            ))]),
        }),
        other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
    }
}

fn listed(repository: &Repository) -> CallToolResult {
    structured(format!("{} commits", repository.len()), json!(repository))
}

/// The value as structured content, beside a short text for people.
fn structured(text: String, value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}

#[cfg(test)]
mod tests;
