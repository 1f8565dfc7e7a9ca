//! Searching a catalogue by intent.

use serde_json::json;

use super::{Finder, ToolQuery};
use crate::{Catalogue, Glob, Tool, ToolGrants};

fn tool(server: &str, name: &str, description: &str) -> Tool {
    Tool {
        description: Some(description.to_owned()),
        input_schema: json!({"type": "object", "properties": {"repo_path": {"type": "string"}}}),
        ..Tool::bare(server, name)
    }
}

fn catalogue() -> Catalogue {
    Catalogue::new(vec![
        tool("git", "git_log", "Shows the commit logs"),
        tool("git", "git_diff", "Shows differences between branches"),
        tool("fs", "readTextFile", "Read a file as text"),
        tool("fs", "write_file", "Create or overwrite a file"),
    ])
}

fn names(finder: &Finder, catalogue: &Catalogue, wanted: &ToolQuery) -> Vec<String> {
    finder.search(catalogue, wanted).iter().map(|hit| hit.tool.qualified_name()).collect()
}

#[test]
fn d5_words_of_names_descriptions_and_arguments_are_found() {
    let (finder, catalogue) = (Finder::default(), catalogue());
    let find = |intent: &str, k| names(&finder, &catalogue, &ToolQuery::new(intent, k));
    assert_eq!(find("show me the last commits", 1), ["git__git_log"]);
    assert_eq!(find("reading files", 1), ["fs__readTextFile"]);
    assert_eq!(find("", 3), Vec::<String>::new());
    assert_eq!(find("weather in Paris", 3), Vec::<String>::new());
    assert_eq!(find("repo", 10).len(), 4);
    let hits = finder.search(&catalogue, &ToolQuery::new("commits log", 1));
    assert_eq!(hits[0].why, ["log", "commits"]);
    assert_eq!(hits[0].words, 1.0);
}

#[test]
fn one_question_has_one_answer_whatever_the_order_of_tools() {
    let mut tools: Vec<Tool> =
        (0..20).map(|n| tool("many", &format!("same_{n}"), "does the same")).collect();
    let wanted = ToolQuery::new("same", 5);
    let forward = names(&Finder::default(), &Catalogue::new(tools.clone()), &wanted);
    tools.reverse();
    assert_eq!(names(&Finder::default(), &Catalogue::new(tools), &wanted), forward);
}

#[test]
fn d5_only_tools_that_may_be_used_are_found() {
    let grants = ToolGrants { only: Some(vec![Glob::new("fs__*")]), given: Vec::new() };
    let wanted = ToolQuery { grants, ..ToolQuery::new("commit logs of a file", 10) };
    let found = names(&Finder::default(), &catalogue(), &wanted);
    assert!(!found.is_empty() && found.iter().all(|name| name.starts_with("fs__")), "{found:?}");
}

#[test]
fn d5_the_index_follows_the_catalogue_and_survives_damage() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tools.index");
    let wanted = ToolQuery::new("send a mail", 1);
    let finder = Finder::new(Some(file.clone()));
    finder.search(&catalogue(), &wanted);
    let mut tools = catalogue().tools().to_vec();
    tools.push(tool("post", "send_mail", "Sends a mail"));
    let larger = Catalogue::new(tools);
    assert_eq!(names(&finder, &larger, &wanted), ["post__send_mail"]);
    // The next program finds what this one left.
    assert!(belljar_search::Index::load(&file).is_ok_and(|index| index.len() == 5));
    assert_eq!(names(&Finder::new(Some(file.clone())), &larger, &wanted), ["post__send_mail"]);
    std::fs::write(&file, b"BJINDEX1 and then nonsense").unwrap();
    assert_eq!(names(&Finder::new(Some(file.clone())), &larger, &wanted), ["post__send_mail"]);
    assert!(belljar_search::Index::load(&file).is_ok());
}
