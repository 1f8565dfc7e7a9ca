//! Commands that an agent may not send, each with a person who may.

use super::*;
use crate::{DoubtResolution, Repeatability};

const AGENTS: [&str; 2] = ["agent", "agent:claude"];

/// Refused from agents, then accepted from a person.
fn only_a_person(rig: &mut Rig, command: &WorkflowCommand, why: &str) {
    for by in AGENTS {
        let refused = rig.command_by(by, command.clone()).expect("refused");
        assert!(refused.contains(why), "{refused}");
    }
    // A sender with this name is a person.
    assert_eq!(rig.command_by("agentina", command.clone()), None, "{command:?}");
}

/// The same of a rollback; a copy takes the person's.
fn only_a_person_goes_back(rig: &Rig, base: &Machine, why: &str) -> Rig {
    let copy = || Rig {
        machine: rig.machine.clone(),
        now: rig.now,
        started: rig.started.clone(),
        cancelled: Vec::new(),
        events: Vec::new(),
        acks: Vec::new(),
        finish: None,
        commands: rig.commands,
    };
    for by in AGENTS {
        let refused = copy().roll_back_by(by, base.taken(), base).expect("refused");
        assert!(refused.contains(why), "{refused}");
    }
    let mut rig = copy();
    assert_eq!(rig.roll_back_by("me", base.taken(), base), None);
    rig
}

fn asking() -> JsonValue {
    exact_json!({"tasks": [
        tool("a", &[]), tool("b", &["a"]),
        {"id": "ok", "type": "approval", "message": "?", "depends_on": ["b"]},
        tool("deploy", &["ok"]), tool("aside", &["b"]), tool("last", &["aside"])
    ]})
}

/// The workflow with its approval open, and what it was after each input.
fn at_the_question() -> (Rig, Machine, Machine) {
    let mut rig = Rig::new(asking());
    rig.done("a", exact_json!(1));
    let first = rig.machine.clone();
    rig.done("b", exact_json!(1));
    let asked = rig.machine.clone();
    (rig, first, asked)
}

fn task(value: JsonValue) -> Task {
    belljar_contract::json_value::from_value(value).unwrap()
}

#[test]
fn f5_a_persons_decision_is_answered_by_a_person() {
    let decision = || "d1".to_owned();
    for command in [
        WorkflowCommand::Approve { decision: decision(), value: None },
        WorkflowCommand::Reject { decision: decision(), reason: None },
        WorkflowCommand::Modify {
            decision: decision(),
            arguments: None,
            value: Some(exact_json!(1)),
        },
    ] {
        only_a_person(&mut at_the_question().0, &command, "only a person may answer decision");
    }
    // One that is an agent's, an agent answers.
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "ok", "type": "approval", "message": "?", "by": "agent"}
    ]}));
    let yes = WorkflowCommand::Approve { decision: decision(), value: None };
    assert_eq!(rig.command_by("agent", yes), None);
}

#[test]
fn f5_what_is_asked_about_does_not_change_meanwhile() {
    let commands = [
        WorkflowCommand::InjectTasks { tasks: vec![task(tool("c", &[]))] },
        WorkflowCommand::Skip { task: "deploy".into() },
        WorkflowCommand::ModifyArgs {
            task: "deploy".into(),
            arguments: map(exact_json!({"x": 1})),
        },
        WorkflowCommand::Replan { tasks: vec![task(tool("c", &[]))], reason: None },
    ];
    for command in commands {
        let (mut rig, ..) = at_the_question();
        only_a_person(&mut rig, &command, "an agent may change nothing while a person is asked");
        // Before anybody is asked, agents may do what drops no question.
        let mut rig = Rig::new(asking());
        let refused = rig.command_by("agent", command.clone());
        assert_eq!(
            refused.is_some(),
            matches!(command, WorkflowCommand::Replan { .. }),
            "{refused:?}"
        );
    }
}

/// Values that come with an answer go into the state, which the question may show.
#[test]
fn f5_agents_answer_with_nothing_more_while_a_person_is_asked() {
    let workflow = |asks: bool| {
        let mut tasks = vec![tool("a", &[])];
        tasks.extend(asks.then(
            || exact_json!({"id": "ok", "type": "approval", "message": "{{ state.v }}", "by": "human"}),
        ));
        exact_json!({"state": {"v": 1}, "tasks": tasks,
            "settings": {"lenient": true, "decided_by": "agent", "decisions": {"before": ["a"]}}})
    };
    let of = |rig: &Rig| rig.decision(DecisionKind::Before);
    for value in [exact_json!({"v": 2}), exact_json!(1)] {
        let approve =
            |rig: &Rig| WorkflowCommand::Approve { decision: of(rig), value: Some(value.clone()) };
        let modify = |rig: &Rig| WorkflowCommand::Modify {
            decision: of(rig),
            arguments: None,
            value: Some(value.clone()),
        };
        for command in [&approve as &dyn Fn(&Rig) -> WorkflowCommand, &modify] {
            let mut rig = Rig::new(workflow(true));
            let command_there = command(&rig);
            let refused = rig.command_by("agent", command_there).unwrap();
            assert!(
                refused.contains("an agent may change nothing while a person is asked"),
                "{refused}"
            );
            // With nobody else asked it is for the decision to say whether it takes a value.
            let mut rig = Rig::new(workflow(false));
            let command_there = command(&rig);
            let said = rig.command_by("agent", command_there);
            assert!(said.is_none_or(|said| !said.contains("may change nothing")));
        }
    }
    let mut rig = Rig::new(workflow(true));
    let plain = WorkflowCommand::Approve { decision: of(&rig), value: None };
    assert_eq!(rig.command_by("agent", plain), None);
}

#[test]
fn f5_agents_leave_out_no_question() {
    let inner = exact_json!({"id": "sub", "type": "workflow", "depends_on": ["a"], "workflow": {
        "tasks": [{"id": "ok", "type": "approval", "message": "?"}]
    }});
    let workflow = exact_json!({
        "settings": {"decided_by": "human", "decisions": {"before": ["b"], "after": ["c"]}},
        "tasks": [
            tool("a", &[]), tool("b", &["a"]), tool("c", &["a"]), tool("d", &["a"]),
            {"id": "ok", "type": "approval", "message": "?", "depends_on": ["a"]}, inner
        ]
    });
    for name in ["b", "c", "ok", "sub"] {
        let skip = WorkflowCommand::Skip { task: name.into() };
        only_a_person(&mut Rig::new(workflow.clone()), &skip, "only a person may drop");
    }
    let skip = WorkflowCommand::Skip { task: "d".into() };
    assert_eq!(Rig::new(workflow.clone()).command_by("agent", skip), None);
    let replan = WorkflowCommand::Replan { tasks: Vec::new(), reason: None };
    only_a_person(&mut Rig::new(workflow), &replan, "only a person may drop");
}

#[test]
fn f5_a_persons_pause_is_lifted_by_a_person() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
    assert_eq!(rig.command_by("agent", WorkflowCommand::Pause), None);
    assert_eq!(rig.command_by("agent", WorkflowCommand::Continue), None);
    assert_eq!(rig.command_by("agent", WorkflowCommand::Pause), None);
    // A person may make an agent's pause his own.
    assert_eq!(rig.command(WorkflowCommand::Pause), None);
    only_a_person(&mut rig, &WorkflowCommand::Continue, "only a person may continue it");
    assert_eq!(rig.status(), WorkflowStatus::Running);

    // Nor is it lifted by going back.
    let base = rig.machine.clone();
    rig.done("a", exact_json!(1));
    rig.command(WorkflowCommand::Pause);
    assert_eq!(rig.roll_back_by("agent", base.taken(), &base), None);
    rig.fail("b");
    only_a_person(&mut rig, &WorkflowCommand::Continue, "only a person may continue it");
    // An agent's own rollback is continued by an agent.
    rig.done("a", exact_json!(1));
    assert_eq!(rig.roll_back_by("agent", base.taken(), &base), None);
    rig.fail("b");
    assert_eq!(rig.command_by("agent", WorkflowCommand::Continue), None);
}

#[test]
fn f6_agents_go_around_no_question_that_is_open() {
    let (rig, first, _) = at_the_question();
    only_a_person_goes_back(&rig, &first, "a person is asked about ok");
}

#[test]
fn f6_agents_go_back_behind_no_answer_and_persons_are_asked_again() {
    let (mut rig, first, asked) = at_the_question();
    rig.command(WorkflowCommand::Approve { decision: "d1".into(), value: None });
    for base in [&first, &asked] {
        let mut back = only_a_person_goes_back(&rig, base, "a person has decided since");
        for name in ["deploy", "aside"] {
            back.fail(name);
        }
        only_a_person(&mut back, &WorkflowCommand::Continue, "only a person may continue it");
        if base.taken() == first.taken() {
            back.done("b", exact_json!(1));
        }
        let again = back.decision(DecisionKind::Approval);
        assert!(!back.names().contains(&"deploy"));
        let yes = WorkflowCommand::Approve { decision: again, value: None };
        only_a_person(&mut back, &yes, "only a person may answer decision");
        assert!(back.names().contains(&"deploy"));
    }
}

#[test]
fn f6_one_answer_is_used_once() {
    let (mut rig, ..) = at_the_question();
    rig.command(WorkflowCommand::Approve { decision: "d1".into(), value: None });
    let approved = rig.machine.clone();
    rig.done("aside", exact_json!(1));
    // Under way counts: it may have happened.
    only_a_person_goes_back(&rig, &approved, "deploy was begun because a person agreed");
    rig.done("deploy", exact_json!(1));
    let deployed = rig.machine.clone();
    only_a_person_goes_back(&rig, &approved, "deploy was begun because a person agreed");
    rig.done("last", exact_json!(1));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
    only_a_person_goes_back(&rig, &approved, "deploy was begun because a person agreed");
    // The approved task had ended: nothing of it is done again.
    assert_eq!(rig.roll_back_by("agent", deployed.taken(), &deployed), None);
}

#[test]
fn f6_an_answer_inside_a_container_is_used_once() {
    let workflow = exact_json!({"tasks": [
        {"id": "sub", "type": "workflow", "workflow": {"tasks": [
            {"id": "ok", "type": "approval", "message": "?"}, tool("in", &["ok"])
        ]}},
        tool("after", &["sub"]), tool("aside", &[])
    ]});
    let mut rig = Rig::new(workflow);
    rig.command(WorkflowCommand::Approve { decision: "d1".into(), value: None });
    let approved = rig.machine.clone();
    rig.done("sub/in", exact_json!(1));
    only_a_person_goes_back(&rig, &approved, "sub/in was begun");
    let inside = rig.machine.clone();
    rig.done("after", exact_json!(1));
    only_a_person_goes_back(&rig, &inside, "after was begun");
    let after = rig.machine.clone();
    rig.done("aside", exact_json!(1));
    assert_eq!(rig.roll_back_by("agent", after.taken(), &after), None);
}

#[test]
fn f6_a_decision_before_a_task_is_used_once() {
    let mut rig = Rig::new(exact_json!({
        "settings": {"decided_by": "human", "decisions": {"before": ["b"]}},
        "tasks": [tool("a", &[]), tool("b", &[])]
    }));
    rig.command(WorkflowCommand::Approve { decision: "d1".into(), value: None });
    let base = rig.machine.clone();
    rig.done("a", exact_json!(1));
    only_a_person_goes_back(&rig, &base, "b was begun");
}

#[test]
fn f6_agents_resolve_no_doubt_and_do_not_go_around_it() {
    let doubtful = || {
        let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[]), tool("b", &["a"])]}));
        rig.done("a", exact_json!(1));
        let base = rig.machine.clone();
        rig.resume(|_| Repeatability::Unknown);
        (rig, base)
    };
    for how in [
        DoubtResolution::Retry,
        DoubtResolution::Use { value: exact_json!(1) },
        DoubtResolution::Fail { reason: None },
    ] {
        let command = WorkflowCommand::Resolve { task: "b".into(), how };
        only_a_person(&mut doubtful().0, &command, "only a person may say whether");
    }
    let (mut rig, base) = doubtful();
    only_a_person_goes_back(&rig, &base, "a person is asked about b");
    // Nor by ending the workflow first.
    assert_eq!(rig.command_by("agent", WorkflowCommand::Abort { reason: None }), None);
    assert_eq!(rig.status(), WorkflowStatus::Aborted);
    only_a_person_goes_back(&rig, &base, "whether b took effect is unknown");
}

#[test]
fn f6_a_question_that_is_opened_again_is_still_a_persons() {
    let (mut rig, _, asked) = at_the_question();
    rig.command_by("agent", WorkflowCommand::Abort { reason: None });
    rig.fail("aside");
    assert_eq!(rig.status(), WorkflowStatus::Aborted);
    assert_eq!(rig.roll_back_by("agent", asked.taken(), &asked), None);
    let decision = rig.decision(DecisionKind::Approval);
    only_a_person(
        &mut rig,
        &WorkflowCommand::Approve { decision, value: None },
        "only a person may answer decision",
    );
}
