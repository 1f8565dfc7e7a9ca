//! What a run tells while it goes on, passed to the client's side.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_runtime::{Listener, Stream};
use belljar_server::{ApprovalKind, ApprovalRequest, Observer};
use belljar_tools::{ApprovalNotice, Tool, ToolReach};

use super::records::arguments;

/// Passes on what the bridge tells.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) observer: Observer,
}

impl belljar_tools::CallObserver for Told {
    fn run_begins(&self, run_id: &str) {
        self.observer.started(run_id);
    }

    fn approval_waits(&self, notice: &ApprovalNotice) {
        // What is in doubt is not waited for: a run stops for it.
        let kind = ApprovalKind::Call;
        self.observer.approval(ApprovalRequest {
            id: notice.id.clone(),
            kind,
            message: kind.message(),
            tool: notice.tool.clone(),
            arguments: arguments(&notice.arguments),
            run_id: notice.run_id.clone(),
            line: notice.line,
            code_line: notice.code_line.clone(),
            expires_ms: u64::try_from(notice.expires_ms).ok(),
        });
    }

    fn approval_over(&self, id: &str) {
        self.observer.settled(id);
    }

    fn call_begins(&self, tool: &Tool, _reach: ToolReach) {
        self.observer.call_began(&tool.qualified_name());
    }

    fn call_ends(&self, tool: &str, is_ok: bool, duration: Duration) {
        self.observer.call_ended(tool, is_ok, duration);
    }
}

/// Passes on what the code prints. Pieces may end within a character: its first bytes wait here for
/// the rest.
#[derive(Debug)]
pub(super) struct Prints {
    observer: Observer,
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Vec<u8>>,
}

impl Prints {
    /// A listener, if somebody wants to hear.
    pub(super) fn listener(observer: &Observer) -> Option<Arc<dyn Listener>> {
        let listener = || -> Arc<dyn Listener> {
            let observer = observer.clone();
            Arc::new(Self { observer, stdout: Mutex::default(), stderr: Mutex::default() })
        };
        observer.wants_prints().then(listener)
    }
}

impl Listener for Prints {
    fn printed(&self, stream: Stream, text: &[u8]) {
        let (stream, rest) = match stream {
            Stream::Stdout => (belljar_server::Stream::Stdout, Some(&self.stdout)),
            Stream::Stderr => (belljar_server::Stream::Stderr, Some(&self.stderr)),
            Stream::Log => (belljar_server::Stream::Log, None),
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

/// How many bytes at the end are the beginning of a character.
fn unfinished(text: &[u8]) -> usize {
    let last = text.utf8_chunks().last();
    let invalid = last.map(|chunk| chunk.invalid()).unwrap_or_default();
    // The same bytes, told apart from an error by there being more to come.
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}
