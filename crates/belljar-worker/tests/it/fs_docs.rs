//! Every example about files in docs/javascript.md gives the value it promises (A1, C2).

use std::fs;

use crate::{
    documents::examples,
    harness::{Place, value},
};

#[test]
fn a1_c2_examples_give_what_they_promise() {
    let examples = examples(include_str!("../../../../docs/javascript.md"), "js", "// =>");
    assert!(examples.len() >= 5, "only {} examples were found", examples.len());
    for (code, promise) in examples {
        let place = Place::new();
        for directory in ["work", "tmp"] {
            fs::create_dir(place.path().join(directory)).expect("a directory can be made");
        }
        let code = code.replace("\"/tmp", &format!("\"{}", place.at("tmp")));
        let code = code.replace("\"/work", &format!("\"{}", place.at("work")));
        assert_eq!(value(&code), promise, "{code}");
    }
}
