//! A project whose server keeps a ledger of what really happened, whoever is killed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use belljar_contract::{RunId, Verdict};
use belljar_project::now_ms;
use belljar_store::{Approval, Approvals, Store};
use serde_json::Value;

use crate::command::{BELLJAR, Outcome, Place, block_on, outcome};

/// Longer than anything here takes on a machine that still works.
const PATIENCE: Duration = Duration::from_secs(60);

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/ledger.py");

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// It ends with the host.
    Stdio,
    /// It goes on when the host is gone, and so does a call that has left.
    Http,
}

/// A project with the server as `ledger`, all of whose tools are allowed.
pub(crate) struct LedgerProject {
    pub(crate) place: Place,
    ledger: PathBuf,
    server: Option<Child>,
}

impl Drop for LedgerProject {
    fn drop(&mut self) {
        self.end_server();
    }
}

impl LedgerProject {
    pub(crate) fn new(transport: Transport) -> Self {
        Self::with(transport, "allow = [\"ledger__*\"]")
    }

    /// With these `[permissions]`.
    pub(crate) fn with(transport: Transport, permissions: &str) -> Self {
        let place = Place::new();
        let ledger = place.path().join("ledger");
        fs::create_dir(&ledger).unwrap();
        fs::write(ledger.join("ledger"), "").unwrap();
        let (server, reached) = match transport {
            Transport::Stdio => {
                let args = toml::Value::from(vec!["-S", SERVER, "stdio", ledger.to_str().unwrap()]);
                (None, format!("command = \"python3\"\nargs = {args}"))
            }
            Transport::Http => {
                let (server, port) = serve(&place, &ledger);
                (Some(server), format!("url = \"http://127.0.0.1:{port}/mcp\""))
            }
        };
        let configuration = format!(
            "[mcp_servers.ledger]\n{reached}\nidempotent = [\"safe\", \"slow\"]\n\n\
             [permissions]\n{permissions}\n"
        );
        place.file("work/belljar.toml", configuration);
        Self { place, ledger, server }
    }

    /// Ends a server that is a process of its own.
    pub(crate) fn end_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Starts `belljar` without waiting for it.
    pub(crate) fn start(&self, arguments: &[&str], crash_at: Option<&str>) -> Child {
        let mut command = self.place.command(BELLJAR);
        if let Some(place) = crash_at {
            command.env("BELLJAR_CRASH_AT", place);
        }
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program under test starts")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.state()).unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.place.path().join("work/.belljar")
    }

    /// The one run there is, once it is there.
    pub(crate) fn run_id(&self) -> RunId {
        self.until("a run", || {
            if !self.state().join(belljar_store::FILE_NAME).exists() {
                return None;
            }
            block_on(self.store().runs(1, None)).unwrap().pop().map(|run| run.id)
        })
    }

    /// How many rows of this kind its journal has.
    pub(crate) fn journalled(&self, kind: &str) -> usize {
        let rows = block_on(self.store().journal(&self.run_id())).unwrap();
        rows.iter().filter(|(_, row)| row.kind == kind).count()
    }

    /// The questions nobody has answered.
    pub(crate) fn pending(&self) -> Vec<Approval> {
        block_on(self.store().approvals(Approvals::Pending, now_ms())).unwrap()
    }

    pub(crate) fn decide(&self, id: &str, verdict: Verdict) {
        block_on(self.store().decide(&id.into(), verdict, "test", now_ms())).unwrap();
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.ledger.join("ledger")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// How often this is in the ledger.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|there| *there == line).count()
    }

    /// The calls that ever came.
    fn asked_for(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| line.starts_with("asked "));
        lines
    }

    /// Keeps calls with this key from going on `before` their effect or `after` it.
    pub(crate) fn hold(&self, when: &str, key: &str) {
        fs::write(self.gate(when, key), "").unwrap();
    }

    pub(crate) fn release(&self, when: &str, key: &str) {
        let _ = fs::remove_file(self.gate(when, key));
    }

    fn gate(&self, when: &str, key: &str) -> PathBuf {
        self.ledger.join(format!("hold-{when}-{key}"))
    }

    /// Waits until something is there.
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} never came: {:?}", self.lines());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn until_line(&self, line: &str) {
        self.until(line, || (self.count(line) > 0).then_some(()));
    }

    /// Waits until no call that outlived its host is under way.
    pub(crate) fn until_quiet(&self) {
        if self.server.is_none() {
            // It ended with its host, a moment later.
            std::thread::sleep(Duration::from_millis(50));
            return;
        }
        self.until("quiet", || {
            let count = |word: &str| self.lines().iter().filter(|l| l.starts_with(word)).count();
            (count("asked ") == count("answered ")).then_some(())
        });
    }

    /// Goes on with the run until it has ended. Whoever is asked about a call in doubt looks into
    /// the ledger, and has it made again if it did not happen.
    pub(crate) fn resume_to_the_end(&self) -> Value {
        self.resume_deciding(|key| self.look(key))
    }

    /// Decides all that is in doubt.
    pub(crate) fn decide_by_looking(&self) {
        self.decide_all(|key| self.look(key));
    }

    fn look(&self, key: &str) -> Verdict {
        match self.count(&format!("did effect {key}")) {
            0 => Verdict::Retry,
            _ => Verdict::Deny,
        }
    }

    fn decide_all(&self, decide: impl Fn(&str) -> Verdict) {
        let pending = self.pending();
        assert!(!pending.is_empty(), "in doubt, and nothing to decide");
        for question in pending {
            assert!(question.asked.is_in_doubt(), "{question:?}");
            let arguments: Value = serde_json::from_str(&question.asked.arguments).unwrap();
            self.decide(&question.asked.id, decide(arguments["key"].as_str().unwrap()));
        }
    }

    /// The same with somebody else deciding, by the key of the call.
    pub(crate) fn resume_deciding(&self, decide: impl Fn(&str) -> Verdict) -> Value {
        let id = self.run_id();
        for _ in 0..10 {
            let before = self.asked_for();
            let ended = self.place.belljar(&["resume", &id, "--json"]);
            let result = ended.json();
            if result["status"] != "in_doubt" {
                return result;
            }
            assert_eq!(
                (ended.status, &result["error"]["code"]),
                (Some(1), &Value::from("tool.in_doubt"))
            );
            assert_eq!(self.asked_for(), before, "a call left before a person had decided");
            self.decide_all(&decide);
        }
        panic!("it does not come to an end: {:?}", self.lines());
    }
}

/// The outcome of a program that is killed by others, or by itself.
pub(crate) fn killed(mut child: Child) -> Outcome {
    let _ = child.kill();
    outcome(child.wait_with_output().expect("the program under test ends"))
}

fn serve(place: &Place, ledger: &Path) -> (Child, String) {
    let mut server = place
        .command("python3")
        .args(["-S", SERVER, "http"])
        .arg(ledger)
        .spawn()
        .expect("there is a Python");
    let begun = Instant::now();
    loop {
        if let Ok(port) = fs::read_to_string(ledger.join("port")) {
            return (server, port);
        }
        let ended = server.try_wait().expect("it can be waited for");
        if ended.is_some() || begun.elapsed() > PATIENCE {
            let _ = server.kill();
            let _ = server.wait();
            panic!("the server does not start: {ended:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
