//! B4, N1: a proxy that serves, stops and serves again: what is reset, what is refused, what still counts.

use std::{future::Future, io::ErrorKind, sync::Arc};

use belljar_net::{ConnectionOutcome, NetLimits, RunConnections, refuse_all};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::{LocalNames, Log, Setup, echo_server, local_rules, small_limits};

/// A proxy, its log and its listener, and a server that it leads to.
struct ProxiedServer {
    proxy: RunConnections,
    log: Arc<Log>,
    listener: TcpListener,
    server: u16,
}

impl ProxiedServer {
    async fn new(limits: NetLimits) -> Self {
        let server = echo_server().await;
        let setup = Setup { limits, ..Setup::of(local_rules(&[format!("127.0.0.1:{server}")])) };
        let log = Log::of(&setup);
        let proxy =
            RunConnections::new(setup.context(Arc::new(LocalNames::default()), log.clone()));
        Self { proxy, log, listener: TcpListener::bind("127.0.0.1:0").await.unwrap(), server }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.listener.local_addr().unwrap()).await.unwrap()
    }

    /// A tunnel to the server; `None` if the proxy ends the connection instead.
    async fn tunnel(&self) -> Option<TcpStream> {
        let mut guest = self.connect().await;
        let request =
            format!("CONNECT 127.0.0.1:{0} HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\n\r\n", self.server);
        guest.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if guest.read_buf(&mut answer).await.ok()? == 0 {
                return None;
            }
        }
        answer.starts_with(b"HTTP/1.1 200").then_some(guest)
    }

    /// Serves until this has happened.
    async fn serve<T>(&self, during: impl Future<Output = T>) -> T {
        let mut found = None;
        self.proxy.serve(&self.listener, async { found = Some(during.await) }).await.unwrap();
        found.unwrap()
    }
}

/// Sends and receives one text.
async fn echo(guest: &mut TcpStream, text: &str) -> std::io::Result<String> {
    guest.write_all(text.as_bytes()).await?;
    let mut received = vec![0; text.len()];
    guest.read_exact(&mut received).await?;
    Ok(String::from_utf8_lossy(&received).into_owned())
}

async fn end_of(guest: &mut TcpStream) -> Option<ErrorKind> {
    guest.read(&mut [0]).await.err().map(|error| error.kind())
}

#[tokio::test]
async fn b4_a_stop_resets_connections_and_records_them() {
    let paused = ProxiedServer::new(NetLimits::default()).await;
    let mut guest = paused
        .serve(async {
            let mut guest = paused.tunnel().await.unwrap();
            assert_eq!(echo(&mut guest, "one").await.unwrap(), "one");
            guest
        })
        .await;
    // A mere end would look like the end of an answer.
    assert_eq!(end_of(&mut guest).await, Some(ErrorKind::ConnectionReset));
    let outcomes: Vec<_> = paused.log.events().into_iter().map(|event| event.outcome).collect();
    let [ConnectionOutcome::Allowed, ConnectionOutcome::Closed { sent: 3, received: 3, .. }] =
        outcomes.as_slice()
    else {
        panic!("{outcomes:?}")
    };
    // Control: it serves again.
    let again = paused.serve(async { echo(&mut paused.tunnel().await.unwrap(), "two").await });
    assert_eq!(again.await.unwrap(), "two");
}

#[tokio::test]
async fn b4_while_refused_no_connection_lasts() {
    let paused = ProxiedServer::new(NetLimits::default()).await;
    // One that waits already, one that comes, and one that nobody has accepted when the time is over.
    let mut early = paused.connect().await;
    let mut last = None;
    let until = async {
        assert_eq!(end_of(&mut early).await, Some(ErrorKind::ConnectionReset));
        assert_eq!(end_of(&mut paused.connect().await).await, Some(ErrorKind::ConnectionReset));
        last = Some(paused.connect().await);
    };
    refuse_all(&paused.listener, until).await.unwrap();
    assert_eq!(end_of(&mut last.unwrap()).await, Some(ErrorKind::ConnectionReset));
    assert_eq!(paused.log.events().len(), 0);
    // Control: later ones are served.
    assert!(paused.serve(paused.tunnel()).await.is_some());
}

#[tokio::test]
async fn n1_bytes_count_over_pauses() {
    let paused = ProxiedServer::new(small_limits()).await;
    let send = |bytes: usize| {
        let paused = &paused;
        paused.serve(async move {
            let mut guest = paused.tunnel().await?;
            echo(&mut guest, &"x".repeat(bytes)).await.ok()
        })
    };
    assert_eq!(send(900).await.map(|text| text.len()), Some(900));
    refuse_all(&paused.listener, async {}).await.unwrap();
    assert_eq!(send(900).await, None, "900 of 1000 bytes are used up");
}

#[tokio::test]
async fn n1_places_come_back_with_a_pause() {
    let paused = ProxiedServer::new(NetLimits { connections: 1, ..NetLimits::default() }).await;
    let _held = paused.serve(paused.tunnel()).await.unwrap();
    // The guest still has its end; the place is free.
    assert!(paused.serve(paused.tunnel()).await.is_some());
}
