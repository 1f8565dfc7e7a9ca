//! Sessions through the MCP tool `sandbox` (B1, B4).

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::mcp_support;

#[sandboxed]
#[test]
fn b1_b4_the_mcp_tool_sandbox() {
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
