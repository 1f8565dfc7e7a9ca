//! Each refusal stands beside a request that differs in that one thing and is let in.

use axum::http::HeaderName;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn guard() -> Guard {
    Guard {
        auth: Auth::Token(BearerToken::new(TOKEN).unwrap()),
        allowed: AllowedSources {
            hosts: vec!["belljar.example:8080".into(), "other.example".into()],
            origins: vec!["https://app.example".into()],
        },
    }
}

fn source(headers: &[(HeaderName, &str)]) -> Result<(), AccessDenied> {
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
    guard().check_source(&Uri::from_static("/mcp"), &headers.collect())
}

#[test]
fn e1_only_known_hosts() {
    for host in [
        "localhost",
        "localhost:7000",
        "LOCALHOST",
        "127.0.0.1:1",
        "[::1]:9",
        "belljar.example:8080",
        "other.example",
        "other.example:9",
    ] {
        assert_eq!(source(&[(header::HOST, host)]), Ok(()), "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "belljar.example",
        "belljar.example:9",
        "localhost@evil.example",
        "evil.example@localhost",
        "",
    ] {
        assert_eq!(source(&[(header::HOST, host)]), Err(AccessDenied::Host), "{host}");
    }
    assert_eq!(source(&[]), Err(AccessDenied::Host));
}

#[test]
fn s20_every_host_that_is_named_has_to_be_known() {
    let at = |uri: &str, hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| (header::HOST, host.parse().unwrap()));
        let mut headers = HeaderMap::new();
        hosts.for_each(|(name, host)| {
            headers.append(name, host);
        });
        guard().check_source(&uri.parse().unwrap(), &headers)
    };
    assert_eq!(at("/mcp", &["localhost", "evil.example"]), Err(AccessDenied::Host));
    assert_eq!(at("/mcp", &["localhost", "localhost"]), Err(AccessDenied::Host));
    assert_eq!(at("http://evil.example/mcp", &["localhost"]), Err(AccessDenied::Host));
    assert_eq!(at("http://localhost/mcp", &["evil.example"]), Err(AccessDenied::Host));
    assert_eq!(at("http://evil.example/mcp", &[]), Err(AccessDenied::Host));
    // Controls: one host, in either place or in both.
    assert_eq!(at("/mcp", &["localhost"]), Ok(()));
    assert_eq!(at("http://localhost:7000/mcp", &["localhost:7000"]), Ok(()));
    assert_eq!(at("http://localhost/mcp", &[]), Ok(()));
}

#[test]
fn e1_only_known_origins() {
    let from = |origin| source(&[(header::HOST, "localhost"), (header::ORIGIN, origin)]);
    for origin in
        ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:1", "https://app.example"]
    {
        assert_eq!(from(origin), Ok(()), "{origin}");
    }
    for origin in [
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://app.example",
        "file://localhost",
        "http://evil@localhost",
        "https://app.example.evil",
    ] {
        assert_eq!(from(origin), Err(AccessDenied::Origin), "{origin}");
    }
}

#[test]
fn e1_only_the_token_opens() {
    let with = |value: &str| {
        guard()
            .check_token(&[(header::AUTHORIZATION, value.parse().unwrap())].into_iter().collect())
    };
    assert_eq!(with(&format!("Bearer {TOKEN}")), Ok(()));
    assert_eq!(with(&format!("bearer {TOKEN}")), Ok(()));
    for wrong in [format!("Basic {TOKEN}"), TOKEN.to_owned(), "Bearer".into(), "Bearer x".into()] {
        assert_eq!(with(&wrong), Err(AccessDenied::WrongToken), "{wrong}");
    }
    assert_eq!(guard().check_token(&HeaderMap::new()), Err(AccessDenied::NoToken));
}
