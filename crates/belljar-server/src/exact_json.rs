//! JSON that reaches the client and the code as it was written: keys in their order, numbers with all
//! their digits.
//!
//! The protocol library keeps structured content and arguments as a tree, which sorts keys and rounds integers beyond 64
//! bits. So a text of JSON travels through it as a string behind a mark, and takes the place of that string
//! when the message is written. The mark is random and never leaves the process. What follows it is checked
//! to be one JSON value and written without line breaks, so a message stays one message whatever is in it.
//!
//! Towards the code it is the other way around: the arguments of a call that are for code get the mark before the
//! library reads the message. No client knows the mark, so no client can make a string that counts as marked.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    middleware::Next,
    response::Response,
};
use belljar_contract::{JsonText, JsonValue, hex, is_spelled_alike, json_value};
use futures_util::TryStreamExt as _;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::io::AsyncWrite;

use crate::{token::random_bytes, tools};

/// How a string that stands for JSON begins, with the quote before it.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\"json-{}:", hex::encode(&random_bytes())));

/// A text of JSON as a value for the protocol library.
pub(crate) fn value(json: &str) -> Value {
    let mark = MARK.strip_prefix('"').unwrap_or_default();
    Value::String(format!("{mark}{json}"))
}

/// The JSON that a string stands for, if it has the mark.
pub(crate) fn marked_text(text: &str) -> Option<&str> {
    text.strip_prefix(MARK.strip_prefix('"')?)
}

/// The value of an argument: exact, if it was marked.
pub(crate) fn tree(argument: Value) -> JsonValue {
    let marked = argument.as_str().and_then(marked_text);
    match marked.and_then(|json| json_value::parse(json).ok()) {
        Some(exact) => exact,
        None => argument.into(),
    }
}

/// A message with the arguments that are for code as marked strings, if it is a call with some.
///
/// The message must have passed [`check_keys`](belljar_wire::json::check_keys).
pub(crate) fn with_marked_arguments(message: &[u8]) -> Cow<'_, [u8]> {
    marked_arguments(message).map_or(Cow::Borrowed(message), Cow::Owned)
}

fn marked_arguments(message: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Call<'a> {
        method: String,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        name: String,
        #[serde(borrow)]
        arguments: BTreeMap<String, &'a RawValue>,
    }
    let Call { method, params } = serde_json::from_slice(message).ok()?;
    if method != "tools/call" {
        return None;
    }
    let Params { name, arguments } = serde_json::from_str(params.get()).ok()?;
    let (_, exact) = tools::EXACT_ARGUMENTS.iter().find(|(tool, _)| *tool == name)?;
    let mut text = Vec::with_capacity(message.len() + MARK.len() + 1);
    let mut rest = 0;
    // Two spellings of the name are refused later; until then, both are what they are.
    let is_exact = |name: &str| exact.iter().any(|exact| is_spelled_alike(exact, name));
    let values = arguments.iter().filter(|(name, _)| is_exact(name));
    let mut values: Vec<&str> = values.map(|(_, json)| json.get()).collect();
    values.sort_by_key(|json| json.as_ptr().addr());
    for json in values {
        // A string may be the text of JSON and `null` is no value: they stay as they are. The library
        // refuses what is nested too deeply and texts that are not Unicode.
        if !json.starts_with(|first: char| first.is_ascii_digit() || "{[-".contains(first))
            || JsonText::is_too_deep(json)
            || (has_trees(&name) && json_value::parse(json).is_err())
        {
            continue;
        }
        let place = json.as_ptr().addr().checked_sub(message.as_ptr().addr())?;
        text.extend_from_slice(message.get(rest..place)?);
        serde_json::to_writer(&mut text, &value(json)).ok()?;
        rest = place + json.len();
    }
    text.extend_from_slice(message.get(rest..)?);
    (rest > 0).then_some(text)
}

/// Whether the arguments of a tool are read as trees.
fn has_trees(tool: &str) -> bool {
    matches!(tool, tools::RUN_WORKFLOW | tools::WORKFLOW_COMMAND)
}

/// A message with each marked string replaced by the JSON that it stands for.
pub(crate) fn restored(message: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Vec::new();
    let mut rest = message;
    while let Some(place) = find(rest, MARK.as_bytes()) {
        let (before, marked) = rest.split_at(place);
        let Some((json, length)) = marked_json(marked) else { break };
        text.extend_from_slice(before);
        push_in_one_line(&mut text, json.get());
        rest = marked.get(length..).unwrap_or_default();
    }
    if text.is_empty() {
        return Cow::Borrowed(message);
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

/// The JSON that a marked string stands for, and the length of the string.
fn marked_json(marked: &[u8]) -> Option<(Box<RawValue>, usize)> {
    let mut strings = serde_json::Deserializer::from_slice(marked).into_iter::<String>();
    let string = strings.next()?.ok()?;
    let json = string.get(MARK.len() - 1..)?;
    Some((RawValue::from_string(json.to_owned()).ok()?, strings.byte_offset()))
}

/// Where a mark begins.
fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    let first = *mark.first()?;
    let mut from = 0;
    while let Some(near) = text.get(from..)?.iter().position(|byte| *byte == first) {
        let place = from + near;
        if text.get(place..)?.starts_with(mark) {
            return Some(place);
        }
        from = place + 1;
    }
    None
}

/// JSON without the white space between its parts. Strings have no line breaks in them.
fn push_in_one_line(text: &mut Vec<u8>, json: &str) {
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => continue,
            _ => {}
        }
        text.push(byte);
    }
}

/// Restores the JSON in answers over HTTP. The library writes each message in one piece.
pub(crate) async fn restore_body(request: Request, next: Next) -> Response {
    next.run(request).await.map(|body| {
        let pieces = body.into_data_stream();
        Body::from_stream(pieces.map_ok(|piece| match restored(&piece) {
            Cow::Borrowed(_) => piece,
            Cow::Owned(text) => Bytes::from(text),
        }))
    })
}

/// Restores the JSON in lines that are written.
#[derive(Debug)]
pub(crate) struct RestoringWriter<W> {
    inner: W,
    /// The written part of the line that has not ended.
    line: Vec<u8>,
    /// Whole lines that the stream has not yet taken, and how much of them it has.
    lines: Vec<u8>,
    sent: usize,
}

impl<W: AsyncWrite + Unpin> RestoringWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, line: Vec::new(), lines: Vec::new(), sent: 0 }
    }

    fn poll_lines(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.lines.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.inner).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        // A large answer does not keep its memory.
        (self.lines, self.sent) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for RestoringWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_lines(context))?;
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            self.line.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        };
        let (whole, rest) = bytes.split_at(end + 1);
        let mut lines = std::mem::take(&mut self.line);
        lines.extend_from_slice(whole);
        self.lines = restored(&lines).into_owned();
        self.line.extend_from_slice(rest);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_lines(context))?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_lines(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
