//! The HTTP proxy: `CONNECT`, and requests in absolute form. Each request is decided about on its own.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    server::conn::http1::Builder,
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::{
    body::{ProxyBody, ServerBody},
    connection::{OpenFailure, ProxyConnection, TunnelAdmission},
    forward::RequestForwarder,
    host::{RemoteHost, RemoteHostError},
    policy::NetRefusal,
    proxy::NetLimits,
    request::{Scheme, authority, check_named_hosts},
    terminate, tunnel,
};

pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;
pub(crate) const MAX_HEADERS: usize = 128;

/// The state of one connection of a guest that speaks HTTP.
#[derive(Debug)]
struct HttpExchange {
    connection: Arc<ProxyConnection>,
    forwarder: RequestForwarder<Incoming>,
    /// Set by a `CONNECT` that was allowed; there is nothing but the tunnel after that.
    tunnel: Mutex<Option<AdmittedTunnel>>,
}

/// A tunnel that begins when its `CONNECT` is answered.
#[derive(Debug)]
struct AdmittedTunnel {
    upgrade: OnUpgrade,
    admission: TunnelAdmission,
    port: u16,
}

/// Serves one connection.
pub(crate) async fn serve(guest: TcpStream, connection: Arc<ProxyConnection>) {
    let exchange = Arc::new(HttpExchange {
        forwarder: RequestForwarder::new(connection.clone()),
        connection: connection.clone(),
        tunnel: Mutex::default(),
    });
    let service = service_fn(|request| {
        let exchange = exchange.clone();
        async move { Ok::<_, Infallible>(exchange.answer(request).await) }
    });
    let builder = server_builder(connection.limits());
    let served = builder.serve_connection(TokioIo::new(guest), service).with_upgrades().await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a guest to its proxy");
    }
    let tunnel = exchange.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(AdmittedTunnel { upgrade, admission, port }) = tunnel else { return };
    let Ok(guest) = upgrade.await else { return };
    let guest = TokioIo::new(guest);
    match admission {
        TunnelAdmission::Whole(opened) => tunnel::run(&connection, guest, *opened).await,
        TunnelAdmission::Requests(host) => terminate::run(connection, guest, host, port).await,
    }
}

/// Reads the requests of a guest within bounds.
pub(crate) fn server_builder(limits: &NetLimits) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .preserve_header_case(true)
        .auto_date_header(false);
    builder
}

impl HttpExchange {
    async fn answer(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        if request.method() == Method::CONNECT {
            return self.connect(request).await.unwrap_or_else(|failure| failure);
        }
        // A program that speaks to its proxy does not have it speak TLS.
        if Scheme::of(request.uri()) != Some(Scheme::Http) {
            return not_a_target();
        }
        self.forwarder.forward_absolute(request).await.map_or_else(not_a_target, answer_of)
    }

    async fn connect(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, Response<ProxyBody>> {
        self.connection.close_all().await;
        let upgrade = hyper::upgrade::on(&mut request);
        let (host, port) = authority(request.uri(), None).ok_or_else(not_a_target)?;
        let check = |host: &RemoteHost| check_named_hosts(host, port, request.headers());
        let admitted = self.connection.admit(host, port, check).await;
        let admission = admitted.map_err(|failure| answer_of(Err(failure)))?;
        let tunnel = Some(AdmittedTunnel { upgrade, admission, port });
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = tunnel;
        Ok(Response::new(ProxyBody::Text(None)))
    }
}

/// The answer of a server, or why there is none.
pub(crate) fn answer_of(
    answered: Result<Response<ServerBody>, OpenFailure>,
) -> Response<ProxyBody> {
    match answered {
        Ok(answer) => answer.map(ProxyBody::Server),
        Err(failure) => {
            let status = match &failure {
                OpenFailure::Refused(_, NetRefusal::Malformed(_)) => StatusCode::BAD_REQUEST,
                OpenFailure::Refused(..) => StatusCode::FORBIDDEN,
                OpenFailure::Failed(..) => StatusCode::BAD_GATEWAY,
            };
            text_answer(status, failure.text())
        }
    }
}

fn not_a_target() -> Response<ProxyBody> {
    let text = format!(
        "belljar: this is a proxy; send CONNECT HOST:PORT, or http://HOST/ in absolute form ({})\n",
        RemoteHostError::NotAName
    );
    text_answer(StatusCode::BAD_REQUEST, text)
}

fn text_answer(status: StatusCode, text: String) -> Response<ProxyBody> {
    let mut answer = Response::new(ProxyBody::Text(Some(text.into())));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    // The bytes behind a refused request are of no use.
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}
