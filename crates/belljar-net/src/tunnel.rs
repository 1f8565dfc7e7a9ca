//! Moves bytes between a guest and a server, and looks at the first ones of the guest.

use std::io;

use tokio::{
    io::{
        AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, copy_buf, split,
    },
    time::timeout,
};

use crate::{
    client_hello::{self, HANDSHAKE_RECORD, HelloProgress, MAX_HELLO_BYTES},
    connection::{OpenedConnection, ProxyConnection},
    host::RemoteHost,
    policy::{NetRefusal, check_server_name},
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
    let mut first = Vec::new();
    let inspected = async {
        if is_tls_demanded {
            let reading = first_bytes(&mut from_guest, &mut first, &host, is_tls_demanded);
            let read = timeout(connection.limits().head, reading).await;
            read.unwrap_or(Err(TunnelEnd::Refused(NetRefusal::NotTls)))?;
        }
        Ok(())
    };
    let ended = match inspected.await {
        Err(end) => Err(end),
        Ok(()) => {
            let up = async {
                if !is_tls_demanded {
                    first_bytes(&mut from_guest, &mut first, &host, is_tls_demanded).await?;
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

/// Reads the first bytes of the guest, all of its client hello if it is TLS, and checks the name in it.
async fn first_bytes(
    guest: &mut (impl AsyncRead + Unpin),
    first: &mut Vec<u8>,
    host: &RemoteHost,
    is_tls_demanded: bool,
) -> Result<(), TunnelEnd> {
    loop {
        if guest.read_buf(first).await? == 0 {
            // The guest has ended, perhaps in the middle of a message that the server must not see.
            first.clear();
            return Ok(());
        }
        if !is_tls_demanded && first.first().is_some_and(|byte| *byte != HANDSHAKE_RECORD) {
            return Ok(());
        }
        match client_hello::read(first) {
            HelloProgress::Incomplete if first.len() < MAX_FIRST_BYTES => {}
            HelloProgress::Incomplete | HelloProgress::NotTls => {
                return Err(TunnelEnd::Refused(NetRefusal::NotTls));
            }
            HelloProgress::Complete(hello) => {
                let shown = hello.server_name.as_deref();
                check_server_name(host, shown).map_err(TunnelEnd::Refused)?;
                let hidden = TunnelEnd::Refused(NetRefusal::HiddenServerName);
                return if hello.is_encrypted { Err(hidden) } else { Ok(()) };
            }
        }
    }
}
