//! Servers people use: their tools are listed, and one of them is called.

use std::{fs, process::Command};

use belljar_tools::{RawServer, Tool, ToolAnswer};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::harness::{Host, installed, only_text, server, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("real::filesystem", filesystem),
        trial("real::everything", everything),
        trial("real::memory", memory),
        trial("real::sequential_thinking", sequential_thinking),
        trial("real::git", git),
        trial("real::time", time),
        trial("real::fetch", fetch),
        trial("real::sqlite", sqlite),
        trial("real::twenty_megabytes_through_filesystem", twenty_megabytes),
    ]
}

fn npm(name: &str, arguments: &[&str]) -> RawServer {
    server(&installed(&format!("npm/node_modules/.bin/mcp-server-{name}")), arguments)
}

fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn filesystem() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    fs::write(root.path().join("a.txt"), "hello")?;
    let host = Host::with(npm("filesystem", &[&root.path().to_string_lossy()]));
    let tools = host.upstreams.tools("s").await?;
    assert!(names(&tools).contains(&"read_text_file"), "{:?}", names(&tools));
    let read = tools.iter().find(|tool| tool.name == "read_text_file").ok_or("no such tool")?;
    assert_eq!(read.annotations.read_only, Some(true));
    let path = root.path().join("a.txt");
    let text = host.text("read_text_file", json!({"path": path})).await;
    assert_eq!(text, "hello");
    // The text of a tool about its failure is an answer.
    let outside = host.call("read_text_file", json!({"path": "/etc/hostname"})).await?;
    assert!(outside.is_error, "{outside:?}");
    let version = host.upstreams.version("s").await?;
    assert_eq!(version.name, "secure-filesystem-server");
    host.upstreams.shutdown().await;
    Ok(())
}

async fn everything() -> Result<(), Failed> {
    let host = Host::with(npm("everything", &[]));
    let tools = host.upstreams.tools("s").await?;
    assert!(tools.len() >= 8, "{:?}", names(&tools));
    assert_eq!(host.text("echo", json!({"message": "hi"})).await, "Echo: hi");
    host.upstreams.shutdown().await;
    Ok(())
}

async fn memory() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    let file = root.path().join("memory.jsonl");
    let mut raw = npm("memory", &[]);
    raw.env.insert("MEMORY_FILE_PATH".into(), file.to_string_lossy().into_owned());
    let host = Host::with(raw);
    assert!(host.upstreams.tools("s").await?.len() >= 9);
    let entity = json!({"name": "bell", "entityType": "jar", "observations": ["glass"]});
    host.call("create_entities", json!({"entities": [entity]})).await?;
    assert!(fs::read_to_string(&file)?.contains("glass"), "the configured variable was not used");
    let answer = host.call("read_graph", json!({})).await?;
    assert!(answer.structured.is_some_and(|graph| graph["entities"][0]["name"] == "bell"));
    host.upstreams.shutdown().await;
    Ok(())
}

async fn sequential_thinking() -> Result<(), Failed> {
    let host = Host::with(npm("sequential-thinking", &[]));
    assert_eq!(names(&host.upstreams.tools("s").await?), ["sequentialthinking"]);
    let thought = json!({"thought": "hm", "nextThoughtNeeded": false, "thoughtNumber": 1,
                         "totalThoughts": 1});
    let answer = host.call("sequentialthinking", thought).await?;
    assert!(!answer.is_error, "{answer:?}");
    host.upstreams.shutdown().await;
    Ok(())
}

async fn git() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    let repository = root.path().to_string_lossy().into_owned();
    let script =
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first";
    #[expect(clippy::disallowed_methods, reason = "something to look at")]
    let made = Command::new("sh").args(["-c", script]).current_dir(root.path()).status()?;
    assert!(made.success());
    let host =
        Host::with(server(&installed("python/bin/mcp-server-git"), &["--repository", &repository]));
    assert!(names(&host.upstreams.tools("s").await?).contains(&"git_log"));
    let answer = host.call("git_log", json!({"repo_path": repository})).await?;
    assert!(first_text(&answer).contains("first"), "{answer:?}");
    host.upstreams.shutdown().await;
    Ok(())
}

async fn time() -> Result<(), Failed> {
    let host = Host::with(server(&installed("python/bin/mcp-server-time"), &[]));
    assert_eq!(host.upstreams.tools("s").await?.len(), 2);
    let answer = host.call("get_current_time", json!({"timezone": "Europe/Berlin"})).await?;
    assert!(first_text(&answer).contains("Europe/Berlin"), "{answer:?}");
    host.upstreams.shutdown().await;
    Ok(())
}

async fn fetch() -> Result<(), Failed> {
    let host = Host::with(server(&installed("python/bin/mcp-server-fetch"), &[]));
    assert_eq!(names(&host.upstreams.tools("s").await?), ["fetch"]);
    // Nothing listens there: the server says so, and that is an answer or a refusal.
    let answer = host.call("fetch", json!({"url": "http://127.0.0.1:1/"})).await;
    let failed = answer.map_or_else(|error| !error.may_have_happened(), |answer| answer.is_error);
    assert!(failed);
    host.upstreams.shutdown().await;
    Ok(())
}

async fn sqlite() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    let file = root.path().join("a.db").to_string_lossy().into_owned();
    let host =
        Host::with(server(&installed("sqlite/bin/mcp-server-sqlite"), &["--db-path", &file]));
    assert!(names(&host.upstreams.tools("s").await?).contains(&"read_query"));
    host.call("create_table", json!({"query": "CREATE TABLE t (n INTEGER)"})).await?;
    host.call("write_query", json!({"query": "INSERT INTO t VALUES (41), (1)"})).await?;
    let sum = host.text("read_query", json!({"query": "SELECT sum(n) AS n FROM t"})).await;
    assert_eq!(sum, "[{'n': 42}]");
    host.upstreams.shutdown().await;
    Ok(())
}

async fn twenty_megabytes() -> Result<(), Failed> {
    const BYTES: usize = 20_000_000;
    let root = tempfile::tempdir()?;
    let path = root.path().join("big.log");
    let line = "2026-01-01 INFO \"quoted\" and a \\ and a tab\t\n";
    fs::write(&path, line.repeat(BYTES / line.len() + 1))?;
    let host = Host::with(npm("filesystem", &[&root.path().to_string_lossy()]));
    let answer = host.call("read_text_file", json!({"path": path})).await?;
    let structured = answer.structured.clone().ok_or("nothing structured")?;
    let text = only_text(answer);
    assert!(text.len() >= BYTES, "{} bytes", text.len());
    assert!(text == fs::read_to_string(&path)?, "another text");
    assert_eq!(structured["content"].as_str().map(str::len), Some(text.len()));
    host.upstreams.shutdown().await;
    Ok(())
}

fn first_text(answer: &ToolAnswer) -> &str {
    match answer.content.first() {
        Some(belljar_tools::ContentBlock::Text { text }) => text,
        other => panic!("not a text: {other:?}"),
    }
}
