//! The HTTP proxy: `CONNECT`, and requests in absolute form.
//!
//! hyper reads and writes every message, so that what the server gets is what was checked here: a request
//! that could be read in two ways does not arrive. Each request is decided about on its own.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, task::JoinSet};

use crate::{
    connection::{OpenFailure, OpenedConnection, ProxyConnection},
    host::{RemoteHost, RemoteHostError},
    policy::NetRefusal,
    tunnel,
};

const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// Headers that concern one connection only. `Expect` is answered here.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
];
/// The same, with names that hyper does not know.
const HOP_BY_HOP_NAMES: [&str; 2] = ["proxy-connection", "keep-alive"];

/// The state of one connection of a guest that speaks HTTP.
#[derive(Debug)]
struct HttpExchange {
    connection: Arc<ProxyConnection>,
    /// Set by a `CONNECT` that was allowed; there is nothing but the tunnel after that.
    tunnel: Mutex<Option<(OnUpgrade, OpenedConnection)>>,
    /// Drives the connection to the server of the current request.
    server: Mutex<JoinSet<()>>,
}

/// Serves one connection.
pub(crate) async fn serve(guest: TcpStream, connection: Arc<ProxyConnection>) {
    let exchange = Arc::new(HttpExchange {
        connection: connection.clone(),
        tunnel: Mutex::default(),
        server: Mutex::default(),
    });
    let service = service_fn(|request| {
        let exchange = exchange.clone();
        async move { Ok::<_, Infallible>(exchange.answer(request).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(connection.limits().head)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .preserve_header_case(true)
        .auto_date_header(false);
    let served = builder.serve_connection(TokioIo::new(guest), service).with_upgrades().await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a guest to its proxy");
    }
    let tunnel = exchange.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((upgrade, opened)) = tunnel
        && let Ok(guest) = upgrade.await
    {
        tunnel::run(&connection, TokioIo::new(guest), opened).await;
    }
}

impl HttpExchange {
    async fn answer(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        // The one before has been answered.
        self.connection.close_all().await;
        let answered = match *request.method() {
            Method::CONNECT => self.connect(request).await,
            _ => self.forward(request).await,
        };
        answered.unwrap_or_else(|answer| answer)
    }

    async fn connect(&self, mut request: Request<Incoming>) -> Answer {
        let target = Target::of(request.uri(), None).ok_or_else(not_a_target)?;
        let hosts = named_hosts(request.headers());
        let upgrade = hyper::upgrade::on(&mut request);
        let opened = self.open(&target, &hosts).await?;
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, opened));
        Ok(Response::new(ProxyBody::Text(None)))
    }

    async fn forward(&self, request: Request<Incoming>) -> Answer {
        let is_http = request.uri().scheme_str() == Some("http");
        let target = Target::of(request.uri(), Some(HTTP)).filter(|_| is_http);
        let target = target.ok_or_else(not_a_target)?;
        let (mut parts, body) = request.into_parts();
        let hosts = named_hosts(&parts.headers);
        let opened = self.open(&target, &hosts).await?;
        let host = match (&opened.host, target.port) {
            (host, HTTP) => host.to_string(),
            (host, port) => format!("{host}:{port}"),
        };
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse().map_err(|_| not_a_target())?;
        parts.version = Version::HTTP_11;
        remove_hop_by_hop(&mut parts.headers);
        let host = HeaderValue::from_str(&host).map_err(|_| not_a_target())?;
        parts.headers.insert(header::HOST, host);
        self.send(opened, Request::from_parts(parts, body)).await.map_err(|error| {
            let text = format!("belljar lost the connection to the server: {error}\n");
            text_answer(StatusCode::BAD_GATEWAY, text)
        })
    }

    async fn open(
        &self,
        target: &Target,
        hosts: &[Vec<u8>],
    ) -> Result<OpenedConnection, Response<ProxyBody>> {
        let opened = self.connection.open(&target.host, target.port, |host| {
            if target.is_plain && target.port == HTTPS {
                return Err(NetRefusal::PlainHttp);
            }
            check_named_hosts(host, target, hosts)
        });
        opened.await.map_err(|failure| {
            let status = match &failure {
                OpenFailure::Refused(_, NetRefusal::Malformed(_)) => StatusCode::BAD_REQUEST,
                OpenFailure::Refused(..) => StatusCode::FORBIDDEN,
                OpenFailure::Failed(..) => StatusCode::BAD_GATEWAY,
            };
            text_answer(status, failure.text())
        })
    }

    /// Sends a request on a connection of its own, and returns the answer, whose body is still on its way.
    async fn send(
        &self,
        opened: OpenedConnection,
        request: Request<Incoming>,
    ) -> hyper::Result<Response<ProxyBody>> {
        let io = TokioIo::new(opened.stream);
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.preserve_header_case(true).max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
        let (mut sender, connection) = builder.handshake(io).await?;
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a server");
            }
        });
        // The one before is dropped here, and its connection with it.
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = driving;
        let mut answer = sender.send_request(request).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let text = "belljar: the server changed the protocol without being asked to\n";
            return Ok(text_answer(StatusCode::BAD_GATEWAY, text.to_owned()));
        }
        remove_hop_by_hop(answer.headers_mut());
        Ok(answer.map(ProxyBody::Server))
    }
}

type Answer = Result<Response<ProxyBody>, Response<ProxyBody>>;

/// The host and port of a request.
struct Target {
    host: String,
    port: u16,
    /// The request itself is plain HTTP; otherwise a tunnel is asked for.
    is_plain: bool,
}

impl Target {
    /// The host and port in a URI, which must have no user in it.
    fn of(uri: &Uri, usual_port: Option<u16>) -> Option<Self> {
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None => usual_port.filter(|_| !authority.as_str().ends_with(':'))?,
        };
        let is_plain = usual_port.is_some();
        Some(Self { host: authority.host().to_owned(), port, is_plain })
    }
}

fn named_hosts(headers: &HeaderMap) -> Vec<Vec<u8>> {
    headers.get_all(header::HOST).iter().map(|value| value.as_bytes().to_vec()).collect()
}

/// The `Host` header must name the same host and port, if it is there, and at most once.
fn check_named_hosts(
    allowed: &RemoteHost,
    target: &Target,
    hosts: &[Vec<u8>],
) -> Result<(), NetRefusal> {
    let is_same = |named: &[u8]| {
        let named: Option<Uri> = Uri::try_from(named).ok();
        let named = named.and_then(|uri| Target::of(&uri, Some(target.port)));
        named.is_some_and(|named| {
            named.port == target.port
                && RemoteHost::parse(&named.host).is_ok_and(|named| named == *allowed)
        })
    };
    let other = match hosts {
        [] => return Ok(()),
        [only] if is_same(only) => return Ok(()),
        [only] => only,
        [_, second, ..] => second,
    };
    let named = String::from_utf8_lossy(other).escape_default().take(100).collect();
    Err(NetRefusal::OtherName { allowed: allowed.clone(), place: "Host header", named })
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    for name in HOP_BY_HOP_NAMES {
        headers.remove(name);
    }
    // A guest may name any header there, and the length of the body is not one of the connection.
    for name in listed.iter().filter(|name| *name != "content-length" && *name != "host") {
        headers.remove(name.as_str());
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
    // What the guest sent behind a refused request is of no use.
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// The body of an answer: the server's, or a text of the proxy's.
#[derive(Debug)]
enum ProxyBody {
    Server(Incoming),
    Text(Option<Bytes>),
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Server(body) => Pin::new(body).poll_frame(context),
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Server(body) => body.is_end_stream(),
            Self::Text(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Server(body) => body.size_hint(),
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |it| it.len() as u64)),
        }
    }
}
