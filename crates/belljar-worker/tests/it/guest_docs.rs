//! Every example of docs/javascript.md runs and gives the value it promises (A1, A8, A11).

use belljar_worker::quickjs::QuickJs;

use crate::{
    documents::examples,
    harness::{command, run_session, value},
};

#[test]
fn a1_a8_a11_examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/javascript.md"), "ts", "// =>");
    assert!(examples.len() > 15, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        assert_eq!(value(&code), promise, "{code}");
    }
}

/// B1: those of a session are its runs.
#[test]
fn b1_examples_of_a_session_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/javascript.md"), "ts session", "// =>");
    assert!(examples.len() > 2, "only {} examples were found", examples.len());
    let commands = examples.iter().map(|(code, _)| command(code)).collect();
    let warm = || QuickJs::warm().expect("the engine warms");
    let outcomes = run_session(warm, commands, |ask| unreachable!("nobody answers {ask:?}"));
    for ((code, promise), outcome) in examples.iter().zip(outcomes) {
        assert_eq!((outcome.error, &outcome.value), (None, promise), "{code}");
    }
}
