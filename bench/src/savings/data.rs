//! Generates the data behind the three large results.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde_json::json;

use super::{
    super::{
        Bench,
        peers::{on_path, time_program, time_program_on},
        random::SeededRandom,
    },
    ServerData,
};

/// Number of log lines; together they are 20 MB.
pub(super) const LOG_LINES: u64 = 216_000;
/// Number of database rows.
pub(super) const ROWS: u64 = 200_000;
/// Number of commits in the repository.
pub(super) const COMMITS: u64 = 20_000;

const SERVICES: [&str; 6] = ["api", "auth", "billing", "search", "mail", "jobs"];
const AUTHORS: [&str; 6] =
    ["Ada Okafor", "Mateo Rossi", "Yuki Tanaka", "Priya Raman", "Chen Wei", "Noah Becker"];

/// A Python script that writes the database, with the same rows every time. The server's own Python
/// runs it.
const MAKE_DATABASE: &str = "
import sqlite3, sys
regions = ('north', 'south', 'east', 'west', 'centre')
states = ('paid', 'paid', 'open', 'void')
db = sqlite3.connect(sys.argv[1])
db.execute('CREATE TABLE orders (id INTEGER, region TEXT, status TEXT, amount INTEGER)')
rows = ((i, regions[i * 7 % 5], states[i * 13 % 4], i * 7919 % 5000) for i in range(int(sys.argv[2])))
db.executemany('INSERT INTO orders VALUES (?, ?, ?, ?)', rows)
db.commit()
";

/// Writes a log of several services.
pub(super) fn log(_: &Bench<'_>, directory: &Path) -> anyhow::Result<ServerData> {
    let mut random = SeededRandom::new(0x10_95);
    let mut text = String::new();
    for second in 0..LOG_LINES {
        let level = random.low_of(&["INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
        let service = random.low_of(&SERVICES);
        let (day, hour, minute) = (1 + second / 86_400, second / 3600 % 24, second / 60 % 60);
        let _ = writeln!(
            text,
            "2026-01-{day:02}T{hour:02}:{minute:02}:{:02}Z {level} {service} request={} took={}ms",
            second % 60,
            random.sha(),
            random.low(2000)
        );
    }
    let path = directory.join("service.log");
    fs::write(&path, text)?;
    Ok(ServerData { server: vec![shown(directory)], tool: json!({ "path": path }) })
}

/// Writes a database with a table of orders.
pub(super) fn database(bench: &Bench<'_>, directory: &Path) -> anyhow::Result<ServerData> {
    let path = shown(&directory.join("orders.db"));
    let python = std::path::absolute(bench.arguments.servers.join("sqlite/bin/python3"))?;
    time_program(&python, &["-c", MAKE_DATABASE, &path, &ROWS.to_string()])?;
    let query = "SELECT id, region, status, amount FROM orders";
    Ok(ServerData { server: vec!["--db-path".to_owned(), path], tool: json!({ "query": query }) })
}

/// Creates a repository with a long history of empty commits.
pub(super) fn repository(_: &Bench<'_>, directory: &Path) -> anyhow::Result<ServerData> {
    let git: PathBuf = on_path("git").next().context("cannot find git in the PATH")?;
    let path = shown(directory);
    let mut random = SeededRandom::new(0x917);
    let mut stream = String::new();
    for number in 0..COMMITS {
        let name = random.low_of(&AUTHORS);
        let when = 1_735_689_600 + number * 600;
        let message = format!("fix: what issue {} reports\n", random.below(4000));
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter {name} <{}@example.org> {when} +0000\ndata {}\n{message}\n",
            name.to_lowercase().replace(' ', "."),
            message.len()
        );
    }
    time_program(&git, &["init", "--quiet", "--initial-branch=main", &path])?;
    time_program_on(&git, &["-C", &path, "fast-import", "--quiet"], stream.as_bytes())?;
    Ok(ServerData { server: Vec::new(), tool: json!({ "repo_path": path, "max_count": COMMITS }) })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
