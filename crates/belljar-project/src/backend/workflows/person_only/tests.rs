//! A model neither decides for a person nor bypasses a decision.

use belljar_contract::{JsonMap, JsonValue, exact_json};
use belljar_workflow::{InputKind, MachineInput};
use belljar_workflow_formats as formats;

use super::*;

/// A workflow that has started.
fn begun(workflow: &JsonValue) -> Machine {
    let read =
        formats::read("test", &workflow.to_string(), &formats::FormatOptions::default()).unwrap();
    let mut machine = Machine::begin("flow_1", read.dag, JsonMap::new()).unwrap();
    machine.apply(MachineInput { now_ms: 1, what: InputKind::Begin }).unwrap();
    machine
}

fn command(given: JsonValue) -> WorkflowCommand {
    belljar_contract::json_value::from_value(given).unwrap()
}

fn asks(by: &str) -> JsonValue {
    exact_json!({"tasks": [
        {"id": "ok", "type": "approval", "message": "ship it?", "by": by},
        {"id": "then", "type": "wait", "wait_ms": 100_000, "depends_on": ["ok"]},
    ]})
}

#[test]
fn f5_what_a_person_decides_is_refused_with_how_they_do_it() {
    let machine = begun(&asks("human"));
    for given in [
        exact_json!({"command": "approve", "decision": "d1"}),
        exact_json!({"command": "reject", "decision": "d1"}),
        exact_json!({"command": "modify", "decision": "d1", "value": 1}),
        exact_json!({"command": "skip", "task": "ok"}),
        exact_json!({"command": "modify_args", "task": "then", "arguments": {}}),
        exact_json!({"command": "replan", "tasks": []}),
        exact_json!({"command": "resolve", "task": "ok", "how": {"resolution": "retry"}}),
    ] {
        let open = machine.decisions();
        let id = open.first().map(|one| one.id.clone()).unwrap_or_default();
        let given: JsonValue = serde_json::from_str(&given.to_string().replace("d1", &id)).unwrap();
        let refused = check(&machine, &command(given.clone()));
        let Err(WorkflowApiError::NotYours { hint, .. }) = &refused else { panic!("{refused:?}") };
        assert!(hint.contains("belljar workflow command flow_1 "), "{given}: {hint}");
    }
    for given in [exact_json!({"command": "pause"}), exact_json!({"command": "abort"})] {
        assert_eq!(check(&machine, &command(given)), Ok(()));
    }
}

#[test]
fn f5_what_the_agent_is_asked_it_decides() {
    let machine = begun(&asks("agent"));
    let id = machine.decisions().first().map(|one| one.id.clone()).unwrap();
    let approve = command(exact_json!({"command": "approve", "decision": id}));
    assert_eq!(check(&machine, &approve), Ok(()));
    assert_eq!(check(&machine, &command(exact_json!({"command": "skip", "task": "then"}))), Ok(()));
    let unknown = check(&machine, &command(exact_json!({"command": "approve", "decision": "d77"})));
    assert!(matches!(unknown, Err(WorkflowApiError::BadCommand { .. })), "{unknown:?}");
}

#[test]
fn f5_a_persons_decision_is_found_however_deep() {
    let approval = exact_json!({"id": "deep", "type": "approval", "message": "?"});
    let nested = exact_json!({"tasks": [{"id": "sub", "type": "workflow", "workflow": {"tasks": [
        {"id": "each", "type": "foreach", "items": "{{ [1] }}", "do": approval},
    ]}}, {"id": "w", "type": "wait", "wait_ms": 1000}]});
    let settings = exact_json!({"settings": {"decided_by": "human", "decisions": {"after": ["w"]}},
        "tasks": [{"id": "w", "type": "wait", "wait_ms": 1000}]});
    for workflow in [nested, settings] {
        let refused =
            check(&begun(&workflow), &command(exact_json!({"command": "skip", "task": "w"})));
        assert!(
            matches!(refused, Err(WorkflowApiError::NotYours { .. })),
            "{workflow}: {refused:?}"
        );
    }
}
