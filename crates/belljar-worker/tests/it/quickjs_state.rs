//! Values that code leaves in `state` are handed on (A9).

use belljar_wire::RunCommand;
use belljar_worker::quickjs::QuickJs;
use serde_json::{Value, json};

use crate::harness::{command, run, run_command, run_session};

#[test]
fn a9_what_code_leaves_in_state_is_sent() {
    for (code, state) in [
        ("state.x = 1", json!({ "x": 1 })),
        (
            "state = { rows: [1, 2], when: new Date(0) }; return 5",
            json!({ "rows": [1, 2], "when": "1970-01-01T00:00:00.000Z" }),
        ),
        ("globalThis.state = new Map([['a', 1]])", json!({ "a": 1 })),
        (
            "await Promise.resolve(); state.deep = { a: { b: null } }",
            json!({ "deep": { "a": { "b": null } } }),
        ),
        ("1", Value::Null),
        ("state = 'CA'", Value::Null),
        ("state = [1, 2]", Value::Null),
        ("const state = { mine: 1 }; return state.mine", Value::Null),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.state, outcome.error), (state, None), "{code}");
    }
}

#[test]
fn a9_a_state_that_is_no_json_is_left_out_and_the_run_goes_on() {
    for (code, why) in [
        ("state.f = () => 1; return 7", "state.f is a function, which JSON cannot represent"),
        ("state.a = {}; state.a.b = state; return 7", "state.a.b contains itself"),
        ("state = { get x() { throw new Error('no') } }; return 7", "state cannot be read"),
        (
            "state.text = 'x'.repeat(2 << 20); return 7",
            "state is larger than 1048576 bytes of JSON",
        ),
    ] {
        let outcome = run(code);
        assert_eq!((&outcome.state, &outcome.value), (&json!("left out"), &json!(7)), "{code}");
        let log = &outcome.prints.last().expect("a line in the log").1;
        assert_eq!(log, &format!("[state] not returned: {why}"), "{code}");
    }
}

#[test]
fn a9_a_getter_in_state_that_never_ends_is_interrupted() {
    let mut endless = command("state = { get x() { for (;;); } }; return 7");
    endless.limits.wall_ms = 300;
    assert_eq!(run_command(endless).place().0, belljar_contract::ErrorCode::LimitTimeout);
}

#[test]
fn a9_the_state_of_a_session_stays() {
    let codes = ["state.a = 1", "state.b = 2", "state = {}", "state.c = 3"];
    let commands: Vec<RunCommand> = codes.map(command).into();
    let warm = || QuickJs::warm().expect("the engine warms");
    let outcomes = run_session(warm, commands, |ask| unreachable!("{ask:?}"));
    let states: Vec<_> = outcomes.into_iter().map(|outcome| outcome.state).collect();
    assert_eq!(states, [json!({"a": 1}), json!({"a": 1, "b": 2}), Value::Null, json!({"c": 3})]);
}
