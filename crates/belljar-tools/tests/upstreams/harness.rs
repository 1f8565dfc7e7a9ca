//! Servers to configure, and short ways to ask them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use belljar_tools::{
    ContentBlock, RawServer, ServerSpec, Surroundings, ToolAnswer, UpstreamError, Upstreams,
};
use libtest_mimic::{Failed, Trial};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A test on a runtime of its own.
pub(crate) fn trial<F>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Result<(), Failed>>,
{
    Trial::test(name, move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(LONG * 2, test()).await })?
    })
}

/// The path of a program that `scripts/servers` installs.
pub(crate) fn installed(path: &str) -> String {
    let root = std::env::var_os("BELLJAR_MCP_SERVERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers"),
        PathBuf::from,
    );
    let path = root.join(path);
    assert!(path.exists(), "{} is missing: run scripts/servers first", path.display());
    path.to_string_lossy().into_owned()
}

/// The fixture server with these options.
pub(crate) fn fixture(options: &[&str]) -> RawServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/servers/fixture.py");
    let mut arguments = vec![script];
    arguments.extend(options);
    server(&installed("python/bin/python3"), &arguments)
}

/// A server that is a program.
pub(crate) fn server(command: &str, arguments: &[&str]) -> RawServer {
    RawServer {
        command: Some(command.to_owned()),
        args: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        ..RawServer::default()
    }
}

/// Upstreams and what they remember, which goes away with them.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) upstreams: Upstreams,
    pub(crate) directory: TempDir,
}

impl Host {
    /// With one server, called `s`.
    pub(crate) fn with(raw: RawServer) -> Self {
        Self::with_all([("s".to_owned(), raw)])
    }

    pub(crate) fn with_all(servers: impl IntoIterator<Item = (String, RawServer)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let upstreams = upstreams(servers, directory.path());
        Self { upstreams, directory }
    }

    /// Another host that remembers what this one does.
    pub(crate) fn again(&self, raw: RawServer) -> Upstreams {
        upstreams([("s".to_owned(), raw)], self.directory.path())
    }

    /// Calls a tool of the server `s`.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<ToolAnswer, UpstreamError> {
        self.upstreams.call("s", tool, object(arguments), LONG).await
    }

    /// The same where it must answer with text.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        only_text(self.call(tool, arguments).await.unwrap())
    }
}

fn upstreams(
    servers: impl IntoIterator<Item = (String, RawServer)>,
    directory: &Path,
) -> Upstreams {
    let variables: BTreeMap<String, String> = std::env::vars().collect();
    let around = Surroundings { variables: &variables, directory: Path::new("/") };
    let specs =
        servers.into_iter().map(|(name, raw)| ServerSpec::check(&name, raw, around).unwrap());
    Upstreams::new(specs, &directory.join("cache"), std::env::current_exe().unwrap())
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("not an object: {value}") };
    object
}

/// The one text an answer consists of.
pub(crate) fn only_text(answer: ToolAnswer) -> String {
    match <[ContentBlock; 1]>::try_from(answer.content) {
        Ok([ContentBlock::Text { text }]) => text,
        other => panic!("not one text: {other:?}"),
    }
}

pub(crate) fn none() -> Value {
    json!({})
}

/// Every process with this mark as an argument.
pub(crate) fn marked(mark: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == mark.as_bytes())
    };
    pids.filter(has_mark).collect()
}

/// A mark no other process has.
pub(crate) fn new_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Polls until something is true, or the time is up.
pub(crate) async fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
