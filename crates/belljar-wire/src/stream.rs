//! Frames over blocking byte streams. The host has its own, asynchronous twin.

use std::io::{self, Read, Write};

use thiserror::Error;

use crate::{Caps, DecodeError, Header, Message};

/// Why no message came.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The other end closed between two frames.
    #[error("the stream ended")]
    Ended,
    /// The stream failed, or ended inside a frame.
    #[error("the stream failed")]
    Io(#[from] io::Error),
    /// The bytes are not a frame.
    #[error("not a frame")]
    Decode(#[from] DecodeError),
}

/// Reads one message; the caps are checked before the body is read.
pub fn read_message<M: Message>(stream: &mut impl Read, caps: Caps) -> Result<M, ReadError> {
    let mut header = [0; Header::SIZE];
    let first = loop {
        match stream.read(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 0 {
        return Err(ReadError::Ended);
    }
    stream.read_exact(header.get_mut(first..).unwrap_or_default())?;
    let header = Header::parse(header, caps)?;
    let head = read_part(stream, header.head_bytes())?;
    let body = read_part(stream, header.body_bytes())?;
    Ok(M::decode(header, &head, body)?)
}

/// Memory grows with what really arrives, not with what a header claims.
fn read_part(stream: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(bytes.min(64 * 1024));
    stream.take(bytes as u64).read_to_end(&mut part)?;
    if part.len() == bytes { Ok(part) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes one message, small ones in a single call.
pub fn write_message<M: Message>(stream: &mut impl Write, message: &M) -> io::Result<()> {
    let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "message larger than a frame");
    let (mut prefix, body) = message.encode().ok_or_else(too_large)?;
    let body_bytes: usize = body.iter().map(|part| part.len()).sum();
    if body_bytes <= 64 * 1024 {
        body.iter().for_each(|part| prefix.extend_from_slice(part));
        return stream.write_all(&prefix);
    }
    stream.write_all(&prefix)?;
    body.iter().try_for_each(|part| stream.write_all(part))
}
