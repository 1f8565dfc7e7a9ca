//! Values that are too deep, too large or too many are refused or fail; journalled ones can be read.

use std::time::Instant;

use super::*;
use crate::bounds::{STATE_BYTES, VALUE_BYTES};

fn deep(levels: usize) -> JsonValue {
    (0..levels).fold(exact_json!(1), |value, _| exact_json!([value]))
}

/// Every written value can be read, also in a rollback.
fn is_readable(machine: &Machine) {
    let text = serde_json::to_string(machine).unwrap();
    belljar_contract::json_value::from_str::<Machine>(&text).unwrap();
}

fn failure(rig: &Rig) -> TaskFailure {
    rig.finish.clone().expect("it has ended").failure.expect("it failed")
}

#[test]
fn f3_a_deep_result_is_a_failure() {
    for levels in [65, 100, 127] {
        let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
        rig.done("a", deep(levels));
        let failed = failure(&rig);
        assert_eq!((failed.code.as_str(), failed.may_have_acted), ("result.too_deep", true));
        is_readable(&rig.machine);
    }
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    let base = rig.machine.clone();
    rig.done("a", deep(64));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
    rig.roll_back(base.taken(), &base);
    is_readable(&rig.machine);
    // Details of a failure are no way around it.
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    let details = Some(deep(127));
    rig.answer("a", TaskOutcome::failed(TaskFailure { details, ..TaskFailure::new("x", "y") }));
    assert_eq!(failure(&rig).code, "x");
    is_readable(&rig.machine);
}

#[test]
fn f3_what_grows_deep_by_itself_is_a_failure() {
    let mut rig = Rig::new(exact_json!({"state": {"x": 1}, "tasks": [
        {"id": "l", "type": "loop", "while": "true", "body": [
            {"id": "p", "type": "pass", "value": ["{{ state.x }}"], "output": {"x": "{{ result }}"}}
        ]}
    ]}));
    assert_eq!(rig.status(), WorkflowStatus::Failed);
    assert!(failure(&rig).message.contains("deep"), "{:?}", failure(&rig));
    is_readable(&rig.machine);
    rig.started.clear();
}

#[test]
fn f3_deep_commands_inputs_and_workflows_are_refused() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    let before = serde_json::to_string(&rig.machine).unwrap();
    let modify = |levels| WorkflowCommand::ModifyArgs {
        task: "b".into(),
        arguments: map(exact_json!({"x": deep(levels)})),
    };
    let what = InputKind::Command { id: "c".into(), by: "me".into(), command: modify(127) };
    let refused = rig.machine.apply(MachineInput { now_ms: 1, what }).unwrap_err();
    assert!(matches!(refused, InputRefusal::Unfit { .. }), "{refused}");
    assert_eq!(serde_json::to_string(&rig.machine).unwrap(), before);
    assert_eq!(rig.command(modify(50)), None);

    let plain = exact_json!({"tasks": [tool("a", &[])]});
    let begin = |value: JsonValue, inputs: JsonValue| Machine::begin("w", dag(value), map(inputs));
    assert!(begin(plain.clone(), exact_json!({"x": deep(127)})).is_err());
    assert!(begin(plain, exact_json!({"x": deep(50)})).is_ok());
    let holding =
        |levels| exact_json!({"tasks": [{"id": "p", "type": "pass", "value": deep(levels)}]});
    assert!(begin(holding(110), exact_json!({})).is_err());
    assert!(begin(holding(50), exact_json!({})).is_ok());
    assert!(begin(exact_json!({"state": {"x": deep(110)}}), exact_json!({})).is_err());
}

#[test]
fn f3_a_large_result_is_a_failure() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    rig.done("a", exact_json!("x".repeat(VALUE_BYTES + 1)));
    assert_eq!(failure(&rig).code, "result.too_large");
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    rig.done("a", exact_json!("x".repeat(VALUE_BYTES - 10)));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
}

#[test]
fn f3_a_workflow_whose_values_are_too_many_fails() {
    let tasks: Vec<JsonValue> = (0..10).map(|number| tool(&format!("t{number}"), &[])).collect();
    let large = exact_json!("x".repeat(STATE_BYTES / 6));
    let mut rig = Rig::new(exact_json!({"settings": {"concurrency": 1}, "tasks": tasks}));
    for _ in 0..6 {
        let name = rig.names()[0].to_owned();
        rig.done(&name, large.clone());
        if rig.status() != WorkflowStatus::Running {
            break;
        }
    }
    assert_eq!(failure(&rig).code, "workflow.too_large");
    // A value that is replaced counts once.
    let mut rig = Rig::new(
        exact_json!({"tasks": [{"id": "l", "type": "loop", "while": "loop.iteration < 12", "body": [tool("t", &[])]}]}),
    );
    for round in 1..12 {
        rig.done(&format!("l#{round}/t"), large.clone());
    }
    assert_eq!(rig.status(), WorkflowStatus::Completed);
}

#[test]
fn f3_one_input_does_not_take_for_ever() {
    let each = |inner: JsonValue| exact_json!({"id": "e", "type": "foreach", "items": "{{ range(100000) }}", "do": inner});
    let pass = exact_json!({"id": "p", "type": "pass", "value": 1});
    let rounds = exact_json!({"id": "l", "type": "loop", "while": "true", "max_rounds": 100_000, "body": [
        {"id": "m", "type": "loop", "while": "true", "max_rounds": 100_000, "at_limit": "end", "body": [pass]}
    ]});
    for task in [each(each(pass.clone())), rounds] {
        let since = Instant::now();
        let rig = Rig::new(exact_json!({"settings": {"concurrency": 2}, "tasks": [task]}));
        assert_eq!(failure(&rig).code, "workflow.too_large");
        assert!(since.elapsed().as_secs() < 60, "{:?}", since.elapsed());
    }
}
