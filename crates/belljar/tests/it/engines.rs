//! A12: every way to run code can name an engine, and refuses one that is unknown or does not run the
//! language.

use belljar_contract::EngineName;
use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{command::Place, mcp_support::serve_in, stdio_support::StdioServer};

/// The message of a run that asks `quickjs` to run Python.
const MISMATCH: &str = "the engine quickjs does not run python";
const MISMATCH_HINT: &str = "engines that run python: cpython";

fn unknown(name: &str) -> String {
    format!("there is no engine {name:?}; engines: {}", EngineName::names())
}

/// The value of a result and the engine that gave it.
fn ran(result: &Value) -> (&Value, &Value) {
    (&result["result"], &result["isolation"]["engine"])
}

fn is_mismatch(error: &Value) -> bool {
    error["code"] == "request.invalid"
        && error["message"] == MISMATCH
        && error["hint"] == MISMATCH_HINT
}

#[sandboxed]
#[test]
fn a12_the_command_line_names_an_engine() {
    let place = Place::new();
    let run = |more: &[&str]| place.belljar(&[&["run", "--json", "-c", "1 + 1"], more].concat());
    let result = run(&["--engine", "quickjs"]).json();
    assert_eq!(ran(&result), (&json!(2), &json!("quickjs")), "{result:#}");
    // Without a language, the code is in the engine's own.
    let result = place.belljar(&["run", "--json", "--engine", "cpython", "-c", "sum([1, 2])"]);
    assert_eq!(ran(&result.json()), (&json!(3), &json!("cpython")), "{result:#?}");
    let refused = run(&["--engine", "quickjs", "-l", "python"]);
    assert_eq!(refused.status, Some(1));
    assert!(is_mismatch(&refused.json()["error"]), "{refused:#?}");
    let refused = run(&["--engine", "perl"]);
    assert_eq!(refused.status, Some(2));
    let listed = format!("[possible values: {}]", EngineName::names());
    assert!(refused.stderr.contains(&listed), "{refused:#?}");
}

#[sandboxed]
#[test]
fn a12_a_file_names_the_engine_of_a_language() {
    let place = Place::new();
    place.file("work/belljar.toml", "[engines]\npython = 'cpython'\n");
    let result = place.belljar(&["run", "--json", "-l", "python", "-c", "1 + 1"]).json();
    assert_eq!(ran(&result), (&json!(2), &json!("cpython")), "{result:#}");
    let refused = |file: &str| {
        place.file("work/belljar.toml", file);
        let outcome = place.belljar(&["run", "-c", "1"]);
        assert_eq!(outcome.status, Some(2), "{outcome:#?}");
        outcome.stderr.replace(place.path().to_str().unwrap(), "[place]").trim_end().to_owned()
    };
    let at = "error: [place]/work/belljar.toml, line 2: engines.python";
    assert_eq!(refused("[engines]\npython = 'perl'\n"), format!("{at}: {}", unknown("perl")));
    assert_eq!(
        refused("[engines]\npython = 'quickjs'\n"),
        format!("{at}: {MISMATCH}; {MISMATCH_HINT}")
    );
}

/// The record of a durable run has the engine that its configuration chose.
#[sandboxed]
#[test]
fn a12_a_durable_run_keeps_its_engine() {
    for (file, engine) in [("", None), ("[engines]\ntypescript = 'quickjs'\n", Some("quickjs"))] {
        let place = Place::new();
        place.file("work/belljar.toml", file);
        let result = place.belljar(&["run", "--json", "--durable", "-c", "1 + 1"]).json();
        assert_eq!(ran(&result), (&json!(2), &json!("quickjs")), "{result:#}");
        let store = belljar_store::Store::open(&place.path().join("work/.belljar")).unwrap();
        let id = result["id"].as_str().unwrap();
        let record = crate::command::block_on(store.run(&id.into())).unwrap().unwrap();
        let request: Value = serde_json::from_str(&record.request_json).unwrap();
        assert_eq!(request.get("engine").and_then(Value::as_str), engine, "{request:#}");
    }
}

#[sandboxed]
#[test]
fn a12_the_http_api_names_an_engine() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let run = |body: Value| server.ask("POST /v1/runs", &body);
    let result = run(json!({ "code": "sum([1, 2])", "engine": "cpython" }));
    assert_eq!(ran(&result), (&json!(3), &json!("cpython")), "{result:#}");
    let mixed = json!({ "code": "1", "engine": "quickjs", "language": "python" });
    let refused = server.refused_run("POST /v1/runs", &mixed, 422);
    assert!(is_mismatch(&refused), "{refused:#}");
    let refused = server.api("POST /v1/runs", r#"{"code": "1", "engine": "perl"}"#);
    assert_eq!(refused.status, 400, "{refused:#?}");
    let error: Value = serde_json::from_str(&refused.body).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains(&unknown("perl")), "{message}");
}

#[sandboxed]
#[test]
fn a12_a_session_names_an_engine_and_its_runs_keep_it() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let made = server.ask("POST /v1/sessions", &json!({ "engine": "cpython" }));
    assert_eq!(made["language"], "python", "{made:#}");
    let path = format!("POST /v1/sessions/{}/runs", made["session_id"].as_str().unwrap());
    let run = |body: Value| server.ask(&path, &body);
    run(json!({ "code": "x = 1" }));
    let result = run(json!({ "code": "x + 1", "engine": "cpython" }));
    assert_eq!(ran(&result), (&json!(2), &json!("cpython")), "{result:#}");
    let refused = |body: Value| server.refused_run(&path, &body, 422);
    let error = refused(json!({ "code": "1", "engine": "bash", "language": "bash" }));
    assert_eq!(error["message"], "this session runs on cpython, not on bash", "{error:#}");
    let error = refused(json!({ "code": "1", "language": "bash" }));
    assert_eq!(error["message"], "this session runs python, not bash", "{error:#}");
    let refused = server.api("POST /v1/sessions", r#"{"engine": "quickjs", "language": "python"}"#);
    assert_eq!(refused.status, 403, "{refused:#?}");
    assert!(refused.body.contains(MISMATCH_HINT), "{refused:#?}");
    // The command line asks the same.
    let id = place.belljar(&["session", "new", "--engine", "bash"]).stdout;
    let exec = place.belljar(&["session", "exec", id.trim(), "-c", "echo hello"]);
    assert_eq!(exec.stdout, "hello\n", "{exec:#?}");
    let refused = place.belljar(&["session", "new", "--engine", "bash", "-l", "ts"]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("the engine bash does not run typescript"), "{refused:#?}");
}

#[sandboxed]
#[test]
fn a12_a_model_names_an_engine() {
    let place = Place::new();
    let mut server = StdioServer::start(&place);
    let mut run = |tool: &str, arguments: Value| server.call(tool, arguments);
    let result = run("execute_code", json!({ "code": "sum([1, 2])", "engine": "cpython" }));
    assert_eq!(result["result"], 3, "{result:#}");
    let refused =
        run("execute_code", json!({ "code": "1", "language": "python", "engine": "quickjs" }));
    assert_eq!(refused["error"]["message"], MISMATCH, "{refused:#}");
    let refused = run("execute_code", json!({ "code": "1", "engine": "perl" }));
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(message, format!("`engine`: {}", unknown("perl")), "{refused:#}");
    let made = run("sandbox", json!({ "action": "create", "engine": "bash" }));
    assert_eq!(made["language"], "bash", "{made:#}");
    server.end();
}

const TASKS: &str = "
tasks:
  - {id: named, type: code_execution, engine: cpython, code: 'sum([1, 2])'}
  - {id: usual, type: code_execution, code: 'return 1 + 1'}
  - {id: box, type: sandbox, do: create, engine: cpython}
";

#[sandboxed]
#[test]
fn a12_a_workflow_names_an_engine() {
    let place = Place::new();
    let run = |file: &str| {
        place.file("work/flow.yaml", file);
        place.belljar(&["workflow", "run", "flow.yaml", "--json", "--enable-code-execution"])
    };
    let outcome = run(TASKS);
    assert_eq!(outcome.status, Some(0), "{outcome:#?}");
    let output = &outcome.json()["output"];
    assert_eq!((&output["named"], &output["usual"]), (&json!(3), &json!(2)), "{output:#}");
    assert_eq!(output["box"]["language"], "python", "{output:#}");
    let refused =
        run(&TASKS.replace("engine: cpython, code", "engine: cpython, language: ts, code"));
    assert_eq!(refused.status, Some(2));
    let fault = &refused.json()["faults"][0];
    assert_eq!(fault["message"], "the engine cpython does not run typescript", "{refused:#?}");
    assert_eq!(fault["help"], "engines that run typescript: quickjs", "{refused:#?}");
    // An engine of the shell needs the operator's leave for the shell.
    let refused = run(&TASKS.replace("cpython, code", "bash, code"));
    assert_eq!(refused.json()["faults"][0]["message"], "the shell is off", "{refused:#?}");
}
