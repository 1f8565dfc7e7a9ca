//! Every example of docs/bash.md runs and gives the value it promises (A3).

use serde_json::Value;

use crate::bash_cell::ShellCell;

/// The fenced `bash` blocks: code, and the JSON its last line promises.
fn examples(document: &str) -> Vec<(String, Value)> {
    let blocks = document.split("\n```bash\n").skip(1);
    let examples = blocks.map(|block| {
        let (block, _) = block.split_once("\n```").expect("a block that is opened is closed");
        let (code, promise) = block.rsplit_once("\n# => ").expect("a block ends in `# => JSON`");
        let promise = serde_json::from_str(promise).expect("what follows `# =>` is JSON");
        (code.to_owned(), promise)
    });
    examples.collect()
}

/// A3.
#[test]
fn examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/bash.md"));
    assert!(examples.len() >= 5, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        let cell = ShellCell::new();
        let outcome = cell.run(&code.replace("/work", &cell.at("work")));
        assert_eq!((outcome.error, outcome.value), (None, promise), "{code}");
    }
}
