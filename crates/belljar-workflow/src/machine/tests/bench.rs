//! Large workflows stay cheap: the work is counted, not timed.

use super::*;

#[test]
fn a_fan_out_of_a_thousand_goes_through() {
    let mut rig = Rig::new(exact_json!({"settings": {"concurrency": 50}, "tasks": [
        {"id": "each", "type": "foreach", "items": "{{ range(1000) }}",
         "do": {"id": "x", "type": "mcp_tool", "tool": "s:t", "arguments": {"i": "{{ item }}"}}},
        {"id": "sum", "type": "pass", "depends_on": ["each"], "value": "{{ results.each | sum }}"}
    ]}));
    rig.run_out(|start| {
        let crate::TaskWork::McpTool(call) = &start.work else { panic!("tool") };
        TaskOutcome::done(call.arguments["i"].clone())
    });
    assert_eq!(rig.output(), exact_json!({"sum": 499_500}));
    let bytes = serde_json::to_string(&rig.machine).unwrap().len();
    assert!(bytes < 1000 * 400, "{bytes}");
}

#[test]
fn a_thousand_tasks_beside_each_other_go_through() {
    let mut tasks: Vec<JsonValue> =
        (0..1000).map(|index| tool(&format!("t{index}"), &[])).collect();
    let ids: Vec<String> = (0..1000).map(|index| format!("t{index}")).collect();
    tasks.push(exact_json!({"id": "end_of_all", "type": "pass", "depends_on": ids, "value": 1}));
    let mut rig = Rig::new(exact_json!({"tasks": tasks}));
    rig.run_out(|_| TaskOutcome::done(exact_json!(1)));
    assert_eq!(rig.output(), exact_json!({"end_of_all": 1}));
}
