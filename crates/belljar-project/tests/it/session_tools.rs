//! Tools, policy, audit and budget in the runs of a session (D2, D6, E5).

use belljar_project::{ErrorCode, Execution, Language, RunDurability, SessionSpec};
use belljar_store::AuditFilter;
use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::executor_support::{Project, block_on, execution};

fn value(json: &serde_json::value::RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap()
}

#[sandboxed]
#[test]
fn d2_code_in_a_session_calls_tools_and_keeps_what_they_gave() {
    block_on(async {
        let project = Project::new(json!({ "deny": ["test__note"] })).await;
        for (language, call, later, denied) in [
            (
                Language::TypeScript,
                "sum = await mcp.test.add({ a: 2, b: 3 })",
                "sum + 1",
                "await mcp.test.note({ text: 'x' })",
            ),
            (
                Language::Python,
                "total = mcp.test.add(a=2, b=3)",
                "total + 1",
                "mcp.test.note(text='x')",
            ),
        ] {
            let sandbox = project.executor.sandbox();
            let session = sandbox.open_session(SessionSpec::new(language)).await.unwrap();
            let run = async |execution: Execution| {
                let id = belljar_runtime::run_id();
                project.executor.execute_in(&session, id, execution, std::future::pending()).await
            };
            // Calls are numbered anew in each run.
            for _ in 0..2 {
                let result = run(execution(language, call)).await;
                assert_eq!((&result.error, result.metrics.tool_calls), (&None, 1), "{call}");
            }
            assert_eq!(value(&run(execution(language, later)).await.result), json!(6));
            let refused = run(execution(language, denied)).await.error.expect("policy denies it");
            assert_eq!(refused.code, ErrorCode::PermissionTool, "{refused:?}");
            assert_eq!(value(&run(execution(language, later)).await.result), json!(6));
            let many = match language {
                Language::Python => "mcp.test.rows(n=5000)",
                Language::TypeScript | Language::JavaScript | Language::Bash => {
                    "return await mcp.test.rows({ n: 5000 })"
                }
            };
            let small = Execution { max_output_tokens: Some(500), ..execution(language, many) };
            let result = run(small).await;
            assert!(result.truncated.result && result.result.get().len() < 4000, "{result:?}");
            assert!(value(&result.result)["handle"].is_string());
            let durable =
                Execution { durability: RunDurability::Always, ..execution(language, later) };
            let refused = run(durable).await.error.expect("a session has no journal");
            assert_eq!(refused.code, ErrorCode::RequestInvalid);
        }
        let rows = project.store.audit_rows(AuditFilter::default(), 100).await.unwrap();
        assert!(rows.len() >= 8, "{rows:?}");
        assert_eq!(
            project.effects.list(),
            Vec::<String>::new(),
            "nothing that was denied was done"
        );
        project.executor.shutdown().await;
    });
}
