//! Searching by intent.

use serde_json::json;

use super::search;
use crate::{Annotations, Catalogue, Tool};

fn tool(server: &str, name: &str, description: &str) -> Tool {
    Tool {
        server: server.to_owned(),
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        input_schema: json!({"type": "object", "properties": {"repo_path": {"type": "string"}}}),
        output_schema: None,
        annotations: Annotations::default(),
    }
}

fn names(catalogue: &Catalogue, intent: &str, k: usize) -> Vec<String> {
    search(catalogue, intent, k).iter().map(|hit| hit.tool.qualified_name()).collect()
}

#[test]
fn words_of_names_descriptions_and_arguments_are_found() {
    let catalogue = Catalogue::new(vec![
        tool("git", "git_log", "Shows the commit logs"),
        tool("git", "git_diff", "Shows differences between branches"),
        tool("fs", "readTextFile", "Read a file as text"),
        tool("fs", "write_file", "Create or overwrite a file"),
    ]);
    assert_eq!(names(&catalogue, "show me the last commits", 1), ["git__git_log"]);
    assert_eq!(names(&catalogue, "reading files", 1), ["fs__readTextFile"]);
    assert_eq!(names(&catalogue, "", 3), Vec::<String>::new());
    assert_eq!(names(&catalogue, "weather in Paris", 3), Vec::<String>::new());
    assert_eq!(names(&catalogue, "repo", 10).len(), 4);
    let hits = search(&catalogue, "commits log", 1);
    assert_eq!(hits[0].why, ["log", "commit"]);
}

#[test]
fn one_question_has_one_answer_whatever_the_order_of_tools() {
    let mut tools: Vec<Tool> =
        (0..20).map(|n| tool("many", &format!("same_{n}"), "does the same")).collect();
    let forward = names(&Catalogue::new(tools.clone()), "same", 5);
    tools.reverse();
    assert_eq!(names(&Catalogue::new(tools), "same", 5), forward);
}

#[test]
fn scripts_without_spaces_are_searched() {
    let catalogue = Catalogue::new(vec![
        tool("bing", "search", "使用必应搜索指定的关键词"),
        tool("bing", "fetch", "根据提供的ID获取对应网页的内容"),
    ]);
    assert_eq!(names(&catalogue, "获取网页", 1), ["bing__fetch"]);
}
