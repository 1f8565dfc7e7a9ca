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
    // Enough for several parts of an answer.
    let mut all: Vec<_> = (0..300).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    // A machine may have no IPv6.
    all.extend(TcpListener::bind("[::1]:0").ok());
    let ports: Vec<_> = all.iter().map(|it| it.local_addr().unwrap().port()).collect();
    for port in &ports {
        assert!(!listeners::asked(*port).unwrap().is_empty(), "{port}");
    }
    // Control: the tables of all sockets, which are slow to read, say the same.
    for port in [ports[0], *ports.last().unwrap()] {
        assert_eq!(listeners::asked(port).unwrap(), listeners::read(port).unwrap(), "{port}");
    }
    drop(all);
    assert_eq!(listeners::asked(ports[0]).unwrap(), []);
}
