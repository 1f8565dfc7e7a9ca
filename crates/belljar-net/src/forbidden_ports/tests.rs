//! Ports on which this process listens.

use std::net::TcpListener;

use super::{listeners::listening_socket, *};

#[tokio::test]
async fn the_ports_on_which_this_process_listens_are_forbidden_while_it_listens() {
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(BelljarPorts.is_forbidden(port).await, "{address}");
        drop(listener);
        assert!(!BelljarPorts.is_forbidden(port).await, "{address}");
    }
}

#[test]
fn only_listening_sockets_of_the_port_count() {
    let listening = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
    let connected = listening.replace(" 0A ", " 01 ");
    assert_eq!(listening_socket(listening, 8080), Some(4711));
    assert_eq!(listening_socket(listening, 8081), None);
    assert_eq!(listening_socket(&connected, 8080), None);
    assert_eq!(listening_socket("  sl  local_address rem_address   st", 8080), None);
}

#[test]
fn the_kernel_lists_the_listeners_of_a_port() {
    // Enough for several parts of an answer, in both families.
    let all =
        |address| -> Vec<_> { (0..300).map(|_| TcpListener::bind(address).unwrap()).collect() };
    let (ipv4, ipv6) = (all("127.0.0.1:0"), TcpListener::bind("[::1]:0").ok());
    for listener in ipv4.iter().chain(&ipv6) {
        let port = listener.local_addr().unwrap().port();
        let asked = listeners::asked(port).unwrap();
        assert_eq!(asked, listeners::read(port).unwrap(), "{port}");
        assert!(!asked.is_empty(), "{port}");
    }
    let gone = ipv4[0].local_addr().unwrap().port();
    drop(ipv4);
    assert_eq!(listeners::asked(gone).unwrap(), []);
}
