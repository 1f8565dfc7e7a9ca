//! Tools that were used together help each other, and never harm unused ones.

use super::UsageHistory;
use crate::{Document, Index, Key, Query};

fn key(name: &str) -> Key {
    Key { server: "s".to_owned(), name: name.to_owned() }
}

fn index() -> Index {
    let names = ["read_mail", "read_log", "read_book", "read_page", "send_mail"];
    Index::new(names.map(|name| Document { server: "s", name, ..Document::default() }))
}

fn ranked(index: &Index, usage: Option<&UsageHistory>) -> Vec<String> {
    let found = index.search(&Query { usage, ..Query::new("read mail", 5) });
    found.into_iter().map(|found| found.key.name.clone()).collect()
}

#[test]
fn d5_a_tool_used_with_the_best_one_moves_up() {
    let (index, mut usage) = (index(), UsageHistory::default());
    let before = ranked(&index, None);
    let last = before.last().unwrap().clone();
    for _ in 0..3 {
        usage.note([key("read_mail"), key(&last)]);
        before.iter().filter(|name| **name != last).for_each(|name| usage.note([key(name)]));
    }
    let after = ranked(&index, Some(&usage));
    let place = |all: &[String]| all.iter().position(|name| *name == last).unwrap();
    assert!(place(&after) < place(&before), "{before:?} {after:?}");
    assert_eq!(after[0], "read_mail");
}

#[test]
fn d5_tools_nobody_used_keep_their_places() {
    let (index, mut usage) = (index(), UsageHistory::default());
    let before = ranked(&index, None);
    for _ in 0..10 {
        usage.note([key("read_mail"), key("read_page")]);
    }
    let after = ranked(&index, Some(&usage));
    for (place, name) in before.iter().enumerate() {
        if !["read_mail", "read_page"].contains(&name.as_str()) {
            assert_eq!(after[place], *name);
        }
    }
}

#[test]
fn one_run_proves_nothing_and_memory_is_bounded() {
    let mut usage = UsageHistory::default();
    usage.note([key("a"), key("b")]);
    assert_eq!(usage.share(&key("a"), &key("b")), 0.0);
    usage.note([key("b"), key("a")]);
    assert_eq!(usage.share(&key("b"), &key("a")), 1.0);
    usage.note((0..10_000).map(|n| key(&n.to_string())));
    assert!(usage.used.len() <= 2 + super::MOST_OF_RUN);
}
