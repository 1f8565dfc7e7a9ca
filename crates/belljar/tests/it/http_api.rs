//! E3: the plain HTTP API of a real server: runs in every language, as they happen, within what the
//! operator allows; approvals, events, metrics; and an end that leaves nothing behind.

use std::fs;

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::Place,
    descendants::descendants,
    http_support::http_tool,
    mcp_support::{serve_in, within},
    project_support::CountingProject,
};

fn code(language: &str, code: &str) -> Value {
    json!({ "language": language, "code": code })
}

#[sandboxed]
#[test]
fn e3_code_of_every_language_runs() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    for (language, text, wanted) in [
        ("typescript", "const n: number = 2; console.log('hi'); return n * 2", json!(4)),
        ("javascript", "console.log('hi'); 5", json!(5)),
        ("python", "print('hi')\n[x * 2 for x in context['xs']]", json!([2, 4])),
        ("bash", "echo hi; echo '{\"a\": 1}'", json!({"a": 1})),
    ] {
        let mut request = code(language, text);
        request["context"] = json!({"xs": [1, 2]});
        let run = server.ask("POST /v1/runs", &request);
        assert_eq!((&run["status"], &run["result"]), (&json!("completed"), &wanted), "{run:#}");
        assert!(run["stdout"].as_str().is_some_and(|text| text.starts_with("hi\n")), "{run:#}");
        assert_eq!(run["isolation"]["tier"], "full", "{run:#}");
        let path = format!("GET /v1/runs/{}", run["id"].as_str().unwrap());
        assert_eq!(server.ask(&path, &Value::Null), run);
    }
    let failed = server.ask("POST /v1/runs", &code("typescript", "\nthrow new Error('no')"));
    assert_eq!((&failed["status"], &failed["error"]["line"]), (&json!("failed"), &json!(2)));
    let listed = server.ask("GET /v1/runs", &Value::Null);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 5, "{listed:#}");
    let metrics = server.api("GET /metrics", "").body;
    assert!(metrics.contains("code_execution_total{status=\"completed\"} 4"), "{metrics}");
    assert!(metrics.contains("code_execution_errors_total{type=\"RuntimeError\"} 1"), "{metrics}");
    assert!(metrics.contains("sandbox_startup_ms_count 5"), "{metrics}");
}

/// The code never ends, so what is heard is heard while it runs.
#[sandboxed]
#[test]
fn e3_output_is_heard_while_the_code_runs_and_kept_when_it_is_ended() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    for (language, text) in [
        ("typescript", "console.log('é 1'); console.error('2'); while (true) {}"),
        (
            "python",
            "import sys\nprint('é 1', flush=True)\nprint('2', file=sys.stderr, flush=True)\nwhile True: pass",
        ),
        ("bash", "echo 'é 1'; echo 2 >&2; while :; do :; done"),
    ] {
        let body = code(language, text).to_string();
        let mut events = server.follow("POST /v1/runs", "", &body);
        let id = events.until("started")["id"].as_str().unwrap().to_owned();
        assert_eq!(events.until("stdout"), json!({"text": "é 1\n"}), "{language}");
        assert_eq!(events.until("stderr"), json!({"text": "2\n"}), "{language}");
        let listed = server.ask("GET /v1/runs?limit=1", &Value::Null);
        assert_eq!(listed["runs"][0]["status"], "running", "{listed:#}");
        let ended = server.ask(&format!("DELETE /v1/runs/{id}"), &Value::Null);
        assert_eq!((&ended["status"], &ended["stdout"]), (&json!("aborted"), &json!("é 1\n")));
        assert_eq!(events.until("result"), ended);
    }
}

#[sandboxed]
#[test]
fn e3_a_client_that_goes_away_takes_its_cell_along() {
    let place = Place::new();
    let server = serve_in(&place, &["--pool", "0"]);
    server.ask("POST /v1/runs", &code("typescript", "1"));
    // Warden and zygote are always there; a cell is two more.
    let is_idle = || (descendants(server.pid()).len() <= 2).then_some(());
    within("the end of the first cell", is_idle);
    let body = code("typescript", "console.log(1); while (true) {}").to_string();
    let mut events = server.follow("POST /v1/runs", "", &body);
    events.until("stdout");
    assert_eq!(is_idle(), None, "its cell is there");
    drop(events);
    within("the end of its cell", is_idle);
    let listed = server.ask("GET /v1/runs", &Value::Null);
    assert!(listed["runs"].as_array().unwrap().iter().all(|run| run["status"] != "running"));
}

#[sandboxed]
#[test]
fn e3_grants_are_within_what_the_operator_allows() {
    let place = Place::new();
    let secret = place.file("secret.txt", "secret");
    let open = place.file("open/data.txt", "data");
    let read = |path: &std::path::Path| {
        let text = "import os\nopen(os.environ['P']).read()";
        json!({
            "language": "python", "code": text,
            "grants": {"read": [path], "env": {"P": path}},
        })
    };
    let directory = open.parent().unwrap().to_str().unwrap();
    let server = serve_in(&place, &["--read", directory, "--write", directory]);
    let run = server.ask("POST /v1/runs", &read(&open));
    assert_eq!(run["result"], "data", "{run:#}");
    let runs = "POST /v1/runs";
    let refused = server.refused_run(runs, &read(&secret), 403);
    assert_eq!(refused["code"], "permission.file", "{refused:#}");
    assert_eq!(refused["type"], "PermissionError", "{refused:#}");
    let up = format!("{directory}/../secret.txt");
    let refused = server.refused_run(runs, &read(up.as_ref()), 403);
    assert_eq!(refused["code"], "permission.file", "{refused:#}");

    let work = json!({
        "language": "bash", "code": "echo more >> data.txt; echo new > new.txt",
        "workspace": {"path": directory, "commit": true},
    });
    let run = server.ask("POST /v1/runs", &work);
    assert_eq!(run["success"], true, "{run:#}");
    assert_eq!(fs::read_to_string(&open).unwrap(), "datamore\n");
    let elsewhere = json!({
        "language": "bash", "code": "true", "workspace": {"path": place.path(), "commit": true},
    });
    let refused = server.refused_run(runs, &elsewhere, 403);
    assert_eq!(refused["code"], "permission.file", "{refused:#}");
    let limits = json!({"code": "while (true) {}", "limits": {"timeout_ms": 200}});
    let late = server.ask(runs, &limits);
    assert_eq!(late["error"]["code"], "limit.timeout", "{late:#}");
    let net = json!({"code": "1", "grants": {"net": ["example.com"]}});
    let refused = server.refused_run(runs, &net, 403);
    assert_eq!(refused["code"], "permission.network", "{refused:#}");
}

/// Code that fails answers 200, whatever it failed with; a request that is refused does not.
#[sandboxed]
#[test]
fn e3_a_refused_run_has_a_status_of_its_own() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    for (request, status, kind, code) in [
        (
            json!({"code": "1", "language": "python", "engine": "quickjs"}),
            422,
            "RequestError",
            "request.invalid",
        ),
        (
            json!({"code": "1", "limits": {"timeout_ms": 86_400_000_000_u64}}),
            403,
            "LimitError",
            "limit.maximum",
        ),
        (json!({"code": " ".repeat(60_000)}), 422, "LimitError", "limit.code"),
        (
            json!({"code": "1", "context": "x".repeat(100), "limits": {"context_bytes": 10}}),
            422,
            "LimitError",
            "limit.context",
        ),
    ] {
        let error = server.refused_run("POST /v1/runs", &request, status);
        assert_eq!((&error["type"], &error["code"]), (&json!(kind), &json!(code)), "{error:#}");
    }
    for (language, text, code) in [
        ("typescript", "throw new Error('no')", "runtime.thrown"),
        ("typescript", "return }", "syntax.invalid"),
        (
            "python",
            "import socket\nsocket.create_connection(('127.0.0.1', 1))",
            "permission.module",
        ),
    ] {
        let failed = server.ask("POST /v1/runs", &self::code(language, text));
        assert_eq!(failed["error"]["code"], code, "{failed:#}");
    }
}

#[sandboxed]
#[test]
fn d7_a_call_is_decided_over_http_and_made_once() {
    let project = CountingProject::with("[permissions]\nask = [\"count__*\"]\n");
    let server = serve_in(&project.place, &[]);
    let text = "return await mcp.count.append({ text: 'once' })";
    let waits = server.ask("POST /v1/runs", &code("typescript", text));
    assert_eq!(waits["status"], "approval_required", "{waits:#}");
    let open = server.ask("GET /v1/approvals", &Value::Null);
    assert_eq!(open["approvals"][0]["tool"], "count__append", "{open:#}");
    assert_eq!(open["approvals"][0]["arguments"], json!({"text": "once"}), "{open:#}");
    let id = open["approvals"][0]["id"].as_str().unwrap();
    let path = format!("POST /v1/approvals/{id}");
    assert_eq!(project.counted(), [""; 0], "nothing was called before it was allowed");
    server.ask(&path, &json!({"decision": "approve"}));
    let run = format!("GET /v1/runs/{}?wait_ms=60000", waits["id"].as_str().unwrap());
    let run = server.ask(&run, &Value::Null);
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(project.counted(), ["once"]);
    let late = server.api(&path, &json!({"decision": "deny"}).to_string());
    assert_eq!(late.status, 409, "{late:#?}");
    let found = server.ask("POST /v1/tools/search", &json!({"intent": "append a line", "k": 1}));
    assert_eq!(found["tools"][0]["name"], "count__append", "{found:#}");
    // Heard by who follows, too; and no is no.
    let body = code("typescript", text).to_string();
    let mut events = server.follow("POST /v1/runs", "", &body);
    let waits = events.until("approval");
    let path = format!("POST /v1/approvals/{}", waits["id"].as_str().unwrap());
    server.ask(&path, &json!({"decision": "deny"}));
    assert_eq!(events.until("result")["error"]["code"], "approval.denied");
    assert_eq!(project.counted(), ["once"]);
}

#[sandboxed]
#[test]
fn e3_a_durable_run_outlives_its_client_and_its_host() {
    let project = CountingProject::trusting("[permissions]\nallow = [\"count__*\"]\n");
    let server = serve_in(&project.place, &[]);
    let text = "console.log('here'); await mcp.count.append({ text: 'a' }); return 'done'";
    let body = json!({"code": text, "durable": true}).to_string();
    let mut events = server.follow("POST /v1/runs", "", &body);
    let id = events.until("started")["id"].as_str().unwrap().to_owned();
    drop(events);
    let look = format!("GET /v1/runs/{id}?wait_ms=60000");
    assert_eq!(server.ask(&look, &Value::Null)["result"], "done");
    server.stop();
    let server = serve_in(&project.place, &[]);
    assert_eq!(server.ask(&look, &Value::Null)["result"], "done");
    assert_eq!(project.counted(), ["a"]);
    let listed = server.ask("GET /v1/runs", &Value::Null);
    assert_eq!(listed["runs"][0]["id"], json!(id), "{listed:#}");
}

#[sandboxed]
#[test]
fn e3_events_are_told_again_from_where_a_client_was() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let run = server.ask("POST /v1/runs", &code("typescript", "1"));
    let mut events = server.follow("GET /v1/events", "", "");
    let (first, name, data) = events.next();
    assert_eq!((name.as_str(), &data["run_id"]), ("code_execution_started", &run["id"]));
    let (second, name, _) = events.next();
    assert_eq!(name, "code_execution_completed");
    drop(events);
    let mut again = server.follow("GET /v1/events", &format!("Last-Event-ID: {first}\r\n"), "");
    assert_eq!(again.next().0, second);
    let next = server.ask("POST /v1/runs", &code("typescript", "2"));
    assert_eq!(again.next().2["run_id"], next["id"]);
}

#[sandboxed]
#[test]
fn a10_a_server_that_is_told_to_end_leaves_no_process() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let body = code("typescript", "console.log(1); while (true) {}").to_string();
    let mut runs = server.follow("POST /v1/runs", "", &body);
    runs.until("stdout");
    let mut events = server.follow("GET /v1/events", "", "");
    events.next();
    let family = descendants(server.pid());
    assert!(family.len() >= 3, "{family:?}");
    server.stop();
    let is_there =
        |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    let left: Vec<u32> = family.into_iter().filter(is_there).collect();
    assert_eq!(left, Vec::<u32>::new(), "processes are left behind");
}

#[sandboxed]
#[test]
fn e3_requests_are_logged_by_name() {
    let place = Place::new();
    let server = serve_in(&place, &["--log", "json"]);
    let bearer = format!("Bearer {}", server.token);
    let headers =
        [("Host", server.address()), ("Authorization", &bearer), ("X-Request-Id", "mine-1")];
    let reply = server.http("GET /v1/sessions", &headers, "");
    assert!(reply.head.contains("x-request-id: mine-1"), "{reply:#?}");
    server.stop();
    let log = fs::read_to_string(place.path().join("serve.log")).unwrap();
    let lines: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let line = lines.iter().find(|line| line["fields"]["request_id"] == "mine-1");
    let fields = &line.unwrap_or_else(|| panic!("{log}"))["fields"];
    assert_eq!((&fields["path"], &fields["status"]), (&json!("/v1/sessions"), &json!(200)));
    assert!(!log.contains(&bearer[7..]), "the token is in the log");
}

#[sandboxed]
#[test]
fn e3_the_real_server_keeps_to_its_document() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let settings =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../belljar-server/tests/schemathesis.toml");
    let mut st = http_tool(&place, "st");
    st.args(["--config-file", settings, "run", "--no-color", "--generation-deterministic"])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "10"])
        .args(["--request-timeout", "60", "--header"])
        .arg(format!("Authorization: Bearer {}", server.token))
        .arg(format!("http://{}/openapi.json", server.address()));
    let done = crate::command::outcome(st.output().expect("it starts"));
    assert_eq!(done.status, Some(0), "{}{}", done.stdout, done.stderr);
    // And is none the worse for it.
    assert_eq!(server.ask("POST /v1/runs", &code("typescript", "1 + 1"))["result"], 2);
}
