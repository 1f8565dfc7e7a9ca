//! The other runtimes: finds them, starts them and exchanges data with them.
//!
//! Peers run without Belljar's sandbox and with every fast path they have. Their whole answer time
//! counts.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

/// Deno without permissions and without remote imports, as one would run untrusted code.
const DENO_RUN: [&str; 5] = ["run", "--no-prompt", "--no-config", "--no-remote", "--no-npm"];

/// A JavaScript runtime to compare with.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) version: String,
    program: PathBuf,
    arguments: &'static [&'static str],
}

/// The peers found on this machine.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) deno: Option<Peer>,
    pub(super) node: Option<Peer>,
    pub(super) bun: Option<Peer>,
    pub(super) pyodide: Option<Pyodide>,
    pub(super) bash: Option<PeerProgram>,
    pub(super) bubblewrap: Option<PeerProgram>,
    pub(super) tinyproxy: Option<PeerProgram>,
    /// Anthropic's sandbox runtime.
    pub(super) srt: Option<PeerProgram>,
}

/// Any other program to compare with; it does not run our scripts.
#[derive(Debug, Clone)]
pub(super) struct PeerProgram {
    pub(super) version: String,
    pub(super) program: PathBuf,
}

/// `CPython` compiled to `WebAssembly`: a package that a JavaScript runtime loads.
#[derive(Debug, Clone)]
pub(super) struct Pyodide {
    pub(super) version: String,
    pub(super) directory: PathBuf,
}

impl Peers {
    /// Looks in the directory of `scripts/peers` first, then in the PATH.
    pub(super) fn find(directory: &Path) -> Self {
        let find = |name, arguments| {
            let program = locate(directory, name)?;
            let version = version(&program)?;
            Some(Peer { name, version, program, arguments })
        };
        let tool = |name| {
            let program = locate(directory, name)?;
            Some(PeerProgram { version: version(&program)?, program })
        };
        Self {
            deno: find("deno", &DENO_RUN),
            node: find("node", &[]),
            bun: find("bun", &[]),
            pyodide: pyodide(directory),
            bash: tool("bash"),
            bubblewrap: tool("bwrap"),
            tinyproxy: tool("tinyproxy"),
            srt: tool("srt"),
        }
    }

    /// The JavaScript runtimes that are installed.
    pub(super) fn found(&self) -> impl Iterator<Item = &Peer> {
        [&self.deno, &self.node, &self.bun].into_iter().flatten()
    }

    /// Names of the JavaScript runtimes that are not installed.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        let peers = [("deno", &self.deno), ("node", &self.node), ("bun", &self.bun)];
        peers.into_iter().filter(|(_, peer)| peer.is_none()).map(|(name, _)| name)
    }
}

impl Peer {
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs a script in a new process and returns its total time and output.
    pub(super) fn cold(&self, script: &Path, input: &[u8]) -> anyhow::Result<(Duration, String)> {
        let began = Instant::now();
        let mut child = self.spawn(script)?;
        let output = finish(&mut child, input)?;
        Ok((began.elapsed(), output))
    }

    /// Starts a process that prints `ready` and then waits for its standard input.
    pub(super) fn warm(&self, script: &Path) -> anyhow::Result<WarmPeer> {
        let mut child = self.spawn(script)?;
        let mut output =
            BufReader::new(child.stdout.take().context("the process has no standard output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("{} did not become ready: {line:?}", self.name);
        }
        Ok(WarmPeer { child, output })
    }

    fn spawn(&self, script: &Path) -> anyhow::Result<Child> {
        command(&self.program)
            .args(self.arguments)
            .arg(script)
            .env("NO_COLOR", "1")
            .env("DENO_NO_UPDATE_CHECK", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))
    }
}

/// A started process that waits for its single request.
#[derive(Debug)]
pub(super) struct WarmPeer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl WarmPeer {
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the input and waits for the one-line answer.
    pub(super) fn answer(mut self, input: &[u8]) -> anyhow::Result<(Duration, String)> {
        let began = Instant::now();
        let mut stdin = self.child.stdin.take().context("the process has no standard input")?;
        stdin.write_all(input)?;
        drop(stdin);
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let time = began.elapsed();
        Ok((time, line.trim().to_owned()))
    }
}

impl Drop for WarmPeer {
    fn drop(&mut self) {
        // The process may have ended by itself; it must be reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs any program to its end and returns its total time and output.
pub(super) fn time_program(
    program: &Path,
    arguments: &[&str],
) -> anyhow::Result<(Duration, String)> {
    time_program_on(program, arguments, &[])
}

/// The same, with data on its standard input.
pub(super) fn time_program_on(
    program: &Path,
    arguments: &[&str],
    input: &[u8],
) -> anyhow::Result<(Duration, String)> {
    let began = Instant::now();
    let mut child = command(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let output = finish(&mut child, input)?;
    Ok((began.elapsed(), output))
}

fn finish(child: &mut Child, input: &[u8]) -> anyhow::Result<String> {
    let mut stdin = child.stdin.take().context("the process has no standard input")?;
    match stdin.write_all(input) {
        // A script that does not read its input may exit before all of it is written.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => drop(stdin),
    }
    let mut output = String::new();
    child
        .stdout
        .take()
        .context("the process has no standard output")?
        .read_to_string(&mut output)?;
    let status = child.wait()?;
    if !status.success() {
        bail!("a peer failed ({status}): {output}");
    }
    Ok(output.trim().to_owned())
}

fn locate(directory: &Path, name: &str) -> Option<PathBuf> {
    let installed = [directory.join("bin"), directory.to_owned()];
    let installed = installed.into_iter().map(|directory| directory.join(name));
    let program = installed.chain(on_path(name)).find(|program| program.is_file())?;
    // A bare name would be looked up in the PATH instead of the current directory.
    std::path::absolute(program).ok()
}

/// The candidate files for a name in the PATH, in order.
pub(super) fn on_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    directories
        .into_iter()
        .map(move |directory| directory.join(name))
        .filter(|program| program.is_file())
}

fn pyodide(directory: &Path) -> Option<Pyodide> {
    let directory = std::path::absolute(directory.join("pyodide/node_modules/pyodide")).ok()?;
    let text = fs::read_to_string(directory.join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(Pyodide { version: package.get("version")?.as_str()?.to_owned(), directory })
}

fn version(program: &Path) -> Option<String> {
    let asked = ["--version", "-v"].map(|flag| time_program(program, &[flag]));
    let (_, output) = asked.into_iter().find_map(Result::ok)?;
    let line = output.lines().next()?;
    line.split_ascii_whitespace().find(|word| word.contains('.')).map(str::to_owned)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark has to start what it compares with")]
pub(super) fn command(program: &Path) -> Command {
    Command::new(program)
}
