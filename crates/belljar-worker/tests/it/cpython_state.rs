//! Values that Python leaves in `state` are handed on (A9).

use serde_json::{Value, json};

use crate::{
    cpython_harness::{Python, command, run, run_session},
    harness::Outcome,
};

fn told(outcome: &Outcome) -> (&Value, &Value) {
    assert_eq!(outcome.error, None);
    (&outcome.state, &outcome.value)
}

#[test]
fn a9_what_code_leaves_in_state_is_sent() {
    for (code, state) in [
        ("state.x = 1", json!({ "x": 1 })),
        ("state['x'] = 1\nreturn 5", json!({ "x": 1 })),
        ("state = {'rows': [1, 2], 'n': None}", json!({ "rows": [1, 2], "n": null })),
        ("import asyncio\nawait asyncio.sleep(0)\nstate['late'] = True", json!({ "late": true })),
        ("1", Value::Null),
        ("state = 'CA'", Value::Null),
        ("def f():\n    state = {'mine': 1}\nf()", Value::Null),
    ] {
        let outcome = run(code);
        assert_eq!(told(&outcome).0, &state, "{code}");
    }
}

#[test]
fn a9_a_state_that_is_no_json_is_left_out_and_the_run_goes_on() {
    for (code, why) in [
        ("state['f'] = print\nreturn 7", "state.f is a function, which JSON cannot represent"),
        ("state['s'] = 'x' * (2 << 20)\nreturn 7", "state is larger than 1 MiB of JSON"),
    ] {
        let outcome = run(code);
        assert_eq!(told(&outcome), (&json!("left out"), &json!(7)), "{code}");
        let log = &outcome.prints.last().expect("a line in the log").1;
        assert_eq!(log, &format!("[state] not returned: {why}"), "{code}");
    }
}

#[test]
fn a9_the_state_of_a_session_stays() {
    let codes = ["state['a'] = 1", "state.b = 2", "state = {}", "state['c'] = 3"];
    let outcomes = run_session(Python::Plain, &codes.map(command));
    let states: Vec<_> = outcomes.iter().map(|outcome| told(outcome).0.clone()).collect();
    assert_eq!(states, [json!({"a": 1}), json!({"a": 1, "b": 2}), Value::Null, json!({"c": 3})]);
}
