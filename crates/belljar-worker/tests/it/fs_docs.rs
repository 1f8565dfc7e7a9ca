//! Every example about files in docs/javascript.md gives the value it promises (A1, C2).

use std::fs;

use serde_json::Value;

use crate::harness::{Place, value};

/// A1, C2.
#[test]
fn examples_give_what_they_promise() {
    let document = include_str!("../../../../docs/javascript.md");
    let blocks: Vec<&str> = document.split("\n```js\n").skip(1).collect();
    assert!(blocks.len() >= 5, "only {} examples were found", blocks.len());
    for block in blocks {
        let (block, _) = block.split_once("\n```").expect("a block that is opened is closed");
        let (code, promise) = block.rsplit_once("\n// => ").expect("a block ends in `// => JSON`");
        let promise: Value = serde_json::from_str(promise).expect("what follows is JSON");
        let place = Place::new();
        for directory in ["work", "tmp"] {
            fs::create_dir(place.path().join(directory)).expect("a directory can be made");
        }
        let code = code.replace("\"/tmp", &format!("\"{}", place.at("tmp")));
        let code = code.replace("\"/work", &format!("\"{}", place.at("work")));
        assert_eq!(value(&code), promise, "{code}");
    }
}
