//! Hosts that a run was granted, and no others, through the whole program (A5, N1).

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::command::Place;

/// A server that answers each request with its path; its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away ends its own connection only.
            let _ = answer(stream);
        }
    });
    port
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut line) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let length = path.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{path}")
}

fn run(place: &Place, language: &str, code: &str, more: &[&str]) -> Value {
    place.belljar(&[&["run", "--json", "-l", language, "-c", code], more].concat()).json()
}

fn error(result: &Value) -> (&str, &str) {
    let text = |key: &str| result["error"][key].as_str().unwrap_or("none");
    (text("type"), text("code"))
}

/// The rows of the audit log: tool, decision, outcome, oldest first.
fn audit(place: &Place) -> Vec<(String, String, String)> {
    let rows = place.belljar(&["audit", "--json"]).json();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = rows.as_array().expect("a list").iter().rev();
    rows.map(|row| (text(row, "tool"), text(row, "decision"), text(row, "outcome"))).collect()
}

#[sandboxed]
#[test]
fn a5_curl_reaches_the_host_that_was_granted_and_no_other() {
    let (granted, other) = (server(), server());
    let place = Place::new();
    let net = format!("127.0.0.1:{granted}");
    let code = format!(
        "curl -sS http://{net}/one; echo; curl -sS -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{other}/two"
    );
    let result = run(&place, "bash", &code, &["--command", "curl", "--net", &net]);
    assert_eq!(result["stdout"], "/one\n403\n", "{result:#}");
    let blocked = format!(
        "[blocked] network: GET 127.0.0.1:{other}/two: no rule allows this port of the host; to allow it: --net 127.0.0.1:{other}"
    );
    let logs = result["logs"].as_array().expect("a list");
    assert!(logs.contains(&json!(blocked)), "{logs:?}");
    let rows = audit(&place);
    let [allowed, refused] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(
        (allowed.0.as_str(), allowed.1.as_str()),
        (format!("net GET {net}/one").as_str(), "allow")
    );
    assert!(allowed.2.starts_with("ok: "), "{allowed:?}");
    let refusal = (
        format!("net GET 127.0.0.1:{other}/two"),
        "deny".to_owned(),
        "permission.network".to_owned(),
    );
    assert_eq!(*refused, refusal);
}

#[sandboxed]
#[test]
fn a5_urllib_reaches_the_host_that_was_granted_and_sockets_reach_nothing() {
    let port = server();
    let place = Place::new();
    let code = format!(
        "import socket, urllib.request\n\
         def attempt(what):\n\
         \x20   try: return str(what())\n\
         \x20   except OSError as error: return type(error).__name__\n\
         [urllib.request.urlopen('http://127.0.0.1:{port}/x').read().decode(),\n\
         \x20attempt(lambda: socket.create_connection(('127.0.0.1', {port}))),\n\
         \x20attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),\n\
         \x20attempt(lambda: socket.getaddrinfo('example.org', 80))]"
    );
    let net = format!("127.0.0.1:{port}");
    let granted = run(&place, "python", &code, &["--module", "socket", "--net", &net]);
    let expected = json!(["/x", "PermissionError", "PermissionError", "gaierror"]);
    assert_eq!(granted["result"], expected, "{granted:#}");
    // Without the grant there is no socket at all.
    let socket = "import socket\nsocket.create_connection(('127.0.0.1', 3128))";
    let refused = run(&place, "python", socket, &["--module", "socket"]);
    assert_eq!(error(&refused), ("PermissionError", "permission.network"), "{refused:#}");
}

#[sandboxed]
#[test]
fn a5_hosts_that_cannot_be_granted_are_errors() {
    let place = Place::new();
    for (language, more, message) in [
        (
            "python",
            &["--net", "https://example.org"][..],
            "the host `https://example.org`: name a host, not a URL, as in example.org or example.org:8443",
        ),
        (
            "bash",
            &["--net", "example.org", "--durable"],
            "a durable run of bash cannot reach hosts: its connections cannot be replayed",
        ),
    ] {
        let result = run(&place, language, "true", more);
        assert_eq!(result["error"]["message"], message, "{result:#}");
    }
}
