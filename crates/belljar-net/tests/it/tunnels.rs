//! Tunnels, by `CONNECT` and by SOCKS5.

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Proxy, client_hello, echo_server, small_limits};

/// Opens a tunnel, sends bytes through it, ends that direction, and returns what came back.
async fn through_connect(proxy: &Proxy, target: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut guest = proxy.connect().await;
    let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    guest.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if guest.read_buf(&mut answer).await.unwrap_or(0) == 0 {
            break;
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if !answer.starts_with("HTTP/1.1 200") {
        return Err(answer);
    }
    let _ = guest.write_all(bytes).await;
    let _ = guest.shutdown().await;
    let mut back = Vec::new();
    let _ = guest.read_to_end(&mut back).await;
    Ok(back)
}

/// The same by SOCKS5, with the address part of the request.
async fn through_socks(
    proxy: &Proxy,
    command: u8,
    address: &[u8],
    port: u16,
    bytes: &[u8],
) -> Result<Vec<u8>, u8> {
    let mut guest = proxy.connect().await;
    let request = [&[5, 1, 0, 5, command, 0], address, &port.to_be_bytes()].concat();
    guest.write_all(&request).await.unwrap();
    let mut answer = [0xff; 12];
    let _ = guest.read_exact(&mut answer).await;
    if answer[3] != 0 {
        return Err(answer[3]);
    }
    let _ = guest.write_all(bytes).await;
    let _ = guest.shutdown().await;
    let mut back = Vec::new();
    let _ = guest.read_to_end(&mut back).await;
    Ok(back)
}

fn name(text: &str) -> Vec<u8> {
    [&[3, text.len() as u8], text.as_bytes()].concat()
}

#[tokio::test]
async fn a_tunnel_to_a_named_port_carries_anything() {
    let port = echo_server().await;
    let proxy = Proxy::start(&[format!("db.example.org:{port}")]).await;
    let target = format!("db.example.org:{port}");
    assert_eq!(through_connect(&proxy, &target, b"\x00hello").await, Ok(b"\x00hello".to_vec()));
    let hello = client_hello(Some("db.example.org"));
    assert_eq!(through_connect(&proxy, &target, &hello).await, Ok(hello));
    let address = name("db.example.org");
    assert_eq!(through_socks(&proxy, 1, &address, port, b"hello").await, Ok(b"hello".to_vec()));
    let reports = proxy.stop().await;
    assert_eq!(reports.lines()[..2], ["db.example.org allowed", "db.example.org closed 6 6"]);
}

#[tokio::test]
async fn a_tls_tunnel_shows_the_name_that_was_allowed() {
    let port = echo_server().await;
    let proxy = Proxy::start(&[format!("*.example.org:{port}"), format!("127.0.0.1:{port}")]).await;
    let target = format!("a.example.org:{port}");
    let refused = [
        ("another name", client_hello(Some("evil.net"))),
        ("another allowed name", client_hello(Some("b.example.org"))),
        ("a name with a NUL", client_hello(Some("a.example.org\0.evil.net"))),
        ("no name", client_hello(None)),
        ("a broken message", vec![22, 3, 1, 0, 4, 2, 0, 0, 0]),
        ("half a message", client_hello(Some("a.example.org"))[..40].to_vec()),
    ];
    for (what, bytes) in &refused {
        assert_eq!(through_connect(&proxy, &target, bytes).await, Ok(Vec::new()), "{what}");
        let back = through_socks(&proxy, 1, &name("a.example.org"), port, bytes).await;
        assert_eq!(back, Ok(Vec::new()), "{what}");
    }
    // Controls.
    let hello = client_hello(Some("A.example.org"));
    assert_eq!(through_connect(&proxy, &target, &hello).await.as_ref(), Ok(&hello));
    let hello = client_hello(None);
    assert_eq!(
        through_connect(&proxy, &format!("127.0.0.1:{port}"), &hello).await.as_ref(),
        Ok(&hello)
    );
    let lines = proxy.stop().await.lines();
    assert!(
        lines.contains(&"a.example.org refused: the TLS tunnel shows no server name".to_owned()),
        "{lines:?}"
    );
}

#[tokio::test]
async fn n3_a_request_in_a_plain_tunnel_is_for_the_host_that_was_allowed() {
    let port = echo_server().await;
    let proxy =
        Proxy::start(&[format!("a.example.org:{port}"), format!("b.example.org:{port}")]).await;
    let target = format!("a.example.org:{port}");
    let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    let blank = |request: Vec<u8>| [&b"\r\n"[..], &request].concat();
    let long = [b"GET / HTTP/1.1\r\n", vec![b'x'; 80 << 10].as_slice()].concat();
    let refused = [
        ("another name", request("evil.net")),
        ("another allowed name", request("b.example.org")),
        ("another port", request("a.example.org:1")),
        ("half a head", request("evil.net")[..26].to_vec()),
        ("absolute form", format!("GET http://b.example.org:{port}/ HTTP/1.1\r\n\r\n").into()),
        ("a long head", long),
    ];
    for (what, bytes) in &refused {
        assert_eq!(through_connect(&proxy, &target, bytes).await, Ok(Vec::new()), "{what}");
        let back = through_socks(&proxy, 1, &name("a.example.org"), port, bytes).await;
        assert_eq!(back, Ok(Vec::new()), "{what}");
    }
    // Only the empty line may arrive.
    let back = through_connect(&proxy, &target, &blank(request("evil.net"))).await.unwrap();
    assert!(back.is_empty() || back == b"\r\n", "{back:?}");
    // Controls.
    for bytes in
        [request("A.example.org"), request(&target), blank(request(&target)), b"PING\r\n".to_vec()]
    {
        assert_eq!(through_connect(&proxy, &target, &bytes).await.as_ref(), Ok(&bytes));
    }
    let refusal =
        "a.example.org refused: the connection is for a.example.org, but its Host header names";
    let lines = proxy.stop().await.lines();
    assert!(lines.contains(&format!("{refusal} evil.net")), "{lines:?}");
}

#[tokio::test]
async fn tunnels_to_other_hosts_and_ports_are_refused() {
    let port = echo_server().await;
    let proxy = Proxy::start(&[format!("example.org:{port}")]).await;
    for target in [
        format!("evil.net:{port}"),
        "example.org:22".to_owned(),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("user@example.org:{port}"),
        "example.org".to_owned(),
        "example.org:".to_owned(),
        "example.org:0".to_owned(),
        "example.org:99999".to_owned(),
        format!("example.org..:{port}"),
        format!("xn--exmple-4nf.org:{port}"),
    ] {
        let answer = through_connect(&proxy, &target, b"x").await;
        assert!(answer.is_err(), "{target}: {answer:?}");
    }
    for (what, address) in [
        ("a name", name("evil.net")),
        ("a NUL", name("example.org\0.evil.net")),
        ("a line end", name("example.org\r\n")),
        ("not UTF-8", vec![3, 2, 0xff, 0xfe]),
        ("an empty name", vec![3, 0]),
        ("an address", vec![1, 127, 0, 0, 1]),
        ("an address as a name", name("127.0.0.1")),
        ("an integer", name("2130706433")),
        ("a user", name("user@example.org")),
        ("a percent", name("example%2eorg")),
        ("a mapped address", [&[4][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 1]].concat()),
    ] {
        assert_eq!(through_socks(&proxy, 1, &address, port, b"x").await, Err(2), "{what}");
    }
    assert_eq!(through_socks(&proxy, 1, &name("example.org"), port, b"x").await, Ok(b"x".to_vec()));
    assert_eq!(
        through_connect(&proxy, &format!("Example.ORG.:{port}"), b"x").await,
        Ok(b"x".to_vec())
    );
    let reports = proxy.stop().await;
    assert_eq!(reports.resolved, ["example.org", "example.org"]);
}

#[tokio::test]
async fn socks_offers_connections_and_nothing_else() {
    let port = echo_server().await;
    let proxy = Proxy::start(&[format!("example.org:{port}")]).await;
    let address = name("example.org");
    assert_eq!(through_socks(&proxy, 2, &address, port, b"x").await, Err(7), "BIND");
    assert_eq!(through_socks(&proxy, 3, &address, port, b"x").await, Err(7), "UDP ASSOCIATE");
    assert_eq!(
        through_socks(&proxy, 1, &[9], port, b"x").await,
        Err(8),
        "an unknown kind of address"
    );
    assert_eq!(through_socks(&proxy, 1, &address, port, b"x").await, Ok(b"x".to_vec()));
    let answer = proxy.exchange(&[5, 1, 2]).await;
    assert_eq!(answer.as_bytes()[0], 5);
    assert!(proxy.stop().await.resolved.len() == 1);
}

#[tokio::test]
async fn a_server_may_speak_first() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 hello\r\n").await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
    });
    let proxy = Proxy::start(&[format!("mail.example.org:{port}")]).await;
    let mut guest = proxy.connect().await;
    let request =
        [&[5, 1, 0, 5, 1, 0], &name("mail.example.org")[..], &port.to_be_bytes()].concat();
    guest.write_all(&request).await.unwrap();
    let mut answer = [0; 12 + 11];
    guest.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer[12..], b"220 hello\r\n");
}

#[tokio::test]
async fn more_connections_than_allowed_wait() {
    let port = echo_server().await;
    let host = format!("example.org:{port}");
    let limits = belljar_net::NetLimits { connections: 1, ..small_limits() };
    let proxy = Proxy::start_with(std::slice::from_ref(&host), limits, false).await;
    let mut first = proxy.connect().await;
    let request = [&[5, 1, 0, 5, 1, 0], &name("example.org")[..], &port.to_be_bytes()].concat();
    first.write_all(&request).await.unwrap();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.unwrap();
    let mut second = proxy.connect().await;
    second.write_all(&request).await.unwrap();
    // The first has the only place until it ends.
    let waiting = tokio::time::timeout(small_limits().head, second.read_exact(&mut answer)).await;
    assert!(waiting.is_err());
    drop(first);
    second.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[3], 0);
}

#[tokio::test]
async fn the_end_of_the_run_ends_and_records_every_connection() {
    let port = echo_server().await;
    let proxy = Proxy::start(&[format!("example.org:{port}")]).await;
    let mut guest = proxy.connect().await;
    let request =
        [&[5, 1, 0, 5, 1, 0], &name("example.org")[..], &port.to_be_bytes(), b"abc"].concat();
    guest.write_all(&request).await.unwrap();
    let mut answer = [0; 15];
    guest.read_exact(&mut answer).await.unwrap();
    let reports = proxy.stop().await;
    assert_eq!(reports.lines(), ["example.org allowed", "example.org closed 3 3"]);
    assert_eq!(guest.read(&mut answer).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_guest_that_says_nothing_is_cut_off() {
    let limits = small_limits();
    let proxy = Proxy::start_with(&[], limits, false).await;
    for (bytes, limit) in [
        (&b""[..], limits.head),
        (b"GET http://example.org/ HTTP/1.1\r\nX: ", limits.idle),
        (&[5, 1], limits.head),
    ] {
        let mut guest = proxy.connect().await;
        let began = Instant::now();
        guest.write_all(bytes).await.unwrap();
        let _ = guest.read_to_end(&mut Vec::new()).await;
        assert!(began.elapsed() >= limit, "{bytes:?}: {:?}", began.elapsed());
    }
    // Control: half of a head is no reason to end a connection whose other half comes in time.
    let mut guest = proxy.connect().await;
    guest.write_all(b"GET http://example.org/ HTTP/1.1\r\n").await.unwrap();
    tokio::time::sleep(limits.head).await;
    guest.write_all(b"Host: example.org\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = guest.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 403"), "{}", String::from_utf8_lossy(&answer));
}
