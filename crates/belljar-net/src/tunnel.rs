//! Moves bytes between a guest and a server, and looks at the first ones of the guest.

use std::{io, time::Duration};

use tokio::{
    io::{
        AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, copy_buf, split,
    },
    time::{Instant, timeout, timeout_at},
};

use crate::{
    client_hello::{self, HANDSHAKE_RECORD, HelloProgress, MAX_HELLO_BYTES},
    connection::{OpenedConnection, ProxyConnection},
    host::RemoteHost,
    http_head::{self, HeadProgress, MAX_HEAD_BYTES},
    policy::{NetRefusal, check_server_name},
    request::RequestFault,
};

const BUFFER_BYTES: usize = 64 * 1024;
/// Records have headers too.
const MAX_FIRST_BYTES: usize = 2 * MAX_HELLO_BYTES;

/// Why a tunnel ended early.
enum TunnelEnd {
    Refused(NetRefusal),
    Io,
}

impl From<io::Error> for TunnelEnd {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

/// Whether a guest sends no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IsLast(bool);

/// The first bytes that a tunnel may have.
#[derive(Debug)]
struct FirstBytes<'a> {
    host: &'a RemoteHost,
    port: u16,
    is_tls_demanded: bool,
    /// How long they may take, once there are any.
    limit: Duration,
}

/// Runs a tunnel to its end. If it has to be TLS, nothing reaches the server before the guest has shown
/// the name that the rule allowed. Otherwise the server may speak first.
pub(crate) async fn run(
    connection: &ProxyConnection,
    guest: impl AsyncRead + AsyncWrite + Unpin,
    opened: OpenedConnection,
) {
    let OpenedConnection { stream, host, port, rule, record, .. } = opened;
    let (mut from_guest, mut to_guest) = split(guest);
    let (from_server, mut to_server) = split(stream);
    let is_tls_demanded = rule.demands_tls(port);
    let limit = connection.limits().head;
    let expected = FirstBytes { host: &host, port, is_tls_demanded, limit };
    let mut first = Vec::new();
    let inspected = async {
        if is_tls_demanded {
            let read = timeout(limit, expected.read(&mut from_guest, &mut first)).await;
            read.unwrap_or(Err(TunnelEnd::Refused(NetRefusal::NotTls)))?;
        }
        Ok(())
    };
    let ended = match inspected.await {
        Err(end) => Err(end),
        Ok(()) => {
            let up = async {
                if !is_tls_demanded {
                    expected.read(&mut from_guest, &mut first).await?;
                    while http_head::read(&first) == HeadProgress::Blank && !first.is_empty() {
                        to_server.write_all(&first).await?;
                        first.clear();
                        expected.read(&mut from_guest, &mut first).await?;
                    }
                }
                to_server.write_all(&first).await?;
                copy_buf(&mut BufReader::with_capacity(BUFFER_BYTES, from_guest), &mut to_server)
                    .await?;
                Ok::<_, TunnelEnd>(to_server.shutdown().await?)
            };
            let down = async {
                copy_buf(&mut BufReader::with_capacity(BUFFER_BYTES, from_server), &mut to_guest)
                    .await?;
                Ok::<_, TunnelEnd>(to_guest.shutdown().await?)
            };
            tokio::try_join!(up, down).map(drop)
        }
    };
    if let Err(TunnelEnd::Refused(refusal)) = ended {
        connection.refuse(&record, refusal).await;
    }
}

impl FirstBytes<'_> {
    /// Reads the first bytes of the guest: all of its client hello if it is TLS, and of the head if it is a
    /// request of HTTP/1. Checks the name in it.
    async fn read(
        &self,
        guest: &mut (impl AsyncRead + Unpin),
        first: &mut Vec<u8>,
    ) -> Result<(), TunnelEnd> {
        let mut deadline = None;
        loop {
            let reading = guest.read_buf(first);
            let read = match deadline {
                None => reading.await?,
                Some(deadline) => match timeout_at(deadline, reading).await {
                    Ok(read) => read?,
                    Err(_) => return Err(TunnelEnd::Refused(self.unfinished(first))),
                },
            };
            deadline = deadline.or_else(|| Instant::now().checked_add(self.limit));
            if let Some(checked) = self.check(first, IsLast(read == 0)) {
                return checked.map_err(TunnelEnd::Refused);
            }
        }
    }

    /// Checks the bytes so far; `None` if more are needed.
    fn check(&self, first: &mut Vec<u8>, is_last: IsLast) -> Option<Result<(), NetRefusal>> {
        let (host, is_tls) = (self.host, self.is_tls(first));
        if is_last == IsLast(true) {
            if !is_tls {
                return Some(http_head::check_last(first, host, self.port));
            }
            // The guest has ended, perhaps in the middle of a message that the server must not see.
            first.clear();
            return Some(Ok(()));
        }
        if !is_tls {
            return match http_head::read(first) {
                HeadProgress::Incomplete if first.len() < MAX_HEAD_BYTES => None,
                HeadProgress::Incomplete => Some(Err(self.unfinished(first))),
                HeadProgress::Blank | HeadProgress::NotHttp => Some(Ok(())),
                HeadProgress::Complete => Some(http_head::check(first, host, self.port)),
            };
        }
        match client_hello::read(first) {
            HelloProgress::Incomplete if first.len() < MAX_FIRST_BYTES => None,
            HelloProgress::Incomplete | HelloProgress::NotTls => Some(Err(NetRefusal::NotTls)),
            HelloProgress::Complete(hello) => {
                let shown = hello.server_name.as_deref();
                let hidden =
                    if hello.is_encrypted { Err(NetRefusal::HiddenServerName) } else { Ok(()) };
                Some(check_server_name(host, shown).and(hidden))
            }
        }
    }

    fn is_tls(&self, first: &[u8]) -> bool {
        self.is_tls_demanded || first.first() == Some(&HANDSHAKE_RECORD)
    }

    fn unfinished(&self, first: &[u8]) -> NetRefusal {
        match self.is_tls(first) {
            true => NetRefusal::NotTls,
            false => NetRefusal::Fault(RequestFault::Head),
        }
    }
}
