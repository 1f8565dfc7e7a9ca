//! The part that a model always has to read is small (E4).

use super::*;

/// `scripts/answer-tokens` counts with tokenizers: what clients hand to models (name, description,
/// inputSchema) has 4.22 bytes for each token of `o200k_base` and 4.37 for each of `cl100k_base`. The rest
/// most clients keep for themselves.
#[test]
fn e4_everything_said_of_the_tools_is_under_400_tokens() {
    let all = serde_json::to_value(own(WorkflowTools::Offered)).unwrap();
    let mut shown = all.clone();
    for tool in shown.as_array_mut().unwrap() {
        let is_shown = |name: &str| ["name", "description", "inputSchema"].contains(&name);
        tool.as_object_mut().unwrap().retain(|name, _| is_shown(name));
    }
    let text = shown.to_string();
    let tokens = text.len() as f64 / 4.22;
    assert!(tokens < 400.0, "{tokens} tokens: {text}");
}

/// Strict schemas need a type everywhere, and close every object.
#[test]
fn e2_every_property_has_a_type() {
    fn check(schema: &Value, place: &str) {
        assert!(schema.get("type").is_some(), "{place}: {schema}");
        if let Some(items) = schema.get("items") {
            check(items, &format!("{place}[]"));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            check(property, &format!("{place}.{name}"));
        }
    }
    for tool in own(WorkflowTools::Offered) {
        check(&Value::Object((*tool.input_schema).clone()), &tool.name);
        check(&Value::Object((*tool.output_schema.unwrap()).clone()), &tool.name);
        let properties = tool.input_schema.get("properties").and_then(Value::as_object);
        let is_empty =
            |schema: &Value| schema["type"] == "object" && schema.get("properties").is_none();
        assert!(
            !properties.unwrap().values().any(is_empty),
            "{}: closed, it takes nothing",
            tool.name
        );
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
        for (field, kind) in
            [("status", "string"), ("logs", "string"), ("metrics", "object"), ("error", "object")]
        {
            assert_eq!(schema["properties"][field]["type"], kind, "{name}: {field}");
        }
        for any in ["result", "state"] {
            assert!(schema["properties"][any]["type"].is_array(), "{any}");
        }
    }
}

/// Only fields that the decoder knows are advertised; the manual has the others.
#[test]
fn the_schema_and_the_decoder_agree() {
    let Value::Object(properties) = execute_input()["properties"].take() else { panic!() };
    let mut arguments: JsonObject =
        properties.keys().map(|name| (name.clone(), Value::Null)).collect();
    arguments.insert("code".to_owned(), json!("1"));
    assert!(crate::request::decode_execute(arguments).is_ok());
    for field in
        ["code", "language", "engine", "intent", "tools", "context", "network", "sandbox_config"]
            .into_iter()
            .chain(["session_id", "max_output_tokens", "durable"])
    {
        assert!(properties.contains_key(field) || manual().contains(field), "{field}");
    }
}
