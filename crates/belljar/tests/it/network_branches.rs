//! B1, B2, B4, A10: what becomes of connections between runs, at branches, at the end of sessions and of their
//! host, and what sessions share. Each refusal has a control that reaches a server.

use std::thread;

use belljar_testing::{as_root, sandboxed};
use serde_json::json;

use crate::{
    command::{Place, as_ordinary_user},
    descendants::descendants,
    mcp_support::within,
    network_session_support::{
        Website, audit, checkpoint, descriptors, fork, get, host, open_python, rollback, run, value,
    },
};

#[sandboxed]
#[test]
fn b2_a_session_does_not_reach_the_hosts_of_another() {
    let (one, two) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &one.address, "--net", &two.address]);
    let (first, second) =
        (open_python(&server, &[&one.address]), open_python(&server, &[&two.address]));
    // The same address leads each of them to its own proxy, also while the other one has a run.
    let held = format!("get('{}', '/held')", two.address);
    thread::scope(|scope| {
        let holding = scope.spawn(|| value(&server, &second, &held));
        assert_eq!(two.held(), "begun");
        assert_eq!(get(&server, &first, &one), "/x");
        assert_eq!(get(&server, &first, &two), 403);
        server.api(&format!("DELETE /v1/sessions/{first}"), "");
        // The end of one session is none of the other's.
        two.release();
        assert_eq!(holding.join().expect("it ends"), "begin");
    });
    assert_eq!(get(&server, &second, &one), 403);
    assert_eq!(get(&server, &second, &two), "/x");
    assert_eq!((one.served(), two.served()), (1, 2));
}

/// Code in the background has no network while no run is under way.
#[sandboxed]
#[test]
fn b1_between_runs_every_connection_is_reset() {
    let site = Website::start();
    let place = Place::new();
    let server = host(&place, &["--net", &site.address]);
    let id = open_python(&server, &[&site.address]);
    let code = format!(
        "import threading\n\
         begun = threading.Event()\n\
         def background():\n\
         \x20   answer = urllib.request.urlopen('http://{0}/held')\n\
         \x20   seen = [answer.read(5).decode()]\n\
         \x20   begun.set()\n\
         \x20   try: seen.append(answer.read().decode())\n\
         \x20   except ConnectionError: seen.append('reset')\n\
         \x20   seen.append(get('{0}'))\n\
         \x20   open('/work/seen', 'w').write(' '.join(seen))\n\
         thread = threading.Thread(target=background, daemon=True)\n\
         thread.start()\n\
         begun.wait()",
        site.address
    );
    assert_eq!(value(&server, &id, &code), true);
    assert_eq!((site.held(), site.held()), ("begun", "ended"));
    let seen = within("the thread", || {
        let reply = server.api(&format!("GET /v1/sessions/{id}/files/seen"), "");
        (reply.status == 200).then_some(reply.body)
    });
    assert_eq!(seen, "begin reset reset");
    assert_eq!(site.served(), 1);
    // Control: in the next run the same thread could connect.
    let code = format!("thread.join()\nget('{}')", site.address);
    assert_eq!(value(&server, &id, &code), "/x");
}

/// B4: what a session reaches, it reaches from all its branches, and no connection is in two of them.
#[sandboxed]
#[test]
fn b4_branches_reach_the_host_and_have_no_connection_from_before() {
    let (site, other) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &site.address, "--net", &other.address]);
    let id = open_python(&server, &[&site.address]);
    let tunnel = format!(
        "import socket\n\
         kept = socket.create_connection(('127.0.0.1', 3128))\n\
         kept.sendall(b'CONNECT {0} HTTP/1.1\\r\\nHost: {0}\\r\\n\\r\\n')\n\
         while not kept.recv(1000).endswith(b'\\r\\n\\r\\n'): pass\n\
         kept.sendall(b'GET /held HTTP/1.1\\r\\n\\r\\n')\n\
         kept.recv(15).decode()\n",
        site.address
    );
    assert_eq!(value(&server, &id, &tunnel), "HTTP/1.1 200 OK");
    assert_eq!((site.held(), site.held()), ("begun", "ended"));
    let use_kept = "try:\n\
        \x20   kept.sendall(b'x')\n\
        \x20   found = kept.recv(1000)\n\
        except OSError as error: found = type(error).__name__ + str(error.errno)\n\
        found";
    let point = checkpoint(&server, &id);
    let copy = fork(&server, &id);
    // The parent sees a reset; in a copy the descriptor is none.
    for (session, kept) in [(&id, "ConnectionResetError104"), (&copy, "OSError9")] {
        assert_eq!(value(&server, session, use_kept), kept);
        assert_eq!(get(&server, session, &site), "/x");
        assert_eq!(get(&server, session, &other), 403);
    }
    for _ in 0..2 {
        rollback(&server, &id, &point);
        assert_eq!(value(&server, &id, use_kept), "OSError9");
        assert_eq!(get(&server, &id, &site), "/x");
        assert_eq!(get(&server, &id, &other), 403);
    }
    assert_eq!((site.served(), other.served()), (5, 0));
}

/// B4: the host cannot tell whose a connection is, so a branch of one session resets those of its forks.
#[sandboxed]
#[test]
fn b4_a_branch_resets_the_connections_of_the_whole_cell() {
    let site = Website::start();
    let place = Place::new();
    let server = host(&place, &["--net", &site.address]);
    let id = open_python(&server, &[&site.address]);
    let copy = fork(&server, &id);
    let code = format!("[get('{0}', '/held'), again('{0}')]", site.address);
    thread::scope(|scope| {
        let holding = scope.spawn(|| value(&server, &copy, &code));
        assert_eq!(site.held(), "begun");
        // Control: a run of the other session does not.
        assert_eq!(get(&server, &id, &site), "/x");
        checkpoint(&server, &id);
        assert_eq!(site.held(), "ended");
        assert_eq!(holding.join().expect("it ends"), json!(["reset", "/x"]));
    });
    assert_eq!(site.served(), 3);
}

/// Where runs of forks go on at once, a row names the oldest and says that it may be another's.
#[sandboxed]
#[test]
fn n1_records_of_forks_say_that_they_share_a_cell() {
    let (site, other) = (Website::start(), Website::start());
    let place = Place::new();
    let server = host(&place, &["--net", &site.address, "--net", &other.address]);
    let id = open_python(&server, &[&site.address]);
    let copy = fork(&server, &id);
    let code = format!("get('{}', '/held')", site.address);
    let (holding, refused) = thread::scope(|scope| {
        let holding = scope.spawn(|| run(&server, &copy, &code));
        assert_eq!(site.held(), "begun");
        let refused = run(&server, &id, &format!("get('{}')", other.address));
        site.release();
        (holding.join().expect("it ends"), refused)
    });
    assert_eq!((&holding["result"], &refused["result"]), (&json!("begin"), &json!(403)));
    let rows = audit(&place, &other, 1);
    assert_eq!(rows[0]["run_id"], holding["id"], "{rows:#?}");
    let reason = rows[0]["reason"].as_str().unwrap_or_default();
    let or_other = format!("; or of {}, in the same cell", refused["id"].as_str().expect("an id"));
    assert!(reason.ends_with(&or_other), "{rows:#?}");
    // Both runs are told.
    for ran in [&holding, &refused] {
        assert!(ran["logs"].to_string().contains("[blocked] network"), "{ran:#}");
    }
    // Control: a row of a run that was alone names it only.
    let rows = audit(&place, &site, 1);
    assert!(!rows[0]["reason"].as_str().unwrap_or_default().contains("same cell"), "{rows:#?}");
}

/// B4: what ends leaves no listener and no connection with the host.
#[sandboxed]
#[test]
fn b4_the_end_of_sessions_leaves_nothing_at_the_host() {
    let site = Website::start();
    let place = Place::new();
    let server = host(&place, &["--net", &site.address]);
    let family = || {
        let id = open_python(&server, &[&site.address]);
        let point = checkpoint(&server, &id);
        let copy = fork(&server, &id);
        rollback(&server, &id, &point);
        assert_eq!(get(&server, &id, &site), "/x");
        assert_eq!(get(&server, &copy, &site), "/x");
        let held = format!("get('{}', '/held')", site.address);
        let path = format!("POST /v1/sessions/{copy}/runs");
        thread::scope(|scope| {
            let ended = scope.spawn(|| server.api(&path, &json!({ "code": held }).to_string()));
            assert_eq!(site.held(), "begun");
            let most = descriptors(&server);
            for session in [&id, &copy] {
                server.api(&format!("DELETE /v1/sessions/{session}"), "");
            }
            assert_eq!(site.held(), "ended");
            ended.join().expect("it ends");
            most
        })
    };
    family();
    let before = within("descriptors", || {
        let now = descriptors(&server);
        (0..5).all(|_| descriptors(&server) == now).then_some(now)
    });
    // Control: sessions do have descriptors.
    assert!(family() > before, "{before}");
    within("the descriptors", || (descriptors(&server) <= before).then_some(()));
}

#[sandboxed]
#[test]
fn a10_a_killed_host_leaves_nothing_of_sessions_with_hosts() {
    let site = Website::start();
    let place = Place::new();
    let server = host(&place, &["--net", &site.address]);
    let id = open_python(&server, &[&site.address]);
    checkpoint(&server, &id);
    let copy = fork(&server, &id);
    let family = descendants(server.pid());
    assert!(family.len() >= 5, "{family:?}");
    // A run goes on when the host is killed; nobody waits for its answer.
    let code = json!({ "code": format!("get('{}', '/held')", site.address) }).to_string();
    let _client = server.follow(&format!("POST /v1/sessions/{copy}/runs"), "", &code);
    assert_eq!(site.held(), "begun");
    server.kill();
    assert_eq!(site.held(), "ended");
    let is_alive = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    };
    // The network namespaces of the cells end with the last process and the host's descriptors.
    within("the end of all processes", || (!family.iter().any(is_alive)).then_some(()));
    let next = host(&place, &["--net", &site.address]);
    let gone = next.api(&format!("GET /v1/sessions/{id}"), "");
    assert!(gone.body.contains("its host has ended"), "{gone:#?}");
    // Control: a new session has the network.
    let id = open_python(&next, &[&site.address]);
    assert_eq!(get(&next, &id, &site), "/x");
}

/// All of this once more for a host that is an ordinary user.
#[sandboxed]
#[as_root]
#[test]
fn b4_all_of_this_holds_for_an_ordinary_user() {
    as_ordinary_user("network_branches::");
}
