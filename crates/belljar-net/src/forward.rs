//! Sends requests to servers: decides about each, sets the headers of its rule, and keeps the connection
//! to the server for the next one.
//!
//! hyper has read the request and writes it anew, so that what the server gets is what was checked here: a
//! request that could be read in two ways does not arrive.

use std::{error::Error, io, sync::Arc};

use bytes::Bytes;
use http_body::Body;
use hyper::{
    Request, Response, StatusCode, Uri, Version, body::Incoming, header, header::HeaderValue,
};
use tokio::sync::Mutex;

use crate::{
    body::ServerBody,
    connection::{AllowedConnection, OpenFailure, ProxyConnection},
    headers,
    host::RemoteHost,
    policy::NetRefusal,
    redact::Redactor,
    request::{RequestFault, RequestTarget, Scheme, authority, summary},
    server::ServerConnection,
};

/// Forwards the requests of one client, one after another.
#[derive(Debug)]
pub(crate) struct RequestForwarder<B> {
    connection: Arc<ProxyConnection>,
    server: Mutex<Option<ServerConnection<B>>>,
}

impl<B> RequestForwarder<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub(crate) fn new(connection: Arc<ProxyConnection>) -> Self {
        Self { connection, server: Mutex::default() }
    }

    /// The same for a request whose URL is absolute. `None` if it names no server.
    pub(crate) async fn forward_absolute(
        &self,
        request: Request<B>,
    ) -> Option<Result<Response<ServerBody>, OpenFailure>> {
        let scheme = Scheme::of(request.uri())?;
        let (host, port) = authority(request.uri(), Some(scheme.port()))?;
        Some(match RemoteHost::parse(host) {
            Ok(host) => self.forward(&RequestTarget { scheme, host, port }, request).await,
            Err(error) => Err(self.connection.refuse_malformed(host.as_bytes(), port, error).await),
        })
    }

    /// Sends a request if a rule allows it, and returns the answer, whose body is still on its way. The
    /// answer to the request before has ended.
    pub(crate) async fn forward(
        &self,
        target: &RequestTarget,
        request: Request<B>,
    ) -> Result<Response<ServerBody>, OpenFailure> {
        self.connection.close_all().await;
        let (mut parts, body) = request.into_parts();
        let summary = summary(&parts, body.size_hint().exact());
        let check = |is_seen| target.check(&parts, is_seen);
        let allowed = self.connection.allow_request(target, summary, check).await?;
        headers::remove_hop_by_hop(&mut parts.headers);
        let set = headers::set(&mut parts.headers, &allowed.rule.headers);
        let host = HeaderValue::from_str(&target.host_header());
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse::<Uri>();
        let (Ok(()), Ok(host), Ok(path)) = (set, host, path) else {
            let refusal = NetRefusal::Fault(RequestFault::Header);
            return Err(self.connection.refuse_allowed(allowed, refusal).await);
        };
        parts.headers.insert(header::HOST, host);
        parts.uri = path;
        parts.version = Version::HTTP_11;
        let answer = self.send(&allowed, target, Request::from_parts(parts, body)).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let error = io::Error::other("the server changed the protocol without being asked to");
            return Err(self.connection.fail(&allowed, error).await);
        }
        let redactor = Redactor::of(&allowed.rule.headers);
        let (mut parts, body) = answer.into_parts();
        headers::remove_hop_by_hop(&mut parts.headers);
        if let Some(redactor) = &redactor {
            redactor.headers(&mut parts.headers);
        }
        Ok(Response::from_parts(parts, ServerBody::new(body, redactor)))
    }

    /// Sends a request on the connection of the one before, if it goes to the same server, or on a new one.
    async fn send(
        &self,
        allowed: &AllowedConnection,
        target: &RequestTarget,
        mut request: Request<B>,
    ) -> Result<Response<Incoming>, OpenFailure> {
        let mut kept = self.server.lock().await;
        if let Some(server) = kept.as_mut()
            && server.is_ready_for(target).await
        {
            self.connection.reuse(allowed, server.end.clone()).await?;
            match server.sender.try_send_request(request).await {
                Ok(answer) => return Ok(answer),
                Err(mut error) => match error.take_message() {
                    // The server has ended the connection; nothing was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(self.lost(allowed, error.into_error()).await),
                },
            }
        }
        *kept = None;
        let opened = self.connection.connect(allowed).await?;
        let opening = ServerConnection::open(self.connection.context(), opened, target).await;
        let server = match opening {
            Ok(server) => kept.insert(server),
            Err(error) => return Err(self.connection.fail(allowed, error).await),
        };
        match server.sender.send_request(request).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.lost(allowed, error).await),
        }
    }

    async fn lost(&self, allowed: &AllowedConnection, error: hyper::Error) -> OpenFailure {
        self.connection.fail(allowed, io::Error::other(error)).await
    }
}
