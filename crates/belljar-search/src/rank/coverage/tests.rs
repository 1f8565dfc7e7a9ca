//! Results that cover an intent together.

use super::MOST_CHOSEN;
use crate::{Document, Index, Query};

fn tool<'a>(server: &'a str, name: &'a str, description: &'a str) -> Document<'a> {
    Document { server, name, description, ..Document::default() }
}

fn names(index: &Index, intent: &str, k: usize) -> Vec<String> {
    let found = index.search(&Query::new(intent, k));
    found.iter().map(|found| found.key.name.clone()).collect()
}

/// Many tools that send mail, and one each for the rest of the intent.
fn crowded(copies: &[String]) -> Index {
    let mut tools = vec![
        tool("x", "convert_currency", "Converts money from one currency to another"),
        tool("y", "read_calendar", "Reads the appointments of a calendar"),
    ];
    tools.extend(copies.iter().map(|name| tool(name, "send_mail", "Sends a mail with a text")));
    Index::new(tools)
}

#[test]
fn d5_tools_that_are_alike_do_not_take_all_places() {
    let copies: Vec<String> = (0..40).map(|n| format!("mail-{n:02}")).collect();
    let found = names(&crowded(&copies), "Send a mail with my calendar and the currency", 5);
    for name in ["send_mail", "convert_currency", "read_calendar"] {
        assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
    }
    // Control: an intent that asks for one thing gets all copies of it.
    let found = names(&crowded(&copies), "Send a mail with a text", 5);
    assert_eq!(found, ["send_mail"; 5]);
}

#[test]
fn d5_tools_that_are_alike_are_ordered_by_name() {
    // Stop words: the tools differ in nothing that counts.
    let servers = ["you", "to", "the", "of", "it", "is", "in", "by", "at", "as", "and", "an", "a"];
    let copies = servers.map(str::to_owned);
    let index = crowded(&copies);
    let found = index.search(&Query::new("Send a mail with a text", servers.len()));
    let found: Vec<&str> = found.iter().map(|found| found.key.server.as_str()).collect();
    assert_eq!(found, servers.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn d5_fewer_results_are_the_beginning_of_more() {
    let copies: Vec<String> = (0..40).map(|n| format!("mail-{n:02}")).collect();
    let index = crowded(&copies);
    let intent = "Send a mail with my calendar. Convert the currency of the appointments.";
    let all = index.search(&Query::new(intent, 1_000));
    assert_eq!(all.len(), index.len());
    assert!(all.is_sorted_by(|one, next| one.score >= next.score));
    for k in [0, 1, 2, 5, MOST_CHOSEN - 1, MOST_CHOSEN, MOST_CHOSEN + 1, 30] {
        assert_eq!(index.search(&Query::new(intent, k)), all[..k], "{k}");
    }
}
