//! Names that would break a client, or mean two things, are refused.

use serde_json::Map;

use super::*;

fn tool(name: &str) -> PassThrough {
    PassThrough {
        name: name.to_owned(),
        title: None,
        description: None,
        input_schema: Map::new(),
        output_schema: None,
        annotations: None,
    }
}

#[test]
fn good_names_are_shown_and_others_refused_by_name() {
    let long = "a".repeat(65);
    let given = ["git__log", "a:b", "", &long, "x__y", "execute_code", "x__y", "git__log-2"];
    let (shown, faults) = sort_out(given.into_iter().map(tool).collect());
    let shown: Vec<_> = shown.into_iter().map(|tool| tool.name).collect();
    assert_eq!(shown, ["git__log", "git__log-2"]);
    let shape = |name: &str| NameError::Shape { name: name.to_owned() };
    let taken = |name: &str| NameError::Taken { name: name.to_owned() };
    let twice = [taken("x__y"), taken("execute_code"), taken("x__y")];
    assert_eq!(faults, [[shape("a:b"), shape(""), shape(&long)], twice].concat());
}
