//! D5, E2: what code is for is said on the command line and by clients, and the tools that fit are found.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{project_support::CountingProject, stdio_support::StdioServer};

#[test]
fn d5_a_shell_finds_tools() {
    let project = CountingProject::trusting("");
    let found = project.belljar(&["tools", "search", "sum of two numbers", "--json"]).json();
    assert_eq!(found[0]["name"], "count__add");
    let told = project.belljar(&["tools", "search", "add two numbers", "-k", "1"]);
    insta::assert_snapshot!(told.stdout, @r"
    SCORE  NAME        WHY                               DESCRIPTION
    1.30   count__add  add, two, numbers, meaning 100 %  Add two numbers.
    ");
}

#[sandboxed]
#[test]
fn d5_a_shell_runs_code_with_tools_that_fit() {
    let project = CountingProject::trusting("");
    let code = "return await mcp.count.add({ a: 1, b: 2 })";
    let result = project.run(code, &["--intent", "sum of two numbers"]);
    assert_eq!(result["result"], json!({"sum": 3}), "{result:#}");
    assert_eq!(result["tools"]["discovered"][0], "count__add");
    assert!(project.place.path().join("work/.belljar/tools.index").is_file());
}

#[sandboxed]
#[test]
fn e2_a_client_says_what_its_code_is_for() {
    let project = CountingProject::trusting("");
    let mut server = StdioServer::start(&project.place);
    let code = "return await mcp.count.add({ a: 1, b: 2 })";
    let arguments = json!({"code": code, "intent": "sum of two numbers"});
    let ran = server.call("execute_code", arguments);
    assert_eq!(ran["result"], json!({"sum": 3}), "{ran:#}");
    assert_eq!(ran["tools"]["injected"][0], "count__add", "{ran:#}");
    let arguments = json!({"intent": "sum of two numbers", "k": 1});
    let found = server.call("search_tools", arguments);
    assert!(found.to_string().contains("count__add"), "{found:#}");
    server.end();
}

#[sandboxed]
#[test]
fn s17_what_a_run_may_not_use_is_neither_described_nor_started_for_it() {
    let project = CountingProject::with("");
    let started = project.place.path().join("started");
    // A server that leaves a mark, and then is none.
    let mark = format!("open({:?}, 'w')", started.to_str().unwrap());
    let counting: Value = serde_json::from_slice(
        &std::fs::read(project.place.path().join("work/.mcp.json")).unwrap(),
    )
    .unwrap();
    let mut servers = counting.clone();
    servers["mcpServers"]["other"] = json!({"command": "python3", "args": ["-S", "-c", mark]});
    project.place.file("work/.mcp.json", servers.to_string());
    let code = |call: &str| format!("try {{ return await {call} }} catch (e) {{ return e.code }}");
    let restricted = |call: &str| {
        project.run(&code(call), &["--tool", "count__add", "--tool", "count__s*"])["result"].clone()
    };
    // Items have the same form as those of a search, which adds a score.
    let listed = restricted("tools.list()");
    let expected = json!([
        {"name": "count__add", "description": "Add two numbers.\nNothing else."},
        {"name": "count__slow", "description": "Wait for some milliseconds"},
    ]);
    assert_eq!(listed, expected);
    let names =
        restricted("(await tools.search('add numbers', 1)).map(t => [t.name, t.description])");
    assert_eq!(names, json!([["count__add", "Add two numbers.\nNothing else."]]));
    for name in ["count__append", "other__x", "other.x"] {
        let refused = restricted(&format!("tools.describe('{name}')"));
        assert!(["permission.tool", "tool.unknown"].contains(&refused.as_str().unwrap()), "{name}");
    }
    assert_eq!(restricted("tools.describe('append')"), json!("permission.tool"));
    let found = restricted("tools.search('append a line to a file')").to_string();
    assert!(!found.contains("count__append"), "{found}");
    // Controls: what it may use is described; without a restriction the other one is started.
    let told = restricted("tools.describe('count__add')");
    assert!(told.as_str().unwrap().contains("Add two numbers"), "{told}");
    assert!(!started.exists());
    let told = project.run(&code("tools.describe('count__append')"), &[])["result"].clone();
    assert!(told.as_str().unwrap().contains("Append a line"), "{told}");
    project.run(&code("tools.list()"), &[]);
    assert!(started.exists());
}
