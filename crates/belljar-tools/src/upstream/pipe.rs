//! The protocol over a pair of pipes, one message a line.
//!
//! The library's own transport drops lines that are too long, so that their caller waits in vain, and
//! tries every kind of result on an answer of megabytes. Here answers to requests with a [`Ticket`]
//! are handed over as they came, and a line that is too long ends the connection.

use std::{
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
    pulse::Pulse,
    ticket::{RawResult, Ticket},
};

/// No message is longer: room for 100 MB of text that is sent twice.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// As much as comes at once.
const READ_BYTES: usize = 256 << 10;

type Waiting = Arc<Mutex<HashMap<i64, Arc<Ticket>>>>;

/// The client's end of the pipes of a server.
#[derive(Debug)]
pub(super) struct PipeTransport {
    input: BufReader<pipe::Receiver>,
    line: Vec<u8>,
    output: Arc<tokio::sync::Mutex<Option<pipe::Sender>>>,
    waiting: Waiting,
    pulse: Arc<Pulse>,
}

impl PipeTransport {
    pub(super) fn new(input: pipe::Receiver, output: pipe::Sender, pulse: Arc<Pulse>) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BYTES, input),
            line: Vec::new(),
            output: Arc::new(tokio::sync::Mutex::new(Some(output))),
            waiting: Waiting::default(),
            pulse,
        }
    }

    /// Reads on until the line in `self.line` is whole. May be dropped and called again: what was
    /// read is kept.
    async fn read_line(&mut self) -> Result<(), String> {
        loop {
            let read = self.input.fill_buf().await.map_err(|error| error.to_string())?;
            if read.is_empty() {
                return Err("it ended".to_owned());
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let take = end.map_or(read.len(), |end| end + 1);
            if self.line.len() + take > MAX_MESSAGE_BYTES {
                return Err(format!("it sent a message over {} MB", MAX_MESSAGE_BYTES >> 20));
            }
            self.line.extend_from_slice(read.get(..take).unwrap_or_default());
            self.input.consume(take);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// What the library should see of a line. Lines that are no messages are nothing: programs
    /// print such things.
    fn sort(&self, line: Vec<u8>) -> Option<ServerJsonRpcMessage> {
        let text = line.trim_ascii();
        if text.is_empty() {
            return None;
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(text) else {
            tracing::debug!(bytes = text.len(), "a line that is no message");
            return None;
        };
        let id = envelope.id.as_ref().filter(|_| envelope.method.is_none()).and_then(number);
        let Some((id, ticket)) = id.and_then(|id| Some((id, lock(&self.waiting).remove(&id)?)))
        else {
            let message = serde_json::from_slice(text);
            return message.inspect_err(|error| tracing::debug!(%error, "an odd message")).ok();
        };
        if let Some(error) = envelope.error {
            return Some(JsonRpcMessage::error(error_data(&error), Some(RequestId::Number(id))));
        }
        if let Some(result) = envelope.result {
            let result = result.get();
            let start = result.as_ptr().addr() - line.as_ptr().addr();
            let range = start..start + result.len();
            ticket.set_answer(RawResult::new(line, range));
        }
        // The library only needs to know that there is an answer.
        Some(JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id)))
    }
}

impl Transport<RoleClient> for PipeTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let ticket = ticket_of(&message);
        if let (Some(ticket), Some(id)) = (&ticket, request_number(&message)) {
            lock(&self.waiting).insert(id, ticket.clone());
        }
        if let Some(id) = cancelled_number(&message) {
            lock(&self.waiting).remove(&id);
        }
        let output = self.output.clone();
        async move {
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
        loop {
            if let Err(why) = self.read_line().await {
                self.pulse.stop(why);
                return None;
            }
            let line = std::mem::take(&mut self.line);
            if let Some(message) = self.sort(line) {
                return Some(message);
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

/// What every message has, whatever it is.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    id: Option<NumberOrString>,
    #[serde(default)]
    method: Option<Value>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

/// A request's number, also where a server has made a text of it.
fn number(id: &RequestId) -> Option<i64> {
    match id {
        NumberOrString::Number(number) => Some(*number),
        NumberOrString::String(text) => text.parse().ok(),
    }
}

/// An error, also where a server leaves out what it should say.
fn error_data(error: &Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str);
    let message = message.map_or_else(|| error.to_string(), str::to_owned);
    ErrorData::new(ErrorCode(code.unwrap_or_default()), message, error.get("data").cloned())
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
