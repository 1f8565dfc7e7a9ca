//! F8: constructs of agents, alone and together, as the machine runs them.

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonValue, exact_json};

use super::{perform, run};
use crate::tests::good;
use belljar_workflow::TaskFailure;

/// Counts what is done in `n`, and keeps the names in `log`.
fn count(id: &str, given: &JsonValue) -> JsonValue {
    let n = given["n"].as_i64().unwrap_or_default() + 1;
    let log = format!("{}{id} ", given["log"].as_str().unwrap_or_default());
    exact_json!({"n": n, "log": log})
}

#[test]
fn a_goto_back_makes_rounds() {
    let text = "
nodes:
  - {name: a, run: x}
  - {name: b, run: x, goto: [{if: state.n < 6, to: a}]}
  - {name: c, run: x}
";
    let ran = run(text, exact_json!({}), count).ok();
    assert_eq!(ran.order(), "a b a b a b c");
    assert_eq!((ran.state("n"), ran.state("log")), (exact_json!(7), exact_json!("a b a b a b c ")));
    assert_eq!(ran.output["n"], exact_json!(7));
}

#[test]
fn an_endless_goto_fails_and_says_so() {
    let ran = run("nodes: [{name: a, run: x, goto: a}]", exact_json!({}), count);
    assert_eq!((ran.status, ran.order.len()), (WorkflowStatus::Failed, 1_000));
    assert_eq!(ran.why(), "the loop reached its limit of 1000 rounds");
}

#[test]
fn two_circles_one_after_the_other_with_a_way_around_the_second() {
    let text = "
nodes:
  - {name: a, run: x, goto: [{if: state.n < 2, to: a}, {if: state.short, to: z}]}
  - {name: b, run: x}
  - {name: c, run: x, goto: [{if: state.n < 6, to: b}]}
  - {name: z, run: x}
";
    assert_eq!(run(text, exact_json!({"short": false}), count).ok().order(), "a a b c b c z");
    assert_eq!(run(text, exact_json!({"short": true}), count).ok().order(), "a a z");
}

#[test]
fn conditions_that_do_not_hold_do_not_stop_the_way() {
    let text = "
nodes:
  - {name: a, run: x}
  - {name: b, run: x, when: state.n > 5}
  - {name: c, run: x, when: state.n > 5, goto: [{if: state.n == 1, to: e}]}
  - {name: d, run: x}
  - {name: e, run: x}
";
    assert_eq!(run(text, exact_json!({}), count).ok().order(), "a e");
    assert_eq!(run(text, exact_json!({"n": 7}), count).ok().order(), "a b c d e");
}

#[test]
fn a_while_loop_ends_quietly_at_its_limit() {
    let text = "
initial_state: {n: 0}
nodes:
  - name: again
    type: while_loop
    condition: state.n < state.most
    max_iterations: 4
    body:
      - {name: one, run: x}
      - {name: odd, run: x, when: state.n % 2 == 1}
      - {name: two, uses: log.write, with: {text: 'n is {{ state.n }}'}, output: said}
  - {name: last, run: x}
";
    let table = |id: &str, given: &JsonValue| match id {
        "two" => given["text"].clone(),
        _ => count(id, given),
    };
    let ran = run(text, exact_json!({"most": 3}), table).ok();
    assert_eq!(ran.order(), "one odd two one odd two last");
    assert_eq!(ran.state("said"), exact_json!("n is 4"));
    let ran = run(text, exact_json!({"most": 100}), table).ok();
    assert_eq!(ran.order.iter().filter(|id| *id == "one").count(), 4);
    assert_eq!(run(text, exact_json!({"most": 0}), table).ok().order(), "last");
}

#[test]
fn dynamic_parallel_with_a_tool_collects_in_order() {
    let text = "
nodes:
  - name: all
    type: dynamic_parallel
    items: state.urls
    item_var: url
    max_concurrency: 2
    action: {uses: web.get, with: {url: '{{ url.upper() }}', n: '{{ index }}'}, output: page}
    output: pages
  - {name: sum, run: x}
";
    let ran = run(text, exact_json!({"urls": ["a", "b", "c"]}), |id, given| match id {
        "action" => exact_json!(format!("{}{}", given["url"].as_str().unwrap(), given["n"])),
        _ => exact_json!({"all": given["pages"].as_array().unwrap().len()}),
    });
    let ran = ran.ok();
    let pages = ran.state("pages");
    let page = |n: usize| pages[n]["page"].clone();
    assert_eq!(
        [page(0), page(1), page(2)],
        [exact_json!("A0"), exact_json!("B1"), exact_json!("C2")]
    );
    assert_eq!(ran.state("all"), exact_json!(3));
    let ran = run(text, exact_json!({"urls": []}), |_, _| exact_json!({})).ok();
    assert_eq!((ran.order().as_str(), ran.state("pages")), ("sum", exact_json!([])));
}

#[test]
fn dynamic_parallel_with_steps_keeps_its_state_to_itself() {
    let text = "
state_schema: {log: {type: list, reducer: append, default: [begun]}}
nodes:
  - name: all
    type: dynamic_parallel
    items: '{{ state.docs }}'
    item_var: doc
    steps:
      - {name: size, run: x}
      - {name: big, run: x, when: state.size > 2}
      - {name: small, uses: a.b, when: \"state.get('size', 0) <= 2\", with: {d: '{{ doc }}'}, output: kept}
    fan_in: join
  - {name: join, fan_in: true, run: parallel_results}
";
    let ran = run(text, exact_json!({"docs": ["x", "long"]}), |id, given| match id {
        "size" => exact_json!({"size": given["doc"].as_str().unwrap().len(), "log": "sized"}),
        "big" => exact_json!({"log": ["big"]}),
        "small" => given["d"].clone(),
        "join" => {
            let each = given["parallel_results"].as_array().unwrap();
            exact_json!({"logs": each.iter().map(|one| one["log"].clone()).collect::<Vec<_>>()})
        }
        other => panic!("{other}"),
    });
    let ran = ran.ok();
    assert_eq!(ran.state("logs"), exact_json!([["begun", "sized"], ["begun", "sized", "big"]]));
    assert_eq!((ran.state("log"), ran.state("size")), (exact_json!(["begun"]), exact_json!(null)));
    assert_eq!(ran.order.last().unwrap(), "join");
}

#[test]
fn parallel_edges_join_what_their_branches_gave() {
    let text = "
nodes:
  - {name: s, run: x}
  - {name: a, run: x}
  - {name: b, uses: t.b, output: b}
  - {name: b2, uses: t.c, when: state.more}
  - {name: join, fan_in: true, run: parallel_results}
edges:
  - {from: s, to: a, type: parallel, fan_in: join}
  - {from: s, to: b, type: parallel, fan_in: join}
  - {from: s, to: b2, type: parallel, fan_in: join}
";
    for more in [true, false] {
        let ran = run(text, exact_json!({"more": more}), |id, given| match id {
            "s" => exact_json!({}),
            "join" => exact_json!({"joined": given["parallel_results"]}),
            other => exact_json!({"from": other}),
        });
        let ran = ran.ok();
        let joined = ran.state("joined");
        let of = |n: usize| (joined[n]["branch"].clone(), joined[n]["state"].clone());
        assert_eq!(of(0), (exact_json!("a"), exact_json!({"more": more, "from": "a"})));
        assert_eq!(of(1), (exact_json!("b"), exact_json!({"more": more, "b": {"from": "b"}})));
        let third = if more {
            exact_json!({"more": true, "from": "b2"})
        } else {
            exact_json!({"more": false})
        };
        assert_eq!(of(2), (exact_json!("b2"), third));
        assert_eq!(
            (&joined[0]["from"], &joined[0]["success"]),
            (&exact_json!("a"), &exact_json!(true))
        );
        assert_eq!(ran.order(), if more { "s a b b2 join" } else { "s a b join" });
    }
}

#[test]
fn steps_are_one_after_another_over_the_same_state() {
    let text = "
nodes:
  - name: work
    steps:
      - {name: one, run: x}
      - {run: x, when: state.n > 9}
      - {name: three, steps: [{name: inner, run: x}, {name: more, run: x}]}
      - {name: four, uses: code.execute, with: {code: '{{ state.log }}'}, output: report}
  - {name: after, run: x, when: '{{ len(state.log) > 3 }}'}
";
    let ran = run(text, exact_json!({}), |id, given| match id {
        "four" => given["code"].clone(),
        _ => count(id, given),
    });
    let ran = ran.ok();
    assert_eq!(ran.order(), "one inner more four after");
    // Code that is a template was rendered.
    assert_eq!(ran.state("report"), exact_json!("one inner more "));
}

#[test]
fn people_are_asked_in_loops_too() {
    let text = "
nodes:
  - {name: draft, run: x}
  - {name: review, run: x, interrupt: before, goto: [{if: state.n < 4, to: draft}]}
  - {name: send, run: x}
config: {interrupt_after: [send]}
";
    let ran = run(text, exact_json!({}), count).ok();
    assert_eq!(ran.order(), "draft review draft review send");
    assert_eq!(ran.asked, ["review", "review", "send"]);
}

#[test]
fn edges_choose_by_expressions_as_python_writes_them() {
    let text = "
nodes: [{name: look, run: x}, {name: yes, run: x}, {name: 'no way', run: x}, {name: end.1, run: x}]
edges:
  - {from: __start__, to: look}
  - {from: look, to: yes, when: 'state.get(\"kind\", \"\").lower().startswith(\"y\") and state.flag is not None'}
  - {from: look, to: no way, when: 'state.flag == True or \"q\" in state.tags.keys()'}
  - {from: [yes, no way], to: end.1}
";
    let table = |_: &str, _: &JsonValue| exact_json!({});
    let inputs =
        |kind: &str, flag: JsonValue| exact_json!({"kind": kind, "flag": flag, "tags": {"q": 1}});
    assert_eq!(run(text, inputs("Yes", exact_json!(1)), table).ok().order(), "look yes end.1");
    assert_eq!(
        run(text, inputs("Yes", exact_json!(null)), table).ok().order(),
        "look no way end.1"
    );
    assert_eq!(run(text, inputs("", exact_json!(true)), table).ok().order(), "look no way end.1");
}

#[test]
fn f8_what_a_node_returns_that_is_no_mapping_is_the_result() {
    let text = "nodes: [{name: a, run: x}, {name: b, run: x}]";
    let ran =
        run(
            text,
            exact_json!({}),
            |id, _| if id == "a" { exact_json!([1]) } else { exact_json!(null) },
        )
        .ok();
    assert_eq!((ran.order().as_str(), ran.output), ("a b", exact_json!({"result": [1]})));
    let ran = run(text, exact_json!({"x": 1}), |_, _| exact_json!(null)).ok();
    assert_eq!((ran.order().as_str(), ran.output), ("a b", exact_json!({"x": 1})));
    // The last expression of a script may not be meant as a value.
    let text = "nodes: [{name: a, language: js, run: 'state.x = 1'}]";
    let ran = run(text, exact_json!({}), |_, _| exact_json!(1));
    assert_eq!(ran.why(), "the result goes into the state and must be an object, not a number");
}

#[test]
fn what_fails_leaves_the_state_alone_and_may_be_gone_past() {
    let text = "
state_schema: {total: {type: int, reducer: add, default: 1}}
nodes:
  - {name: a, run: x, on_error: continue}
  - {name: b, uses: t.b, on_error: continue, output: b}
  - {name: c, run: x}
";
    let ran = perform(good(text).dag, exact_json!({}), |id, _| match id {
        "a" => Ok(exact_json!({"first": 1, "total": "three"})),
        "b" => Err(TaskFailure::new("down", "it is down")),
        _ => Ok(exact_json!({"total": 4})),
    });
    let ran = ran.ok();
    assert_eq!(ran.output, exact_json!({"total": 5}));
}
