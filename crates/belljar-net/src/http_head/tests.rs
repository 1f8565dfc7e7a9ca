//! Which bytes are a request, and which host it names.

use super::*;

fn checked(head: &str) -> Result<(), String> {
    let host = RemoteHost::parse("web.example.org").expect("a host");
    check(head.as_bytes(), &host, 8099).map_err(|refusal| refusal.to_string())
}

#[test]
fn a_request_is_recognized_when_its_head_is_complete() {
    use HeadProgress::{Blank, Complete, Incomplete, NotHttp};
    let long = "A".repeat(40);
    for (bytes, progress) in [
        ("", Blank),
        ("\r\n\n", Blank),
        ("G", Incomplete),
        ("GET / HT", Incomplete),
        ("GET / HTTP/1.1\r", Incomplete),
        ("GET / HTTP/1.1\r\nHost: a\r\n", Incomplete),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Complete),
        ("\r\nGET / http/1.1\nHost: a\n\nbody", Complete),
        ("GET /\0 HTTP/1.1\r\n\r\n", Complete),
        ("get / HT", Incomplete),
        ("get", NotHttp),
        ("PING\r\n", NotHttp),
        ("*1\r\n$4\r\n", NotHttp),
        ("EHLO example.org\r\n", NotHttp),
        ("SSH-2.0-client\r\n", NotHttp),
        ("\0\0\0\x08\x04", NotHttp),
        ("AMQP\0\0\x09\x01", NotHttp),
        ("{\"id\": 1", NotHttp),
        (&long, NotHttp),
    ] {
        assert_eq!(read(bytes.as_bytes()), progress, "{bytes:?}");
    }
}

#[test]
fn n3_a_head_names_the_host_of_its_tunnel() {
    for head in [
        "GET / HTTP/1.1\r\nHost: web.example.org:8099\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: WEB.example.org\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http://web.example.org:8099/ HTTP/1.1\r\nHost: web.example.org:8099\r\n\r\n",
        "GET / HTTP/1.1\r\nX: Host: other.example.org\r\n\r\nHost: other.example.org\r\n",
    ] {
        assert_eq!(checked(head), Ok(()), "{head:?}");
    }
    for head in [
        "GET / HTTP/1.1\r\nHost: other.example.org\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: web.example.org:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : other.example.org\r\n\r\n",
        "GET / HTTP/1.1\nhost:other.example.org\n\n",
        "GET / HTTP/1.1\r\nX: 1\rHost: other.example.org\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nHost: other.example.org\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n other.example.org\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: web.example.org\r\n .evil.net\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: web.example.org@evil.net\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: \x01\r\n\r\n",
        "GET http://other.example.org/ HTTP/1.1\r\nHost: web.example.org:8099\r\n\r\n",
        "CONNECT other.example.org:443 HTTP/1.1\r\nHost: web.example.org:8099\r\n\r\n",
    ] {
        assert!(checked(head).is_err(), "{head:?}");
    }
}

#[test]
fn the_last_bytes_are_checked_if_they_could_be_answered() {
    let host = RemoteHost::parse("web.example.org").expect("a host");
    let check = |bytes: &[u8]| check_last(bytes, &host, 8099);
    assert_eq!(check(b"hello"), Ok(()));
    assert_eq!(check(b"GET / HTTP/1.1\r\nHost: web.example.org"), Ok(()));
    assert!(check(b"GET / HTTP/1.1\r\nHost: other.example.org").is_err());
}
