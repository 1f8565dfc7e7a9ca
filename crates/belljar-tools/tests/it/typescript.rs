//! The `.d.ts` is accepted by the TypeScript compiler, and says what was meant.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use belljar_tools::{Catalogue, Style, ValueShape, ValueShapeLimits, ValueShapes, typescript};
use serde_json::json;

use crate::{
    corpus::corpus,
    hostile::hostile,
    oracle::{desk, tsc},
};

/// A program that names every tool that has a name.
fn usage(catalogue: &Catalogue) -> (usize, String) {
    let mut named = 0;
    let mut program = String::from("export async function all() {\n");
    for tool in catalogue.tools() {
        let server = catalogue.server_alias(&tool.server, Style::Camel);
        let alias = catalogue.alias(tool, Style::Camel);
        if let (Some(server), Some(alias)) = (server, alias) {
            named += 1;
            let _ = writeln!(program, "  await mcp.{server}.{alias}({{}} as any);");
        }
    }
    program.push_str("}\n");
    (named, program)
}

#[test]
fn types_of_real_tools_compile() {
    let catalogue = corpus();
    let desk = desk("typescript-real");
    fs::write(desk.join("tools.d.ts"), typescript(&catalogue, |_| true, &ValueShapes::new()))
        .unwrap();
    let (named, program) = usage(&catalogue);
    fs::write(desk.join("usage.ts"), program).unwrap();
    tsc(&["tools.d.ts", "usage.ts"], &desk);
    println!("{named} of {} tools have a name", catalogue.tools().len());
    assert_eq!(named, catalogue.tools().len());
}

#[test]
fn types_of_hostile_tools_compile() {
    let catalogue = hostile();
    let desk = desk("typescript-hostile");
    let types = typescript(&catalogue, |_| true, &ValueShapes::new());
    // Nothing of theirs becomes code: no declaration but ours.
    let declared: Vec<&str> = types.lines().filter(|line| line.starts_with("declare ")).collect();
    assert_eq!(declared.len(), 9, "{declared:?}");
    assert!(types.chars().all(|part| part == '\n' || !part.is_control()));
    assert!(!types.contains(['\u{202e}', '\u{200b}', '\u{2028}']));
    fs::write(desk.join("tools.d.ts"), types).unwrap();
    fs::write(desk.join("usage.ts"), usage(&catalogue).1).unwrap();
    tsc(&["tools.d.ts", "usage.ts"], &desk);
}

#[test]
fn the_compiler_finds_wrong_calls() {
    let limits = ValueShapeLimits::default();
    let learned = ValueShape::of(&json!([{"sha": "a", "parents": [1]}]), limits);
    let shapes: ValueShapes = BTreeMap::from([("git__log".to_owned(), learned)]);
    let tools = serde_json::from_value(json!([
        {"server": "fs", "name": "read_file", "input_schema": {"type": "object", "required": ["path"],
            "properties": {"path": {"type": "string"}, "mode": {"enum": ["text", "raw"]}}},
         "output_schema": {"type": "object", "required": ["content"], "properties": {"content": {"type": "string"}}}},
        {"server": "git", "name": "log", "input_schema": {"type": "object", "properties": {"max_count": {"type": "integer"}}}},
        {"server": "git", "name": "status", "input_schema": {"type": "object"}},
    ]))
    .unwrap();
    let desk = desk("typescript-calls");
    fs::write(desk.join("tools.d.ts"), typescript(&Catalogue::new(tools), |_| true, &shapes))
        .unwrap();
    // Every line that is wrong has to be, or the compiler complains about the remark.
    let program = r#"
export async function calls() {
  const file = await mcp.fs.readFile({ path: "a", mode: "raw" });
  const length: number = file.content.length;
  const commits = await mcp.git.log();
  const sha: string = commits[0].sha;
  const parent: number = commits[0].parents[0];
  const status = await mcp.git.status({});
  output(debug(context, "label"));
  const found = await tools.search("read", 3);
  const whole = await load("handle");
  try { await tools.call("fs__read_file", { path: "a" }); } catch (error) {
    if (error instanceof ToolError) console.log(error.code, error.toolName, error.hint);
  }
  // @ts-expect-error the path is missing
  await mcp.fs.readFile({});
  // @ts-expect-error nothing is given
  await mcp.fs.readFile();
  // @ts-expect-error no such mode
  await mcp.fs.readFile({ path: "a", mode: "binary" });
  // @ts-expect-error no such argument
  await mcp.fs.readFile({ pth: "a" });
  // @ts-expect-error no such tool
  await mcp.fs.readFiles({ path: "a" });
  // @ts-expect-error no such server
  await mcp.files.readFile({ path: "a" });
  // @ts-expect-error no such field in the result
  file.contents;
  // @ts-expect-error it takes none
  await mcp.git.status({ short: true });
  // @ts-expect-error not a text
  await mcp.git.log({ max_count: "5" });
  return [length, sha, parent, status, found, whole];
}
"#;
    fs::write(desk.join("usage.ts"), program).unwrap();
    tsc(&["tools.d.ts", "usage.ts"], &desk);
}
