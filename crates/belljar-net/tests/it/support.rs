//! Servers, a resolver, a log, and a proxy in between.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use belljar_net::{
    ConnectionApprover, ConnectionEvent, ConnectionLog, ConnectionOutcome, DomainName, FetchClient,
    ForbiddenPorts, HostPattern, LogFailure, NetLimits, NetPolicy, NetRule, NetRules, NoApprover,
    NoForbiddenPorts, ProxyContext, Resolver, RunAuthority, RunConnections, TlsClient,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// Every name leads to this machine; the names are remembered.
#[derive(Debug, Default)]
pub(crate) struct LocalNames {
    resolved: Mutex<Vec<String>>,
}

impl Resolver for LocalNames {
    fn resolve<'a>(
        &'a self,
        name: &'a DomainName,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        self.resolved.lock().unwrap().push(name.to_string());
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    events: Mutex<Vec<ConnectionEvent>>,
    fails: bool,
}

impl ConnectionLog for Log {
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>> {
        self.events.lock().unwrap().push(event.clone());
        let fails = self.fails;
        Box::pin(async move { if fails { Err(LogFailure("full".to_owned())) } else { Ok(()) } })
    }
}

/// A proxy on loopback.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// Makes requests within the same bounds.
    pub(crate) fetches: Arc<FetchClient>,
    names: Arc<LocalNames>,
    log: Arc<Log>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<()>>,
}

/// The settings of a proxy.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) rules: NetRules,
    pub(crate) limits: NetLimits,
    pub(crate) approver: Arc<dyn ConnectionApprover>,
    pub(crate) tls: Arc<TlsClient>,
    pub(crate) authority: Option<Arc<RunAuthority>>,
    pub(crate) ports: Arc<dyn ForbiddenPorts>,
    pub(crate) log_fails: bool,
}

impl Setup {
    /// Everything that the rules name is granted.
    pub(crate) fn of(rules: NetRules) -> Self {
        Self {
            rules,
            limits: NetLimits::default(),
            approver: Arc::new(NoApprover),
            tls: TlsClient::of_machine(),
            authority: None,
            ports: Arc::new(NoForbiddenPorts),
            log_fails: false,
        }
    }
}

impl Setup {
    /// The context of its connections.
    pub(crate) fn context(self, resolver: Arc<LocalNames>, log: Arc<Log>) -> ProxyContext {
        let Self { rules, limits, approver, tls, authority, ports, .. } = self;
        let policy = NetPolicy::new(rules.patterns().cloned().collect(), Arc::new(rules));
        ProxyContext { policy, limits, resolver, log, approver, tls, authority, ports }
    }
}

impl Log {
    pub(crate) fn of(setup: &Setup) -> Arc<Self> {
        Arc::new(Self { fails: setup.log_fails, ..Self::default() })
    }

    pub(crate) fn events(&self) -> Vec<ConnectionEvent> {
        self.events.lock().unwrap().clone()
    }
}

/// The reports of a proxy and the names it resolved.
pub(crate) struct Reports {
    pub(crate) events: Vec<ConnectionEvent>,
    pub(crate) resolved: Vec<String>,
}

impl Proxy {
    /// A proxy whose rules may lead to this machine.
    pub(crate) async fn start(patterns: &[String]) -> Self {
        Self::start_with(patterns, NetLimits::default(), false).await
    }

    pub(crate) async fn start_with(
        patterns: &[String],
        limits: NetLimits,
        log_fails: bool,
    ) -> Self {
        Self::start_setup(Setup { limits, log_fails, ..Setup::of(local_rules(patterns)) }).await
    }

    pub(crate) async fn start_setup(setup: Setup) -> Self {
        let (names, log) = (Arc::new(LocalNames::default()), Log::of(&setup));
        let context = setup.context(names.clone(), log.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let connections = RunConnections::new(context);
        let fetches = Arc::new(FetchClient::new(&connections));
        let serving = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            connections.serve(&listener, stopped).await
        });
        Self { address, fetches, names, log, stop, serving }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes on a connection of its own and returns the answer to its end.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut guest = self.connect().await;
        guest.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = guest.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Ends the proxy; then everything is recorded.
    pub(crate) async fn stop(self) -> Reports {
        let _ = self.stop.send(());
        self.fetches.close().await;
        self.serving.await.unwrap().unwrap();
        let events = self.log.events();
        let resolved = self.names.resolved.lock().unwrap().clone();
        Reports { events, resolved }
    }
}

impl Reports {
    /// Destination and outcome of every event.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |event: &ConnectionEvent| {
            let outcome = match &event.outcome {
                ConnectionOutcome::Allowed => "allowed".to_owned(),
                ConnectionOutcome::Refused(refusal) => format!("refused: {refusal}"),
                ConnectionOutcome::Failed { .. } => "failed".to_owned(),
                ConnectionOutcome::Closed { sent, received, .. } => {
                    format!("closed {sent} {received}")
                }
            };
            format!("{} {outcome}", event.destination.host)
        };
        self.events.iter().map(line).collect()
    }
}

/// Rules that may lead to this machine.
pub(crate) fn local_rules(patterns: &[String]) -> NetRules {
    let granted: Vec<HostPattern> = patterns.iter().map(|text| text.parse().unwrap()).collect();
    let private = |pattern| NetRule { private: true, ..NetRule::of_host(pattern) };
    let allow = granted.into_iter().map(private).collect();
    NetRules { allow, ..NetRules::default() }
}

/// An HTTP server that answers every request with what it got, and closes.
pub(crate) async fn http_server() -> u16 {
    server(|mut stream| async move {
        let mut request = Vec::new();
        while !ends_request(&request) {
            if stream.read_buf(&mut request).await? == 0 {
                break;
            }
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            request.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&request).await
    })
    .await
}

fn ends_request(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
    });
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// A server that sends back what it gets.
pub(crate) async fn echo_server() -> u16 {
    server(|mut stream| async move {
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.map(drop)
    })
    .await
}

pub(crate) async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

/// The first message of a TLS client.
pub(crate) fn client_hello(name: Option<&str>) -> Vec<u8> {
    fn sized(bytes: Vec<u8>, length_bytes: usize) -> Vec<u8> {
        let length = (bytes.len() as u32).to_be_bytes();
        [&length[4 - length_bytes..], &bytes].concat()
    }
    let server_name = name.map(|name| {
        let entry = [vec![0], sized(name.into(), 2)].concat();
        [vec![0, 0], sized(sized(entry, 2), 2)].concat()
    });
    let extensions = [server_name.unwrap_or_default(), vec![0, 43, 0, 0]].concat();
    let body =
        [vec![3, 3], vec![7; 32], vec![0], vec![0, 2, 0x13, 1], vec![1, 0], sized(extensions, 2)]
            .concat();
    let message = [vec![1], sized(body, 3)].concat();
    [vec![22, 3, 1], sized(message, 2)].concat()
}

/// Bounds that are small enough for a test to reach them.
pub(crate) fn small_limits() -> NetLimits {
    let (head, idle) = (Duration::from_millis(200), Duration::from_millis(600));
    NetLimits { bytes: 1000, head, idle, ..NetLimits::default() }
}
