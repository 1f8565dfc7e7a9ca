//! Fixture tools that ask the client for something and are then called again (2026-07-28).

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, GetPromptRequestParams,
        InputRequests, InputRequiredResult, InputResponses, RequestStateCodec,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{content::text, typed};

/// Fixtures protect nothing, so their key is not a secret.
const KEY: &[u8; 32] = b"the key of the conformance suite";

fn ask(message: &str, field: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

fn sample(prompt: &str) -> Value {
    json!({"method": "sampling/createMessage", "params": {"maxTokens": 100, "messages": [
        {"role": "user", "content": {"type": "text", "text": prompt}}]}})
}

fn want(questions: Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    let questions: InputRequests = typed(questions)?;
    let sealed = state.map(|state| codec().seal(state.as_bytes()));
    Ok(InputRequiredResult::new(Some(questions), sealed))
}

fn codec() -> RequestStateCodec {
    RequestStateCodec::new_unchecked(KEY.as_slice())
}

/// The step that the client has reached; `None` at the first.
fn state(request: &CallToolRequestParams) -> Result<Option<String>, ErrorData> {
    let Some(sealed) = &request.request_state else { return Ok(None) };
    let refused = || ErrorData::invalid_params("requestState is not valid for this request", None);
    let opened = codec().open(sealed).map_err(|_| refused())?;
    String::from_utf8(opened).map(Some).map_err(|_| refused())
}

/// The answer under a key. An answer that is not an object is refused; `None` means to ask again.
fn answer<'a>(
    answers: Option<&'a InputResponses>,
    key: &str,
) -> Result<Option<&'a Value>, ErrorData> {
    match answers.and_then(|answers| answers.get(key)) {
        Some(answer) if !answer.is_object() => {
            Err(ErrorData::invalid_params(format!("inputResponses.{key} must be an object"), None))
        }
        answer => Ok(answer),
    }
}

pub(super) fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answers = request.input_responses.as_ref();
    let name = ask("What is your name?", "name", "string");
    let roots = json!({"method": "roots/list", "params": {}});
    let one =
        |key: &str, question: Value, state: Option<&str>| -> Result<CallToolResponse, ErrorData> {
            match answer(answers, key)? {
                Some(answer) => text(format!("{key}: {answer}")),
                None => Ok(want(json!({key: question}), state)?.into()),
            }
        };
    match &*request.name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            one("user_name", name, None)
        }
        "test_input_required_result_sampling" => {
            one("capital_question", sample("What is the capital of France?"), None)
        }
        "test_input_required_result_list_roots" => one("client_roots", roots, None),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => match state(request)? {
            Some(_) => text("state-ok"),
            None => one("confirm", ask("Please confirm", "ok", "boolean"), Some("first")),
        },
        "test_input_required_result_multiple_inputs" => match state(request)? {
            Some(_) if answers.is_some_and(|answers| answers.len() >= 3) => text("all there"),
            _ => {
                let greeting = sample("Generate a greeting");
                let all = json!({"user_name": name, "greeting": greeting, "client_roots": roots});
                Ok(want(all, Some("all"))?.into())
            }
        },
        "test_input_required_result_multi_round" => multi_round(request, answers),
        "test_input_required_result_capabilities" => {
            let declared = context.client_capabilities().unwrap_or_default();
            Ok(want(allowed(&declared), None)?.into())
        }
        name => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
    }
}

fn multi_round(
    request: &CallToolRequestParams,
    answers: Option<&InputResponses>,
) -> Result<CallToolResponse, ErrorData> {
    match state(request)?.as_deref() {
        Some("two") if answer(answers, "step2")?.is_some() => text("three rounds done"),
        Some("one") if answer(answers, "step1")?.is_some() => {
            let question = ask("Step 2: What is your favorite color?", "color", "string");
            Ok(want(json!({"step2": question}), Some("two"))?.into())
        }
        _ => {
            let question = ask("Step 1: What is your name?", "name", "string");
            Ok(want(json!({"step1": question}), Some("one"))?.into())
        }
    }
}

/// Questions for the capabilities that the client declared.
fn allowed(declared: &ClientCapabilities) -> Value {
    let mut questions = serde_json::Map::new();
    if declared.elicitation.is_some() {
        questions.insert("user_name".to_owned(), ask("What is your name?", "name", "string"));
    }
    if declared.sampling.is_some() {
        questions.insert("greeting".to_owned(), sample("Generate a greeting"));
    }
    Value::Object(questions)
}

/// The context that a prompt needs, or the question for it.
pub(super) fn prompt_context(
    request: &GetPromptRequestParams,
) -> Result<Result<Value, InputRequiredResult>, ErrorData> {
    match answer(request.input_responses.as_ref(), "user_context")? {
        Some(answer) => Ok(Ok(answer.pointer("/content/context").cloned().unwrap_or_default())),
        None => {
            let question = ask("What context should the prompt use?", "context", "string");
            Ok(Err(want(json!({"user_context": question}), None)?))
        }
    }
}
