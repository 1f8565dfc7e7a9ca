//! Lists of tools: page by page, remembered, and asked for again when they change.

use belljar_tools::{RawServer, UpstreamError};
use libtest_mimic::{Failed, Trial};

use crate::harness::{Host, fixture, marked, new_mark, none, server, soon, trial};

/// The tools the fixture begins with, on three pages.
const TOOLS: usize = 14;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("lists::all_pages_are_read", all_pages),
        trial("lists::changes_are_noticed", || changes(fixture(&[]), "2025-11-25")),
        trial("lists::changes_of_a_modern_server_are_noticed", || {
            changes(fixture(&["--modern"]), "2026-07-28")
        }),
        trial("lists::a_list_is_remembered_without_a_server", remembered),
        trial("lists::a_remembered_list_is_checked_when_its_server_starts", checked),
        trial("lists::a_spoilt_file_is_not_believed", spoilt),
        trial("lists::a_server_that_fails_does_not_keep_the_others", one_fails),
        trial("lists::however_many_ask_one_server_is_started", started_once),
    ]
}

async fn all_pages() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    let tools = host.upstreams.tools("s").await?;
    assert_eq!(tools.len(), TOOLS);
    assert_eq!(tools[0].qualified_name(), "s__echo");
    let version = host.upstreams.version("s").await?;
    assert_eq!((version.name.as_str(), version.version.as_str()), ("fixture", "1.2.3"));
    Ok(())
}

async fn changes(raw: RawServer, protocol: &str) -> Result<(), Failed> {
    let host = Host::with(raw);
    assert_eq!(host.upstreams.tools("s").await?.len(), TOOLS);
    assert_eq!(host.upstreams.version("s").await?.protocol, protocol);
    let mut news = host.upstreams.changes();
    news.mark_unchanged();
    for round in 1..=3 {
        assert_eq!(host.text("add_tool", none()).await, "added");
        news.changed().await?;
        let tools = host.upstreams.tools("s").await?;
        assert_eq!(tools.len(), TOOLS + round);
    }
    Ok(())
}

async fn remembered() -> Result<(), Failed> {
    let mark = new_mark();
    let host = Host::with(fixture(&["--mark", &mark]));
    let first = host.upstreams.tools("s").await?;
    host.upstreams.shutdown().await;
    let again = host.again(fixture(&["--mark", &mark]));
    assert_eq!(again.tools("s").await?, first);
    assert_eq!(again.version("s").await?.name, "fixture");
    assert!(marked(&mark).is_empty(), "a server was started");
    // Another command is another server.
    let other = host.again(server("no-such-program", &[]));
    assert!(matches!(other.tools("s").await, Err(UpstreamError::NotStarted { .. })));
    Ok(())
}

async fn checked() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    host.upstreams.tools("s").await?;
    host.upstreams.shutdown().await;
    let file = cache_file(&host)?;
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    kept["tools"].as_array_mut().ok_or("no list")?.truncate(1);
    std::fs::write(&file, kept.to_string())?;
    let again = Host { upstreams: host.again(fixture(&[])), directory: host.directory };
    assert_eq!(again.upstreams.tools("s").await?.len(), 1);
    let mut news = again.upstreams.changes();
    again.text("calls", none()).await;
    news.changed().await?;
    assert_eq!(again.upstreams.tools("s").await?.len(), TOOLS);
    Ok(())
}

async fn spoilt() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    host.upstreams.tools("s").await?;
    let file = cache_file(&host)?;
    let good = std::fs::read_to_string(&file)?;
    let foreign = good.replace("\"server\":\"s\"", "\"server\":\"other\"");
    let future = good.replace("\"format\":1", "\"format\":2");
    for bad in [&good[..good.len() / 2], &foreign, &future, "", "null"] {
        std::fs::write(&file, bad)?;
        assert_eq!(host.again(fixture(&[])).tools("s").await?.len(), TOOLS);
    }
    Ok(())
}

fn cache_file(host: &Host) -> Result<std::path::PathBuf, Failed> {
    let mut files = std::fs::read_dir(host.directory.path().join("cache"))?;
    let file = files.next().ok_or("nothing is remembered")??.path();
    assert!(files.next().is_none());
    Ok(file)
}

async fn one_fails() -> Result<(), Failed> {
    let servers = [
        ("bad".to_owned(), server("no-such-program", &[])),
        ("good".to_owned(), fixture(&[])),
        ("modern".to_owned(), fixture(&["--modern"])),
    ];
    let host = Host::with_all(servers);
    let all = host.upstreams.all_tools(crate::harness::LONG).await;
    let found: Vec<_> = all
        .iter()
        .map(|(name, tools)| (name.as_str(), tools.as_ref().ok().map(|t| t.len())))
        .collect();
    assert_eq!(found, [("bad", None), ("good", Some(TOOLS)), ("modern", Some(TOOLS))]);
    Ok(())
}

async fn started_once() -> Result<(), Failed> {
    let mark = new_mark();
    let host = Host::with(fixture(&["--slow-start", "1", "--mark", &mark]));
    let calls = (0..8).map(|_| {
        let upstreams = host.upstreams.clone();
        tokio::spawn(async move {
            let arguments = serde_json::Map::new();
            upstreams.call("s", "echo", arguments, crate::harness::LONG).await
        })
    });
    let calls: Vec<_> = calls.collect();
    assert!(soon(|| !marked(&mark).is_empty()).await);
    for call in calls {
        call.await??;
    }
    // One server, and nobody else has its arguments.
    assert_eq!(marked(&mark).len(), 1);
    assert_eq!(host.text("calls", none()).await, "9");
    Ok(())
}
