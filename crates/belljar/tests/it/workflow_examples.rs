//! The files in `examples/workflows`, run as they are.

use std::{
    fs,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{BELLJAR, Outcome, Place, outcome},
    workflow_support::{WorkflowWatch, has_ended},
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/counting.py");

/// A project with the server of the examples.
struct Project(Place);

impl Project {
    fn new() -> Self {
        Self::with("allow = [\"count__*\"]")
    }

    fn with(permissions: &str) -> Self {
        let place = Place::new();
        let args = toml::Value::from(vec!["-S", SERVER]);
        let count = place.path().join("count.txt");
        let configuration = format!(
            "[mcp_servers.count]\ncommand = \"python3\"\nargs = {args}\n\
             env = {{ COUNT_FILE = {:?} }}\ntrusted = true\n\n[permissions]\n{permissions}\n",
            count.display().to_string()
        );
        place.file("work/belljar.toml", configuration);
        Self(place)
    }

    fn run(&self, file: &str, more: &[&str]) -> Outcome {
        let path = format!("{EXAMPLES}/{file}");
        let arguments = [&["workflow", "run", path.as_str(), "--json"], more].concat();
        self.0.belljar(&arguments)
    }

    /// Runs a file of a test's own.
    fn run_text(&self, text: &str, more: &[&str]) -> Outcome {
        self.0.file("work/own.yaml", text);
        self.0.belljar(&[&["workflow", "run", "own.yaml"], more].concat())
    }

    fn start(&self, file: &str, more: &[&str]) -> Child {
        let path = format!("{EXAMPLES}/{file}");
        let mut command = self.0.command(BELLJAR);
        command.args(["workflow", "run", &path, "--json"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn appended(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.path().join("count.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn watched(&self) -> WorkflowWatch {
        WorkflowWatch::of(&self.0.path().join("work/.belljar"))
    }

    /// Waits for a decision of a workflow and gives its id.
    fn decision(&self, id: &str, child: &mut Child) -> String {
        let begun = Instant::now();
        loop {
            let state = self.0.path().join("work/.belljar").join(belljar_store::FILE_NAME);
            if state.exists()
                && let Some(decision) = self.watched().decisions(id).pop()
            {
                return decision.id;
            }
            assert!(!has_ended(child) && begun.elapsed() < Duration::from_secs(60), "no decision");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn completed(outcome: &Outcome) -> Value {
    let json = outcome.json();
    assert_eq!((outcome.status, &json["status"]), (Some(0), &json!("completed")), "{outcome:#?}");
    json["output"].clone()
}

#[sandboxed]
#[test]
fn f1_five_tasks_of_tools_code_and_a_person() {
    let project = Project::new();
    let more = ["--id", "five", "--enable-code-execution", "--input", "first=30"];
    let mut child = project.start("five-tasks.yaml", &more);
    let decision = project.decision("five", &mut child);
    assert_eq!(project.appended(), Vec::<String>::new(), "nothing before the person has said yes");
    let answered = project.0.belljar(&["workflow", "command", "five", "approve", &decision]);
    assert_eq!((answered.status, &*answered.stderr), (Some(0), "accepted\n"));
    let output = completed(&outcome(child.wait_with_output().unwrap()));
    assert_eq!(output, json!({"total": 52, "appended": "total 52"}));
    assert_eq!(project.appended(), ["total 52"]);
    // Left and right did not wait for each other.
    let events = project.watched().check_events("five");
    assert!(events.len() > 15, "{events:#?}");
}

#[sandboxed]
#[test]
fn f1_a_person_who_says_no_ends_it() {
    let project = Project::new();
    let mut child = project.start("five-tasks.yaml", &["--id", "no", "--enable-code-execution"]);
    let decision = project.decision("no", &mut child);
    let args = ["workflow", "command", "no", "reject", &decision, "--reason", "not today"];
    assert_eq!(project.0.belljar(&args).status, Some(0));
    let ended = outcome(child.wait_with_output().unwrap());
    assert_eq!((ended.status, &ended.json()["status"]), (Some(1), &json!("failed")), "{ended:#?}");
    assert_eq!(project.appended(), Vec::<String>::new());
    let again = project.0.belljar(&["workflow", "command", "no", "pause", "--json"]);
    assert_eq!((again.status, &again.json()["status"]), (Some(1), &json!("refused")));
}

#[sandboxed]
#[test]
fn f8_an_agent_with_a_loop_and_a_sandbox() {
    let project = Project::new();
    let ended = project.run("tries.yaml", &["--enable-code-execution"]);
    completed(&ended);
    let state = &ended.json()["state"];
    assert_eq!((&state["guess"], &state["found"]), (&json!(7), &json!(true)), "{state}");
    assert_eq!(state["tried"]["return_value"], json!([5, 6, 7]), "{state}");
    assert_eq!(state["closed"]["destroyed"], json!(true), "{state}");
}

#[test]
fn f8_code_is_off_until_the_operator_enables_it() {
    let project = Project::new();
    let ended = project.run("tries.yaml", &[]);
    assert_eq!(ended.status, Some(2), "{ended:#?}");
    let faults = ended.json()["faults"].as_array().unwrap().len();
    assert!(faults > 0 && ended.stdout.contains("code execution is off"), "{ended:#?}");
}

#[sandboxed]
#[test]
fn f8_a_command_brings_no_code_in_while_it_is_off() {
    let project = Project::new();
    let file = "tasks:\n  - {id: hold, message: wait, by: human}\n";
    let path = project.0.file("work/hold.yaml", file);
    let mut command = project.0.command(BELLJAR);
    command.args(["workflow", "run", path.to_str().unwrap(), "--id", "inject", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let decision = project.decision("inject", &mut child);
    let tasks = r#"[{"id": "sneak", "language": "python", "code": "return 1"}]"#;
    let sent = project.0.belljar(&["workflow", "command", "inject", "inject-tasks", tasks]);
    assert!(sent.stderr.contains("task sneak runs code, but code execution is off"), "{sent:#?}");
    assert_eq!(sent.status, Some(2), "{sent:#?}");
    project.0.belljar(&["workflow", "command", "inject", "approve", &decision]);
    let ended = outcome(child.wait_with_output().unwrap()).json();
    assert_eq!(ended["status"], json!("completed"), "{ended}");
}

#[sandboxed]
#[test]
fn f1_a_failing_tool_is_tried_again_and_then_replaced() {
    let project = Project::new();
    let ended = project.run("retry-and-fallback.yaml", &["--id", "retry"]);
    assert_eq!(completed(&ended), json!({"price": 42}));
    let events = project.watched().check_events("retry");
    let text = serde_json::to_string(&events).unwrap();
    assert_eq!(text.matches("\"task_retrying\"").count(), 2, "{text}");
    assert_eq!(text.matches("\"task_fallback\"").count(), 1, "{text}");
}

#[sandboxed]
#[test]
fn f1_foreach_over_a_hundred_items_keeps_their_order() {
    let project = Project::new();
    let ended = project.run("hundred.yaml", &[]);
    assert_eq!(completed(&ended), json!({"count": 100, "last": 198}));
    let results = ended.json()["results"]["squares"].as_array().unwrap().clone();
    let sums: Vec<i64> = results.iter().map(|one| one["sum"].as_i64().unwrap()).collect();
    assert_eq!(sums, (0..100).map(|n| 2 * n).collect::<Vec<i64>>());
}

#[sandboxed]
#[test]
fn f6_rollback_compensates_in_reverse_and_reports_the_rest() {
    let project = Project::new();
    completed(&project.run("rollback.json", &["--id", "shop"]));
    assert_eq!(project.appended(), ["reserve", "charge", "mail"]);
    let back = project.0.belljar(&["workflow", "rollback", "shop", "--to", "1", "--json"]);
    let report = back.json();
    assert_eq!((back.status, &report["undone"]), (Some(1), &json!(["charge", "reserve"])));
    assert_eq!(report["not_undone"][0]["instance"], json!("mail"), "{report}");
    assert_eq!(report["not_undone"][0]["why"], json!("no_compensation"), "{report}");
    let expected = ["reserve", "charge", "mail", "refund charge", "cancel reserve"];
    assert_eq!(project.appended(), expected);
    // It is paused there, and can be gone through again.
    let paused = project.0.belljar(&["workflow", "show", "shop", "--json"]).json();
    assert_eq!((&paused["status"], &paused["branch"]), (&json!("paused"), &json!(1)));
    let sent = project.0.belljar(&["workflow", "command", "shop", "continue"]);
    assert_eq!(sent.status, Some(0), "{sent:#?}");
    completed(&project.0.belljar(&["workflow", "resume", "shop", "--json"]));
    assert_eq!(project.appended().len(), 8);
    project.watched().check_events("shop");
}

#[test]
fn f8_validate_tells_every_fault_with_its_line() {
    let project = Project::new();
    let file = "name: bad\ntasks:\n  - id: one\n    tool: count:ad\n    depends_on: [two]\n  \
                - id: two\n    value: \"{{ results.one }}\"\n    depends_on: [one]\n  \
                - id: three\n    value: \"{{ inputs.missing }} {{ nothing.at.all }}\"\n";
    project.0.file("work/bad.yaml", file);
    let found = project.0.belljar(&["workflow", "validate", "bad.yaml"]);
    assert_eq!(found.status, Some(2), "{found:#?}");
    assert!(found.stderr.contains("bad.yaml:3:9: `one`: tool"), "{found:#?}");
    assert!(found.stderr.contains("cycle"), "{found:#?}");
    // Faults of the file, of the graph and of tools are listed together, and nothing that follows from
    // them: `two` is a task although it cannot be read.
    let file = "tasks:\n  - id: one\n    tool: count:ad\n  - id: two\n    tol: count:add\n    retry: \
                {attempts: 3}\n  - id: three\n    value: \"{{ results.nope }}\"\n    depends_on: \
                [two, four]\n";
    project.0.file("work/all.yaml", file);
    let found = project.0.belljar(&["workflow", "validate", "all.yaml", "--json"]);
    let listed = found.json()["faults"].as_array().cloned().unwrap_or_default();
    let at = |fault: &Value| (fault["line"].as_u64(), fault["message"].as_str().map(str::to_owned));
    let listed: Vec<(u64, String)> =
        listed.iter().map(|fault| (at(fault).0.unwrap(), at(fault).1.unwrap())).collect();
    for (line, part) in [(2, "count:ad"), (5, "tol"), (7, "nope"), (9, "`four`")] {
        let is_it = |(at, what): &&(u64, String)| *at == line && what.contains(part);
        assert_eq!(listed.iter().filter(is_it).count(), 1, "{part}: {listed:#?}");
    }
    assert!(listed.iter().all(|(_, what)| !what.contains("retry")), "{listed:#?}");
    assert!(listed.is_sorted_by_key(|(line, _)| *line), "{listed:#?}");
    project.0.file("work/tool.yaml", "tasks:\n  - id: one\n    tool: count:ad\n");
    let found = project.0.belljar(&["workflow", "validate", "tool.yaml"]);
    assert!(found.stderr.contains("tool.yaml:2:9: `one`: tool"), "{found:#?}");
    assert!(found.stderr.contains("count:add"), "{found:#?}");
    for example in fs::read_dir(EXAMPLES).unwrap() {
        let path = example.unwrap().path();
        let is_workflow = path.extension().is_some_and(|e| e == "yaml" || e == "json");
        if is_workflow {
            let found = project.0.belljar(&["workflow", "validate", path.to_str().unwrap()]);
            assert_eq!(found.status, Some(0), "{found:#?}");
        }
    }
}

/// The examples need nothing but their own directory.
#[sandboxed]
#[test]
fn f1_the_examples_run_in_a_copy_of_their_directory() {
    let place = Place::new();
    for example in fs::read_dir(EXAMPLES).unwrap() {
        let path = example.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Files that the commands of a reader leave behind.
        if path.is_file() && name != "count.txt" {
            place.file(&format!("work/{name}"), fs::read(&path).unwrap());
        }
    }
    for file in ["hundred.yaml", "retry-and-fallback.yaml", "rollback.json"] {
        let ran = place.belljar(&["workflow", "run", file]);
        assert_eq!(ran.status, Some(0), "{file}: {ran:#?}");
    }
    let appended = fs::read_to_string(place.path().join("work/count.txt")).unwrap();
    assert_eq!(appended, "reserve\ncharge\nmail\n");
}

#[sandboxed]
#[test]
fn f1_interrupted_it_says_how_to_go_on() {
    let project = Project::new();
    let mut child = project.start("five-tasks.yaml", &["--id", "stop", "--enable-code-execution"]);
    let decision = project.decision("stop", &mut child);
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let ended = outcome(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(130), "{ended:#?}");
    assert!(ended.stderr.contains("belljar workflow resume stop"), "{ended:#?}");
    // A command that the next host would refuse is refused now, with the choices there are.
    let command =
        |rest: &[&str]| project.0.belljar(&[&["workflow", "command", "stop"], rest].concat());
    let wrong = command(&["approve", "d77"]);
    let told = format!("refused: no decision d77 is open; open decisions: {decision}\n");
    assert_eq!((wrong.status, wrong.stderr), (Some(1), told));
    let wrong = command(&["skip", "nothing-like-it"]);
    assert!(wrong.stderr.contains("there is no task nothing-like-it; tasks: "), "{wrong:#?}");
    assert_eq!(command(&["continue"]).status, Some(1));
    // It is checked in the state that the commands before it leave.
    assert!(command(&["pause"]).stderr.starts_with("queued as "));
    assert!(command(&["continue"]).stderr.starts_with("queued as "));
    let queued = project.0.belljar(&["workflow", "command", "stop", "approve", &decision]);
    assert!(queued.stderr.contains("belljar workflow resume stop"), "{queued:#?}");
    let resumed = project.0.belljar(&["workflow", "resume", "stop", "--json"]);
    assert_eq!(completed(&resumed)["appended"], json!("total 42"));
    assert_eq!(project.appended(), ["total 42"]);
}

#[sandboxed]
#[test]
fn f1_a_workspace_is_worked_on_and_committed() {
    let project = Project::new();
    let file = "settings: {files: true}\ntasks:\n  - id: change\n    language: bash\n    code: |\n      \
                tr a-z A-Z < /work/in.txt > /work/out/loud.txt || { mkdir -p /work/out; tr a-z A-Z < \
                /work/in.txt > /work/out/loud.txt; }\n  - id: count\n    language: bash\n    code: \
                wc -c < /work/out/loud.txt > /work/size.txt\n    depends_on: [change]\n";
    project.0.file("work/flow.yaml", file);
    project.0.file("work/data/in.txt", "hello");
    project.0.file("work/data/.mcp.json", "{}");
    let run = [
        "workflow",
        "run",
        "flow.yaml",
        "--id",
        "ws",
        "--enable-code-execution",
        "--enable-shell",
        "--json",
    ];
    let ended = project.0.belljar(&[&run[..], &["--workspace", "data", "--commit"]].concat());
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    let at = |name: &str| fs::read_to_string(project.0.path().join("work/data").join(name));
    assert_eq!(
        (at("out/loud.txt").unwrap(), at("size.txt").unwrap().trim()),
        ("HELLO".into(), "5")
    );
    let files = ended.json()["files"].clone();
    assert!(files.get(".mcp.json").is_none(), "what is the host's own is not shown: {files}");
}

#[sandboxed]
#[test]
fn f8_an_input_that_the_workflow_does_not_have_is_refused() {
    let project = Project::new();
    let text = "name: release\ninputs: {version: \"1.0\"}\ntasks:\n  \
                - {id: say, type: pass, value: \"{{ inputs.version }} {{ inputs.who | default('all') }}\"}\n\
                output: \"{{ results.say }}\"\n";
    let misspelled = project.run_text(text, &["--input", "versoin=1.4"]);
    assert_eq!((misspelled.status, &*misspelled.stdout), (Some(2), ""), "{misspelled:#?}");
    insta::assert_snapshot!(misspelled.stderr, @"error: own.yaml:2:1: inputs: the workflow has no input `versoin`; it declares `version`; did you mean `version`?");
    // Those that it declares, and those that it only reads, are its own.
    let good = project.run_text(text, &["--input", "version=v2", "--input", "who=me"]);
    assert_eq!((good.status, &*good.stdout), (Some(0), "\"v2 me\"\n"), "{good:#?}");
}

#[sandboxed]
#[test]
fn f8_a_file_that_wants_to_write_is_told_of_a_flag_that_exists() {
    let project = Project::new();
    let text = "tasks:\n  - {id: w, language: typescript, code: return 1, sandbox_config: {allowWrite: true}}\n";
    let refused = project.run_text(text, &["--enable-code-execution", "--id", "w"]);
    assert_eq!(refused.status, Some(1), "{refused:#?}");
    let told = refused.stderr.lines().find(|line| line.starts_with("failed: "));
    insta::assert_snapshot!(told.unwrap_or_default(), @"failed: writing to the host is not allowed here; the operator can allow it when the workflow is submitted, with `belljar serve --write PATH`; `belljar workflow run` has no such flag, and brings changed files to the host only with `--workspace DIR --commit` [permission.denied]");
    for (command, flag, exists) in
        [(&["serve"][..], "--write", true), (&["workflow", "run"][..], "--write", false)]
    {
        let help = project.0.belljar(&[command, &["--help"]].concat()).stdout;
        assert_eq!(help.contains(flag), exists, "{command:?}");
    }
}

#[test]
fn help_shows_decisions_as_they_are_named() {
    for command in [&["workflow", "--help"][..], &["workflow", "command", "--help"]] {
        let help = Place::new().belljar(command).stdout;
        let lines = help.lines().filter(|line| line.trim_start().starts_with("belljar"));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let is_answer = |pair: &&[&str]| matches!(pair[0], "approve" | "reject");
        let ids: Vec<&str> = words.windows(2).filter(is_answer).map(|pair| pair[1]).collect();
        assert!(!ids.is_empty() && ids.iter().all(|id| *id == "d1"), "{ids:?}: {help}");
    }
}
