//! D5, E2: a run that says what it is for gets the tools that fit, and no others.

use belljar_contract::{ErrorCode, Language};
use belljar_project::{Durability, Execution};
use belljar_tools::{Glob, ToolGrants};
use serde_json::{Value, json};

use crate::{
    command::no_sandbox,
    executor_support::{Project, block_on, execution},
    project_support::CountingProject,
    stdio_support::StdioServer,
};

const ADD: &str = "return await mcp.test.add({ a: 1, b: 2 })";
const FAIL: &str = "return await mcp.test.fail({ message: 'called' })";

fn meant(intent: &str, code: &str) -> Execution {
    Execution { intent: Some(intent.to_owned()), ..execution(Language::TypeScript, code) }
}

#[test]
fn e2_an_intent_brings_the_tools_that_fit_and_no_others() {
    if no_sandbox() {
        return;
    }
    block_on(async {
        let project = Project::new(json!({})).await;
        let result = project.execute(meant("add numbers", ADD)).await;
        assert_eq!(result.error, None);
        assert_eq!(result.tools.discovered.first().map(String::as_str), Some("test__add"));
        assert_eq!(result.tools.injected, result.tools.discovered);
        assert!(!result.tools.injected.contains(&"test__fail".to_owned()), "{:?}", result.tools);
        let refused = project.execute(meant("add numbers", FAIL)).await.error.unwrap();
        assert_eq!(refused.code, ErrorCode::PermissionTool);
        let hint = refused.hint.unwrap();
        for way in ["tools: [\"test__fail\"]", "--tool test__fail", "another intent"] {
            assert!(hint.contains(way), "{hint}");
        }
        // Control: without an intent the tool is there, and fails by itself.
        let called = project.run(Language::TypeScript, FAIL).await.error.unwrap();
        assert_eq!(called.code, ErrorCode::ToolFailed);
        project.executor.shutdown().await;
    });
}

#[test]
fn e2_tools_named_are_there_beside_those_an_intent_brings() {
    if no_sandbox() {
        return;
    }
    block_on(async {
        let project = Project::new(json!({})).await;
        let named = |globs: &[&str]| ToolGrants {
            only: Some(globs.iter().copied().map(Glob::new).collect()),
            given: Vec::new(),
        };
        let both = Execution { tools: named(&["test__fail"]), ..meant("add numbers", FAIL) };
        let result = project.execute(both).await;
        assert_eq!(result.error.unwrap().code, ErrorCode::ToolFailed);
        assert!(result.tools.injected.contains(&"test__fail".to_owned()));
        assert!(!result.tools.discovered.contains(&"test__fail".to_owned()));
        let code = execution(Language::TypeScript, ADD);
        let explicit = project.execute(Execution { tools: named(&["test__a*"]), ..code }).await;
        assert_eq!((explicit.error, explicit.tools.discovered), (None, Vec::new()));
        assert_eq!(explicit.tools.injected, ["test__add"]);
        project.executor.shutdown().await;
    });
}

#[test]
fn e2_what_policy_denies_is_not_brought() {
    if no_sandbox() {
        return;
    }
    block_on(async {
        let project = Project::new(json!({ "deny": ["test__add"] })).await;
        let result = project.execute(meant("add numbers", ADD)).await;
        assert!(!result.tools.discovered.contains(&"test__add".to_owned()));
        assert_eq!(result.error.unwrap().code, ErrorCode::PermissionTool);
        project.executor.shutdown().await;
    });
}

#[test]
fn e2_a_durable_run_remembers_its_tools() {
    if no_sandbox() {
        return;
    }
    block_on(async {
        let project = Project::new(json!({})).await;
        let durable = Execution { durability: Durability::Always, ..meant("add numbers", ADD) };
        let result = project.execute(durable).await;
        let record = project.store.run(&result.id).await.unwrap().unwrap();
        let kept: Value = serde_json::from_str(&record.result_json.unwrap()).unwrap();
        assert_eq!(kept["tools"]["injected"], json!(result.tools.injected));
        assert!(!result.tools.injected.is_empty());
        project.executor.shutdown().await;
    });
}

#[test]
fn d5_strange_intents_bring_nothing_and_break_nothing() {
    if no_sandbox() {
        return;
    }
    block_on(async {
        let project = Project::new(json!({})).await;
        let enormous = "x".repeat(5_000_000);
        for intent in ["", "\0\u{202e}\u{fffd}", "'; DROP TABLE tools; --", enormous.as_str()] {
            let result = project.execute(meant(intent, "return 1")).await;
            assert_eq!(result.error, None, "{}", intent.len());
        }
        let nothing = project.execute(meant("", ADD)).await;
        assert_eq!(nothing.tools.injected, Vec::<String>::new());
        assert_eq!(nothing.error.unwrap().code, ErrorCode::PermissionTool);
        project.executor.shutdown().await;
    });
}

#[test]
fn d5_a_shell_finds_tools_and_runs_code_with_them() {
    let project = CountingProject::trusting("");
    let found = project.belljar(&["tools", "search", "sum of two numbers", "--json"]).json();
    assert_eq!(found[0]["name"], "count__add");
    let told = project.belljar(&["tools", "search", "add two numbers", "-k", "1"]);
    insta::assert_snapshot!(told.stdout, @r"
    SCORE  NAME        WHY                               DESCRIPTION
    1.30   count__add  add, two, numbers, meaning 100 %  Add two numbers.
    ");
    if no_sandbox() {
        return;
    }
    let code = "return await mcp.count.add({ a: 1, b: 2 })";
    let result = project.run(code, &["--intent", "sum of two numbers"]);
    assert_eq!(result["result"], json!({"sum": 3}), "{result:#}");
    assert_eq!(result["tools"]["discovered"][0], "count__add");
    assert!(project.place.path().join("work/.belljar/tools.index").is_file());
}

#[test]
fn e2_a_client_says_what_its_code_is_for() {
    if no_sandbox() {
        return;
    }
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

#[test]
fn s17_what_a_run_may_not_use_is_neither_described_nor_started_for_it() {
    if no_sandbox() {
        return;
    }
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
    assert_eq!(restricted("tools.list()"), json!(["count__add", "count__slow"]));
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
