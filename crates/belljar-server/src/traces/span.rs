//! One span, and its position in a trace.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use belljar_contract::hex;
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};

/// A position in a trace, as in the `traceparent` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
}

tokio::task_local! {
    /// The context of the request that the current task answers.
    static REQUEST: TraceContext;
}

impl TraceContext {
    /// A new span: a child of `parent`, or the root of a new trace.
    pub(crate) fn child_of(parent: Option<Self>) -> Self {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        // Without randomness, spans merely have equal ids.
        let _ = getrandom(&mut trace, GetRandomFlags::empty());
        let _ = getrandom(&mut span, GetRandomFlags::empty());
        Self { trace: parent.map_or(trace, |parent| parent.trace), span }
    }

    /// The context that these bytes encode.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Self {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.iter_mut().chain(&mut span).zip(bytes).for_each(|(to, from)| *to = *from);
        Self { trace, span }
    }

    /// The context that the client sent (W3C Trace Context).
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("traceparent")?.to_str().ok()?;
        let mut parts = text.split('-');
        let version = parts.next()?;
        let context = Self { trace: bytes(parts.next()?)?, span: bytes(parts.next()?)? };
        let is_known = version != "ff" && bytes::<1>(version).is_some() && parts.next().is_some();
        let is_set = context.trace != [0; 16] && context.span != [0; 8];
        (is_known && is_set).then_some(context)
    }

    /// The context of the request that this task answers, if there is one.
    pub(crate) fn current() -> Option<Self> {
        REQUEST.try_with(|request| *request).ok()
    }

    /// Runs a future as part of the request with this context.
    pub(crate) async fn scope<T>(self, answer: impl Future<Output = T>) -> T {
        REQUEST.scope(self, answer).await
    }
}

/// The OpenTelemetry kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Work inside this process.
    Internal = 1,
    /// A request from a client.
    Server = 2,
    /// A request to another server.
    Client = 3,
}

/// A piece of work with its duration and attributes.
#[derive(Debug)]
pub(crate) struct Span {
    context: TraceContext,
    parent: Option<TraceContext>,
    name: String,
    kind: SpanKind,
    began: SystemTime,
    took: Duration,
    is_ok: bool,
    attributes: Vec<(&'static str, Value)>,
}

impl Span {
    /// A span that ends now.
    pub(crate) fn ended(
        name: String,
        kind: SpanKind,
        context: TraceContext,
        took: Duration,
    ) -> Self {
        let began = SystemTime::now().checked_sub(took).unwrap_or(UNIX_EPOCH);
        Self { context, parent: None, name, kind, began, took, is_ok: true, attributes: Vec::new() }
    }

    /// Sets the span that this one is part of.
    pub(crate) fn with_parent(mut self, parent: Option<TraceContext>) -> Self {
        self.parent = parent;
        self
    }

    /// Sets whether the work succeeded.
    pub(crate) fn ok(mut self, is_ok: bool) -> Self {
        self.is_ok = is_ok;
        self
    }

    /// Adds an attribute, unless its value is null.
    pub(crate) fn with(mut self, key: &'static str, value: Value) -> Self {
        if !value.is_null() {
            self.attributes.push((key, value));
        }
        self
    }

    pub(super) fn to_json(&self) -> Value {
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let ended = began + self.took;
        let attributes = self.attributes.iter();
        let attributes =
            attributes.map(|(key, value)| json!({"key": key, "value": any_value(value)}));
        json!({
            "traceId": hex::encode(&self.context.trace),
            "spanId": hex::encode(&self.context.span),
            "parentSpanId": self.parent.map(|parent| hex::encode(&parent.span)).unwrap_or_default(),
            "name": self.name,
            "kind": self.kind as u8,
            // Protocol buffers write 64-bit numbers as strings in JSON.
            "startTimeUnixNano": began.as_nanos().to_string(),
            "endTimeUnixNano": ended.as_nanos().to_string(),
            "attributes": attributes.collect::<Vec<_>>(),
            "status": {"code": if self.is_ok { 1 } else { 2 }},
        })
    }
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!({"boolValue": flag}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            json!({"stringValue": value.to_string()})
        }
    }
}

/// Decodes exactly `N` bytes of lower-case hexadecimal.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_a_client_says_which_trace_it_is_in() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().ok()?);
            TraceContext::from_headers(&headers)
        };
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let good = of(&format!("00-{trace}-b7ad6b7169203331-01"));
        assert_eq!(good.map(|context| hex::encode(&context.trace)).as_deref(), Some(trace));
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-é7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
