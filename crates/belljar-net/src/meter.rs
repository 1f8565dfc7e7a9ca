//! Counts the bytes of connections, and ends a connection when its run has moved all it may.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
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
    count: ByteCount,
    most: u64,
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
}

impl RunTraffic {
    pub(crate) fn new(most: u64) -> Self {
        Self { count: ByteCount::default(), most }
    }

    /// Whether the run has moved all its bytes in one of the directions.
    pub(crate) fn is_used_up(&self) -> bool {
        self.count.sent() >= self.most || self.count.received() >= self.most
    }

    /// The most it may move each way.
    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    /// Takes so many bytes of one direction, or as many as are left, before they are moved.
    fn take(&self, moved: &AtomicU64, bytes: usize) -> io::Result<usize> {
        let before = moved.fetch_add(bytes as u64, Ordering::Relaxed);
        let left = self.most.saturating_sub(before);
        let taken = usize::try_from(left).map_or(bytes, |left| left.min(bytes));
        give_back(moved, bytes - taken);
        if taken == 0 && bytes > 0 { Err(used_up()) } else { Ok(taken) }
    }
}

/// Gives back what was taken and not moved.
fn give_back(moved: &AtomicU64, bytes: usize) {
    moved.fetch_sub(bytes as u64, Ordering::Relaxed);
}

fn used_up() -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, "the run went over its network bytes (net_bytes)")
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let (stream, moved) = (Pin::new(&mut this.stream), &this.run.count.received);
        let wanted = buffer.remaining();
        let taken = this.run.take(moved, wanted)?;
        let before = buffer.filled().len();
        let polled = if taken == wanted {
            stream.poll_read(context, buffer)
        } else {
            let mut last = ReadBuf::new(buffer.initialize_unfilled_to(taken));
            let polled = stream.poll_read(context, &mut last);
            let bytes = last.filled().len();
            buffer.advance(bytes);
            polled
        };
        let bytes = buffer.filled().len() - before;
        give_back(moved, taken - bytes);
        this.count.received.fetch_add(bytes as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let moved = &this.run.count.sent;
        let taken = this.run.take(moved, bytes.len())?;
        let bytes = bytes.get(..taken).unwrap_or(bytes);
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        let written = if let Poll::Ready(Ok(written)) = polled { written } else { 0 };
        give_back(moved, taken - written);
        this.count.sent.fetch_add(written as u64, Ordering::Relaxed);
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
