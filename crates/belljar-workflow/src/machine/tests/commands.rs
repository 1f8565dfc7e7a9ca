//! Commands and decisions, at every moment.

use super::*;
use crate::{DoubtResolution, WorkflowDecision};

fn approval(extra: JsonValue) -> JsonValue {
    let mut task = exact_json!({"id": "ok", "type": "approval", "message": "send {{ inputs.n }}?"});
    task.as_object_mut().unwrap().extend(map(extra));
    exact_json!({"inputs": {"n": 3}, "tasks": [task, tool("send", &["ok"])]})
}

fn yes(decision: String) -> WorkflowCommand {
    WorkflowCommand::Approve { decision, value: None }
}

fn no(decision: String) -> WorkflowCommand {
    WorkflowCommand::Reject { decision, reason: Some("not now".into()) }
}

fn open(rig: &Rig) -> WorkflowDecision {
    rig.machine.decisions().into_iter().next().unwrap()
}

#[test]
fn f5_an_approval_waits_and_goes_on() {
    let mut rig = Rig::new(approval(exact_json!({})));
    assert_eq!(open(&rig).message, "send 3?");
    assert!(rig.names().is_empty());
    assert_eq!(
        rig.command(yes("d9".into())),
        Some("no decision d9 is open; open decisions: d1".into())
    );
    assert_eq!(rig.command(yes("d1".into())), None);
    assert_eq!(rig.command(yes("d1".into())), Some("no decision d1 is open, and no other".into()));
    rig.done("send", exact_json!(1));
    assert_eq!(rig.machine.results()["ok"], exact_json!({"approved": true, "value": null}));
}

#[test]
fn f5_a_rejection_fails_the_task() {
    let mut rig = Rig::new(approval(exact_json!({})));
    rig.command(no("d1".into()));
    assert_eq!(rig.finish.unwrap().failure.unwrap().message, "not now");
}

#[test]
fn f5_no_answer_is_abort_for_a_person_and_going_on_for_the_agent() {
    let mut rig = Rig::new(approval(exact_json!({"decide_within_ms": 5, "by": "human"})));
    rig.tick();
    assert_eq!(rig.status(), WorkflowStatus::Aborted);
    let mut rig = Rig::new(approval(exact_json!({"decide_within_ms": 5, "by": "agent"})));
    rig.tick();
    assert_eq!(rig.names(), ["send"]);
}

#[test]
fn f5_decisions_before_and_after() {
    let mut rig = Rig::new(exact_json!({
        "settings": {"decisions": {"before": ["b"], "after": ["a"]}},
        "tasks": [tool("a", &[]), tool("b", &["a"]), tool("c", &["b"])]
    }));
    rig.done("a", exact_json!(1));
    assert!(rig.names().is_empty());
    let decision = rig.decision(DecisionKind::After);
    let modify = WorkflowCommand::Modify { decision, arguments: None, value: Some(exact_json!(2)) };
    assert_eq!(rig.command(modify), None);
    assert_eq!(rig.machine.results()["a"], exact_json!(2));
    let decision = rig.decision(DecisionKind::Before);
    let arguments = Some(map(exact_json!({"x": 1})));
    assert_eq!(rig.command(WorkflowCommand::Modify { decision, arguments, value: None }), None);
    let crate::TaskWork::McpTool(call) = &rig.started[0].work else { panic!("tool") };
    assert_eq!(call.arguments, map(exact_json!({"x": 1})));
    rig.done("b", exact_json!(3));
    rig.done("c", exact_json!(4));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
}

#[test]
fn f5_per_task_holds_what_follows_and_nothing_else() {
    let mut rig = Rig::new(exact_json!({
        "settings": {"decisions": {"per_task": true}},
        "tasks": [tool("a", &[]), tool("b", &[]), tool("c", &["a"])]
    }));
    rig.done("a", exact_json!(1));
    assert_eq!(rig.names(), ["b"]);
    rig.command(yes("d1".into()));
    assert_eq!(rig.names(), ["b", "c"]);
}

#[test]
fn f5_on_error_somebody_decides() {
    let workflow = exact_json!({"settings": {"decisions": {"on_error": true}}, "tasks": [tool("a", &[]), tool("b", &["a"])]});
    let mut rig = Rig::new(workflow.clone());
    rig.fail("a");
    let decision = rig.decision(DecisionKind::OnError);
    rig.command(WorkflowCommand::Modify {
        decision,
        arguments: Some(map(exact_json!({"x": 2}))),
        value: None,
    });
    assert_eq!(rig.started[0].attempt, 2);
    rig.fail("a");
    rig.command(yes("d2".into()));
    assert_eq!((rig.names(), rig.task("a")), (vec!["b"], TaskStatus::Continued));
    let mut rig = Rig::new(workflow);
    rig.fail("a");
    rig.command(no("d1".into()));
    assert_eq!(rig.status(), WorkflowStatus::Failed);
}

#[test]
fn f5_abort_starts_nothing_and_waits_for_what_runs() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    assert_eq!(rig.command(WorkflowCommand::Abort { reason: None }), None);
    assert_eq!((rig.status(), rig.cancelled.clone()), (WorkflowStatus::Stopping, vec!["a".into()]));
    assert_eq!(rig.command(WorkflowCommand::Pause), Some("the workflow is stopping".into()));
    rig.done("a", exact_json!(1));
    assert_eq!((rig.status(), rig.names()), (WorkflowStatus::Aborted, vec![]));
    assert_eq!(rig.command(WorkflowCommand::Continue), Some("the workflow has ended".into()));
}

#[test]
fn f5_a_command_counts_once() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    for _ in 0..2 {
        rig.give(InputKind::Command {
            id: "same".into(),
            by: "me".into(),
            command: WorkflowCommand::Pause,
        });
    }
    assert_eq!(rig.acks.len(), 2);
    assert!(rig.acks.iter().all(|ack| ack.refused.is_none()));
    let paused = rig.events.iter().filter(|event| **event == WorkflowEventKind::WorkflowPaused);
    assert_eq!(paused.count(), 1);
}

#[test]
fn f5_pause_lets_what_runs_end() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    rig.command(WorkflowCommand::Pause);
    rig.done("a", exact_json!(1));
    assert_eq!((rig.names().len(), rig.status()), (0, WorkflowStatus::Paused));
    assert_eq!(rig.command(WorkflowCommand::Pause), Some("the workflow is paused".into()));
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.names(), ["b"]);
}

#[test]
fn f5_tasks_are_injected() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    let task = |value: JsonValue| belljar_contract::json_value::from_value::<Task>(value).unwrap();
    let inject = |value: JsonValue| WorkflowCommand::InjectTasks { tasks: vec![task(value)] };
    assert_eq!(rig.command(inject(tool("a", &[]))), Some("a task a exists already".into()));
    let refused = rig.command(inject(tool("b", &["x"]))).unwrap();
    assert_eq!(refused, "task b, depends_on: there is no task x (did you mean a or b?)");
    assert_eq!(rig.command(inject(tool("b", &["a"]))), None);
    assert_eq!(rig.machine.dag().tasks.len(), 2);
    rig.done("a", exact_json!(1));
    assert_eq!(rig.names(), ["b"]);
}

#[test]
fn f5_what_has_not_begun_is_replanned_three_times() {
    let mut rig =
        Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"]), tool("c", &["b"])]}));
    for round in 0..4 {
        let name = format!("n{round}");
        let tasks = vec![belljar_contract::json_value::from_value(tool(&name, &["a"])).unwrap()];
        let refused = rig.command(WorkflowCommand::Replan { tasks, reason: None });
        assert_eq!(refused.is_some(), round == 3, "{refused:?}");
    }
    let names: Vec<String> = rig.machine.dag().tasks.into_iter().map(|task| task.id).collect();
    assert_eq!(names, ["a", "n2"]);
    rig.done("a", exact_json!(1));
    rig.done("n2", exact_json!(2));
    assert_eq!(rig.output(), exact_json!({"n2": 2}));
}

#[test]
fn f5_a_task_is_skipped_wherever_it_is() {
    let mut rig =
        Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"]), tool("c", &["b"])]}));
    let skip = |task: &str| WorkflowCommand::Skip { task: task.into() };
    assert_eq!(rig.command(skip("b")), None);
    assert_eq!(rig.command(skip("b")), Some("task b has ended".into()));
    assert_eq!(rig.command(skip("bb")), Some("there is no task bb (did you mean b?)".into()));
    assert_eq!(rig.command(skip("a")), None);
    assert_eq!(rig.cancelled, ["a"]);
    rig.fail("a");
    assert_eq!((rig.task("a"), rig.names()), (TaskStatus::Skipped, vec!["c"]));
}

#[test]
fn f5_arguments_change_until_a_task_begins() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    let modify = |task: &str| WorkflowCommand::ModifyArgs {
        task: task.into(),
        arguments: map(exact_json!({"k": "{{ results.a }}"})),
    };
    assert_eq!(rig.command(modify("a")), Some("task a has begun".into()));
    assert_eq!(rig.command(modify("b")), None);
    rig.done("a", exact_json!(8));
    let crate::TaskWork::McpTool(call) = &rig.started[0].work else { panic!("tool") };
    assert_eq!(call.arguments["k"], exact_json!(8));
}

fn speculative() -> JsonValue {
    exact_json!({"tasks": [
        {"id": "ok", "type": "approval", "message": "?"},
        {"id": "look", "type": "mcp_tool", "tool": "s:t", "depends_on": ["ok"], "speculate": true, "arguments": {"v": "{{ results.ok.value }}"}}
    ]})
}

#[test]
fn f7_what_ran_ahead_is_adopted() {
    let mut rig = Rig::new(speculative());
    assert!(rig.started[0].speculative);
    rig.done("look", exact_json!(5));
    assert_eq!(rig.status(), WorkflowStatus::Running);
    assert!(rig.machine.results().is_empty());
    rig.command(yes("d1".into()));
    assert_eq!(rig.output(), exact_json!({"look": 5}));

    // Still under way when the answer comes: it simply goes on.
    let mut rig = Rig::new(speculative());
    rig.command(yes("d1".into()));
    assert_eq!(rig.started.len(), 1);
    rig.done("look", exact_json!(6));
    assert_eq!(rig.output(), exact_json!({"look": 6}));
}

#[test]
fn f7_what_ran_ahead_in_vain_leaves_no_trace() {
    let mut rig = Rig::new(speculative());
    rig.command(WorkflowCommand::Approve {
        decision: "d1".into(),
        value: Some(exact_json!("other")),
    });
    assert_eq!(rig.cancelled, ["look"]);
    let attempts: Vec<u32> = rig.started.iter().map(|start| start.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    rig.fail("look");
    rig.done("look", exact_json!(7));
    assert_eq!(rig.output(), exact_json!({"look": 7}));

    let mut rig = Rig::new(speculative());
    rig.command(no("d1".into()));
    assert_eq!(
        (rig.status(), rig.cancelled.clone()),
        (WorkflowStatus::Stopping, vec!["look".into()])
    );
    rig.done("look", exact_json!(1));
    assert_eq!(rig.status(), WorkflowStatus::Failed);
    assert!(rig.machine.results().get("look").is_none_or(JsonValue::is_null));
}

#[test]
fn f3_what_is_in_doubt_is_resolved() {
    let doubtful = || {
        let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
        rig.resume(|_| crate::Repeatability::Unknown);
        assert_eq!(rig.task("a"), TaskStatus::InDoubt);
        rig
    };
    let resolve = |how| WorkflowCommand::Resolve { task: "a".into(), how };
    let mut rig = doubtful();
    let refused = rig.command(yes("d1".into())).unwrap();
    assert_eq!(refused, "a is in doubt: resolve it with retry, use or fail");
    assert_eq!(rig.command(resolve(DoubtResolution::Retry)), None);
    assert_eq!((rig.started[0].attempt, rig.started[0].again), (2, true));
    let mut rig = doubtful();
    rig.command(resolve(DoubtResolution::Use { value: exact_json!(4) }));
    assert_eq!(rig.output(), exact_json!({"a": 4}));
    let mut rig = doubtful();
    rig.command(resolve(DoubtResolution::Fail { reason: None }));
    assert_eq!(rig.status(), WorkflowStatus::Failed);
    assert!(rig.command(resolve(DoubtResolution::Retry)).is_some());
}

#[test]
fn f3_who_resolves_running_code_is_sent_to_the_approvals() {
    let code =
        exact_json!({"id": "c", "type": "code_execution", "language": "python", "code": "1"});
    let mut rig = Rig::new(exact_json!({"tasks": [code, tool("t", &[])]}));
    let resolve =
        |task: &str| WorkflowCommand::Resolve { task: task.into(), how: DoubtResolution::Retry };
    let told =
        "task c is not in doubt; a call inside its code is answered with `belljar approvals`";
    assert_eq!(rig.command(resolve("c")).as_deref(), Some(told));
    assert_eq!(rig.command(resolve("t")).as_deref(), Some("task t is not in doubt"));
    rig.done("c", exact_json!(1));
    assert_eq!(rig.command(resolve("c")).as_deref(), Some("task c is not in doubt"));
}
