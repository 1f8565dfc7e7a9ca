//! Every example of docs/python.md runs and gives the value it promises (A2, A8, A11).

use serde_json::Value;

use crate::cpython_harness::{Python, value_in};

/// The fenced `python` blocks: code, and the JSON its last line promises.
fn examples(document: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("\n```python\n") {
        let (block, next) = after.split_once("\n```").expect("a block that is opened is closed");
        let (code, promise) = block.rsplit_once("\n# => ").expect("a block ends in `# => JSON`");
        let promise = serde_json::from_str(promise).expect("what follows `# =>` is JSON");
        found.push((code.to_owned(), promise));
        rest = next;
    }
    found
}

/// A2, A8, A11.
#[test]
fn examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/python.md"));
    assert!(examples.len() > 7, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        assert_eq!(value_in(Python::Data, &code), promise, "{code}");
    }
}
