//! Grants that clients of a real server may ask for, over MCP and HTTP: each denied request has a control.

use std::fs;

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{command::Place, mcp_support::serve_in, stdio_support::StdioServer};

const USER_FILE: &str = ".config/belljar/belljar.toml";

fn ask(server: &mut StdioServer, language: &str, code: &str, config: Value) -> Value {
    let arguments = json!({"language": language, "code": code, "sandbox_config": config});
    server.call("execute_code", arguments)
}

/// Fails unless the request was refused with this code, and with a hint that names flag and key.
fn assert_refused(answer: &Value, code: &str, flag: &str, key: &str) {
    assert_error(&answer["error"], code, flag, key);
}

fn assert_error(error: &Value, code: &str, flag: &str, key: &str) {
    assert_eq!(error["code"], code, "{error:#}");
    let hint = error["hint"].as_str().unwrap_or_default();
    for words in [format!("`belljar serve {flag}"), format!("`{key} = ["), "[grants]".to_owned()] {
        assert!(hint.contains(&words), "{words}: {error:#}");
    }
}

/// One request of each kind: language, code, `sandbox_config`, value, error code, flag, key.
fn requests(data: &str) -> Vec<(&'static str, String, Value, Value, &'static str, &'static str)> {
    let read = format!("open('{data}/in.txt').read()");
    let write = format!("open('{data}/out.txt', 'w').write('x')");
    vec![
        ("python", read, json!({"read": [data]}), json!("seen"), "permission.file", "read"),
        ("python", write, json!({"write": [data]}), json!(1), "permission.file", "write"),
        (
            "python",
            "import os; os.environ['STAGE']".to_owned(),
            json!({"env": ["STAGE"]}),
            json!("test"),
            "permission.host",
            "env",
        ),
        (
            "bash",
            "perl -e 'print 12'".to_owned(),
            json!({"commands": ["perl"]}),
            json!(12),
            "permission.command",
            "commands",
        ),
        (
            "python",
            "open('in.txt').read()".to_owned(),
            json!({"workspace": data}),
            json!("seen"),
            "permission.file",
            "workspace",
        ),
    ]
}

fn flag_of(key: &str) -> String {
    format!("--{}", if key == "commands" { "command" } else { key })
}

#[sandboxed]
#[test]
fn a5_clients_get_what_the_operators_flags_allow() {
    let place = Place::new();
    let data = place.file("data/in.txt", "seen").parent().unwrap().to_str().unwrap().to_owned();
    let flags = [
        "--read",
        &data,
        "--write",
        &data,
        "--env",
        "STAGE=test",
        "--command",
        "perl",
        "--workspace",
        &data,
    ];
    let mut allowing = StdioServer::start_with(&place, &flags);
    let mut strict = StdioServer::start_with(&place, &[]);
    for (language, code, config, value, error, key) in requests(&data) {
        let answer = ask(&mut allowing, language, &code, config.clone());
        assert_eq!(answer["result"], value, "{key}: {answer:#}");
        let refused = ask(&mut strict, language, &code, config);
        assert_refused(&refused, error, &flag_of(key), key);
    }
    // Any module, and values of the client's own, without a flag.
    let pickle = "import pickle; pickle.loads(pickle.dumps(3))";
    let answer = ask(&mut strict, "python", pickle, json!({"modules": ["pickle"]}));
    assert_eq!(answer["result"], 3, "{answer:#}");
    let own = json!({"env": {"STAGE": "own"}});
    let answer = ask(&mut strict, "python", "import os; os.environ['STAGE']", own);
    assert_eq!(answer["result"], "own", "{answer:#}");
    strict.end();
    allowing.end();
    let mut listing = StdioServer::start_with(&place, &["--module", "marshal"]);
    let refused = ask(&mut listing, "python", pickle, json!({"modules": ["pickle"]}));
    assert_refused(&refused, "permission.module", "--module", "modules");
    let marshal = "import marshal; marshal.loads(marshal.dumps(3))";
    let answer = ask(&mut listing, "python", marshal, json!({"modules": ["marshal"]}));
    assert_eq!(answer["result"], 3, "{answer:#}");
    listing.end();
}

/// The same over HTTP, allowed by the user's file.
#[sandboxed]
#[test]
fn a5_clients_get_what_the_users_file_allows() {
    let place = Place::new();
    let data = place.file("data/in.txt", "seen").parent().unwrap().to_str().unwrap().to_owned();
    let run = |config: &Value, language: &str, code: &str| {
        let mut request = json!({"language": language, "code": code, "grants": config});
        if let Some(path) = request["grants"].as_object_mut().unwrap().remove("workspace") {
            request["workspace"] = json!({"path": path});
        }
        request
    };
    {
        let strict = serve_in(&place, &[]);
        for (language, code, config, _, error, key) in requests(&data) {
            let request = run(&config, language, &code);
            let refused = strict.refused_run("POST /v1/runs", &request, 403);
            assert_error(&refused, error, &flag_of(key), key);
        }
    }
    let grants = format!(
        "[grants]\nread = ['{data}']\nwrite = ['{data}']\nworkspace = ['{data}']\n\
         env = ['STAGE=test']\ncommands = ['perl']\nmodules = []\n"
    );
    place.file(USER_FILE, &grants);
    let server = serve_in(&place, &[]);
    for (language, code, config, value, _, key) in requests(&data) {
        let answer = server.ask("POST /v1/runs", &run(&config, language, &code));
        assert_eq!(answer["result"], value, "{key}: {answer:#}");
    }
    let request = run(&json!({"modules": ["pickle"]}), "python", "import pickle");
    let refused = server.refused_run("POST /v1/runs", &request, 403);
    assert_error(&refused, "permission.module", "--module", "modules");
}

/// A project's file takes away, adds nothing, and the server says what does not count.
#[sandboxed]
#[test]
fn a5_a_projects_file_does_not_widen() {
    let place = Place::new();
    let data = place.file("data/in.txt", "seen").parent().unwrap().to_str().unwrap().to_owned();
    place.file(USER_FILE, "[grants]\ncommands = ['perl', 'rm']\n");
    let project = format!("[grants]\nread = ['{data}']\ncommands = ['perl', 'gcc']\n");
    place.file("work/belljar.toml", project);
    let server = serve_in(&place, &[]);
    let run = |language: &str, code: &str, grants: Value| json!({"language": language, "code": code, "grants": grants});
    let request = run("bash", "perl -e 'print 12'", json!({"commands": ["perl"]}));
    let answer = server.ask("POST /v1/runs", &request);
    assert_eq!(answer["result"], 12, "{answer:#}");
    for name in ["rm", "gcc"] {
        let request = run("bash", "true", json!({"commands": [name]}));
        let refused = server.refused_run("POST /v1/runs", &request, 403);
        assert_error(&refused, "permission.command", "--command", "commands");
    }
    let request = run("python", "1", json!({"read": [data]}));
    let refused = server.refused_run("POST /v1/runs", &request, 403);
    assert_error(&refused, "permission.file", "--read", "read");
    let log = fs::read_to_string(place.path().join("serve.log")).unwrap();
    for ignored in
        [format!("grants.read: {data} does not count"), "grants.commands: gcc does".into()]
    {
        assert!(log.contains(&ignored), "{ignored}: {log}");
    }
    assert!(!log.contains("perl"), "{log}");
}

/// C1: the directory stays as it is, and the answer lists what the code changed.
#[sandboxed]
#[test]
fn c1_changes_of_a_workspace_come_back_as_a_list() {
    let place = Place::new();
    let data = place.file("data/in.txt", "seen").parent().unwrap().to_str().unwrap().to_owned();
    place.file("data/old.txt", "old");
    let code = "echo more >> in.txt; echo new > new.txt; > old.txt";
    let mut server = StdioServer::start_with(&place, &["--workspace", &data]);
    let answer = ask(&mut server, "bash", code, json!({"workspace": data}));
    let changes = answer["changes"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let mut listed: Vec<_> = changes
        .iter()
        .map(|change| (change["path"].as_str().unwrap(), change["kind"].as_str().unwrap()))
        .collect();
    listed.sort_unstable();
    assert_eq!(
        listed,
        [("in.txt", "modified"), ("new.txt", "added"), ("old.txt", "modified")],
        "{answer:#}"
    );
    assert_eq!(fs::read_to_string(format!("{data}/in.txt")).unwrap(), "seen");
    // Working on it is allowed, changing it is not.
    let commit = json!({"workspace": {"path": data, "commit": true}});
    let refused = ask(&mut server, "bash", code, commit.clone());
    assert_refused(&refused, "permission.file", "--write", "write");
    server.end();
    let mut server = StdioServer::start_with(&place, &["--write", &data]);
    let answer = ask(&mut server, "bash", code, commit);
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(fs::read_to_string(format!("{data}/new.txt")).unwrap(), "new\n");
    server.end();
}

/// Code that needs a host. It has no network, so it reaches nobody.
const REACHING: &str = "import urllib.request\nurllib.request.urlopen('http://api.example.com/x')";

/// E2: a hint names what its reader can write: no flag of `belljar run` for a model.
#[sandboxed]
#[test]
fn e2_hints_are_in_the_words_of_the_client() {
    let place = Place::new();
    let hint = |server: &mut StdioServer, language: &str, code: &str| {
        let answer = ask(server, language, code, json!({}));
        let hint = answer["error"]["hint"].as_str();
        hint.unwrap_or_else(|| panic!("no hint: {answer:#}")).to_owned()
    };
    let mut server = StdioServer::start_with(&place, &[]);
    let may_ask = hint(&mut server, "python", "import subprocess");
    assert!(may_ask.contains("`modules: [\"subprocess\"]` in `sandbox_config`"), "{may_ask}");
    assert!(!may_ask.contains("--module"), "{may_ask}");
    let file = hint(&mut server, "typescript", "fs.readFileSync('/data/rows.csv')");
    assert!(file.contains("`belljar serve --read /data/rows.csv`"), "{file}");
    assert!(!file.contains("Grant it with"), "{file}");
    let disk = hint(&mut server, "bash", "head -c 400M /dev/zero > /tmp/zeros");
    assert!(disk.contains("`disk_mb` in `sandbox_config`") && !disk.contains("--disk"), "{disk}");
    let full = "open('/tmp/x', 'w').write('x' * (3 << 20))";
    let answer = ask(&mut server, "python", full, json!({"diskMb": 2}));
    let told = answer["error"]["hint"].as_str().unwrap_or_default();
    assert!(
        told.contains("`disk_mb` in `sandbox_config`") && !told.contains("--disk"),
        "{answer:#}"
    );
    let may_not = hint(&mut server, "python", REACHING);
    assert!(may_not.contains("`belljar serve --net api.example.com`"), "{may_not}");
    server.end();
    let mut server = StdioServer::start_with(&place, &["--net", "*.example.com"]);
    let may_ask = hint(&mut server, "python", REACHING);
    assert!(may_ask.contains("`network: [\"api.example.com\"]`"), "{may_ask}");
    server.end();
    let mut server = StdioServer::start_with(&place, &["--module", "pickle"]);
    let may_not = hint(&mut server, "python", "import subprocess");
    assert!(may_not.contains("`belljar serve --module subprocess`"), "{may_not}");
    assert!(may_not.contains("[grants]"), "{may_not}");
    server.end();
    // Control: at the command line the hint is a flag.
    let ran = place.belljar(&["run", "-l", "python", "-c", "import subprocess", "--json"]);
    let told = ran.json()["error"]["hint"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("--module subprocess"), "{ran:#?}");
    let ran = place.belljar(&["run", "-l", "python", "-c", REACHING, "--json"]);
    let told = ran.json()["error"]["hint"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("--net api.example.com"), "{ran:#?}");
    // No grant names an address, or a name of this machine or its network.
    for other in ["127.0.0.1", "localhost", "printer.local"] {
        let code = REACHING.replace("api.example.com", other);
        let error =
            place.belljar(&["run", "-l", "python", "-c", &code, "--json"]).json()["error"].take();
        assert_eq!(error["code"], "permission.network", "{error:#}");
        assert_eq!(error["missing"], Value::Null, "{error:#}");
    }
}
