//! The hosts of a request, and the variables of its cell.

use super::*;

#[test]
fn malformed_hosts_are_named_and_an_empty_list_is_no_network() {
    let error = host_patterns(&["example.org".to_owned(), "https://example.org".to_owned()]);
    let error = error.expect_err("a URL");
    assert_eq!(
        error.message,
        "the host `https://example.org`: name a host, not a URL, as in example.org or example.org:8443"
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

/// A client has no flags: only the log of a run at a command line names one.
#[test]
fn n1_a_blocked_line_names_a_flag_only_at_the_command_line() {
    let blocked = |audience, refusal| {
        let (log, mut lines) = RunLog::new(None, audience);
        let destination = belljar_net::Destination { host: "a.test".to_owned(), port: 80 };
        log.tell(&ConnectionEvent {
            connection: 1,
            fetch: None,
            destination,
            request: None,
            rule: None,
            is_approved: false,
            note: None,
            outcome: ConnectionOutcome::Refused(refusal),
        });
        (lines.try_recv().expect("a line"), log.excess().error())
    };
    let (line, _) = blocked(Audience::CommandLine, NetRefusal::Host);
    let no_rule = "[blocked] network: a.test:80: no rule allows this host";
    assert_eq!(line, format!("{no_rule}; to allow it: --net a.test:80"));
    assert_eq!(blocked(Audience::Client, NetRefusal::Host).0, no_rule);
    // A limit ends the run, and its hint is reworded for each reader.
    for (refusal, flag, field) in [
        (NetRefusal::Connections { most: 2 }, "--max-net", "net_connections"),
        (NetRefusal::Bytes { most: 2 }, "--max-net-bytes", "net_bytes"),
    ] {
        let (line, error) = blocked(Audience::CommandLine, refusal);
        assert!(!line.contains("--"), "{line}");
        let error = error.expect("a limit");
        let hint = |audience| error.hint_for(audience).expect("a hint");
        let more = |phrase: &str| format!("Or ask for more with {phrase}.");
        assert!(hint(Audience::CommandLine).ends_with(&more(flag)), "{error:?}");
        let field = format!("`{field}` in `sandbox_config` (HTTP: in `limits`)");
        assert!(hint(Audience::Client).ends_with(&more(&field)), "{error:?}");
    }
}
