//! Requests to other hosts that guest code asks its host to make, in steps.
//!
//! A `fetch` is one request, which begins with [`FetchStep::Begin`]. Code sends a large body in pieces, and
//! takes the body of the answer piece by piece: each step has its own number and its own
//! [`ToolReply`](crate::ToolReply), and the next piece is sent when the code asks for it. Redirects are
//! requests of their own.

use serde::{Deserialize, Serialize};

use crate::DecodeError;

/// The most bytes of a body in one step, each way.
pub const MAX_PIECE_BYTES: u32 = 256 * 1024;
/// No method is longer.
const MAX_METHOD_BYTES: usize = 64;
/// No URL is longer.
const MAX_URL_BYTES: usize = 16 * 1024;
/// More headers than this are not sent.
const MAX_HEADERS: usize = 100;

/// One step of a fetch, as guest code asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchAsk {
    /// Number of the step, in the sequence of the run's tool calls.
    pub call: u32,
    /// The step.
    pub step: FetchStep,
}

/// A step of a fetch. `fetch` is the number of the step that began it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchStep {
    /// Make this request. The reply is a [`FetchHead`] and the beginning of the body.
    Begin(FetchRequest),
    /// Send this piece of the request's body. The reply is empty and comes when there is room for more.
    Send {
        /// The fetch.
        fetch: u32,
        /// Whether the body ends with it.
        is_last: bool,
        /// The bytes.
        piece: Vec<u8>,
    },
    /// Give the next piece of the answer's body. An empty reply is its end.
    Read {
        /// The fetch.
        fetch: u32,
    },
}

/// The kind of a step of a fetch, which decides the form of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchStepKind {
    /// [`FetchStep::Begin`].
    Begin,
    /// [`FetchStep::Send`].
    Send,
    /// [`FetchStep::Read`].
    Read,
}

impl FetchStep {
    /// Its kind.
    pub const fn kind(&self) -> FetchStepKind {
        match self {
            Self::Begin(_) => FetchStepKind::Begin,
            Self::Send { .. } => FetchStepKind::Send,
            Self::Read { .. } => FetchStepKind::Read,
        }
    }
}

/// A request as guest code wrote it. The host has not checked it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// The method.
    pub method: String,
    /// The URL, absolute and without a fragment.
    pub url: String,
    /// Names and values of headers, a character of a value for each byte.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: FetchBody,
    /// How long the whole of it may take, in milliseconds.
    pub timeout_ms: Option<u32>,
    /// 1-based line of the call in the source as written.
    pub line: Option<u32>,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchBody {
    /// There is none.
    None,
    /// These bytes.
    Whole(Vec<u8>),
    /// It follows in [`FetchStep::Send`].
    Pieces {
        /// Its size, if it is known.
        length: Option<u64>,
    },
}

/// The head of an answer: the first line of the body of a reply, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchHead {
    /// The status.
    pub status: u16,
    /// The text of the status.
    pub status_text: String,
    /// Names and values of headers, a character of a value for each byte.
    pub headers: Vec<(String, String)>,
    /// Whether the bytes after this line are the whole body.
    pub is_whole: bool,
}

/// The reply to a step of a fetch, inside the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchReply {
    /// The head of the answer, in the reply to [`FetchStep::Begin`].
    pub head: Option<FetchHead>,
    /// Bytes of the answer's body.
    pub bytes: Vec<u8>,
}

impl FetchReply {
    /// The body of the frame that the guest gets, which is also what a journal has.
    pub fn into_body(self) -> Vec<u8> {
        match self.head {
            Some(head) => head.with_body(&self.bytes),
            None => self.bytes,
        }
    }
}

impl FetchHead {
    /// The body of a reply.
    pub fn with_body(&self, body: &[u8]) -> Vec<u8> {
        // A struct of texts and numbers cannot fail to be JSON, which has no line breaks.
        let mut reply = serde_json::to_vec(self).unwrap_or_default();
        reply.push(b'\n');
        reply.extend_from_slice(body);
        reply
    }

    /// The head in the body of a reply, and where the bytes after it begin.
    pub fn parse(reply: &[u8]) -> Option<(Self, usize)> {
        let end = reply.iter().position(|byte| *byte == b'\n')?;
        Some((serde_json::from_slice(reply.get(..end)?).ok()?, end + 1))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeginHead {
    call: u32,
    line: Option<u32>,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: BodyForm,
    length: Option<u64>,
    timeout_ms: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BodyForm {
    None,
    Whole,
    Pieces,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendHead {
    pub(crate) call: u32,
    pub(crate) fetch: u32,
    pub(crate) last: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadHead {
    pub(crate) call: u32,
    pub(crate) fetch: u32,
}

impl FetchRequest {
    pub(crate) fn parts(&self, call: u32) -> (BeginHead, &[u8]) {
        let Self { method, url, headers, body, timeout_ms, line } = self;
        let (form, length, bytes) = match body {
            FetchBody::None => (BodyForm::None, None, &[][..]),
            FetchBody::Whole(bytes) => (BodyForm::Whole, None, bytes.as_slice()),
            FetchBody::Pieces { length } => (BodyForm::Pieces, *length, &[][..]),
        };
        let (method, url, headers) = (method.clone(), url.clone(), headers.clone());
        let (line, timeout_ms) = (*line, *timeout_ms);
        (BeginHead { call, line, method, url, headers, body: form, length, timeout_ms }, bytes)
    }
}

impl FetchAsk {
    pub(crate) fn begin(head: &[u8], bytes: Vec<u8>) -> Result<Self, DecodeError> {
        let BeginHead { call, line, method, url, headers, body, length, timeout_ms } =
            serde_json::from_slice(head)?;
        if method.len() > MAX_METHOD_BYTES || url.len() > MAX_URL_BYTES {
            return Err(DecodeError::Name(method.len().max(url.len())));
        }
        if headers.len() > MAX_HEADERS {
            return Err(DecodeError::Headers(headers.len()));
        }
        let body = match body {
            BodyForm::Whole if length.is_none() => FetchBody::Whole(bytes),
            BodyForm::None if bytes.is_empty() && length.is_none() => FetchBody::None,
            BodyForm::Pieces if bytes.is_empty() => FetchBody::Pieces { length },
            BodyForm::None | BodyForm::Whole | BodyForm::Pieces => return Err(DecodeError::Body),
        };
        let request = FetchRequest { method, url, headers, body, timeout_ms, line };
        Ok(Self { call, step: FetchStep::Begin(request) })
    }

    pub(crate) fn send(head: &[u8], piece: Vec<u8>) -> Result<Self, DecodeError> {
        let SendHead { call, fetch, last } = serde_json::from_slice(head)?;
        Ok(Self { call, step: FetchStep::Send { fetch, is_last: last, piece } })
    }

    pub(crate) fn read(head: &[u8]) -> Result<Self, DecodeError> {
        let ReadHead { call, fetch } = serde_json::from_slice(head)?;
        Ok(Self { call, step: FetchStep::Read { fetch } })
    }

    /// The bytes of a body that the step carries.
    pub fn content_bytes(&self) -> usize {
        match &self.step {
            FetchStep::Begin(FetchRequest { body: FetchBody::Whole(bytes), .. }) => bytes.len(),
            FetchStep::Send { piece, .. } => piece.len(),
            FetchStep::Begin(_) | FetchStep::Read { .. } => 0,
        }
    }

    /// All bytes that the step carries.
    pub fn body_bytes(&self) -> usize {
        let FetchStep::Begin(request) = &self.step else { return self.content_bytes() };
        let headers = request.headers.iter();
        let texts = headers.map(|(name, value)| name.len() + value.len()).sum::<usize>();
        request.url.len() + texts + self.content_bytes()
    }
}
