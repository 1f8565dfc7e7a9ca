//! The stream between the host and one guest: commands in, events out.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use belljar_jail::session::{receive_greeting, send_descriptors};
use belljar_wire::{Caps, Command, Event, Header, Message, ReadError};
use tokio::io::{AsyncReadExt, BufReader};

use crate::stream::{self, ReadEnd, WriteEnd};

/// A command up to this size goes out in one system call.
const SMALL_BYTES: usize = 64 * 1024;

/// The host's end of a guest's stream, both directions.
#[derive(Debug)]
pub(crate) struct GuestConnection {
    reader: BufReader<ReadEnd>,
    writer: CommandWriter,
}

#[derive(Debug)]
struct CommandWriter {
    stream: WriteEnd,
    /// Only in a session: the rest of a command that was interrupted half way goes out before the next one.
    /// Elsewhere no command follows it, so nothing is copied.
    unsent: Option<UnsentBytes>,
}

#[derive(Debug, Default)]
struct UnsentBytes {
    bytes: Vec<u8>,
    sent: usize,
}

impl GuestConnection {
    /// Takes over the host's end of a stream socket.
    pub(crate) fn adopt(socket: OwnedFd) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let (reader, writer) = stream::ends(socket.into())?;
        Ok(Self {
            reader: BufReader::new(reader),
            writer: CommandWriter { stream: writer, unsent: None },
        })
    }

    /// The same connection for the guest of a session, which takes further commands after a run.
    pub(crate) fn for_session(mut self) -> Self {
        self.writer.unsent = Some(UnsentBytes::default());
        self
    }

    /// Both directions, for use in parallel.
    pub(crate) fn split(&mut self) -> (CellReader<'_>, CellWriter<'_>) {
        (CellReader { stream: &mut self.reader }, CellWriter { writer: &mut self.writer })
    }

    /// Waits for the next event.
    pub(crate) async fn receive(&mut self, caps: Caps) -> Result<Event, ReadError> {
        Ok(read_event(&mut self.reader, caps).await?.0)
    }

    /// Sends a command to its last byte.
    pub(crate) async fn send(&mut self, command: &Command) -> io::Result<()> {
        self.split().1.send(command).await
    }

    /// Receives the pidfd of a cloned guest, which is the first thing it sends.
    pub(crate) async fn receive_pidfd(&self) -> io::Result<OwnedFd> {
        self.reader.get_ref().when_readable(|socket| receive_greeting(socket)).await
    }

    /// Sends one byte with descriptors attached, or with none, for the command sent before it.
    pub(crate) async fn hand_over(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.writer.stream.when_writable(|socket| send_descriptors(socket, fds)).await
    }
}

/// Reads the events of a guest.
#[derive(Debug)]
pub(crate) struct CellReader<'a> {
    stream: &'a mut BufReader<ReadEnd>,
}

impl CellReader<'_> {
    /// Waits for the next event; also returns the size of its frame.
    pub(crate) async fn receive(&mut self, caps: Caps) -> Result<(Event, usize), ReadError> {
        read_event(self.stream, caps).await
    }
}

/// Writes commands to a guest.
#[derive(Debug)]
pub(crate) struct CellWriter<'a> {
    writer: &'a mut CommandWriter,
}

impl CellWriter<'_> {
    /// Sends a command; a small one in a single system call.
    pub(crate) async fn send(&mut self, command: &Command) -> io::Result<()> {
        let (mut prefix, body) = command.encode().ok_or(io::ErrorKind::InvalidInput)?;
        let CommandWriter { stream, unsent } = &mut *self.writer;
        if let Some(unsent) = unsent {
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

impl UnsentBytes {
    /// Sends the rest. Safe to drop: a write either happens or does not.
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

/// Memory grows with the bytes that arrive, not with what the header claims.
async fn read_part(stream: &mut BufReader<ReadEnd>, bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(bytes.min(64 * 1024));
    stream.take(bytes as u64).read_to_end(&mut part).await?;
    if part.len() == bytes { Ok(part) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
