//! Reading workflows and commands that clients send.

use super::*;

const CODE: &str = r#"{"tasks": [{"id": "a", "type": "code_execution", "code": "return 1"}]}"#;

fn faults(read: Result<(Dag, Vec<String>), WorkflowApiError>) -> String {
    read.unwrap_err().to_string()
}

#[test]
fn surprise_4_code_is_refused_in_json_and_in_yaml_until_it_is_enabled() {
    let json: JsonValue = belljar_contract::json_value::from_str(CODE).unwrap();
    let yaml = "tasks:\n  - id: a\n    type: code_execution\n    code: return 1\n";
    let agent = "name: x\nnodes:\n  - name: a\n    run: |\n      return {'b': 1}\n";
    for code in [CodeExecution::On, CodeExecution::Off] {
        let texts = [yaml, agent, CODE].map(|text| WorkflowSource::Text(text.to_owned()));
        for written in texts.into_iter().chain([WorkflowSource::Json(json.clone())]) {
            let read = workflow(written, code);
            assert_eq!(read.is_ok(), code == CodeExecution::On, "{read:?}");
        }
    }
}

#[test]
fn f8_faults_say_where() {
    let text = "tasks:\n  - id: a\n    tool: x:y\n    depend_on: [b]\n".to_owned();
    let told = faults(workflow(WorkflowSource::Text(text), CodeExecution::Off));
    assert!(told.starts_with("workflow:4:") && told.contains("depend_on"), "{told}");
    let told = faults(workflow(WorkflowSource::Json(exact_json!({"a": 1})), CodeExecution::Off));
    assert!(told.contains("neither `nodes` nor `tasks`") && !told.contains(":1:"), "{told}");
}

#[test]
fn f5_commands_are_read_strictly() {
    let read = |given: JsonValue| command(given.as_object().cloned().unwrap_or_default());
    assert_eq!(read(exact_json!({"command": "pause"})).unwrap(), WorkflowCommand::Pause);
    let tasks = exact_json!([{"id": "n", "tool": "s__t", "arguments": {}, "dependsOn": ["old"]}]);
    let injected = read(exact_json!({"command": "inject_tasks", "tasks": tasks})).unwrap();
    let WorkflowCommand::InjectTasks { tasks } = injected else { panic!("{injected:?}") };
    assert_eq!(tasks[0].depends_on, ["old"]);
    for (given, wanted) in [
        (exact_json!({"command": "pause", "task": "x"}), "pause has no field `task`"),
        (exact_json!({"command": "approve"}), "missing field `decision`"),
        (exact_json!({"command": "explode"}), "unknown variant `explode`"),
        (exact_json!({"command": "inject_tasks", "tasks": [{"id": 1}]}), "id"),
        (exact_json!({"command": "roll_back", "to": "x"}), "roll_back"),
    ] {
        let told = read(given.clone()).unwrap_err().to_string();
        assert!(told.contains(wanted), "{given}: {told}");
    }
}
