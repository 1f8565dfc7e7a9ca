//! Counts the bytes of connections, and ends a connection when its run has moved all it may.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
};

/// Bytes moved, from the guest's side.
#[derive(Debug, Default)]
pub(crate) struct ByteCount {
    sent: AtomicU64,
    received: AtomicU64,
}

/// The bytes of a whole run, and how many it may move each way.
#[derive(Debug)]
pub(crate) struct RunTraffic {
    pub(crate) count: ByteCount,
    pub(crate) max_sent: u64,
    pub(crate) max_received: u64,
}

/// A connection to a server whose bytes are counted.
#[derive(Debug)]
pub(crate) struct MeteredStream {
    pub(crate) stream: TcpStream,
    pub(crate) count: Arc<ByteCount>,
    pub(crate) run: Arc<RunTraffic>,
    /// One of its host's places.
    pub(crate) _place: OwnedSemaphorePermit,
}

impl ByteCount {
    /// Bytes from the guest.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes to the guest.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn add_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn add_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl RunTraffic {
    /// Whether the run has moved all the bytes it may in one of the directions.
    pub(crate) fn is_used_up(&self) -> bool {
        self.count.sent() >= self.max_sent || self.count.received() >= self.max_received
    }
}

fn used_up() -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, "the run has moved all the bytes it may")
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.run.is_used_up() {
            return Poll::Ready(Err(used_up()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().len() - before;
        this.count.add_received(bytes);
        this.run.count.add_received(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.run.is_used_up() {
            return Poll::Ready(Err(used_up()));
        }
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, bytes))?;
        this.count.add_sent(written);
        this.run.count.add_sent(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
