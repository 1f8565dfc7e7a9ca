//! A client of the plain HTTP API, and `belljar serve` for it.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use serde_json::Value;

use crate::{
    command::Place,
    mcp_support::{Reply, RunningServer},
};

const PATIENCE: Duration = Duration::from_secs(90);

impl RunningServer {
    /// An answer to a request with the token.
    pub(crate) fn api(&self, line: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("Host", self.address()), ("Authorization", &bearer)];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        self.http(line, &headers, body)
    }

    /// The same, which has to succeed, as JSON.
    pub(crate) fn ask(&self, line: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.api(line, &body);
        assert!((200..300).contains(&reply.status), "{line}: {reply:#?}");
        serde_json::from_str(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:#?}"))
    }

    /// The error of a request for a run that is refused with this status before any of its code runs.
    pub(crate) fn refused_run(&self, line: &str, body: &Value, status: u16) -> Value {
        let reply = self.api(line, &body.to_string());
        assert_eq!(reply.status, status, "{line}: {reply:#?}");
        let refused: Value = serde_json::from_str(&reply.body).expect("it is JSON");
        let run = refused["run_id"].as_str().unwrap_or_else(|| panic!("no run: {reply:#?}"));
        let run = self.ask(&format!("GET /v1/runs/{run}"), &Value::Null);
        for field in ["code", "message", "hint"] {
            assert_eq!(run["error"][field], refused["error"][field], "{run:#}");
        }
        assert_eq!(
            (&run["status"], &run["isolation"]["tier"]),
            (&"failed".into(), &"refused".into())
        );
        refused["error"].clone()
    }

    /// The events of a request while it goes on.
    pub(crate) fn follow(&self, line: &str, more: &str, body: &str) -> Events {
        let mut stream = TcpStream::connect(self.address()).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n",
            self.address(),
            self.token,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("the server reads");
        Events { lines: BufReader::new(stream) }
    }
}

/// A stream of events.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// The next event: its number, its name, what it says.
    pub(crate) fn next(&mut self) -> (u64, String, Value) {
        let (mut id, mut name) = (0, String::new());
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).expect("the server speaks");
            assert!(read > 0, "the stream ended");
            match line.trim_end().split_once(": ") {
                Some(("id", text)) => id = text.parse().expect("it is a number"),
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("data", text)) => {
                    return (id, name, serde_json::from_str(text).expect("it is JSON"));
                }
                _ => {}
            }
        }
    }

    /// Whether the server has ended the stream; what it still says is not heard.
    pub(crate) fn is_over(&mut self) -> bool {
        let mut line = String::from("\n");
        while matches!(line.as_str(), "\n" | "\r\n" | "0\r\n") || line.starts_with(':') {
            line.clear();
            if self.lines.read_line(&mut line).expect("the server speaks") == 0 {
                return true;
            }
        }
        false
    }

    /// The next event of this name.
    pub(crate) fn until(&mut self, wanted: &str) -> Value {
        loop {
            let (_, name, data) = self.next();
            if name == wanted {
                return data;
            }
        }
    }
}

/// A program that `scripts/http-tools` installs; it is run first, and has to succeed.
pub(crate) fn http_tool(place: &Place, program: &str) -> Command {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let elsewhere = std::env::var_os("BELLJAR_HTTP_TOOLS");
    let mut script = place.command(format!("{root}/scripts/http-tools"));
    // pip's own configuration says where packages come from.
    let pip = std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| name.starts_with("PIP_") || name == "HOME")
    });
    script.envs(pip);
    if let Some(elsewhere) = &elsewhere {
        script.env("BELLJAR_HTTP_TOOLS", elsewhere);
    }
    let installed = script.output().expect("there is a shell");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let tools = elsewhere.map_or_else(|| format!("{root}/target/http-tools").into(), PathBuf::from);
    place.command(tools.join("venv/bin").join(program))
}
