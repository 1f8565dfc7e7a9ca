//! The examples of the pages in docs/: fenced blocks whose last line promises a value.

use serde_json::Value;

/// The blocks of a language: code, and the JSON after the mark in its last line.
pub(crate) fn examples(document: &str, language: &str, mark: &str) -> Vec<(String, Value)> {
    let opening = format!("\n```{language}\n");
    let examples = document.split(&opening).skip(1).map(|block| {
        let (block, _) = block.split_once("\n```").expect("a block that is opened is closed");
        let (code, promise) =
            block.rsplit_once(&format!("\n{mark} ")).expect("a block ends in what it promises");
        let promise = serde_json::from_str(promise).expect("what is promised is JSON");
        (code.to_owned(), promise)
    });
    examples.collect()
}
