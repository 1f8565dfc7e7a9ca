//! The tools of real servers.

use std::fs;

use belljar_tools::{Annotations, Catalogue, Tool};
use serde_json::Value;

use crate::oracle::target;

/// All tools `scripts/tool-corpus` has collected.
pub(crate) fn corpus() -> Catalogue {
    let directory = target().join("tool-corpus/tools");
    let files = fs::read_dir(&directory)
        .unwrap_or_else(|_| panic!("no tools in {}: run scripts/tool-corpus", directory.display()));
    let mut tools = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        let server = path.file_stem().unwrap().to_string_lossy().trim_matches('_').to_owned();
        let listed: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        tools.extend(listed["tools"].as_array().unwrap().iter().map(|tool| read(&server, tool)));
    }
    let catalogue = Catalogue::new(tools);
    assert!(catalogue.tools().len() >= 300, "only {} tools", catalogue.tools().len());
    catalogue
}

fn read(server: &str, tool: &Value) -> Tool {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
    Tool {
        server: server.to_owned(),
        name: text("name").unwrap(),
        title: text("title"),
        description: text("description"),
        input_schema: tool["inputSchema"].clone(),
        output_schema: tool.get("outputSchema").cloned(),
        annotations: Annotations::default(),
    }
}
