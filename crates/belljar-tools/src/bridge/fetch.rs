//! A fetch of a durable run: recorded before it leaves, answered from the journal in a replay, and resolved
//! if it is in doubt.
//!
//! Whether it may be made is not decided here: the run decides, as about all its connections. What leaves is
//! written to the journal there, together with the audit row. The outcome has the whole body of the answer.

use std::{
    fmt::{Debug, Write as _},
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use belljar_catalogue::visible::line;
use belljar_contract::{ApprovalQuestion, ErrorCode, hex};
use belljar_store::ConsentTerms;
use belljar_wire::{
    FetchAsk, FetchBody, FetchHead, FetchReply, FetchRequest, FetchStep, GuestInput, StopReason,
    ToolCall, ToolFault,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};

use super::{
    Bridge, RunContext,
    built_in::SERVER,
    call::Gate as _,
    doubts::Doubts,
    durable_call::{Doubt, JournalGate},
    run::Sink,
    sequence::InputArrival,
};
use crate::{crash::crash_point, replay::ReplayStep};

/// The most that the journal holds of one answer.
const MAX_BODY_BYTES: usize = 32 << 20;
/// The most that all answers of a run hold while they arrive.
const MAX_HELD_BYTES: usize = 64 << 20;
/// More of a body is not shown to the person who decides.
const MAX_SHOWN_BYTES: usize = 4 << 10;
/// The methods that change nothing (RFC 9110).
const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Takes the steps of fetches for a bridge.
pub trait FetchPort: Debug + Send + Sync {
    /// Takes a step and returns its reply.
    fn perform(
        &self,
        ask: FetchAsk,
    ) -> Pin<Box<dyn Future<Output = Result<FetchReply, ToolFault>> + Send + '_>>;
    /// Ends the fetch of this number.
    fn cancel(&self, fetch: u32);
}

/// One fetch of a durable run.
pub(super) struct DurableFetch {
    pub(super) bridge: Bridge,
    pub(super) run: Arc<RunContext>,
    pub(super) out: Sink,
    pub(super) doubts: Doubts,
    pub(super) gate: JournalGate,
    pub(super) port: Arc<dyn FetchPort>,
    pub(super) is_cancelled: watch::Receiver<bool>,
    /// The bytes of answers that arrive just now, of all fetches of the run.
    pub(super) held: Arc<AtomicUsize>,
}

/// The request of a step, if it is one that a durable run can take: one whose body is there.
pub(super) fn request_of(ask: FetchAsk) -> Option<FetchRequest> {
    match ask.step {
        FetchStep::Begin(request) if !matches!(request.body, FetchBody::Pieces { .. }) => {
            Some(request)
        }
        FetchStep::Begin(_) | FetchStep::Send { .. } | FetchStep::Read { .. } => None,
    }
}

/// The fetch as the journal and a person are shown it.
pub(super) fn recorded(number: u32, request: &FetchRequest) -> ToolCall {
    let FetchRequest { method, url, headers, body, line, .. } = request;
    let body: &[u8] = match body {
        FetchBody::Whole(bytes) => bytes,
        FetchBody::None | FetchBody::Pieces { .. } => &[],
    };
    let mut shown = json!({ "method": method, "url": url, "headers": headers });
    if let (Some(shown), false) = (shown.as_object_mut(), body.is_empty()) {
        shown.insert("body_bytes".to_owned(), json!(body.len()));
        shown.insert("body_sha256".to_owned(), json!(hex::encode(&Sha256::digest(body))));
        if let (Ok(text), true) = (std::str::from_utf8(body), body.len() <= MAX_SHOWN_BYTES) {
            shown.insert("body".to_owned(), json!(text));
        }
    }
    ToolCall {
        call: number,
        server: Some(SERVER.to_owned()),
        tool: "fetch".to_owned(),
        line: *line,
        arguments: shown.to_string().into_bytes(),
    }
}

/// The name of the fetch for people: method and URL without its query.
fn name_of(request: &FetchRequest) -> String {
    let url = request.url.split(['?', '#']).next().unwrap_or_default();
    line(&format!("fetch {} {url}", request.method), 120)
}

impl DurableFetch {
    /// Makes the request and sends on its outcome, unless the run is being ended.
    pub(super) async fn make(
        self,
        (call, request): (ToolCall, FetchRequest),
        step: ReplayStep,
        arrivals: mpsc::UnboundedSender<InputArrival>,
    ) {
        crash_point("asked");
        let outcome = match step {
            ReplayStep::InDoubt { times_sent } => {
                match self.resolve_doubt(&call, request, times_sent).await {
                    Some(outcome) => outcome,
                    None => return,
                }
            }
            ReplayStep::Fresh | ReplayStep::NotSent | ReplayStep::Recorded => {
                self.doubts.are_over().await;
                self.perform(call.call, request).await
            }
        };
        if self.gate.has_failed() {
            return;
        }
        let called = self.gate.take_called();
        let outcome = outcome.map_err(|fault| fault.to_json());
        let _ = arrivals.send(InputArrival::Ended { call: call.call, called, outcome });
    }

    /// Makes the request: the intent is on disk before anything is decided about it.
    async fn perform(&self, number: u32, request: FetchRequest) -> Result<Vec<u8>, ToolFault> {
        self.gate.before_asking().await?;
        let mut is_cancelled = self.is_cancelled.clone();
        tokio::select! {
            biased;
            Ok(_) = is_cancelled.wait_for(|is| *is) => {
                self.port.cancel(number);
                Err(ToolFault::new(ErrorCode::FetchFailed, "the code has cancelled it"))
            }
            answer = self.whole_answer(number, request) => answer,
        }
    }

    /// The answer with its whole body.
    async fn whole_answer(&self, number: u32, request: FetchRequest) -> Result<Vec<u8>, ToolFault> {
        let begin = FetchAsk { call: number, step: FetchStep::Begin(request) };
        let FetchReply { head, bytes } = self.port.perform(begin).await?;
        let malformed = || ToolFault::new(ErrorCode::FetchFailed, "the answer has no head");
        let head = head.ok_or_else(malformed)?;
        if head.is_whole {
            return Ok(head.with_body(&bytes));
        }
        let mut body = HeldBody { bytes, held: 0, all: &self.held };
        loop {
            let read = FetchAsk { call: number, step: FetchStep::Read { fetch: number } };
            let piece = self.port.perform(read).await?.bytes;
            if piece.is_empty() {
                return Ok(FetchHead { is_whole: true, ..head }.with_body(&body.bytes));
            }
            if let Err(fault) = body.add(&piece) {
                self.port.cancel(number);
                return Err(fault);
            }
        }
    }

    /// Resolves a fetch that was sent before the host died: one that changes nothing is repeated; about
    /// another one a person decides.
    async fn resolve_doubt(
        &self,
        call: &ToolCall,
        request: FetchRequest,
        times_sent: u32,
    ) -> Option<Result<Vec<u8>, ToolFault>> {
        let name = name_of(&request);
        let decided = match SAFE_METHODS.contains(&request.method.as_str()) {
            true => Ok(Doubt::Retry),
            false => self.decide_doubt(call, &name, times_sent).await,
        };
        let stop = self.doubts.close(decided.as_ref().err().cloned());
        if let Some(fault) = stop {
            (self.out)(GuestInput::Stop(StopReason::InDoubt(fault)));
        }
        let hint = match decided.ok()? {
            Doubt::Retry => {
                self.doubts.are_over().await;
                return Some(self.perform(call.call, request).await);
            }
            Doubt::Happened(result) => return Some(Ok(answer_with(&result))),
            Doubt::Fail => "a person decided not to repeat the request",
        };
        let message = format!("{name} may have happened before the host ended");
        Some(Err(ToolFault::new(ErrorCode::FetchFailed, message).with_hint(hint)))
    }

    /// Decides about a fetch in doubt; the error says why the run has to stop.
    async fn decide_doubt(
        &self,
        call: &ToolCall,
        name: &str,
        times_sent: u32,
    ) -> Result<Doubt, ToolFault> {
        let asked = (ApprovalQuestion::MayRepeat { times_sent }, ConsentTerms::default());
        let store = &self.gate.store;
        let approval = self.bridge.request_approval(store, &self.run, call, name, asked).await?;
        Doubt::of(approval, name, &self.run.run_id)
    }
}

/// The answer that a person entered: JSON, the body.
fn answer_with(json: &[u8]) -> Vec<u8> {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let head = FetchHead { status: 200, status_text: "OK".to_owned(), headers, is_whole: true };
    head.with_body(json)
}

/// A body that arrives, and counts among all that do.
struct HeldBody<'a> {
    bytes: Vec<u8>,
    held: usize,
    all: &'a AtomicUsize,
}

impl HeldBody<'_> {
    fn add(&mut self, piece: &[u8]) -> Result<(), ToolFault> {
        self.held += piece.len();
        let all = self.all.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() <= MAX_BODY_BYTES && all <= MAX_HELD_BYTES {
            return Ok(());
        }
        let (one, together) = (MAX_BODY_BYTES >> 20, MAX_HELD_BYTES >> 20);
        let mut message =
            format!("the answer is too large for the journal of a durable run: {one} MiB");
        let _ = write!(message, ", or {together} MiB for all answers that arrive at a time");
        Err(ToolFault::new(ErrorCode::FetchFailed, message))
    }
}

impl Drop for HeldBody<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, url: &str, body: &[u8]) -> FetchRequest {
        let body = FetchBody::Whole(body.to_vec());
        let headers = vec![("a".to_owned(), "b".to_owned())];
        let (method, url) = (method.to_owned(), url.to_owned());
        FetchRequest { method, url, headers, body, timeout_ms: None, line: None }
    }

    #[test]
    fn a_record_tells_bodies_apart_and_is_equal_for_equal_requests() {
        let made =
            |body: &[u8]| recorded(1, &request("POST", "https://a.example/", body)).arguments;
        assert_eq!(made(b"x"), made(b"x"));
        let large = [vec![b'x'; 10_000], vec![b'x'; 9_999], b"\xff".to_vec(), b"x".to_vec()];
        for (index, body) in large.iter().enumerate() {
            assert!(large.iter().skip(index + 1).all(|other| made(body) != made(other)));
            assert!(made(body).len() < 1000);
        }
    }

    #[test]
    fn a_person_sees_method_and_url_without_its_query() {
        let name = name_of(&request("POST", "https://a.example/x?token=secret", b""));
        assert_eq!(name, "fetch POST https://a.example/x");
    }
}
