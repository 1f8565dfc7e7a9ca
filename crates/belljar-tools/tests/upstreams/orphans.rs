//! Whatever ends the host, no process of a server is left.
#![expect(clippy::disallowed_methods, reason = "the suite starts a host to kill")]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use libtest_mimic::{Failed, Trial};

use crate::harness::{Host, fixture, marked, new_mark, soon, trial};

/// So many servers at once, each with a daemon.
const SERVERS: usize = 20;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("orphans::nothing_is_left_of_twenty_servers_of_a_killed_host", killed_host)]
}

/// The `__host` role: starts every server, says so, and waits to be killed.
pub(crate) fn host(mark: &str) -> ! {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let servers = (0..SERVERS).map(|n| (format!("s{n}"), fixture(&["--daemon", mark])));
        let host = Host::with_all(servers);
        let all = host.upstreams.all_tools(crate::harness::LONG).await;
        let started = all.values().filter(|tools| tools.is_ok()).count();
        println!("{started}");
        std::io::stdout().flush().unwrap();
        std::future::pending::<()>().await;
    });
    unreachable!("it is killed")
}

async fn killed_host() -> Result<(), Failed> {
    let mark = new_mark();
    let mut host = Command::new(std::env::current_exe()?)
        .args(["__host", &mark])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = host.stdout.take().ok_or("no stdout")?;
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map(|_| line)
    });
    assert_eq!(line.await??, format!("{SERVERS}\n"));
    // Control: the host, its servers and their daemons are there.
    assert_eq!(marked(&mark).len(), 1 + 2 * SERVERS);
    // Their keepers have only the names of the servers, and the host as parent.
    let keepers = keepers_of(host.id());
    assert_eq!(keepers.len(), SERVERS);
    host.kill()?;
    host.wait()?;
    assert!(soon(|| marked(&mark).is_empty()).await, "left: {:?}", marked(&mark));
    let lives = |pid: &i32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(soon(|| !keepers.iter().any(lives)).await, "keepers are left");
    Ok(())
}

/// Children of a process, and theirs.
fn keepers_of(pid: u32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let mut found: Vec<i32> = children
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    // Started by any thread of the host.
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    found.sort_unstable();
    found.dedup();
    found
}
