//! The client, started in each of the ways to the server: in a cell, beside tinyproxy, in srt.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::https_server::{HOST, HttpsServer};
use crate::{
    Bench,
    peers::{PeerProgram, command},
    processes, program,
    python_peer::PythonPeer,
};

const CLIENT: &str = include_str!("client.py");

/// A way to run the client.
pub(super) trait NetworkClient {
    /// Makes so many requests, and fetches one body of so many bytes.
    fn run(&self, requests: u32, bytes: u64) -> anyhow::Result<ClientFigures>;
}

/// Times in milliseconds, as the client took them.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ClientFigures {
    /// Of requests on connections of their own.
    pub(super) fresh: Vec<f64>,
    /// Of requests on one connection.
    pub(super) reused: Vec<f64>,
    /// Of the large body.
    pub(super) large: f64,
    /// CPU time of client and proxy.
    #[serde(skip)]
    pub(super) cpu_ms: f64,
}

/// The client in a cell.
pub(super) struct BelljarClient {
    belljar: PathBuf,
    home: PathBuf,
    authority: PathBuf,
    port: u16,
}

/// The client on this machine.
pub(super) struct OutsideClient<'a> {
    python: PathBuf,
    authority: PathBuf,
    port: u16,
    proxy: Option<&'a TinyProxy>,
}

/// The client in the sandbox of srt.
pub(super) struct SrtClient {
    srt: PathBuf,
    settings: PathBuf,
    script: PathBuf,
    python: PathBuf,
    authority: PathBuf,
}

/// A proxy that many use, killed when this is dropped.
#[derive(Debug)]
pub(super) struct TinyProxy {
    child: Child,
    port: u16,
}

fn call(port: u16, requests: u32, bytes: u64) -> String {
    format!("measure({HOST:?}, {port}, {requests}, {bytes})")
}

/// Runs a command to its end; returns its output and the CPU time of its processes.
fn finish(command: &mut Command) -> anyhow::Result<(Vec<u8>, f64)> {
    let before = processes::cpu_of_children();
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let said = || format!("{}{}", text(&output.stderr), text(&output.stdout));
    ensure!(output.status.success(), "it ended with {}: {}", output.status, said());
    Ok((output.stdout, milliseconds(processes::cpu_of_children() - before)))
}

fn milliseconds(time: Duration) -> f64 {
    1000.0 * time.as_secs_f64()
}

impl BelljarClient {
    /// Its proxy passes on bytes.
    pub(super) fn tunnel(bench: &Bench<'_>, server: &HttpsServer) -> anyhow::Result<Self> {
        Self::with_rule(bench, server, "tunnel", "")
    }

    /// Its proxy sees each request.
    pub(super) fn seeing(bench: &Bench<'_>, server: &HttpsServer) -> anyhow::Result<Self> {
        Self::with_rule(bench, server, "seeing", r#", methods = ["GET"], paths = ["/**"]"#)
    }

    fn with_rule(
        bench: &Bench<'_>,
        server: &HttpsServer,
        name: &str,
        more: &str,
    ) -> anyhow::Result<Self> {
        let HttpsServer { port, authority, .. } = server;
        let home = bench.scratch.path().join(name);
        let configuration = home.join(".config/belljar");
        fs::create_dir_all(&configuration)?;
        let rule =
            format!("[net]\nallow = [{{ host = \"{HOST}:{port}\", private = true{more} }}]\n");
        fs::write(configuration.join("belljar.toml"), rule)?;
        Ok(Self { belljar: program::belljar()?, home, authority: authority.clone(), port: *port })
    }
}

impl NetworkClient for BelljarClient {
    fn run(&self, requests: u32, bytes: u64) -> anyhow::Result<ClientFigures> {
        let code = format!("{CLIENT}\n\n{}", call(self.port, requests, bytes));
        let net = format!("{HOST}:{}", self.port);
        let mut command = command(&self.belljar);
        command.args(["run", "--json", "-l", "python", "--permissive", "--timeout", "10m"]);
        command.args(["--max-net", "1000000", "--max-net-bytes", "64GiB"]);
        command.args(["--net", &net, "-c", &code]);
        command.env("HOME", &self.home).env("SSL_CERT_FILE", &self.authority);
        command.current_dir(&self.home).env_remove("XDG_CONFIG_HOME");
        let (output, host_ms) = finish(&mut command)?;
        let result: Value = serde_json::from_slice(&output)?;
        let of_cell = result.pointer("/metrics/cpuTimeMs").and_then(Value::as_f64);
        let cpu_ms = host_ms + of_cell.context("the result has no CPU time")?;
        let figures = result.get("result").cloned().context("there is no result")?;
        Ok(ClientFigures { cpu_ms, ..serde_json::from_value(figures)? })
    }
}

impl<'a> OutsideClient<'a> {
    /// Without a proxy.
    pub(super) fn direct(python: &PythonPeer, server: &HttpsServer) -> Self {
        let HttpsServer { port, authority, .. } = server;
        let (python, authority) = (python.program.clone(), authority.clone());
        Self { python, authority, port: *port, proxy: None }
    }
}

impl NetworkClient for OutsideClient<'_> {
    fn run(&self, requests: u32, bytes: u64) -> anyhow::Result<ClientFigures> {
        let call = call(self.port, requests, bytes);
        let code = format!("{CLIENT}\n\nimport json\nprint(json.dumps({call}))");
        let mut command = command(&self.python);
        command.args(["-c", &code]).env("SSL_CERT_FILE", &self.authority);
        let before = match self.proxy {
            Some(proxy) => {
                command.env("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy.port));
                processes::cpu_of(proxy.child.id())
            }
            None => {
                command.env_remove("HTTPS_PROXY");
                Duration::ZERO
            }
        };
        let (output, client_ms) = finish(&mut command)?;
        let after = self.proxy.map_or(Duration::ZERO, |proxy| processes::cpu_of(proxy.child.id()));
        let cpu_ms = client_ms + milliseconds(after.saturating_sub(before));
        Ok(ClientFigures { cpu_ms, ..serde_json::from_slice(&output)? })
    }
}

impl SrtClient {
    pub(super) fn new(
        bench: &Bench<'_>,
        peer: &PeerProgram,
        python: &PythonPeer,
        server: &HttpsServer,
    ) -> anyhow::Result<Self> {
        let settings = json!({
            "network": {"allowedDomains": [HOST], "deniedDomains": []},
            "filesystem": {"denyRead": [], "allowWrite": ["/tmp"], "denyWrite": []},
        });
        let settings = bench.file("srt.json", &settings.to_string())?;
        let arguments = "int(sys.argv[1]), int(sys.argv[2])";
        let call = format!("measure({HOST:?}, {}, {arguments})", server.port);
        let script = format!("{CLIENT}\n\nimport json, sys\nprint(json.dumps({call}))");
        let script = bench.file("srt.py", &script)?;
        let (python, authority) = (python.program.clone(), server.authority.clone());
        Ok(Self { srt: peer.program.clone(), settings, script, python, authority })
    }
}

impl NetworkClient for SrtClient {
    fn run(&self, requests: u32, bytes: u64) -> anyhow::Result<ClientFigures> {
        let mut command = command(&self.srt);
        let (python, script) = (self.python.display(), self.script.display());
        let line = format!("{python} {script} {requests} {bytes}");
        command.arg("--settings").arg(&self.settings).args(["-c", &line]);
        command.env("SSL_CERT_FILE", &self.authority).current_dir("/tmp");
        let (output, cpu_ms) = finish(&mut command)?;
        Ok(ClientFigures { cpu_ms, ..serde_json::from_slice(&output)? })
    }
}

impl TinyProxy {
    /// Starts it with the settings of its own that matter here, and without a log.
    pub(super) fn start(bench: &Bench<'_>, program: &Path) -> anyhow::Result<Self> {
        // The port is free again when the listener is gone.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let settings =
            format!("Port {port}\nListen 127.0.0.1\nMaxClients 100\nLogLevel Critical\n");
        let settings = bench.file("tinyproxy.conf", &settings)?;
        let mut starting = command(program);
        starting.arg("-d").arg("-c").arg(settings);
        let child = starting.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let proxy = Self { child: child.spawn().context("cannot start tinyproxy")?, port };
        for _ in 0..200 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(proxy);
            }
            sleep(Duration::from_millis(10));
        }
        bail!("tinyproxy does not listen")
    }

    pub(super) fn client(&self, python: &PythonPeer, server: &HttpsServer) -> OutsideClient<'_> {
        OutsideClient { proxy: Some(self), ..OutsideClient::direct(python, server) }
    }
}

impl Drop for TinyProxy {
    fn drop(&mut self) {
        // It may have ended by itself; it must be reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
