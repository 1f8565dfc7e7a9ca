//! Requests that the host makes for code share the bounds of the run with its programs, and are recorded as
//! theirs are.

use std::time::Duration;

use belljar_net::{FetchFailure, NetLimits, OutgoingRequest, RequestContent};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use crate::support::{Proxy, http_server, server, small_limits};

fn get(url: &str) -> OutgoingRequest {
    OutgoingRequest {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        content: RequestContent::None,
        timeout: None,
    }
}

/// The whole answer of a fetch.
async fn whole(
    proxy: &Proxy,
    number: u32,
    request: OutgoingRequest,
) -> Result<String, FetchFailure> {
    proxy.fetches.begin(number, request).await?;
    let mut body = Vec::new();
    loop {
        let piece = proxy.fetches.read(number).await?;
        if piece.is_empty() {
            return Ok(String::from_utf8_lossy(&body).into_owned());
        }
        body.extend_from_slice(&piece);
    }
}

/// A server that sends without an end.
async fn endless_server() -> u16 {
    server(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        loop {
            stream.write_all(&[b'x'; 4096]).await?;
        }
    })
    .await
}

#[tokio::test]
async fn n3_a_fetch_is_decided_about_and_recorded_like_a_request_of_a_program() {
    let port = http_server().await;
    let proxy = Proxy::start(&[format!("a.example:{port}")]).await;
    let answer = whole(&proxy, 1, get(&format!("http://a.example:{port}/x?y#z"))).await.unwrap();
    assert!(answer.starts_with("GET /x?y HTTP/1.1\r\n"), "{answer}");
    assert!(answer.contains(&format!("host: a.example:{port}\r\n")), "{answer}");
    for (number, url) in (2..).zip([
        format!("http://b.example:{port}/"),
        "http://a.example:1/".to_owned(),
        format!("http://0x7f.1:{port}/"),
    ]) {
        let failure = whole(&proxy, number, get(&url)).await.unwrap_err();
        assert!(matches!(failure, FetchFailure::Refused { .. }), "{url}: {failure:?}");
    }
    for url in [
        format!("ftp://a.example:{port}/"),
        format!("http://u@a.example:{port}/"),
        "/x".to_owned(),
        format!("http://a.example:{port}/ x"),
    ] {
        let failure = whole(&proxy, 9, get(&url)).await.unwrap_err();
        assert!(matches!(failure, FetchFailure::Malformed(_)), "{url}: {failure:?}");
    }
    let reports = proxy.stop().await;
    assert_eq!(reports.resolved, ["a.example"]);
    let fetches: Vec<_> = reports.events.iter().map(|event| event.fetch).collect();
    assert_eq!(fetches, [Some(1), Some(1), Some(2), Some(3), Some(4)]);
    let lines = reports.lines();
    assert_eq!(lines[0], "a.example allowed");
    assert!(lines[1].starts_with("a.example closed"), "{lines:?}");
}

#[tokio::test]
async fn n5_fetches_and_programs_share_the_places_of_a_run() {
    let (endless, port) = (endless_server().await, http_server().await);
    let limits =
        NetLimits { connections: 3, connect: Duration::from_millis(200), ..NetLimits::default() };
    let hosts = [format!("a.example:{endless}"), format!("a.example:{port}")];
    let proxy = Proxy::start_with(&hosts, limits, false).await;
    let program = proxy.connect().await;
    let at = format!("http://a.example:{endless}/");
    // One place is the program's, one waits for the next connection of a program.
    proxy.fetches.begin(1, get(&at)).await.unwrap();
    let full = whole(&proxy, 2, get(&format!("http://a.example:{port}/"))).await.unwrap_err();
    assert!(
        matches!(&full, FetchFailure::Refused { message, .. } if message.contains("maximum of open connections")),
        "{full:?}"
    );
    proxy.fetches.cancel(1).await;
    drop(program);
    assert!(whole(&proxy, 3, get(&format!("http://a.example:{port}/"))).await.is_ok());
    proxy.stop().await;
}

#[tokio::test]
async fn n5_the_bytes_of_fetches_are_those_of_the_run() {
    let endless = endless_server().await;
    let proxy = Proxy::start_with(&[format!("a.example:{endless}")], small_limits(), false).await;
    let at = format!("http://a.example:{endless}/");
    // The one that uses them up ends as soon as either end of it learns of that.
    whole(&proxy, 1, get(&at)).await.unwrap_err();
    let failure = whole(&proxy, 2, get(&at)).await.unwrap_err();
    assert!(
        matches!(&failure, FetchFailure::Refused { message, .. } if message.contains("(net_bytes)")),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_body_of_another_size_than_it_said_is_not_a_request() {
    let port = http_server().await;
    let proxy = Proxy::start(&[format!("a.example:{port}")]).await;
    let post = |length| OutgoingRequest {
        method: "POST".to_owned(),
        content: RequestContent::Pieces { length: Some(length) },
        ..get(&format!("http://a.example:{port}/"))
    };
    for (number, length, is_answered) in [(1, 6, true), (2, 5, false), (3, 7, false)] {
        let answering = proxy.fetches.begin(number, post(length));
        let sending = async {
            let _ = proxy.fetches.send(number, Bytes::from_static(b"abc"), false).await;
            proxy.fetches.send(number, Bytes::from_static(b"def"), true).await
        };
        let (answered, _) = tokio::join!(answering, sending);
        assert_eq!(answered.is_ok(), is_answered, "{length}: {answered:?}");
        proxy.fetches.cancel(number).await;
    }
}

#[tokio::test]
async fn a_fetch_ends_when_it_is_cancelled_or_late() {
    let endless = endless_server().await;
    let proxy = Proxy::start(&[format!("a.example:{endless}")]).await;
    let at = format!("http://a.example:{endless}/");
    let late = OutgoingRequest { timeout: Some(Duration::from_millis(100)), ..get(&at) };
    assert!(matches!(whole(&proxy, 1, late).await, Err(FetchFailure::TimedOut)));
    proxy.fetches.begin(2, get(&at)).await.unwrap();
    assert!(!proxy.fetches.read(2).await.unwrap().is_empty());
    proxy.fetches.cancel(2).await;
    assert!(proxy.fetches.read(2).await.unwrap().is_empty());
    let reports = proxy.stop().await;
    let closed = reports.lines().iter().filter(|line| line.contains("closed")).count();
    assert_eq!(closed, 2, "{:?}", reports.lines());
}
