//! A peer process that is started once, prints `ready`, and answers one request per line. It
//! measures its own time, so that the pipe does not count against a peer that runs code in its own
//! process.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::peers::command;

/// The peer's process, killed when this is dropped.
#[derive(Debug)]
pub(super) struct ResidentPeer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl ResidentPeer {
    /// Starts a script and waits until it is ready.
    pub(super) fn start(program: &Path, script: &Path) -> anyhow::Result<Self> {
        let mut child = command(program)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let input = child.stdin.take().context("the process has no standard input")?;
        let output =
            BufReader::new(child.stdout.take().context("the process has no standard output")?);
        let mut driver = Self { child, input, output };
        let line = driver.line()?;
        if line != "ready" {
            bail!("it did not become ready: {}", driver.last_words());
        }
        Ok(driver)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends one request and returns the time the answer took, and the answer.
    pub(super) fn ask(&mut self) -> anyhow::Result<(Duration, String)> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let (nanoseconds, answer) = line.split_once(' ').context("the peer reported no time")?;
        Ok((Duration::from_nanos(nanoseconds.parse()?), answer.to_owned()))
    }

    /// The last line of its standard error, after it has ended.
    fn last_words(&mut self) -> String {
        let mut said = String::new();
        let _ = self.child.kill();
        if let Some(mut complaints) = self.child.stderr.take() {
            let _ = complaints.read_to_string(&mut said);
        }
        said.lines().last().unwrap_or("no output").to_owned()
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for ResidentPeer {
    fn drop(&mut self) {
        // The process may have ended by itself; it must be reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
