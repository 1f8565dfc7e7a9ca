//! A5, B2, B4, N1: hosts that a session was granted, and no others, in each of its runs and in its branches.
//! Each refusal has a control that reaches a server.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use belljar_testing::{as_root, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{Place, as_ordinary_user, outcome, program},
    mcp_support::{RunningServer, serve_by, within},
};

const USER_FILE: &str = ".config/belljar/belljar.toml";
/// Nothing listens there: connections to it are refused before anybody looks.
const ELSEWHERE: &str = "127.0.0.1:9";

/// A server that answers each request with its path and counts them. It holds a request for `/held` until
/// the connection ends, and says when it has got one and how that ended.
struct Website {
    address: String,
    served: Arc<AtomicU32>,
    held: mpsc::Receiver<&'static str>,
}

impl Website {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let served = Arc::new(AtomicU32::new(0));
        let (holds, held) = mpsc::channel();
        let count = served.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, holds) = (count.clone(), holds.clone());
                // A client that goes away ends its own connection only.
                thread::spawn(move || drop(answer(stream, &count, &holds)));
            }
        });
        Self { address, served, held }
    }

    fn served(&self) -> u32 {
        self.served.load(Ordering::SeqCst)
    }

    /// What has become of a held request.
    fn held(&self) -> &'static str {
        self.held.recv_timeout(std::time::Duration::from_secs(30)).expect("a held request")
    }
}

fn answer(
    mut stream: TcpStream,
    count: &AtomicU32,
    held: &mpsc::Sender<&'static str>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut line) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    count.fetch_add(1, Ordering::SeqCst);
    let path = first.split(' ').nth(1).unwrap_or_default();
    if path == "/held" {
        write!(stream, "HTTP/1.1 200 OK\r\n\r\nbegin")?;
        let _ = held.send("begun");
        let rest = reader.read_to_end(&mut Vec::new());
        let _ = held.send("ended");
        return rest.map(drop);
    }
    let length = path.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{path}")
}

/// Defines `get(address, path)` in Python: the answer, the status of a refusal, or the name of an error.
const GET: &str = "import urllib.request, urllib.error\n\
    def get(address, path='/x'):\n\
    \x20   try: return urllib.request.urlopen(f'http://{address}{path}').read().decode()\n\
    \x20   except urllib.error.HTTPError as error: return error.code\n\
    \x20   except OSError as error: return 'no network'\n";

/// A host over HTTP, with flags.
fn host(place: &Place, flags: &[&str]) -> RunningServer {
    serve_by(&program(), place, flags)
}

/// A new session.
fn open(server: &RunningServer, language: &str, grants: Value) -> String {
    let made = server
        .ask("POST /v1/sessions", &json!({ "language": language, "grants": grants }));
    made["session_id"].as_str().unwrap_or_else(|| panic!("no id: {made:#}")).to_owned()
}

fn run(server: &RunningServer, id: &str, code: &str) -> Value {
    server.ask(&format!("POST /v1/sessions/{id}/runs"), &json!({ "code": code }))
}

fn value(server: &RunningServer, id: &str, code: &str) -> Value {
    let ran = run(server, id, code);
    assert_eq!(ran["status"], "completed", "{code}: {ran:#}");
    ran["result"].clone()
}

#[sandboxed]
#[test]
fn a5_a_python_session_reaches_the_host_that_was_granted_and_no_other() {
    let (granted, other) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &granted.address, "--net", &other.address]);
    let id = open(&server, "python", json!({ "net": [granted.address] }));
    value(&server, &id, GET);
    assert_eq!(value(&server, &id, &format!("get('{}')", granted.address)), "/x");
    let refused = run(&server, &id, &format!("get('{}')", other.address));
    assert_eq!(refused["result"], 403, "{refused:#}");
    let blocked = format!(
        "[blocked] network: {0}: no rule allows this port of the host; to allow it: --net {0}",
        other.address
    );
    assert_eq!(refused["logs"], json!([blocked]), "{refused:#}");
    assert_eq!(value(&server, &id, &format!("get('{}')", granted.address)), "/x");
    assert_eq!((granted.served(), other.served()), (2, 0));
    // Control: a session without the grant has no network, however many hosts the operator allows.
    let without = open(&server, "python", json!({}));
    value(&server, &without, GET);
    let none = value(&server, &without, &format!("get('{}')", granted.address));
    assert_eq!(none, "no network");
    assert_eq!(granted.served(), 2);
}
