//! Rules that set a header: the server gets the value, and nobody else does.

use belljar_net::NetRules;

use crate::{
    site::{Guest, SECRET, Site, Way, allow, rule, tls_guest, tunnel, with_secret},
    support::Reports,
};

const HOST: &str = "api.example.org";

/// A rule with a credential for one path, and one without for the others.
fn rules(port: u16) -> NetRules {
    let pattern = format!("{HOST}:{port}");
    allow([
        with_secret(rule(&pattern, &["GET", "POST"], &["/api/**"])),
        rule(&pattern, &["GET"], &["/open/**"]),
    ])
}

fn assert_without_secret(what: &str, text: &str) {
    assert!(!text.contains(SECRET), "{what}: {text}");
}

fn shown(reports: &Reports) -> String {
    format!("{:?} {:?}", reports.events, reports.lines())
}

#[tokio::test]
async fn the_server_gets_the_value_and_the_guest_does_not() {
    let site = Site::https(HOST).await;
    for way in [Way::Connect, Way::Socks] {
        let (proxy, authority) = site.proxy(rules(site.port)).await;
        let mut guest = tls_guest(&proxy, &authority, way, (HOST, site.port)).await;
        // Both answers repeat the whole request: one in its body and a header, one in pieces of 7 bytes.
        for path in ["/api/whole", "/api/pieces"] {
            let request = format!("GET {path} HTTP/1.1\r\n\r\n");
            let answer = guest.send(&request).await.unwrap();
            assert_eq!(answer.status, 200);
            let seen = site.received().requests.pop().unwrap();
            assert!(seen.contains(&format!("authorization: Bearer {SECRET}\r\n")), "{seen}");
            assert_without_secret(path, &answer.text.replace("\r\n7\r\n", ""));
        }
        let answer = guest.send("GET /api/whole HTTP/1.1\r\n\r\n").await.unwrap();
        let mask = "*".repeat(SECRET.len());
        assert!(answer.text.to_ascii_lowercase().contains(&format!("x-echo: bearer {mask}\r\n")));
        assert!(answer.text.contains(&format!("authorization: Bearer {mask}\r\n")), "{answer:?}");
        assert_without_secret("reports", &shown(&proxy.stop().await));
    }
}

#[tokio::test]
async fn what_the_guest_sends_in_that_header_is_replaced() {
    let site = Site::https(HOST).await;
    let (proxy, authority) = site.proxy(rules(site.port)).await;
    let mut guest = tls_guest(&proxy, &authority, Way::Connect, (HOST, site.port)).await;
    let own = "Authorization: Basic own\r\nAUTHORIZATION: Basic own\r\nRange: bytes=0-9\r\n\
               Accept-Encoding: gzip\r\nConnection: Authorization\r\n";
    assert_eq!(guest.status("GET", "/api/1", own).await, 200);
    assert_eq!(guest.status("GET", "/open/1", own).await, 200);
    let lower = |text: &str| text.to_ascii_lowercase();
    let received = site.received();
    let [with, without] = &received.requests[..] else { panic!("{received:?}") };
    let (with, without) = (lower(with), lower(without));
    assert_eq!(with.matches("authorization: ").count(), 1, "{with}");
    assert!(with.contains(&format!("authorization: bearer {SECRET}\r\n")), "{with}");
    assert!(!with.contains("range: ") && !with.contains("gzip"), "{with}");
    // Control: a request under the other rule goes as it came, except for what it says of its connection.
    assert_without_secret("the other rule", &without);
    assert!(without.contains("range: bytes=0-9\r\n") && without.contains("accept-encoding: gzip"));
}

#[tokio::test]
async fn a_value_is_never_sent_in_clear_nor_to_another_server() {
    // A server without TLS.
    let plain = Site::http().await;
    let (proxy, _) = plain.proxy(rules(plain.port)).await;
    let mut guest = Guest::new(tunnel(&proxy, Way::Connect, HOST, plain.port).await);
    let answer = guest.send("GET /api/1 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(answer.text.contains("the request must be HTTPS"), "{answer:?}");
    let url = format!("http://{HOST}:{}/api/1", plain.port);
    assert_eq!(Guest::new(proxy.connect().await).status("GET", &url, "").await, 403);
    // Control.
    let mut guest = Guest::new(tunnel(&proxy, Way::Connect, HOST, plain.port).await);
    assert_eq!(guest.status("GET", "/open/1", "").await, 200);
    assert_eq!(plain.received().requests.len(), 1);
    // Servers that cannot prove to be the host.
    let (other_name, other_root) = (Site::https("evil.net").await, Site::https(HOST).await);
    let trusted = Site::https(HOST).await;
    for (site, root, status) in [
        (&other_name, &other_name.root, 502),
        (&other_root, &trusted.root, 502),
        (&trusted, &trusted.root, 200),
    ] {
        let site = site.trusting(root);
        let (proxy, authority) = site.proxy(rules(site.port)).await;
        let mut guest = tls_guest(&proxy, &authority, Way::Connect, (HOST, site.port)).await;
        let answer = guest.send("GET /api/1 HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 502 {
            assert!(answer.text.contains("invalid peer certificate"), "{answer:?}");
            assert_eq!(site.received().requests.len(), 0);
        }
        assert_without_secret("reports", &shown(&proxy.stop().await));
    }
}

#[test]
fn nothing_that_is_printed_of_a_rule_has_the_value() {
    let rule = with_secret(rule("api.example.org", &["GET"], &["/api/**"]));
    assert_eq!(rule.to_string(), "GET api.example.org/api/**");
    assert_without_secret("debug", &format!("{rule:?} {:?}", allow([rule.clone()])));
    assert_eq!(rule.headers[0].value.reveal(), format!("Bearer {SECRET}"));
}
