//! Refuses messages that two readers could understand differently.
//!
//! The protocol library keeps the last of two equal keys. A client, a log or a proxy that keeps the
//! first sees a different call than the one that is made. Both transports refuse such a message
//! before the library sees it. What passes gets the mark of [`exact_json`](crate::exact_json).

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use belljar_wire::json::{JsonFlaw, check_keys, count_parts};
use rmcp::{
    RoleServer,
    model::{ErrorCode, ErrorData, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::{Deserialize, de::IgnoredAny};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
        DuplexStream,
    },
    sync::mpsc,
};

use crate::{api::error::ApiError, exact_json};

/// Size of the pipe between the line reader and the protocol library.
const PIPE_BYTES: usize = 64 << 10;
/// A buffer that a large message made larger than this shrinks again.
const KEPT_BYTES: usize = 1 << 20;
/// The most JSON values in one message: the library needs up to 200 bytes for each.
const MAX_PARTS: usize = 1_000_000;
/// The UTF-8 encoding of U+FEFF.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why a message must not be read; `None` if it may be.
fn refusal(message: &[u8]) -> Option<MessageRefusal> {
    let message = without_mark(message);
    #[derive(Deserialize)]
    struct Envelope {
        id: Option<RequestId>,
        method: Option<IgnoredAny>,
    }
    if message.trim_ascii().is_empty() {
        return None;
    }
    // Checked before anything is decoded: the library allocates for each value.
    if count_parts(message) >= MAX_PARTS {
        tracing::warn!("refused a message with too many JSON values");
        let why = format!("the message has more than {MAX_PARTS} JSON values");
        return Some(MessageRefusal { id: None, error: ErrorData::invalid_request(why, None) });
    }
    let flaw = check_keys(message).err()?;
    if let JsonFlaw::Malformed(_) = flaw {
        tracing::warn!(%flaw, "refused a message");
        return Some(MessageRefusal {
            id: None,
            error: ErrorData::parse_error(flaw.to_string(), None),
        });
    }
    let envelope = serde_json::from_slice::<Envelope>(message).ok();
    let id = envelope.filter(|envelope| envelope.method.is_some()).and_then(|one| one.id);
    tracing::warn!(%flaw, "refused a message");
    Some(MessageRefusal { id, error: ErrorData::invalid_params(flaw.to_string(), None) })
}

/// The message without its byte order mark, which the protocol library ignores.
fn without_mark(message: &[u8]) -> &[u8] {
    message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message)
}

/// The error that answers a refused message.
#[derive(Debug)]
struct MessageRefusal {
    /// The id of the request; `None` for notifications and answers, which cannot be answered.
    id: Option<RequestId>,
    error: ErrorData,
}

/// Passes HTTP requests on whose message is unambiguous.
pub(crate) async fn refuse_ambiguous(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    // Its size was limited before it got here.
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return ApiError::invalid("the body ended early").into_response();
    };
    if let Some(MessageRefusal { id, error }) = refusal(&body) {
        let answer = TxJsonRpcMessage::<RoleServer>::error(error, id);
        let answer = serde_json::to_string(&answer).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/json")];
        return (StatusCode::BAD_REQUEST, kind, answer).into_response();
    }
    let body = match exact_json::with_marked_arguments(without_mark(&body)) {
        Cow::Borrowed(_) => body,
        Cow::Owned(marked) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            marked.into()
        }
    };
    next.run(Request::from_parts(parts, Body::from(body))).await
}

/// A transport over streams that reads only unambiguous messages.
pub(crate) struct UnambiguousTransport<T> {
    inner: T,
    refusals: mpsc::UnboundedReceiver<MessageRefusal>,
}

impl<T> UnambiguousTransport<T> {
    /// `transport` gets the lines of `input` that may be read. Needs a running tokio runtime.
    pub(crate) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        max_line_bytes: usize,
        transport: impl FnOnce(DuplexStream) -> T,
    ) -> Self {
        let (lines, near) = tokio::io::duplex(PIPE_BYTES);
        let (refuse, refusals) = mpsc::unbounded_channel();
        tokio::spawn(pass_lines(input, max_line_bytes, lines, refuse));
        Self { inner: transport(near), refusals }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for UnambiguousTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            tokio::select! {
                biased;
                Some(MessageRefusal { id, error }) = self.refusals.recv() => {
                    // Sent from a task of its own: if `receive` is cancelled, the answer must not
                    // be cut in half.
                    let answer = TxJsonRpcMessage::<RoleServer>::error(error, id);
                    tokio::spawn(self.inner.send(answer));
                }
                message = self.inner.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Passes lines on until the input ends. The library drops lines that are too long.
async fn pass_lines(
    input: impl AsyncRead + Unpin,
    max_line_bytes: usize,
    mut lines: DuplexStream,
    refuse: mpsc::UnboundedSender<MessageRefusal>,
) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        let mut bounded = (&mut input).take(max_line_bytes as u64 + 1);
        match bounded.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // The last line may lack its line feed; the library reads it anyway.
        let is_whole = line.ends_with(b"\n") || line.len() <= max_line_bytes;
        let is_whole_line = is_whole && !is_rest;
        let refused = if is_whole_line { refusal(&line) } else { None };
        is_rest = !is_whole;
        let passed = match refused {
            None if is_whole_line => {
                // The library drops a line that the mark made too long; such a line goes without.
                let marked = exact_json::with_marked_arguments(without_mark(&line));
                let fits = marked.len() <= max_line_bytes;
                lines.write_all(if fits { &marked } else { &line }).await.is_ok()
            }
            None => lines.write_all(&line).await.is_ok(),
            // A message without an id expects no answer; only unreadable messages are reported.
            Some(MessageRefusal { id: None, ref error })
                if error.code == ErrorCode::INVALID_PARAMS =>
            {
                true
            }
            Some(refused) => refuse.send(refused).is_ok(),
        };
        if !passed {
            return;
        }
        line.clear();
        line.shrink_to(KEPT_BYTES);
    }
}
