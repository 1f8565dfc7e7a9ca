//! E2: who may talk to `belljar serve --http`. The checks themselves are tested in belljar-server;
//! this shows that the program has them on.

use std::{fs, os::unix::fs::PermissionsExt as _};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::mcp_support::{Project, RunningServer};

const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}"#;

/// The status of the answer to these headers, besides those that every client sends.
fn status(serving: &RunningServer, headers: &[(&str, &str)]) -> u16 {
    let mut all = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    all.extend(headers);
    serving.http("POST /mcp", &all, LIST).status
}

#[sandboxed]
#[test]
fn e2_a_request_without_the_token_or_from_elsewhere_is_turned_away() {
    let project = Project::new(&[], "");
    let serving = project.serve(&[]);
    let (host, bearer) = (serving.address(), format!("Bearer {}", serving.token));
    let token = ("Authorization", bearer.as_str());
    let cases: [(&[(&str, &str)], u16); 9] = [
        (&[("Host", host)], 401),
        (&[("Host", host), ("Authorization", "Bearer 00000000000000000000000000000000")], 401),
        (&[("Host", host), ("Authorization", "Basic dTpw")], 401),
        (&[token], 403),
        (&[("Host", "evil.example"), token], 403),
        (&[("Host", "evil.example")], 403),
        (&[("Host", host), ("Origin", "https://evil.example"), token], 403),
        (&[("Host", host), ("Origin", "null"), token], 403),
        (&[("Host", "localhost"), ("Origin", "http://localhost:3000"), token], 200),
    ];
    for (headers, expected) in cases {
        // Without a session, a request of an older client that passes is a bad one.
        let got = status(&serving, headers);
        let passed = if got == 400 || got == 422 { 200 } else { got };
        assert_eq!(passed, expected, "{headers:?}");
    }
    let refused = serving.http("POST /mcp", &[("Host", host)], LIST);
    assert!(refused.head.to_lowercase().contains("www-authenticate: bearer"), "{refused:#?}");
    assert!(!refused.body.contains(&serving.token), "{refused:#?}");
}

#[sandboxed]
#[test]
fn e2_whether_it_is_there_may_be_asked_without_a_token_but_not_from_elsewhere() {
    let project = Project::new(&[], "");
    let serving = project.serve(&[]);
    let healthy = serving.http("GET /healthz", &[("Host", serving.address())], "");
    assert_eq!(healthy.status, 200, "{healthy:#?}");
    assert!(healthy.body.contains("\"ok\""), "{healthy:#?}");
    assert_eq!(serving.http("GET /healthz", &[("Host", "evil.example")], "").status, 403);
}

#[sandboxed]
#[test]
fn e2_the_token_is_for_its_owner_only_and_stays_the_same() {
    let project = Project::new(&[], "");
    let first = project.serve(&[]);
    let token = first.token.clone();
    first.stop();
    let mode = |name: &str| fs::metadata(project.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(".belljar/token"), 0o600);
    assert_eq!(mode(".belljar"), 0o700);
    assert!(token.len() >= 32, "{token}");
    assert_eq!(project.serve(&[]).token, token);
}

#[sandboxed]
#[test]
fn e2_a_public_address_without_a_token_is_refused() {
    let project = Project::new(&[], "");
    // Nothing but the fixtures of the conformance suite is ever served without a token.
    let refused = project.belljar(&["serve", "--http", "0.0.0.0:0", "--conformance"]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("clients must send a token"), "{refused:#?}");
}

#[sandboxed]
#[test]
fn e2_a_token_that_others_can_read_is_refused() {
    let project = Project::new(&[], "");
    let token = project.file(".belljar/token", "0123456789abcdef0123456789abcdef\n");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = project.belljar(&["serve", "--http", "127.0.0.1:0"]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("chmod 600"), "{refused:#?}");
}

/// A value of 12 MB would take more than 128 MB of the host if it were unfolded there, be it passed on
/// or summed up.
#[sandboxed]
#[test]
fn s10_a_large_value_is_not_unfolded_in_the_host() {
    let project = Project::new(&[], "");
    let serving = project.serve(&[]);
    let run = |count: u32, tokens: u64| {
        let code = format!("return new Array({count}).fill([])");
        serving.ask("POST /v1/runs", &json!({ "code": code, "max_output_tokens": tokens }))
    };
    // Whatever is needed for any run is there by then.
    assert_eq!(run(3, 100_000_000)["result"], json!([[], [], []]));
    let before = serving.peak_memory_mb();
    let count = |result: &Value| result["result"].as_array().map(Vec::len);
    assert_eq!(count(&run(4_000_000, 100_000_000)), Some(4_000_000));
    assert_eq!(run(4_000_000, 1_000)["result"]["count"], json!(4_000_000));
    let grown = serving.peak_memory_mb() - before;
    // Some copies of the text are made on its way.
    assert!((12..110).contains(&grown), "{grown} MB");
}

/// Grants that `belljar run` refuses are refused before anybody connects. With nothing on standard input a
/// server that did start ends at once, with success.
#[sandboxed]
#[test]
fn e2_a_grant_that_makes_no_sense_is_refused_at_the_start() {
    let project = Project::new(&[], "");
    project.file("here/a.txt", "there");
    std::os::unix::fs::symlink("here", project.path("link")).unwrap();
    let at = project.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let withheld =
        "hint: omit it; docs/files.md lists the names that are withheld, such as .git and .envrc";
    let gone = "No such file or directory (os error 2)";
    let link =
        "a symbolic link leads there\nhint: grant the path it leads to: links are not followed";
    let executable = format!("foo: a commit writes this name anyway\n{withheld}");
    for (flag, given, told, of_run) in [
        ("--read", "nodir", format!("{at}/nodir: {gone}"), "cannot grant reading of"),
        ("--write", "nodir", format!("{at}/nodir: {gone}"), "cannot grant writing to"),
        ("--write", "link", format!("{at}/link: {link}"), "cannot grant writing to"),
        ("--read", "/dev/null", "/dev/null: neither a file nor a directory".to_owned(), ""),
        ("--commit-executable", "foo", executable, "--commit-executable"),
    ] {
        let refused = project.belljar(&["serve", "--stdio", flag, given]);
        let expected = format!("error: {flag} {told}\n");
        assert_eq!((refused.status, refused.stderr), (Some(2), expected));
        if given != "/dev/null" {
            let run = ["run", "-c", "1", "--workspace", "here", "--commit", flag, given];
            let expected = format!("SandboxError: {of_run} {told}\n");
            assert_eq!(project.belljar(&run).stderr, expected);
        }
    }
    // The control; a path is taken from where the server was started, as by `belljar run`.
    let serving = project.serve(&["--read", "here", "--commit-executable", ".Envrc"]);
    let code = json!({"code": "cat a.txt", "language": "bash", "workspace": {"path": project.path("here")}});
    assert_eq!(serving.ask("POST /v1/runs", &code)["stdout"], "there");
}
