//! D1, D6, H2, E5: the tools of a project, from a shell and from code.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{BELLJAR, Place},
    project_support::CountingProject,
};

#[test]
fn d1_tools_are_listed_with_what_policy_says_of_them() {
    let project = CountingProject::trusting(
        "[permissions]\nallow = ['count__append']\nask = ['count__s*']\ndeny = ['count__fail']\n",
    );
    let listed = project.belljar(&["tools", "list"]);
    assert_eq!((listed.status, listed.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(listed.stdout, @r"
    NAME           POLICY  DESCRIPTION
    count__add     allow   Add two numbers.
    count__append  allow   Append a line to the file
    count__big     allow   Return many rows
    count__echo    allow   Return what was given
    count__fail    deny    Fail with a message
    count__slow    ask     Wait for some milliseconds
    ");
    let state = project.place.path().join("work/.belljar");
    assert_eq!(fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn d1_a_server_nobody_trusts_is_asked_about_by_default() {
    let project = CountingProject::with("");
    let listed = project.belljar(&["tools", "list", "count", "--json"]).json();
    assert_eq!(listed["tools"][0]["name"], "count__add");
    assert_eq!(listed["tools"][0]["policy"], "ask");
    assert_eq!(listed["failed"], json!([]));
}

#[test]
fn d1_a_tool_is_described_and_found() {
    let project = CountingProject::with("");
    let described = project.belljar(&["tools", "describe", "count__add", "--json"]).json();
    assert_eq!(described["inputSchema"]["required"], json!(["a", "b"]));
    let described = project.belljar(&["tools", "describe", "count__add"]);
    assert_eq!(described.status, Some(0));
    assert!(described.stdout.starts_with("count__add\nAdd two numbers.\n"), "{described:#?}");
    let found = project.belljar(&["tools", "search", "append lines", "-k", "1", "--json"]).json();
    assert_eq!(found[0]["name"], "count__append");
    let unknown = project.belljar(&["tools", "describe", "count__ad"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (Some(1), ""));
    assert!(unknown.stderr.contains("count__add"), "{unknown:#?}");
}

#[test]
fn d1_a_tool_is_called_from_a_shell_the_way_code_calls_it() {
    let project = CountingProject::trusting("[permissions]\ndeny = ['count__append']\n");
    let called = project.belljar(&["tools", "call", "count__add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!((called.status, called.stdout.as_str()), (Some(0), "{\"sum\": 3}\n"));
    let arguments = ["tools", "call", "count.add", "--arg", "a=1", "--arg", "b=2", "--json"];
    let called = project.belljar(&arguments).json();
    assert_eq!(called, json!({"success": true, "result": {"sum": 3}, "error": null}));
    let wrong = project.belljar(&["tools", "call", "count__add", r#"{"a": 1, "c": 2}"#]);
    assert_eq!((wrong.status, wrong.stdout.as_str()), (Some(1), ""));
    assert!(wrong.stderr.contains("tool.arguments"), "{wrong:#?}");
    let denied = project.belljar(&["tools", "call", "count__append", "--arg", "text=x", "--json"]);
    assert_eq!(denied.status, Some(1));
    assert_eq!(denied.json()["error"]["code"], "permission.tool");
    assert_eq!(project.counted(), Vec::<String>::new());
    let rows = project.belljar(&["audit", "--tool", "count__a*", "--json"]).json();
    let told = |row: usize, key: &str| rows[row][key].clone();
    assert_eq!(
        (told(0, "tool"), told(0, "outcome")),
        ("count__append".into(), "permission.tool".into())
    );
    // A call that policy was never asked about leaves a row, too.
    let refused = (told(1, "tool"), told(1, "decision"), told(1, "outcome"));
    assert_eq!(refused, ("count__add".into(), "refused".into(), "tool.arguments".into()));
    assert_eq!((told(2, "tool"), told(2, "decision")), ("count__add".into(), "allowed".into()));
}

#[test]
fn d1_types_are_written_for_both_languages_with_what_was_seen_of_results() {
    let project = CountingProject::trusting("");
    let called = project.belljar(&["tools", "call", "count__big", r#"{"rows": 2}"#]);
    assert_eq!(called.status, Some(0), "{called:#?}");
    let typescript = project.belljar(&["tools", "types"]);
    assert_eq!((typescript.status, typescript.stderr.as_str()), (Some(0), ""));
    for line in
        ["    add(args: {\n", "    }): Promise<{\n      sum: number;\n", "      name: string;\n"]
    {
        assert!(typescript.stdout.contains(line), "{line}: {}", typescript.stdout);
    }
    let python = project.belljar(&["tools", "types", "--language", "python", "count"]).stdout;
    assert!(python.contains("    def append(self, *, text: str) -> Any:\n"), "{python}");
    let unknown = project.belljar(&["tools", "types", "nobody"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(unknown.stderr, @"error: there is no MCP server `nobody`; configured servers: count");
}

#[sandboxed]
#[test]
fn d1_code_calls_tools_and_sees_their_failures() {
    let project = CountingProject::trusting("");
    let code = "const {sum} = await mcp.count.add({a: 20, b: 22}); sum";
    assert_eq!(project.run(code, &[])["result"], 42);
    let result = project.run("await mcp.count.fail({message: 'no luck'})", &[]);
    assert_eq!(result["error"]["type"], "ToolError");
    assert_eq!(result["error"]["toolName"], "count__fail");
    let python = project.belljar(&["run", "-l", "py", "-c", "mcp.count.add(a=1, b=2)['sum']"]);
    assert_eq!(python.stdout, "3\n");
}

#[sandboxed]
#[test]
fn d6_a_run_may_use_only_the_tools_it_was_given_and_those_without_asking() {
    let project = CountingProject::with("");
    let only = ["--tool", "count__app*"];
    let result = project.run("await mcp.count.append({text: 'given'})", &only);
    assert_eq!(result["result"], json!({"appended": "given"}));
    let result = project.run("await mcp.count.add({a: 1, b: 1})", &only);
    assert_eq!(
        (&result["error"]["type"], &result["error"]["code"]),
        (&json!("PermissionError"), &json!("permission.tool"))
    );
    assert_eq!(project.counted(), ["given"]);
    let other = project.belljar(&["run", "-c", "1", "--tool", "nobody__x"]);
    assert_eq!((other.status, other.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(other.stderr, @"error: --tool nobody__x: there is no MCP server `nobody`; configured servers: count");
}

#[sandboxed]
#[test]
fn d6_no_project_allows_what_its_user_denies() {
    let project = CountingProject::trusting("[permissions]\nallow = ['*']\n");
    let user = "[permissions]\ndeny = [{tool = 'count__append', when = {text = 'rm *'}}]\n";
    project.place.file(".config/belljar/belljar.toml", user);
    let result = project.run("await mcp.count.append({text: 'rm -rf'})", &[]);
    assert_eq!(result["error"]["code"], "permission.tool");
    let result = project.run("await mcp.count.append({text: 'fine'})", &[]);
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(project.counted(), ["fine"]);
}

#[sandboxed]
#[test]
fn e5_a_large_value_is_stored_and_comes_back_whole() {
    let project = CountingProject::trusting("");
    let code = "await mcp.count.big({rows: 1000})";
    let result = project.run(code, &["--max-output-tokens", "200"]);
    let handle = result["result"]["handle"].as_str().expect("there is a handle");
    assert_eq!(
        (&result["result"]["count"], &result["truncated"]["result"]),
        (&json!(1000), &json!(true))
    );
    assert!(result["result"].to_string().len() < 1000, "{result:#}");
    let blob = project.belljar(&["blob", handle]);
    assert_eq!(blob.json().as_array().map(Vec::len), Some(1000));
    let path = project.place.path().join("rows.json");
    let written = project.belljar(&["blob", handle, "--output", path.to_str().unwrap()]);
    assert_eq!((written.status, written.stdout.as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(path).unwrap(), blob.stdout);
    let loaded = project.run(&format!("(await load('{handle}'))[999].name"), &[]);
    assert_eq!(loaded["result"], "row 999", "{loaded:#}");
    let unknown = project.belljar(&["blob", "blob_0000"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (Some(1), ""));
}

#[sandboxed]
#[test]
fn h2_only_what_merely_read_is_answered_from_memory() {
    let project = CountingProject::trusting("[permissions]\nallow = ['*']\n");
    let cached = |code: &str, more: &[&str]| project.run(code, more)["cached"].clone();
    let reads = "(await mcp.count.add({a: 1, b: 2})).sum";
    assert_eq!(cached(reads, &["--cache"]), false);
    assert_eq!(cached(reads, &["--cache=1h"]), true);
    assert_eq!(cached(reads, &[]), false);
    let writes = "await mcp.count.append({text: 'x'})";
    assert_eq!(cached(writes, &["--cache"]), false);
    assert_eq!(cached(writes, &["--cache"]), false);
    assert_eq!(project.counted(), ["x", "x"]);
    // A call that was allowed then may be denied by now.
    let denied = "[mcp_servers.count]\ntrusted = true\n[permissions]\ndeny = ['count__add']\n";
    project.place.file("work/belljar.toml", denied);
    let refused = project.run(reads, &["--cache=1h"]);
    assert_eq!(refused["error"]["code"], "permission.tool", "{refused:#}");
}

#[sandboxed]
#[test]
fn h2_what_a_person_allowed_once_is_not_answered_from_memory() {
    let project = CountingProject::trusting("[permissions]\nask = ['count__add']\n");
    let reads = "(await mcp.count.add({a: 1, b: 2})).sum";
    let mut first = project.start(reads, &["--cache=1h"]);
    let id = first.approval();
    assert_eq!(project.belljar(&["approvals", "approve", &id]).status, Some(0));
    assert_eq!(first.end().json()["result"], 3);
    let mut again = project.start(reads, &["--cache=1h"]);
    let id = again.approval();
    assert_eq!(project.belljar(&["approvals", "deny", &id]).status, Some(0));
    assert_eq!(again.end().json()["error"]["code"], "approval.denied");
}

#[sandboxed]
#[test]
fn d1_a_variable_that_is_not_set_is_an_error_of_its_server_only() {
    let project = CountingProject::trusting("");
    let path = project.place.path().join("work/.mcp.json");
    let mut servers: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    servers["mcpServers"]["other"] =
        json!({"command": "true", "env": {"TOKEN": "${BELLJAR_UNSET}"}});
    fs::write(&path, servers.to_string()).unwrap();
    assert_eq!(project.belljar(&["run", "-c", "1 + 1"]).stdout, "2\n");
    assert_eq!(project.run("(await mcp.count.add({a: 1, b: 2})).sum", &[])["result"], 3);
    let result = project.run("await mcp.other.anything({})", &[]);
    assert_eq!(result["error"]["code"], "tool.unavailable");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("needs the variable `BELLJAR_UNSET`"), "{message}");
    let listed = project.belljar(&["tools", "list"]);
    // The working server is listed, and the status says that not all work.
    assert_eq!(listed.status, Some(1));
    assert!(listed.stdout.contains("count__add"), "{listed:#?}");
    insta::assert_snapshot!(listed.stderr, @"error: server `other` is not available: `env.TOKEN` of server `other` needs the variable `BELLJAR_UNSET`, which is not set; set it, or give a default: ${BELLJAR_UNSET:-…}");
    let listed = project.belljar(&["tools", "list", "other"]);
    assert_eq!((listed.status, listed.stdout.as_str()), (Some(1), ""));
}

#[sandboxed]
#[test]
fn a_run_without_tools_leaves_nothing_in_a_bare_directory() {
    let place = Place::new();
    assert_eq!(place.belljar(&["run", "-c", "1 + 1"]).stdout, "2\n");
    assert_eq!(fs::read_dir(place.path().join("work")).unwrap().count(), 0);
    for command in [&["runs"][..], &["audit"], &["approvals"], &["tools", "list"]] {
        let outcome = place.belljar(command);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(0), ""), "{command:?}");
    }
    assert_eq!(fs::read_dir(place.path().join("work")).unwrap().count(), 0);
}

#[test]
fn what_a_project_says_of_its_tools_is_checked_with_the_line() {
    let place = Place::new();
    let told = |text: &str| {
        place.file("work/belljar.toml", text);
        let outcome = place.belljar(&["run", "-c", "1"]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""), "{text}");
        outcome.stderr.replace(place.path().to_str().unwrap(), "[place]")
    };
    insta::assert_snapshot!(told("[mcp_servers.a]\ncomand = 'x'\n"), @r"
    error: invalid configuration [place]/work/belljar.toml: TOML parse error at line 2, column 1
      |
    2 | comand = 'x'
      | ^^^^^^
    unknown field `comand`, expected one of `command`, `args`, `env`, `cwd`, `type`, `url`, `headers`, `disabled`, `trusted`, `max_concurrent`, `rate_per_minute`, `timeout`, `idle_seconds`, `idempotent`, `read_only`
    ");
    insta::assert_snapshot!(told("[permissions]\nallow = ['a__*', {tool = 'b__*', wen = {}}]\n"), @r"
    error: invalid configuration [place]/work/belljar.toml: TOML parse error at line 2, column 34
      |
    2 | allow = ['a__*', {tool = 'b__*', wen = {}}]
      |                                  ^^^
    unknown field `wen`, expected `tool` or `when`
    ");
    insta::assert_snapshot!(told("[permissions]\napproval_timeout = 'soon'\n"), @"error: [place]/work/belljar.toml, line 2: permissions.approval_timeout: `soon` does not start with a number; write for example 300ms, 30s, 5m or 1h (a plain number is seconds)");
    insta::assert_snapshot!(told("[cache]\nttl = 0\n"), @"error: [place]/work/belljar.toml, line 2: cache.ttl: must be more than zero");
    place.file("work/.mcp.json", "{\"mcpServers\": [");
    insta::assert_snapshot!(told(""), @"error: [place]/work/.mcp.json: not a list of MCP servers: EOF while parsing a list at line 1 column 16");
}

/// A server for a directory that had nothing of Belljar's in it when it started.
#[sandboxed]
#[test]
fn d7_no_client_reaches_what_is_kept_even_if_its_server_is_the_first_to_keep_anything() {
    let place = Place::new();
    place.file("work/a.txt", "a");
    let work = place.path().canonicalize().unwrap().join("work");
    let code = format!("return fs.readdirSync({:?})", work.to_str().unwrap());
    let execute = |id: u32, grant: Value| {
        let arguments = json!({"code": code, "sandbox_config": grant});
        let params = json!({"name": "execute_code", "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let mut server = place
        .command(BELLJAR)
        .args(["serve", "--stdio", "--read"])
        .arg(&work)
        .arg("--write")
        .arg(&work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program under test starts");
    let mut input = server.stdin.take().expect("a pipe");
    let mut output = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let mut ask = |message: Value| -> Value {
        writeln!(input, "{message}").expect("it listens");
        let answer = output.next().expect("it answers").expect("in text");
        serde_json::from_str(&answer).expect("and JSON")
    };
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}));
    let read = ask(execute(2, json!({"allowedReadPaths": [work]})));
    let read = &read["result"]["structuredContent"];
    assert_eq!(read["result"], json!(["a.txt"]), "{read:#}");
    let write = ask(execute(3, json!({"allowWrite": [work]})));
    let write = &write["result"]["structuredContent"];
    assert_eq!(write["error"]["code"], "permission.file", "{write:#}");
    drop(input);
    server.wait().expect("it ends with its client");
    assert!(work.join(".belljar/belljar.db").is_file());
}

#[sandboxed]
#[test]
fn d7_no_code_sees_what_is_kept_even_if_its_run_is_the_first_to_keep_anything() {
    let place = Place::new();
    place.file("work/a.txt", "a");
    let code = "import os; sorted(os.listdir('/work'))";
    let arguments = ["run", "-l", "python", "-c", code, "--durable", "--workspace", ".", "--json"];
    let result = place.belljar(&arguments).json();
    assert_eq!(result["result"], json!(["a.txt"]), "{result:#}");
    assert!(place.path().join("work/.belljar/belljar.db").is_file());
}
