//! When a cell's connections last, when they are reset, and when a run may begin. Connections here are those of
//! a guest that says nothing: the proxy waits for its first bytes.

use std::{io::ErrorKind, net::SocketAddr, pin::pin, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use belljar_contract::{Audience, Limits};
use belljar_net::NoApprover;

use super::{CellNetwork, NetworkTurn};
use crate::{cell::CellSockets, network::RunLog, socket_list::tests::list};

/// The network of a cell that may reach nothing, and where its guests connect.
fn cell() -> (Arc<CellNetwork>, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sockets = CellSockets { listener: listener.into(), list: list() };
    (CellNetwork::start(sockets, Arc::default()).unwrap(), address)
}

async fn begin(network: &Arc<CellNetwork>, name: &str) -> NetworkTurn {
    let (log, _) = RunLog::new(None, Audience::Client);
    network.begin_run(name.into(), Limits::default(), Arc::new(log), Arc::new(NoApprover)).await
}

/// A connection that the proxy serves: it has answered on another one, which came later.
async fn connect(address: SocketAddr) -> TcpStream {
    let connection = TcpStream::connect(address).await.unwrap();
    assert!(is_served(&mut TcpStream::connect(address).await.unwrap()).await);
    connection
}

/// Whether a connection lasts: then the proxy answers to a request that it refuses.
async fn is_served(connection: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    let asked = connection.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
    asked.is_ok()
        && connection.read_to_end(&mut answer).await.is_ok()
        && answer.starts_with(b"HTTP/1.1 400")
}

async fn end_of(connection: &mut TcpStream) -> Option<ErrorKind> {
    connection.read(&mut [0]).await.err().map(|error| error.kind())
}

const RESET: Option<ErrorKind> = Some(ErrorKind::ConnectionReset);

#[tokio::test]
async fn b1_connections_last_until_no_run_is_under_way() {
    let (network, address) = cell();
    // Before the first run there is nothing.
    assert_eq!(end_of(&mut TcpStream::connect(address).await.unwrap()).await, RESET);
    let first = begin(&network, "run_1").await;
    let mut connection = connect(address).await;
    let second = begin(&network, "run_2").await;
    first.end().await;
    assert!(is_served(&mut connection).await);
    let mut connection = connect(address).await;
    second.end().await;
    assert_eq!(end_of(&mut connection).await, RESET);
    assert_eq!(end_of(&mut TcpStream::connect(address).await.unwrap()).await, RESET);
    // A run whose caller goes away ends, too.
    let third = begin(&network, "run_3").await;
    let mut connection = connect(address).await;
    drop(third);
    assert_eq!(end_of(&mut connection).await, RESET);
}

/// Without a moment in between that the proxy could see, the connections of the first run are reset.
#[tokio::test]
async fn b1_a_run_that_follows_at_once_has_none_of_the_connections_before() {
    let (network, address) = cell();
    let first = begin(&network, "run_1").await;
    let mut connection = connect(address).await;
    drop(first);
    let _second = begin(&network, "run_2").await;
    assert_eq!(end_of(&mut connection).await, RESET);
    assert!(is_served(&mut connect(address).await).await);
}

#[tokio::test]
async fn b4_a_branch_resets_all_connections_and_runs_begin_after_it() {
    let (network, address) = cell();
    let _first = begin(&network, "run_1").await;
    let mut connection = connect(address).await;
    let closed = network.close().await;
    assert_eq!(end_of(&mut connection).await, RESET);
    assert_eq!(end_of(&mut TcpStream::connect(address).await.unwrap()).await, RESET);
    // Two guests can be branched one after the other; the last one opens the network.
    let also_closed = network.close().await;
    drop(closed);
    let mut beginning = pin!(begin(&network, "run_2"));
    // The proxy goes on to refuse, and then the run has not begun.
    tokio::select! {
        biased;
        _ = beginning.as_mut() => panic!("a run has begun"),
        end = async { end_of(&mut TcpStream::connect(address).await.unwrap()).await } => {
            assert_eq!(end, RESET);
        }
    }
    drop(also_closed);
    let _second = beginning.await;
    assert!(is_served(&mut connect(address).await).await);
}

#[tokio::test]
async fn b4_the_end_of_a_cell_closes_its_listener() {
    let (network, address) = cell();
    let run = begin(&network, "run_1").await;
    let mut connection = connect(address).await;
    drop((network, run));
    assert!(end_of(&mut connection).await == RESET || connection.read(&mut [0]).await.is_ok());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
