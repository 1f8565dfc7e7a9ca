//! The story in one command.

use crate::command::{belljar, no_sandbox};

#[test]
fn a1_the_demo_turns_a_megabyte_into_a_few_hundred_bytes() {
    if no_sandbox() {
        return;
    }
    let outcome = belljar(&["demo", "--json"]);
    let figures = outcome.json();
    assert_eq!(outcome.status, Some(0), "{outcome:#?}");
    assert_eq!(figures["commits"], 1000);
    assert_eq!(figures["answer"]["commits"], 1000);
    assert_eq!(figures["run"]["isolation"]["tier"], "full");
    let bytes_in = figures["bytes_in"].as_u64().unwrap();
    let bytes_out = figures["bytes_out"].as_u64().unwrap();
    assert!((1_100_000..1_300_000).contains(&bytes_in), "{bytes_in}");
    assert!((400..=600).contains(&bytes_out), "{bytes_out}");
    assert!(figures["saved_percent"].as_f64().unwrap() > 99.9);
}

#[test]
fn a1_the_demo_is_told_to_people_too() {
    if no_sandbox() {
        return;
    }
    let outcome = belljar(&["demo"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""));
    let headings: Vec<&str> =
        outcome.stdout.lines().filter_map(|line| line.strip_prefix("The ")).collect();
    assert_eq!(headings.len(), 3, "{}", outcome.stdout);
}
