//! Every example of docs/python.md runs and gives the value it promises (A2, A8, A11).

use crate::{
    cpython_harness::{Python, value_in},
    documents::examples,
};

/// A2, A8, A11.
#[test]
fn examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/python.md"), "python", "# =>");
    assert!(examples.len() > 7, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        assert_eq!(value_in(Python::Data, &code), promise, "{code}");
    }
}
