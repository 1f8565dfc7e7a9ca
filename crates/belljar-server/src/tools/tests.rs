//! What a model always has to read is small (E4).

use super::*;

/// Tokens are counted as bytes through a number that was measured: with the tokenizer `o200k_base`
/// what clients hand to models (name, description, inputSchema) has 3.98 bytes a token, with
/// `cl100k_base` 4.1. outputSchema, titles and annotations most clients keep for themselves.
#[test]
fn e4_everything_said_of_the_tools_is_under_400_tokens() {
    let all = serde_json::to_value(own(WorkflowTools::Offered)).unwrap();
    let mut shown = all.clone();
    for tool in shown.as_array_mut().unwrap() {
        let is_shown = |name: &str| ["name", "description", "inputSchema"].contains(&name);
        tool.as_object_mut().unwrap().retain(|name, _| is_shown(name));
    }
    for (said, most) in [(shown, 400.0), (all, 720.0)] {
        let text = said.to_string();
        let tokens = text.len() as f64 / 3.95;
        assert!(tokens < most, "{tokens} tokens: {text}");
    }
}

#[test]
fn every_tool_says_what_it_takes_and_gives_and_what_it_does_to_the_world() {
    let four: Vec<_> = own(WorkflowTools::Off).into_iter().map(|tool| tool.name).collect();
    assert_eq!(four, NAMES.split_at(4).0);
    let tools = own(WorkflowTools::Offered);
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, NAMES);
    for tool in tools {
        assert_eq!(tool.input_schema.get("type"), Some(&json!("object")), "{}", tool.name);
        let output = tool.output_schema.unwrap();
        assert_eq!(output.get("type"), Some(&json!("object")), "{}", tool.name);
        assert!(tool.title.is_some() && tool.annotations.is_some(), "{}", tool.name);
    }
}

/// E2: what a run answers with has names and types, `state` among them.
#[test]
fn e2_the_output_of_a_run_is_described() {
    let tools = own(WorkflowTools::Off);
    for name in [EXECUTE, GET_RUN] {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let schema = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
        for (field, kind) in [
            ("status", "string"),
            ("logs", "array"),
            ("metrics", "object"),
            ("error", "object"),
            ("state", "object"),
        ] {
            assert_eq!(schema["properties"][field]["type"], kind, "{name}: {field}");
        }
        assert!(schema["properties"].get("result").is_some());
    }
}

/// Only fields that the decoder knows are advertised, and all of them but `max_output_tokens`.
#[test]
fn the_schema_and_the_decoder_agree() {
    let Value::Object(properties) = execute_input()["properties"].take() else { panic!() };
    let mut arguments: JsonObject =
        properties.keys().map(|name| (name.clone(), Value::Null)).collect();
    arguments.insert("code".to_owned(), json!("1"));
    assert!(crate::request::decode_execute(arguments).is_ok());
    assert_eq!(properties.len(), 9);
}
