//! D8: runs that survive whatever ends their process, from the command line.

use belljar_testing::sandboxed;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::project_support::CountingProject;

const ALLOWS: &str = "[permissions]\nallow = ['*']\n";
const APPEND_THEN_WAIT: &str = "const first = await mcp.count.append({text: 'once'});\n\
     const second = await mcp.count.slow({ms: context?.ms ?? 60000});\n\
     ({first, second})";

/// The one durable run of a project.
fn only_run(project: &CountingProject) -> serde_json::Value {
    let runs = project.belljar(&["runs", "--json"]).json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs:#}");
    runs[0].clone()
}

#[sandboxed]
#[test]
fn d8_a_killed_run_goes_on_without_repeating_what_it_did() {
    let project = CountingProject::trusting(ALLOWS);
    let running = project.start(APPEND_THEN_WAIT, &["--durable", "--context", r#"{"ms": 1500}"#]);
    project.wait_for("slow begins");
    kill_process(Pid::from_child(&running.child), Signal::KILL).expect("it can be killed");
    assert_eq!(running.end().status, None);
    let run = only_run(&project);
    assert_eq!((&run["status"], &run["resumable"]), (&json!("interrupted"), &json!(true)));
    let id = run["id"].as_str().unwrap();
    let resumed = project.belljar(&["resume", id, "--json"]);
    assert_eq!(resumed.status, Some(0), "{resumed:#?}");
    let expected = json!({"first": {"appended": "once"}, "second": {"slept": 1500}});
    assert_eq!(resumed.json()["result"], expected);
    assert_eq!(project.counted(), ["once", "slow begins", "slow begins"]);
    assert_eq!(only_run(&project)["status"], "completed");
    // Once it has ended, its result is all there is to have; the beginning of the id is enough.
    let again = project.belljar(&["resume", &id[..12], "--json"]);
    assert_eq!((again.status, &again.json()["result"]), (Some(0), &expected));
    assert_eq!(again.stderr, format!("run {id} had ended; this is its result\n"));
    assert_eq!(project.counted().len(), 3);
}

#[sandboxed]
#[test]
fn d8_a_call_that_may_have_happened_is_repeated_only_if_a_person_says_so() {
    // Not trusted to be read-only, so nobody knows whether it may be called again.
    let project = CountingProject::with(ALLOWS);
    let code = "await mcp.count.slow({ms: context.ms})";
    let running = project.start(code, &["--durable", "--context", r#"{"ms": 1000}"#]);
    project.wait_for("slow begins");
    kill_process(Pid::from_child(&running.child), Signal::KILL).expect("it can be killed");
    running.end();
    let id = only_run(&project)["id"].as_str().unwrap().to_owned();
    let resumed = project.belljar(&["resume", &id]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (Some(1), ""));
    assert!(
        resumed
            .stderr
            .contains("hint: check whether it happened, then `belljar approvals retry apr_"),
        "{resumed:#?}"
    );
    assert_eq!(project.counted(), ["slow begins"]);
    let waiting = project.belljar(&["approvals", "--json"]).json();
    assert_eq!(waiting[0]["kind"], "in_doubt");
    assert!(waiting[0]["message"].as_str().unwrap().contains("may have happened"), "{waiting:#}");
    let question = waiting[0]["id"].as_str().unwrap();
    // Approving a call does not approve making it twice (reliability 3).
    let refused = project.belljar(&["approvals", "approve", question]);
    assert_eq!(refused.status, Some(1), "{refused:#?}");
    assert!(refused.stderr.contains("may have happened"), "{refused:#?}");
    let decided = project.belljar(&["approvals", "retry", question]);
    assert_eq!(
        decided.stderr,
        format!(
            "no process runs its run now: `belljar serve` in this project resumes it by itself, \
             or resume it yourself: belljar resume {id}\n"
        )
    );
    let resumed = project.belljar(&["resume", &id, "--json"]);
    assert_eq!(resumed.json()["result"], json!({"slept": 1000}), "{resumed:#?}");
    assert_eq!(project.counted(), ["slow begins", "slow begins"]);
}

/// A call that happened need not be repeated, nor fail (reliability 3).
#[sandboxed]
#[test]
fn reliability_3_a_person_says_what_a_call_in_doubt_gave() {
    let project = CountingProject::with(ALLOWS);
    let code = "const {slept} = await mcp.count.slow({ms: 1000}); return slept * 2";
    let running = project.start(code, &["--durable"]);
    project.wait_for("slow begins");
    kill_process(Pid::from_child(&running.child), Signal::KILL).expect("it can be killed");
    running.end();
    let id = only_run(&project)["id"].as_str().unwrap().to_owned();
    assert_eq!(project.belljar(&["resume", &id]).status, Some(1));
    let waiting = project.belljar(&["approvals", "--json"]).json();
    let question = waiting[0]["id"].as_str().unwrap();
    let nonsense = project.belljar(&["approvals", "use", question, "--result", "{slept"]);
    assert_eq!(nonsense.status, Some(2), "{nonsense:#?}");
    let twofold = project.belljar(&["approvals", "use", question, "--result", r#"{"a":1,"a":2}"#]);
    assert_eq!(twofold.status, Some(2), "{twofold:#?}");
    let used = project.belljar(&["approvals", "use", question, "--result", r#"{"slept": 21}"#]);
    assert!(used.stdout.starts_with("happened apr_"), "{used:#?}");
    // The same from the journal, however often it is asked.
    for _ in 0..2 {
        let resumed = project.belljar(&["resume", &id, "--json"]);
        assert_eq!(resumed.json()["result"], 42, "{resumed:#?}");
    }
    assert_eq!(project.counted(), ["slow begins"]);
    let audit = project.belljar(&["audit", "--json"]).json();
    let told = |row: &Value| row["decision"] == "happened" && row["outcome"] == "ok";
    assert!(audit.as_array().unwrap().iter().any(told), "{audit:#}");
}

#[sandboxed]
#[test]
fn d8_a_call_that_waits_for_a_person_survives_its_process() {
    let project = CountingProject::trusting("[permissions]\nask = ['count__append']\n");
    let code = "await mcp.count.add({a: 1, b: 1}); await mcp.count.append({text: 'late'})";
    let mut running = project.start(code, &[]);
    let approval = running.approval();
    kill_process(Pid::from_child(&running.child), Signal::KILL).expect("it can be killed");
    running.end();
    let id = only_run(&project)["id"].as_str().unwrap().to_owned();
    assert_eq!(project.belljar(&["approvals", "approve", &approval]).status, Some(0));
    let resumed = project.belljar(&["resume", &id, "--json"]);
    assert_eq!(resumed.json()["result"], json!({"appended": "late"}), "{resumed:#?}");
    assert_eq!(project.counted(), ["late"]);
}

#[sandboxed]
#[test]
fn d8_an_interrupted_run_says_how_it_goes_on() {
    let project = CountingProject::trusting(ALLOWS);
    let running = project.start(APPEND_THEN_WAIT, &["--durable"]);
    project.wait_for("slow begins");
    kill_process(Pid::from_child(&running.child), Signal::INT).expect("it can be interrupted");
    let ended = running.end();
    assert_eq!((ended.status, &ended.json()["status"]), (Some(130), &json!("aborted")));
    let run = only_run(&project);
    let id = run["id"].as_str().unwrap();
    assert_eq!(ended.stderr, format!("to resume it: belljar resume {id}\n"));
    assert_eq!((&run["status"], &run["resumable"]), (&json!("aborted"), &json!(true)));
}

/// Reliability 4: whoever sends SIGTERM ends the process, not the run.
#[sandboxed]
#[test]
fn reliability_4_a_run_whose_process_is_asked_to_stop_is_interrupted() {
    let project = CountingProject::trusting(ALLOWS);
    let running = project.start(APPEND_THEN_WAIT, &["--durable"]);
    project.wait_for("slow begins");
    kill_process(Pid::from_child(&running.child), Signal::TERM).expect("it can be stopped");
    let ended = running.end();
    assert_eq!((ended.status, &ended.json()["status"]), (Some(143), &json!("interrupted")));
    assert_eq!(only_run(&project)["status"], json!("interrupted"));
}

#[test]
fn d8_what_cannot_be_resumed_is_said_to_be() {
    let project = CountingProject::trusting("");
    let outcome = project.belljar(&["resume", "run_none"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(outcome.stderr, @"error: there is no run run_none in this project");
}

/// Modules that the runtime needs are the library's, whatever the workspace calls its own.
#[sandboxed]
#[test]
fn d8_a_workspace_does_not_stand_in_for_the_library() {
    let project = CountingProject::trusting(ALLOWS);
    let work = tempfile::tempdir().expect("a directory");
    for name in ["secrets.py", "hashlib.py", "random.py"] {
        std::fs::write(work.path().join(name), "raise RuntimeError('of the workspace')\n").unwrap();
    }
    let workspace = work.path().to_str().unwrap();
    let code = "import os, secrets\n[secrets.__file__.startswith('/work'), os.listdir('/work')]";
    let durable =
        ["run", "-l", "python", "--durable", "--json", "--workspace", workspace, "-c", code];
    let result = project.belljar(&durable).json();
    let files = json!(["hashlib.py", "random.py", "secrets.py"]);
    let found = &result["result"];
    assert_eq!(found[0], json!(false), "{result:#}");
    // Control: they were there to be found.
    let mut listed: Vec<_> = found[1].as_array().unwrap().clone();
    listed.sort_by_key(ToString::to_string);
    assert_eq!(json!(listed), files);
}
