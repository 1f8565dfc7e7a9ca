//! A8: values pass through the machine as they were written: keys in their order, integers with all their
//! digits.

use super::*;
use belljar_contract::json_value;

/// Keys out of order, 2^64 + 1, 2^200, and what else a tree of `serde_json` would change.
const WRITTEN: &str = r#"{"total":1,"alpha":{"z":[{"y":0,"b":18446744073709551617}],"a":1.5},"huge":1606938044258990275541962092341162602522202993782792835301376,"low":-9223372036854775809,"few":[1,-2,18446744073709551615]}"#;

fn written() -> JsonValue {
    json_value::parse(WRITTEN).unwrap()
}

/// A task that takes a value and returns another.
fn takes(id: &str, value: &str, after: &[&str]) -> JsonValue {
    exact_json!({"id": id, "type": "mcp_tool", "tool": "s:t", "depends_on": after,
        "arguments": {"z": value, "a": 1}})
}

/// The input of the tool of [`takes`].
fn given(start: &TaskStart) -> String {
    let crate::TaskWork::McpTool(call) = &start.work else { panic!("{start:?}") };
    serde_json::to_string(&call.arguments).unwrap()
}

#[test]
fn a8_values_pass_through_tasks_templates_and_output_as_they_are() {
    let mut rig = Rig::with(
        exact_json!({
            "state": {"kept": written(), "all": [], "once": [], "ctx": {}},
            "reducers": {"all": "append", "once": "union", "ctx": "merge", "count": "sum"},
            "tasks": [
                takes("one", "{{ inputs.given }}", &[]),
                {"id": "each", "type": "foreach", "items": "{{ [results.one, 2] }}", "depends_on": ["one"],
                    "do": takes("part", "{{ item }}", &[])},
                {"id": "inner", "type": "workflow", "depends_on": ["each"],
                    "inputs": {"z": "{{ results.each[0] }}", "a": 1},
                    "workflow": {"inputs": {"z": null, "a": 0}, "tasks": [
                        {"id": "p", "type": "pass", "value": {"z": "{{ inputs.z }}", "a": 2}}]}},
                {"id": "said", "type": "pass", "depends_on": ["inner"], "value": {
                    "text": "{{ results.one }} and {{ results.one.huge }}", "json": "{{ results.one | tojson }}",
                    "keys": "{{ results.one.keys() }}", "same": "{{ results.one.huge == inputs.given.huge }}",
                    "sum": "{{ results.one.alpha.z[0].b + 1 }}"},
                    "output": {"all": "{{ results.one.huge }}", "once": "{{ [results.one, results.one] }}",
                        "ctx": "{{ results.one }}", "count": "{{ results.one.alpha.z[0].b }}"}}
            ],
            "output": {"z": "{{ results.inner }}", "state": "{{ state }}", "a": "{{ results.said }}"}
        }),
        exact_json!({"given": written()}),
    );
    let argument = format!(r#"{{"z":{WRITTEN},"a":1}}"#);
    let mut seen = 0;
    while let Some(start) = rig.started.front().cloned() {
        if start.instance != "each[1]" {
            assert_eq!(given(&start), argument, "{}", start.instance);
            seen += 1;
        }
        rig.done(&start.instance, written());
        // A host that dies after every task changes nothing.
        rig.resume(|_| crate::Repeatability::Harmless);
    }
    assert_eq!(seen, 2, "{:?}", rig.machine.tasks());
    let large = "1606938044258990275541962092341162602522202993782792835301376";
    let text = JsonValue::from(format!("{WRITTEN} and {large}"));
    let json = JsonValue::from(WRITTEN);
    let output = format!(
        r#"{{"z":{{"p":{{"z":{WRITTEN},"a":2}}}},"state":{{"kept":{WRITTEN},"all":[{large}],"once":[{WRITTEN}],"ctx":{WRITTEN},"count":18446744073709551617}},"a":{{"text":{text},"json":{json},"keys":["total","alpha","huge","low","few"],"same":true,"sum":18446744073709551618}}}}"#
    );
    assert_eq!(rig.output().to_string(), output);
}

#[test]
fn a8_commands_and_rollbacks_keep_values() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "ok", "type": "approval", "message": "?"}, takes("one", "{{ results.ok }}", &["ok"])
    ]}));
    let base = rig.machine.clone();
    let approve = |rig: &Rig| WorkflowCommand::Approve {
        decision: rig.decision(DecisionKind::Approval),
        value: Some(written()),
    };
    let command = approve(&rig);
    // A command reaches the machine through the store.
    let text = serde_json::to_string(&command).unwrap();
    let command: WorkflowCommand = json_value::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&command).unwrap(), text);
    assert!(text.contains(WRITTEN), "{text}");
    rig.command(command);
    let argument = format!(r#"{{"z":{{"approved":true,"value":{WRITTEN}}},"a":1}}"#);
    assert_eq!(given(rig.started.front().unwrap()), argument);
    rig.done("one", written());
    rig.roll_back(base.taken(), &base);
    rig.command(WorkflowCommand::Continue);
    let command = approve(&rig);
    rig.command(command);
    assert_eq!(given(rig.started.front().unwrap()), argument);
}

#[test]
fn a8_a_template_never_rounds_an_integer_in_silence() {
    let mut rig = Rig::with(
        exact_json!({"tasks": [takes("one", "{{ inputs.given.huge + 1 }}", &[])]}),
        exact_json!({"given": written()}),
    );
    assert!(rig.started.pop_front().is_none());
    assert_eq!(rig.status(), WorkflowStatus::Failed);
}

/// A workflow of the version before this one: its keys were sorted and its numbers rounded. The keys of its
/// effects are found again, and it comes to the same end.
#[test]
fn f3_a_workflow_of_an_earlier_version_goes_on() {
    let golden = json_value::parse(include_str!("golden/sorted_keys.json")).unwrap();
    let text = |value: &JsonValue| value.as_str().unwrap().to_owned();
    let mut machine: Machine = json_value::from_str(&text(&golden["snapshot"])).unwrap();
    let keys: Vec<String> = golden["keys"].as_array().unwrap().iter().map(text).collect();
    let (mut started, mut output) = (Vec::new(), None);
    for input in golden["inputs"].as_array().unwrap() {
        let input: MachineInput = json_value::from_str(&text(input)).unwrap();
        for effect in machine.apply(input).unwrap() {
            match effect {
                Effect::Start(start) => started.push(start.key),
                Effect::Finish(finish) => output = Some(finish.output),
                Effect::Cancel { .. }
                | Effect::Event(_)
                | Effect::Acknowledge(_)
                | Effect::Timer { .. }
                | Effect::Forget { .. }
                | Effect::Ask(_)
                | Effect::Withdraw { .. }
                | Effect::Checkpoint { .. } => {}
            }
        }
    }
    assert!(!started.is_empty());
    for key in started {
        assert!(keys.contains(&key), "{key} is new");
    }
    assert_eq!(output.as_ref(), Some(&golden["output"]));
    assert_eq!(&JsonValue::Object(machine.state().clone()), &golden["state"]);
    assert_eq!(Some(machine.last_event()), golden["events"].as_u64());
}
