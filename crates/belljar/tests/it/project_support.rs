//! A project with a server that counts, for the tests of what goes through the bridge.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStderr, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::command::{BELLJAR, Outcome, Place, outcome};

/// Longer than anything here takes on a machine that still works.
const PATIENCE: Duration = Duration::from_secs(60);

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/counting.py");

/// The counting server as lines of a `belljar.toml`.
pub(crate) fn counting_server(count_file: &Path) -> (String, String) {
    let command = format!("command = 'python3'\nargs = ['-S', '{SERVER}']");
    (command, format!("env = {{COUNT_FILE = '{}'}}", count_file.display()))
}

/// A project whose `.mcp.json` names the counting server as `count`.
pub(crate) struct CountingProject {
    pub(crate) place: Place,
}

impl CountingProject {
    /// With this `belljar.toml`.
    pub(crate) fn with(configuration: &str) -> Self {
        let place = Place::new();
        let count_file = place.path().join("count.txt");
        fs::write(&count_file, "").expect("there is room for a file");
        let servers = serde_json::json!({"mcpServers": {"count": {
            "command": "python3",
            "args": ["-S", SERVER],
            "env": {"COUNT_FILE": count_file},
        }}});
        place.file("work/.mcp.json", servers.to_string());
        place.file("work/belljar.toml", configuration);
        Self { place }
    }

    /// Whose server's word is taken.
    pub(crate) fn trusting(configuration: &str) -> Self {
        Self::with(&format!("[mcp_servers.count]\ntrusted = true\n{configuration}"))
    }

    pub(crate) fn belljar(&self, arguments: &[&str]) -> Outcome {
        self.place.belljar(arguments)
    }

    /// The result of a run of TypeScript, as JSON.
    pub(crate) fn run(&self, code: &str, arguments: &[&str]) -> Value {
        self.belljar(&[&["run", "--json", "-c", code], arguments].concat()).json()
    }

    /// A run that goes on while the test does.
    pub(crate) fn start(&self, code: &str, arguments: &[&str]) -> BackgroundRun {
        let mut child = self
            .place
            .command(BELLJAR)
            .args(["run", "--json", "-c", code])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program under test starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        BackgroundRun { child, stderr }
    }

    /// The lines that the server has appended so far.
    pub(crate) fn counted(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place.path().join("count.txt"));
        text.expect("the file is there").lines().map(str::to_owned).collect()
    }

    /// Waits until the server has appended this.
    pub(crate) fn wait_for(&self, line: &str) {
        let begun = Instant::now();
        while !self.counted().iter().any(|counted| counted == line) {
            assert!(begun.elapsed() < PATIENCE, "{line:?} never came: {:?}", self.counted());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A run that goes on while the test does.
pub(crate) struct BackgroundRun {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
}

impl BackgroundRun {
    /// The id of the approval it waits for next.
    pub(crate) fn approval(&mut self) -> String {
        let mut line = String::new();
        while self.stderr.read_line(&mut line).expect("it is text") > 0 {
            if let Some(rest) = line.strip_prefix("waiting for approval ") {
                return rest.split(':').next().expect("there is a first").to_owned();
            }
            line.clear();
        }
        panic!("it ended without asking")
    }

    /// The next line on its standard error with this text.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let mut line = String::new();
        while self.stderr.read_line(&mut line).expect("it is text") > 0 {
            if line.contains(text) {
                return line;
            }
            line.clear();
        }
        panic!("it ended without {text:?}")
    }

    /// The outcome.
    pub(crate) fn end(mut self) -> Outcome {
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).expect("it is text");
        let ended = outcome(self.child.wait_with_output().expect("the program under test ends"));
        Outcome { stderr, ..ended }
    }
}
