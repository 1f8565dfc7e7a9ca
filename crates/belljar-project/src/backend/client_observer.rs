//! Forwards what happens in a run to the client that started it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_contract::{ApprovalId, RunId, Stream};
use belljar_runtime::Listener;
use belljar_server::RunReporter;
use belljar_tools::{ApprovalNotice, Tool, ToolReach};

use super::records::request;

/// Forwards the bridge's events.
#[derive(Debug)]
pub(super) struct ClientObserver {
    pub(super) observer: RunReporter,
}

impl belljar_tools::CallObserver for ClientObserver {
    fn run_begins(&self, run_id: &RunId) {
        self.observer.started(run_id);
    }

    fn approval_waits(&self, notice: &ApprovalNotice) {
        let place = (notice.project.clone(), notice.state_dir.clone());
        self.observer.approval(request(notice.asked.clone(), notice.scopes.clone(), place));
    }

    fn approval_over(&self, id: &ApprovalId) {
        self.observer.settled(id);
    }

    fn call_begins(&self, tool: &Tool, _reach: ToolReach) {
        self.observer.call_began(&tool.qualified_name());
    }

    fn call_ends(&self, tool: &str, is_ok: bool, duration: Duration) {
        self.observer.call_ended(tool, is_ok, duration);
    }
}

/// Forwards the code's output. A chunk may end inside a character; its first bytes are kept until
/// the rest arrives.
#[derive(Debug)]
pub(super) struct PrintForwarder {
    observer: RunReporter,
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Vec<u8>>,
}

impl PrintForwarder {
    /// A listener, if the client wants live output.
    pub(super) fn listener(observer: &RunReporter) -> Option<Arc<dyn Listener>> {
        let listener = || -> Arc<dyn Listener> {
            let observer = observer.clone();
            Arc::new(Self { observer, stdout: Mutex::default(), stderr: Mutex::default() })
        };
        observer.wants_prints().then(listener)
    }
}

impl Listener for PrintForwarder {
    fn printed(&self, stream: Stream, text: &[u8]) {
        let (stream, rest) = match stream {
            Stream::Stdout => (Stream::Stdout, Some(&self.stdout)),
            Stream::Stderr => (Stream::Stderr, Some(&self.stderr)),
            Stream::Log => (Stream::Log, None),
        };
        let Some(rest) = rest else {
            return self.observer.printed(stream, &String::from_utf8_lossy(text));
        };
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.extend_from_slice(text);
        let whole = rest.len() - unfinished(&rest);
        let text: Vec<u8> = rest.drain(..whole).collect();
        if !text.is_empty() {
            self.observer.printed(stream, &String::from_utf8_lossy(&text));
        }
    }
}

/// How many bytes at the end of the text start an incomplete character.
fn unfinished(text: &[u8]) -> usize {
    let last = text.utf8_chunks().last();
    let invalid = last.map(|chunk| chunk.invalid()).unwrap_or_default();
    // An incomplete character and an invalid one look alike; only the first can still be completed.
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}
