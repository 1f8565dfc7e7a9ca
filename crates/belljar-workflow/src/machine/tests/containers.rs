//! Foreach, loop, nested workflow, wait.

use super::*;

#[test]
fn f1_foreach_gives_results_in_order_and_keeps_its_bound() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "each", "type": "foreach", "items": "{{ range(4) }}", "at_once": 2,
         "do": {"id": "x", "type": "mcp_tool", "tool": "s:t", "arguments": {"i": "{{ item }}", "n": "{{ index }}"}}}
    ]}));
    assert_eq!(rig.names(), ["each[0]", "each[1]"]);
    rig.done("each[1]", exact_json!("b"));
    assert_eq!(rig.names(), ["each[0]", "each[2]"]);
    rig.done("each[2]", exact_json!("c"));
    rig.done("each[3]", exact_json!("d"));
    rig.done("each[0]", exact_json!("a"));
    assert_eq!(rig.output(), exact_json!({"each": ["a", "b", "c", "d"]}));
}

fn each(fail_fast: bool, on_error: JsonValue) -> Rig {
    Rig::new(exact_json!({"tasks": [
        {"id": "each", "type": "foreach", "items": [1, 2, 3], "fail_fast": fail_fast, "on_error": on_error,
         "do": {"id": "x", "type": "mcp_tool", "tool": "s:t"}}
    ]}))
}

#[test]
fn f1_the_first_failure_ends_the_others_or_not() {
    let mut rig = each(true, exact_json!("fail"));
    rig.fail("each[1]");
    assert_eq!(rig.cancelled, ["each[0]", "each[2]"]);
    rig.fail("each[0]");
    rig.fail("each[2]");
    assert_eq!(rig.status(), WorkflowStatus::Failed);

    let mut rig = each(false, exact_json!("continue"));
    rig.fail("each[1]");
    rig.done("each[0]", exact_json!("a"));
    rig.done("each[2]", exact_json!("c"));
    assert_eq!(rig.output(), exact_json!({"each": ["a", null, "c"]}));
    assert_eq!(rig.machine.task("each").unwrap().failure.unwrap().code, "items_failed");
}

#[test]
fn a_foreach_of_nothing_and_of_no_list() {
    let none = exact_json!({"tasks": [{"id": "e", "type": "foreach", "items": [], "do": {"id": "x", "type": "pass"}}]});
    assert_eq!(Rig::new(none).output(), exact_json!({"e": []}));
    let no_list = exact_json!({"tasks": [{"id": "e", "type": "foreach", "items": "{{ 5 }}", "do": {"id": "x", "type": "pass"}}]});
    assert_eq!(Rig::new(no_list).status(), WorkflowStatus::Failed);
}

#[test]
fn f1_containers_inside_containers() {
    let rig = Rig::new(exact_json!({"tasks": [
        {"id": "e", "type": "foreach", "items": [[1, 2], [3]], "do":
            {"id": "x", "type": "foreach", "items": "{{ item }}", "do": {"id": "y", "type": "workflow",
                "inputs": {"n": "{{ item }}"},
                "workflow": {"tasks": [{"id": "in", "type": "pass", "value": "{{ inputs.n * 10 }}"}], "output": "{{ results.in }}"}}}}
    ]}));
    assert_eq!(rig.output(), exact_json!({"e": [[10, 20], [30]]}));
    assert_eq!(rig.task("e[0][1]/in"), TaskStatus::Completed);
}

#[test]
fn f1_a_nested_workflow_has_its_own_state_and_bound() {
    let mut rig = Rig::new(exact_json!({"state": {"n": 1}, "tasks": [
        {"id": "sub", "type": "workflow", "inputs": {"k": "{{ state.n }}"}, "on_error": "continue", "workflow": {
            "settings": {"concurrency": 1}, "inputs": {"k": 0, "d": 5}, "state": {"n": 100},
            "tasks": [tool("p", &[]), tool("q", &[]),
                {"id": "z", "type": "pass", "depends_on": ["p", "q"], "value": 1, "output": {"n": "{{ inputs.k + inputs.d }}"}}],
            "output": "{{ state.n }}"}}
    ]}));
    assert_eq!(rig.names(), ["sub/p"]);
    rig.done("sub/p", exact_json!(1));
    rig.done("sub/q", exact_json!(1));
    assert_eq!(rig.output(), exact_json!({"sub": 6}));
    assert_eq!(rig.machine.state(), &map(exact_json!({"n": 1})));
}

#[test]
fn f8_a_loop_by_condition() {
    let rig = Rig::new(exact_json!({"state": {"n": 0}, "tasks": [
        {"id": "l", "type": "loop", "while": "state.n < 3", "body": [
            {"id": "s", "type": "pass", "value": "{{ state.n + 1 }}", "output": {"n": "{{ result }}"}},
            {"id": "t", "type": "pass", "depends_on": ["s"], "value": "{{ results.s * loop.iteration }}"}]}
    ]}));
    assert_eq!(
        rig.output(),
        exact_json!({"l": {"rounds": 3, "results": {"s": 3, "t": 9}, "exhausted": false}})
    );
    assert!(rig.machine.task("l#1/s").is_none(), "old rounds are forgotten");
}

#[test]
fn f8_a_loop_by_jumps() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "l", "type": "loop", "max_rounds": 5, "body": [
            {"id": "first", "type": "pass", "value": "{{ loop.iteration }}"},
            {"id": "work", "type": "mcp_tool", "tool": "s:t", "depends_on": ["first"], "arguments": {"f": "{{ results.first }}"}}],
         "goto": [{"if": "results.work == 'again'", "to": "work"}, {"to": "end"}]}
    ]}));
    rig.done("l#1/work", exact_json!("again"));
    let crate::TaskWork::McpTool(call) = &rig.started[0].work else { panic!("tool") };
    assert_eq!(call.arguments["f"], exact_json!(1), "what was jumped over keeps its result");
    rig.done("l#2/work", exact_json!("enough"));
    assert_eq!(rig.output()["l"]["rounds"], exact_json!(2));
}

#[test]
fn a_loop_ends_at_its_bound() {
    let rig = Rig::new(exact_json!({"tasks": [
        {"id": "l", "type": "loop", "while": "true", "max_rounds": 7, "at_limit": "end", "body": [{"id": "s", "type": "pass"}]}
    ]}));
    assert_eq!(
        rig.output()["l"],
        exact_json!({"rounds": 7, "results": {"s": null}, "exhausted": true})
    );
}

#[test]
fn f8_a_loop_that_must_not_go_on_fails() {
    let rig = Rig::new(exact_json!({"tasks": [
        {"id": "l", "type": "loop", "while": "true", "max_rounds": 2, "body": [{"id": "s", "type": "pass"}]},
        {"id": "after", "type": "pass", "depends_on": ["l"]}
    ]}));
    assert_eq!(rig.status(), WorkflowStatus::Failed);
    assert_eq!(rig.finish.unwrap().failure.unwrap().code, "loop");
}

#[test]
fn f8_a_loop_without_conditions_is_a_group() {
    let rig = Rig::new(exact_json!({"state": {"n": 1}, "tasks": [
        {"id": "g", "type": "loop", "max_rounds": 1, "body": [
            {"id": "a", "type": "pass", "value": {"n": "{{ state.n + 1 }}"}, "merge_result": true},
            {"id": "b", "type": "pass", "depends_on": ["a"], "value": "{{ state.n }}"}]}
    ]}));
    let results = exact_json!({"a": {"n": 2}, "b": 2});
    assert_eq!(
        rig.output()["g"],
        exact_json!({"rounds": 1, "results": results, "exhausted": false})
    );
}

#[test]
fn f8_results_are_merged_through_reducers_and_before_the_output() {
    let mut rig = Rig::new(exact_json!({
        "state": {"log": ["x"], "n": 1}, "reducers": {"log": "append", "n": "sum"}, "output": "{{ state }}",
        "tasks": [{"id": "a", "type": "mcp_tool", "tool": "s:t", "merge_result": true,
                   "output": {"log": "end", "got": "{{ result.n }}"}}]
    }));
    rig.done("a", exact_json!({"log": ["y", "z"], "n": 4, "new": true}));
    let expected = exact_json!({"log": ["x", "y", "z", "end"], "n": 5, "new": true, "got": 4});
    assert_eq!(rig.output(), expected);
}

#[test]
fn f8_code_that_is_a_template_is_rendered() {
    let code = |template: bool| {
        let rig = Rig::new(exact_json!({"state": {"draft": "print(1)"}, "tasks": [
            {"id": "c", "type": "code_execution", "language": "python", "code": "{{ state.draft }}", "template": template}]}));
        let crate::TaskWork::CodeExecution(code) = &rig.started[0].work else { panic!("code") };
        code.code.clone()
    };
    assert_eq!((code(true).as_str(), code(false).as_str()), ("print(1)", "{{ state.draft }}"));
}

#[test]
fn f1_waiting() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "w", "type": "wait", "wait_ms": "{{ 5 * 10 }}"},
        {"id": "u", "type": "wait", "until_ms": 7000, "depends_on": ["w"]}
    ]}));
    assert_eq!(rig.machine.timers()[0].1, 1050);
    rig.tick();
    assert_eq!(rig.machine.timers()[0].1, 7000);
    rig.tick();
    assert_eq!(rig.status(), WorkflowStatus::Completed);
}

#[test]
fn a_container_over_its_time_stops_what_is_inside() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "e", "type": "foreach", "items": [1, 2], "timeout_ms": 10, "on_error": "continue", "do": {"id": "x", "type": "mcp_tool", "tool": "s:t"}}
    ]}));
    rig.tick();
    assert_eq!(rig.cancelled, ["e[0]", "e[1]"]);
    rig.fail("e[0]");
    rig.fail("e[1]");
    assert_eq!(rig.status(), WorkflowStatus::Completed);
    assert_eq!(rig.machine.task("e").unwrap().failure.unwrap().code, "timeout");
}

#[test]
fn f1_a_loop_fails_when_it_would_go_on_for_ever() {
    let rig = Rig::new(exact_json!({"tasks": [
        {"id": "l", "type": "loop", "while": "true", "max_rounds": 3, "body": [{"id": "s", "type": "pass"}]}
    ]}));
    assert_eq!((rig.status(), rig.task("l")), (WorkflowStatus::Failed, TaskStatus::Failed));
}

#[test]
fn f2_a_result_is_merged_into_the_state_key_by_key() {
    let node = |id: &str, deps: &[&str]| {
        exact_json!({"id": id, "type": "code_execution", "language": "python", "code": "x",
            "merge_result": true, "depends_on": deps})
    };
    let mut rig = Rig::new(exact_json!({
        "reducers": {"seen": "append"},
        "tasks": [node("a", &[]), node("b", &["a"]), node("c", &["b"])]
    }));
    rig.done("a", exact_json!({"n": 1, "seen": ["a"]}));
    rig.done("b", JsonValue::Null);
    assert_eq!(rig.machine.state(), &map(exact_json!({"n": 1, "seen": ["a"]})));
    rig.done("c", exact_json!(3));
    assert_eq!(rig.status(), WorkflowStatus::Failed, "a number has no keys");
}
