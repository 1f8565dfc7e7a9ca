//! Requests in absolute form.

use belljar_net::NetLimits;

use crate::support::{Proxy, http_server, small_limits};

fn request(target: &str, host: &str, more: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn an_allowed_request_arrives_without_the_headers_of_the_proxy() {
    let port = http_server().await;
    let proxy = Proxy::start(&[format!("www.example.org:{port}")]).await;
    let target = format!("http://WWW.Example.org.:{port}/path?q=1");
    let more = "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nX-Kept: yes\r\n\
                Connection: X-Listed\r\nX-Listed: no\r\n";
    let answer =
        proxy.exchange(request(&target, &format!("www.example.org:{port}"), more).as_bytes()).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let (_, seen) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        seen,
        format!("GET /path?q=1 HTTP/1.1\r\nHost: www.example.org:{port}\r\nX-Kept: yes\r\n\r\n")
    );
    let reports = proxy.stop().await;
    assert_eq!(reports.resolved, ["www.example.org"]);
    assert_eq!(reports.lines()[0], "www.example.org allowed");
    assert!(reports.lines()[1].starts_with("www.example.org closed "), "{:?}", reports.lines());
    assert_eq!(reports.events[1].rule, Some(format!("www.example.org:{port}")));
}

#[tokio::test]
async fn other_hosts_and_ports_are_refused_and_never_resolved() {
    let port = http_server().await;
    let proxy = Proxy::start(&[format!("example.org:{port}"), "*.example.net".to_owned()]).await;
    for host in
        ["evil.net", "www.example.org", "example.net", "127.0.0.1", "[::1]", "example.org.evil.net"]
    {
        let target = format!("http://{host}:{port}/");
        let answer =
            proxy.exchange(request(&target, &format!("{host}:{port}"), "").as_bytes()).await;
        assert_eq!(status(&answer), "403", "{host}: {answer}");
    }
    let answer =
        proxy.exchange(request("http://example.org:1/", "example.org:1", "").as_bytes()).await;
    assert!(answer.contains("example.org:1: no rule allows this port of the host\n"), "{answer}");
    // Control.
    let target = format!("http://example.org:{port}/");
    let answer =
        proxy.exchange(request(&target, &format!("example.org:{port}"), "").as_bytes()).await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert_eq!(proxy.stop().await.resolved, ["example.org"]);
}

#[tokio::test]
async fn requests_that_could_mean_another_host_are_refused() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    let target = format!("http://{host}/");
    let proxy = Proxy::start(std::slice::from_ref(&host)).await;
    let bad = [
        ("another Host", request(&target, "evil.net", "")),
        ("another port in Host", request(&target, "example.org:1", "")),
        ("two Hosts", request(&target, &host, "Host: evil.net\r\n")),
        ("the same Host twice", request(&target, &host, &format!("Host: {host}\r\n"))),
        ("a user", request(&format!("http://evil.net@{host}/"), &host, "")),
        ("a user that looks like a host", request(&format!("http://{host}@evil.net/"), &host, "")),
        ("https in absolute form", request(&format!("https://{host}/"), &host, "")),
        ("another scheme", request(&format!("ftp://{host}/"), &host, "")),
        ("no host", request("/", &host, "")),
        ("a NUL in the name", request("http://example.org\0.evil.net/", &host, "")),
        ("a percent in the name", request(&format!("http://example%2eorg:{port}/"), &host, "")),
        ("an integer", request(&format!("http://2130706433:{port}/"), &host, "")),
        ("hexadecimal", request(&format!("http://0x7f.0.0.1:{port}/"), &host, "")),
        ("octal", request(&format!("http://0177.0.0.1:{port}/"), &host, "")),
        ("an empty port", request("http://example.org:/", "example.org", "")),
        ("two lengths", request(&target, &host, "Content-Length: 3\r\nContent-Length: 4\r\n")),
        (
            "length and chunks",
            request(&target, &host, "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
        ),
        ("an odd encoding", request(&target, &host, "Transfer-Encoding: xchunked\r\n")),
        ("a folded header", request(&target, &host, "X: a\r\n b: c\r\n")),
        ("a space before the colon", request(&target, &host, "Content-Length : 3\r\n")),
        ("a bare line feed in a value", request(&target, &host, "X: a\rY: b\r\n")),
    ];
    for (what, bytes) in &bad {
        let answer = proxy.exchange(bytes.as_bytes()).await;
        let is_refused = ["400", "403", "none"].contains(&status(&answer));
        let is_reframed =
            what.starts_with("length and chunks") && !answer.contains("Content-Length: 3");
        assert!(is_refused || is_reframed, "{what}: {answer}");
    }
    // Control.
    assert_eq!(status(&proxy.exchange(request(&target, &host, "").as_bytes()).await), "200");
}

#[tokio::test]
async fn every_request_of_a_connection_is_checked() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    let proxy = Proxy::start(std::slice::from_ref(&host)).await;
    let first = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let second = request("http://evil.net/", "evil.net", "");
    let answer = proxy.exchange((first + &second).as_bytes()).await;
    let statuses: Vec<_> = answer.lines().filter(|line| line.starts_with("HTTP/1.1")).collect();
    assert_eq!(statuses, ["HTTP/1.1 200 OK", "HTTP/1.1 403 Forbidden"]);
    assert_eq!(proxy.stop().await.resolved, ["example.org"]);
}

#[tokio::test]
async fn a_run_moves_only_so_many_bytes() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    let target = format!("http://{host}/");
    let send = |bytes: usize| {
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n"
        );
        head + &"x".repeat(bytes)
    };
    let patterns = std::slice::from_ref(&host);
    let proxy = Proxy::start_with(patterns, small_limits(), false).await;
    let answer = proxy.exchange(send(300).as_bytes()).await;
    assert!(answer.ends_with(&"x".repeat(300)), "{answer}");
    let answer = proxy.exchange(send(3000).as_bytes()).await;
    assert!(!answer.contains(&"x".repeat(1000)), "{answer}");
    let answer = proxy.exchange(send(3).as_bytes()).await;
    assert!(answer.contains("went over its 1000 bytes (net_bytes) in one direction\n"), "{answer}");
    let lines = proxy.stop().await.lines();
    let moved = |line: &String| {
        let sent = line.strip_prefix("example.org closed ")?.split(' ').next()?;
        sent.parse::<u64>().ok()
    };
    // Not one byte more.
    assert_eq!(lines.iter().filter_map(moved).sum::<u64>(), 1000, "{lines:?}");
}

#[tokio::test]
async fn a6_a_run_makes_only_so_many_connections() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    let limits = NetLimits { total: 4, ..NetLimits::default() };
    let proxy = Proxy::start_with(std::slice::from_ref(&host), limits, false).await;
    let get = |host: &str| request(&format!("http://{host}/"), host, "");
    // Two requests on one connection to two connections of a server that closes them.
    let kept = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let both = proxy.exchange((kept + &get(&host)).as_bytes()).await;
    assert_eq!(both.matches("HTTP/1.1 200").count(), 2, "{both}");
    // One that is refused counts, too.
    assert_eq!(status(&proxy.exchange(get("evil.net").as_bytes()).await), "403");
    assert_eq!(status(&proxy.exchange(get(&host).as_bytes()).await), "200");
    for host in [&host, "evil.net"] {
        let answer = proxy.exchange(get(host).as_bytes()).await;
        assert_eq!(status(&answer), "403", "{answer}");
        assert!(answer.contains("went over its 4 connections (net_connections)\n"), "{answer}");
    }
    assert_eq!(proxy.stop().await.resolved.len(), 3);
}

#[tokio::test]
async fn a_connection_that_cannot_be_recorded_is_not_made() {
    let port = http_server().await;
    let host = format!("example.org:{port}");
    for (log_fails, expected) in [(false, "200"), (true, "403")] {
        let patterns = std::slice::from_ref(&host);
        let proxy = Proxy::start_with(patterns, small_limits(), log_fails).await;
        let answer =
            proxy.exchange(request(&format!("http://{host}/"), &host, "").as_bytes()).await;
        assert_eq!(status(&answer), expected, "{answer}");
        assert_eq!(proxy.stop().await.resolved.is_empty(), log_fails);
    }
}
