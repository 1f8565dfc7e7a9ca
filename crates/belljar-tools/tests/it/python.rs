//! The `.pyi` is accepted by Python's type checkers, and says what was meant.

use std::{fmt::Write as _, fs, path::Path};

use belljar_tools::{Catalogue, Style, ValueShapes, python};
use serde_json::json;

use crate::{
    corpus::corpus,
    hostile::hostile,
    oracle::{desk, node, oracles, run},
};

/// Has both checkers judge the files of a desk.
fn judge(desk: &Path) {
    let told = |content: bool, printed: &str, who: &str| {
        let first: Vec<&str> = printed.lines().take(40).collect();
        assert!(content, "{who} in {}:\n{}", desk.display(), first.join("\n"));
    };
    let mypy = oracles().join("venv/bin/mypy");
    let cache = desk.join("cache").to_string_lossy().into_owned();
    let options =
        ["--strict", "--no-color-output", "--cache-dir", &cache, "--python-version", "3.12"];
    let (content, printed) = run(&mypy, &[&options[..], &["guest.pyi", "usage.py"]].concat(), desk);
    told(content, &printed, "mypy");
    fs::write(desk.join("pyrightconfig.json"), json!({"typeCheckingMode": "strict", "pythonVersion": "3.12",
        "reportUnknownMemberType": false, "reportUnknownVariableType": false, "reportUnusedExpression": false,
        "reportUnusedCoroutine": false, "reportUnnecessaryTypeIgnoreComment": true, "reportUnusedClass": false,
        "reportPrivateUsage": false, "reportUnknownArgumentType": false}).to_string()).unwrap();
    let (content, printed) = node("pyright/index.js", &["guest.pyi", "usage.py"], desk);
    told(content, &printed, "pyright");
}

/// A program that names every tool that has a name.
fn usage(catalogue: &Catalogue) -> (usize, String) {
    let mut named = 0;
    let mut program =
        String::from("from typing import Any\n\nfrom guest import mcp\n\nwhat: list[Any] = [\n");
    for tool in catalogue.tools() {
        let server = catalogue.server_alias(&tool.server, Style::Snake);
        let alias = catalogue.alias(tool, Style::Snake);
        if let (Some(server), Some(alias)) = (server, alias) {
            named += 1;
            let _ = writeln!(program, "    mcp.{server}.{alias},");
        }
    }
    program.push_str("]\n");
    (named, program)
}

#[test]
fn stubs_of_real_tools_are_accepted() {
    let catalogue = corpus();
    let desk = desk("python-real");
    fs::write(desk.join("guest.pyi"), python(&catalogue, |_| true, &ValueShapes::new())).unwrap();
    let (named, program) = usage(&catalogue);
    assert_eq!(named, catalogue.tools().len());
    fs::write(desk.join("usage.py"), program).unwrap();
    judge(&desk);
}

#[test]
fn stubs_of_hostile_tools_are_accepted() {
    let catalogue = hostile();
    let desk = desk("python-hostile");
    let stub = python(&catalogue, |_| true, &ValueShapes::new());
    assert!(!stub.lines().any(|line| line.starts_with("import os")));
    assert!(stub.chars().all(|part| part == '\n' || !part.is_control()));
    fs::write(desk.join("guest.pyi"), stub).unwrap();
    fs::write(desk.join("usage.py"), usage(&catalogue).1).unwrap();
    judge(&desk);
}

#[test]
fn the_checkers_find_wrong_calls() {
    let tools = serde_json::from_value(json!([
        {"server": "fs", "name": "readFile", "input_schema": {"type": "object", "required": ["path"],
            "properties": {"path": {"type": "string"}, "mode": {"enum": ["text", "raw"]}}},
         "output_schema": {"type": "object", "required": ["content"], "properties": {"content": {"type": "string"}}}},
        {"server": "fs", "name": "list", "input_schema": {"type": "object", "required": ["from"],
            "properties": {"from": {"type": "string"}, "max-depth": {"type": "integer"}}},
         "output_schema": {"type": "array", "items": {"type": "string"}}},
        {"server": "git", "name": "import", "input_schema": {"type": "object"}},
    ]))
    .unwrap();
    let desk = desk("python-calls");
    fs::write(
        desk.join("guest.pyi"),
        python(&Catalogue::new(tools), |_| true, &ValueShapes::new()),
    )
    .unwrap();
    // Every line that is wrong has to be, or the checkers complain about the remark.
    let program = r#"
from guest import ToolError, context, debug, load, mcp, output, tools

file = mcp.fs.read_file(path="a", mode="raw")
length: int = len(file["content"])
names: list[str] = mcp.fs.list({"from": "a", "max-depth": 3})
mcp.git.import_()
output(debug(context, "label"))
found = tools.search("read", 3)
whole = load("handle")
try:
    tools.call("fs__read_file", {"path": "a"})
except ToolError as error:
    print(error.code, error.toolName, error.hint)
mcp.fs.read_file()  # type: ignore
mcp.fs.read_file("a")  # type: ignore
mcp.fs.read_file(path=7)  # type: ignore
mcp.fs.read_file(path="a", mode="binary")  # type: ignore
mcp.fs.read_file(pth="a")  # type: ignore
mcp.fs.read_files(path="a")  # type: ignore
mcp.fs.list({"max-depth": 3})  # type: ignore
file["contents"]  # type: ignore
"#;
    fs::write(desk.join("usage.py"), program).unwrap();
    judge(&desk);
}
