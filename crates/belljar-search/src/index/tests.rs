//! An index that changes.

use proptest::prelude::*;

use super::{Index, Update};
use crate::{Document, Query};

fn tool<'a>(server: &'a str, name: &'a str, description: &'a str) -> Document<'a> {
    Document { server, name, description, ..Document::default() }
}

#[test]
fn d5_only_what_changed_is_read_again() {
    let mut index =
        Index::new([tool("a", "one", "first"), tool("a", "two", "second"), tool("b", "one", "")]);
    let update =
        index.update([tool("a", "one", "first"), tool("a", "two", "changed"), tool("c", "x", "")]);
    assert_eq!(update, Update { read: 2, removed: 1, kept: 1 });
    assert_eq!(index.len(), 3);
    let found = index.search(&Query::new("second", 3));
    assert!(found.iter().all(|found| found.words.is_empty()), "{found:?}");
    assert_eq!(index.search(&Query::new("changed", 1))[0].key.name, "two");
}

#[test]
fn d5_what_is_gone_leaves_no_memory_behind() {
    let mut index = Index::default();
    for round in 0..40 {
        let words: Vec<String> = (0..1_000).map(|n| format!("w{round}x{n}")).collect();
        index.update(words.iter().map(|word| tool("s", word, word)));
    }
    assert_eq!((index.len(), index.entries.len()), (1_000, 1_000));
    assert!(index.lexicon.len() < 25_000, "{} terms", index.lexicon.len());
}

const WORDS: [&str; 12] = [
    "read", "write", "file", "mail", "send", "list", "commit", "weather", "city", "搜索", "query",
    "",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However an index came to hold its tools, it answers alike.
    #[test]
    fn d5_an_index_changed_step_by_step_answers_like_a_fresh_one(
        steps in prop::collection::vec(prop::collection::vec((0..3_usize, 0..12_usize, 0..12_usize), 0..12), 1..5),
        asked in 0..12_usize,
    ) {
        let mut index = Index::default();
        let mut last = Vec::new();
        for step in &steps {
            last = step.iter().map(|(server, name, about)| {
                tool(["a", "b", ""][*server], WORDS[*name], WORDS[*about])
            }).collect();
            index.update(last.clone());
        }
        let fresh = Index::new(last);
        let intent = format!("{} the file", WORDS[asked]);
        let query = Query::new(&intent, 10);
        prop_assert_eq!(index.search(&query), fresh.search(&query));
    }
}
