//! Our types mean what another converter's mean: each is assignable to the other.
//!
//! The other is npm's json-schema-to-typescript. Where the two read a schema differently on
//! purpose, `assignable.mjs` rewrites the schema before the other sees it and says why; what is
//! left over is listed here, with its reason.

use std::{collections::BTreeSet, fs};

use belljar_tools::{Catalogue, Tool, ValueShapes, typescript};
use serde_json::{Value, json};

use crate::{
    corpus::corpus,
    hostile::schemas,
    oracle::{desk, node, oracles, run},
};

/// Where the two differ, and why ours is meant so. All real schemas agree.
const DIFFERENT: [(&str, &str); 8] = [
    ("hostile 13", "theirs takes what is no schema for the value itself"),
    ("hostile 14", "theirs forgets a required field that is not declared"),
    ("hostile 15", "theirs is no TypeScript: the index signature has to include the fields"),
    ("hostile 25", "theirs gives up on allOf if one branch has only a description"),
    ("hostile 26", "theirs is both a text and an object, which nothing is"),
    ("hostile 30", "ours knows that minItems makes places of a tuple optional"),
    ("hostile 32", "ours tells the kind of choices too many to list"),
    ("hostile 36", "ours ends after twenty levels"),
];

#[test]
fn types_mean_what_another_converter_says() {
    let mut cases: Vec<(String, Value)> = Vec::new();
    for tool in corpus().tools() {
        cases.push((tool.qualified_name(), tool.input_schema.clone()));
        let output = tool.output_schema.clone();
        cases.extend(output.map(|schema| (format!("{} result", tool.qualified_name()), schema)));
    }
    for (at, schema) in schemas().into_iter().enumerate() {
        cases.push((format!("hostile {at}"), schema));
    }
    let desk = desk("assignable");
    let ours = Catalogue::new(
        cases.iter().enumerate().map(|(at, (_, schema))| returns(at, schema)).collect(),
    );
    fs::write(desk.join("tools.d.ts"), typescript(&ours, |_| true, &ValueShapes::new())).unwrap();
    fs::write(desk.join("cases.json"), json!(cases).to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/assignable.mjs");
    let (content, printed) = run("node".as_ref(), &[script, &oracles().to_string_lossy()], &desk);
    assert!(content, "{printed}");
    let skipped: Vec<String> = printed.lines().map(str::to_owned).collect();

    let (_, told) = node("typescript/bin/tsc", &["-p", "."], &desk);
    let failed: BTreeSet<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("check_")?.split_once(".ts("))
        .filter_map(|(at, _)| cases.get(at.parse::<usize>().ok()?))
        .map(|(name, _)| name.as_str())
        .collect();
    let ours = |line: &&str| !line.starts_with([' ', 'c', 't']) || line.starts_with("tools.d.ts");
    let own: Vec<&str> = told.lines().filter(ours).collect();
    assert!(own.is_empty(), "in {}: {own:?}", desk.display());
    println!("{}", skipped.join("\n"));
    println!("{} schemas, {} skipped, {} different", cases.len(), skipped.len(), failed.len());
    let explained: BTreeSet<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    assert_eq!(failed, explained, "in {}", desk.display());
    // Schemas that the other cannot read say nothing; of real schemas those must be few.
    let unread = skipped.iter().filter(|line| !line.starts_with("hostile")).count();
    assert!(unread <= 5, "{unread}");
}

/// A tool whose result is the schema in question.
fn returns(at: usize, schema: &Value) -> Tool {
    Tool { output_schema: Some(schema.clone()), ..Tool::bare("c", &format!("t{at}")) }
}
