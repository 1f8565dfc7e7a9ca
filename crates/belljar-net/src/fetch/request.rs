//! A request as code wrote it, and the head of an answer as code reads it.

use std::time::Duration;

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Uri,
    header::{self, HeaderName, HeaderValue},
    http::response::Parts,
};
use thiserror::Error;

use super::body::RequestBody;

/// The program that servers see if code names none.
const USER_AGENT: &str = concat!("belljar/", env!("CARGO_PKG_VERSION"));

/// A request of code. Nothing in it is checked.
#[derive(Debug)]
pub struct OutgoingRequest {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Names and values of headers, a character of a value for each byte.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub content: RequestContent,
    /// How long the whole of it may take.
    pub timeout: Option<Duration>,
}

/// The body of a request.
/// Frames have the same as `FetchBody` of belljar-wire; this crate is a leaf and knows no frames.
#[derive(Debug, Clone)]
pub enum RequestContent {
    /// There is none.
    None,
    /// These bytes.
    Whole(Bytes),
    /// It comes in pieces.
    Pieces {
        /// Its size, if it is known.
        length: Option<u64>,
    },
}

/// The head of an answer.
/// Frames have the same as `FetchHead` of belljar-wire; this crate is a leaf and knows no frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchAnswer {
    /// The status.
    pub status: u16,
    /// The text of the status.
    pub status_text: String,
    /// Names and values of headers, a character of a value for each byte.
    pub headers: Vec<(String, String)>,
    /// Whether there is no body.
    pub is_whole: bool,
}

/// Why a request is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MalformedFetch {
    /// The method is not a word, or one that no request of code has.
    #[error("invalid HTTP method")]
    Method,
    /// The URL names no server to send a request to.
    #[error("invalid URL: use http:// or https://, without a user and without spaces")]
    Url,
    /// The name of a header.
    #[error("invalid character in the name of a header")]
    HeaderName,
    /// The value of a header.
    #[error("invalid character in the value of a header")]
    HeaderValue,
    /// A piece of a body that is not sent in pieces, or whose last piece was sent.
    #[error("the body is already complete")]
    NoPieces,
}

impl OutgoingRequest {
    /// The scheme, host and port. Requests with the same ones can share a connection; no rule depends on it.
    pub(super) fn origin(&self) -> String {
        let end = self.url.match_indices('/').nth(2).map_or(self.url.len(), |(at, _)| at);
        self.url.get(..end).unwrap_or_default().to_owned()
    }

    /// The request as it is written anew.
    pub(super) fn into_http(
        self,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, MalformedFetch> {
        let Self { method, url, headers, .. } = self;
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| MalformedFetch::Method)?;
        if method == Method::CONNECT {
            return Err(MalformedFetch::Method);
        }
        // A space or a control character would be a second reading of the request.
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(MalformedFetch::Url);
        }
        let mut request = Request::new(body);
        *request.uri_mut() = url.parse::<Uri>().map_err(|_| MalformedFetch::Url)?;
        *request.method_mut() = method;
        let sent = request.headers_mut();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| MalformedFetch::HeaderName)?;
            sent.append(name, value_of(&value)?);
        }
        // The length of the body is its own, whatever code says of it.
        sent.remove(header::CONTENT_LENGTH);
        sent.remove(header::HOST);
        set_default(sent, header::ACCEPT, "*/*");
        set_default(sent, header::USER_AGENT, USER_AGENT);
        sent.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(request)
    }
}

fn set_default(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

/// The bytes that the characters stand for.
fn value_of(text: &str) -> Result<HeaderValue, MalformedFetch> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    let bytes = bytes.map_err(|_| MalformedFetch::HeaderValue)?;
    HeaderValue::from_bytes(&bytes).map_err(|_| MalformedFetch::HeaderValue)
}

impl FetchAnswer {
    pub(super) fn of(parts: &Parts, is_whole: bool) -> Self {
        let text = |value: &HeaderValue| value.as_bytes().iter().copied().map(char::from).collect();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let reason = parts.extensions.get::<hyper::ext::ReasonPhrase>();
        let status_text = match reason {
            Some(reason) => reason.as_bytes().iter().copied().map(char::from).collect(),
            None => parts.status.canonical_reason().unwrap_or_default().to_owned(),
        };
        Self { status: parts.status.as_u16(), status_text, headers: headers.collect(), is_whole }
    }
}

#[cfg(test)]
mod tests;
