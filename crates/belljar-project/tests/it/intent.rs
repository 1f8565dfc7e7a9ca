//! D5, E2: a run that says what it is for gets the tools that fit, and no others.

use belljar_project::{ErrorCode, Execution, Language, RunDurability};
use belljar_testing::sandboxed;
use belljar_tools::{Glob, ToolGrants};
use serde_json::{Value, json};

use crate::executor_support::{Project, block_on, execution};

const ADD: &str = "return await mcp.test.add({ a: 1, b: 2 })";
const FAIL: &str = "return await mcp.test.fail({ message: 'called' })";

fn meant(intent: &str, code: &str) -> Execution {
    Execution { intent: Some(intent.to_owned()), ..execution(Language::TypeScript, code) }
}

#[sandboxed]
#[test]
fn e2_an_intent_brings_the_tools_that_fit_and_no_others() {
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

#[sandboxed]
#[test]
fn e2_tools_named_are_there_beside_those_an_intent_brings() {
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

#[sandboxed]
#[test]
fn e2_what_policy_denies_is_not_brought() {
    block_on(async {
        let project = Project::new(json!({ "deny": ["test__add"] })).await;
        let result = project.execute(meant("add numbers", ADD)).await;
        assert!(!result.tools.discovered.contains(&"test__add".to_owned()));
        assert_eq!(result.error.unwrap().code, ErrorCode::PermissionTool);
        project.executor.shutdown().await;
    });
}

#[sandboxed]
#[test]
fn e2_a_durable_run_remembers_its_tools() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let durable = Execution { durability: RunDurability::Always, ..meant("add numbers", ADD) };
        let result = project.execute(durable).await;
        let record = project.store.run(&result.id).await.unwrap().unwrap();
        let kept: Value = serde_json::from_str(&record.result_json.unwrap()).unwrap();
        assert_eq!(kept["tools"]["injected"], json!(result.tools.injected));
        assert!(!result.tools.injected.is_empty());
        project.executor.shutdown().await;
    });
}

#[sandboxed]
#[test]
fn d5_strange_intents_bring_nothing_and_break_nothing() {
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
