//! Accepts the connections of one cell, within bounds, until the run ends.

use std::{future::Future, io, os::fd::AsFd, pin::pin, sync::Arc, time::Duration};

use rustix::{
    io::Errno,
    net::{SocketFlags, accept_with, sockopt::set_socket_linger},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    approval::ConnectionApprover,
    authority::RunAuthority,
    connection::ProxyConnection,
    forbidden_ports::ForbiddenPorts,
    http,
    log::ConnectionLog,
    policy::NetPolicy,
    resolver::Resolver,
    socks,
    state::{ProxyState, RunConnections},
    tls_client::TlsClient,
};

/// The first byte of SOCKS5. No HTTP method begins with it.
const SOCKS5: u8 = 5;
/// How long connections may take to be recorded as closed when the run ends.
const LAST_RECORDS: Duration = Duration::from_secs(2);
/// How long the proxy waits when the process has no descriptor left for a connection.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
/// More connections than can wait to be accepted.
const MAX_WAITING: usize = 1024;

/// The bounds of one run's connections.
#[derive(Debug, Clone, Copy)]
pub struct NetLimits {
    /// Connections of the whole run. One that was refused counts, too.
    pub total: u32,
    /// Bytes that all connections together may send, and that they may receive.
    pub bytes: u64,
    /// Connections of the guest at the same time; more wait in the listener's backlog.
    pub connections: usize,
    /// Connections to one host at the same time; more wait, as long as a connection may take to be made.
    pub connections_per_host: usize,
    /// How long resolving and connecting may take.
    pub connect: Duration,
    /// How long a guest may take for its first bytes in a connection or a tunnel.
    pub head: Duration,
    /// How long a connection may be idle before the head of its next request has arrived.
    pub idle: Duration,
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            total: 64,
            bytes: 1 << 30,
            connections: 32,
            // Above what usual clients keep idle, so that those that wait get a place.
            connections_per_host: 24,
            connect: Duration::from_secs(10),
            head: Duration::from_secs(10),
            // Clients keep connections; a minute is usual.
            idle: Duration::from_secs(60),
        }
    }
}

/// The parts that all connections of one run use.
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

impl RunConnections {
    /// Serves the connections of a cell's programs until `stop` completes; then resets and records all of
    /// them. Bytes and connections are counted however often it serves.
    ///
    /// # Errors
    /// The listener does not work.
    pub async fn serve(
        &self,
        listener: &TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let Self(state) = self;
        let (stop_all, is_stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        let ended = loop {
            // A place first: a connection without one stays in the backlog, which the kernel bounds.
            let next = async {
                let place = state.places().clone().acquire_owned().await;
                let place = place.map_err(io::Error::other)?;
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
                    let (state, stopped) = (state.clone(), is_stopped.clone());
                    connections.spawn(async move {
                        serve_until(guest, state, stopped).await;
                        drop(place);
                    });
                }
            }
        };
        stop_all.send_replace(true);
        let rest = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(LAST_RECORDS, rest).await;
        ended
    }
}

/// Accepts the connections of a cell and resets each of them at once, until `until` completes. Whatever was
/// waiting to be accepted by then is reset, too.
///
/// # Errors
/// The listener does not work.
pub async fn refuse_all(listener: &TcpListener, until: impl Future<Output = ()>) -> io::Result<()> {
    let mut until = pin!(until);
    loop {
        tokio::select! {
            // First, so that there is an end to it however many connections a guest makes.
            biased;
            () = &mut until => break,
            accepted = listener.accept() => match accepted {
                Ok((guest, _)) => reset(&guest),
                Err(error) if is_fatal(&error) => return Err(error),
                Err(_) => sleep(NO_DESCRIPTOR).await,
            },
        }
    }
    reset_waiting(listener).await;
    Ok(())
}

/// Resets the connections that wait to be accepted. Asks the kernel itself: the runtime may not know of the
/// last ones yet.
async fn reset_waiting(listener: &TcpListener) {
    for _ in 0..MAX_WAITING {
        match accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(guest) => reset(&guest),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                sleep(NO_DESCRIPTOR).await;
            }
            Err(_) => return,
        }
    }
}

/// Serves one connection until it ends, or until it is stopped: then its guest sees a reset, which it cannot
/// take for the end of an answer.
async fn serve_until(guest: TcpStream, state: Arc<ProxyState>, mut stopped: watch::Receiver<bool>) {
    let connection = Arc::new(ProxyConnection::new(state));
    // The connection stays open as long as there is a descriptor of it.
    let descriptor = guest.as_fd().try_clone_to_owned();
    let was_stopped = tokio::select! {
        () = serve_one(guest, connection.clone()) => false,
        _ = stopped.wait_for(|stopped| *stopped) => true,
    };
    if let (true, Ok(guest)) = (was_stopped, &descriptor) {
        reset(guest);
    }
    drop(descriptor);
    connection.close_all().await;
}

/// Makes closing this connection reset it, with whatever is still to be sent or read.
fn reset(guest: &impl AsFd) {
    if let Err(error) = set_socket_linger(guest, Some(Duration::ZERO)) {
        tracing::debug!(%error, "a connection of a guest cannot be reset");
    }
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
