//! Every example of docs/python.md runs and gives the value it promises (A2, A8, A11, D1).

use serde_json::{Value, json};

use crate::{
    cpython_harness::{Python, command, run_session},
    cpython_tools::{Cell, GuestFrame},
    documents::examples,
};

#[test]
fn a2_a8_a11_d1_examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/python.md"), "python", "# =>");
    assert!(examples.len() > 11, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        let mut cell = Cell::start_with(Python::Data, &code, &json!({"grants": {"modules": []}}));
        let value = loop {
            match cell.hear() {
                GuestFrame::Call(head, arguments) => shop(&mut cell, &head, &arguments),
                GuestFrame::Print(_) | GuestFrame::Other(..) => {}
                GuestFrame::Done(value) => break value,
                other @ (GuestFrame::Failed(_) | GuestFrame::TimerWanted(_)) => {
                    unreachable!("{code}: {other:?}");
                }
            }
        };
        assert_eq!(value, promise, "{code}");
    }
}

/// The server of the examples.
fn shop(cell: &mut Cell, head: &Value, arguments: &Value) {
    let text = |name: &str| head.get(name).and_then(Value::as_str);
    assert_eq!(text("server"), Some("shop"));
    let call = head.get("call").and_then(Value::as_u64).expect("a call has a number");
    if text("tool") == Some("cancel_order") {
        return cell.fault_of("shop__cancel_order", call, "tool.failed", "order 7 was shipped");
    }
    let order = |n: u64| json!({"id": n, "city": arguments.get("city"), "price": n * 10});
    let limit = arguments.get("limit").and_then(Value::as_u64).expect("a limit");
    cell.reply(call, &(1..=limit).map(order).collect());
}

/// B1: those of a session are its runs.
#[test]
fn b1_examples_of_a_session_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/python.md"), "python session", "# =>");
    assert!(examples.len() > 1, "only {} examples were found", examples.len());
    let commands: Vec<_> = examples.iter().map(|(code, _)| command(code)).collect();
    for ((code, promise), outcome) in examples.iter().zip(run_session(Python::Plain, &commands)) {
        assert_eq!((outcome.error, &outcome.value), (None, promise), "{code}");
    }
}
