//! A call in a session over HTTP, on a persistent connection, to a separate host process.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
    time::Instant,
};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{WARM_UP, row};
use crate::{Bench, program, row::BenchRow, stats::Times};

/// Starts a host and times calls to it.
pub(super) fn measure(bench: &Bench<'_>, n: u32) -> anyhow::Result<Vec<BenchRow>> {
    let mut host = HttpHost::start(bench)?;
    let mut rows = Vec::new();
    for name in ["typescript", "python"] {
        let made = host.post("/v1/sessions", &json!({ "language": name }))?;
        let id = made
            .pointer("/session_id")
            .and_then(Value::as_str)
            .context("the host returned no session id")?;
        let path = format!("/v1/sessions/{id}/runs");
        let set = host.post(&path, &json!({ "code": "x = 1" }))?;
        ensure!(set.pointer("/success") == Some(&json!(true)), "a run failed: {set}");
        let mut times = Times::default();
        for round in 0..n + WARM_UP {
            let began = Instant::now();
            let answer = host.post(&path, &json!({ "code": "x + 1" }))?;
            let time = began.elapsed();
            ensure!(answer.pointer("/result") == Some(&json!(2)), "a run answered {answer}");
            if round >= WARM_UP {
                times.add(time);
            }
        }
        rows.push(row(&format!("belljar {name} call in a session, over HTTP"), &times));
    }
    Ok(rows)
}

/// A host process, killed when this is dropped.
struct HttpHost {
    process: Child,
    stream: BufReader<TcpStream>,
    address: String,
    token: String,
}

impl HttpHost {
    #[expect(clippy::disallowed_methods, reason = "a benchmark of a program has to start it")]
    fn start(bench: &Bench<'_>) -> anyhow::Result<Self> {
        let directory = bench.scratch.path().join("host");
        std::fs::create_dir_all(directory.join(".belljar"))?;
        let mut process = std::process::Command::new(program::belljar()?)
            .args(["serve", "--http", "127.0.0.1:0"])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a host")?;
        let stderr = process.stderr.take().context("the host has no standard error")?;
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address
            .with_context(|| format!("the host printed {line:?} instead of its address"))?
            .to_owned();
        let token = std::fs::read_to_string(directory.join(".belljar/token"))?;
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        let (stream, token) = (BufReader::new(stream), token.trim().to_owned());
        Ok(Self { process, stream, address, token })
    }

    fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let (body, address, token) = (body.to_string(), &self.address, &self.token);
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the host closed the connection");
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(bytes) = header.strip_prefix("content-length:") {
                length = bytes.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        serde_json::from_slice(&answer).with_context(|| {
            format!("the host's answer is not JSON: {}", String::from_utf8_lossy(&answer))
        })
    }
}

impl Drop for HttpHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
