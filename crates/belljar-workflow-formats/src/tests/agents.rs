//! F8: what the nodes of an agent do.

use belljar_contract::Language;
use belljar_contract::exact_json;

use super::{good, ids, task, warnings};
use crate::Format;
use belljar_workflow::{Action, AtLimit, Decider, OnError, Reducer, ResultShape, SandboxAction};

#[test]
fn f8_run_is_code_over_the_state() {
    let read = good(
        "
name: one
description: counts
nodes:
  - name: count
    run: |
      return {'n': state['n'] + 1}
",
    );
    assert_eq!(read.format, Format::Agent);
    assert_eq!(ids(&read.dag.tasks), ["__start__", "count"]);
    let start = task(&read.dag, "__start__");
    assert_eq!(start.action, Action::Pass { value: exact_json!("{{ inputs }}") });
    assert!(start.merge_result);
    let count = task(&read.dag, "count");
    let Action::CodeExecution(code) = &count.action else { panic!() };
    assert_eq!((code.language, code.shape), (Language::Python, ResultShape::Node));
    assert_eq!(code.context["state"], exact_json!("{{ state }}"));
    assert!(count.merge_result && count.output.is_empty());
    assert_eq!(count.depends_on, ["__start__"]);
    assert_eq!(read.dag.output, Some(exact_json!("{{ state }}")));
}

#[test]
fn f8_code_execute_under_both_names_has_the_settings_and_its_own() {
    let read = good(
        "
settings:
  code: {default_timeout: 10, max_memory_mb: 64, allowed_modules: [math]}
nodes:
  - name: a
    uses: code.execute
    with: {code: 'result = 1', timeout_seconds: 2.5, max_output_bytes: 100, allowed_modules: [json]}
    output: out
  - name: b
    uses: actions.code_execute
    with: {code: 'console.log(1)', language: javascript, allow_filesystem: true}
  - name: c
    uses: code.execute
    with: {code: '{{ state.out.return_value }}', context: {n: '{{ state.n }}'}}
",
    );
    let code = |id| {
        let Action::CodeExecution(code) = &task(&read.dag, id).action else { panic!("{id}") };
        code.clone()
    };
    let (a, b, c) = (code("a"), code("b"), code("c"));
    assert_eq!((a.shape, b.shape), (ResultShape::Report, ResultShape::Report));
    assert_eq!((a.limits.timeout_ms, b.limits.timeout_ms), (Some(2_500), Some(10_000)));
    assert_eq!((a.limits.memory_mb, a.limits.output_bytes), (Some(64), Some(100)));
    assert_eq!(b.limits.output_bytes, Some(65_536));
    assert_eq!(a.grants.modules, Some(vec!["json".into()]));
    assert_eq!(b.grants.modules, Some(vec!["math".into()]));
    assert_eq!((b.language, b.files), (Language::JavaScript, true));
    assert_eq!((a.template, c.template), (false, true));
    assert_eq!(c.context["n"], exact_json!("{{ state.n }}"));
    assert_eq!(task(&read.dag, "a").output["out"], exact_json!("{{ result }}"));
}

#[test]
fn f8_defaults_of_code_without_settings() {
    let read = good("nodes: [{name: a, uses: code.execute, with: {code: x}}]");
    let Action::CodeExecution(code) = &task(&read.dag, "a").action else { panic!() };
    let limits = &code.limits;
    assert_eq!(
        (limits.timeout_ms, limits.memory_mb, limits.output_bytes),
        (Some(30_000), Some(256), Some(65_536))
    );
    assert_eq!(code.language, Language::Python);
}

#[test]
fn f8_a_sandbox_across_nodes() {
    let read = good(
        "
nodes:
  - {name: make, uses: code.sandbox, with: {action: create, language: python}, output: box}
  - name: use
    uses: actions.code_sandbox
    with: {action: execute, sandbox_id: '{{ state.box.sandbox_id }}', code: 'x = {{1: 2}}'}
  - {name: all, uses: code.sandbox, with: {action: list}}
  - {name: end it, uses: code.sandbox, with: {action: destroy, sandbox_id: s1}}
",
    );
    let sandbox = |id| {
        let Action::Sandbox(sandbox) = &task(&read.dag, id).action else { panic!("{id}") };
        sandbox.clone()
    };
    assert!(matches!(sandbox("make"), SandboxAction::Create { language: Language::Python, .. }));
    let SandboxAction::Execute { sandbox_id, code, .. } = sandbox("use") else { panic!() };
    assert_eq!(sandbox_id, exact_json!("{{ state.box.sandbox_id }}"));
    // Braces that are code stay code.
    assert_eq!(code, "{% raw %}x = {{1: 2}}{% endraw %}");
    assert_eq!(sandbox("all"), SandboxAction::List);
    assert_eq!(sandbox("end it"), SandboxAction::Destroy { sandbox_id: exact_json!("s1") });
}

#[test]
fn f8_tools_in_every_spelling() {
    let read = good(
        "
variables: {base: 'https://x'}
nodes:
  - {name: a, uses: 'web:get', with: {url: '{{ variables.base }}/1', deep: [{u: '{{ state.u }}'}]}}
  - {name: b, uses: tracker.find}
  - {name: c, uses: actions.http_get}
  - {name: d, uses: tools, with: {tool: 'web:get', arguments: {n: 1}}}
  - {name: e, action: web.get, params: {n: 2}}
",
    );
    let call = |id| {
        let Action::McpTool(call) = &task(&read.dag, id).action else { panic!("{id}") };
        call.clone()
    };
    assert_eq!(call("a").arguments["url"], exact_json!("{{ state.variables.base }}/1"));
    assert_eq!(call("a").arguments["deep"], exact_json!([{"u": "{{ state.u }}"}]));
    assert_eq!(read.dag.state["variables"]["base"], exact_json!("https://x"));
    let tools: Vec<String> = ["b", "c", "d", "e"].map(|id| call(id).tool).into();
    assert_eq!(tools, ["tracker.find", "http.get", "web:get", "web.get"]);
    assert_eq!(call("d").arguments["n"], exact_json!(1));
    assert!(warnings(&read).contains("connect an MCP server called `http`"));
}

#[test]
fn f8_steps_are_a_group_over_the_same_state() {
    let read = good(
        "
nodes:
  - name: work
    steps:
      - {name: one, run: 'return {}'}
      - {uses: a.b, when: state.x}
",
    );
    let Action::Loop(group) = &task(&read.dag, "work").action else { panic!() };
    assert_eq!((group.condition.as_ref(), group.max_rounds), (None, 1));
    // The step after one that may be skipped depends on one that never is.
    assert_eq!(ids(&group.body), ["__begin__", "one", "step2"]);
    assert_eq!(group.body[2].depends_on, ["one", "__begin__"]);
    assert_eq!(group.body[2].when.as_deref(), Some("state.x"));
}

#[test]
fn f8_while_loop_in_both_shapes() {
    for text in [
        "nodes: [{name: l, type: while_loop, condition: '{{ not state.ok }}', max_iterations: 7,
           body: [{name: a, run: x}, {name: b, run: y}]}]",
        "nodes: [{name: l, while_loop: {condition: not state.ok, max_iterations: 7,
           body: [{name: a, run: x}, {name: b, run: y}]}}]",
    ] {
        let read = good(text);
        let Action::Loop(repeat) = &task(&read.dag, "l").action else { panic!() };
        assert_eq!(repeat.condition.as_deref(), Some("not state.ok"));
        assert_eq!((repeat.max_rounds, repeat.at_limit), (7, AtLimit::End));
        assert_eq!(ids(&repeat.body), ["a", "b"]);
        assert_eq!(task(&read.dag, "l").when, None);
    }
}

#[test]
fn f8_dynamic_parallel_with_an_action() {
    let read = good(
        "
nodes:
  - name: all
    type: dynamic_parallel
    items: '{{ state.urls }}'
    item_var: url
    index_var: i
    max_concurrency: 3
    action:
      uses: web.get
      with: {url: '{{ url }}', n: '{{ i + 1 }}', keep: '{{ state.keep }} url'}
    output: pages
",
    );
    let all = task(&read.dag, "all");
    let Action::Foreach(each) = &all.action else { panic!() };
    assert_eq!((each.at_once, each.fail_fast), (Some(3), false));
    let Action::Workflow { workflow, inputs } = &each.each.action else { panic!() };
    assert_eq!(ids(&workflow.tasks), ["__start__", "action"]);
    let Action::McpTool(call) = &workflow.tasks[1].action else { panic!() };
    assert_eq!(call.arguments["url"], exact_json!("{{ state.url }}"));
    assert_eq!(call.arguments["n"], exact_json!("{{ state.i + 1 }}"));
    // Of the state it is given what it reads, and no more.
    assert_eq!(inputs["state"], exact_json!({"keep": "{{ state.keep }}"}));
    assert!(matches!(each.each.on_error, OnError::Fallback(_)));
    assert_eq!(all.output["pages"], exact_json!("{{ result }}"));
}

#[test]
fn f8_dynamic_parallel_with_steps_has_a_state_of_its_own() {
    let read = good(
        "
state_schema: {log: {type: list, reducer: append, default: []}}
nodes:
  - name: all
    type: dynamic_parallel
    items: state.docs
    item_var: doc
    fail_fast: true
    steps:
      - {name: read, uses: files.read, with: {path: '{{ doc.path }}'}, output: text}
      - {name: count, run: 'return {}'}
    fan_in: join
  - {name: never, run: x}
  - {name: join, fan_in: true, run: 'return {\"n\": len(parallel_results)}'}
",
    );
    let all = task(&read.dag, "all");
    let Action::Foreach(each) = &all.action else { panic!() };
    assert_eq!((&each.items, each.fail_fast), (&exact_json!("{{ state.docs }}"), true));
    let Action::Workflow { workflow, inputs } = &each.each.action else { panic!() };
    assert_eq!(inputs["item"], exact_json!("{{ item }}"));
    assert_eq!(ids(&workflow.tasks), ["__start__", "read", "count"]);
    assert_eq!(workflow.tasks[0].output["doc"], exact_json!("{{ inputs.item }}"));
    let Action::McpTool(call) = &workflow.tasks[1].action else { panic!() };
    assert_eq!(call.arguments["path"], exact_json!("{{ state.doc.path }}"));
    assert_eq!(
        (&inputs["state"], &each.each.on_error),
        (&exact_json!("{{ state }}"), &OnError::Fail)
    );
    assert_eq!(workflow.reducers["log"], Reducer::Append);
    assert_eq!(read.dag.state["log"], exact_json!([]));
    assert_eq!(all.output["parallel_results"], exact_json!("{{ result }}"));
    let join = task(&read.dag, "join");
    assert_eq!(join.depends_on, ["all"]);
    let Action::CodeExecution(code) = &join.action else { panic!() };
    assert_eq!(
        code.context["parallel_results"],
        exact_json!("{{ state.parallel_results | default([]) }}")
    );
}

#[test]
fn f8_where_a_person_is_asked() {
    let read = good(
        "
nodes:
  - {name: a, run: x}
  - {name: b, run: x, interrupt: after}
config: {interrupt_before: [b], interrupt_after: a, max_workers: 2}
",
    );
    let settings = &read.dag.settings;
    assert_eq!(settings.decisions.before, ["b"]);
    assert_eq!(settings.decisions.after, ["a", "b"]);
    assert_eq!((settings.decided_by, settings.concurrency), (Decider::Human, 2));
}

#[test]
fn f8_an_expression_and_what_holds_for_every_node() {
    let read = good(
        "
initial_state: {items: [1]}
nodes:
  - {name: a, run: {type: expression, value: 'len(state[\"items\"])', output_key: n}, retry: {max_retries: 2}}
  - {name: b, script: 'return {}', timeout: 5, on_error: continue, condition: '!done'}
",
    );
    let a = task(&read.dag, "a");
    let Action::CodeExecution(code) = &a.action else { panic!() };
    assert_eq!(code.code, "return {\"n\": (len(state[\"items\"]))}");
    assert_eq!(a.retry.as_ref().map(|retry| retry.attempts), Some(3));
    let b = task(&read.dag, "b");
    assert_eq!((b.timeout_ms, &b.on_error), (Some(5_000), &OnError::Continue));
    assert_eq!(b.when.as_deref(), Some("not state.done"));
    assert_eq!(read.dag.state["items"], exact_json!([1]));
}

#[test]
fn anchors_and_merge_keys() {
    let read = good(
        "
nodes:
  - &base
    name: a
    uses: web.get
    with: &with {url: x, n: 1}
  - <<: *base
    name: b
    with: {<<: *with, n: 2}
",
    );
    let Action::McpTool(call) = &task(&read.dag, "b").action else { panic!() };
    assert_eq!(
        (&call.arguments["url"], &call.arguments["n"]),
        (&exact_json!("x"), &exact_json!(2))
    );
}

#[test]
fn actions_that_run_nodes_and_names_of_other_tools_are_refused() {
    insta::assert_snapshot!(super::faults("
nodes:
  - {name: a, uses: retry.loop, with: {validate: x, correct: b}}
  - {name: b, uses: models.ask, with: {model: '{{ settings.llm.model }}'}}
"), @r"
    flow.yaml:3:21: `a`: `retry.loop` is not supported: an action cannot run other nodes; write a `while_loop`, or `goto` an earlier node
    flow.yaml:4:47: `b`: `settings` does not exist in templates; put the value into `variables` and write `variables.…`
    ");
}

#[test]
fn a_node_called_end_is_a_node() {
    let read =
        good("nodes: [{name: a, run: x, goto: end}, {name: b, run: x}, {name: end, run: x}]");
    assert_eq!(ids(&read.dag.tasks), ["__start__", "a", "end_"]);
}
