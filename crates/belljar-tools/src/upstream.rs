//! Upstreams: MCP servers that are started or connected to on demand.
//!
//! [`Upstreams`] owns every connection. Only a call or a listing starts a server; lists of tools are cached
//! between runs of the host. Every error says whether the call may have happened
//! ([`UpstreamError::may_have_happened`]), so that a caller can avoid repeating it. No server process
//! outlives the host, whatever ends the host.

mod answer;
mod cache_file;
mod connection;
mod deadline;
mod error;
mod http;
mod intake;
mod listing;
mod liveness;
mod pipe;
mod process;
mod rate;
mod server;
#[cfg(test)]
mod tests;
mod ticket;
mod tool_cache;
mod unfolded;
mod window;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cache_file::CacheFile;
use deadline::Deadline;
use serde_json::{Map, Value};
use server::Server;
use tokio::{sync::watch, task::JoinSet};
use tool_cache::{ListTimeout, ServerToolCache};

use crate::{ServerConfigError, ServerSpec, Tool};

pub use answer::{ContentBlock, ToolAnswer};
pub use connection::ServerVersion;
pub use deadline::{CallTime, LimitSource};
pub use error::{UpstreamError, WaitStage, WasSent};

/// The timeout for listing the tools of all servers: a search without one server is better than no
/// search.
pub const LISTING_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for listing the tools of one server that the caller named.
const LIST_TIMEOUT: Duration = Duration::from_secs(150);

/// The tools of one server, or why they cannot be listed.
pub type ToolListResult = Result<Arc<Vec<Tool>>, UpstreamError>;

/// Every configured server. Cheap to clone; all clones share the connections. Dropping the last one
/// ends every server without waiting.
#[derive(Debug, Clone)]
pub struct Upstreams {
    servers: Arc<BTreeMap<String, Arc<Server>>>,
    /// Servers that cannot be used as they are configured, and why.
    unusable: Arc<BTreeMap<String, String>>,
    changes: watch::Receiver<u64>,
    cache_directory: PathBuf,
}

impl Upstreams {
    /// Starts no server yet.
    ///
    /// Lists of tools are cached in `cache_directory`. `launcher` is the program that is started as
    /// `launcher __upstream NAME` to supervise a server: `belljar` itself, whose `main`
    /// begins with [`belljar_jail::process_tree::serve_if_asked`].
    pub fn new(
        specs: impl IntoIterator<Item = ServerSpec>,
        cache_directory: &Path,
        launcher: impl Into<PathBuf>,
    ) -> Self {
        let launcher = launcher.into();
        let (tell, changes) = watch::channel(0);
        let server = |spec: ServerSpec| {
            let tool_cache =
                ServerToolCache::new(CacheFile::new(cache_directory, &spec), tell.clone());
            let name = spec.name().to_owned();
            (name, Arc::new(Server::new(spec, launcher.clone(), tool_cache)))
        };
        let servers = Arc::new(specs.into_iter().map(server).collect());
        let cache_directory = cache_directory.to_owned();
        Self { servers, unusable: Arc::default(), changes, cache_directory }
    }

    /// Adds servers that cannot be used as they are configured: calls to them fail with the reason, and
    /// the others work.
    #[must_use]
    pub fn with_unusable(
        mut self,
        servers: impl IntoIterator<Item = (String, ServerConfigError)>,
    ) -> Self {
        let reasons = servers.into_iter().map(|(name, error)| (name, error.to_string()));
        self.unusable = Arc::new(reasons.collect());
        self
    }

    /// Where the index of tools may be cached; `None` if there are no servers.
    pub(crate) fn index_file(&self) -> Option<PathBuf> {
        (!self.servers.is_empty()).then(|| self.cache_directory.join("tools.index"))
    }

    /// Whether a server is configured in a way that cannot be used.
    pub fn is_unusable(&self, server: &str) -> bool {
        self.unusable.contains_key(server)
    }

    /// The names of all servers, those that cannot be used included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().chain(self.unusable.keys()).map(String::as_str)
    }

    /// The configured servers, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ServerSpec> {
        self.servers.values().map(|server| &server.spec)
    }

    /// The configuration of one server.
    pub fn spec(&self, server: &str) -> Option<&ServerSpec> {
        self.servers.get(server).map(|server| &server.spec)
    }

    /// The tools of a server: as listed earlier in the life of this host, else from the cache on disk, else
    /// by starting it.
    pub async fn tools(&self, server: &str) -> ToolListResult {
        let server = self.find(server)?;
        server.tool_cache.tools(server, ListTimeout::Own(Deadline::in_time(LIST_TIMEOUT))).await
    }

    /// The same within the time of a call, including the start of the server.
    pub async fn tools_within(&self, server: &str, time: impl Into<CallTime>) -> ToolListResult {
        let server = self.find(server)?;
        let deadline = Deadline::of_call(time.into(), server.spec.timeout);
        server.tool_cache.tools(server, ListTimeout::Own(deadline)).await
    }

    /// The same with a timeout that all callers share: it is counted from when the server was first
    /// asked.
    pub async fn tools_soon(&self, server: &str, within: Duration) -> ToolListResult {
        let server = self.find(server)?;
        server.tool_cache.tools(server, ListTimeout::Shared(within)).await
    }

    /// Lists the tools of a server now, whatever is cached.
    pub async fn refreshed_tools(&self, server: &str, within: Duration) -> ToolListResult {
        let server = self.find(server)?;
        server.tool_cache.refresh(server, Deadline::in_time(within)).await
    }

    /// The cached tools of a server; starts nothing.
    pub async fn remembered_tools(&self, server: &str) -> Option<Arc<Vec<Tool>>> {
        self.servers.get(server)?.tool_cache.remembered().await
    }

    /// The tools of all servers, listed in parallel. A server that fails does not delay the others, and
    /// one that hangs delays them for at most the given time, counted from when it was first asked.
    pub async fn all_tools(&self, within: Duration) -> BTreeMap<String, ToolListResult> {
        let mut asked = JoinSet::new();
        for (name, server) in self.servers.iter() {
            let (name, server) = (name.clone(), server.clone());
            let timeout = ListTimeout::Shared(within);
            asked.spawn(async move { (name, server.tool_cache.tools(&server, timeout).await) });
        }
        let mut all = BTreeMap::new();
        while let Some(answer) = asked.join_next().await {
            all.extend(answer.ok());
        }
        let unusable = self.unusable.keys();
        all.extend(unusable.map(|name| (name.clone(), Err(self.missing(name)))));
        all
    }

    /// Changes whenever the tools of some server have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Calls a tool. The timeout is the given time or that of the server's configuration, whichever is
    /// shorter; it includes the start of the server, but not waiting for a free place among its parallel
    /// calls.
    ///
    /// Dropping the future sends the server a cancellation. Whether it stops is up to the server.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        time: impl Into<CallTime>,
    ) -> Result<ToolAnswer, UpstreamError> {
        self.find(server)?.call(tool, arguments, time.into()).await
    }

    /// The name and version a server reports. Starts it only if they are not cached.
    pub async fn version(&self, server: &str) -> Result<ServerVersion, UpstreamError> {
        let server = self.find(server)?;
        server.tool_cache.version(server).await
    }

    /// Ends every server and waits for that, for a few seconds at most. Every later call fails.
    pub async fn shutdown(&self) {
        let mut ended = JoinSet::new();
        for server in self.servers.values() {
            let server = server.clone();
            ended.spawn(async move { server.shut_down().await });
        }
        while ended.join_next().await.is_some() {}
    }

    fn find(&self, server: &str) -> Result<&Arc<Server>, UpstreamError> {
        self.servers.get(server).ok_or_else(|| self.missing(server))
    }

    /// Why there is no such server.
    fn missing(&self, server: &str) -> UpstreamError {
        let name = server.to_owned();
        match self.unusable.get(server) {
            Some(why) => UpstreamError::NotStarted {
                server: name,
                why: why.clone(),
                hint: None,
                log: String::new(),
            },
            None => UpstreamError::UnknownServer {
                server: name,
                known: self.names().map(str::to_owned).collect(),
            },
        }
    }
}
