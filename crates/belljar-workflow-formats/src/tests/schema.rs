//! The schema for editors takes every example, and refuses what reading refuses.

use belljar_contract::{Access, Grant, Limit, TaskGrants, camel_case};
use belljar_workflow::{Action, Dag, Task};
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

/// Every limit and grant of the contract's tables is read from a file and is in the schema, by all of
/// its names.
#[test]
fn f8_files_take_every_limit_and_grant_of_the_tables() {
    let schema = schema();
    let fits = |text: &str| {
        assert_eq!(check(&schema, &schema, &json(text)), Ok(()), "{text}");
        super::good(text).dag
    };
    let code = |dag: &Dag| {
        let [Task { action: Action::CodeExecution(code), .. }] = &dag.tasks[..] else { panic!() };
        code.clone()
    };
    for limit in Limit::ALL {
        for name in limit.names() {
            let stated = format!("{{{name}: 7}}");
            let dag = fits(&format!("tasks: [{{id: a, code: x, limits: {stated}}}]"));
            assert_eq!(code(&dag).limits.stated(), [(*limit, 7)], "{name}");
            let dag = fits(&format!("tasks: [{{id: a, code: x, sandboxConfig: {stated}}}]"));
            assert_eq!(code(&dag).limits.stated(), [(*limit, 7)], "{name}");
        }
    }
    for grant in Grant::OF_TASKS {
        let takes = |text: &&&str| TaskGrants::default().set(*grant, &json(text)).is_ok();
        let value = ["[x]", "x", "true"].iter().find(takes).expect("a value");
        for name in grant.names().into_iter().map(camel_case) {
            let asked = format!("{{{name}: {value}}}");
            for field in ["grants", "sandbox_config"] {
                let dag = fits(&format!("tasks: [{{id: a, code: x, {field}: {asked}}}]"));
                let grants = code(&dag).grants;
                let all: Vec<_> = grants.asked().into_iter().map(|(grant, _)| grant).collect();
                assert_eq!(all, [*grant], "{name}");
            }
        }
    }
}

/// The code of an agent asks for grants of its own and has those of the settings.
#[test]
fn f8_agents_ask_for_grants_by_their_names() {
    let text = "
settings:
  code: {read: /a, commands: [rm], max_tool_calls: 3}
nodes:
  - {name: a, uses: code.execute, with: {code: x, read: [/b], env: [HOME], cpu_ms: 5}}
";
    let dag = super::good(text).dag;
    let Action::CodeExecution(code) = &super::task(&dag, "a").action else { panic!() };
    assert_eq!(code.grants.read, Access::Only(vec!["/b".into(), "/a".into()]));
    assert_eq!(
        (&code.grants.env[..], &code.grants.commands[..]),
        (&["HOME".into()][..], &["rm".into()][..])
    );
    assert_eq!((code.limits.cpu_ms, code.limits.tool_calls), (Some(5), Some(3)));
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
