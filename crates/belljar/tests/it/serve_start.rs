//! E1, E3: what the operator of `belljar serve` is told, and the files by which scripts find it.

use std::fs;

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{Place, until_shown},
    mcp_support::{serve_in, within},
    project_support::CountingProject,
};

#[sandboxed]
#[test]
fn d3_servers_that_do_not_work_are_named_by_serve_and_by_a_search() {
    let project = CountingProject::with("");
    let path = project.place.path().join("work/.mcp.json");
    let mut servers: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    servers["mcpServers"]["gone"] = json!({"command": "belljar-no-such-program"});
    servers["mcpServers"]["empty"] = json!({"command": "npx"});
    servers["mcpServers"]["loud"] =
        json!({"command": "python3", "args": ["-S", "-c", "raise SystemExit('no licence')"]});
    fs::write(&path, servers.to_string()).unwrap();
    let server = serve_in(&project.place, &[]);
    let log = project.place.path().join("serve.log");
    let said = within("the failures", || {
        let said = fs::read_to_string(&log).ok()?;
        let all = ["gone", "empty", "loud"];
        let named = |name: &&str| said.contains(&format!("server `{name}` is not available"));
        all.iter().all(named).then_some(said)
    });
    assert!(said.contains("`npx` starts a package, and `args` names none"), "{said}");
    assert!(said.contains("| no licence"), "{said}");
    assert!(!said.contains("server `count`"), "{said}");
    let found = server.call("search_tools", &json!({"intent": "add two numbers"}));
    let found = &found["structuredContent"];
    assert_eq!(found["tools"][0]["name"], "count__add", "{found:#}");
    let mut missing: Vec<&str> = found["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["server"].as_str().unwrap())
        .collect();
    missing.sort_unstable();
    assert_eq!(missing, ["empty", "gone", "loud"]);
}

/// E1: on a terminal, `serve` says what it serves and how to connect. In a pipe it says nothing of that.
#[sandboxed]
#[test]
fn e1_serve_on_a_terminal_says_what_it_serves_and_how_to_connect() {
    let tools = "code can call the tools of count (";
    let project = CountingProject::with("");
    let shown = until_shown(&project.place, tools, &["serve"]);
    assert!(shown.contains("serving MCP on standard input and output"), "{shown}");
    assert!(shown.contains("belljar serve --http 8420"), "{shown}");
    let shown = until_shown(&project.place, tools, &["serve", "--http", "127.0.0.1:0"]);
    assert!(shown.contains("Authorization: Bearer TOKEN"), "{shown}");
    let bare = Place::new();
    let shown = until_shown(&bare, "code can call no tools", &["serve", "--http", "127.0.0.1:0"]);
    assert!(shown.contains("no MCP servers are configured in .mcp.json"), "{shown}");
    let piped = project.place.belljar(&["serve"]);
    assert_eq!((piped.status, piped.stderr.as_str()), (Some(0), ""), "{piped:#?}");
}

/// A script that waits for the address must not find that of a host that was killed.
#[sandboxed]
#[test]
fn e3_the_address_of_a_killed_host_is_gone_when_the_next_one_starts() {
    let place = Place::new();
    let state = place.path().join("work/.belljar");
    let server = serve_in(&place, &[]);
    let first = fs::read_to_string(state.join("address")).unwrap();
    server.kill();
    assert_eq!(fs::read_to_string(state.join("address")).unwrap(), first);
    // It cannot listen, so it writes no address of its own.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = place.belljar(&["serve", "--http", &port]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(!state.join("address").exists());
    // Control: the address of a host that lives stays.
    let server = serve_in(&place, &[]);
    let refused = place.belljar(&["serve", "--http", &format!("localhost:{port}")]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(fs::read_to_string(state.join("address")).unwrap().starts_with(server.address()));
}
