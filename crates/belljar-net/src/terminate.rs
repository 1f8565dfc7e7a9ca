//! Tunnels to hosts whose requests have rules: the proxy is the server, and decides about each request.
//!
//! Nothing is resolved or connected before the first request is allowed.

use std::{convert::Infallible, io::Cursor, sync::Arc};

use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::server::Acceptor;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, join, split},
    time::timeout,
};
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};

use crate::{
    body::ProxyBody,
    client_hello::HANDSHAKE_RECORD,
    connection::ProxyConnection,
    forward::RequestForwarder,
    host::RemoteHost,
    http::{answer_of, server_builder},
    policy::{NetRefusal, check_server_name},
    request::{RequestFault, RequestTarget, Scheme},
};

/// Serves the requests in a tunnel to its end.
pub(crate) async fn run(
    connection: Arc<ProxyConnection>,
    guest: impl AsyncRead + AsyncWrite + Send + Unpin,
    host: RemoteHost,
    port: u16,
) {
    let (mut from_guest, to_guest) = split(guest);
    let limit = connection.limits().head;
    let Ok(Ok(first)) = timeout(limit, from_guest.read_u8()).await else { return };
    let guest = join(Cursor::new([first]).chain(from_guest), to_guest);
    let target = |scheme| RequestTarget { scheme, host: host.clone(), port };
    if first == HANDSHAKE_RECORD {
        let accepted = timeout(limit, accept(&connection, guest, &host)).await;
        match accepted.unwrap_or(Err(TlsEnd::Refused(NetRefusal::NotTls))) {
            Ok(guest) => serve(connection, guest, target(Scheme::Https)).await,
            Err(TlsEnd::Refused(refusal)) => {
                connection.refuse_tunnel(&host, port, refusal).await;
            }
            Err(TlsEnd::Failed(error)) => connection.fail_tunnel(&host, port, error).await,
        }
    } else if port == Scheme::Https.port() {
        connection.refuse_tunnel(&host, port, NetRefusal::NotTls).await;
    } else {
        serve(connection, guest, target(Scheme::Http)).await;
    }
}

/// Why there is no TLS with a guest.
enum TlsEnd {
    Refused(NetRefusal),
    Failed(std::io::Error),
}

impl From<std::io::Error> for TlsEnd {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Is the host to the guest, if that is the host it wants.
async fn accept<S>(
    connection: &ProxyConnection,
    guest: S,
    host: &RemoteHost,
) -> Result<TlsStream<S>, TlsEnd>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let refused = TlsEnd::Refused;
    let authority = connection.context().authority.as_ref();
    let authority = authority.ok_or(NetRefusal::NoAuthority).map_err(refused)?;
    let start = LazyConfigAcceptor::new(Acceptor::default(), guest).await?;
    let shown = start.client_hello().server_name().map(str::to_owned);
    check_server_name(host, shown.as_deref().map(str::as_bytes)).map_err(refused)?;
    let config = authority.server_config(host).map_err(std::io::Error::other)?;
    Ok(start.into_stream(config).await?)
}

async fn serve(
    connection: Arc<ProxyConnection>,
    guest: impl AsyncRead + AsyncWrite + Send + Unpin,
    target: RequestTarget,
) {
    let forwarder = RequestForwarder::new(connection.clone());
    let service = service_fn(|request| {
        let (connection, forwarder, target) = (&connection, &forwarder, &target);
        async move { Ok::<_, Infallible>(answer(connection, forwarder, target, request).await) }
    });
    let served =
        server_builder(connection.limits()).serve_connection(TokioIo::new(guest), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a tunnel of a guest");
    }
}

async fn answer(
    connection: &ProxyConnection,
    forwarder: &RequestForwarder<Incoming>,
    target: &RequestTarget,
    request: Request<Incoming>,
) -> Response<ProxyBody> {
    // `CONNECT`, and requests in absolute form.
    if request.uri().authority().is_some() {
        let refusal = NetRefusal::Fault(RequestFault::Form);
        return answer_of(Err(connection.refuse_tunnel(&target.host, target.port, refusal).await));
    }
    answer_of(forwarder.forward(target, request).await)
}
