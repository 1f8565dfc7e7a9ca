//! The protocol over a pair of pipes, one message a line.
//!
//! The library's own transport drops lines that are too long, so that their caller waits for ever, and
//! tries every kind of result on an answer of megabytes. Here answers to requests with a [`Ticket`] are
//! handed over unparsed, and a line that is too long ends the connection. Unsolicited messages go through
//! an [`Intake`] first.

use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{
        ClientNotification, ErrorCode, ErrorData, GetExtensions, JsonRpcMessage, NumberOrString,
        RequestId, ServerJsonRpcMessage, ServerResult,
    },
    service::TxJsonRpcMessage,
    transport::Transport,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe,
};

use super::{
    error::shorten,
    intake::{Intake, MAX_UNASKED_BYTES, Passage},
    liveness::Liveness,
    process::Pipes,
    ticket::{RawResult, Ticket},
};

/// No message is longer: room for 100 MB of text that is sent twice.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// No unsolicited message is longer.
const MAX_UNASKED_LINE_BYTES: usize = 1 << 20;
/// As much as comes at once.
const READ_BYTES: usize = 256 << 10;

/// Requests without an answer, by number; with their tickets, if they have one.
type PendingRequests = Arc<Mutex<HashMap<i64, Option<Arc<Ticket>>>>>;

/// The client's end of the pipes of a server.
#[derive(Debug)]
pub(super) struct PipeTransport {
    input: BufReader<pipe::Receiver>,
    line: Vec<u8>,
    output: Arc<tokio::sync::Mutex<Option<pipe::Sender>>>,
    waiting: PendingRequests,
    intake: Intake,
    /// Whether the handshake is over.
    has_begun: bool,
    liveness: Arc<Liveness>,
}

impl PipeTransport {
    pub(super) fn new(
        Pipes { from_server, to_server }: Pipes,
        intake: Intake,
        liveness: Arc<Liveness>,
    ) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BYTES, from_server),
            line: Vec::new(),
            output: Arc::new(tokio::sync::Mutex::new(Some(to_server))),
            waiting: PendingRequests::default(),
            intake,
            has_begun: false,
            liveness,
        }
    }

    /// Reads on until the line in `self.line` is whole. May be dropped and called again: what was
    /// read is kept.
    async fn read_line(&mut self) -> Result<(), String> {
        loop {
            // The server ended the connection, not the host.
            let ended = |why: String| {
                self.liveness.stop(why.as_str());
                why
            };
            let read = self.input.fill_buf().await.map_err(|error| ended(error.to_string()))?;
            if read.is_empty() {
                return Err(ended("it closed its output".to_owned()));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let take = end.map_or(read.len(), |end| end + 1);
            if self.line.len() + take > MAX_MESSAGE_BYTES {
                return Err(format!("it sent a message over {} MB", MAX_MESSAGE_BYTES >> 20));
            }
            let is_expected = || lock(&self.waiting).values().any(Option::is_some);
            if self.has_begun && self.line.len() > MAX_UNASKED_LINE_BYTES && !is_expected() {
                return Err("it sent an unsolicited message over 1 MB".to_owned());
            }
            self.line.extend_from_slice(read.get(..take).unwrap_or_default());
            self.input.consume(take);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// The message that the library should see of a line. Lines that are no messages are ignored:
    /// programs print such things. The error says why the server must be disconnected.
    fn sort(&mut self, line: Vec<u8>) -> Result<Option<ServerJsonRpcMessage>, String> {
        let text = line.trim_ascii();
        let Ok(envelope) = serde_json::from_slice::<MessageEnvelope<'_>>(text) else {
            self.intake.stray()?;
            return Ok(None);
        };
        if let Some(method) = envelope.method {
            let passage = match &envelope.id {
                Some(_) => self.intake.request(text.len())?,
                None => {
                    let params = envelope.params;
                    let params = || shorten(params.map_or("", RawValue::get));
                    self.intake.notification(&method, text.len(), params)?
                }
            };
            return Ok(if passage == Passage::Pass { whole(text) } else { None });
        }
        let id = envelope.id.as_ref().and_then(number);
        let Some((id, ticket)) = id.and_then(|id| Some((id, lock(&self.waiting).remove(&id)?)))
        else {
            self.intake.stray()?;
            // The library judges the handshake.
            let is_small = text.len() <= MAX_UNASKED_BYTES;
            return Ok(if is_small && !self.has_begun { whole(text) } else { None });
        };
        let Some(ticket) = ticket else { return Ok(whole(text)) };
        if let Some(error) = envelope.error {
            let error = error_data(error);
            return Ok(Some(JsonRpcMessage::error(error, Some(RequestId::Number(id)))));
        }
        if let Some(result) = envelope.result {
            let result = result.get();
            let start = result.as_ptr().addr() - line.as_ptr().addr();
            let range = start..start + result.len();
            ticket.set_answer(RawResult::new(line, range));
        }
        // The library only needs to know that there is an answer.
        Ok(Some(JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id))))
    }

    async fn next(&mut self) -> Result<ServerJsonRpcMessage, String> {
        loop {
            self.intake.room().await?;
            self.read_line().await?;
            let line = std::mem::take(&mut self.line);
            if let Some(message) = self.sort(line)? {
                return Ok(message);
            }
        }
    }
}

/// Parses a message for the library.
fn whole(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let message = serde_json::from_slice(text);
    message.inspect_err(|error| tracing::debug!(%error, "unreadable message from a server")).ok()
}

impl Transport<RoleClient> for PipeTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let ticket = ticket_of(&message);
        self.has_begun |= ticket.is_some();
        if let Some(id) = request_number(&message) {
            lock(&self.waiting).insert(id, ticket.clone());
        }
        if let Some(id) = cancelled_number(&message) {
            lock(&self.waiting).remove(&id);
        }
        let answer_guard = is_answer(&message).then(|| self.intake.unanswered().answer_guard());
        let output = self.output.clone();
        async move {
            let _answer_guard = answer_guard;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            let output = output.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            if ticket.as_ref().is_some_and(|ticket| !ticket.begin()) {
                return Ok(());
            }
            let mut rest = line.as_slice();
            while !rest.is_empty() {
                match output.write(rest).await {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(error) => {
                        if rest.len() == line.len() {
                            ticket.inspect(|ticket| ticket.nothing_was_sent());
                        }
                        return Err(error);
                    }
                }
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(why) => {
                self.liveness.disconnect(why);
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A write that hangs holds the lock; then the server is ended from outside.
        if let Ok(mut output) = self.output.try_lock() {
            output.take();
        }
        Ok(())
    }
}

/// The fields that any message may have.
#[derive(Deserialize)]
struct MessageEnvelope<'a> {
    #[serde(default)]
    id: Option<NumberOrString>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A request's number, even if the server sends it as a text.
fn number(id: &RequestId) -> Option<i64> {
    match id {
        NumberOrString::Number(number) => Some(*number),
        NumberOrString::String(text) => text.parse().ok(),
    }
}

/// An error, even if the server leaves out required fields. A long one is not parsed.
fn error_data(error: &RawValue) -> ErrorData {
    if error.get().len() > MAX_UNASKED_BYTES {
        return ErrorData::new(ErrorCode::default(), shorten(error.get()), None);
    }
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str);
    let message = message.map_or_else(|| error.to_string(), str::to_owned);
    ErrorData::new(ErrorCode(code.unwrap_or_default()), message, error.get("data").cloned())
}

/// Whether a message answers something the server asked.
pub(super) fn is_answer(message: &TxJsonRpcMessage<RoleClient>) -> bool {
    matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
}

/// The ticket a request carries.
pub(super) fn ticket_of(message: &TxJsonRpcMessage<RoleClient>) -> Option<Arc<Ticket>> {
    let JsonRpcMessage::Request(request) = message else { return None };
    request.request.extensions().get::<Arc<Ticket>>().cloned()
}

fn request_number(message: &TxJsonRpcMessage<RoleClient>) -> Option<i64> {
    let JsonRpcMessage::Request(request) = message else { return None };
    number(&request.id)
}

fn cancelled_number(message: &TxJsonRpcMessage<RoleClient>) -> Option<i64> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    let ClientNotification::CancelledNotification(cancelled) = &notification.notification else {
        return None;
    };
    cancelled.params.request_id.as_ref().and_then(number)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
