//! After a crash, and back to a checkpoint.

use super::*;
use crate::DoubtResolution;
use crate::effect::{NotUndone, Repeatability, WhyNot};

#[test]
fn f3_after_a_crash_each_kind_is_taken_up_as_it_may_be() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        tool("plain", &[]), tool("readonly", &[]), tool("unsent", &[]),
        {"id": "declared", "type": "mcp_tool", "tool": "s:t", "idempotent": true},
        {"id": "code", "type": "code_execution", "language": "python", "code": "1"}
    ]}));
    let keys: Vec<String> = rig.started.iter().map(|start| start.key.clone()).collect();
    rig.resume(|instance| match instance {
        "readonly" => Repeatability::Harmless,
        "unsent" => Repeatability::NotBegun,
        _ => Repeatability::Unknown,
    });
    let again: Vec<(&str, bool, u32)> = rig
        .started
        .iter()
        .map(|start| (start.instance.as_str(), start.again, start.attempt))
        .collect();
    assert_eq!(
        again,
        [("readonly", true, 1), ("unsent", false, 1), ("declared", true, 1), ("code", true, 1)]
    );
    assert!(rig.started.iter().all(|start| keys.contains(&start.key)));
    assert_eq!(rig.task("plain"), TaskStatus::InDoubt);
    assert!(
        rig.events.contains(&WorkflowEventKind::TaskInDoubt { task: "plain".into(), attempt: 1 })
    );
}

#[test]
fn f3_timers_and_questions_are_given_anew() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "w", "type": "wait", "wait_ms": 5},
        {"id": "ok", "type": "approval", "message": "?", "decide_within_ms": 9}
    ]}));
    let text = serde_json::to_string(&rig.machine).unwrap();
    let mut machine: Machine = belljar_contract::json_value::from_str(&text).unwrap();
    let effects = machine
        .apply(MachineInput { now_ms: 1, what: InputKind::Resumed { open: vec![] } })
        .unwrap();
    let timers = effects.iter().filter(|effect| matches!(effect, Effect::Timer { .. })).count();
    let asked = effects.iter().filter(|effect| matches!(effect, Effect::Ask(_))).count();
    assert_eq!((timers, asked), (2, 1));
    rig.started.clear();
}

#[test]
fn f3_what_was_being_stopped_stays_stopped() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &[])]}));
    rig.command(WorkflowCommand::Abort { reason: None });
    rig.resume(|_| Repeatability::Unknown);
    assert_eq!((rig.status(), rig.names().len()), (WorkflowStatus::Aborted, 0));
}

/// Older versions went on with it while the workflow was paused, and journals of theirs say so.
#[test]
fn f3_what_has_ended_though_it_was_parked_is_not_in_doubt() {
    let code =
        exact_json!({"id": "a", "type": "code_execution", "language": "bash", "code": "true"});
    let mut rig = Rig::new(exact_json!({"tasks": [code, tool("b", &["a"])]}));
    let base = rig.machine.clone();
    rig.command(WorkflowCommand::Pause);
    rig.resume(|_| Repeatability::Harmless);
    assert_eq!(rig.names().len(), 0);
    let outcome = TaskOutcome::done(exact_json!(1));
    rig.give(InputKind::Ended { instance: "a".into(), attempt: 1, outcome });
    rig.roll_back(base.taken(), &base);
    let report = rig.events.iter().find_map(|event| {
        let WorkflowEventKind::RolledBack { report } = event else { return None };
        Some(report)
    });
    let doubted = |not: &&NotUndone| not.why == WhyNot::InDoubt;
    assert_eq!(report.unwrap().not_undone.iter().find(doubted), None);
}

#[test]
fn f5_what_a_pause_keeps_from_going_on_can_be_stopped() {
    let paused = || {
        let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
        let base = rig.machine.clone();
        rig.command(WorkflowCommand::Pause);
        rig.resume(|_| Repeatability::Harmless);
        assert_eq!((rig.names().len(), rig.machine.running().len()), (0, 0));
        (rig, base)
    };
    let (mut rig, _) = paused();
    rig.command(WorkflowCommand::Abort { reason: None });
    assert_eq!(rig.status(), WorkflowStatus::Aborted);
    let (mut rig, _) = paused();
    assert_eq!(rig.command(WorkflowCommand::Skip { task: "a".into() }), None);
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.names(), ["b"]);
    let (mut rig, base) = paused();
    rig.roll_back(base.taken(), &base);
    assert_eq!((rig.status(), rig.machine.branch()), (WorkflowStatus::Paused, 1));
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.names(), ["a"]);
    let (mut rig, _) = paused();
    rig.resume(|_| Repeatability::NotBegun);
    rig.command(WorkflowCommand::Continue);
    assert_eq!((rig.names(), rig.started[0].again), (vec!["a"], true));
}

fn undoable() -> JsonValue {
    let task = |id: &str, deps: &[&str]| {
        exact_json!({"id": id, "type": "mcp_tool", "tool": "s:make", "depends_on": deps, "arguments": {"n": id},
            "output": {"log": ["{{ result }}"]},
            "compensate": {"tool": {"tool": "s:unmake", "arguments": {"was": "{{ result }}", "n": "{{ args.n }}"}}}})
    };
    exact_json!({"reducers": {"log": "append"}, "tasks": [task("a", &[]), task("b", &["a"]), tool("c", &["b"]), task("d", &["c"]), task("e", &["d"])]})
}

#[test]
fn f6_a_rollback_undoes_in_reverse_and_reports_the_rest() {
    let mut rig = Rig::new(undoable());
    rig.done("a", exact_json!(1));
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.done("b", exact_json!(2));
    rig.done("c", exact_json!(3));
    rig.done("d", exact_json!(4));
    rig.done("e", exact_json!(5));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
    let told = rig.machine.last_event();

    rig.roll_back(to, &base);
    assert_eq!(rig.acks.last().unwrap().refused, None);
    assert_eq!(rig.names(), ["e~undo"]);
    assert_eq!(rig.command(WorkflowCommand::Pause), Some("the workflow is rolling back".into()));
    rig.done("e~undo", exact_json!(null));
    let crate::TaskWork::McpTool(call) = &rig.started[0].work else { panic!("tool") };
    assert_eq!(
        (call.tool.as_str(), &call.arguments),
        ("s:unmake", &map(exact_json!({"was": 4, "n": "d"})))
    );
    rig.fail("d~undo");
    rig.done("b~undo", exact_json!(null));

    let report = rig.machine.last_rollback().unwrap().clone();
    assert_eq!((report.to, report.branch, report.undone), (to, 1, vec!["e".into(), "b".into()]));
    let why: Vec<(String, WhyNot)> = report
        .not_undone
        .into_iter()
        .map(|NotUndone { instance, why, .. }| (instance, why))
        .collect();
    assert_eq!(why, [("d".into(), WhyNot::Failed), ("c".into(), WhyNot::NoCompensation)]);
    assert_eq!((rig.status(), rig.machine.branch()), (WorkflowStatus::Paused, 1));
    assert_eq!(rig.machine.state(), base.state());
    assert_eq!(rig.machine.results(), base.results());
    assert!(rig.machine.last_event() > told);

    // A rollback to an undone checkpoint is refused.
    rig.roll_back(to + 1, &{
        let mut other = base.clone();
        other.taken = to + 1;
        other
    });
    let reason = format!("checkpoint {} is on a branch that was rolled back", to + 1);
    assert_eq!(rig.acks.last().unwrap().refused, Some(reason));

    // It goes on from there, under keys of its own.
    rig.finish = None;
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.names(), ["b"]);
    rig.run_out(|_| TaskOutcome::done(exact_json!(0)));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
}

#[test]
fn f6_what_runs_is_stopped_first_and_counts() {
    let mut rig = Rig::new(undoable());
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.done("a", exact_json!(1));
    rig.roll_back(to, &base);
    assert_eq!(rig.cancelled, ["b"]);
    // It could not be stopped: so it is undone.
    rig.done("b", exact_json!(2));
    rig.done("b~undo", exact_json!(null));
    rig.done("a~undo", exact_json!(null));
    assert_eq!(rig.machine.last_rollback().unwrap().undone, ["b", "a"]);
    // Tasks that ran at the checkpoint run again.
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.names(), ["a"]);
}

#[test]
fn f6_a_crash_while_going_back() {
    let mut rig = Rig::new(undoable());
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.done("a", exact_json!(1));
    rig.done("b", exact_json!(1));
    rig.roll_back(to, &base);
    rig.answer(
        "c",
        TaskOutcome::failed(TaskFailure {
            may_have_acted: true,
            ..TaskFailure::new("cancelled", "")
        }),
    );
    rig.resume(|_| Repeatability::Unknown);
    rig.done("a~undo", exact_json!(null));
    let report = rig.machine.last_rollback().unwrap();
    let why: Vec<(&str, WhyNot)> =
        report.not_undone.iter().map(|left| (left.instance.as_str(), left.why)).collect();
    assert_eq!(why, [("c", WhyNot::InDoubt), ("b", WhyNot::InDoubt)]);
}

#[test]
fn f6_decisions_and_timers_come_back_under_new_numbers() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "ok", "type": "approval", "message": "?", "decide_within_ms": 100}, tool("a", &["ok"])
    ]}));
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.command(WorkflowCommand::Approve { decision: "d1".into(), value: None });
    rig.now += 1000;
    rig.done("a", exact_json!(1));
    rig.roll_back(to, &base);
    let decision = rig.machine.decisions().remove(0);
    assert_ne!(decision.id, "d1");
    assert_eq!(decision.deadline_ms, Some(rig.now + 100));
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.command(WorkflowCommand::Approve { decision: decision.id, value: None }), None);
    assert_eq!(rig.names(), ["a"]);
}

#[test]
fn f6_a_wrong_base_is_refused() {
    let mut rig = Rig::new(undoable());
    let base = Box::new(rig.machine.clone());
    let what = InputKind::RollBack { id: "r".into(), by: "me".into(), to: 7, base };
    assert_eq!(
        rig.machine.apply(MachineInput { now_ms: 1, what }),
        Err(InputRefusal::WrongBase { to: 7 })
    );
}

#[test]
fn f3_what_its_performer_doubts_is_asked_about() {
    let doubt = || {
        let failure =
            TaskFailure { in_doubt: true, may_have_acted: true, ..TaskFailure::new("lost", "") };
        TaskOutcome::failed(failure)
    };
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    rig.answer("a", doubt());
    assert_eq!((rig.task("a"), rig.names().len()), (TaskStatus::InDoubt, 0));
    let retry = WorkflowCommand::Resolve { task: "a".into(), how: DoubtResolution::Retry };
    assert_eq!(rig.command(retry), None);
    rig.answer("a", doubt());
    let how = DoubtResolution::Use { value: exact_json!(7) };
    assert_eq!(rig.command(WorkflowCommand::Resolve { task: "a".into(), how }), None);
    assert_eq!((rig.task("a"), rig.names()), (TaskStatus::Completed, vec!["b"]));
    // One that does no harm twice is simply a failure.
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "a", "type": "mcp_tool", "tool": "s:t", "idempotent": true}
    ]}));
    rig.answer("a", doubt());
    assert_eq!(rig.status(), WorkflowStatus::Failed);
}

/// a → b → c is done and rolled back to where only a was: b is started in that checkpoint's input.
fn back_before_b() -> Rig {
    let mut rig =
        Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"]), tool("c", &["b"])]}));
    rig.done("a", exact_json!(1));
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.done("b", exact_json!(2));
    rig.done("c", exact_json!(3));
    rig.roll_back(to, &base);
    rig.finish = None;
    assert_eq!((rig.status(), rig.task("b")), (WorkflowStatus::Paused, TaskStatus::Ready));
    rig
}

#[test]
fn bug_3_what_is_ready_after_a_rollback_is_replanned_away() {
    let mut rig = back_before_b();
    let tasks = vec![belljar_contract::json_value::from_value(tool("z", &["a"])).unwrap()];
    assert_eq!(rig.command(WorkflowCommand::Replan { tasks, reason: None }), None);
    rig.command(WorkflowCommand::Continue);
    assert_eq!(rig.names(), ["z"]);
    rig.done("z", exact_json!(9));
    assert_eq!((rig.output(), rig.status()), (exact_json!({"z": 9}), WorkflowStatus::Completed));
}

#[test]
fn bug_3_arguments_of_what_is_ready_after_a_rollback_change() {
    let mut rig = back_before_b();
    let arguments = map(exact_json!({"k": 7}));
    assert_eq!(rig.command(WorkflowCommand::ModifyArgs { task: "b".into(), arguments }), None);
    rig.command(WorkflowCommand::Continue);
    let crate::TaskWork::McpTool(call) = &rig.started[0].work else { panic!("tool") };
    assert_eq!((rig.started[0].attempt, &call.arguments["k"]), (1, &exact_json!(7)));
}

#[test]
fn bug_3_an_attempt_before_the_checkpoint_counts_after_a_rollback() {
    let mut task = tool("b", &["a"]);
    task["retry"] = exact_json!({"attempts": 2, "even_if_not_idempotent": true});
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), task, tool("c", &[])]}));
    rig.done("a", exact_json!(1));
    rig.fail("b");
    rig.tick();
    assert_eq!(rig.started.back().unwrap().attempt, 2);
    rig.done("c", exact_json!(3));
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.done("b", exact_json!(2));
    rig.roll_back(to, &base);
    let arguments = map(exact_json!({"k": 7}));
    let refused = rig.command(WorkflowCommand::ModifyArgs { task: "b".into(), arguments });
    assert_eq!(refused, Some("task b has begun".into()));
}

#[test]
fn bug_3_a_fork_that_is_paused_takes_other_arguments_for_what_it_begins() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    rig.done("a", exact_json!(1));
    rig.command(WorkflowCommand::Pause);
    rig.resume(|_| Repeatability::NotBegun);
    let arguments = map(exact_json!({"k": 7}));
    assert_eq!(rig.command(WorkflowCommand::ModifyArgs { task: "b".into(), arguments }), None);
    assert!(rig.names().is_empty());
    rig.command(WorkflowCommand::Continue);
    let crate::TaskWork::McpTool(call) = &rig.started[0].work else { panic!("tool") };
    assert_eq!((rig.started[0].again, &call.arguments["k"]), (false, &exact_json!(7)));
}

/// A task that used a session, and what is to be done about that.
fn in_session(value: JsonValue, undo: crate::SessionUndo) -> TaskOutcome {
    TaskOutcome { read_only: true, undo: Some(Box::new(undo)), ..TaskOutcome::done(value) }
}

#[test]
fn bug_1_a_rollback_restores_sandboxes_last_first_and_names_those_it_cannot() {
    let run = |id: &str, deps: &[&str]| {
        exact_json!({"id": id, "type": "sandbox", "do": "execute", "sandbox_id": "s1", "code": "x += 1",
            "depends_on": deps})
    };
    let before = |checkpoint: &str| {
        let (sandbox_id, checkpoint) = ("s1".into(), checkpoint.into());
        crate::SessionUndo::By(crate::TaskWork::RestoreSandbox { sandbox_id, checkpoint })
    };
    let mut rig = Rig::new(
        exact_json!({"tasks": [run("a", &[]), run("b", &["a"]), run("c", &["b"]), run("d", &["c"])]}),
    );
    rig.answer("a", in_session(exact_json!(1), before("p1")));
    let (to, base) = (rig.machine.taken(), rig.machine.clone());
    rig.answer("b", in_session(exact_json!(2), before("p2")));
    let gone = TaskFailure::new("sandbox.destroyed", "sandbox s1 was destroyed");
    rig.answer("c", in_session(exact_json!(3), crate::SessionUndo::Not(gone.clone())));
    rig.answer("d", in_session(exact_json!(4), before("p4")));
    rig.roll_back(to, &base);
    let crate::TaskWork::RestoreSandbox { checkpoint, .. } = &rig.started[0].work else { panic!() };
    assert_eq!((rig.names(), checkpoint.as_str()), (vec!["d~undo"], "p4"));
    rig.fail("d~undo");
    assert_eq!(rig.names(), ["b~undo"]);
    rig.done("b~undo", exact_json!(null));
    let report = rig.machine.last_rollback().unwrap();
    assert_eq!(report.undone, ["b"]);
    let left: Vec<_> = report.not_undone.iter().map(|left| (&*left.instance, left.why)).collect();
    assert_eq!(left, [("d", WhyNot::Failed), ("c", WhyNot::Failed)]);
    assert_eq!(report.not_undone[1].failure, Some(gone));
}

#[test]
fn a9_what_code_puts_into_state_is_merged_into_the_context() {
    let code =
        exact_json!({"id": "a", "type": "code_execution", "language": "python", "code": "1"});
    let output = exact_json!("{{ state.context }}");
    let mut rig = Rig::new(exact_json!({"tasks": [code], "output": output}));
    let state = map(exact_json!({"found": [1, 2]}));
    rig.answer("a", TaskOutcome { state, ..TaskOutcome::done(exact_json!(null)) });
    assert_eq!(rig.output(), exact_json!({"found": [1, 2]}));
    let mut rig = Rig::new(exact_json!({"state": {"context": {"kept": 1}}, "tasks": [code]}));
    let state = map(exact_json!({"found": 1}));
    rig.answer("a", TaskOutcome { state, ..TaskOutcome::done(exact_json!(null)) });
    assert_eq!(rig.machine.state()["context"], exact_json!({"kept": 1, "found": 1}));
}
