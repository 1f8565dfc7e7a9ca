//! N1, N3, N4: what code attempts in vain with hosts granted: `internet/attempts.py`, each attempt with a
//! control that gets through. In parked and in fresh cells, in sessions and their branches, as root and as an
//! ordinary user. The servers are real ones, in a test internet; at each address of this machine listens a trap.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, ToSocketAddrs as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::Place,
    descendants::descendants,
    internet::{Internet, inside},
    mcp_support::{RunningServer, serve_as, within},
    network_session_support::{checkpoint, fork, open, rollback},
};

const ATTEMPTS: &str = include_str!("internet/attempts.py");
const PAGE: &str = include_str!("../../../../docs/network.md");
const USER_FILE: &str = ".config/belljar/belljar.toml";
const RULES: &str = r#"[net]
allow = [
  "web.example.com", "*.deep.example.com", "*.bad.example.com:8099",
  { host = "api.example.com", methods = ["GET"], paths = ["/public/**"] },
]
deny = [{ host = "api.example.com", paths = ["/public/admin/**"] }]
"#;
/// The last one has a rule about requests, so its run needs an authority, and thus a cell of its own.
const HOSTS: [&str; 4] =
    ["web.example.com", "*.deep.example.com", "*.bad.example.com:8099", "api.example.com"];
/// The attempts about that rule.
const ABOUT_API: usize = 40;
/// The port at which names of `bad.example.com` are allowed.
const TRAP: u16 = 8099;

/// Listens at every address of this machine, where nobody may arrive.
struct Trap(Arc<AtomicU32>);

impl Trap {
    fn start() -> Self {
        let listener =
            TcpListener::bind(("::", TRAP)).or_else(|_| TcpListener::bind(("0.0.0.0", TRAP)));
        let listener = listener.expect("a port");
        let caught = Arc::new(AtomicU32::new(0));
        let count = caught.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                // A client that goes away ends its own connection only.
                let _ = stream.read(&mut [0; 4096]);
                let text = "hello from /forbidden hello from /fine";
                let length = text.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
                );
            }
        });
        Self(caught)
    }

    fn caught(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Checks every row of the table, and that nothing has arrived anywhere.
fn check(internet: &Internet, trap: &Trap, result: &Value, left_out: usize) {
    let rows = result["result"].as_array().unwrap_or_else(|| panic!("{result:#}"));
    let text = |row: &Value, index: usize| row[index].as_str().unwrap_or("none").to_owned();
    let (mut names, mut faults) = (BTreeSet::new(), Vec::new());
    for row in rows {
        let (what, attempt, control) = (text(row, 0), text(row, 1), text(row, 2));
        // An address has to be refused before anybody tries to reach it.
        let is_refused = match what.starts_with("a name that") {
            true => attempt.contains("403"),
            false => !["through", "answered", "none"].contains(&attempt.as_str()),
        };
        if !is_refused || control != "through" {
            faults.push(format!("{what}: {attempt}; control: {control}"));
        }
        assert!(names.insert(what.clone()), "two attempts have one name: {what}");
    }
    assert!(faults.is_empty(), "{} of {}: {faults:#?}", faults.len(), rows.len());
    assert_eq!(trap.caught(), 0);
    let requests = internet.requests();
    // Redirections name it in their query.
    let paths = requests.iter().map(|one| one.split('?').next().unwrap_or_default());
    let arrived: Vec<_> = paths.filter(|path| path.contains("forbidden")).collect();
    assert!(arrived.is_empty(), "{arrived:?}");
    assert!(requests.iter().any(|one| one.contains("/fine")), "{requests:?}");
    // Nothing was resolved but names that a rule allows.
    let is_granted = |name: &String| {
        ["web.example.com", "api.example.com"].contains(&name.as_str())
            || name.ends_with(".bad.example.com")
    };
    let others: Vec<_> = internet.names().into_iter().filter(|name| !is_granted(name)).collect();
    assert!(others.is_empty(), "{others:?}");
    let counted = format!("{} attempts", rows.len() + left_out);
    assert!(PAGE.contains(&counted), "docs/network.md has another number than {counted}");
}

/// The network namespaces of a server's processes.
fn namespaces(server: &RunningServer) -> BTreeSet<PathBuf> {
    let links = descendants(server.pid());
    links.iter().filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok()).collect()
}

#[sandboxed]
#[test]
fn n1_a_parked_cell_reaches_nothing_that_was_not_granted() {
    inside("network_refusals::n1_a_parked_cell_reaches_nothing_that_was_not_granted", |internet| {
        let (place, trap) = (Place::new(), Trap::start());
        place.file(USER_FILE, RULES);
        let server = serve_as(internet.command(&place), &place, &["--timeout", "5m"]);
        let run = |code: &str| {
            let grants = json!({"net": &HOSTS[..3], "modules": ["socket"]});
            let request =
                json!({"language": "python", "code": code, "grants": grants, "limits": limits()});
            server.ask("POST /v1/runs", &request)
        };
        let without = namespaces(&server);
        assert_eq!(run("1")["result"], 1);
        // The zygote of cells with a network, and the cell that waits for the next run.
        let parked = within("a parked cell", || {
            let found = namespaces(&server);
            (found.len() >= without.len() + 2).then_some(found)
        });
        let result = run(&format!("HAS_API = False\n{ATTEMPTS}"));
        check(internet, &trap, &result, ABOUT_API);
        // The run has had the cell that waited, which ends with it.
        let is_gone = || (!parked.is_subset(&namespaces(&server))).then_some(());
        within("the end of the parked cell", is_gone);
    });
}

/// Enough for all attempts.
fn limits() -> Value {
    json!({"timeout_ms": 240_000, "net_connections": 2000})
}

#[sandboxed]
#[test]
fn n1_a_session_and_its_branches_reach_nothing_that_was_not_granted() {
    let test = "n1_a_session_and_its_branches_reach_nothing_that_was_not_granted";
    inside(&format!("network_refusals::{test}"), |internet| {
        let (place, trap) = (Place::new(), Trap::start());
        place.file(USER_FILE, RULES);
        let server = serve_as(internet.command(&place), &place, &["--timeout", "5m"]);
        let attempt = |session: &str, turn: &str| {
            // Names of an earlier run do not hide that something is missing now.
            let code = format!("rows = []\nTURN = 'turning-{turn}'\n{ATTEMPTS}");
            let request = json!({"code": code, "limits": limits()});
            let result = server.ask(&format!("POST /v1/sessions/{session}/runs"), &request);
            check(internet, &trap, &result, 0);
        };
        let grants = json!({"net": HOSTS, "modules": ["socket"]});
        let session = open(&server, "python", grants);
        let point = checkpoint(&server, &session);
        attempt(&session, "session");
        attempt(&fork(&server, &session), "fork");
        rollback(&server, &session, &point);
        attempt(&session, "rollback");
    });
}

#[sandboxed]
#[test]
fn n1_a_fresh_cell_reaches_nothing_that_was_not_granted() {
    inside("network_refusals::n1_a_fresh_cell_reaches_nothing_that_was_not_granted", |internet| {
        let (place, trap) = (Place::new(), Trap::start());
        place.file(USER_FILE, RULES);
        let mut flags: Vec<&str> = HOSTS.iter().flat_map(|host| ["--net", host]).collect();
        flags.extend(["--module", "socket", "--timeout", "2m", "--max-net", "2000"]);
        // A mount for a run alone needs a cell of its own.
        let file = place.file("granted", "x");
        flags.extend(["--read", file.to_str().expect("a path")]);
        check(internet, &trap, &internet.run(&place, "python", ATTEMPTS, &flags), 0);
        // Control: the trap is there for those whom the operator lets go there.
        let local = format!("127.0.0.1:{TRAP}");
        let code =
            format!("import urllib.request\nurllib.request.urlopen('http://{local}/').status");
        let reached = internet.run(&place, "python", &code, &["--net", &local]);
        assert_eq!((&reached["result"], trap.caught()), (&json!(200), 1), "{reached:#}");
    });
}

/// The search domains of the machine lead to names that no rule allows. With five dots wanted, as here, they
/// are even tried first.
#[sandboxed]
#[test]
fn n3_no_search_domain_is_asked_for() {
    inside("network_refusals::n3_no_search_domain_is_asked_for", |internet| {
        let place = Place::new();
        let get = |host: &str| {
            let code = format!(
                "import urllib.request\nurllib.request.urlopen('http://{host}/fine').status"
            );
            internet.run(&place, "python", &code, &["--net", host])
        };
        assert_eq!(get("web.example.com")["result"], 200);
        let result = get("good");
        assert!(result.to_string().contains("502"), "{result:#}");
        let mut names = internet.names();
        names.dedup();
        assert_eq!(names, ["web.example.com", "good"]);
        // Control: other programs here are led there.
        for name in ["web.example.com", "good"] {
            let mut found = (name, 80).to_socket_addrs().expect("an address");
            assert_eq!(found.next(), Some(([44, 128, 0, 1], 80).into()), "{name}");
            assert!(internet.names().contains(&format!("{name}.search.example.net")), "{name}");
        }
    });
}

/// The address of the API in every form, each with a rule that names it.
#[sandboxed]
#[test]
fn n3_no_rule_leads_to_belljar_itself() {
    inside("network_refusals::n3_no_rule_leads_to_belljar_itself", |internet| {
        let (place, trap) = (Place::new(), Trap::start());
        let server = serve_as(internet.command(&place), &place, &[]);
        let (_, api) = server.address().rsplit_once(':').expect("a port");
        let forms = |port: &str| {
            [
                "127.0.0.1",
                "127.0.0.2",
                "0.0.0.0",
                "44.128.0.2",
                "[::1]",
                "[::]",
                "[::ffff:127.0.0.1]",
                "loopback.bad.example.com",
            ]
            .map(|host| format!("{host}:{port}"))
        };
        let trap_port = TRAP.to_string();
        let all = [forms(api), forms(&trap_port)].concat();
        let rules: Vec<_> =
            all.iter().map(|host| format!("{{ host = \"{host}\", private = true }}")).collect();
        let other = Place::new();
        other.file(USER_FILE, format!("[net]\nallow = [{}]\n", rules.join(", ")));
        let code = format!(
            "import urllib.request, urllib.error\n\
             def status(host):\n\
             \x20   try: return str(urllib.request.urlopen(f'http://{{host}}/').status)\n\
             \x20   except urllib.error.HTTPError as error: return error.read().decode()\n\
             [status(host) for host in {all:?}]"
        );
        let flags: Vec<_> = all.iter().flat_map(|host| ["--net", host]).collect();
        let result = internet.run(&other, "python", &code, &flags);
        let answers = result["result"].as_array().unwrap_or_else(|| panic!("{result:#}"));
        let refused = format!("Belljar listens on port {api} of this machine");
        for (host, answer) in all.iter().zip(answers) {
            let answer = answer.as_str().unwrap_or_default();
            // Control: another port at the same address.
            let expected = if host.ends_with(&trap_port) { "200" } else { refused.as_str() };
            assert!(answer.contains(expected), "{host}: {answer}");
        }
        assert_eq!(trap.caught(), 8);
    });
}
