//! Reads the server name from the first message of a TLS client (RFC 8446, RFC 6066).
//!
//! The bytes come from the guest. Every length is checked against what is there; nothing is allocated
//! beyond [`MAX_HELLO_BYTES`].

/// A client hello with post-quantum keys has under 3,000 bytes.
pub(crate) const MAX_HELLO_BYTES: usize = 16 * 1024;
/// The first byte of a TLS connection: a handshake record.
pub(crate) const HANDSHAKE_RECORD: u8 = 22;

const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const HOST_NAME: u8 = 0;
const RECORD_HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;

/// The state of reading a client hello, after the bytes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HelloProgress {
    /// The message is not complete.
    Incomplete,
    /// They are not the first message of a TLS client.
    NotTls,
    /// The message is complete.
    Complete(ClientHello),
}

/// The parts of the message that matter here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClientHello {
    /// The name of the server, if there is exactly one.
    pub(crate) server_name: Option<Vec<u8>>,
    /// Whether another message, with another name, may be encrypted in it.
    pub(crate) is_encrypted: bool,
}

/// Reads the beginning of a connection. The message may be spread over several records.
pub(crate) fn read(bytes: &[u8]) -> HelloProgress {
    let (message, is_tls) = message_so_far(bytes);
    if !is_tls || message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return HelloProgress::NotTls;
    }
    let mut header = Cursor(&message);
    let Some(length) = header.skip(1).and_then(|()| header.number(3)) else {
        return HelloProgress::Incomplete;
    };
    if length > MAX_HELLO_BYTES {
        return HelloProgress::NotTls;
    }
    match message.get(MESSAGE_HEADER..MESSAGE_HEADER + length) {
        None => HelloProgress::Incomplete,
        // Whatever follows in the same record is not ours to judge, and no client sends anything.
        Some(_) if message.len() > MESSAGE_HEADER + length => HelloProgress::NotTls,
        Some(body) => read_body(body).map_or(HelloProgress::NotTls, HelloProgress::Complete),
    }
}

/// The handshake bytes of the records so far, and whether all of them are handshake records.
fn message_so_far(bytes: &[u8]) -> (Vec<u8>, bool) {
    let (mut message, mut rest) = (Vec::new(), bytes);
    loop {
        let Some(&kind) = rest.first() else { return (message, true) };
        let is_version = rest.get(1).is_none_or(|major| *major == 3);
        if kind != HANDSHAKE_RECORD || !is_version {
            return (message, false);
        }
        let mut header = Cursor(rest);
        let Some(length) = header.skip(3).and_then(|()| header.number(2)) else {
            return (message, true);
        };
        if length == 0 || length > MAX_HELLO_BYTES {
            return (message, false);
        }
        let end = RECORD_HEADER + length;
        message.extend_from_slice(rest.get(RECORD_HEADER..end.min(rest.len())).unwrap_or_default());
        let Some(following) = rest.get(end..) else { return (message, true) };
        rest = following;
    }
}

fn read_body(body: &[u8]) -> Option<ClientHello> {
    let mut body = Cursor(body);
    body.skip(2 + 32)?; // version, random
    body.vector(1)?; // session id
    body.vector(2)?; // cipher suites
    body.vector(1)?; // compression methods
    let mut hello = ClientHello::default();
    if body.is_empty() {
        return Some(hello);
    }
    let mut extensions = Cursor(body.vector(2)?);
    let mut has_name = false;
    while !extensions.is_empty() {
        let kind = u16::try_from(extensions.number(2)?).ok()?;
        let content = extensions.vector(2)?;
        match kind {
            SERVER_NAME if has_name => return None,
            SERVER_NAME => {
                has_name = true;
                hello.server_name = Some(one_name(content)?);
            }
            ENCRYPTED_CLIENT_HELLO => hello.is_encrypted = true,
            _ => {}
        }
    }
    body.is_empty().then_some(hello)
}

/// The only name of the extension. A list of several could mean another one to the server.
fn one_name(content: &[u8]) -> Option<Vec<u8>> {
    let mut content = Cursor(content);
    let mut list = Cursor(content.vector(2)?);
    let kind = list.number(1)?;
    let name = list.vector(2)?;
    let is_only = list.is_empty() && content.is_empty() && kind == usize::from(HOST_NAME);
    is_only.then(|| name.to_vec())
}

/// Bytes that are read from the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes).map(drop)
    }

    /// A big-endian number of so many bytes, at most three.
    fn number(&mut self, bytes: usize) -> Option<usize> {
        let taken = self.take(bytes)?;
        Some(taken.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
    }

    /// Bytes with their length in front.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.number(length_bytes)?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests;
