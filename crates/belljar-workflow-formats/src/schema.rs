//! The schema of workflow files, for editors.

use belljar_contract::{Grant, Limit, TaskGrants, camel_case};
use serde_json::{Map, Value, json};

/// The definitions in `schema.json` whose limits and grants are those of the contract's tables.
const WITH_LIMITS: [&str; 3] = ["limits", "sandbox_config", "code_settings"];
const WITH_GRANTS: [&str; 3] = ["grants", "sandbox_config", "code_settings"];

/// The JSON Schema (2020-12) of every file that [`read`](super::read) takes. It has the names and
/// kinds of fields; rules between parts of a file are checked by reading only.
pub fn schema() -> Value {
    let mut schema: Value = serde_json::from_str(include_str!("schema.json")).unwrap_or_default();
    let limits = Limit::ALL.iter().map(|limit| (limit.names(), limit_schema()));
    let grants = Grant::OF_TASKS.iter().map(|grant| (grant.names(), grant_schema(*grant)));
    add(&mut schema, &WITH_LIMITS, &spelled(limits));
    add(&mut schema, &WITH_GRANTS, &spelled(grants));
    schema
}

fn add(schema: &mut Value, definitions: &[&str], properties: &Map<String, Value>) {
    for definition in definitions {
        let place = schema.pointer_mut(&format!("/$defs/{definition}/properties"));
        if let Some(Value::Object(known)) = place {
            known.extend(properties.clone());
        }
    }
}

/// Each field under all of its names, as they are written and in `camelCase`.
fn spelled(fields: impl Iterator<Item = (Vec<&'static str>, Value)>) -> Map<String, Value> {
    let both = |name: &str| [name.to_owned(), camel_case(name)];
    fields
        .flat_map(|(names, schema)| {
            names.into_iter().flat_map(both).map(move |name| (name, schema.clone()))
        })
        .collect()
}

fn limit_schema() -> Value {
    json!({"type": "integer", "minimum": 1})
}

/// The schema of what a grant takes: found by trying.
fn grant_schema(grant: Grant) -> Value {
    let takes = |json: Value| TaskGrants::default().set(grant, &json).is_ok();
    let (has_list, has_text) = (takes(json!(["a"])), takes(json!("a")));
    let any = [
        (takes(json!(true)), json!({"type": "boolean"})),
        (has_list, json!({"type": "array", "items": {"type": "string"}})),
        // A single name is a list of one.
        (has_list || has_text, json!({"type": "string"})),
    ];
    let any: Vec<_> = any.into_iter().filter(|(takes, _)| *takes).map(|(_, kind)| kind).collect();
    json!({"anyOf": any, "description": grant.about()})
}
