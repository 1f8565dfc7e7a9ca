//! Intl against Node (A1): one program, run by Node and in a cell, prints each format in each locale.

use std::process::Command;

use belljar_contract::Stream;
use serde_json::Value;

use crate::harness::run;

const PROGRAM: &str = include_str!("guest/intl-table.js");

/// The result of the program in the Node of this machine, which has ICU and all of CLDR.
fn in_node() -> Value {
    let script = format!("console.log(JSON.stringify((() => {{ {PROGRAM}\n }})()))");
    #[expect(clippy::disallowed_methods, reason = "a test starts the engine it compares with")]
    let output = Command::new("node")
        .args(["--eval", &script])
        .env("TZ", "UTC")
        .output()
        .expect("Node is installed, as scripts/test requires");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the program prints JSON")
}

/// The texts of a value, with where they stand.
fn texts(table: &Value) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    for (locale, formats) in table.as_object().expect("locales") {
        for (format, texts) in formats.as_object().expect("formats") {
            for (at, text) in texts.as_array().expect("texts").iter().enumerate() {
                let text = text.as_str().expect("a text");
                found.push((format!("{locale}, {format}, {at}"), text));
            }
        }
    }
    found
}

#[test]
fn a1_fifty_locales_are_written_as_in_node() {
    let expected = in_node();
    let outcome = run(PROGRAM);
    assert_eq!(outcome.error, None);
    // Control: every locale of the table is one of those here.
    assert_eq!(outcome.printed(Stream::Log), "");
    let (ours, theirs) = (texts(&outcome.value), texts(&expected));
    assert!(expected.as_object().expect("locales").len() >= 30);
    assert_eq!(ours.len(), theirs.len());
    let differs = |((place, ours), (_, theirs)): &(&(String, &str), &(String, &str))| {
        (ours != theirs).then(|| format!("{place}\n  here {ours:?}\n  Node {theirs:?}"))
    };
    let differences: Vec<_> = ours.iter().zip(&theirs).filter_map(|pair| differs(&pair)).collect();
    let same = ours.len() - differences.len();
    println!("{same} of {} texts are the same\n{}", ours.len(), differences.join("\n"));
    // Each format by itself as well: no locale may hide behind the others.
    let cells = expected.as_object().expect("locales").iter();
    let cells = cells.flat_map(|(locale, formats)| {
        let ours = &outcome.value[locale];
        formats
            .as_object()
            .expect("formats")
            .iter()
            .map(move |(format, texts)| &ours[format] == texts)
    });
    let (all, whole) =
        cells.fold((0, 0), |(all, whole), same| (all + 1, whole + usize::from(same)));
    println!("{whole} of {all} formats of a locale are the same in every text");
    assert!(same * 1000 >= ours.len() * 999, "{} differences", differences.len());
    assert!(whole * 100 >= all * 97, "{whole} of {all}");
}
