//! N1, D7: requests under `[net] ask` wait for a person, who sees what would be sent, through the whole program:
//! by `fetch` of TypeScript, and by a program of Python's through the proxy.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{Place, outcome},
    internet::{Internet, inside},
    mcp_support::{RunningServer, serve_as, within},
};

const RULES: &str = r#"[net]
allow = [{ host = "api.example.com", methods = ["GET"], paths = ["/public/**"] }]
ask = [{ host = "api.example.com", methods = ["POST"], paths = ["/public/**"], each = true }]
"#;
/// Each reads first, which is allowed, and then posts five bytes.
const CODES: [(&str, &str); 2] = [
    (
        "typescript",
        "const at = 'https://api.example.com/public';\n\
         const read = await (await fetch(at + '/fine')).text();\n\
         try { return [read, await (await fetch(at + '/effect', { method: 'POST', body: '12345' })).text()]; }\n\
         catch { return [read, 'refused']; }",
    ),
    (
        "python",
        "import urllib.request, urllib.error\n\
         at = 'https://api.example.com/public'\n\
         read = urllib.request.urlopen(at + '/fine').read().decode()\n\
         try: posted = urllib.request.urlopen(at + '/effect', data=b'12345').read().decode()\n\
         except urllib.error.HTTPError as error: posted = 'refused'\n\
         [read, posted]",
    ),
];

/// Requests that have reached the server and change something.
fn posts(internet: &Internet) -> usize {
    internet.requests().iter().filter(|line| line.starts_with("POST")).count()
}

/// Runs code until it waits, decides, and gives the result.
fn decided(server: &RunningServer, internet: &Internet, verdict: &str, request: &Value) -> Value {
    let before = posts(internet);
    let waiting = server.ask("POST /v1/runs", request);
    assert_eq!(waiting["status"], "approval_required", "{waiting:#}");
    // Nothing is sent before there is an answer.
    assert_eq!(posts(internet), before);
    let [question] = waiting["approvals"].as_array().expect("a list").as_slice() else {
        panic!("{waiting:#}")
    };
    assert_eq!(question["tool"], "net api.example.com:443", "{question:#}");
    let shown = &question["arguments"];
    for (name, expected) in [
        ("host", json!("api.example.com")),
        ("port", json!(443)),
        ("method", json!("POST")),
        ("path", json!("/public/effect")),
        ("body_bytes", json!(5)),
    ] {
        assert_eq!(shown[name], expected, "{question:#}");
    }
    let id = question["id"].as_str().expect("an id");
    let decision = json!({ "decision": verdict }).to_string();
    let reply = server.api(&format!("POST /v1/approvals/{id}"), &decision);
    assert_eq!(reply.status, 200, "{reply:#?}");
    let run = waiting["id"].as_str().expect("an id");
    server.ask(&format!("GET /v1/runs/{run}?wait_ms=60000"), &Value::Null)
}

/// The decisions in the audit log about requests with a method, in the order of the alphabet.
fn decisions(internet: &Internet, place: &Place, method: &str) -> Vec<String> {
    let audit = internet.command(place).args(["audit", "--json"]).output();
    let rows = outcome(audit.expect("the program starts")).json();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = rows.as_array().expect("a list").iter();
    let about = rows.filter(|row| text(row, "tool").starts_with(method));
    let mut found: Vec<_> = about.map(|row| text(row, "decision")).collect();
    found.sort();
    found
}

#[sandboxed]
#[test]
fn n1_a_request_that_asks_is_sent_after_a_yes_only() {
    inside("network_questions::n1_a_request_that_asks_is_sent_after_a_yes_only", |internet| {
        let place = Place::new();
        place.file(".config/belljar/belljar.toml", RULES);
        let server = serve_as(internet.command(&place), &place, &["--net", "api.example.com"]);
        for (language, code) in CODES {
            let grants = json!({ "net": ["api.example.com"] });
            let request = json!({ "language": language, "code": code, "grants": grants });
            for (verdict, posted, more) in [("approve", "5 bytes", 1), ("deny", "refused", 0)] {
                let before = posts(internet);
                let ended = decided(&server, internet, verdict, &request);
                let expected = json!(["hello from /public/fine", posted]);
                assert_eq!(ended["result"], expected, "{language}, {verdict}: {ended:#}");
                assert_eq!(posts(internet), before + more, "{language}, {verdict}");
            }
        }
        // Rows of refusals are written a moment later.
        within("the audit log", || {
            let is_whole = decisions(internet, &place, "net GET") == ["allow"; 4]
                && decisions(internet, &place, "net POST")
                    == ["approved", "approved", "deny", "deny"];
            is_whole.then_some(())
        });
    });
}
