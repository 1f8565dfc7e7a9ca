//! Accepts the connections of one cell, within bounds, until the run ends.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    approval::ConnectionApprover, authority::RunAuthority, connect::Resolver,
    connection::ProxyConnection, forbidden_ports::ForbiddenPorts, http, log::ConnectionLog,
    policy::NetPolicy, socks, state::RunConnections, tls_client::TlsClient,
};

/// The first byte of SOCKS5. No HTTP method begins with it.
const SOCKS5: u8 = 5;
/// How long connections may take to be recorded as closed when the run ends.
const LAST_RECORDS: Duration = Duration::from_secs(2);
/// How long the proxy waits when the process has no descriptor left for a connection.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

/// The bounds of one run's connections.
#[derive(Debug, Clone, Copy)]
pub struct NetLimits {
    /// Connections of the guest at the same time; more wait in the listener's backlog.
    pub connections: usize,
    /// Connections to one host at the same time; more wait, as long as a connection may take to be made.
    pub connections_per_host: usize,
    /// Bytes that all connections together may send.
    pub max_sent: u64,
    /// Bytes that all connections together may receive.
    pub max_received: u64,
    /// How long resolving and connecting may take.
    pub connect: Duration,
    /// How long a guest may take for its first bytes, and for the head of a request.
    pub head: Duration,
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            connections: 32,
            connections_per_host: 16,
            max_sent: 1 << 30,
            max_received: 4 << 30,
            connect: Duration::from_secs(10),
            head: Duration::from_secs(10),
        }
    }
}

/// What the connections of one run go through.
#[derive(Debug, Clone)]
pub struct ProxyContext {
    /// The hosts it may reach.
    pub policy: NetPolicy,
    /// Its bounds.
    pub limits: NetLimits,
    /// Finds the addresses of names.
    pub resolver: Arc<dyn Resolver>,
    /// Receives a report of every connection.
    pub log: Arc<dyn ConnectionLog>,
    /// Asks a person about what a rule does not allow by itself.
    pub approver: Arc<dyn ConnectionApprover>,
    /// Makes TLS connections to servers, for requests that the proxy sees.
    pub tls: Arc<TlsClient>,
    /// Issues the certificates that the guest sees then. Without it, only plain HTTP can be seen.
    pub authority: Option<Arc<RunAuthority>>,
    /// The ports of this machine that no rule reaches.
    pub ports: Arc<dyn ForbiddenPorts>,
}

/// Serves the connections of a cell's programs until `stop` completes; then ends and records all of them.
///
/// # Errors
/// The listener does not work.
pub async fn serve(
    listener: TcpListener,
    run: RunConnections,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let RunConnections(state) = run;
    let (stop_all, is_stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    let ended = loop {
        // A place first: a connection without one stays in the backlog, which the kernel bounds.
        let next = async {
            let place = state.places().clone().acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await, place))
        };
        let accepted = tokio::select! {
            () = &mut stop => break Ok(()),
            next = next => next,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Err(error) => break Err(error),
            Ok((Err(error), _)) if is_fatal(&error) => break Err(error),
            Ok((Err(_), _)) => sleep(NO_DESCRIPTOR).await,
            Ok((Ok((guest, _)), place)) => {
                let connection = Arc::new(ProxyConnection::new(state.clone()));
                let mut stopped = is_stopped.clone();
                connections.spawn(async move {
                    tokio::select! {
                        () = serve_one(guest, connection.clone()) => {}
                        _ = stopped.wait_for(|stopped| *stopped) => {}
                    }
                    connection.close_all().await;
                    drop(place);
                });
            }
        }
    };
    drop(listener);
    stop_all.send_replace(true);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(LAST_RECORDS, rest).await;
    ended
}

/// Whether accepting will fail again. A connection may be gone already, or descriptors be short.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

async fn serve_one(guest: TcpStream, connection: Arc<ProxyConnection>) {
    let mut first = [0];
    let peeked = timeout(connection.limits().head, guest.peek(&mut first)).await;
    let _ = guest.set_nodelay(true);
    match (peeked, first) {
        (Ok(Ok(1)), [SOCKS5]) => socks::serve(guest, connection).await,
        (Ok(Ok(1)), _) => http::serve(guest, connection).await,
        _ => {}
    }
}
