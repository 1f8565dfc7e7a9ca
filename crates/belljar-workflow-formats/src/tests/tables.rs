//! Files take the limits and grants of the contract's tables, by all of their names.

use belljar_contract::{Access, Grant, Limit, TaskGrants, camel_case};
use belljar_workflow::{Action, Dag, Task};
use serde_json::Value;

use crate::tree;

fn json(text: &str) -> Value {
    let mut notes = crate::fault::Diagnostics::new("x");
    tree::parse(text, &mut notes).map(|node| Value::from(&node.json())).unwrap_or_default()
}

/// Every limit and grant of the contract's tables is read from a file, by all of its names.
#[test]
fn f8_files_take_every_limit_and_grant_of_the_tables() {
    let read = |text: &str| super::good(text).dag;
    let code = |dag: &Dag| {
        let [Task { action: Action::CodeExecution(code), .. }] = &dag.tasks[..] else { panic!() };
        code.clone()
    };
    for limit in Limit::ALL {
        for name in limit.names() {
            let stated = format!("{{{name}: 7}}");
            let dag = read(&format!("tasks: [{{id: a, code: x, limits: {stated}}}]"));
            assert_eq!(code(&dag).limits.stated(), [(*limit, 7)], "{name}");
            let dag = read(&format!("tasks: [{{id: a, code: x, sandboxConfig: {stated}}}]"));
            assert_eq!(code(&dag).limits.stated(), [(*limit, 7)], "{name}");
        }
    }
    for grant in Grant::OF_TASKS {
        let takes = |text: &&&str| TaskGrants::default().set(*grant, &json(text)).is_ok();
        let value = ["[x]", "x", "true"].iter().find(takes).expect("a value");
        for name in grant.names().into_iter().map(camel_case) {
            let asked = format!("{{{name}: {value}}}");
            for field in ["grants", "sandbox_config"] {
                let dag = read(&format!("tasks: [{{id: a, code: x, {field}: {asked}}}]"));
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
