//! A5, D7, D8: what a person at the command line meets: output as it is printed, durable runs, approvals
//! without a terminal, mistakes in arguments.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    command::{BELLJAR, Place, belljar, until_shown},
    project_support::CountingProject,
};

#[sandboxed]
#[test]
fn output_is_printed_while_the_code_runs() {
    let place = Place::new();
    let code = "console.log('first'); console.error('second');\n\
                await new Promise(done => setTimeout(done, 600000))";
    let mut child = place
        .command(BELLJAR)
        .args(["run", "--timeout", "10m", "-c", code])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = |stream: &mut dyn std::io::Read| {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(child.stdout.as_mut().unwrap()), "first\n");
    assert_eq!(line(child.stderr.as_mut().unwrap()), "second\n");
    // It has not ended.
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[sandboxed]
#[test]
fn output_comes_once_and_the_value_after_it() {
    let code = "process.stdout.write('no newline'); return 7";
    let ran = belljar(&["run", "-c", code]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), "no newline\n7\n"), "{ran:#?}");
    // Characters that arrive in pieces, and output above what a result keeps.
    let code = "for (let i = 0; i < 5000; i++) console.log('é€😀'.repeat(5)); return 'end'";
    let ran = belljar(&["run", "-c", code]);
    let line = format!("{}\n", "é€😀".repeat(5));
    assert_eq!(ran.stdout, format!("{}end\n", line.repeat(5000)));
    assert!(!ran.stderr.contains("was cut"), "{}", ran.stderr);
    let ran = belljar(&["run", "--json", "-c", "console.log('x'); return 1"]);
    assert_eq!((&ran.json()["stdout"], &ran.json()["result"]), (&json!("x\n"), &json!(1)));
}

const SPINS: &str = "const t = Date.now();\nwhile (Date.now() - t < 100) {}\nreturn 'over'";

#[sandboxed]
#[test]
fn d8_a_run_that_may_ask_says_that_its_clock_stands_still() {
    let project = CountingProject::with("");
    let ran = project.run(SPINS, &["--timeout", "1s"]);
    assert_eq!(ran["error"]["code"], "limit.timeout", "{ran:#}");
    let hint = ran["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("its clock stands still") && hint.contains("--no-durable"), "{hint}");
    let note = ran["logs"][0].as_str().unwrap();
    assert!(note.starts_with("[durable] the run is durable because it may call a tool"), "{note}");
    // Control: the same run without a journal, and code that does not read the clock.
    let ran = project.run(SPINS, &["--no-durable"]);
    assert_eq!((&ran["result"], &ran["logs"]), (&json!("over"), &json!([])), "{ran:#}");
    let ran = project.run("return 1", &[]);
    assert_eq!((&ran["result"], &ran["logs"]), (&json!(1), &json!([])), "{ran:#}");
}

const APPENDS: &str = "return await mcp.count.append({text: 'x'})";

#[sandboxed]
#[test]
fn d7_a_run_that_is_not_durable_still_waits_for_a_person() {
    let project = CountingProject::with("");
    let mut running = project.start(APPENDS, &["--no-durable"]);
    let id = running.approval();
    assert_eq!(project.belljar(&["runs", "--json"]).json(), json!([]));
    assert_eq!(project.belljar(&["approvals", "approve", &id]).status, Some(0));
    assert_eq!(running.end().json()["result"], json!({"appended": "x"}));
    assert_eq!(project.counted(), ["x"]);
}

/// Progress is for people: a terminal gets a line after a second, a pipe never does.
#[sandboxed]
#[test]
fn progress_is_shown_on_a_terminal_only() {
    let place = Place::new();
    let waits = "await new Promise((done) => setTimeout(done, 20000))";
    let shown = until_shown(&place, "(1 s)", &["run", "-c", waits]);
    assert!(shown.contains("running main.ts (1 s)"), "{shown}");
    let code = "await new Promise((done) => setTimeout(done, 1300)); return 1";
    let piped = place.belljar(&["run", "-c", code]);
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("1\n", ""), "{piped:#?}");
}

#[sandboxed]
#[test]
fn d7_no_wait_fails_instead_of_waiting() {
    let project = CountingProject::with("");
    let ran = project.run(APPENDS, &["--no-wait"]);
    assert_eq!(ran["error"]["code"], "approval.denied", "{ran:#}");
    assert!(ran["error"]["hint"].as_str().unwrap().contains("--tool count__append"), "{ran:#}");
    let called = project.belljar(&["tools", "call", "count__append", "text=x", "--no-wait"]);
    assert_eq!(called.status, Some(1), "{called:#?}");
    assert_eq!(project.belljar(&["approvals", "--json"]).json(), json!([]));
    assert_eq!(project.counted(), Vec::<String>::new());
    // Control: the tool is granted, so nothing waits.
    let ran = project.run(APPENDS, &["--no-wait", "--tool", "count__append"]);
    assert_eq!(ran["result"], json!({"appended": "x"}), "{ran:#}");
}

#[sandboxed]
#[test]
fn d7_without_a_terminal_the_command_that_decides_is_complete() {
    let project = CountingProject::with("");
    let mut running = project.start(APPENDS, &[]);
    let said = running.line_with("another terminal: ");
    let (_, command) = said.split_once("another terminal: ").unwrap();
    let (directory, command) = command.trim().split_once(" && belljar ").unwrap();
    assert_eq!(directory, format!("cd {}", project.place.path().join("work").display()));
    let arguments: Vec<&str> = command.split(' ').collect();
    assert_eq!(project.belljar(&arguments).status, Some(0), "{said}");
    assert_eq!(running.end().json()["result"], json!({"appended": "x"}));
}

#[test]
fn arguments_of_a_tool_are_written_as_they_come() {
    let project = CountingProject::with("[permissions]\nallow = ['*']\n");
    let called = project.belljar(&["tools", "call", "count__add", "a=1", "b=2", "--json"]);
    assert_eq!(called.json()["result"], json!({"sum": 3}), "{called:#?}");
    let called = project.belljar(&["tools", "call", "count__add", "a"]);
    assert_eq!(called.status, Some(2));
    assert!(called.stderr.contains("KEY=VALUE"), "{called:#?}");
    let both = ["tools", "call", "count__add", "{\"a\": 1}", "--arg", "b=2"];
    assert!(project.belljar(&both).stderr.contains("not as both"));
}

#[sandboxed]
#[test]
fn a6_mistakes_are_named_with_what_to_write() {
    let place = Place::new();
    place.file("work/x.rb", "puts 1");
    place.file("work/tool.x", "#!/usr/bin/env python3\nimport sys\nprint('py', len(sys.path) > 0)");
    let told = |arguments: &[&str]| {
        let ran = place.belljar(arguments);
        assert_eq!(ran.status, Some(2), "{ran:#?}");
        ran.stderr
    };
    let unknown = told(&["run", "x.rb"]);
    assert!(unknown.contains("cannot tell the language of .rb files"), "{unknown}");
    let memory = told(&["run", "--memory", "512", "-c", "1"]);
    assert!(memory.contains("`512` has no unit; write for example 512MiB"), "{memory}");
    assert!(told(&["rnu", "x"]).contains("similar subcommand exists: 'run'\n"));
    let flag = told(&["run", "--foo"]);
    assert!(!flag.contains("similar"), "{flag}");
    assert!(flag.contains("Usage: belljar run [OPTIONS] [FILE]"), "{flag}");
    assert!(told(&["run", "--timout", "1s"]).contains("'--timeout'"));
    let http = told(&["serve", "--http", "nowhere"]);
    assert!(http.contains("write a port such as 8420"), "{http}");
    // Controls: with the language, or a first line that names it, the files run.
    let ran = place.belljar(&["run", "x.rb", "-l", "bash"]);
    assert_eq!(ran.status, Some(1), "{ran:#?}");
    let ran = place.belljar(&["run", "tool.x"]);
    assert_eq!(ran.stdout, "py True\n", "{ran:#?}");
}

#[sandboxed]
#[test]
fn state_lives_where_the_person_says() {
    let project = CountingProject::with("");
    let state = project.place.path().join("elsewhere");
    let state = state.to_str().unwrap();
    let ran = project.belljar(&["run", "--durable", "-c", "return 1", "--state-dir", state]);
    assert_eq!(ran.stdout, "1\n", "{ran:#?}");
    let runs = project.belljar(&["runs", "--json", "--state-dir", state]).json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1));
    let own = project.place.path().join("work/.belljar");
    assert!(!own.exists());
    let mut command = project.place.command(BELLJAR);
    command.args(["runs", "--json"]).env("BELLJAR_STATE_DIR", state);
    let output = command.output().unwrap();
    assert_eq!(crate::command::outcome(output).json(), runs);
    // S3: code sees the state nowhere, also if a grant has it.
    let place = project.place.path().to_str().unwrap();
    let code = format!("import os; os.listdir('{state}')");
    let read = ["run", "-l", "py", "-c", &code, "--read", place, "--state-dir", state, "--json"];
    let seen = project.belljar(&read).json();
    assert!(seen["result"] == json!([]) || seen["success"] == json!(false), "{seen:#}");
}

#[sandboxed]
#[test]
fn colours_follow_the_flag_and_the_variables() {
    let place = Place::new();
    let code = ["run", "-c", "return {a: 1}"];
    let run = |more: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.command(BELLJAR);
        command.args(code).args(more).envs(variables.iter().copied());
        crate::command::outcome(command.output().unwrap()).stdout.contains("\u{1b}[")
    };
    assert!(!run(&[], &[]));
    assert!(run(&["--color", "always"], &[]));
    assert!(run(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!run(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!run(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
}

#[sandboxed]
#[test]
fn c2_a_person_is_told_how_to_keep_artifacts() {
    let place = Place::new();
    let code = "import os; os.makedirs('/work/out'); open('/work/out/a.csv', 'w').write('1')";
    let ran = place.belljar(&["run", "-l", "py", "-c", code]);
    assert!(ran.stderr.contains("--artifacts DIR writes them"), "{ran:#?}");
    let ran = place.belljar(&["run", "-l", "py", "-c", code, "--artifacts", "kept"]);
    assert!(ran.stderr.contains("artifacts are written to kept\n"), "{ran:#?}");
    assert!(place.path().join("work/kept/a.csv").exists());
}

#[sandboxed]
#[test]
fn arguments_after_two_dashes_reach_the_code() {
    let place = Place::new();
    place.file("work/a.py", "import sys\nsys.argv");
    place.file("work/a.ts", "return process.argv.slice(2)");
    place.file("work/a.sh", "printf '%s|' \"$#\" \"$1\" \"$2\"");
    let given = |file: &str| place.belljar(&["run", file, "--json", "--", "-x", "ä b"]).json();
    assert_eq!(given("a.py")["result"], json!(["a.py", "-x", "ä b"]));
    assert_eq!(given("a.ts")["result"], json!(["-x", "ä b"]));
    assert_eq!(given("a.sh")["stdout"], json!("2|-x|ä b|"));
    // Control: without any there are none.
    assert_eq!(place.belljar(&["run", "a.ts", "--json"]).json()["result"], json!([]));
    let large = "x".repeat(20_000);
    let refused = place.belljar(&["run", "a.ts", "--json", "--", &large]).json();
    assert_eq!(refused["error"]["code"], "request.invalid", "{refused:#}");
    // Another argument is another request: the cache has no answer for it.
    place.file("work/.mcp.json", "{\"mcpServers\": {}}");
    let cached = |argument: &str| {
        place.belljar(&["run", "a.ts", "--json", "--cache", "--", argument]).json()["result"]
            .clone()
    };
    assert_eq!([cached("1"), cached("2"), cached("1")], [json!(["1"]), json!(["2"]), json!(["1"])]);
}

/// D8: a run that is resumed has the arguments that it began with.
#[sandboxed]
#[test]
fn d8_a_resumed_run_has_its_arguments() {
    let project = CountingProject::trusting("[permissions]\nallow = ['*']\n");
    let code = "await mcp.count.slow({ms: 1500}); return process.argv.slice(2)";
    let running = project.start(code, &["--durable", "--", "a", "b"]);
    project.wait_for("slow begins");
    let process = rustix::process::Pid::from_child(&running.child);
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    running.end();
    let runs = project.belljar(&["runs", "--json"]).json();
    let resumed = project.belljar(&["resume", runs[0]["id"].as_str().unwrap(), "--json"]);
    assert_eq!(resumed.json()["result"], json!(["a", "b"]), "{resumed:#?}");
}
