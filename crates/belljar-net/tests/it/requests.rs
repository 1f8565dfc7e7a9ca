//! Decisions about each request: in TLS tunnels, in plain ones, and in absolute form.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};

use belljar_net::{
    ConnectionAnswer, ConnectionApprover, ConnectionOutcome, ConnectionQuestion, NetRules,
    RequestSummary,
};

use crate::{
    site::{Guest, Site, Way, allow, rule, tls_guest, tunnel},
    support::{Proxy, Setup},
};

const HOST: &str = "api.example.org";

fn api(port: u16) -> belljar_net::NetRule {
    rule(&format!("{HOST}:{port}"), &["GET", "POST"], &["/api/**"])
}

#[tokio::test]
async fn every_request_of_a_tls_connection_is_decided_about() {
    let site = Site::https(HOST).await;
    for way in [Way::Connect, Way::Socks] {
        let before = site.received();
        let (proxy, authority) = site.proxy(allow([api(site.port)])).await;
        let mut guest = tls_guest(&proxy, &authority, way, (HOST, site.port)).await;
        assert_eq!(guest.status("GET", "/api/1", "").await, 200);
        assert_eq!(guest.status("GET", "/api/2?q=/../x", "").await, 200);
        let more = "Content-Length: 2\r\n\r\nhi";
        let posted = guest.send(&format!("POST /api/3 HTTP/1.1\r\n{more}")).await.unwrap();
        assert!(posted.text.ends_with("\r\n\r\nhi"), "{posted:?}");
        let refused = guest.send("DELETE /api/4 HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(refused.status, 403);
        assert!(refused.text.contains("no rule allows this method and path"), "{refused:?}");
        // The three that were allowed came on one connection.
        let received = site.received();
        assert_eq!(received.connections, before.connections + 1);
        let lines: Vec<_> = received.requests[before.requests.len()..]
            .iter()
            .map(|request| request.lines().next().unwrap())
            .collect();
        let expected =
            ["GET /api/1 HTTP/1.1", "GET /api/2?q=/../x HTTP/1.1", "POST /api/3 HTTP/1.1"];
        assert_eq!(lines, expected);
        let reports = proxy.stop().await;
        assert_eq!(reports.resolved, [HOST]);
        let paths: Vec<_> = reports
            .events
            .iter()
            .filter(|event| !matches!(event.outcome, ConnectionOutcome::Closed { .. }))
            .map(|event| event.request.as_ref().unwrap().path.as_str())
            .collect();
        assert_eq!(paths, ["/api/1", "/api/2", "/api/3", "/api/4"]);
    }
}

#[tokio::test]
async fn the_bytes_of_each_request_are_its_own() {
    let site = Site::https(HOST).await;
    let (proxy, authority) = site.proxy(allow([api(site.port)])).await;
    let mut guest = tls_guest(&proxy, &authority, Way::Connect, (HOST, site.port)).await;
    let body = "x".repeat(5000);
    let large = format!("POST /api/1 HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{body}");
    assert_eq!(guest.send(&large).await.unwrap().status, 200);
    assert_eq!(guest.status("GET", "/api/2", "").await, 200);
    let closed: Vec<_> = proxy
        .stop()
        .await
        .events
        .iter()
        .filter_map(|event| {
            let ConnectionOutcome::Closed { sent, received, .. } = event.outcome else {
                return None;
            };
            Some((sent, received))
        })
        .collect();
    let [(first_sent, first_received), (second_sent, second_received)] = closed[..] else {
        panic!("{closed:?}")
    };
    assert!(first_sent > 5000 && first_received > 5000, "{closed:?}");
    assert!((1..1000).contains(&second_sent) && (1..1000).contains(&second_received), "{closed:?}");
}

#[tokio::test]
async fn nothing_is_resolved_before_a_request_is_allowed() {
    let site = Site::https(HOST).await;
    for (path, resolved) in [("/other", 0), ("/api/1", 1)] {
        let (proxy, authority) = site.proxy(allow([api(site.port)])).await;
        let mut guest = tls_guest(&proxy, &authority, Way::Connect, (HOST, site.port)).await;
        guest.status("GET", path, "").await;
        assert_eq!(proxy.stop().await.resolved.len(), resolved, "{path}");
    }
}

#[tokio::test]
async fn plain_requests_are_decided_about_one_by_one() {
    let site = Site::http().await;
    for way in [Way::Connect, Way::Socks] {
        let (proxy, _) = site.proxy(allow([api(site.port)])).await;
        let mut guest = Guest::new(tunnel(&proxy, way, HOST, site.port).await);
        assert_eq!(guest.status("GET", "/api/1", "").await, 200, "{way:?}");
        assert_eq!(guest.status("GET", "/other", "").await, 403, "{way:?}");
    }
    let (proxy, _) = site.proxy(allow([api(site.port)])).await;
    let mut guest = Guest::new(proxy.connect().await);
    let url = |path: &str| format!("http://{HOST}:{}{path}", site.port);
    assert_eq!(guest.status("GET", &url("/api/1"), "").await, 200);
    assert_eq!(guest.status("GET", &url("/api/2"), "").await, 200);
    assert_eq!(guest.status("GET", &url("/other"), "").await, 403);
}

#[tokio::test]
async fn a_server_that_has_ended_an_idle_connection_is_connected_to_again() {
    let site = Site::https(HOST).await;
    let (proxy, authority) = site.proxy(allow([api(site.port)])).await;
    let mut guest = tls_guest(&proxy, &authority, Way::Connect, (HOST, site.port)).await;
    // The server ends this connection with its answer.
    let switched = guest.send("GET /api/close HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(switched.status, 200);
    assert_eq!(guest.status("GET", "/api/2", "").await, 200);
    assert_eq!(site.received().connections, 2);
}

/// Answers from a list, and remembers the questions.
#[derive(Debug)]
struct Person {
    answers: Mutex<Vec<ConnectionAnswer>>,
    questions: Mutex<Vec<ConnectionQuestion>>,
}

impl ConnectionApprover for Person {
    fn ask<'a>(
        &'a self,
        question: &'a ConnectionQuestion,
    ) -> Pin<Box<dyn Future<Output = ConnectionAnswer> + Send + 'a>> {
        self.questions.lock().unwrap().push(question.clone());
        let answer = self.answers.lock().unwrap().remove(0);
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn a_person_is_asked_about_a_request_and_sees_what_it_is() {
    let site = Site::https(HOST).await;
    let pattern = format!("{HOST}:{}", site.port);
    let rules = NetRules {
        allow: vec![rule(&pattern, &["GET"], &["/api/**"])],
        ask: vec![rule(&pattern, &["POST"], &["/api/**"])],
        ..NetRules::default()
    };
    let answers =
        vec![ConnectionAnswer::Approved, ConnectionAnswer::Denied, ConnectionAnswer::Unanswered];
    let person = Arc::new(Person { answers: Mutex::new(answers), questions: Mutex::default() });
    let setup = Setup { approver: person.clone(), ..Setup::of(rules) };
    let (proxy, authority) = site.proxy_with(setup).await;
    let post = "POST /api/a?b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
    let texts = ["", "a person denied it", "nobody approved it"];
    for (status, text) in [200, 403, 403].into_iter().zip(texts) {
        let mut guest = tls_guest(&proxy, &authority, Way::Connect, (HOST, site.port)).await;
        // Nobody is asked about this one.
        assert_eq!(guest.status("GET", "/api/a", "").await, 200);
        let answer = guest.send(post).await.unwrap();
        assert_eq!(answer.status, status);
        assert!(answer.text.contains(text), "{answer:?}");
    }
    let posts = site.received().requests.iter().filter(|it| it.starts_with("POST")).count();
    assert_eq!(posts, 1);
    let questions = person.questions.lock().unwrap();
    assert_eq!(questions.len(), 3);
    let summary = RequestSummary {
        method: "POST".to_owned(),
        path: "/api/a".to_owned(),
        body_bytes: Some(2),
    };
    assert!(questions.iter().all(|question| question.request == Some(summary.clone())));
}

#[tokio::test]
async fn no_rule_leads_to_a_port_on_which_this_program_listens() {
    let site = Site::http().await;
    let url = format!("http://{HOST}:{}/", site.port);
    let request = format!("GET {url} HTTP/1.1\r\nConnection: close\r\n\r\n");
    let whole = || allow([rule(&format!("{HOST}:{}", site.port), &[], &[])]);
    let ports = Arc::new(belljar_net::BelljarPorts);
    // The server of this test is in the same process.
    let proxy = Proxy::start_setup(Setup { ports, ..Setup::of(whole()) }).await;
    let answer = proxy.exchange(request.as_bytes()).await;
    assert!(answer.contains("Belljar listens on port"), "{answer}");
    assert_eq!(site.received().connections, 0);
    // Control.
    let proxy = Proxy::start_setup(Setup::of(whole())).await;
    let answer = proxy.exchange(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn more_connections_to_a_host_than_allowed_wait() {
    let port = crate::support::echo_server().await;
    let limits =
        belljar_net::NetLimits { connections_per_host: 1, ..belljar_net::NetLimits::default() };
    let rules = allow([rule(&format!("*.example.org:{port}"), &[], &[])]);
    let proxy = Proxy::start_setup(Setup { limits, ..Setup::of(rules) }).await;
    let first = tunnel(&proxy, Way::Socks, "a.example.org", port).await;
    // Another host has places of its own.
    let _other = tunnel(&proxy, Way::Socks, "b.example.org", port).await;
    let (second, ()) = tokio::join!(tunnel(&proxy, Way::Socks, "a.example.org", port), async {
        tokio::task::yield_now().await;
        drop(first);
    });
    drop(second);
    let lines = proxy.stop().await.lines();
    let of_a: Vec<_> = lines.iter().filter(|line| line.starts_with("a.example.org")).collect();
    let expected = ["allowed", "allowed", "closed 0 0", "closed 0 0"];
    let mut outcomes: Vec<_> =
        of_a.iter().map(|line| line.strip_prefix("a.example.org ").unwrap()).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, expected);
}
