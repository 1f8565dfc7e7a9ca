//! F8: where nodes lead. The graph is shown as one line for each task.

use super::{good, warnings};
use belljar_workflow::{Action, Dag, Task};

fn picture(dag: &Dag) -> String {
    lines(&dag.tasks, "")
}

fn lines(tasks: &[Task], indent: &str) -> String {
    let mut all = String::new();
    for task in tasks {
        all.push_str(indent);
        all.push_str(&task.id);
        if !task.depends_on.is_empty() {
            all.push_str(&format!(" <- {}", task.depends_on.join(", ")));
        }
        if let Some(when) = &task.when {
            all.push_str(&format!(" when {when}"));
        }
        if let Action::Loop(repeat) = &task.action {
            let test = repeat.condition.as_deref().unwrap_or("once");
            all.push_str(&format!(" while {test}\n{}", lines(&repeat.body, "  ")));
            continue;
        }
        if let Action::Pass { value } = &task.action
            && task.id != "__start__"
        {
            all.push_str(&format!(" = {}", value.as_str().unwrap_or_default()));
        }
        all.push('\n');
    }
    all
}

#[test]
fn in_the_order_written() {
    let read = good("nodes: [{name: a, run: x}, {name: b, run: x}, {name: c, run: x}]");
    insta::assert_snapshot!(picture(&read.dag), @r"
    __start__
    a <- __start__
    b <- a
    c <- b
    ");
}

#[test]
fn goto_forward_leaves_out_what_lies_between() {
    let read = good(
        "nodes: [{name: a, run: x, goto: c}, {name: b, run: x}, {name: c, run: x, goto: __end__}, {name: d, run: x}]",
    );
    insta::assert_snapshot!(picture(&read.dag), @r"
    __start__
    a <- __start__
    c <- a
    ");
    insta::assert_snapshot!(warnings(&read), @r"
    flow.yaml:1:37: `b`: no route leads to this node; it is left out of the workflow
    flow.yaml:1:90: `d`: no route leads to this node; it is left out of the workflow
    ");
}

#[test]
fn goto_by_conditions_is_recorded_once() {
    let read = good(
        "
nodes:
  - name: check
    run: x
    goto: [{if: state.score > 0.9, to: high}, {if: '{{ state.score > 0.5 }}', to: middle}, {to: low}]
  - {name: high, run: x, goto: __end__}
  - {name: middle, run: x}
  - {name: low, run: x}
",
    );
    insta::assert_snapshot!(picture(&read.dag), @r#"
    __start__
    check <- __start__
    check__next <- check = {{ "high" if (state.score > 0.9) else "middle" if (state.score > 0.5) else "low" }}
    high <- check__next when (results["check__next"] | default("")) in ["*", "high"]
    middle <- check__next when (results["check__next"] | default("")) in ["*", "middle"]
    middle__next <- middle when (results["check__next"] | default("")) in ["*", "middle"] = {{ "*" }}
    low <- check__next, middle__next when (results["check__next"] | default("")) in ["*", "low"] or (results["middle__next"] | default("")) in ["*", "low"]
    "#);
}

#[test]
fn goto_back_is_a_loop_of_one_node_a_round() {
    let read = good(
        "
nodes:
  - {name: setup, run: x}
  - {name: try, run: x}
  - name: judge
    run: x
    goto:
      - {if: state.bad and state.n < 3, to: try}
      - {if: state.ok, to: good}
      - {to: __end__}
  - {name: good, run: x}
",
    );
    insta::assert_snapshot!(picture(&read.dag), @r#"
    __start__
    setup <- __start__
    try__enter <- setup = {{ "try" }}
    try__loop <- try__enter while state["_next_try"] in ["try", "judge"]
      try when state["_next_try"] == "try"
      judge when state["_next_try"] == "judge"
      try__next <- try, judge = {{ "judge" if state["_next_try"] == "try" else "try" if (state["_next_try"] == "judge") and (state.bad and state.n < 3) else "good" if (state["_next_try"] == "judge") and (state.ok) else "" if state["_next_try"] == "judge" else "" }}
    good <- try__loop when (state["_next_try"] | default("")) == "good"
    "#);
}

#[test]
fn goto_itself() {
    let read =
        good("nodes: [{name: a, run: x, goto: [{if: state.again, to: a}]}, {name: b, run: x}]");
    insta::assert_snapshot!(picture(&read.dag), @r#"
    __start__
    a__enter <- __start__ = {{ "a" }}
    a__loop <- a__enter while state["_next_a"] in ["a"]
      a when state["_next_a"] == "a"
      a__next <- a = {{ "a" if (state["_next_a"] == "a") and (state.again) else "b" if state["_next_a"] == "a" else "" }}
    b <- a__loop when (state["_next_a"] | default("")) == "b"
    "#);
}

#[test]
fn edges_with_conditions_of_every_shape() {
    let read = good(
        "
nodes: [{name: a, run: x}, {name: b, run: x}, {name: c, run: x}, {name: d, run: x}]
edges:
  - {from: __start__, to: a}
  - {from: a, to: b, condition: {type: expression, value: 'state[\"ok\"] == True'}, when: true}
  - {from: a, to: c, condition: {type: expression, value: 'state[\"ok\"] == True'}, when: false}
  - {from: [b, c], to: d}
  - {from: d, to: __end__}
",
    );
    insta::assert_snapshot!(picture(&read.dag), @r#"
    __start__
    a <- __start__
    a__next <- a = {{ "b" if (state["ok"] == True) else "c" if (not (state["ok"] == True)) else "" }}
    b <- a__next when (results["a__next"] | default("")) in ["*", "b"]
    b__next <- b when (results["a__next"] | default("")) in ["*", "b"] = {{ "*" }}
    c <- a__next when (results["a__next"] | default("")) in ["*", "c"]
    c__next <- c when (results["a__next"] | default("")) in ["*", "c"] = {{ "*" }}
    d <- b__next, c__next when (results["b__next"] | default("")) in ["*", "d"] or (results["c__next"] | default("")) in ["*", "d"]
    "#);
}

#[test]
fn the_start_chooses_too() {
    let read = good(
        "
nodes: [{name: a, run: x}, {name: b, run: x}]
edges:
  - {from: __start__, to: a, when: state.first}
  - {from: __start__, to: b, when: '!first'}
",
    );
    insta::assert_snapshot!(picture(&read.dag), @r#"
    __start__
    __start____next <- __start__ = {{ "a" if (state.first) else "b" if (not state.first) else "" }}
    a <- __start____next when (results["__start____next"] | default("")) in ["*", "a"]
    b <- __start____next when (results["__start____next"] | default("")) in ["*", "b"]
    "#);
}

#[test]
fn parallel_edges_and_their_join() {
    let read = good(
        "
nodes:
  - {name: s, run: x}
  - {name: a, run: x}
  - {name: b, run: x}
  - {name: join, fan_in: true, run: 'parallel_results'}
  - {name: last, run: x}
edges:
  - {from: s, to: a, type: parallel, fan_in: join}
  - {from: s, to: b, parallel: true, fan_in: join}
",
    );
    insta::assert_snapshot!(picture(&read.dag), @r"
    __start__
    s <- __start__
    s__state <- s = {{ state }}
    a <- s
    b <- s
    join <- a, b, s__state
    last <- join
    ");
    let join = read.dag.tasks.iter().find(|task| task.id == "join").expect("join");
    let Action::CodeExecution(code) = &join.action else { panic!() };
    insta::assert_snapshot!(code.context["parallel_results"], @r#"
    ["{{ __branch(__merged(results.s__state, results.a), {\"branch\": \"a\", \"success\": true, \"error\": none}) }}","{{ __branch(__merged(results.s__state, results.b), {\"branch\": \"b\", \"success\": true, \"error\": none}) }}"]
    "#);
}

#[test]
fn two_loops_and_a_way_into_the_middle_of_one() {
    let read = good(
        "
nodes:
  - {name: a, run: x, goto: [{if: state.skip, to: c}]}
  - {name: b, run: x}
  - {name: c, run: x, goto: [{if: state.again, to: b}, {to: d}]}
  - {name: d, run: x, when: state.d, goto: [{if: state.more, to: d}]}
",
    );
    insta::assert_snapshot!(picture(&read.dag), @r#"
    __start__
    a <- __start__
    a__next <- a = {{ "c" if (state.skip) else "b" }}
    b__enter <- a__next when (results["a__next"] | default("")) in ["*", "b"] or (results["a__next"] | default("")) in ["*", "c"] = {{ "b" if ((results["a__next"] | default("")) in ["*", "b"]) else "c" if ((results["a__next"] | default("")) in ["*", "c"]) else "" }}
    b__loop <- b__enter when (results["a__next"] | default("")) in ["*", "b"] or (results["a__next"] | default("")) in ["*", "c"] while state["_next_b"] in ["b", "c"]
      b when state["_next_b"] == "b"
      c when state["_next_b"] == "c"
      b__next <- b, c = {{ "c" if state["_next_b"] == "b" else "b" if (state["_next_b"] == "c") and (state.again) else "d" if state["_next_b"] == "c" else "" }}
    d__enter <- b__loop when (state["_next_b"] | default("")) == "d" = {{ "d" }}
    d__loop <- d__enter when (state["_next_b"] | default("")) == "d" while state["_next_d"] in ["d"]
      d when (state["_next_d"] == "d") and (state.d)
      d__at = {{ state["_next_d"] }}
      d__next <- d, d__at = {{ "d" if (state["_next_d"] == "d") and (state.more) else "" if state["_next_d"] == "d" else "" }}
    "#);
}
