//! A guest's socket that wakes the host only for data to read.
//!
//! A stream that is also watched for room to write would wake the host each time the guest has read a
//! command, with nothing to do. Here the host waits for room only while something does not fit.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::{AsyncRead, Interest, ReadBuf, unix::AsyncFd};

/// The half of the socket that the host reads.
#[derive(Debug)]
pub(crate) struct ReadEnd {
    socket: AsyncFd<Arc<OwnedFd>>,
}

/// The half of the socket that the host writes.
#[derive(Debug)]
pub(crate) struct WriteEnd {
    socket: Arc<OwnedFd>,
}

/// Both halves of a non-blocking socket.
pub(crate) fn ends(socket: OwnedFd) -> io::Result<(ReadEnd, WriteEnd)> {
    let socket = Arc::new(socket);
    let write = WriteEnd { socket: socket.clone() };
    Ok((ReadEnd { socket: watched(socket, Interest::READABLE)? }, write))
}

impl AsyncRead for ReadEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let wanted = room.len();
            let read = ready.try_io(|socket| {
                let (_, bytes) = recv(socket.get_ref(), &mut *room, RecvFlags::empty())?;
                Ok(bytes)
            });
            let Ok(read) = read else { continue };
            let read = read?;
            if 0 < read && read < wanted {
                // A short read means that the socket is empty; the kernel announces the next data.
                ready.clear_ready();
            }
            buffer.advance(read);
            return Poll::Ready(Ok(()));
        }
    }
}

impl ReadEnd {
    /// Repeats an attempt to read until it does not block.
    pub(crate) async fn when_readable<T>(
        &self,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.socket.async_io(Interest::READABLE, |socket| attempt(socket.as_fd())).await
    }
}

impl WriteEnd {
    /// Writes a part of the bytes; returns how many.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.when_writable(|socket| Ok(send(socket, bytes, SendFlags::NOSIGNAL)?)).await
    }

    /// Writes the bytes to the last one.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Repeats an attempt to write until it does not block.
    pub(crate) async fn when_writable<T>(
        &self,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match attempt(self.socket.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        // A second descriptor, because each can be watched for one thing only.
        let socket = watched(self.socket.try_clone()?, Interest::WRITABLE)?;
        socket.async_io(Interest::WRITABLE, |socket| attempt(socket.as_fd())).await
    }
}

fn watched<T: AsRawFd>(socket: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(
        deprecated,
        reason = "unsound only for types that change their descriptor; these own one"
    )]
    AsyncFd::with_interest(socket, interest)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        os::unix::net::UnixStream,
        thread,
    };

    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn pair() -> (ReadEnd, WriteEnd, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a non-blocking socket");
        let (read, write) = ends(ours.into()).expect("both ends");
        (read, write, theirs)
    }

    #[tokio::test]
    async fn more_than_fits_is_written_while_it_is_read() {
        let (_read, write, mut theirs) = pair();
        let sent: Vec<u8> = (0..5_000_000_u32).map(|n| n as u8).collect();
        let reader = thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).map(|_| all)
        });
        write.write_all(&sent).await.expect("all of it");
        drop((_read, write));
        assert!(reader.join().expect("no panic").expect("read") == sent);
    }

    #[tokio::test]
    async fn what_comes_in_pieces_is_read_and_then_the_end() {
        let (mut read, write, mut theirs) = pair();
        let writer = thread::spawn(move || {
            for piece in 0..200_u8 {
                theirs.write_all(&[piece; 1000]).expect("it is read");
                if piece % 50 == 0 {
                    thread::sleep(std::time::Duration::from_millis(2));
                }
            }
        });
        let mut all = Vec::new();
        read.read_to_end(&mut all).await.expect("to the end");
        writer.join().expect("no panic");
        assert_eq!(all.len(), 200_000);
        assert!(all.chunks(1000).zip(0..).all(|(chunk, piece)| chunk == [piece; 1000]));
        let error = write.write_all(b"x").await.expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
