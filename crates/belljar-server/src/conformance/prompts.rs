//! Fixture prompts and resources.

use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceTemplate,
    },
};
use serde_json::{Value, json};

use super::{content::PNG, rounds, typed};

pub(super) fn prompts() -> Result<Vec<Prompt>, ErrorData> {
    let about = "A fixture of the conformance suite";
    let argument = |name: &str| json!({"name": name, "description": name, "required": true});
    typed(json!([
        {"name": "test_simple_prompt", "description": about},
        {"name": "test_prompt_with_arguments", "description": about,
            "arguments": [argument("arg1"), argument("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": about,
            "arguments": [argument("resourceUri")]},
        {"name": "test_prompt_with_image", "description": about},
        {"name": "test_input_required_result_prompt", "description": about},
    ]))
}

pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let given = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        given.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let text = |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match request.name.as_str() {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.".to_owned())]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."});
            json!([
                {"role": "user", "content": {"type": "resource", "resource": resource}},
                text("Please process the embedded resource above.".to_owned())])
        }
        "test_prompt_with_image" => json!([
            {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
            text("Please analyze the image above.".to_owned())]),
        "test_input_required_result_prompt" => match rounds::prompt_context(request)? {
            Ok(context) => json!([text(format!("Use this context: {context}"))]),
            Err(wanted) => return Ok(wanted.into()),
        },
        name => return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None)),
    };
    Ok(GetPromptResult::new(typed(messages)?).into())
}

pub(super) fn resources() -> Result<Vec<Resource>, ErrorData> {
    let resource = |name: &str, kind: &str| {
        json!({"uri": format!("test://{name}"), "name": name, "mimeType": kind,
            "description": "A fixture of the conformance suite"})
    };
    typed(json!([
        resource("static-text", "text/plain"),
        resource("static-binary", "image/png"),
        resource("watched-resource", "text/plain"),
    ]))
}

pub(super) fn templates() -> Result<Vec<ResourceTemplate>, ErrorData> {
    typed(json!([{"uriTemplate": "test://template/{id}/data", "name": "template",
        "mimeType": "application/json", "description": "A fixture of the conformance suite"}]))
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let contents = match uri {
        "test://static-text" | "test://watched-resource" => json!([{"uri": uri,
            "mimeType": "text/plain", "text": "This is the content of the static text resource."}]),
        "test://static-binary" => json!([{"uri": uri, "mimeType": "image/png", "blob": PNG}]),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|id| id.strip_suffix("/data"));
            let missing =
                || ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})));
            let id = id.ok_or_else(missing)?;
            let data = format!("Data for ID: {id}");
            let text = json!({"id": id, "templateTest": true, "data": data}).to_string();
            json!([{"uri": uri, "mimeType": "application/json", "text": text}])
        }
    };
    Ok(ReadResourceResult::new(typed(contents)?).into())
}
