//! Every example of docs/javascript.md runs and gives the value it promises (A1, A8, A11).

use crate::{documents::examples, harness::value};

/// A1, A8, A11.
#[test]
fn examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/javascript.md"), "ts", "// =>");
    assert!(examples.len() > 15, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        assert_eq!(value(&code), promise, "{code}");
    }
}
