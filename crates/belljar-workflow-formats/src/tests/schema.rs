//! The schema for editors takes every example, and refuses what reading refuses.

use serde_json::Value;

use super::examples::ALL;
use crate::{CodeExecution, FormatOptions, read, schema, tree};

fn json(text: &str) -> Value {
    let mut notes = crate::fault::Diagnostics::new("x");
    tree::parse(text, &mut notes).map(|node| node.json()).unwrap_or_default()
}

#[test]
fn every_example_fits_the_schema() {
    let schema = schema();
    for (name, text) in ALL {
        assert_eq!(check(&schema, &schema, &json(text)), Ok(()), "{name}");
    }
}

#[test]
fn a_slip_does_not_fit() {
    let schema = schema();
    for text in [
        "nodes: [{name: a, rum: x}]",
        "nodes: [{name: a, run: x, goto: [{too: b}]}]",
        "tasks: [{tool: 'a:b'}]",
        "tasks: [{id: a, tool: 'a:b', depend_on: [b]}]",
        "tasks: [{id: a, type: mcp_toll}]",
        "settings: {code: {sandbox_mode: e2b}}\nnodes: [{name: a, run: x}]",
        "hello",
    ] {
        assert!(check(&schema, &schema, &json(text)).is_err(), "{text}");
        assert!(
            read("x", text, &FormatOptions { code: CodeExecution::WithShell }).is_err(),
            "{text}"
        );
    }
}

/// As much of JSON Schema as this schema uses.
fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(rules) = schema.as_object() else { return Ok(()) };
    for (rule, by) in rules {
        let fits = match rule.as_str() {
            "$ref" => {
                let path = by.as_str().unwrap_or_default().trim_start_matches('#');
                check(root, root.pointer(path).expect("a definition"), value).is_ok()
            }
            "anyOf" => by
                .as_array()
                .is_some_and(|any| any.iter().any(|one| check(root, one, value).is_ok())),
            "enum" => by.as_array().is_some_and(|all| all.contains(value)),
            "const" => by == value,
            "type" => match by.as_array() {
                Some(kinds) => kinds.iter().any(|kind| is(kind, value)),
                None => is(by, value),
            },
            "required" => by.as_array().is_some_and(|names| {
                names.iter().all(|name| value.get(name.as_str().unwrap_or_default()).is_some())
            }),
            "properties" => by.as_object().is_some_and(|fields| {
                fields.iter().all(|(name, rule)| {
                    value.get(name).is_none_or(|field| check(root, rule, field).is_ok())
                })
            }),
            "additionalProperties" => value.as_object().is_none_or(|fields| {
                let known = |name: &String| schema["properties"].get(name).is_some();
                fields
                    .iter()
                    .filter(|(name, _)| !known(name))
                    .all(|(_, field)| by.as_bool() != Some(false) && check(root, by, field).is_ok())
            }),
            "items" => value
                .as_array()
                .is_none_or(|all| all.iter().all(|one| check(root, by, one).is_ok())),
            "minItems" => {
                value.as_array().is_none_or(|all| all.len() as u64 >= by.as_u64().unwrap_or(0))
            }
            "minimum" => value.as_f64().is_none_or(|n| n >= by.as_f64().unwrap_or(n)),
            "maximum" => value.as_f64().is_none_or(|n| n <= by.as_f64().unwrap_or(n)),
            "exclusiveMinimum" => value.as_f64().is_none_or(|n| n > by.as_f64().unwrap_or(n)),
            "title" | "description" | "$schema" | "$defs" => true,
            other => panic!("the check does not know `{other}`"),
        };
        if !fits {
            return Err(format!("{rule} of {value}"));
        }
    }
    Ok(())
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        other => panic!("no kind {other:?}"),
    }
}
