//! Sessions with hosts, for tests: a server that they reach, and what is asked of the host and of its sessions.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use serde_json::{Value, json};

use crate::{
    command::{Outcome, Place, outcome, program},
    mcp_support::{RunningServer, serve_by, within},
};

/// A server that answers each request with its path and counts them. It holds a request for `/held` until
/// the connection ends, and says when it has got one and how that ended.
pub(crate) struct Website {
    pub(crate) address: String,
    served: Arc<AtomicU32>,
    held: mpsc::Receiver<&'static str>,
    /// Ends the answers that are held.
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Website {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let served = Arc::new(AtomicU32::new(0));
        let (holds, held) = mpsc::channel();
        let streams = Arc::new(Mutex::default());
        let (count, kept) = (served.clone(), streams.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, holds, kept) = (count.clone(), holds.clone(), kept.clone());
                // A client that goes away ends its own connection only.
                thread::spawn(move || drop(answer(stream, &count, &holds, &kept)));
            }
        });
        Self { address, served, held, streams }
    }

    /// Ends the answers that are held, as a server does.
    pub(crate) fn release(&self) {
        for stream in self.streams.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    pub(crate) fn served(&self) -> u32 {
        self.served.load(Ordering::SeqCst)
    }

    /// The outcome of a held request.
    pub(crate) fn held(&self) -> &'static str {
        self.held.recv_timeout(std::time::Duration::from_secs(30)).expect("a held request")
    }
}

fn answer(
    mut stream: TcpStream,
    count: &AtomicU32,
    held: &mpsc::Sender<&'static str>,
    kept: &Mutex<Vec<TcpStream>>,
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
        kept.lock().expect("no panic").push(stream.try_clone()?);
        let _ = held.send("begun");
        let rest = reader.read_to_end(&mut Vec::new());
        let _ = held.send("ended");
        return rest.map(drop);
    }
    let length = path.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{path}")
}

/// Defines in Python `get(address, path)`: the answer, the status of a refusal, or what became of the
/// connection. `held` is the same for an answer that does not end.
pub(crate) const GET: &str = "import urllib.request, urllib.error\n\
    def get(address, path='/x'):\n\
    \x20   try: return urllib.request.urlopen(f'http://{address}{path}').read().decode()\n\
    \x20   except urllib.error.HTTPError as error: return error.code\n\
    \x20   except OSError as error:\n\
    \x20       why = getattr(error, 'reason', error)\n\
    \x20       return 'reset' if isinstance(why, ConnectionError) else 'no network'\n\
    def again(address):\n\
    \x20   return next(found for found in iter(lambda: get(address), None) if found != 'reset')\n";

/// A host over HTTP, with flags.
pub(crate) fn host(place: &Place, flags: &[&str]) -> RunningServer {
    serve_by(&program(), place, flags)
}

/// `belljar` in the same project.
pub(crate) fn belljar(place: &Place, arguments: &[&str]) -> Outcome {
    outcome(place.command(program()).args(arguments).output().expect("the program starts"))
}

pub(crate) fn id_in(made: &Value) -> String {
    made["session_id"].as_str().unwrap_or_else(|| panic!("no id: {made:#}")).to_owned()
}

/// A new session.
pub(crate) fn open(server: &RunningServer, language: &str, grants: Value) -> String {
    let request = json!({ "language": language, "grants": grants });
    id_in(&server.ask("POST /v1/sessions", &request))
}

/// A new session of Python that may reach these hosts, with `get`.
pub(crate) fn open_python(server: &RunningServer, hosts: &[&str]) -> String {
    let grants = json!({ "net": hosts, "modules": ["socket", "threading"] });
    let id = open(server, "python", grants);
    value(server, &id, GET);
    id
}

/// The result of code in a session.
pub(crate) fn run(server: &RunningServer, id: &str, code: &str) -> Value {
    server.ask(&format!("POST /v1/sessions/{id}/runs"), &json!({ "code": code }))
}

/// The value of code in a session, which has to succeed.
pub(crate) fn value(server: &RunningServer, id: &str, code: &str) -> Value {
    let ran = run(server, id, code);
    assert_eq!(ran["status"], "completed", "{code}: {ran:#}");
    ran["result"].clone()
}

/// The answer of a site to a session.
pub(crate) fn get(server: &RunningServer, id: &str, site: &Website) -> Value {
    value(server, id, &format!("get('{}')", site.address))
}

pub(crate) fn checkpoint(server: &RunningServer, id: &str) -> String {
    let taken = server.ask(&format!("POST /v1/sessions/{id}/checkpoints"), &json!({}));
    taken["checkpoint_id"].as_str().unwrap_or_else(|| panic!("{taken:#}")).to_owned()
}

pub(crate) fn rollback(server: &RunningServer, id: &str, point: &str) {
    let body = json!({ "checkpoint_id": point }).to_string();
    let reply = server.api(&format!("POST /v1/sessions/{id}/rollback"), &body);
    assert!(reply.status < 300, "{reply:#?}");
}

pub(crate) fn fork(server: &RunningServer, id: &str) -> String {
    let forked = server.ask(&format!("POST /v1/sessions/{id}/fork"), &json!({}));
    forked["session_ids"][0].as_str().unwrap_or_else(|| panic!("{forked:#}")).to_owned()
}

/// The rows of the audit log that name a host, oldest first, once there are so many: rows of refusals are
/// written a moment later.
pub(crate) fn audit(place: &Place, site: &Website, count: usize) -> Vec<Value> {
    let is_about = |row: &&Value| row["tool"].as_str().unwrap_or_default().contains(&site.address);
    within("the audit log", || {
        let rows = belljar(place, &["audit", "--json"]).json();
        let rows = rows.as_array().expect("a list").iter().rev().filter(is_about).cloned();
        Some(rows.collect::<Vec<_>>()).filter(|rows| rows.len() == count)
    })
}

/// The files and sockets that a host has open.
pub(crate) fn descriptors(server: &RunningServer) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("a process").count()
}
