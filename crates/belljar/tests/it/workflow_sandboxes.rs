//! `code.execute` and `code.sandbox` of agents: what they answer, what a rollback does to them, and how
//! they are measured.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::Place,
    mcp_support::{RunningServer, serve_in},
    project_support::CountingProject,
};

const CODE: &str = "[workflows]\nenable_code_execution = true\n";

/// An agent's state in the end.
fn run(agent: &str, more: &[&str]) -> Value {
    let place = Place::new();
    place.file("work/agent.yaml", agent);
    let run = ["workflow", "run", "agent.yaml", "--json", "--enable-code-execution"];
    let ran = place.belljar(&[&run[..], more].concat());
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    ran.json()["output"].clone()
}

fn command(server: &RunningServer, id: &str, command: &Value) {
    let answer = server.ask(&format!("POST /v1/workflows/{id}/commands"), command);
    assert_eq!(answer["accepted"], true, "{command} {answer:#}");
}

/// How a workflow stands once it rests.
fn state(server: &RunningServer, id: &str) -> Value {
    server.ask(&format!("GET /v1/workflows/{id}?wait_ms=60000"), &Value::Null)
}

const COUNTER: &str = r#"
nodes:
  - {name: make, uses: code.sandbox, with: {action: create}, output: box}
  - {name: one, uses: code.sandbox, with: {sandbox_id: "{{ state.box.sandbox_id }}", code: x = 1}, output: r1}
  - {name: two, uses: code.sandbox, with: {sandbox_id: "{{ state.box.sandbox_id }}", code: "x += 1\nx"}, output: r2}
  - {name: more, uses: code.sandbox, with: {sandbox_id: "{{ state.box.sandbox_id }}", code: "x += 1\nx"}, output: r3}
config: {interrupt_before: [more]}
"#;

/// The checkpoint that the end of a task left.
fn checkpoint_of(server: &RunningServer, id: &str, task: &str) -> u64 {
    let path = format!("GET /v1/workflows/{id}/events?limit=1000");
    let events = server.ask(&path, &Value::Null);
    let events = events["events"].as_array().unwrap();
    let is_end =
        |event: &&Value| event["name"] == "task_completed" && event["data"]["task"] == task;
    let seq = events.iter().find(is_end).unwrap()["seq"].as_u64();
    let saved = |event: &&Value| event["name"] == "checkpoint_saved" && event["seq"].as_u64() > seq;
    events.iter().find(saved).unwrap()["data"]["checkpoint"].as_u64().unwrap()
}

/// Bug 1: what a task did in a sandbox is undone with the task.
#[sandboxed]
#[test]
fn bug_1_a_rollback_takes_the_sandbox_back() {
    let project = CountingProject::with(CODE);
    let server = serve_in(&project.place, &[]);
    let asked = json!({"workflow": COUNTER, "id": "c", "wait_ms": 60_000});
    let waiting = server.ask("POST /v1/workflows", &asked);
    assert_eq!(waiting["state"]["r2"]["return_value"], 2, "{waiting:#}");
    let to = checkpoint_of(&server, "c", "one");
    command(&server, "c", &json!({"command": "roll_back", "to": to}));
    let back = state(&server, "c");
    assert_eq!(back["rollback"]["undone"], json!(["two"]), "{back:#}");
    assert_eq!(back["rollback"]["not_undone"], json!([]), "{back:#}");
    command(&server, "c", &json!({"command": "continue"}));
    let again = state(&server, "c");
    assert_eq!(again["state"]["r2"]["return_value"], 2, "{again:#}");

    // A sandbox whose host is gone is named.
    server.kill();
    let server = serve_in(&project.place, &[]);
    let to = checkpoint_of(&server, "c", "make");
    command(&server, "c", &json!({"command": "roll_back", "to": to}));
    let back = state(&server, "c");
    let left = &back["rollback"]["not_undone"];
    let id = waiting["state"]["box"]["sandbox_id"].as_str().unwrap();
    assert!(left[0]["failure"]["message"].to_string().contains(id), "{back:#}");
    // And says so to who uses it, who goes on.
    command(&server, "c", &json!({"command": "continue"}));
    let lost = state(&server, "c");
    let used = &lost["state"]["r1"];
    assert_eq!((&used["success"], &used["error_code"]), (&json!(false), &json!("session.lost")));
    assert_eq!(lost["decisions"][0]["task"], "more", "{lost:#}");
}

/// A crashed, destroyed or unknown sandbox is a report, and the workflow goes on.
#[sandboxed]
#[test]
fn f8_a_sandbox_that_is_gone_answers_success_false() {
    let with = |action: &str| {
        format!(
            "{{action: {action}, sandbox_id: \"{{{{ state.box.sandbox_id }}}}\", code: \"x = 1\"}}"
        )
    };
    let agent = format!(
        r#"
nodes:
  - {{name: make, uses: code.sandbox, with: {{action: create}}, output: box}}
  - {{name: all, uses: code.sandbox, with: {{action: list}}, output: list}}
  - {{name: crash, uses: code.sandbox, with: {{sandbox_id: "{{{{ state.box.sandbox_id }}}}", code: "import os; os.abort()"}}, output: crashed}}
  - {{name: end, uses: code.sandbox, with: {end}, output: ended}}
  - {{name: again, uses: code.sandbox, with: {end}, output: twice}}
  - {{name: use, uses: code.sandbox, with: {execute}, output: after}}
  - {{name: none, uses: code.sandbox, with: {{sandbox_id: nobody, code: x = 1}}, output: unknown}}
  - {{name: left, uses: code.sandbox, with: {{action: list}}, output: left}}
"#,
        end = with("destroy"),
        execute = with("execute"),
    );
    let state = run(&agent, &[]);
    let made = &state["box"]["sandbox_id"];
    let listed = &state["list"]["sandboxes"][0];
    assert_eq!((&listed["sandbox_id"], &listed["language"]), (made, &json!("python")), "{state:#}");
    assert!(listed["expires_ms"].as_u64() > listed["created_ms"].as_u64(), "{listed:#}");
    assert_eq!(state["crashed"]["success"], false, "{state:#}");
    assert_eq!(state["crashed"]["error_type"], "SandboxError", "{state:#}");
    assert_eq!(state["twice"]["destroyed"], false, "{state:#}");
    assert_eq!(state["after"]["error_code"], "session.destroyed", "{state:#}");
    assert!(state["after"]["error"].to_string().contains("was destroyed by this workflow"));
    assert_eq!(state["unknown"]["error_code"], "session.lost", "{state:#}");
    assert_eq!(state["left"]["sandboxes"], json!([]), "{state:#}");
}

/// Surprise 7: what went wrong is told by type and code; what was cut is marked.
#[sandboxed]
#[test]
fn surprise_7_reports_name_the_type_of_the_error_and_what_was_cut() {
    let state = run(
        r#"
settings: {code: {default_timeout: 20s}}
nodes:
  - {name: slow, uses: code.execute, with: {code: "while True: pass", timeout: 500ms}, output: slow}
  - {name: bad, uses: code.execute, with: {code: "1/0"}, output: bad}
  - {name: long, uses: code.execute, with: {code: "print('x' * 500)", max_output_bytes: 100}, output: long}
  - {name: good, uses: code.execute, with: {code: "return 1"}, output: good}
"#,
        &[],
    );
    let error = |node: &str| (&state[node]["error_type"], &state[node]["error_code"]);
    assert_eq!(error("slow"), (&json!("TimeoutError"), &json!("limit.timeout")), "{state:#}");
    assert_eq!(state["bad"]["error_type"], "RuntimeError", "{state:#}");
    assert_eq!(error("good"), (&Value::Null, &Value::Null));
    assert_eq!(state["good"]["truncated"]["stdout"], false);
    assert_eq!(
        (&state["long"]["success"], &state["long"]["truncated"]["stdout"]),
        (&json!(true), &json!(true))
    );
}

/// `sandbox_mode: permissive` lifts what Python may import and nothing else.
#[sandboxed]
#[test]
fn f8_permissive_code_imports_what_restricted_code_does_not() {
    let agent = |mode: &str| {
        format!(
            r#"
settings: {{code: {{sandbox_mode: {mode}}}}}
nodes:
  - {{name: a, uses: code.execute, with: {{code: "import subprocess\nreturn 1"}}, output: a}}
  - {{name: box, uses: code.sandbox, with: {{action: create}}, output: box}}
  - {{name: b, uses: code.sandbox, with: {{sandbox_id: "{{{{ state.box.sandbox_id }}}}", code: import subprocess}}, output: b}}
  - {{name: c, uses: code.execute, with: {{code: "return open('/etc/shadow').read()"}}, output: c}}
"#
        )
    };
    for (mode, may) in [("permissive", true), ("restricted", false)] {
        let state = run(&agent(mode), &[]);
        assert_eq!(state["a"]["success"], may, "{state:#}");
        assert_eq!(state["b"]["success"], may, "{state:#}");
        assert_eq!(state["c"]["success"], false, "{state:#}");
    }
}

/// `allow_filesystem: false` leaves no room for a file; without it code has a private `/work`.
#[sandboxed]
#[test]
fn f8_code_without_a_file_system_makes_no_file() {
    let write = r#"open('/work/a', 'w').write('x'); return 1"#;
    let state = run(
        &format!(
            r#"
nodes:
  - {{name: no, uses: code.execute, with: {{code: "{write}", allow_filesystem: false}}, output: no}}
  - {{name: tmp, uses: code.execute, with: {{code: "import os; os.mkdir('/tmp/a')", allow_filesystem: false}}, output: tmp}}
  - {{name: yes, uses: code.execute, with: {{code: "{write}"}}, output: yes}}
  - {{name: sh, uses: code.execute, with: {{language: bash, code: "echo $BELLJAR_CONTEXT", allow_filesystem: false}}, output: sh}}
"#
        ),
        &["--enable-shell"],
    );
    let told: Vec<&Value> = ["no", "tmp", "yes", "sh"].map(|node| &state[node]["success"]).into();
    assert_eq!(told, [false, false, true, true], "{state:#}");
    // The context of bash is usually a file, too; here it is in the variable alone.
    assert_ne!(state["sh"]["stdout"], "\n", "{state:#}");
}

/// Bug 5: code, checkpoints and discoveries of workflows count like those of runs.
#[sandboxed]
#[test]
fn bug_5_workflows_are_measured() {
    let project = CountingProject::with(CODE);
    let server = serve_in(&project.place, &[]);
    let number = |name: &str| -> u64 {
        let text = server.api("GET /metrics", "").body;
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let names = [
        "code_execution_total{status=\"completed\"}",
        "code_execution_errors_total{type=\"RuntimeError\"}",
        "code_execution_duration_ms_count",
        "sandbox_startup_ms_count",
        "tool_discovery_ms_count",
    ];
    let before = names.map(number);
    let checkpoints = number("checkpoint_save_ms_count");
    let tasks = json!([
        {"id": "a", "type": "code_execution", "code": "return 1"},
        {"id": "b", "type": "code_execution", "code": "throw new Error('no')", "on_error": "continue"},
    ]);
    let ended =
        server.ask("POST /v1/workflows", &json!({"workflow": {"tasks": tasks}, "wait_ms": 60_000}));
    assert_eq!(ended["status"], "completed", "{ended:#}");
    server.ask("POST /v1/runs", &json!({"code": "return 1", "intent": "add two numbers"}));
    let after = names.map(number);
    let grown: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(grown, [2, 1, 3, 3, 1]);
    assert!(number("checkpoint_save_ms_count") > checkpoints);
}

/// Bug 4: a DAG asks for what `execute_code` takes, in both spellings; what is beyond is refused.
#[sandboxed]
#[test]
fn bug_4_dags_take_the_sandbox_config_of_execute_code() {
    let project = CountingProject::with(CODE);
    let out = project.place.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let server = serve_in(&project.place, &["--write", out.to_str().unwrap()]);
    let post = |config: Value, code: &str| {
        let task = json!({"id": "c", "type": "code_execution", "language": "python", "code": code,
            "sandbox_config": config});
        let asked = json!({"workflow": {"tasks": [task]}, "wait_ms": 60_000}).to_string();
        server.api("POST /v1/workflows", &asked)
    };
    let ran = |config: Value, code: &str| -> Value {
        let reply = post(config, code);
        serde_json::from_str(&reply.body).unwrap_or_else(|_| panic!("{reply:#?}"))
    };
    for config in [
        json!({"timeoutMs": 20_000, "heapLimitMB": 128, "allowedReadPaths": [], "allowNetwork": false, "allowWrite": false}),
        json!({"timeout_ms": 20_000, "heap_limit_mb": 128, "allowed_read_paths": [], "allow_network": false, "allow_write": false}),
    ] {
        let state = ran(config, "return 1");
        assert_eq!(state["status"], "completed", "{state:#}");
    }
    let grab = "return len(bytearray(400 << 20))";
    let state = ran(json!({"heapLimitMB": 64}), grab);
    assert_eq!(state["failure"]["details"]["type"], "MemoryError", "{state:#}");
    let write = format!("open('{}/f', 'w').write('x'); return 1", out.display());
    for allow in [json!(true), json!([out])] {
        let state = ran(json!({"allowWrite": allow}), &write);
        assert_eq!(state["status"], "completed", "{state:#}");
    }
    let state = ran(json!({"allowWrite": ["/etc"]}), "return 1");
    assert_eq!(state["failure"]["code"], "permission.denied", "{state:#}");
    let state = ran(json!({"allowedReadPaths": ["/etc"]}), "return 1");
    assert_eq!(state["failure"]["code"], "permission.denied", "{state:#}");
    let state = ran(json!({"allowNetwork": true}), "return 1");
    assert_eq!(state["failure"]["code"], "permission.denied", "{state:#}");
}
