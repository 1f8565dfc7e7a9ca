//! Every example of docs/bash.md runs and gives the value it promises (A3).

use crate::{
    bash_cell::{ShellCell, script},
    documents::examples,
};

#[test]
fn a3_examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/bash.md"), "bash", "# =>");
    assert!(examples.len() >= 5, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        let cell = ShellCell::new();
        let outcome = cell.run(&code.replace("/work", &cell.at("work")));
        assert_eq!((outcome.error, outcome.value), (None, promise), "{code}");
    }
}

/// B1: those of a session are its runs.
#[test]
fn b1_examples_of_a_session_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/bash.md"), "bash session", "# =>");
    assert!(examples.len() > 1, "only {} examples were found", examples.len());
    let commands = examples.iter().map(|(code, _)| script(code)).collect();
    for ((code, promise), outcome) in examples.iter().zip(ShellCell::new().run_session(commands)) {
        assert_eq!((outcome.error, &outcome.value), (None, promise), "{code}");
    }
}
