//! A connection to a server that carries requests.

use std::{error::Error, io};

use bytes::Bytes;
use http_body::Body;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::timeout,
};

use crate::{
    connection::OpenedConnection,
    http::{MAX_HEAD_BYTES, MAX_HEADERS},
    proxy::ProxyContext,
    request::{RequestTarget, Scheme},
    state::ServerEnd,
};

/// A connection to a server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct ServerConnection<B> {
    target: RequestTarget,
    pub(crate) end: ServerEnd,
    pub(crate) sender: SendRequest<B>,
    _driving: JoinSet<()>,
}

impl<B> ServerConnection<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Begins to speak HTTP on a connection, inside TLS if the target says so.
    pub(crate) async fn open(
        context: &ProxyContext,
        opened: OpenedConnection,
        target: &RequestTarget,
    ) -> io::Result<Self> {
        let OpenedConnection { stream, host, end, .. } = opened;
        let (sender, driving) = match target.scheme {
            Scheme::Http => begin(stream).await?,
            Scheme::Https => {
                let connecting = context.tls.connect(stream, &host);
                let connected = timeout(context.limits.connect, connecting).await;
                begin(connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?).await?
            }
        };
        Ok(Self { target: target.clone(), end, sender, _driving: driving })
    }

    /// Whether another request to this target can be sent on it.
    pub(crate) async fn is_ready_for(&mut self, target: &RequestTarget) -> bool {
        self.target == *target && self.sender.ready().await.is_ok()
    }
}

async fn begin<B>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> io::Result<(SendRequest<B>, JoinSet<()>)>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut builder = Builder::new();
    builder.preserve_header_case(true).max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(io::Error::other)?;
    let mut driving = JoinSet::new();
    driving.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a server");
        }
    });
    Ok((sender, driving))
}
