//! The other runtimes: finding them, starting them, talking to them.
//!
//! Peers get no sandbox of ours and every quick path they have; what is timed is their whole answer.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

/// Deno with nothing allowed and nothing looked up, as an agent's code is run.
const DENO_RUN: [&str; 5] = ["run", "--no-prompt", "--no-config", "--no-remote", "--no-npm"];

/// A runtime to be measured against.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) version: String,
    program: PathBuf,
    arguments: &'static [&'static str],
}

/// What was found on this machine.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) deno: Option<Peer>,
    pub(super) node: Option<Peer>,
    pub(super) bun: Option<Peer>,
    pub(super) pyodide: Option<Pyodide>,
    pub(super) bash: Option<PeerProgram>,
    pub(super) bubblewrap: Option<PeerProgram>,
}

/// A program to be measured against that runs no scripts of ours.
#[derive(Debug, Clone)]
pub(super) struct PeerProgram {
    pub(super) version: String,
    pub(super) program: PathBuf,
}

/// `CPython` as `WebAssembly`: a package that a JavaScript runtime loads.
#[derive(Debug, Clone)]
pub(super) struct Pyodide {
    pub(super) version: String,
    pub(super) directory: PathBuf,
}

impl Peers {
    /// Looks in the directory of `scripts/peers`, then along the PATH.
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
        }
    }

    /// The JavaScript runtimes there are.
    pub(super) fn found(&self) -> impl Iterator<Item = &Peer> {
        [&self.deno, &self.node, &self.bun].into_iter().flatten()
    }

    /// The JavaScript runtimes there are not.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        let peers = [("deno", &self.deno), ("node", &self.node), ("bun", &self.bun)];
        peers.into_iter().filter(|(_, peer)| peer.is_none()).map(|(name, _)| name)
    }
}

impl Peer {
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs a script in a new process and gives its whole time and output.
    pub(super) fn cold(&self, script: &Path, input: &[u8]) -> anyhow::Result<(Duration, String)> {
        let began = Instant::now();
        let mut child = self.spawn(script)?;
        let output = finish(&mut child, input)?;
        Ok((began.elapsed(), output))
    }

    /// Starts a process that says `ready` and then waits for its standard input.
    pub(super) fn warm(&self, script: &Path) -> anyhow::Result<WarmPeer> {
        let mut child = self.spawn(script)?;
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("{} did not get ready: {line:?}", self.name);
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
            .with_context(|| format!("could not start {}", self.program.display()))
    }
}

/// A process that waits for its one piece of work.
#[derive(Debug)]
pub(super) struct WarmPeer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl WarmPeer {
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives it its input and waits for the one line it answers.
    pub(super) fn answer(mut self, input: &[u8]) -> anyhow::Result<(Duration, String)> {
        let began = Instant::now();
        let mut stdin = self.child.stdin.take().context("no input")?;
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
        // It may have ended by itself; either way it must not stay as a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs any program to its end and gives its whole time and output.
pub(super) fn time_program(
    program: &Path,
    arguments: &[&str],
) -> anyhow::Result<(Duration, String)> {
    time_program_on(program, arguments, &[])
}

/// The same with something on its standard input.
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
        .with_context(|| format!("could not start {}", program.display()))?;
    let output = finish(&mut child, input)?;
    Ok((began.elapsed(), output))
}

fn finish(child: &mut Child, input: &[u8]) -> anyhow::Result<String> {
    let mut stdin = child.stdin.take().context("no input")?;
    match stdin.write_all(input) {
        // A script that does not read its input may be gone before it is written.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => drop(stdin),
    }
    let mut output = String::new();
    child.stdout.take().context("no output")?.read_to_string(&mut output)?;
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
    // Relative to the current directory it would be looked up along the PATH.
    std::path::absolute(program).ok()
}

/// The files a name may mean along the PATH, in order.
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
    let (_, output) = time_program(program, &["--version"]).ok()?;
    let line = output.lines().next()?;
    line.split_ascii_whitespace().find(|word| word.contains('.')).map(str::to_owned)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark has to start what it compares with")]
pub(super) fn command(program: &Path) -> Command {
    Command::new(program)
}
