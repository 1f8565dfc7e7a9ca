//! Settings of servers in files, and the servers they make.

use std::{collections::BTreeMap, path::Path};

use super::{RawServer, ServerSpec, Surroundings, TransportSpec, read_mcp_json};

fn variables() -> BTreeMap<String, String> {
    let pairs = [
        ("PATH", "/usr/bin"),
        ("HOME", "/home/me"),
        ("LC_ALL", "C.UTF-8"),
        ("XDG_RUNTIME_DIR", "/run/user/1"),
        ("TOKEN", "s3cret"),
        ("EMPTY", ""),
        ("NESTED", "${TOKEN}"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn check_json(text: &str) -> Result<Vec<ServerSpec>, String> {
    let variables = variables();
    let around = Surroundings { variables: &variables, directory: Path::new("/project") };
    let servers = read_mcp_json(text).map_err(|error| error.to_string())?;
    let specs = servers.into_iter().map(|(name, raw)| ServerSpec::check(&name, raw, around));
    specs.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn check(name: &str, raw: RawServer) -> Result<ServerSpec, String> {
    let variables = variables();
    let around = Surroundings { variables: &variables, directory: Path::new("/project") };
    ServerSpec::check(name, raw, around).map_err(|error| error.to_string())
}

fn table(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn servers_of_other_clients_are_read_as_they_write_them() {
    let servers = check_json(
        r#"{"theme": "dark", "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server", 8080], "env": {"KEY": "${TOKEN}", "N": 1},
                      "cwd": "sub", "autoApprove": ["*"], "timeout": 3},
            "remote": {"type": "streamable-http", "url": "https://example.com/mcp",
                       "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "plain": {"url": "http://localhost:1/mcp"}}}"#,
    )
    .unwrap();
    let names: Vec<_> = servers.iter().map(ServerSpec::name).collect();
    assert_eq!(names, ["files", "plain", "remote"]);
    assert_eq!(
        servers[0].transport(),
        &TransportSpec::Stdio {
            command: "npx".into(),
            arguments: vec!["-y".into(), "server".into(), "8080".into()],
            environment: table(&[("KEY", "s3cret"), ("N", "1")]),
            inherited: table(&[
                ("HOME", "/home/me"),
                ("LC_ALL", "C.UTF-8"),
                ("PATH", "/usr/bin"),
                ("XDG_RUNTIME_DIR", "/run/user/1"),
            ]),
            directory: "/project/sub".into(),
        }
    );
    assert_eq!(
        servers[2].transport(),
        &TransportSpec::Http {
            url: "https://example.com/mcp".into(),
            headers: table(&[("Authorization", "Bearer s3cret")]),
        }
    );
}

#[test]
fn the_key_of_vs_code_is_known() {
    let servers =
        check_json(r#"{"servers": {"a": {"type": "stdio", "command": "${env:HOME}/a"}}}"#);
    let servers = servers.unwrap();
    assert!(
        matches!(servers[0].transport(), TransportSpec::Stdio { command, .. } if command == "/home/me/a")
    );
}

#[test]
fn variables_are_filled_in_once() {
    let expanded = |text: &str| {
        let raw = RawServer { command: Some(text.to_owned()), ..RawServer::default() };
        check("a", raw).map(|spec| match spec.transport {
            TransportSpec::Stdio { command, .. } => command,
            TransportSpec::Http { .. } => String::new(),
        })
    };
    assert_eq!(expanded("a${TOKEN}b${TOKEN}").unwrap(), "as3cretbs3cret");
    assert_eq!(expanded("${NESTED}").unwrap(), "${TOKEN}");
    assert_eq!(expanded("${NONE:-x:-y}").unwrap(), "x:-y");
    assert_eq!(expanded("${NONE:-}").unwrap(), "");
    assert_eq!(expanded("${EMPTY:-x}").unwrap(), "x");
    assert_eq!(expanded("${EMPTY}").unwrap(), "");
    assert_eq!(expanded("$TOKEN ${TOKEN").unwrap(), "$TOKEN ${TOKEN");
    assert_eq!(
        expanded("${NONE}").unwrap_err(),
        "`command` of server `a` needs the variable `NONE`, which is not set; set it, or give a \
         default: ${NONE:-…}"
    );
    assert_eq!(
        expanded("${input:key}").unwrap_err(),
        "`command` of server `a` has `${input:key}` in it, which is not a variable"
    );
}

#[test]
fn an_unset_variable_is_named_with_its_place() {
    let raw = RawServer {
        command: Some("a".into()),
        env: table(&[("KEY", "${MISSING}")]),
        ..RawServer::default()
    };
    let error = check("github", raw).unwrap_err();
    assert!(
        error.starts_with("`env.KEY` of server `github` needs the variable `MISSING`"),
        "{error}"
    );
}

#[test]
fn names_that_cannot_be_part_of_a_tools_name_are_refused_with_a_better_one() {
    let refused = |name: &str| {
        let raw = RawServer { command: Some("a".into()), ..RawServer::default() };
        check(name, raw).unwrap_err()
    };
    assert_eq!(
        refused("my server.v2"),
        "the server name `my server.v2` has characters other than A-Z, a-z, 0-9, `_` and `-`; rename \
         it, for example to `my-server-v2`"
    );
    assert!(refused("a__b").ends_with("for example to `a-b`"));
    assert!(refused("a_").ends_with("for example to `a`"));
    assert!(refused("belljar").ends_with("for example to `belljar-server`"));
    assert!(refused("").ends_with("for example to `server`"));
    assert!(refused("日本").ends_with("for example to `server`"));
    assert!(refused(&"x".repeat(41)).ends_with(&format!("for example to `{}`", "x".repeat(40))));
    let raw = RawServer { command: Some("a".into()), ..RawServer::default() };
    assert!(check(&"x".repeat(40), raw).is_ok());
}

#[test]
fn transports_that_cannot_be_are_refused() {
    let refused =
        |text: &str| check_json(&format!(r#"{{"mcpServers": {{"a": {text}}}}}"#)).unwrap_err();
    assert!(
        refused(r#"{"type": "sse", "url": "http://x/sse"}"#)
            .starts_with("server `a` has type `sse`")
    );
    assert!(
        refused(r#"{"type": "ws", "url": "ws://x"}"#)
            .starts_with("server `a` has type `ws`; known")
    );
    assert!(refused("{}").starts_with("server `a` has neither `command` nor `url`"));
    assert!(refused(r#"{"type": "http"}"#).starts_with("server `a` has neither"));
    assert!(refused(r#"{"command": "a", "url": "http://x"}"#).starts_with("server `a` has both"));
    assert!(refused(r#"{"url": "ftp://x"}"#).starts_with("`url` of server `a`"));
    assert_eq!(check_json("{}").unwrap_err(), "the file has no `mcpServers`");
    assert!(check_json("[").unwrap_err().starts_with("not a list of MCP servers: "));
}

#[test]
fn a_table_of_ours_is_strict_and_has_defaults() {
    let raw: RawServer = toml::from_str(
        "command = 'a'\ntrusted = true\nmax_concurrent = 2\nrate_per_minute = 30\ntimeout = 5\n\
         idle_seconds = 7\nidempotent = ['get_*']\nread_only = ['*']",
    )
    .unwrap();
    let spec = check("a", raw).unwrap();
    assert!(spec.trusted);
    assert_eq!((spec.max_concurrent, spec.rate_per_minute), (2, Some(30)));
    assert_eq!((spec.timeout.as_secs(), spec.idle.as_secs()), (5, 7));
    assert_eq!((spec.idempotent, spec.read_only), (vec!["get_*".into()], vec!["*".into()]));
    let spec = check("a", toml::from_str("command = 'a'").unwrap()).unwrap();
    assert_eq!((spec.trusted, spec.max_concurrent, spec.rate_per_minute), (false, 8, None));
    assert_eq!((spec.timeout.as_secs(), spec.idle.as_secs()), (60, 600));
    let error = toml::from_str::<RawServer>("command = 'a'\ntimeuot = 3").unwrap_err();
    assert!(error.message().starts_with("unknown field `timeuot`"), "{error}");
    let zero = toml::from_str("command = 'a'\nmax_concurrent = 0").unwrap();
    assert_eq!(check("a", zero).unwrap_err(), "`max_concurrent` of server `a` must be 1 or more");
}

#[test]
fn a_fingerprint_follows_what_is_connected_to_and_nothing_else() {
    let of = |text: &str| check("a", toml::from_str(text).unwrap()).unwrap().fingerprint();
    let first = of("command = 'a'\nargs = ['b', 'c']");
    assert_eq!(first, of("command = 'a'\nargs = ['b', 'c']\ntimeout = 3"));
    assert_ne!(first, of("command = 'a'\nargs = ['bc']"));
    assert_ne!(first, of("command = 'a'\nargs = ['b', 'c']\nenv = {K = 'v'}"));
    assert_ne!(of("url = 'http://a'"), of("url = 'http://a'\nheaders = {K = 'v'}"));
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let raw = RawServer {
        command: Some("a".into()),
        args: vec!["--key=${TOKEN}".into()],
        env: table(&[("KEY", "${TOKEN}")]),
        ..RawServer::default()
    };
    let shown = format!("{:?}", check("a", raw).unwrap());
    assert!(shown.contains("KEY") && !shown.contains("s3cret"), "{shown}");
}
