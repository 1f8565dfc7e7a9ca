//! How well search finds what was meant, on public queries with known answers.
//!
//! The data is not in this repository, so the test is asked for by name: `BELLJAR_TOOL_RETRIEVAL` is the
//! directory, `cargo nextest run -p belljar-tools --run-ignored only` runs it.

use std::{env, fs, path::Path};

use belljar_tools::{Annotations, Catalogue, Finder, Tool, Wanted};
use serde_json::{Value, json};

#[test]
#[ignore = "needs the data that BELLJAR_TOOL_RETRIEVAL names"]
fn d5_queries_find_their_tools() {
    let root = env::var_os("BELLJAR_TOOL_RETRIEVAL").expect("the directory with the data");
    let sets = [
        "livemcpbench_intent",
        "livemcpbench_task",
        "metatool_single",
        "metatool_multi",
        "sealtools",
        "stabletoolbench",
    ];
    let recalls: Vec<f64> = sets.iter().map(|set| recall(&Path::new(&root).join(set))).collect();
    for (set, recall) in sets.iter().zip(&recalls) {
        println!("{set:24} recall@5 {recall:.3}");
    }
    let mean = recalls.iter().sum::<f64>() / recalls.len() as f64;
    println!("{:24} recall@5 {mean:.3}", "mean");
    assert!(mean >= 0.68, "worse than it was: {mean}");
}

fn recall(set: &Path) -> f64 {
    let mut ids = std::collections::HashMap::new();
    let mut tools = Vec::new();
    for line in &lines(set, "tools.jsonl") {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        let names = line["params"].as_array().cloned().unwrap_or_default();
        let described = line["param_desc"].as_array().cloned().unwrap_or_default();
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .zip(described.iter().chain(std::iter::repeat(&Value::Null)))
            .map(|(name, text)| {
                (name.as_str().unwrap_or_default().to_owned(), json!({"description": text}))
            })
            .collect();
        let server = text("server").to_owned();
        ids.insert((server.clone(), text("name").to_owned()), text("id").to_owned());
        tools.push(Tool {
            server,
            name: text("name").to_owned(),
            title: None,
            description: Some(text("description").to_owned()),
            input_schema: json!({"type": "object", "properties": properties}),
            output_schema: None,
            annotations: Annotations::default(),
        });
    }
    let (finder, catalogue) = (Finder::default(), Catalogue::new(tools));
    let queries = lines(set, "queries.dev.jsonl");
    let found: f64 = queries
        .iter()
        .map(|query| {
            let gold: Vec<&str> =
                query["gold"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let hits = finder.search(&catalogue, &Wanted::new(query["query"].as_str().unwrap(), 5));
            let hit = hits.iter().filter(|hit| {
                gold.contains(&ids[&(hit.tool.server.clone(), hit.tool.name.clone())].as_str())
            });
            hit.count() as f64 / gold.len() as f64
        })
        .sum();
    found / queries.len() as f64
}

fn lines(set: &Path, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(set.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
