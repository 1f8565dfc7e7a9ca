//! D1: which file defines a server.

use std::{collections::BTreeMap, path::Path};

use belljar_tools::{RawServer, read_mcp_json};

use super::{
    ConfigFiles, ConfiguredServer, DefaultsOrder, RawConfig, ServerOrigin, ServerOverrideError,
    merge,
};

fn file(name: &str, text: &str) -> RawConfig {
    RawConfig::parse(Path::new(name), text.to_owned()).expect("the test's file is valid")
}

fn foreign(text: &str) -> BTreeMap<String, ConfiguredServer> {
    let servers = read_mcp_json(text).expect("the test's file is valid").into_iter();
    servers
        .map(|(name, raw)| {
            let directory = Some("/project".into());
            (name, ConfiguredServer { raw, directory, owner: ServerOrigin::Project })
        })
        .collect()
}

fn merged(user: &str, mcp_json: &str, project: &str) -> BTreeMap<String, ConfiguredServer> {
    try_merged(user, mcp_json, project).expect("the test's files agree")
}

fn try_merged(
    user: &str,
    mcp_json: &str,
    project: &str,
) -> Result<BTreeMap<String, ConfiguredServer>, ServerOverrideError> {
    let (user, project) = (file("/user/belljar.toml", user), file("/other/belljar.toml", project));
    let files = ConfigFiles {
        operator: Some(&user),
        project: Some(&project),
        order: DefaultsOrder::ProjectFirst,
    };
    merge(files, foreign(mcp_json))
}

fn commands(servers: &BTreeMap<String, ConfiguredServer>) -> Vec<(&str, &str)> {
    let command = |server: &ConfiguredServer| server.raw.command.clone().map(String::leak);
    servers.iter().map(|(name, one)| (&**name, command(one).map_or("", |text| &*text))).collect()
}

#[test]
fn d1_the_nearest_definition_wins() {
    let servers = merged(
        "[mcp_servers.a]\ncommand = 'user'\n[mcp_servers.b]\ncommand = 'user'\n\
         [mcp_servers.c]\ncommand = 'user'\n",
        r#"{"mcpServers": {"b": {"command": "json"}, "c": {"command": "json"}}}"#,
        "[mcp_servers.c]\ncommand = 'project'\n",
    );
    assert_eq!(commands(&servers), [("a", "user"), ("b", "json"), ("c", "project")]);
    let directories: Vec<_> = servers.values().map(|one| one.directory.as_deref()).collect();
    assert_eq!(directories, [None, Some(Path::new("/project")), Some(Path::new("/other"))]);
}

#[test]
fn d1_an_entry_without_a_transport_amends_what_is_there() {
    let servers = merged(
        "[mcp_servers.a]\ntimeout = 5\nread_only = ['get_*']\n",
        r#"{"mcpServers": {"a": {"command": "json", "args": ["1"], "env": {"A": "1", "B": "1"}}}}"#,
        "[mcp_servers.a]\ntrusted = true\ntimeout = 7\nread_only = ['list_*']\nenv = {B = '2'}\n",
    );
    let expected = RawServer {
        command: Some("json".to_owned()),
        args: vec!["1".to_owned()],
        env: [("A", "1"), ("B", "2")].map(|(name, value)| (name.into(), value.into())).into(),
        trusted: true,
        timeout: Some(7),
        read_only: vec!["get_*".to_owned(), "list_*".to_owned()],
        ..RawServer::default()
    };
    assert_eq!(servers["a"].raw, expected);
}

#[test]
fn d1_an_amendment_of_nothing_is_still_told_about() {
    let servers = merged("", r#"{"mcpServers": {}}"#, "[mcp_servers.typo]\ntrusted = true\n");
    assert_eq!(commands(&servers), [("typo", "")]);
}

/// The user's servers have the user's credentials: a project may restrict them and add nothing.
#[test]
fn d1_a_project_only_takes_from_a_server_of_the_user() {
    let user = "[mcp_servers.a]\ncommand = 'user'\ntimeout = 9\nmax_concurrent = 2\n";
    let project =
        "[mcp_servers.a]\ndisabled = true\ntimeout = 5\nmax_concurrent = 8\nrate_per_minute = 3\n";
    let raw = &merged(user, r#"{"mcpServers": {}}"#, project)["a"].raw;
    assert!(raw.disabled);
    assert_eq!((raw.timeout, raw.max_concurrent, raw.rate_per_minute), (Some(5), Some(2), Some(3)));
    for (key, line) in [
        ("args", "args = ['-e', 'evil']"),
        ("env", "env = {NODE_OPTIONS = '--require evil'}"),
        ("headers", "headers = {X = 'y'}"),
        ("cwd", "cwd = '/tmp'"),
        ("trusted", "trusted = true"),
        ("idempotent", "idempotent = ['*']"),
        ("read_only", "read_only = ['*']"),
        ("idle_seconds", "idle_seconds = 1"),
        ("type", "type = 'http'"),
    ] {
        let project = format!("[mcp_servers.a]\n{line}\n");
        let error = try_merged(user, r#"{"mcpServers": {}}"#, &project).expect_err(key);
        assert_eq!(error.key, key);
        // Control: a project may change its own server.
        let own = format!("[mcp_servers.b]\n{line}\n");
        try_merged(user, r#"{"mcpServers": {"b": {"command": "x"}}}"#, &own).expect(key);
    }
    // A server with a definition of its own takes over nothing from the user's.
    let user = "[mcp_servers.a]\ncommand = 'user'\nenv = {TOKEN = 'secret'}\n";
    let raw = &merged(user, r#"{"mcpServers": {"a": {"command": "other"}}}"#, "")["a"].raw;
    assert_eq!((raw.command.as_deref(), raw.env.len()), (Some("other"), 0));
}

#[test]
fn s5_servers_of_a_directory_above_are_not_the_projects() {
    let json = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    let owners = |root: &str, line: &str| {
        let project = file(&format!("{root}/belljar.toml"), &format!("[mcp_servers.a]\n{line}\n"));
        let order = DefaultsOrder::ProjectFirst;
        let files = ConfigFiles { operator: None, project: Some(&project), order };
        merge(files, foreign(json)).map(|servers| servers["a"].owner)
    };
    assert_eq!(owners("/project/clone", "timeout = 1"), Ok(ServerOrigin::Outside));
    assert!(owners("/project/clone", "trusted = true").is_err());
    // Controls: beside the project, above it, and a directory whose name only starts alike.
    for root in ["/project", "/", "/project-2/x"] {
        assert_eq!(owners(root, "trusted = true"), Ok(ServerOrigin::Project), "{root}");
    }
}
