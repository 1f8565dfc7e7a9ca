//! A5, E2, F8, N1: hosts that a session was granted, and no others, in each of its runs, on every surface.
//! Each refusal has a control that reaches a server.

use std::collections::BTreeSet;

use belljar_testing::{as_root, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{Place, as_ordinary_user},
    network_session_support::{
        GET, Website, audit, belljar, checkpoint, fork, get, host, id_in, open, open_python,
        rollback, run, value,
    },
};

const USER_FILE: &str = ".config/belljar/belljar.toml";
/// Nothing listens there: connections to it are refused before anybody looks.
const ELSEWHERE: &str = "127.0.0.1:9";

#[sandboxed]
#[test]
fn a5_a_python_session_reaches_the_host_that_was_granted_and_no_other() {
    let (granted, other) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &granted.address, "--net", &other.address]);
    let id = open_python(&server, &[&granted.address]);
    assert_eq!(get(&server, &id, &granted), "/x");
    let refused = run(&server, &id, &format!("get('{}')", other.address));
    assert_eq!(refused["result"], 403, "{refused:#}");
    let blocked = format!(
        "[blocked] network: GET {0}/x: no rule allows this port of the host",
        other.address
    );
    assert_eq!(refused["logs"], json!([blocked]), "{refused:#}");
    assert_eq!(get(&server, &id, &granted), "/x");
    assert_eq!((granted.served(), other.served()), (2, 0));
    // Each connection is a row of the run that was under way.
    let (rows, refused_rows) = (audit(&place, &granted, 2), audit(&place, &other, 1));
    assert!(rows.iter().all(|row| row["decision"] == "allow"), "{rows:#?}");
    assert_ne!(rows[0]["run_id"], rows[1]["run_id"], "{rows:#?}");
    assert_eq!(refused_rows[0]["run_id"], refused["id"], "{refused_rows:#?}");
    let metrics = server.api("GET /metrics", "").body;
    for line in ["{decision=\"allow\"} 2", "{decision=\"deny\"} 1"] {
        assert!(metrics.contains(&format!("network_connections_total{line}")), "{metrics}");
    }
    // Control: a session without the grant has no network, however many hosts the operator allows.
    let without = open_python(&server, &[]);
    assert_eq!(get(&server, &without, &granted), "no network");
    assert_eq!(granted.served(), 2);
}

#[sandboxed]
#[test]
fn a5_a_bash_session_from_the_command_line_reaches_its_host() {
    let (granted, other) = (Website::start(), Website::start());
    let place = Place::new();
    let flags = ["--net", &granted.address, "--net", &other.address, "--command", "curl"];
    let server = host(&place, &flags);
    let new = ["session", "new", "-l", "bash", "--command", "curl", "--net", &granted.address];
    let made = belljar(&place, &new);
    assert_eq!(made.status, Some(0), "{made:#?}");
    let code = format!(
        "curl -sS http://{}/one; echo; curl -sS -o /dev/null -w '%{{http_code}}' http://{}/two",
        granted.address, other.address
    );
    let id = made.stdout.trim();
    for times in 1..3 {
        let ran = belljar(&place, &["session", "exec", id, "-c", &code]);
        assert_eq!((ran.status, ran.stdout.trim_end()), (Some(0), "/one\n403\n403"), "{ran:#?}");
        assert!(ran.stderr.contains("[blocked] network: GET"), "{ran:#?}");
        assert_eq!((granted.served(), other.served()), (times, 0));
    }
    // A host that the operator does not allow is refused before there is a session.
    let refused = belljar(&place, &["session", "new", "-l", "bash", "--net", ELSEWHERE]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains(&format!("belljar serve --net {ELSEWHERE}")), "{refused:#?}");
    // Hosts are the session's, not those of one of its runs.
    let run = json!({ "code": "echo", "grants": { "net": [granted.address] } });
    let refused = server.refused_run(&format!("POST /v1/sessions/{id}/runs"), &run, 422);
    assert_eq!(refused["code"], "request.invalid", "{refused:#}");
}

/// Code whose value is what it fetches, or the code of a refusal.
fn fetching(language: &str, site: &Website) -> String {
    let url = format!("'http://{}/x'", site.address);
    match language {
        "python" => format!(
            "try:\n    seen = fetch({url}).text()\nexcept PermissionError as error:\n    seen = error.code\nseen"
        ),
        _ => format!(
            "await fetch({url}).then((answer) => answer.text()).catch((error) => error.code)"
        ),
    }
}

/// N2: code of a session fetches from its hosts in each run, after a rollback and in forks, and from no other
/// host. Each fetch is a row of its own run.
#[sandboxed]
#[test]
fn n2_code_of_a_session_fetches() {
    let (granted, other) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &granted.address, "--net", &other.address]);
    for (times, language) in (0..).zip(["typescript", "python"]) {
        let id = open(&server, language, json!({ "net": [granted.address] }));
        let (fetches, refused) = (fetching(language, &granted), fetching(language, &other));
        for session in [id.clone(), fork(&server, &id)] {
            assert_eq!(value(&server, &session, &fetches), "/x", "{language}");
            let point = checkpoint(&server, &session);
            assert_eq!(value(&server, &session, &refused), "permission.network", "{language}");
            rollback(&server, &session, &point);
            assert_eq!(value(&server, &session, &fetches), "/x", "{language}");
        }
        assert_eq!((granted.served(), other.served()), (4 * (times + 1), 0), "{language}");
        // Control: without hosts there is none.
        let without = open(&server, language, json!({}));
        assert_eq!(value(&server, &without, &fetches), "permission.network", "{language}");
    }
    let rows = audit(&place, &granted, 8);
    let runs: BTreeSet<String> = rows.iter().map(|row| row["run_id"].to_string()).collect();
    assert_eq!(runs.len(), 8, "{rows:#?}");
}

/// N1: the rules of the files count for a session as they do for a run.
#[sandboxed]
#[test]
fn n1_the_files_narrow_what_a_session_reaches() {
    let (open_site, denied, left_out) = (Website::start(), Website::start(), Website::start());
    let place = Place::new();
    let wide = format!("[net]\nallow = ['127.0.0.1:*']\ndeny = ['{}']\n", denied.address);
    let allow = [&open_site, &denied, &left_out].map(|site| format!("'{}'", site.address));
    place.file(USER_FILE, wide.replace("'127.0.0.1:*'", &allow.join(", ")));
    let narrow = format!("[net]\nallow = ['{}', '{}']\n", open_site.address, denied.address);
    place.file("work/belljar.toml", narrow);
    let server = host(&place, &[]);
    // All that the rules name.
    let asked = json!({ "action": "create", "language": "python", "network": true });
    let id = id_in(&server.call("sandbox", &asked)["structuredContent"]);
    value(&server, &id, GET);
    assert_eq!(get(&server, &id, &open_site), "/x");
    assert_eq!(get(&server, &id, &denied), 403);
    assert_eq!(get(&server, &id, &left_out), 403);
    let request = json!({ "language": "python", "grants": { "net": [left_out.address] } });
    let refused = server.api("POST /v1/sessions", &request.to_string());
    assert!(refused.status >= 400, "{refused:#?}");
    assert!(refused.body.contains("is not allowed"), "{refused:#?}");
    assert_eq!([&open_site, &denied, &left_out].map(Website::served), [1, 0, 0]);
}

/// N1: a yes covers the run that asked. The next run of the session asks again.
#[sandboxed]
#[test]
fn n1_a_person_is_asked_in_each_run_of_a_session() {
    let site = Website::start();
    let place = Place::new();
    place.file(USER_FILE, format!("[net]\nask = ['{}']\n", site.address));
    let server = host(&place, &["--net", &site.address]);
    let id = open_python(&server, &[&site.address]);
    let code = format!("[get('{0}', '/a'), get('{0}', '/b')]", site.address);
    let verdicts = [("approve", json!(["/a", "/b"])), ("deny", json!([403, 403]))];
    for (verdict, found) in verdicts {
        let waiting = run(&server, &id, &code);
        assert_eq!(waiting["status"], "approval_required", "{waiting:#}");
        let [asked] = waiting["approvals"].as_array().expect("a list").as_slice() else {
            panic!("{waiting:#}")
        };
        assert_eq!(asked["tool"], format!("net {}", site.address), "{asked:#}");
        let question = asked["id"].as_str().expect("an id");
        assert_eq!(belljar(&place, &["approvals", verdict, question]).status, Some(0));
        let path = format!("GET /v1/runs/{}?wait_ms=60000", waiting["id"].as_str().expect("an id"));
        let ended = server.ask(&path, &Value::Null);
        assert_eq!(
            (&ended["status"], &ended["result"]),
            (&json!("completed"), &found),
            "{ended:#}"
        );
        assert_eq!(site.served(), 2);
    }
}

#[sandboxed]
#[test]
fn e2_a_model_opens_a_session_with_hosts() {
    let (own, other) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &own.address, "--net", &other.address]);
    let create = |network: Value| {
        let asked = json!({ "action": "create", "language": "python", "network": network });
        server.call("sandbox", &asked)
    };
    for (network, found) in [
        (json!(true), [json!("/x"), json!("/x")]),
        (json!([own.address]), [json!("/x"), json!(403)]),
    ] {
        let made = create(network);
        let id = id_in(&made["structuredContent"]);
        value(&server, &id, GET);
        let execute = |site: &Website| {
            let code = format!("get('{}')", site.address);
            let asked = json!({ "code": code, "language": "python", "session_id": id });
            server.call("execute_code", &asked)["structuredContent"]["result"].clone()
        };
        assert_eq!([execute(&own), execute(&other)], found);
    }
    let refused = create(json!([ELSEWHERE]));
    assert_eq!(refused["isError"], true, "{refused:#}");
    assert!(
        refused.to_string().contains(&format!("belljar serve --net {ELSEWHERE}")),
        "{refused:#}"
    );
}

#[sandboxed]
#[test]
fn f8_a_sandbox_of_a_workflow_has_the_network_that_is_allowed() {
    let (own, other) = (Website::start(), Website::start());
    let place = Place::new();
    let agent = |network: &str| {
        let code = format!("{GET}[get('{}'), get('{}')]", own.address, other.address);
        let code = code.replace('\n', "\n          ");
        format!(
            "name: a\nnodes:\n  - name: make\n    uses: code.sandbox\n    with: {{action: create, language: \
             python, allow_network: {network}}}\n    output: box\n  - name: use\n    uses: code.sandbox\n    \
             with:\n      action: execute\n      sandbox_id: '{{{{ state.box.sandbox_id }}}}'\n      code: |\n          \
             {code}\n"
        )
    };
    let start = |name: &str, network: &str, flags: &[&str]| {
        place.file(&format!("work/{name}"), agent(network));
        let arguments = ["workflow", "run", name, "--json", "--enable-code-execution"];
        let ran = belljar(&place, &[&arguments[..], flags].concat());
        format!("{}{}", ran.stdout, ran.stderr).replace([' ', '\n'], "")
    };
    let flags = ["--net", own.address.as_str()];
    for (name, network) in [("all.yaml", "true"), ("list.yaml", &format!("['{}']", own.address))] {
        let said = start(name, network, &flags);
        assert!(said.contains("[\"/x\",403]"), "{name}: {said}");
    }
    assert_eq!((own.served(), other.served()), (2, 0));
    let said = start("none.yaml", "false", &flags);
    assert!(said.contains("[\"nonetwork\",\"nonetwork\"]"), "{said}");
    let said = start("refused.yaml", &format!("['{}']", other.address), &flags);
    assert!(said.contains("--netHOST"), "{said}");
    assert_eq!((own.served(), other.served()), (2, 0));
}

/// All of this once more for a host that is an ordinary user.
#[sandboxed]
#[as_root]
#[test]
fn a5_all_of_this_holds_for_an_ordinary_user() {
    as_ordinary_user("network_sessions::");
}
