//! The hosts of a request, and the variables of its cell.

use super::*;

#[test]
fn malformed_hosts_name_the_flag_and_an_empty_list_is_no_network() {
    let error = host_patterns(&["example.org".to_owned(), "https://example.org".to_owned()]);
    let error = error.expect_err("a URL");
    assert_eq!(
        error.message,
        "--net `https://example.org`: name a host, not a URL, as in example.org or example.org:8443"
    );
}

/// Only a cell whose programs have sockets needs a network: others are parked cells like any.
#[test]
fn a5_a_cell_has_a_network_only_if_its_code_opens_connections() {
    let hosts = ["example.org".to_owned()];
    let reached = |hosts: &[String], engine, sockets| {
        let options = NetworkOptions { sockets, ..NetworkOptions::default() };
        let network = reach(hosts, engine, &options).expect("hosts").network;
        (network, access(network))
    };
    use belljar_contract::EngineName::{Bash, CPython, QuickJs};
    let (fetch, sockets) =
        ((GuestNetwork::Fetch, NetworkAccess::None), (GuestNetwork::Sockets, NetworkAccess::Proxy));
    assert_eq!(reached(&hosts, QuickJs, SocketAccess::Allowed), fetch);
    assert_eq!(reached(&hosts, CPython, SocketAccess::Allowed), sockets);
    assert_eq!(reached(&hosts, Bash, SocketAccess::Allowed), sockets);
    assert_eq!(reached(&hosts, CPython, SocketAccess::Refused), fetch);
    for engine in [QuickJs, CPython, Bash] {
        let none = (GuestNetwork::None, NetworkAccess::None);
        assert_eq!(reached(&[], engine, SocketAccess::Allowed), none);
    }
}

#[test]
fn programs_find_the_proxy_in_both_spellings() {
    let variables: std::collections::BTreeMap<_, _> = variables().collect();
    for name in PROXY_VARIABLES {
        assert_eq!(variables.get(name).map(String::as_str), Some("http://127.0.0.1:3128"));
    }
}
