//! A real HTTPS server with an authority of its own, and a guest that speaks to it through a proxy.

use std::{
    io,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use belljar_net::{HeaderRule, NetRule, NetRules, RunAuthority, Secret, TlsClient};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, pem::PemObject as _},
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::support::{Proxy, Setup, server};

pub(crate) const SECRET: &str = "s3cret-of-the-host";

/// A server, what it has received, and the authority that vouches for it.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) port: u16,
    pub(crate) root: CertificateDer<'static>,
    received: Arc<Mutex<SiteLog>>,
}

/// The requests of a server as they came, and on how many connections.
#[derive(Debug, Default, Clone)]
pub(crate) struct SiteLog {
    pub(crate) requests: Vec<String>,
    pub(crate) connections: usize,
}

impl Site {
    /// An HTTPS server whose certificate is for the name.
    pub(crate) async fn https(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![leaf.der().clone()], key.into()).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let received = Arc::new(Mutex::new(SiteLog::default()));
        let shared = received.clone();
        let port = server(move |stream| {
            let (acceptor, received) = (acceptor.clone(), shared.clone());
            async move { answer_all(acceptor.accept(stream).await?, &received).await }
        })
        .await;
        Self { port, root: issuer.der().clone(), received }
    }

    /// The same without TLS.
    pub(crate) async fn http() -> Self {
        let received = Arc::new(Mutex::new(SiteLog::default()));
        let shared = received.clone();
        let port = server(move |stream| {
            let received = shared.clone();
            async move { answer_all(stream, &received).await }
        })
        .await;
        Self { port, root: CertificateDer::from(Vec::new()), received }
    }

    /// The same server, behind proxies that trust another root.
    pub(crate) fn trusting(&self, root: &CertificateDer<'static>) -> Self {
        Self { root: root.clone(), ..self.clone() }
    }

    pub(crate) fn received(&self) -> SiteLog {
        self.received.lock().unwrap().clone()
    }

    /// A proxy that trusts this server and sees requests.
    pub(crate) async fn proxy(&self, rules: NetRules) -> (Proxy, Arc<RunAuthority>) {
        self.proxy_with(Setup::of(rules)).await
    }

    pub(crate) async fn proxy_with(&self, setup: Setup) -> (Proxy, Arc<RunAuthority>) {
        let authority = Arc::new(RunAuthority::new(SystemTime::now()).unwrap());
        let tls = Arc::new(TlsClient::with_roots(vec![self.root.clone()]));
        let setup = Setup { tls, authority: Some(authority.clone()), ..setup };
        (Proxy::start_setup(setup).await, authority)
    }
}

/// Answers every request with what came. Its path says in which form.
async fn answer_all(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    received: &Mutex<SiteLog>,
) -> io::Result<()> {
    received.lock().unwrap().connections += 1;
    let mut rest = Vec::new();
    while let Some(request) = read_message(&mut stream, &mut rest).await? {
        received.lock().unwrap().requests.push(request.clone());
        let path = request.split(' ').nth(1).unwrap().to_owned();
        match path.as_str() {
            "/api/switch" => {
                let head =
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
            }
            "/api/pieces" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
                for piece in request.as_bytes().chunks(7) {
                    stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
                    stream.write_all(piece).await?;
                    stream.write_all(b"\r\n").await?;
                    stream.flush().await?;
                }
                stream.write_all(b"0\r\n\r\n").await?;
            }
            _ => {
                let echo = request.lines().find_map(|line| line.strip_prefix("authorization: "));
                let (echo, length) = (echo.unwrap_or("none"), request.len());
                let end = if path == "/api/close" { "Connection: close\r\n" } else { "" };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-Echo: {echo}\r\n{end}\r\n"
                );
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(request.as_bytes()).await?;
            }
        }
        stream.flush().await?;
    }
    Ok(())
}

/// The head and the body of the next message, whichever way its length is stated.
async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> io::Result<Option<String>> {
    loop {
        if let Some(end) = message_end(bytes) {
            let rest = bytes.split_off(end);
            let message = std::mem::replace(bytes, rest);
            return Ok(Some(String::from_utf8_lossy(&message).into_owned()));
        }
        if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
            return Ok(None);
        }
    }
}

fn message_end(bytes: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(bytes).unwrap();
    let head = text.find("\r\n\r\n")? + 4;
    let field = |name: &str| {
        let mut lines = text[..head].lines();
        lines.find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(str::to_owned))
    };
    if field("transfer-encoding: chunked").is_some() {
        return text[head..].find("0\r\n\r\n").map(|end| head + end + 5);
    }
    let length = field("content-length: ").map_or(0, |length| length.parse().unwrap());
    (bytes.len() >= head + length).then_some(head + length)
}

/// A rule about some requests to a host of this machine.
pub(crate) fn rule(pattern: &str, methods: &[&str], paths: &[&str]) -> NetRule {
    let rule = NetRule {
        private: true,
        methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
        ..NetRule::of_host(pattern.parse().unwrap())
    };
    rule.checked().unwrap()
}

/// The same rule with a credential.
pub(crate) fn with_secret(rule: NetRule) -> NetRule {
    let value = Secret::new(format!("Bearer {SECRET}"));
    let headers = vec![HeaderRule { name: "authorization".to_owned(), value }];
    NetRule { headers, ..rule }.checked().unwrap()
}

pub(crate) fn allow(rules: impl IntoIterator<Item = NetRule>) -> NetRules {
    NetRules { allow: rules.into_iter().collect(), ..NetRules::default() }
}

/// The way in which a guest asks for a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Connect,
    Socks,
}

/// A connection of a guest through a tunnel.
pub(crate) struct Guest<S> {
    stream: S,
    rest: Vec<u8>,
}

/// An answer as a guest gets it. Chunks are not decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// Opens a tunnel to a host and port.
pub(crate) async fn tunnel(
    proxy: &Proxy,
    way: Way,
    host: &str,
    port: u16,
) -> tokio::net::TcpStream {
    let mut stream = proxy.connect().await;
    match way {
        Way::Connect => {
            let head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(stream.read_u8().await.unwrap());
            }
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        }
        Way::Socks => {
            let name = [&[3, host.len() as u8], host.as_bytes()].concat();
            let request = [&[5, 1, 0, 5, 1, 0], &name[..], &port.to_be_bytes()].concat();
            stream.write_all(&request).await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer[3], 0);
        }
    }
    stream
}

/// A TLS client that trusts the authority of the run and offers these protocols.
pub(crate) fn tls_client(authority: &RunAuthority, protocols: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let pem = authority.certificate_pem();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

pub(crate) type TlsGuest = Guest<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>;

/// A guest that speaks TLS with the host, through the proxy.
pub(crate) async fn tls_guest(
    proxy: &Proxy,
    authority: &RunAuthority,
    way: Way,
    (host, port): (&str, u16),
) -> TlsGuest {
    let stream = tunnel(proxy, way, host, port).await;
    let name = ServerName::try_from(host.to_owned()).unwrap();
    Guest::new(tls_client(authority, &[]).connect(name, stream).await.unwrap())
}

impl<S: AsyncRead + AsyncWrite + Unpin> Guest<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Sends bytes and reads one answer; `None` if the connection ended without one.
    pub(crate) async fn send(&mut self, bytes: &str) -> Option<Answer> {
        let _ = self.stream.write_all(bytes.as_bytes()).await;
        let _ = self.stream.flush().await;
        self.answer().await
    }

    /// Reads another answer.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let text = read_message(&mut self.stream, &mut self.rest).await.unwrap()?;
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        Some(Answer { status, text })
    }

    /// The same, and nothing more will come.
    pub(crate) async fn send_last(&mut self, bytes: &str) -> Option<Answer> {
        let _ = self.stream.write_all(bytes.as_bytes()).await;
        let _ = self.stream.shutdown().await;
        self.answer().await
    }

    /// Sends a request without a body and returns the status of its answer; 0 without one.
    pub(crate) async fn status(&mut self, method: &str, path: &str, more: &str) -> u16 {
        let request = format!("{method} {path} HTTP/1.1\r\n{more}\r\n");
        self.send(&request).await.map_or(0, |answer| answer.status)
    }
}
