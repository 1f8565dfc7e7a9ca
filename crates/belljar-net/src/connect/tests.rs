//! Addresses that an allowed name may and may not lead to.

use std::{future::Future, pin::Pin, time::Duration};

use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};
use tokio::{net::TcpListener, time::timeout};

use super::*;
use crate::{
    forbidden_ports::{BelljarPorts, NoForbiddenPorts},
    host::DomainName,
};

#[derive(Debug)]
struct FixedAddresses(Vec<IpAddr>);

impl Resolver for FixedAddresses {
    fn resolve<'a>(
        &'a self,
        _: &'a DomainName,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

fn addresses(texts: &[&str]) -> FixedAddresses {
    FixedAddresses(texts.iter().map(|text| text.parse().expect("an address")).collect())
}

fn rule(pattern: &str, private: bool) -> NetRule {
    NetRule { private, ..NetRule::of_host(pattern.parse().expect("a pattern")) }
}

async fn server() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    (listener, port)
}

async fn attempt(
    resolver: &FixedAddresses,
    rule: &NetRule,
    host: &str,
    port: u16,
) -> Result<SocketAddr, String> {
    let host = RemoteHost::parse(host).expect("a host");
    match connect(resolver, &NoForbiddenPorts, rule, &host, port).await {
        Ok((_, address)) => Ok(address),
        Err(ConnectFailure::Refused(refusal)) => Err(refusal.to_string()),
        Err(ConnectFailure::Io(error)) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_needs_a_rule_that_says_so() {
    let (_listener, port) = server().await;
    let local = addresses(&["127.0.0.1"]);
    let reached = Ok(SocketAddr::new("127.0.0.1".parse().expect("an address"), port));
    assert_eq!(
        attempt(&local, &rule("db.example.org", true), "db.example.org", port).await,
        reached
    );
    assert_eq!(
        attempt(&local, &rule("db.example.org", false), "db.example.org", port).await,
        Err("127.0.0.1 is a loopback address".to_owned())
    );
    let named = format!("127.0.0.1:{port}");
    assert_eq!(attempt(&local, &rule(&named, false), "127.0.0.1", port).await, reached);
}

#[tokio::test]
async fn one_refused_address_refuses_the_name() {
    let mixed = addresses(&["127.0.0.1", "169.254.169.254"]);
    let refused = attempt(&mixed, &rule("example.org", false), "example.org", 80).await;
    assert_eq!(refused, Err("127.0.0.1 is a loopback address".to_owned()));
    let hidden = addresses(&["1.1.1.1", "169.254.169.254"]);
    let refused = attempt(&hidden, &rule("example.org", false), "example.org", 80).await;
    assert_eq!(refused, Err("169.254.169.254 is a link-local address".to_owned()));
}

#[test]
fn own_addresses_are_known() {
    assert!(is_own("127.0.0.1".parse().expect("an address")));
    assert!(!is_own("1.1.1.1".parse().expect("an address")));
}

#[tokio::test]
async fn a_port_on_which_belljar_listens_is_never_reached() {
    let (_listener, port) = server().await;
    let address = SocketAddr::new("127.0.0.1".parse().expect("an address"), port);
    for rule in [rule("db.example.org", true), rule("127.0.0.1", false)] {
        let refused = check_address(&BelljarPorts, &rule, address).await;
        assert_eq!(refused, Err(NetRefusal::OwnPort { port }));
        // Controls: another program's port, and the same port of another machine.
        assert_eq!(check_address(&NoForbiddenPorts, &rule, address).await, Ok(()));
        let other = SocketAddr::new("198.51.100.1".parse().expect("an address"), port);
        assert_eq!(check_address(&BelljarPorts, &rule, other).await, Ok(()));
    }
}

/// How many bytes a connection takes that nobody reads.
async fn taken(stream: TcpStream) -> usize {
    let (bytes, mut taken) = (vec![0; 64 << 10], 0);
    let more = Duration::from_millis(300);
    while let Ok(Ok(())) = timeout(more, stream.writable()).await {
        taken += stream.try_write(&bytes).unwrap_or(0);
    }
    taken
}

#[tokio::test]
async fn n5_the_queues_to_a_server_do_not_grow() {
    let (listener, port) = server().await;
    let address: SocketAddr = ([127, 0, 0, 1], port).into();
    let (ours, _) = connect_to_any(&[address]).await.expect("a connection");
    let most = 2 * usize::try_from(QUEUE_BYTES).expect("small");
    for size in [socket_send_buffer_size(&ours), socket_recv_buffer_size(&ours)] {
        assert!((most / 2..=most).contains(&size.expect("a size")), "{size:?}");
    }
    let _held = listener.accept().await.expect("a connection");
    let bounded = taken(ours).await;
    // Control: those of other programs do.
    let other = TcpStream::connect(address).await.expect("a connection");
    let _held = listener.accept().await.expect("a connection");
    let usual = taken(other).await;
    assert!(bounded + most < usual, "{bounded} {usual}");
}
