//! Refusals in a tunnel whose requests are seen. Each attempt has a control that gets through.

use rustls::pki_types::ServerName;

use crate::site::{Guest, Site, TlsGuest, Way, allow, rule, tls_client, tls_guest, tunnel};

const HOST: &str = "api.example.org";

struct Place {
    site: Site,
    proxy: crate::support::Proxy,
    authority: std::sync::Arc<belljar_net::RunAuthority>,
}

impl Place {
    /// All methods of one part of a host.
    async fn new() -> Self {
        let site = Site::https(HOST).await;
        let rules = allow([rule(&format!("{HOST}:{}", site.port), &[], &["/api/**"])]);
        let (proxy, authority) = site.proxy(rules).await;
        Self { site, proxy, authority }
    }

    async fn guest(&self) -> TlsGuest {
        tls_guest(&self.proxy, &self.authority, Way::Connect, (HOST, self.site.port)).await
    }

    /// The first lines of the requests that the server has received.
    fn lines(&self) -> Vec<String> {
        let requests = self.site.received().requests;
        requests.iter().map(|request| request.lines().next().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn ambiguous_paths_are_refused() {
    let place = Place::new().await;
    for path in [
        "/api/../admin",
        "/api/..",
        "/api/./1",
        "/api/%2e%2e/admin",
        "/api/.%2E/admin",
        "/api/..;/admin",
        "/api//admin",
        "//api/1",
        "/api/%2fadmin",
        "/api/%5cadmin",
        "/api/a%00b",
        "/api/%252e%252e/admin",
        "/api/%zz",
        "/api/%2",
        "/api/\\..\\admin",
        "/admin",
        "*",
    ] {
        let status = place.guest().await.status("GET", path, "").await;
        assert!([400, 403].contains(&status), "{path}: {status}");
    }
    assert_eq!(place.lines(), Vec::<String>::new());
    // Controls.
    for path in ["/api/1", "/api/a.b/..c", "/api/%41%20b", "/api/1?to=/../admin//x", "/api/"] {
        assert_eq!(place.guest().await.status("GET", path, "").await, 200, "{path}");
    }
}

#[tokio::test]
async fn methods_and_headers_that_go_around_the_rules_are_refused() {
    let place = Place::new().await;
    let target = format!("{HOST}:{}", place.site.port);
    for (method, path, more) in [
        ("TRACE", "/api/1", ""),
        ("CONNECT", target.as_str(), ""),
        ("CONNECT", "evil.net:443", ""),
        ("GET", format!("https://{target}/api/1").as_str(), ""),
        ("GET", "https://evil.net/api/1", ""),
        ("GET", "/api/1", "Upgrade: websocket\r\nConnection: Upgrade\r\n"),
        ("GET", "/api/1", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"),
        ("GET", "/api/1", "X-HTTP-Method-Override: DELETE\r\n"),
        ("GET", "/api/1", "X-Method-Override: DELETE\r\n"),
        ("GET", "/api/1", "X-Original-URL: /admin\r\n"),
        ("GET", "/api/1", "X-Rewrite-URL: /admin\r\n"),
        ("GET", "/api/1", "Host: evil.net\r\n"),
        ("GET", "/api/1", "Host: api.example.org:1\r\n"),
        ("GET", "/api/1", "Host: x@api.example.org\r\n"),
        ("GET", "/api/1", "Host: api.example.org\r\nHost: api.example.org\r\n"),
        ("GET", "/api/1", "Host:\r\n"),
    ] {
        let status = place.guest().await.status(method, path, more).await;
        assert!([0, 400, 403].contains(&status), "{method} {path} {more}: {status}");
    }
    assert_eq!(place.lines(), Vec::<String>::new());
    // Controls.
    for more in ["", &format!("Host: {target}\r\n"), "Host: API.example.org.\r\n", "X-Other: 1\r\n"]
    {
        assert_eq!(place.guest().await.status("GET", "/api/1", more).await, 200, "{more}");
    }
    assert_eq!(place.guest().await.status("PATCH", "/api/1", "").await, 200);
    let hosts = place.site.received().requests.join("");
    assert_eq!(hosts.to_ascii_lowercase().matches(&format!("host: {target}\r\n")).count(), 5);
}

#[tokio::test]
async fn a_server_that_changes_the_protocol_gets_no_further() {
    let place = Place::new().await;
    let answer = place.guest().await.send("GET /api/switch HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(answer.status, 502, "{answer:?}");
    // Control.
    assert_eq!(place.guest().await.status("GET", "/api/1", "").await, 200);
}

/// Heads of requests that allow two readings, after the first line.
fn smuggling_attempts() -> Vec<(&'static str, String)> {
    let hidden = "GET /admin HTTP/1.1\r\nHost: api.example.org\r\n\r\n";
    let length = hidden.len();
    let chunked = format!("{length:x}\r\n{hidden}\r\n0\r\n\r\n");
    vec![
        ("two lengths", format!("Content-Length: {length}\r\nContent-Length: 0\r\n\r\n{hidden}")),
        ("a list of lengths", format!("Content-Length: 0, {length}\r\n\r\n{hidden}")),
        (
            "length and chunks",
            format!("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
        ),
        (
            "chunks and length",
            format!("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{chunked}"),
        ),
        ("an odd encoding", format!("Transfer-Encoding: xchunked\r\n\r\n{chunked}")),
        ("chunks before another", format!("Transfer-Encoding: chunked, identity\r\n\r\n{chunked}")),
        (
            "two encodings",
            format!("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{chunked}"),
        ),
        ("a space before the colon", format!("Content-Length : {length}\r\n\r\n{hidden}")),
        ("a folded header", format!("X: 1\r\n Content-Length: {length}\r\n\r\n{hidden}")),
        ("a bare carriage return", format!("X: 1\rContent-Length: {length}\r\n\r\n{hidden}")),
        ("a signed length", format!("Content-Length: +{length}\r\n\r\n{hidden}")),
        ("a vertical tab", format!("Transfer-Encoding: \x0bchunked\r\n\r\n{chunked}")),
        ("a NUL", format!("X: \0\r\nContent-Length: {length}\r\n\r\n{hidden}")),
        ("a body of GET", format!("Content-Length: {length}\r\n\r\n{hidden}")),
        ("behind the end", format!("\r\n{hidden}")),
        ("behind the last chunk", format!("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}")),
        (
            "in a chunk extension",
            format!("Transfer-Encoding: chunked\r\n\r\n1;\n{hidden}\r\nx\r\n0\r\n\r\n"),
        ),
        (
            "in a trailer",
            format!("Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: 1\r\n\r\n{hidden}"),
        ),
        (
            "after a switch",
            format!("Connection: Content-Length\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        ),
    ]
}

#[tokio::test]
async fn no_request_is_smuggled_in_another() {
    for (what, rest) in smuggling_attempts() {
        let place = Place::new().await;
        let mut guest = place.guest().await;
        let mut answers = Vec::new();
        let mut answer = guest.send(&format!("POST /api/1 HTTP/1.1\r\n{rest}")).await;
        while let Some(one) = answer {
            answers.push(one.status);
            answer = if one.status == 200 { guest.send_last("").await } else { None };
        }
        // Whatever the proxy made of it: the server has no request that was not decided about.
        let lines = place.lines();
        assert!(lines.is_empty() || lines == ["POST /api/1 HTTP/1.1"], "{what}: {lines:?}");
        assert!(!answers.is_empty() || lines.is_empty(), "{what}");
    }
    // Control: two requests at once that are both allowed.
    let place = Place::new().await;
    let both = "POST /api/1 HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /api/2 HTTP/1.1\r\n\r\n";
    let mut guest = place.guest().await;
    assert_eq!(guest.send(both).await.unwrap().status, 200);
    assert_eq!(guest.answer().await.unwrap().status, 200);
    assert_eq!(place.lines(), ["POST /api/1 HTTP/1.1", "GET /api/2 HTTP/1.1"]);
}

/// Tries to speak TLS with a name and protocols, and returns the protocol.
async fn handshake(
    place: &Place,
    name: &str,
    protocols: &[&str],
) -> Result<Option<String>, String> {
    let stream = tunnel(&place.proxy, Way::Connect, HOST, place.site.port).await;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connected = tls_client(&place.authority, protocols).connect(name, stream).await;
    let stream = connected.map_err(|error| error.to_string())?;
    let protocol = stream.get_ref().1.alpn_protocol();
    Ok(protocol.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

#[tokio::test]
async fn the_tls_name_has_to_be_the_one_that_was_allowed() {
    let place = Place::new().await;
    for name in ["evil.net", "www.api.example.org", "example.org", "127.0.0.1"] {
        assert!(handshake(&place, name, &[]).await.is_err(), "{name}");
    }
    // Control.
    assert_eq!(handshake(&place, HOST, &[]).await, Ok(None));
    let reports = place.proxy.stop().await;
    let refused: Vec<_> =
        reports.lines().into_iter().filter(|line| line.contains("refused")).collect();
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert!(refused[0].contains("its TLS server name names evil.net"), "{refused:?}");
    assert!(refused[3].contains("shows no server name"), "{refused:?}");
}

#[tokio::test]
async fn only_http_1_1_is_spoken() {
    let place = Place::new().await;
    assert!(handshake(&place, HOST, &["h2"]).await.is_err());
    // Controls.
    let protocol = Ok(Some("http/1.1".to_owned()));
    assert_eq!(handshake(&place, HOST, &["h2", "http/1.1"]).await, protocol);
    assert_eq!(handshake(&place, HOST, &["http/1.1"]).await, protocol);
}

#[tokio::test]
async fn what_is_neither_tls_nor_http_gets_no_answer() {
    let place = Place::new().await;
    for bytes in [
        "\x16\x03\x01\x01\x01junk",
        "\0\0\0\0",
        "SSH-2.0-x\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let stream = tunnel(&place.proxy, Way::Connect, HOST, place.site.port).await;
        let mut guest = Guest::new(stream);
        let answer = guest.send_last(bytes).await;
        assert!(answer.is_none_or(|answer| [400, 403, 505].contains(&answer.status)), "{bytes:?}");
    }
    assert_eq!(place.site.received().connections, 0);
    // Control.
    assert_eq!(place.guest().await.status("GET", "/api/1", "").await, 200);
}
