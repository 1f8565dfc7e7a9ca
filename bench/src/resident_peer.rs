//! A peer that stays: it is started once, says `ready`, and answers one request per line by its own
//! clock, so that no pipe is counted against what runs in the same process.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::peers::command;

/// The peer's process; it ends with this.
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
            .with_context(|| format!("could not start {}", program.display()))?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let mut driver = Self { child, input, output };
        let line = driver.line()?;
        if line != "ready" {
            bail!("it did not get ready: {}", driver.last_words());
        }
        Ok(driver)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks once: how long the answer took, and the answer.
    pub(super) fn ask(&mut self) -> anyhow::Result<(Duration, String)> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let (nanoseconds, answer) = line.split_once(' ').context("no time")?;
        Ok((Duration::from_nanos(nanoseconds.parse()?), answer.to_owned()))
    }

    /// The last line of what it complained of, having ended.
    fn last_words(&mut self) -> String {
        let mut said = String::new();
        let _ = self.child.kill();
        if let Some(mut complaints) = self.child.stderr.take() {
            let _ = complaints.read_to_string(&mut said);
        }
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for ResidentPeer {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not stay as a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
