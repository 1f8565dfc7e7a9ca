//! F8: DAG JSON, and the same in YAML as Belljar writes it.

use belljar_contract::exact_json;

use super::{good, ids, task, warnings};
use crate::{CodeExecution, Format, FormatOptions, read, read_tasks};
use belljar_contract::{Access, Language};
use belljar_workflow::{
    Action, AtLimit, Compensation, Decider, OnError, Reducer, SandboxAction, Wait,
};

#[test]
fn f8_every_spelling_of_a_tool_and_of_dependencies() {
    let read = good(
        r#"{"name": "mix", "tasks": [
          {"id": "a", "tool": "files:read", "arguments": {"path": "/x"}},
          {"id": "b", "toolId": "files:list", "args": {}, "depends_on": ["a"]},
          {"id": "c", "type": "mcp_tool", "tool": "web.get", "dependsOn": ["a"]},
          {"id": "d", "tool": "web:get", "dependencies": ["b", "c"]},
          {"id": "e", "tool": "web:get", "deps": "d"}
        ]}"#,
    );
    assert_eq!(read.format, Format::Dag);
    let depends: Vec<_> = read.dag.tasks.iter().map(|task| task.depends_on.join(",")).collect();
    assert_eq!(depends, ["", "a", "a", "b,c", "d"]);
    let Action::McpTool(call) = &task(&read.dag, "a").action else { panic!() };
    assert_eq!((call.tool.as_str(), &call.arguments["path"]), ("files:read", &exact_json!("/x")));
}

#[test]
fn f8_code_with_its_sandbox_config_in_both_spellings() {
    for name in ["sandbox_config", "sandboxConfig"] {
        let read = good(&format!(
            r#"{{"tasks": [{{"id": "sum", "type": "code_execution", "code": "return 1",
              "intent": "add", "context": {{"n": "$OUTPUT[x].items"}}, "arguments": {{"m": 2}},
              "{name}": {{"timeout": 5000, "memoryLimit": 128, "allowedReadPaths": ["/data"]}}
            }}, {{"id": "x", "tool": "a:b"}}]}}"#
        ));
        let Action::CodeExecution(code) = &task(&read.dag, "sum").action else { panic!() };
        assert_eq!(code.language, Language::TypeScript);
        assert_eq!(code.intent.as_deref(), Some("add"));
        assert_eq!(code.limits.timeout_ms, Some(5000));
        assert_eq!(code.limits.memory_mb, Some(128));
        assert_eq!(code.grants.read, Access::Only(vec!["/data".into()]));
        assert_eq!(code.context["n"], exact_json!("{{ results[\"x\"].items }}"));
        assert_eq!(code.context["m"], exact_json!(2));
    }
}

#[test]
fn f8_every_other_type() {
    let read = good(
        "
tasks:
  - {id: ask, type: approval, message: Go on?, by: human, decide_within_ms: 1000}
  - id: each
    type: foreach
    items: '{{ inputs.urls }}'
    at_once: 4
    fail_fast: false
    do: {tool: 'web:get', arguments: {url: '{{ item }}'}}
  - id: sub
    type: workflow
    inputs: {n: 1}
    workflow: {tasks: [{id: inner, tool: 'a:b'}]}
  - {id: later, type: wait, wait: 2s}
  - {id: then, type: wait, until_ms: '{{ inputs.at }}'}
  - {id: same, value: '{{ state.x }}'}
  - {id: box, type: sandbox, do: create, language: py}
  - id: again
    type: loop
    while: state.n < 3
    max_rounds: 5
    at_limit: end
    body: [{id: inc, value: 1}]
    goto: [{if: state.bad, to: inc}, {to: end}]
",
    );
    let dag = &read.dag;
    let Action::Approval { by, decide_within_ms, .. } = &task(dag, "ask").action else { panic!() };
    assert_eq!((*by, *decide_within_ms), (Some(Decider::Human), Some(1000)));
    let Action::Foreach(each) = &task(dag, "each").action else { panic!() };
    assert_eq!((each.at_once, each.fail_fast, each.each.id.as_str()), (Some(4), false, "each"));
    let Action::Workflow { workflow, inputs } = &task(dag, "sub").action else { panic!() };
    assert_eq!((ids(&workflow.tasks), &inputs["n"]), (vec!["inner"], &exact_json!(1)));
    assert_eq!(task(dag, "later").action, Action::Wait(Wait::For { wait_ms: exact_json!(2000) }));
    let until = Wait::Until { until_ms: exact_json!("{{ inputs.at }}") };
    assert_eq!(task(dag, "then").action, Action::Wait(until));
    assert_eq!(task(dag, "same").action, Action::Pass { value: exact_json!("{{ state.x }}") });
    let Action::Sandbox(SandboxAction::Create { language, .. }) = &task(dag, "box").action else {
        panic!()
    };
    assert_eq!(*language, Language::Python);
    let Action::Loop(again) = &task(dag, "again").action else { panic!() };
    assert_eq!(again.condition.as_deref(), Some("state.n < 3"));
    assert_eq!((again.max_rounds, again.at_limit), (5, AtLimit::End));
    assert_eq!(again.goto[0].to, "inc");
}

#[test]
fn f8_what_holds_for_every_task() {
    let read = good(
        "
name: all
settings:
  concurrency: 3
  decisions: {before: [b], per_task: true}
  decided_by: human
reducers: {log: append, seen: union}
state: {log: []}
output: '{{ state.log }}'
tasks:
  - id: b
    tool: a:b
    when: '{{ state.go }}'
    timeout: 30s
    retry: {attempts: 4, backoff: {first_ms: 10, factor: 1.5, max_ms: 100}}
    on_error: {fallback: {tool: 'a:c'}}
    idempotent: true
    compensate: {tool: 'a:undo', arguments: {id: '{{ result.id }}'}}
    output: {log: '{{ result }}'}
    speculate: true
  - {id: c, tool: 'a:b', retry: 2, on_error: continue, compensate: {code: 'x', language: js}}
",
    );
    let b = task(&read.dag, "b");
    assert_eq!(b.when.as_deref(), Some("state.go"));
    assert_eq!(b.timeout_ms, Some(30_000));
    assert_eq!(
        b.retry.as_ref().map(|retry| (retry.attempts, retry.backoff.max_ms)),
        Some((4, 100))
    );
    assert!(matches!(&b.on_error, OnError::Fallback(other) if other.id == "fallback"));
    assert!(matches!(&b.compensate, Some(Compensation::Tool(call)) if call.tool == "a:undo"));
    assert_eq!((b.idempotent, b.speculate), (Some(true), true));
    let c = task(&read.dag, "c");
    assert_eq!(c.on_error, OnError::Continue);
    assert!(
        matches!(&c.compensate, Some(Compensation::Code(code)) if code.language == Language::JavaScript)
    );
    assert_eq!(read.dag.settings.concurrency, 3);
    assert_eq!(read.dag.settings.decided_by, Decider::Human);
    assert_eq!(read.dag.reducers["seen"], Reducer::Union);
    assert_eq!(read.dag.output, Some(exact_json!("{{ state.log }}")));
}

#[test]
fn a_dag_that_was_written_by_serde_reads_as_itself() {
    let read = good(
        "
tasks:
  - {id: a, tool: 'a:b', arguments: {x: [1, 2.5, null, true]}}
  - {id: b, code: 'return 1', language: python, depends_on: [a], limits: {memory_mb: 64}}
  - {id: c, items: [1], do: {id: one, tool: 'a:b'}, depends_on: [b]}
",
    );
    let written = serde_json::to_string_pretty(&read.dag).expect("JSON");
    assert_eq!(good(&written).dag, read.dag);
}

#[test]
fn wrapped_listed_and_with_arrows_beside() {
    let wrapped = good(
        r#"{"intent": "x", "workflow": {"tasks": [{"id": "a", "tool": "a:b"}, {"id": "b", "tool": "a:b"}],
            "dependencies": [{"from": "a", "to": "b"}]}}"#,
    );
    assert_eq!(task(&wrapped.dag, "b").depends_on, ["a"]);
    assert_eq!(ids(&good(r#"[{"id": "a", "tool": "a:b"}]"#).dag.tasks), ["a"]);
}

#[test]
fn a_capability_with_code_is_code() {
    let read = good(
        r#"{"tasks": [{"id": "a", "type": "capability", "capabilityId": "c1", "code": "x"}]}"#,
    );
    assert!(
        matches!(&task(&read.dag, "a").action, Action::CodeExecution(code) if code.code == "x")
    );
    assert_eq!(
        warnings(&read),
        "flow.yaml:1:12: `a`: a capability with code runs as `code_execution`"
    );
}

#[test]
fn json_escapes_beyond_the_first_plane() {
    let read = good(r#"{"tasks": [{"id": "a", "value": "\ud83d\ude00 \\ud83d \u00e9 \/"}]}"#);
    assert_eq!(task(&read.dag, "a").action, Action::Pass { value: exact_json!("😀 \\ud83d é /") });
}

#[test]
fn tabs_and_commas_of_json_are_read() {
    let read = good("{\n\t\"tasks\": [\n\t\t{\"id\": \"a\",\n\t\t \"tool\": \"a:b\"}\n\t]\n}\n");
    assert_eq!(ids(&read.dag.tasks), ["a"]);
}

#[test]
fn bug_2_tasks_that_are_added_may_depend_on_others() {
    let options = FormatOptions { code: CodeExecution::On };
    let text = r#"[{"id": "i", "tool": "a:b", "arguments": {"x": "$OUTPUT[a].n"}, "deps": "a"}]"#;
    let tasks = read_tasks("tasks", text, &options).unwrap();
    assert_eq!(tasks[0].depends_on, ["a"]);
    let Action::McpTool(call) = &tasks[0].action else { panic!() };
    assert_eq!(call.arguments["x"], exact_json!("{{ results[\"a\"].n }}"));
    // A workflow of its own has nobody beside it, nor has one inside of a task that is added.
    assert!(read("flow.json", text, &options).is_err());
    let inner =
        r#"[{"id": "w", "workflow": {"tasks": [{"id": "i", "tool": "a:b", "deps": "a"}]}}]"#;
    assert!(read_tasks("tasks", inner, &options).is_err());
    assert!(read_tasks("tasks", "nodes: [{name: a}]", &options).is_err());
}

#[test]
fn f8_a_dag_says_whether_its_code_has_files() {
    for (said, files, no_room) in [("true", true, false), ("false", false, true)] {
        let read = good(&format!(
            r#"{{"tasks": [{{"id": "a", "code": "1", "sandbox_config": {{"allow_filesystem": {said}}}}}]}}"#
        ));
        let Action::CodeExecution(code) = &task(&read.dag, "a").action else { panic!() };
        assert_eq!((code.files, code.no_room), (files, no_room), "{said}");
    }
}

#[test]
fn a3_bash_has_a_switch_of_its_own() {
    let dag = r#"{"tasks": [{"id": "a", "language": "bash", "code": "echo 1"}]}"#;
    let agent =
        "nodes:\n  - {name: a, uses: code.execute, with: {language: shell, code: echo 1}}\n";
    let sandbox =
        "nodes:\n  - {name: a, uses: code.sandbox, with: {action: create, language: sh}}\n";
    for text in [dag, agent, sandbox] {
        let faults = read("x", text, &FormatOptions { code: CodeExecution::On }).unwrap_err();
        assert!(faults[0].message.contains("the shell is off"), "{faults:?}");
        assert!(faults[0].help.as_ref().unwrap().contains("--enable-shell"), "{faults:?}");
        read("x", text, &FormatOptions { code: CodeExecution::WithShell }).unwrap();
    }
    let own =
        format!("settings: {{enable_shell: true}}\n{}", "tasks: [{id: a, language: sh, code: x}]");
    assert!(read("x", &own, &FormatOptions { code: CodeExecution::On }).is_err());
}
