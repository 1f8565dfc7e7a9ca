//! F8: what agents and DAGs mean that were written for other tools, as the machine runs them.

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonValue, exact_json};

use super::{answered, perform, run};
use crate::tests::{good, warnings};
use belljar_workflow::TaskFailure;

#[test]
fn f8_what_an_action_gives_goes_into_the_state_unless_it_says_where() {
    let text = "
nodes:
  - {name: a, uses: t.map}
  - {name: b, uses: t.text}
  - {name: c, uses: t.map, output: kept}
  - {name: d, uses: code.execute, with: {code: x}}
";
    let ran = run(text, exact_json!({}), |id, _| match id {
        "a" => exact_json!({"from": "a", "_next_a": "d"}),
        "b" => exact_json!("words"),
        "c" => exact_json!({"from": "c"}),
        _ => exact_json!({"success": true, "return_value": 7}),
    });
    let output = ran.ok().output;
    // Where loops stand is not set by what tools say.
    let wanted = exact_json!({"from": "a", "result": "words", "kept": {"from": "c"},
        "success": true, "return_value": 7});
    assert_eq!(output, wanted);
}

#[test]
fn f8_what_the_file_says_once_is_not_replaced_by_results() {
    let text = "
settings: {url: theirs}
variables: {n: 1}
nodes:
  - {name: a, uses: t.a}
  - {name: b, run: x}
  - name: all
    type: dynamic_parallel
    items: [1]
    steps:
      - {name: c, uses: t.a}
      - {name: d, uses: t.d, with: {url: '{{ settings.url }}', n: '{{ variables.n }}'}, output: d}
  - {name: e, uses: t.e, with: {url: '{{ settings.url }}', n: '{{ variables.n }}'}, output: e}
";
    let other = exact_json!({"settings": {"url": "evil"}, "variables": {"n": 2}, "free": 1});
    let ran = run(text, other.clone(), |id, given| match id {
        "d" | "e" => given.clone(),
        _ => other.clone(),
    });
    let ran = ran.ok();
    let said = exact_json!({"url": "theirs", "n": 1});
    assert_eq!((ran.state("e"), ran.state("free")), (said.clone(), exact_json!(1)));
    assert_eq!(ran.state("parallel_results")[0]["d"], said, "{}", ran.state("parallel_results"));
    // A part that a file does not have is a part of the state like any other.
    let plain = run("nodes: [{name: a, uses: t.a}]", exact_json!({}), |_, _| other.clone()).ok();
    assert_eq!(plain.state("settings"), exact_json!({"url": "evil"}));
}

#[test]
fn f8_an_output_may_be_a_mapping() {
    let text = "
nodes:
  - {name: a, uses: t.a, output: {said: '{{ result.content }}', n: '{{ state.n }} of {{ result.n }}'}}
  - {name: b, action: t.b, outputs: {also: '{{ action_result.content }}'}}
  - {name: c, run: x, output: whole}
";
    let ran = run(text, exact_json!({"n": 1}), |id, _| match id {
        "c" => exact_json!({"own": id}),
        _ => exact_json!({"content": id, "n": 2}),
    });
    let wanted =
        exact_json!({"n": "1 of 2", "said": "a", "also": "b", "own": "c", "whole": {"own": "c"}});
    assert_eq!(ran.ok().output, wanted);
}

#[test]
fn f8_items_that_fail_are_among_the_results() {
    let text = "
nodes:
  - name: all
    type: dynamic_parallel
    items: '{{ state.urls }}'
    item_var: url
    index_var: i
    action: {uses: web.get, with: {url: '{{ url }}'}, output: page}
    output: pages
  - {name: sum, run: x}
";
    let table = |id: &str, given: &JsonValue| match given["url"].as_str() {
        Some("bad") => Err(TaskFailure::new("down", "it is down")),
        Some(url) => Ok(exact_json!({"size": url.len()})),
        None => Ok(exact_json!({"n": given["pages"].as_array().map(Vec::len), "by": id})),
    };
    let urls = exact_json!({"urls": ["one", "bad"]});
    let ran = perform(good(text).dag, urls.clone(), table).ok();
    let pages = ran.state("pages");
    let wanted = exact_json!({
        "state": {"url": "one", "i": 0, "page": {"size": 3}}, "url": "one", "i": 0,
        "page": {"size": 3}, "index": 0, "branch": "all[0]", "source_node": "all",
        "success": true, "error": null,
    });
    assert_eq!(pages[0], wanted);
    let failed = exact_json!({
        "state": {"url": "bad", "i": 1}, "url": "bad", "i": 1, "index": 1, "branch": "all[1]",
        "source_node": "all", "success": false, "error": "it is down",
    });
    assert_eq!(pages[1], failed);
    assert_eq!(ran.state("n"), exact_json!(2));
    let strict = text.replace("item_var: url", "item_var: url\n    fail_fast: true");
    let ran = perform(good(&strict).dag, urls, table);
    assert_eq!(ran.status, WorkflowStatus::Failed);
}

#[test]
fn f8_a_branch_is_what_the_state_would_be_without_the_others() {
    let text = "
nodes:
  - {name: s, run: x}
  - {name: a, run: x}
  - {name: a2, run: x}
  - {name: b, steps: [{name: one, run: x}, {name: two, uses: t.two, output: two}]}
  - {name: join, fan_in: true, run: parallel_results}
edges:
  - {from: __start__, to: s}
  - {from: s, to: a, type: parallel, fan_in: join}
  - {from: s, to: b, type: parallel, fan_in: join}
  - {from: a, to: a2}
";
    let ran = run(text, exact_json!({"base": 1}), |id, given| match id {
        "s" => exact_json!({"n": 0}),
        "join" => exact_json!({"joined": given["parallel_results"]}),
        "a2" => exact_json!({"more": given["data"]}),
        other => exact_json!({"data": other, "n": 1}),
    });
    let joined = ran.ok().state("joined");
    let a = exact_json!({"base": 1, "n": 1, "data": "a", "more": "a"});
    let b = exact_json!({"base": 1, "n": 1, "data": "one", "two": {"data": "two", "n": 1}});
    assert_eq!((joined[0]["state"].clone(), joined[0]["branch"].clone()), (a, exact_json!("a")));
    assert_eq!((joined[1]["state"].clone(), joined[1]["branch"].clone()), (b, exact_json!("b")));
    assert_eq!(joined[0]["more"], exact_json!("a"));
}

#[test]
fn f8_a_loop_in_a_branch_and_one_that_is_not_gone() {
    let text = "
nodes:
  - {name: s, run: x}
  - {name: a, run: x, goto: [{if: 'state.n < 2', to: a}, {to: join}]}
  - {name: b, run: x, goto: [{if: state.never, to: c}, {to: join}]}
  - {name: c, run: x, goto: join}
  - {name: join, fan_in: true, run: parallel_results}
edges:
  - {from: s, to: a, type: parallel, fan_in: join}
  - {from: s, to: b, type: parallel, fan_in: join}
";
    let ran = run(text, exact_json!({}), |id, given| match id {
        "s" => exact_json!({"n": 0}),
        "a" => exact_json!({"n": given["n"].as_i64().unwrap_or_default() + 1}),
        "join" => exact_json!({"joined": given["parallel_results"]}),
        other => exact_json!({"data": other}),
    });
    let joined = ran.ok().state("joined");
    assert_eq!(joined.as_array().map(Vec::len), Some(2));
    assert_eq!(joined[0]["n"], exact_json!(2));
    assert_eq!(joined[1]["state"], exact_json!({"n": 0, "data": "b"}));
}

#[test]
fn f8_a_part_of_an_agents_state_that_is_not_there_is_false_and_null() {
    let text = "
nodes:
  - {name: a, run: x, when: not state.done and not state.flag, goto: [{if: over, to: c}]}
  - {name: b, uses: t.b, with: {x: '{{ state.missing }}', y: 'is {{ state.a }}'}, output: b}
  - {name: c, run: x}
";
    let ran = run(text, exact_json!({"a": 1}), |id, given| match id {
        "b" => given.clone(),
        _ => exact_json!({}),
    });
    let ran = ran.ok();
    assert_eq!(ran.order(), "a b c");
    assert_eq!(ran.state("b"), exact_json!({"x": null, "y": "is 1"}));
    // In a text it is told, and when it is compared.
    let text = "nodes: [{name: a, uses: t.a, with: {x: 'of {{ state.topik }}'}}]";
    let ran = run(text, exact_json!({"topic": 1}), |_, _| exact_json!(1));
    let why = "unknown name state.topik in `of {{ state.topik }}` (did you mean state.topic?)";
    assert_eq!(ran.why(), why);
    let text = "nodes: [{name: a, run: x, when: state.n < 3}]";
    assert!(
        run(text, exact_json!({}), |_, _| exact_json!(1)).why().starts_with("unknown name state.n")
    );
    // In a DAG it is told anywhere.
    let dag = "tasks: [{id: a, value: 1, merge_result: true, when: inputs.no}]";
    assert!(
        run(dag, exact_json!({}), |_, _| exact_json!(1))
            .why()
            .starts_with("unknown name inputs.no")
    );
}

#[test]
fn f8_what_is_said_with_an_answer_goes_into_an_agents_state() {
    let text = "
nodes:
  - {name: a, run: x}
  - {name: b, run: x, interrupt: before}
  - {name: c, run: x, interrupt: after}
";
    let read = good(text);
    let table = |id: &str, given: &JsonValue| Ok(exact_json!({id: given["ok"]}));
    let value = exact_json!({"ok": true, "_next_b": "c"});
    let ran = answered(read.dag.clone(), exact_json!({}), Some(value), table).ok();
    let wanted = exact_json!({"a": null, "ok": true, "b": true, "c": true});
    assert_eq!((ran.asked.join(" ").as_str(), ran.output), ("b c", wanted));
    // At the end it is still in time.
    let last =
        answered(read.dag.clone(), exact_json!({}), Some(exact_json!({"c": "mine"})), table).ok();
    assert_eq!(last.state("c"), exact_json!("mine"));
    let refused = answered(read.dag, exact_json!({}), Some(exact_json!("yes")), table);
    assert_ne!(refused.status, WorkflowStatus::Completed);
}

#[test]
fn f8_references_of_other_dags_name_results() {
    let text = "
tasks:
  - {id: t1, tool: 'a:b'}
  - id: t2
    tool_name: a:c
    depends_on: [t1]
    params:
      whole: $t1
      deep: $t1.result.list[0]
      braced: 'at ${t1.output.n}!'
      price: costs $t1 and $5
      other: $t9.result
";
    let read = good(text);
    assert_eq!(
        warnings(&read),
        "flow.yaml:4:5: `t2`: `$t9.result` is passed as plain text: no task has that name; write \
         `{{ results.task }}` for the result of a task"
    );
    let ran = perform(read.dag, exact_json!({}), |id, given| {
        Ok(if id == "t1" { exact_json!({"list": ["x"], "n": 2}) } else { given.clone() })
    });
    let wanted = exact_json!({"whole": {"list": ["x"], "n": 2}, "deep": "x", "braced": "at 2!",
        "price": "costs $t1 and $5", "other": "$t9.result"});
    assert_eq!(ran.ok().output["t2"], wanted);
}

#[test]
fn f8_settings_of_the_same_file_are_known() {
    let text = "
settings: {llm: {model: small}}
nodes: [{name: a, uses: t.a, with: {model: '{{ settings.llm.model }}'}, output: a}]
";
    let ran = run(text, exact_json!({}), |_, given| given.clone()).ok();
    assert_eq!(ran.state("a"), exact_json!({"model": "small"}));
    assert_eq!(warnings(&good(text)), "");
}

#[test]
fn f8_a_part_that_is_declared_is_set_whatever_it_is_called() {
    let text = "
state_schema: {tasks: list, context: str}
initial_state: {context: words, messages: [one], decisions: none}
nodes: [{name: a, run: x}, {name: b, run: x}]
";
    let ran = run(
        text,
        exact_json!({}),
        |id, _| exact_json!({"tasks": [id], "context": id, "messages": [id], "decisions": id}),
    );
    let wanted = exact_json!({"tasks": ["b"], "context": "b", "messages": ["one", "a", "b"],
        "decisions": "b"});
    assert_eq!(ran.ok().output, wanted);
}

#[test]
fn surprise_8_where_a_loop_stands_is_not_in_the_result() {
    let text = "
nodes:
  - {name: a, uses: t.a, goto: [{if: state.again, to: a}]}
  - {name: b, uses: t.b, output: done}
";
    let ran = run(text, exact_json!({"again": true}), |id, _| match id {
        "a" => exact_json!({"again": false}),
        _ => exact_json!(1),
    });
    assert_eq!(ran.ok().output, exact_json!({"again": false, "done": 1}));
}
