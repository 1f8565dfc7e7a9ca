//! Upstreams: MCP servers that are started or reached when somebody needs them.
//!
//! [`Upstreams`] owns every connection. A server is started by the first call and by nothing else; its
//! tools are remembered between runs of the host. However it fails, the error says whether the call
//! may have happened ([`UpstreamError::may_have_happened`]): a caller that must not do anything twice
//! decides by that. No server process outlives the host, whatever ends the host.

mod answer;
mod cache;
mod connection;
mod error;
mod http;
mod intake;
mod known;
mod listing;
mod patience;
mod pipe;
mod process;
mod pulse;
mod rate;
mod server;
#[cfg(test)]
mod tests;
mod ticket;
mod unfolded;
mod window;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{sync::watch, task::JoinSet};

pub use answer::{ContentBlock, ToolAnswer};
pub use connection::ServerVersion;
pub use error::{Sent, Stage, UpstreamError};
pub use patience::{CallTime, LimitSource};

use cache::CacheFile;
use known::{Known, Patience};
use patience::Deadline;
use server::Server;

use crate::{ServerConfigError, ServerSpec, Tool};

/// How long the tools of all servers are waited for: whoever looks for a tool is better served by the
/// others than by none.
pub const LISTING_PATIENCE: Duration = Duration::from_secs(10);
/// How long the tools of one server are waited for that somebody asks for by name.
const LISTED: Duration = Duration::from_secs(150);

/// What is found out about one server's tools.
pub type ToolsOf = Result<Arc<Vec<Tool>>, UpstreamError>;

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
    /// Starts nothing yet.
    ///
    /// What is known of servers is kept in `cache_directory`. `launcher` is the program that is
    /// started as `launcher __upstream NAME` to look after a server: `belljar` itself, whose `main`
    /// begins with [`belljar_jail::brood::serve_if_asked`].
    pub fn new(
        specs: impl IntoIterator<Item = ServerSpec>,
        cache_directory: &Path,
        launcher: impl Into<PathBuf>,
    ) -> Self {
        let launcher = launcher.into();
        let (tell, changes) = watch::channel(0);
        let server = |spec: ServerSpec| {
            let known = Known::new(CacheFile::new(cache_directory, &spec), tell.clone());
            let name = spec.name().to_owned();
            (name, Arc::new(Server::new(spec, launcher.clone(), known)))
        };
        let servers = Arc::new(specs.into_iter().map(server).collect());
        let cache_directory = cache_directory.to_owned();
        Self { servers, unusable: Arc::default(), changes, cache_directory }
    }

    /// Adds servers that cannot be used as they are configured: whoever asks for one is told why,
    /// and the others work.
    #[must_use]
    pub fn with_unusable(
        mut self,
        servers: impl IntoIterator<Item = (String, ServerConfigError)>,
    ) -> Self {
        let told = servers.into_iter().map(|(name, error)| (name, error.to_string()));
        self.unusable = Arc::new(told.collect());
        self
    }

    /// Where an index of the tools may be kept, beside what is known of their servers; nowhere if
    /// there are no servers.
    pub(crate) fn index_file(&self) -> Option<PathBuf> {
        (!self.servers.is_empty()).then(|| self.cache_directory.join("tools.index"))
    }

    /// Whether a server is named in the configuration in a way that makes it of no use.
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

    /// The tools of a server: as it listed them in the life of this host, else as they are remembered
    /// from an earlier one, else by starting it.
    pub async fn tools(&self, server: &str) -> ToolsOf {
        let server = self.find(server)?;
        server.known.tools(server, Patience::Own(Deadline::in_time(LISTED))).await
    }

    /// The same for a call of one of them: its start and its list are part of the call's time.
    pub async fn tools_within(&self, server: &str, time: impl Into<CallTime>) -> ToolsOf {
        let server = self.find(server)?;
        let deadline = Deadline::of_call(time.into(), server.spec.timeout);
        server.known.tools(server, Patience::Own(deadline)).await
    }

    /// The same for who only wants to know of them: one that hangs is waited for so long from when it
    /// was first asked, whoever asked.
    pub async fn tools_soon(&self, server: &str, within: Duration) -> ToolsOf {
        let server = self.find(server)?;
        server.known.tools(server, Patience::Shared(within)).await
    }

    /// The tools of a server as it lists them now, whatever is known of them.
    pub async fn refreshed_tools(&self, server: &str, within: Duration) -> ToolsOf {
        let server = self.find(server)?;
        server.known.refresh(server, Deadline::in_time(within)).await
    }

    /// The tools of a server as far as they are known; starts nothing.
    pub async fn remembered_tools(&self, server: &str) -> Option<Arc<Vec<Tool>>> {
        self.servers.get(server)?.known.remembered().await
    }

    /// The tools of all servers, asked for at once. One that fails does not keep the others, and one
    /// that hangs keeps them for the time given: from when it was first asked, whoever asked.
    pub async fn all_tools(&self, within: Duration) -> BTreeMap<String, ToolsOf> {
        let mut asked = JoinSet::new();
        for (name, server) in self.servers.iter() {
            let (name, server) = (name.clone(), server.clone());
            let patience = Patience::Shared(within);
            asked.spawn(async move { (name, server.known.tools(&server, patience).await) });
        }
        let mut all = BTreeMap::new();
        while let Some(answer) = asked.join_next().await {
            all.extend(answer.ok());
        }
        let unusable = self.unusable.keys();
        all.extend(unusable.map(|name| (name.clone(), Err(self.missing(name)))));
        all
    }

    /// Changes whenever the tools of some server turn out to be others than before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Calls a tool, and waits for its answer for the given time or as long as is configured for the
    /// server, whichever is shorter; the start of the server included, waiting for a place among the
    /// calls it gets at once not.
    ///
    /// Dropping the future tells the server that nobody waits any more. Whether it stops is up to it.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        time: impl Into<CallTime>,
    ) -> Result<ToolAnswer, UpstreamError> {
        self.find(server)?.call(tool, arguments, time.into()).await
    }

    /// What a server says it is. Starts it only if it never was.
    pub async fn version(&self, server: &str) -> Result<ServerVersion, UpstreamError> {
        let server = self.find(server)?;
        server.known.version(server).await
    }

    /// Ends every server, and waits until they are gone, for a few seconds at most. Every call after
    /// this fails.
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
