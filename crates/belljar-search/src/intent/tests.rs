//! Intents taken apart.

use super::{Intent, sentences_of};
use crate::{Document, Index};

#[test]
fn sentences_end_where_people_end_them() {
    let text = "Get version 1.5 of node.js. Then mail it!\nDone？好。";
    let found: Vec<&str> =
        sentences_of(text).map(str::trim).filter(|one| !one.is_empty()).collect();
    assert_eq!(found, ["Get version 1.5 of node.js.", "Then mail it!", "Done？", "好。"]);
}

#[test]
fn one_sentence_is_not_asked_for_twice() {
    let document = Document { name: "send_mail", description: "list files", ..Document::default() };
    let index = Index::new([document]);
    assert!(Intent::new("Send a mail to Anna.", &index).sentences.is_empty());
    assert_eq!(Intent::new("Send a mail. List the files.", &index).sentences.len(), 2);
    assert_eq!(Intent::new(&"Send mail. ".repeat(10_000), &index).sentences.len(), 8);
}
