//! Order, attempts, errors, state.

use super::*;

#[test]
fn f1_tasks_start_when_their_own_dependencies_have_ended() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        tool("a", &[]), tool("slow", &[]), tool("b", &["a"]), tool("c", &["b", "slow"])
    ]}));
    assert_eq!(rig.names(), ["a", "slow"]);
    rig.done("a", exact_json!(1));
    assert_eq!(rig.names(), ["slow", "b"]);
    rig.done("b", exact_json!(2));
    assert_eq!(rig.names(), ["slow"]);
    rig.done("slow", exact_json!(3));
    rig.done("c", exact_json!({"x": 4}));
    assert_eq!(rig.output(), exact_json!({"c": {"x": 4}}));
    assert_eq!(rig.status(), WorkflowStatus::Completed);
}

#[test]
fn f1_concurrency_bounds_what_runs() {
    let tasks: Vec<JsonValue> = (0..5).map(|index| tool(&format!("t{index}"), &[])).collect();
    let mut rig = Rig::new(exact_json!({"settings": {"concurrency": 2}, "tasks": tasks}));
    assert_eq!(rig.names(), ["t0", "t1"]);
    rig.done("t1", exact_json!(null));
    assert_eq!(rig.names(), ["t0", "t2"]);
}

#[test]
fn f1_templates_are_resolved_and_code_sees_its_dependencies() {
    let mut rig = Rig::with(
        exact_json!({"tasks": [
            {"id": "a", "type": "mcp_tool", "tool": "s:t", "arguments": {"q": "{{ inputs.q }}", "n": "x{{ inputs.q }}"}},
            {"id": "b", "type": "code_execution", "language": "python", "code": "1 {{ not }}", "depends_on": ["a"], "context": {"v": "{{ results.a.v }}"}},
        ], "output": {"b": "{{ results.b }}", "of": "{{ tasks.a.status }}"}}),
        exact_json!({"q": 7}),
    );
    let start = rig.started[0].clone();
    assert_eq!(
        start.work,
        crate::TaskWork::McpTool(crate::ToolAction {
            tool: "s:t".into(),
            arguments: map(exact_json!({"q": 7, "n": "x7"}))
        })
    );
    assert_eq!(start.key.len(), 64);
    rig.done("a", exact_json!({"v": [1]}));
    let crate::TaskWork::CodeExecution(code) = &rig.started[0].work else { panic!("code") };
    assert_eq!(code.context, map(exact_json!({"v": [1], "deps": {"a": {"v": [1]}}})));
    rig.done("b", exact_json!(5));
    assert_eq!(rig.output(), exact_json!({"b": 5, "of": "completed"}));
}

#[test]
fn f1_a_task_left_out_by_its_condition() {
    let mut rig = Rig::with(
        exact_json!({"tasks": [
            {"id": "a", "type": "pass", "when": "inputs.go", "value": 1},
            {"id": "b", "type": "pass", "value": 2},
            {"id": "both", "type": "pass", "depends_on": ["a", "b"], "value": ["{{ results.a }}", "{{ results.b }}"]},
            {"id": "only", "type": "pass", "depends_on": ["a"], "value": 3},
            {"id": "further", "type": "pass", "depends_on": ["only"], "value": 3}
        ]}),
        exact_json!({"go": false}),
    );
    assert_eq!(rig.output(), exact_json!({"both": [null, 2], "further": null}));
    for task in ["a", "only", "further"] {
        assert_eq!(rig.task(task), TaskStatus::Skipped);
    }
    rig.started.clear();
}

#[test]
fn f1_retry_backs_off_and_only_when_it_does_no_harm() {
    let retry =
        exact_json!({"attempts": 3, "backoff": {"first_ms": 100, "factor": 3.0, "max_ms": 250}});
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "a", "type": "mcp_tool", "tool": "s:t", "idempotent": true, "retry": retry}
    ]}));
    let key = rig.started[0].key.clone();
    rig.fail("a");
    assert_eq!(rig.machine.timers()[0].1, 1100);
    rig.tick();
    assert_eq!((rig.started[0].attempt, &rig.started[0].key), (2, &key));
    rig.fail("a");
    assert_eq!(rig.machine.timers()[0].1, 1100 + 250);
    rig.tick();
    rig.fail("a");
    assert_eq!(rig.status(), WorkflowStatus::Failed);

    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "a", "type": "mcp_tool", "tool": "s:t", "retry": retry}
    ]}));
    rig.fail("a");
    assert_eq!(rig.finish.unwrap().failure.unwrap().code, "broken");
}

#[test]
fn f1_an_attempt_over_its_time_is_cancelled_and_waited_for() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "a", "type": "mcp_tool", "tool": "s:t", "timeout_ms": 50, "on_error": "continue"},
        {"id": "b", "type": "pass", "depends_on": ["a"], "value": "{{ tasks.a.error.code }}"}
    ]}));
    rig.tick();
    assert_eq!(rig.cancelled, ["a"]);
    assert_eq!(rig.status(), WorkflowStatus::Running);
    rig.answer("a", TaskOutcome::failed(TaskFailure::new("cancelled", "")));
    assert_eq!(rig.output(), exact_json!({"b": "timeout"}));
}

#[test]
fn f1_on_error() {
    let mut rig = Rig::new(exact_json!({"tasks": [
        {"id": "a", "type": "mcp_tool", "tool": "s:t", "on_error": {"fallback": {"id": "f", "type": "mcp_tool", "tool": "s:u", "arguments": {"why": "{{ error.code }}"}}}, "output": {"got": "{{ result }}"}},
        tool("b", &[]), tool("c", &["a"])
    ]}));
    rig.fail("a");
    let crate::TaskWork::McpTool(call) = &rig.take("a~fallback").work else { panic!("tool") };
    assert_eq!(call.arguments, map(exact_json!({"why": "broken"})));
    rig.give(InputKind::Ended {
        instance: "a~fallback".into(),
        attempt: 1,
        outcome: TaskOutcome::done(exact_json!(9)),
    });
    assert_eq!(rig.machine.state(), &map(exact_json!({"got": 9})));
    assert_eq!(rig.machine.results()["a"], exact_json!(9));
    // A failure stops the others, which are waited for.
    rig.fail("c");
    assert_eq!(
        (rig.status(), rig.cancelled.clone()),
        (WorkflowStatus::Stopping, vec!["b".to_owned()])
    );
    rig.done("b", exact_json!(1));
    assert_eq!(rig.status(), WorkflowStatus::Failed);
    assert_eq!(rig.finish.unwrap().failure.unwrap().details, Some(exact_json!({"task": "c"})));
}

#[test]
fn f2_state_joins_what_tasks_give() {
    let rig = Rig::new(exact_json!({
        "reducers": {"n": "sum"}, "state": {"n": 1},
        "tasks": [
            {"id": "a", "type": "pass", "value": 2, "output": {"n": "{{ result }}", "messages": "{{ [result] }}", "context": {"a": 1}}},
            {"id": "b", "type": "pass", "value": 3, "depends_on": ["a"], "output": {"n": "{{ result }}", "messages": "m", "context": {"b": "{{ state.n }}"}}}
        ], "output": "{{ state }}"
    }));
    assert_eq!(
        rig.output(),
        exact_json!({"n": 6, "messages": [2, "m"], "context": {"a": 1, "b": 3}})
    );
}

#[test]
fn f2_what_does_not_fit_the_state_fails_the_task() {
    let rig = Rig::new(exact_json!({"reducers": {"n": "sum"}, "tasks": [
        {"id": "a", "type": "pass", "value": "x", "output": {"n": "{{ result }}"}}
    ]}));
    let failure = rig.finish.unwrap().failure.unwrap();
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        ("state", "state.n sums numbers and was given a string")
    );
}

#[test]
fn f4_events_of_a_small_workflow() {
    let mut rig = Rig::new(exact_json!({"name": "n", "tasks": [
        {"id": "a", "type": "code_execution", "language": "python", "code": "1"}
    ]}));
    rig.now = 1005;
    rig.done("a", exact_json!(1));
    let names: Vec<String> = rig
        .events
        .iter()
        .map(|event| {
            belljar_contract::json_value::to_value(event).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        names,
        [
            "workflow_started",
            "task_started",
            "code_execution_started",
            "checkpoint_saved",
            "code_execution_completed",
            "task_completed",
            "workflow_ended",
            "checkpoint_saved"
        ]
    );
}

#[test]
fn the_whole_has_a_time_too() {
    let mut rig =
        Rig::new(exact_json!({"settings": {"timeout_ms": 10}, "tasks": [tool("a", &[])]}));
    rig.tick();
    assert_eq!(rig.cancelled, ["a"]);
    rig.fail("a");
    assert_eq!(rig.finish.unwrap().failure.unwrap().code, "timeout");
}

#[test]
fn f6_files_are_merged_and_conflicts_told() {
    let code = |id: &str| exact_json!({"id": id, "type": "code_execution", "language": "python", "code": "1", "files": true});
    let mut rig = Rig::new(exact_json!({"tasks": [code("a"), code("b")]}));
    let entry = |blob: &str| Some(crate::FileEntry::File { blob: blob.into(), mode: 0o644 });
    let with = |files: Vec<(&str, Option<crate::FileEntry>)>| TaskOutcome {
        files: files.into_iter().map(|(path, entry)| (path.to_owned(), entry)).collect(),
        ..TaskOutcome::done(exact_json!(null))
    };
    let seen = rig.started[1].files.unwrap();
    rig.answer("a", with(vec![("x", entry("1")), ("y", entry("2"))]));
    assert_eq!(rig.machine.files_at(seen).unwrap().len(), 0);
    rig.answer("b", with(vec![("x", entry("3")), ("z", None)]));
    assert_eq!(rig.machine.files()["x"], entry("3").unwrap());
    assert_eq!(rig.machine.files()["y"], entry("2").unwrap());
    assert!(
        rig.events.contains(&WorkflowEventKind::FilesConflict {
            task: "b".into(),
            paths: vec!["x".into()]
        })
    );
    assert!(rig.machine.files_at(seen).is_none());
}

#[test]
fn refused_inputs_change_nothing() {
    let mut rig = Rig::new(exact_json!({"tasks": [tool("a", &[])]}));
    let before = serde_json::to_string(&rig.machine).unwrap();
    let ended = |instance: &str, attempt| InputKind::Ended {
        instance: instance.into(),
        attempt,
        outcome: TaskOutcome::done(exact_json!(1)),
    };
    for what in [InputKind::Begin, ended("a", 2), ended("b", 1)] {
        assert!(rig.machine.apply(MachineInput { now_ms: 5000, what }).is_err());
    }
    assert_eq!(serde_json::to_string(&rig.machine).unwrap(), before);
}

#[test]
fn an_empty_workflow_ends_at_once() {
    assert_eq!(Rig::new(exact_json!({"tasks": []})).output(), exact_json!({}));
}

#[test]
fn f6_a_file_is_no_directory_as_well() {
    let code = |id: &str| exact_json!({"id": id, "type": "code_execution", "language": "python", "code": "1", "files": true});
    let file = || Some(crate::FileEntry::File { blob: "b".into(), mode: 0o644 });
    let directory = || Some(crate::FileEntry::Directory { mode: 0o755 });
    let with = |files: Vec<(&str, Option<crate::FileEntry>)>| TaskOutcome {
        files: files.into_iter().map(|(path, entry)| (path.to_owned(), entry)).collect(),
        ..TaskOutcome::done(exact_json!(1))
    };
    for (first, second, left, told) in [
        (vec![("a", file())], vec![("a/b", file())], vec!["a/b"], vec!["a"]),
        (
            vec![("a/b", file()), ("a/c/d", file()), ("a-b", file())],
            vec![("a", file())],
            vec!["a", "a-b"],
            vec!["a/b", "a/c/d"],
        ),
        (vec![("a", file())], vec![("a/b", directory())], vec!["a/b"], vec!["a"]),
        // Controls: what can be there together, and a directory that becomes a file.
        (vec![("a", directory())], vec![("a/b", file())], vec!["a", "a/b"], vec![]),
        (vec![("ab", file())], vec![("a/b", file())], vec!["a/b", "ab"], vec![]),
    ] {
        let mut rig = Rig::new(exact_json!({"tasks": [code("one"), code("two")]}));
        rig.answer("one", with(first));
        rig.answer("two", with(second));
        assert_eq!(rig.machine.files().keys().collect::<Vec<_>>(), left);
        let paths: Vec<String> = told.into_iter().map(str::to_owned).collect();
        let event = WorkflowEventKind::FilesConflict { task: "two".into(), paths: paths.clone() };
        assert_eq!(rig.events.contains(&event), !paths.is_empty(), "{paths:?}");
    }
    let mut rig = Rig::new(
        exact_json!({"tasks": [code("one"), {"id": "two", "type": "code_execution", "language": "python", "code": "1", "files": true, "depends_on": ["one"]}]}),
    );
    rig.answer("one", with(vec![("a/b", file())]));
    rig.answer("two", with(vec![("a", file()), ("a/b", None)]));
    assert_eq!(rig.machine.files().keys().collect::<Vec<_>>(), ["a"]);
    assert!(
        !rig.events.iter().any(|event| matches!(event, WorkflowEventKind::FilesConflict { .. }))
    );
}
