//! N1: heads and bodies that do not end, or come slowly.

use belljar_net::NetLimits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, sink},
    net::TcpStream,
};

use crate::support::{Proxy, http_server, server, small_limits};

/// More than any queue between a guest and a server takes.
const MUCH: usize = 64 << 20;

fn get(host: &str) -> Vec<u8> {
    format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into()
}

/// Writes the same bytes again and again; how many were taken, and what was answered.
async fn flood(guest: &mut TcpStream, bytes: &[u8]) -> (usize, String) {
    let mut taken = 0;
    while taken < MUCH && guest.write_all(bytes).await.is_ok() {
        taken += bytes.len();
    }
    let mut answer = Vec::new();
    let _ = guest.read_to_end(&mut answer).await;
    (taken, String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn n1_an_endless_head_reaches_nobody() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    let proxy = Proxy::start(std::slice::from_ref(&host)).await;
    let begin = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n");
    for more in [&b"X-More: more\r\n"[..], &[b'x'; 4096]] {
        let mut guest = proxy.connect().await;
        guest.write_all(begin.as_bytes()).await.unwrap();
        let (taken, answer) = flood(&mut guest, more).await;
        assert!(taken < MUCH, "{answer}");
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    assert!(proxy.exchange(&get(&host)).await.contains(" 200 "));
    assert_eq!(proxy.stop().await.resolved, ["example.org"], "only that of the control");
}

#[tokio::test]
async fn n1_an_endless_body_in_chunks_ends_with_the_bytes_of_the_run() {
    let port =
        server(
            |mut stream| async move { tokio::io::copy(&mut stream, &mut sink()).await.map(drop) },
        )
        .await;
    let host = format!("example.org:{port}");
    let proxy = Proxy::start_with(std::slice::from_ref(&host), small_limits(), false).await;
    let mut guest = proxy.connect().await;
    let head = format!(
        "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    guest.write_all(head.as_bytes()).await.unwrap();
    let (taken, answer) = flood(&mut guest, b"5\r\nhello\r\n").await;
    assert!(taken < MUCH, "{answer}");
    let lines = proxy.stop().await.lines();
    assert!(lines.iter().any(|line| line.starts_with("example.org closed 1000 ")), "{lines:?}");
}

#[tokio::test]
async fn n1_a_slow_body_holds_one_place_and_others_go_on() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    let limits = NetLimits { connections: 2, ..small_limits() };
    let proxy = Proxy::start_with(std::slice::from_ref(&host), limits, false).await;
    let mut slow = proxy.connect().await;
    let head = format!(
        "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nx"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..3 {
        assert!(proxy.exchange(&get(&host)).await.contains(" 200 "));
    }
    // It may be slower than a head may be.
    tokio::time::sleep(limits.idle).await;
    slow.write_all(b"y").await.unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains(" 200 ") && answer.ends_with("xy"), "{answer}");
}
