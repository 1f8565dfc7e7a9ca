//! Tools, policy, audit and budget in the runs of a session, and the MCP tool `sandbox` (D2, D6, E5, B1).

use belljar_contract::{ErrorCode, Language};
use belljar_project::{Durability, Execution, SessionSpec};
use belljar_store::AuditFilter;
use serde_json::{Value, json};

use crate::{
    command::no_sandbox,
    executor_support::{Project, block_on, execution},
    mcp_support,
};

fn value(json: &serde_json::value::RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap()
}

#[test]
fn d2_code_in_a_session_calls_tools_and_keeps_what_they_gave() {
    if no_sandbox() {
        return;
    }
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
                Execution { durability: Durability::Always, ..execution(language, later) };
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

#[test]
fn b1_b4_the_mcp_tool_sandbox() {
    if no_sandbox() {
        return;
    }
    let project = mcp_support::Project::new(&[], "");
    let serving = project.serve(&[]);
    let sandbox = |arguments: Value| serving.call("sandbox", &arguments);
    let made = sandbox(json!({ "action": "create", "language": "python" }));
    let id = made["structuredContent"]["session_id"].as_str().unwrap_or_else(|| panic!("{made:#}"));
    let run = |id: &str, code: &str| {
        let answer = sandbox(json!({ "action": "execute", "session_id": id, "code": code }));
        answer["structuredContent"].clone()
    };
    assert_eq!(run(id, "x = 1")["status"], "completed");
    assert_eq!(run(id, "x + 1")["result"], 2);
    let other = serving
        .call("execute_code", &json!({ "code": "x + 2", "language": "python", "session_id": id }));
    assert_eq!(other["structuredContent"]["result"], 3, "{other:#}");
    let taken = sandbox(json!({ "action": "checkpoint", "session_id": id }));
    let point = taken["structuredContent"]["checkpoint_id"].clone();
    run(id, "x = 50");
    let back = json!({ "action": "rollback", "session_id": id, "checkpoint_id": point });
    assert_eq!(sandbox(back)["isError"], false);
    assert_eq!(run(id, "x")["result"], 1);
    let forked = sandbox(json!({ "action": "fork", "session_id": id, "count": 2 }));
    let forks = forked["structuredContent"]["session_ids"].as_array().unwrap();
    assert_eq!(run(forks[1].as_str().unwrap(), "x += 1\nx")["result"], 2);
    let all = sandbox(json!({ "action": "list" }));
    assert_eq!(all["structuredContent"]["sessions"].as_array().map(Vec::len), Some(3));
    assert_eq!(sandbox(json!({ "action": "destroy", "session_id": id }))["isError"], false);
    let gone = sandbox(json!({ "action": "checkpoint", "session_id": id }));
    assert_eq!(gone["isError"], true);
    assert!(gone.to_string().contains("has ended"), "{gone:#}");
    let odd = sandbox(json!({ "action": "execute", "code": "1" }));
    assert!(odd.to_string().contains("session_id"), "{odd:#}");
    serving.stop();
}
