//! N4: a header that the host adds to requests. The server gets it, and nothing in the cell, in the
//! answers, in the output and in what is kept of the run has its value.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    command::{Outcome, Place, outcome},
    internet::{Internet, inside},
    mcp_support::serve_as,
};

const RULE: &str = r#"[net]
allow = [{ host = "web.example.com", methods = ["GET"], paths = ["/**"], headers = { Authorization = "Bearer ${TEST_TOKEN}" } }]
"#;
/// Split, so that no memory of this program's code is taken for the value.
const SECRET: [&str; 2] = ["the-token-of-the-", "operator-4711"];
/// A value that the cell has, to show that the search finds what is there.
const SEEN: [&str; 2] = ["a-variable-of-the-", "guest-4712"];
const SCRIPT: &str = "
    at=https://web.example.com
    curl -fsS -v -H 'Authorization: Bearer mine' $at/first 2>&1
    # The server sends back what it got.
    curl -fsS -v $at/authorization 2>&1
    curl -sS -X POST $at/refused
    env
    set
    until curl -fsS $at/released; do sleep 0.2; done";
const PATIENCE: Duration = Duration::from_secs(60);

fn secret() -> String {
    SECRET.concat()
}

#[sandboxed]
#[test]
fn n4_a_credential_is_at_the_server_and_nowhere_in_the_cell() {
    inside(
        "network_credentials::n4_a_credential_is_at_the_server_and_nowhere_in_the_cell",
        |internet| {
            let place = Place::new();
            place.file(".config/belljar/belljar.toml", RULE);
            let mut command = internet.command(&place);
            command.env("TEST_TOKEN", secret());
            command.args(["run", "--json", "-l", "bash", "--command", "curl", "-c", SCRIPT]);
            let seen = format!("SEEN={}", SEEN.concat());
            command.args(["--net", "web.example.com", "--env", &seen]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            wait_until(|| internet.requests().iter().any(|line| line.contains("/released")));
            let cell = descendants(child.id());
            // The guest's, and that of Belljar itself, which has to have it.
            assert!(cell.iter().any(|pid| has(*pid, &SEEN.concat())), "{cell:?}");
            assert!(has(child.id(), &secret()));
            let holders: Vec<_> = cell.iter().filter(|pid| has(**pid, &secret())).collect();
            assert!(holders.is_empty(), "{holders:?} of {cell:?}");
            internet.release();
            let ran = outcome(child.wait_with_output().unwrap());
            check_traces(internet, &place, &ran);
        },
    );
}

/// All branches of a session trust its authority, and the rules about requests hold in each.
#[sandboxed]
#[test]
fn n4_a_session_and_its_branches_have_one_authority() {
    inside("network_credentials::n4_a_session_and_its_branches_have_one_authority", |internet| {
        let place = Place::new();
        place.file(".config/belljar/belljar.toml", RULE);
        let mut command = internet.command(&place);
        command.env("TEST_TOKEN", secret());
        let server = serve_as(command, &place, &["--net", "web.example.com", "--command", "curl"]);
        let grants = json!({ "net": ["web.example.com"], "commands": ["curl"] });
        let made =
            server.ask("POST /v1/sessions", &json!({ "language": "bash", "grants": grants }));
        let id = made["session_id"].as_str().unwrap();
        let code = "curl -fsS https://web.example.com/first && env && \
                    curl -sS -o /dev/null -w '%{http_code}' -X POST https://web.example.com/refused";
        let check = |session: &str| {
            let path = format!("POST /v1/sessions/{session}/runs");
            let ran = server.ask(&path, &json!({ "code": code }));
            let printed = ran["stdout"].as_str().unwrap();
            assert!(printed.starts_with("hello from /first"), "{ran:#}");
            assert!(printed.ends_with("403") && !ran.to_string().contains(&secret()), "{ran:#}");
            assert!(ran["logs"].to_string().contains("[blocked] network: POST"), "{ran:#}");
        };
        check(id);
        let taken = server.ask(&format!("POST /v1/sessions/{id}/checkpoints"), &json!({}));
        let forked = server.ask(&format!("POST /v1/sessions/{id}/fork"), &json!({}));
        let back = json!({ "checkpoint_id": taken["checkpoint_id"] });
        server.api(&format!("POST /v1/sessions/{id}/rollback"), &back.to_string());
        check(id);
        check(forked["session_ids"][0].as_str().unwrap());
        let received = internet.requests();
        let expected = format!(" Bearer {}", secret());
        assert_eq!(received.len(), 3, "{received:?}");
        assert!(received.iter().all(|line| line.starts_with("GET ") && line.ends_with(&expected)));
    });
}

/// Checks what the server got, what the guest printed, and what is kept.
fn check_traces(internet: &Internet, place: &Place, ran: &Outcome) {
    let result = ran.json();
    assert_eq!(result["success"], true, "{result:#}");
    let printed = result["stdout"].as_str().unwrap();
    assert!(printed.contains("hello from /first") && printed.contains("HTTP/1.1 200"), "{printed}");
    let received = internet.requests();
    let bearer = format!(" Bearer {}", secret());
    assert!(
        received.len() > 2 && received.iter().all(|line| line.ends_with(&bearer)),
        "{received:?}"
    );
    assert!(received.iter().all(|line| line.starts_with("GET ")), "{received:?}");
    assert!(!ran.stdout.contains(&secret()) && !ran.stderr.contains(&secret()), "{ran:?}");
    let audit = internet.belljar(place, &["audit", "--json"]);
    assert!(audit.stdout.contains("web.example.com"), "{audit:?}");
    assert!(!audit.stdout.contains(&secret()), "{audit:?}");
    let mut files = 0;
    search(place.path(), &mut |path, bytes| {
        files += 1;
        assert!(!contains(bytes, secret().as_bytes()), "{}", path.display());
    });
    // The rules, and the audit log at least.
    assert!(files > 1, "{files} files");
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it takes too long");
        sleep(Duration::from_millis(50));
    }
}

/// All processes that a process has started, and those that they have.
fn descendants(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain spaces and parentheses.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether the memory of a process has a text in it. Of one that cannot be read, nothing is known.
fn has(pid: u32, text: &str) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Ok(mut memory) = File::open(format!("/proc/{pid}/mem")) else { return false };
    let ranges = maps.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (from, to) = fields.next()?.split_once('-')?;
        let is_written = fields.next()?.starts_with("rw");
        let range = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        is_written.then_some(range)
    });
    let mut ranges = ranges;
    ranges.any(|(from, to)| {
        let mut bytes = Vec::new();
        let moved = memory.seek(SeekFrom::Start(from));
        // Parts that are not there end the reading, and what was read counts.
        let _ = moved.and_then(|_| (&mut memory).take(to - from).read_to_end(&mut bytes));
        contains(&bytes, text.as_bytes())
    })
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}

fn search(directory: &Path, look: &mut impl FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            search(&path, look);
        } else if path.is_file() {
            look(&path, &fs::read(&path).unwrap());
        }
    }
}
