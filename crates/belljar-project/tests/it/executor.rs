//! D2, D3, D6, E5, H2: code that calls tools, with policy, audit, budget and cache in between.

use std::time::Duration;

use belljar_contract::{ErrorCode, Language, RunStatus};
use belljar_project::Execution;
use belljar_store::AuditFilter;
use serde_json::{Value, json};

use crate::executor_support::{Project, block_on, execution};

fn value(json: &serde_json::value::RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap()
}

const TS_SUM: &str = "return await mcp.test.add({ a: 2, b: 3 })";

#[test]
fn d2_both_languages_call_tools() {
    block_on(async {
        let project = Project::new(json!({})).await;
        for (language, code) in [
            (Language::TypeScript, TS_SUM),
            (Language::TypeScript, "return await tools.call('test__add', { a: 2, b: 3 })"),
            (Language::Python, "mcp.test.add(a=2, b=3)"),
            (Language::Python, "mcp.test.add({'a': 2, 'b': 3})"),
            (Language::Python, "await mcp.test.add(a=2, b=3)"),
            (Language::Python, "tools.call('test__add', {'a': 2, 'b': 3})"),
        ] {
            let result = project.run(language, code).await;
            assert_eq!((&result.error, value(&result.result)), (&None, json!(5)), "{code}");
            assert_eq!(result.metrics.tool_calls, 1);
        }
        project.executor.shutdown().await;
    });
}

#[test]
fn d2_parallel_calls_really_are() {
    block_on(async {
        let project = Project::new(json!({})).await;
        for (language, code) in [
            (
                Language::TypeScript,
                "return await Promise.all([300, 300, 300].map((ms) => mcp.test.slow({ ms })))",
            ),
            (
                Language::Python,
                "import asyncio\nawait asyncio.gather(*[mcp.test.slow(ms=300) for _ in range(3)])",
            ),
        ] {
            let result = project.run(language, code).await;
            assert_eq!((&result.error, value(&result.result)), (&None, json!([300, 300, 300])));
        }
        assert_eq!(project.effects.most_under_way(), 3);
        project.executor.shutdown().await;
    });
}

#[test]
fn d3_errors_arrive_as_what_they_are() {
    block_on(async {
        let project = Project::new(json!({ "deny": ["test__note"] })).await;
        for (code, expected) in [
            ("await mcp.test.fail({ message: 'no' })", ErrorCode::ToolFailed),
            ("await mcp.test.add({ a: 1 })", ErrorCode::ToolArguments),
            ("await mcp.test.add({ a: 1, c: 2, b: 3 })", ErrorCode::ToolArguments),
            ("await mcp.test.subtract({})", ErrorCode::ToolUnknown),
            ("await mcp.nowhere.add({})", ErrorCode::ToolUnknown),
            ("await mcp.test.note({ text: 'x' })", ErrorCode::PermissionTool),
        ] {
            let result = project.run(Language::TypeScript, code).await;
            let error = result.error.expect(code);
            assert_eq!((error.code, error.line), (expected, Some(1)), "{code}: {}", error.message);
            // Control: the same error can be caught.
            let caught = format!("try {{ {code} }} catch (e) {{ return e.code }}");
            let result = project.run(Language::TypeScript, &caught).await;
            assert_eq!(value(&result.result), json!(expected.as_str()));
        }
        assert_eq!(project.effects.list(), Vec::<String>::new());
        let misspelt = project.run(Language::Python, "mcp.test.add(a=1, bb=2)").await;
        let error = misspelt.error.unwrap();
        assert!(error.message.contains("`bb`") && error.message.contains("`b`"), "{error:?}");
        assert_eq!(error.tool_name.as_deref(), Some("test__add"));
        project.executor.shutdown().await;
    });
}

#[test]
fn d6_every_call_leaves_an_audit_row() {
    block_on(async {
        let project = Project::new(json!({ "deny": ["test__note"] })).await;
        let code = "await mcp.test.add({ a: 1, b: 2 });
            try { await mcp.test.note({ text: 'x' }) } catch {}
            await mcp.test.fail({ message: 'no' })";
        let result = project.run(Language::TypeScript, code).await;
        project.store.flush().await.unwrap();
        let filter = AuditFilter { run_id: Some(result.id.clone()), tool: None };
        let mut rows = project.store.audit_rows(filter, 10).await.unwrap();
        rows.sort_by_key(|row| row.call);
        let told: Vec<_> = rows.iter().map(|r| (&*r.tool, &*r.decision, &*r.outcome)).collect();
        assert_eq!(
            told,
            [
                ("test__add", "allowed", "ok"),
                ("test__note", "denied by policy", "permission.tool"),
                ("test__fail", "allowed", "tool.failed"),
            ]
        );
        assert!(rows.iter().all(|row| row.caller == "test" && row.argument_hash.len() == 64));
        project.executor.shutdown().await;
    });
}

#[test]
fn a6_too_many_calls_end_the_run() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let code = "for (let i = 0; i < 9; i++) await mcp.test.add({ a: i, b: i }); return 'all'";
        let mut few = execution(Language::TypeScript, code);
        few.request.limits.tool_calls = 8;
        let result = project.execute(few).await;
        assert_eq!(result.error.unwrap().code, ErrorCode::LimitToolCalls);
        let mut enough = execution(Language::TypeScript, code);
        enough.request.limits.tool_calls = 9;
        let result = project.execute(enough).await;
        assert_eq!(value(&result.result), json!("all"));
        project.executor.shutdown().await;
    });
}

#[test]
fn e5_a_large_value_is_stored_and_can_be_loaded() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let budgeted = |code: &str| Execution {
            max_output_tokens: Some(500),
            ..execution(Language::TypeScript, code)
        };
        let result = project.execute(budgeted("return await mcp.test.rows({ n: 5000 })")).await;
        let summary = value(&result.result);
        assert!(result.truncated.result && summary.to_string().len() < 3000, "{summary}");
        assert_eq!(summary["count"], json!(5000));
        let handle = summary["handle"].as_str().unwrap();
        for (language, code) in [
            (Language::TypeScript, format!("return (await load('{handle}')).length")),
            (Language::Python, format!("len(load('{handle}'))")),
        ] {
            let result = project.run(language, &code).await;
            assert_eq!((&result.error, value(&result.result)), (&None, json!(5000)));
        }
        let unknown = project.run(Language::TypeScript, "await load('blob_00')").await;
        assert_eq!(unknown.error.unwrap().code, ErrorCode::ToolUnknown);
        // Control: a value within the budget comes as it is.
        let small = project.execute(budgeted("return [1, 2]")).await;
        assert_eq!(value(&small.result), json!([1, 2]));
        project.executor.shutdown().await;
    });
}

#[test]
fn h2_only_what_was_read_is_remembered() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let cached = |code: &str| Execution {
            cache: Some(Duration::from_secs(60)),
            ..execution(Language::TypeScript, code)
        };
        let reads = "return [await mcp.test.add({ a: 1, b: 2 }), Math.random()]";
        let first = project.execute(cached(reads)).await;
        let second = project.execute(cached(reads)).await;
        assert_eq!((first.cached, second.cached), (false, true));
        assert_eq!(value(&first.result), value(&second.result));
        let third = project.run(Language::TypeScript, reads).await;
        assert!(!third.cached && value(&third.result) != value(&first.result));
        let writes = "await mcp.test.note({ text: 'x' }); return 1";
        for _ in 0..2 {
            assert!(!project.execute(cached(writes)).await.cached);
        }
        assert_eq!(project.effects.list(), ["x", "x"]);
        project.executor.shutdown().await;
    });
}

/// A cache hit passes what any result passes: the budget, and the name the run was given.
#[test]
fn e5_an_answer_from_memory_keeps_to_the_budget() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let asked = || Execution {
            cache: Some(Duration::from_secs(60)),
            max_output_tokens: Some(100),
            ..execution(Language::TypeScript, "state.n = 1; return 'x'.repeat(20_000)")
        };
        let first = project.execute(asked()).await;
        let aborted = std::future::pending();
        let second = project.executor.execute_as("run_known".into(), asked(), aborted).await;
        assert_eq!((first.cached, second.cached), (false, true));
        assert!(first.truncated.result && second.truncated.result);
        assert_eq!(value(&second.result), value(&first.result));
        assert!(second.result.get().len() < 1000, "{}", second.result.get().len());
        assert_eq!((second.id.as_str(), value(&second.state)), ("run_known", json!({"n": 1})));
        project.executor.shutdown().await;
    });
}

/// A7: the tool an error is about is named, also where there is no such tool.
#[test]
fn a7_errors_name_the_tool_they_are_about() {
    block_on(async {
        let project = Project::new(json!({})).await;
        for (language, code, name, kind) in [
            (
                Language::TypeScript,
                "await mcp.test.nonsense({})",
                "test__nonsense",
                ErrorCode::ToolUnknown,
            ),
            (Language::Python, "mcp.test.nonsense()", "test__nonsense", ErrorCode::ToolUnknown),
            (
                Language::TypeScript,
                "await mcp.test.Add('x' as any)",
                "test__add",
                ErrorCode::ToolArguments,
            ),
            (
                Language::TypeScript,
                "await mcp.test.add([1] as any)",
                "test__add",
                ErrorCode::ToolArguments,
            ),
            (Language::Python, "mcp.test.Add(a='x')", "test__add", ErrorCode::ToolArguments),
        ] {
            let error = project.run(language, code).await.error.expect("an error");
            assert_eq!((error.code, error.tool_name.as_deref()), (kind, Some(name)), "{code}");
        }
        project.executor.shutdown().await;
    });
}

/// A9: what code leaves in `state` is in the result, of runs of their own and in sessions.
#[test]
fn a9_state_is_in_the_result() {
    block_on(async {
        let project = Project::new(json!({})).await;
        for (language, code) in [
            (Language::TypeScript, "state.count = 2; state.done = false"),
            (Language::Python, "state['count'] = 2\nstate['done'] = False"),
        ] {
            let result = project.run(language, code).await;
            assert_eq!(value(&result.state), json!({"count": 2, "done": false}), "{code}");
        }
        let failed = "state.count = 2; throw new Error('half way')";
        let failed = project.run(Language::TypeScript, failed).await;
        assert_eq!(value(&failed.state), json!({}));
        let large = "state.text = 'x'.repeat(3 << 20); return 1";
        let large = project.run(Language::TypeScript, large).await;
        assert!(large.success && large.truncated.state, "{large:?}");
        project.executor.shutdown().await;
    });
}

#[test]
fn a9_a_run_without_tools_is_as_it_was() {
    block_on(async {
        let project = Project::new(json!({})).await;
        let result = project.run(Language::TypeScript, "return 1 + 1").await;
        assert_eq!((result.status, value(&result.result)), (RunStatus::Completed, json!(2)));
        let listed = project.run(Language::TypeScript, "return await tools.list()").await;
        assert_eq!(value(&listed.result).as_array().unwrap().len(), 6);
        let found = "return (await tools.search('add two numbers'))[0].name";
        let found = project.run(Language::TypeScript, found).await;
        assert_eq!(value(&found.result), json!("test__add"));
        project.executor.shutdown().await;
    });
}
