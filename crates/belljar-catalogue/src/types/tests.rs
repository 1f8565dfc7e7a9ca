//! The types for models and editors, word for word.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    ValueShapes, describe, python,
    text::{doc_comment, doc_string, quoted, remark},
    typescript,
};
use crate::{Catalogue, ValueShape, ValueShapeLimits};

fn catalogue(tools: Value) -> Catalogue {
    Catalogue::new(serde_json::from_value(tools).unwrap())
}

fn few() -> Catalogue {
    catalogue(json!([
        {"server": "fs", "name": "edit_file", "description": "Edits a file.\nLine by line.", "input_schema": {
            "type": "object", "required": ["path", "edits"], "additionalProperties": false, "properties": {
                "path": {"type": "string", "description": "Where it is"},
                "edits": {"type": "array", "items": {"type": "object", "required": ["from"], "properties": {"from": {"type": "string"}, "to": {"type": ["string", "null"]}}}},
                "dry_run": {"type": "boolean", "default": false}}},
         "output_schema": {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "string"}}}, "x-fastmcp-wrap-result": true}},
        {"server": "my-git", "name": "list-commits", "input_schema": {"type": "object"}},
        {"server": "my-git", "name": "list_commits", "input_schema": {"type": "object"}},
        {"server": "my-git", "name": "log", "input_schema": {"type": "object", "properties": {"max_count": {"type": "integer", "minimum": 1}}}},
    ]))
}

fn learned() -> ValueShapes {
    let log = ValueShape::of(&json!([{"sha": "a", "parents": ["b"]}]), ValueShapeLimits::default());
    BTreeMap::from([("my-git__log".to_owned(), log)])
}

/// The text after the part that is the same for all catalogues.
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.split_once(mark).unwrap().1
}

#[test]
fn declarations_of_typescript() {
    let types = typescript(&few(), |_| true, &learned());
    let expected = r#"
declare const mcp: {
  readonly fs: {
    /**
     * Edits a file.
     * Line by line.
     */
    editFile(args: {
      edits: {
        from: string;
        to?: string | null;
      }[];
      /** Where it is */
      path: string;
      /** default: false */
      dry_run?: boolean;
    }): Promise<string[]>;
  };
  readonly myGit: {
    // "list-commits" has no name of its own here: tools.call("my-git__list-commits", args)
    // "list_commits" has no name of its own here: tools.call("my-git__list_commits", args)
    log(args?: {
      /** min: 1 */
      max_count?: number;
    }): Promise</* as seen so far */ {
      parents: string[];
      sha: string;
    }[]>;
  };
};
"#;
    assert_eq!(after(&types, "/** The tools, by server. */"), expected);
    let only_log = typescript(&few(), |tool| tool.name == "log", &ValueShapes::new());
    assert!(!only_log.contains("editFile"));
    assert!(only_log.contains("}): Promise<any>;"));
}

#[test]
fn a_stub_of_python() {
    let stub = python(&few(), |_| true, &learned());
    // `from` is a word of Python's own, so its class is written as a call.
    let expected = r#"
FsEditFile_Edits = TypedDict("FsEditFile_Edits", {
    "from": "str",
    "to": "NotRequired[str | None]",
})

class MyGitLog_Result(TypedDict):
    parents: list[str]
    sha: str

class Fs_Server:
    def edit_file(self, *, edits: list[FsEditFile_Edits], path: str, dry_run: bool = ...) -> list[str]:
        """
        Edits a file.
        Line by line.
        """
        # path: Where it is
        # dry_run: default: false
        ...
    def __getitem__(self, tool: str, /) -> Any: ...

class MyGit_Server:
    # "list-commits" has no name of its own here: tools.call("my-git__list-commits", {...})
    # "list_commits" has no name of its own here: tools.call("my-git__list_commits", {...})
    def log(self, *, max_count: int = ...) -> list[MyGitLog_Result]:
        """The type of the result is as seen so far."""
        # max_count: min: 1
        ...
    def __getitem__(self, tool: str, /) -> Any: ...

class Mcp_Servers:
    """The tools, by server."""

    fs: Fs_Server
    my_git: MyGit_Server
    def __getitem__(self, server: Builtins.str, /) -> Any: ...

mcp: Mcp_Servers
"#;
    assert_eq!(after(&stub, "    hint: str | None\n"), expected);
}

#[test]
fn one_tool_in_a_few_lines() {
    let catalogue = few();
    let tool = catalogue.resolve(Some("fs"), "editFile").unwrap();
    let expected = "Edits a file.
Line by line.
mcp.fs.editFile(args: {
  edits: {
    from: string;
    to?: string | null;
  }[];
  /** Where it is */
  path: string;
  /** default: false */
  dry_run?: boolean;
}): Promise<string[]>
In Python: mcp.fs.edit_file(name=value, …)";
    assert_eq!(describe(&catalogue, tool, &ValueShapes::new()), expected);
    let odd = catalogue.resolve(Some("my-git"), "list-commits").unwrap();
    assert_eq!(
        describe(&catalogue, odd, &ValueShapes::new()),
        "mcp.myGit[\"list-commits\"](args?: Record<string, never>): Promise<any>\n\
         In Python: mcp.my_git[\"list-commits\"](name=value, …)"
    );
}

#[test]
fn texts_end_where_they_should() {
    assert_eq!(doc_comment("a */ b", 100, ""), "/** a *\\/ b */\n");
    assert_eq!(doc_comment("a\r\nb\u{2028}c", 100, ""), "/**\n * a\n * b\n * c\n */\n");
    assert_eq!(doc_comment(" \n\u{202e}", 100, ""), "");
    assert_eq!(doc_comment(&"word ".repeat(100), 20, ""), "/** word word word word… */\n");
    assert_eq!(doc_string("a\"\"\"b\\", 100, "").unwrap(), "\"\"\"a\\\"\\\"\\\"b\\\\\"\"\"\n");
    assert_eq!(quoted("\"\\\n\u{202e}\u{e0041}é"), "\"\\\"\\\\\\n\\u202eé\"");
    assert_eq!(remark("type: ignore # mypy: x", 100), "  #  … type: ignore # … mypy: x");
}
