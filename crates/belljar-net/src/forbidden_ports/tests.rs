//! Ports on which this process listens.

use std::net::TcpListener;

use super::*;

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
    assert_eq!(listening_socket(listening, 8080), Some("socket:[4711]".to_owned()));
    assert_eq!(listening_socket(listening, 8081), None);
    assert_eq!(listening_socket(&connected, 8080), None);
    assert_eq!(listening_socket("  sl  local_address rem_address   st", 8080), None);
}
