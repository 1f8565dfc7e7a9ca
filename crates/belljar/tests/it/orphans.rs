//! D1, A10: a host with many servers and many runs behind it leaves no process when it is killed.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Child,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use belljar_testing::{as_root, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{Place, serve_http},
    descendants::descendants,
};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/ledger.py");
const SERVERS: u32 = 20;
/// The paths of the place that the user of a host owns.
const OWNED: [&str; 4] = ["", "work", "work/belljar.toml", "ledger"];
/// How many clients there are.
const CLIENTS: u32 = 4;

/// A host over HTTP.
struct Gateway {
    host: Child,
    address: String,
    token: String,
}

impl Gateway {
    fn start(place: &Place, user: Option<u32>) -> Self {
        let (host, address) = serve_http(place.belljar_as(user, &OWNED));
        let token = fs::read_to_string(place.path().join("work/.belljar/token")).unwrap();
        Self { host, address, token: token.trim().to_owned() }
    }

    /// Runs code in a session.
    fn execute(&self, code: &str, session: &str) -> Value {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "execute_code", "arguments": { "code": code } },
        });
        self.post(&body, Some(session)).1["result"]["structuredContent"].clone()
    }

    /// A session of its own.
    fn session(&self) -> String {
        let body = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        });
        self.post(&body, None).0.expect("there is a session")
    }

    /// The session and the answer to one request.
    fn post(&self, body: &Value, session: Option<&str>) -> (Option<String>, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{session}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let head = answer.split("\r\n\r\n").next().unwrap_or_default();
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.to_owned())
        });
        let json = answer.lines().find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            line.starts_with("{\"jsonrpc\"").then(|| serde_json::from_str(line).unwrap())
        });
        (session, json.unwrap_or_else(|| panic!("no answer in {answer:?}")))
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.host.id())).unwrap().count()
    }

    fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.host.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// The processes that have this in their arguments or environment.
fn marked(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is_marked = |file: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
        };
        if entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
            && (is_marked("cmdline") || is_marked("environ"))
        {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

fn is_alive(pid: u32) -> bool {
    // A zombie's memory is gone, and so is its line here.
    fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn place_with_servers() -> Place {
    let place = Place::new();
    let ledger = place.path().join("ledger");
    fs::create_dir(&ledger).unwrap();
    // Where every user can read it.
    let server = place.file("ledger.py", fs::read(SERVER).unwrap());
    let server = server.to_str().unwrap();
    let mut configuration = "[permissions]\nallow = [\"*\"]\n".to_owned();
    for number in 0..SERVERS {
        let args = toml::Value::from(vec!["-S", server, "stdio", ledger.to_str().unwrap()]);
        let server = format!("[mcp_servers.s{number}]\ncommand = \"python3\"\nargs = {args}\n");
        configuration.push_str(&server);
    }
    place.file("work/belljar.toml", configuration);
    place
}

#[sandboxed]
#[test]
fn d1_a_killed_host_leaves_no_process_of_twenty_servers_and_a_thousand_runs() {
    leaves_no_process(None, 1000);
}

#[sandboxed]
#[as_root]
#[test]
fn d1_a_killed_host_of_an_ordinary_user_leaves_no_process() {
    leaves_no_process(Some(12_348), 100);
}

#[expect(clippy::print_stderr, reason = "what it costs is said aloud")]
fn leaves_no_process(user: Option<u32>, runs: u32) {
    let place = place_with_servers();
    // The servers have the directory in their arguments, the host has it in its environment, and
    // passes that on to whoever it starts.
    let marker = place.path().to_str().unwrap().to_owned();
    let mut gateway = Gateway::start(&place, user);
    let run = |number: u32, session: &str| {
        let server = number % SERVERS;
        let code = format!("return (await mcp.s{server}.slow({{ ms: 0 }})).slept + {number}");
        let result = gateway.execute(&code, session);
        assert_eq!(result["result"], json!(number), "{result}");
    };
    let session = gateway.session();
    (0..SERVERS).for_each(|number| run(number, &session));
    let servers = marked(&format!("{marker}/ledger")).len();
    assert!(servers >= SERVERS as usize, "{servers} servers");
    let (descriptors, resident) = (gateway.descriptors(), gateway.resident_kib());
    let (next, begun) = (AtomicU32::new(SERVERS), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let session = gateway.session();
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= runs {
                        break;
                    }
                    run(number, &session);
                }
            });
        }
    });
    let (after, resident_after) = (gateway.descriptors(), gateway.resident_kib());
    eprintln!(
        "{runs} runs with {SERVERS} servers in {:.1} s; descriptors {descriptors} → {after}, \
         resident {resident} → {resident_after} KiB",
        begun.elapsed().as_secs_f64()
    );
    assert!(marked(&marker).len() > SERVERS as usize);
    // Cells that are being parked or cleared away have a few.
    assert!(after <= descriptors + 16, "descriptors grew: {descriptors} → {after}");
    let family = descendants(gateway.host.id());
    assert!(family.len() > SERVERS as usize, "{family:?}");
    gateway.host.kill().unwrap();
    gateway.host.wait().unwrap();
    let killed = Instant::now();
    loop {
        let alive = family.iter().filter(|pid| is_alive(**pid)).map(u32::to_string);
        let left: Vec<String> = alive.chain(marked(&marker)).collect();
        if left.is_empty() {
            break;
        }
        assert!(killed.elapsed() < Duration::from_secs(10), "left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
