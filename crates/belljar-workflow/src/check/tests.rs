//! Faults are all found, named and placed.

use belljar_contract::{JsonValue, exact_json};

use super::*;

fn dag(value: JsonValue) -> Dag {
    belljar_contract::json_value::from_value(value).unwrap()
}

fn faults(value: JsonValue) -> Vec<String> {
    let tools = |name: &str| {
        if name == "web:get" { Ok(()) } else { Err(vec!["web:get".to_owned()]) }
    };
    match check(&dag(value), Some(&tools)) {
        Ok(()) => Vec::new(),
        Err(DagFaults(faults)) => faults.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_good_workflow_has_no_faults() {
    let found = faults(exact_json!({
        "state": {"messages": []},
        "tasks": [
            {"id": "a", "type": "mcp_tool", "tool": "web:get", "arguments": {"url": "{{ inputs.url }}"},
             "output": {"messages": "{{ result }}"}, "compensate": {"tool": {"tool": "web:get", "arguments": {"x": "{{ args.url }}{{ result }}"}}}},
            {"id": "b", "type": "foreach", "depends_on": ["a"], "items": "{{ results.a }}",
             "do": {"id": "x", "type": "pass", "value": "{{ item }} {{ index }} {{ results.a }}"}},
            {"id": "c", "type": "loop", "while": "loop.iteration < 3 and not results.s", "body": [
                {"id": "s", "type": "pass", "value": "{{ state.messages }}"},
                {"id": "t", "type": "pass", "depends_on": ["s"], "value": "{{ results.s }}"}],
             "goto": [{"if": "results.t", "to": "s"}, {"to": "end"}]},
            {"id": "d", "type": "pass", "depends_on": ["b"], "value": "{{ results.a }}{{ deps.b }}{{ state.nothing | default(1) }}"}
        ],
        "output": "{{ results.d }}"
    }));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn all_faults_are_listed_with_what_is_near() {
    let found = faults(exact_json!({
        "settings": {"concurrency": 0, "decisions": {"before": ["fetsh"]}},
        "tasks": [
            {"id": "fetch", "type": "mcp_tool", "tool": "web:got", "depends_on": ["fetch"]},
            {"id": "fetch", "type": "pass", "when": "1 +"},
            {"id": "sum", "type": "pass", "depends_on": ["fetcj"], "value": "{{ results.fetch }}", "retry": {"attempts": 2}},
            {"id": "a/b", "type": "pass", "value": "{{ itm }}"}
        ]
    }));
    assert_eq!(
        found,
        [
            "settings.concurrency: 0 is not between 1 and 10000",
            "settings.decisions.before: there is no task fetsh (did you mean fetch?)",
            "task fetch, depends_on: the task depends on itself",
            "task fetch, id: another task has this id",
            "task sum, depends_on: there is no task fetcj (did you mean fetch?)",
            "task a/b, id: the id contains one of / [ ] # ~ { } or begins or ends with a space",
            "task fetch, tool: there is no tool web:got (did you mean web:get?)",
            "task fetch, when: not an expression: syntax error: unexpected end of input, expected expression in `1 +`",
            "task sum, value: results.fetch: add fetch to `depends_on`; it may not have ended by then",
            "task sum, retry: only tool, code and sandbox tasks can be retried",
            "task a/b, value: unknown name itm",
        ]
    );
}

#[test]
fn a_circle_is_named() {
    let found = faults(exact_json!({"tasks": [
        {"id": "a", "type": "pass", "depends_on": ["c"]},
        {"id": "b", "type": "pass", "depends_on": ["a"]},
        {"id": "c", "type": "pass", "depends_on": ["b"]},
        {"id": "z", "type": "pass", "depends_on": ["c"]}
    ]}));
    assert_eq!(found, ["task a, depends_on: dependency cycle: a → c → b → a"]);
}

#[test]
fn what_is_inside_is_checked_too() {
    let found = faults(exact_json!({"tasks": [
        {"id": "w", "type": "workflow", "workflow": {"tasks": [
            {"id": "in", "type": "pass", "value": "{{ results.outer }}"}]}},
        {"id": "outer", "type": "pass", "value": 1},
        {"id": "e", "type": "foreach", "items": [1], "do": {"id": "x", "type": "pass", "depends_on": ["outer"], "value": "{{ state.x }}"}},
        {"id": "l", "type": "loop", "body": [{"id": "s", "type": "pass"}], "goto": [{"to": "t"}]},
        {"id": "f", "type": "mcp_tool", "tool": "web:get", "on_error": {"fallback": {"id": "g", "type": "pass", "value": "{{ error.code }} {{ eror.code }}"}}}
    ]}));
    assert_eq!(
        found,
        [
            "task w/in, value: unknown name results.outer",
            "task e, do.depends_on: a task inside another cannot have dependencies",
            "task e/do, value: unknown name state.x: nothing sets it",
            "task l, goto.to: there is no task t in the loop (did you mean s?)",
            "task f/fallback, value: unknown name eror (did you mean error?)",
        ]
    );
}

#[test]
fn deep_nesting_is_refused() {
    let mut task = exact_json!({"id": "x", "type": "pass"});
    for _ in 0..40 {
        task = exact_json!({"id": "x", "type": "foreach", "items": [1], "do": task});
    }
    assert_eq!(faults(exact_json!({"tasks": [task]})).len(), 1);
}

#[test]
fn f8_a_state_that_results_are_merged_into_is_open() {
    let node = |merge: bool| {
        exact_json!({"tasks": [
            {"id": "a", "type": "loop", "body": [{"id": "in", "type": "pass", "merge_result": merge}]},
            {"id": "b", "type": "pass", "value": "{{ state.topic }}", "depends_on": ["a"]},
            {"id": "w", "type": "workflow", "workflow": {"tasks": [
                {"id": "own", "type": "pass", "value": "{{ state.topic }}"}]}}
        ]})
    };
    // A workflow inside has a state of its own.
    let own = "task w/own, value: unknown name state.topic: nothing sets it";
    assert_eq!(faults(node(true)), [own]);
    let closed = "task b, value: unknown name state.topic: nothing sets it";
    assert_eq!(faults(node(false)), [closed, own]);
}

#[test]
fn f8_what_is_no_expression_is_told() {
    let found =
        |when: &str| faults(exact_json!({"tasks": [{"id": "a", "type": "pass", "when": when}]}));
    for when in ["lambda s: s", "x = 1", "[y for y in z]", "a &&", "if state", "{{ a }} {{ b }}"] {
        let all = found(when);
        assert!(all[0].starts_with("task a, when: not an expression: "), "{all:?}");
    }
    let long = found(&"inputs.a or ".repeat(30_000));
    assert!(long[0].contains("not an expression: the expression has more than"), "{long:?}");
    assert_eq!(found("len(inputs.get('a', [])) > 0 and inputs.b.lower() == 'x'"), [""; 0]);
}

#[test]
fn f8_code_that_is_a_template_is_checked_as_one() {
    let task = |template: bool| {
        let code = "x = {{ stat.a }}";
        faults(exact_json!({"tasks": [
            {"id": "a", "type": "code_execution", "language": "python", "code": code, "template": template}]}))
    };
    assert_eq!(task(false), [""; 0]);
    assert_eq!(task(true), ["task a, code: unknown name stat (did you mean state?)"]);
}

#[test]
fn inputs_that_a_workflow_does_not_have_are_faults() {
    let workflow = dag(exact_json!({"inputs": {"version": 1, "to": 2}, "tasks": [
        {"id": "a", "type": "pass", "value": "{{ inputs.dot }} {{ inputs['single'] }} {{ inputs[\"double\"] }}"},
        {"id": "b", "type": "pass", "value": "{{ inputs.get('got', 1) }}"}]}));
    let found = |workflow: &Dag, names: &[&str]| {
        let given = names.iter().map(|name| ((*name).to_owned(), JsonValue::Null)).collect();
        check_inputs(workflow, &given).map_err(|faults| faults.to_string())
    };
    let known = ["version", "to", "dot", "single", "double", "got"];
    assert_eq!(found(&workflow, &known), Ok(()));
    let told = "inputs: the workflow has no input `versoin`; it declares `version`, `to` \
                (did you mean version?)";
    assert_eq!(found(&workflow, &["versoin", "to"]), Err(told.to_owned()));
    assert!(found(&workflow, &["do"]).is_err(), "the beginning of a name is another name");
    // An agent's inputs are its first state: whatever they are.
    assert_eq!(found(&Dag::default(), &["anything"]), Ok(()));
}
