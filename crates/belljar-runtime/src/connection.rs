//! The stream between the host and one guest: commands in, events out.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use belljar_jail::session::{receive_greeting, send_descriptors};
use belljar_wire::{Caps, Command, Event, Header, Message, ReadError};
use tokio::io::{AsyncReadExt, BufReader};

use crate::stream::{self, ReadEnd, WriteEnd};

/// A command up to this size is sent in one call.
const SMALL_BYTES: usize = 64 * 1024;

/// Both directions of a guest's stream.
#[derive(Debug)]
pub(crate) struct Connection {
    reader: BufReader<ReadEnd>,
    writer: Writer,
}

#[derive(Debug)]
struct Writer {
    stream: WriteEnd,
    /// In a session a command that was broken off half way is sent to its end before the next one:
    /// its bytes are kept here. Elsewhere nothing comes after it, and nothing is copied.
    kept: Option<Unsent>,
}

#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    sent: usize,
}

impl Connection {
    /// The host's end of a stream socket.
    pub(crate) fn adopt(socket: OwnedFd) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let (reader, writer) = stream::ends(socket.into())?;
        Ok(Self { reader: BufReader::new(reader), writer: Writer { stream: writer, kept: None } })
    }

    /// The same for a guest that is kept after a run.
    pub(crate) fn kept(mut self) -> Self {
        self.writer.kept = Some(Unsent::default());
        self
    }

    /// Both directions, to be used side by side.
    pub(crate) fn split(&mut self) -> (CellReader<'_>, CellWriter<'_>) {
        (CellReader { stream: &mut self.reader }, CellWriter { writer: &mut self.writer })
    }

    /// The next event.
    pub(crate) async fn receive(&mut self, caps: Caps) -> Result<Event, ReadError> {
        Ok(read_event(&mut self.reader, caps).await?.0)
    }

    /// Sends a command.
    pub(crate) async fn send(&mut self, command: &Command) -> io::Result<()> {
        self.split().1.send(command).await
    }

    /// A pidfd of the guest, which greets before anything else.
    pub(crate) async fn greeting(&self) -> io::Result<OwnedFd> {
        self.reader.get_ref().when_there_is_some(|socket| receive_greeting(socket)).await
    }

    /// Sends one byte that carries descriptors, or none, for a command that was sent before it.
    pub(crate) async fn hand_over(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.writer.stream.when_there_is_room(|socket| send_descriptors(socket, fds)).await
    }
}

/// What comes out of a cell.
#[derive(Debug)]
pub(crate) struct CellReader<'a> {
    stream: &'a mut BufReader<ReadEnd>,
}

impl CellReader<'_> {
    /// The next event, and how many bytes it took.
    pub(crate) async fn receive(&mut self, caps: Caps) -> Result<(Event, usize), ReadError> {
        read_event(self.stream, caps).await
    }
}

/// What goes into a cell.
#[derive(Debug)]
pub(crate) struct CellWriter<'a> {
    writer: &'a mut Writer,
}

impl CellWriter<'_> {
    /// Sends a command; a small one in a single call.
    pub(crate) async fn send(&mut self, command: &Command) -> io::Result<()> {
        let (mut prefix, body) = command.encode().ok_or(io::ErrorKind::InvalidInput)?;
        let Writer { stream, kept } = &mut *self.writer;
        if let Some(unsent) = kept {
            unsent.bytes.extend_from_slice(&prefix);
            body.iter().for_each(|part| unsent.bytes.extend_from_slice(part));
            return unsent.send(stream).await;
        }
        if body.iter().map(|part| part.len()).sum::<usize>() <= SMALL_BYTES {
            body.iter().for_each(|part| prefix.extend_from_slice(part));
            return stream.write_all(&prefix).await;
        }
        stream.write_all(&prefix).await?;
        for part in body {
            stream.write_all(part).await?;
        }
        Ok(())
    }
}

impl Unsent {
    /// Goes on where it was broken off; a write either happens or does not.
    async fn send(&mut self, stream: &WriteEnd) -> io::Result<()> {
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            self.sent += stream.write(rest).await?;
        }
        self.sent = 0;
        self.bytes.clear();
        self.bytes.shrink_to(SMALL_BYTES);
        Ok(())
    }
}

async fn read_event(
    stream: &mut BufReader<ReadEnd>,
    caps: Caps,
) -> Result<(Event, usize), ReadError> {
    let mut header = [0; Header::SIZE];
    let first = stream.read(&mut header).await?;
    if first == 0 {
        return Err(ReadError::Ended);
    }
    stream.read_exact(header.get_mut(first..).unwrap_or_default()).await?;
    read_parts(stream, header, caps).await
}

async fn read_parts(
    stream: &mut BufReader<ReadEnd>,
    header: [u8; Header::SIZE],
    caps: Caps,
) -> Result<(Event, usize), ReadError> {
    let header = Header::parse(header, caps)?;
    let head = read_part(stream, header.head_bytes()).await?;
    let body = read_part(stream, header.body_bytes()).await?;
    Ok((Event::decode(header, &head, body)?, header.frame_bytes()))
}

/// Memory grows with what really arrives, not with what a header claims.
async fn read_part(stream: &mut BufReader<ReadEnd>, bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(bytes.min(64 * 1024));
    stream.take(bytes as u64).read_to_end(&mut part).await?;
    if part.len() == bytes { Ok(part) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
