//! The frame: a header of twelve bytes, a JSON head, a raw body.
//!
//! ```text
//! 0      1        4            8            12
//! | kind | 0 0 0  | head bytes | body bytes | head … | body … |   (little-endian lengths)
//! ```
//! The header is checked against the reader's [`Caps`] before anything is allocated.

use thiserror::Error;

use belljar_contract::ErrorCode;

use crate::fetch::MAX_PIECE_BYTES;

/// The kind of a frame that carries printed text, which has a cap of its own.
pub(crate) const PRINT: u8 = 67;
/// The kind of a frame that carries a piece of a request's body, which has a cap of its own.
pub(crate) const FETCH_SEND: u8 = 79;
/// The kind of a frame that begins a fetch. Its body is no value, so it has a cap of its own if values have
/// to be small.
pub(crate) const FETCH: u8 = 78;

/// No head is larger than this.
pub const MAX_HEAD_BYTES: u32 = 64 * 1024;

/// How large a body the reader is willing to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Largest code with its context, or value, in bytes.
    pub body_bytes: u32,
    /// Largest printed text, in bytes.
    pub text_bytes: u32,
}

/// A checked frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    kind: u8,
    head_bytes: u32,
    body_bytes: u32,
}

/// Why bytes are not a frame.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The reserved bytes are not zero.
    #[error("reserved header bytes are set")]
    Reserved,
    /// The kind is not one this reader knows.
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    /// The head is over its cap.
    #[error("head of {0} bytes is over the cap of {MAX_HEAD_BYTES}")]
    HeadTooLarge(u32),
    /// The body is over its cap.
    #[error("body of {bytes} bytes is over the cap of {cap}")]
    BodyTooLarge {
        /// The size that the header claims.
        bytes: u32,
        /// The most the reader accepts.
        cap: u32,
    },
    /// The head is not the JSON this kind wants.
    #[error("head does not decode")]
    Head(#[from] serde_json::Error),
    /// The error code is one that only the host may report.
    #[error("a cell cannot fail with {0:?}")]
    ForeignCode(ErrorCode),
    /// The name of a tool or server, a method or a URL is too long.
    #[error("a name of {0} bytes is too long")]
    Name(usize),
    /// A request has too many headers.
    #[error("{0} headers are too many")]
    Headers(usize),
    /// Head and body do not fit each other.
    #[error("body does not fit its head")]
    Body,
}

impl Header {
    /// Bytes of a header.
    pub const SIZE: usize = 12;

    /// Reads a header and checks it against the caps.
    pub fn parse(bytes: [u8; Self::SIZE], caps: Caps) -> Result<Self, DecodeError> {
        let [kind, r0, r1, r2, h0, h1, h2, h3, b0, b1, b2, b3] = bytes;
        if [r0, r1, r2] != [0; 3] {
            return Err(DecodeError::Reserved);
        }
        let head_bytes = u32::from_le_bytes([h0, h1, h2, h3]);
        let body_bytes = u32::from_le_bytes([b0, b1, b2, b3]);
        if head_bytes > MAX_HEAD_BYTES {
            return Err(DecodeError::HeadTooLarge(head_bytes));
        }
        let cap = match kind {
            PRINT => caps.text_bytes,
            FETCH_SEND => MAX_PIECE_BYTES,
            FETCH => caps.body_bytes.max(MAX_PIECE_BYTES),
            _ => caps.body_bytes,
        };
        if body_bytes > cap {
            return Err(DecodeError::BodyTooLarge { bytes: body_bytes, cap });
        }
        Ok(Self { kind, head_bytes, body_bytes })
    }

    /// Which message this is.
    pub fn kind(self) -> u8 {
        self.kind
    }

    /// Bytes of the whole frame.
    pub fn frame_bytes(self) -> usize {
        Self::SIZE + self.head_bytes() + self.body_bytes()
    }

    /// Bytes of the head that follows.
    pub fn head_bytes(self) -> usize {
        self.head_bytes as usize
    }

    /// Bytes of the body that follows the head.
    pub fn body_bytes(self) -> usize {
        self.body_bytes as usize
    }

    /// Header and head in one buffer, ready to be written before a body of `body_bytes`.
    ///
    /// `None` when head or body are larger than a header can say.
    pub(crate) fn prefix(kind: u8, head: &[u8], body_bytes: usize) -> Option<Vec<u8>> {
        let head_bytes = u32::try_from(head.len()).ok().filter(|len| *len <= MAX_HEAD_BYTES)?;
        let body_bytes = u32::try_from(body_bytes).ok()?;
        let mut prefix = Vec::with_capacity(Self::SIZE + head.len());
        prefix.extend_from_slice(&[kind, 0, 0, 0]);
        prefix.extend_from_slice(&head_bytes.to_le_bytes());
        prefix.extend_from_slice(&body_bytes.to_le_bytes());
        prefix.extend_from_slice(head);
        Some(prefix)
    }
}
