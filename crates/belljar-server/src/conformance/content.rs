//! Fixture tools: each kind of content, errors, logging, progress, sampling, elicitation.

#![expect(deprecated, reason = "the suite tests what older revisions still have")]

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
        ElicitRequestParams, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, ProtocolVersion, Tool,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::{Value, json};

use super::{STEP, typed};

/// A PNG image of one red pixel.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const PLAIN: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

/// The fixture tools in `tools/list`.
pub(super) fn tools() -> Result<Vec<Tool>, ErrorData> {
    let needs = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]});
    let header = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}}});
    let mut all = vec![
        tool("test_sampling", needs("prompt"))?,
        tool("test_elicitation", needs("message"))?,
        tool("test_x_mcp_header", header)?,
        tool("json_schema_2020_12_tool", schema_2020_12())?,
    ];
    for name in PLAIN {
        all.push(tool(name, json!({"type": "object", "properties": {}}))?);
    }
    Ok(all)
}

fn tool(name: &'static str, schema: Value) -> Result<Tool, ErrorData> {
    Ok(Tool::new(name, "A fixture of the conformance suite", Arc::new(typed(schema)?)))
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
            "street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// A result of one text.
pub(super) fn text(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    content(json!([{"type": "text", "text": text.into()}]))
}

fn content(blocks: Value) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(typed(blocks)?).into())
}

pub(super) async fn call(
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    match &*request.name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(json!([image])),
        "test_audio_content" => {
            content(json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]))
        }
        "test_embedded_resource" => content(json!([{"type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain",
            "text": "This is an embedded resource content."}}])),
        "test_multiple_content_types" => content(json!([
            {"type": "text", "text": "Multiple content types test:"}, image,
            {"type": "resource", "resource": {"uri": "test://mixed-content-resource",
                "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}}])),
        "test_error_handling" => {
            let said = json!([{"type": "text", "text":
                "This tool intentionally returns an error for testing"}]);
            Ok(CallToolResult::error(typed(said)?).into())
        }
        "test_tool_with_logging" | "test_logging_tool" => logging(&context).await,
        "test_tool_with_progress" => progress(&context).await,
        "test_reconnection" => text("Reconnection test completed successfully"),
        "test_x_mcp_header" => text(argument("region")),
        "json_schema_2020_12_tool" => text("accepted"),
        "test_missing_capability" => missing(&context),
        "test_sampling" => sampling(&context, argument("prompt")).await,
        "test_elicitation" => {
            let schema = json!({"type": "object", "required": ["username", "email"], "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"}}});
            elicit(&context, argument("message"), schema, "User response").await
        }
        "test_elicitation_sep1034_defaults" => {
            elicit(&context, "Please review", defaults(), "Elicitation completed").await
        }
        "test_elicitation_sep1330_enums" => {
            elicit(&context, "Please choose", enums(), "Elicitation completed").await
        }
        name => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
    }
}

async fn logging(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let stateless = context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
    let wanted = !stateless || context.meta.log_level().is_some();
    for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(step));
            context.peer.notify_logging_message(message).await.map_err(failed)?;
        }
        tokio::time::sleep(STEP).await;
    }
    text("Tool with logging executed successfully")
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let token = context.meta.get_progress_token();
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let step = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
            context.peer.notify_progress(step).await.map_err(failed)?;
        }
        tokio::time::sleep(STEP).await;
    }
    text("Tool with progress executed successfully")
}

fn missing(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let wanted: ClientCapabilities = typed(json!({"sampling": {}}))?;
    match context.client_capabilities() {
        Some(declared) if declared.sampling.is_some() => text("the capability is there"),
        _ => Err(ErrorData::missing_required_client_capability(wanted)),
    }
}

async fn sampling(
    context: &RequestContext<RoleServer>,
    prompt: &str,
) -> Result<CallToolResponse, ErrorData> {
    let request = typed(json!({"maxTokens": 100, "messages": [
        {"role": "user", "content": {"type": "text", "text": prompt}}]}))?;
    let answer = context.peer.create_message(request).await.map_err(failed)?;
    let answer = serde_json::to_value(&answer.message.content).unwrap_or_default();
    text(format!("LLM response: {answer}"))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
    said: &str,
) -> Result<CallToolResponse, ErrorData> {
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: typed(schema)?,
    };
    let answer = context.peer.create_elicitation(question).await.map_err(failed)?;
    let action = serde_json::to_value(&answer.action).unwrap_or_default();
    let content = answer.content.unwrap_or_default();
    text(format!("{said}: action={action}, content={content}"))
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true}}, "required": []})
}

fn enums() -> Value {
    let titled = |kind: &str| {
        json!([
            {"const": "value1", "title": format!("First {kind}")},
            {"const": "value2", "title": format!("Second {kind}")},
            {"const": "value3", "title": format!("Third {kind}")}])
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}}, "required": []})
}

fn failed(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
