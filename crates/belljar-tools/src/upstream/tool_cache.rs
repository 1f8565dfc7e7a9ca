//! The tools of one server: cached in memory, else on disk, else listed by the server.

use std::sync::{Arc, Mutex};

use tokio::{
    sync::{OnceCell, watch},
    time::{Duration, Instant, timeout_at},
};

use super::{
    cache_file::{CacheFile, CachedTools},
    connection::ServerVersion,
    deadline::Deadline,
    error::{UpstreamError, WasSent},
    server::{Server, lock},
};
use crate::Tool;

/// How long a list may take, the start of the server included.
const LIST_TIMEOUT: Duration = Duration::from_secs(150);
/// The delay before a background listing, so that a server cannot keep the host busy by announcing
/// changes.
const PAUSE: Duration = Duration::from_millis(200);
/// Revisions of the protocol are dates; those before this one begin with `initialize`.
const FIRST_WITHOUT_INITIALIZE: &str = "2026-07-28";

/// The cached tools of one server.
#[derive(Debug)]
pub(super) struct ServerToolCache {
    state: Mutex<CacheState>,
    file: Arc<CacheFile>,
    was_read: OnceCell<()>,
    /// Counts changes of the tools of any server.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct CacheState {
    list: Option<ToolList>,
    /// How often the server announced that its tools have changed.
    news: u64,
    /// Whether a background listing is scheduled.
    is_due: bool,
    /// The listing that is in progress, shared by all who wait for it.
    request: Option<ListRequest>,
}

/// A listing in progress. It continues even if all callers stop waiting.
#[derive(Debug, Clone)]
struct ListRequest {
    since: Instant,
    outcome: watch::Receiver<Option<Result<ToolList, UpstreamError>>>,
}

/// How long a caller waits for a list that is not cached.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListTimeout {
    /// Until the caller's own deadline.
    Own(Deadline),
    /// This long after the listing began, even if another call began it.
    Shared(Duration),
}

#[derive(Debug, Clone)]
struct ToolList {
    tools: Arc<Vec<Tool>>,
    version: ServerVersion,
    freshness: Freshness,
    /// The announced changes when the listing began.
    news: u64,
}

/// Where a list comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// From the server, in the life of this host.
    Asked,
    /// From disk, written less than a day ago.
    Remembered,
    /// From disk, and long ago.
    Old,
}

impl ServerToolCache {
    pub(super) fn new(file: CacheFile, changes: watch::Sender<u64>) -> Self {
        Self { state: Mutex::default(), file: Arc::new(file), was_read: OnceCell::new(), changes }
    }

    /// The tools of the server. Starts it only if no list is cached.
    pub(super) async fn tools(
        &self,
        server: &Arc<Server>,
        timeout: ListTimeout,
    ) -> Result<Arc<Vec<Tool>>, UpstreamError> {
        self.read_file().await;
        match self.current() {
            Some(list) => {
                if list.freshness == Freshness::Old {
                    ask_in_background(server);
                }
                Ok(list.tools)
            }
            None => match self.ask_server(server, timeout).await {
                Ok(list) => Ok(list.tools),
                // The server announced a change and then did not list its tools: the earlier list is
                // the best there is.
                Err(error) => match lock(&self.state).list.clone() {
                    Some(list) => Ok(list.tools),
                    None => Err(error),
                },
            },
        }
    }

    /// The cached tools, without asking the server.
    pub(super) async fn remembered(&self) -> Option<Arc<Vec<Tool>>> {
        self.read_file().await;
        self.current().map(|list| list.tools)
    }

    /// The name and version the server reports.
    pub(super) async fn version(
        &self,
        server: &Arc<Server>,
    ) -> Result<ServerVersion, UpstreamError> {
        self.tools(server, ListTimeout::Own(Deadline::in_time(LIST_TIMEOUT))).await?;
        let state = lock(&self.state);
        // There is a list, or the call above would have failed.
        state.list.as_ref().map(|list| list.version.clone()).ok_or_else(|| no_list(server))
    }

    /// Whether the server last spoke a revision of the protocol that begins with `initialize`.
    pub(super) fn speaks_older_protocol(&self) -> bool {
        let state = lock(&self.state);
        let list = state.list.as_ref();
        list.is_some_and(|list| list.version.protocol.as_str() < FIRST_WITHOUT_INITIALIZE)
    }

    /// Lists the tools again after the server was started, if the cached list is from disk.
    pub(super) fn check_again(&self, server: &Arc<Server>) {
        let is_from_disk = |list: &ToolList| list.freshness != Freshness::Asked;
        if lock(&self.state).list.as_ref().is_some_and(is_from_disk) {
            ask_in_background(server);
        }
    }

    /// To be called when the server announces that its tools have changed.
    pub(super) fn has_changed(&self, server: &Arc<Server>) {
        lock(&self.state).news += 1;
        ask_in_background(server);
    }

    /// The list, unless the server has announced a change since it was made.
    fn current(&self) -> Option<ToolList> {
        let state = lock(&self.state);
        state.list.clone().filter(|list| list.news == state.news)
    }

    /// Reads the cache file, once; later callers wait until it is read.
    pub(super) async fn read_file(&self) {
        self.was_read.get_or_init(|| self.read_it()).await;
    }

    async fn read_it(&self) {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || file.read()).await;
        let Ok(Some(remembered)) = read else { return };
        let freshness = if remembered.is_old() { Freshness::Old } else { Freshness::Remembered };
        let CachedTools { version, tools, .. } = remembered;
        let mut state = lock(&self.state);
        let news = state.news;
        state.list.get_or_insert(ToolList { tools: Arc::new(tools), version, freshness, news });
    }

    /// Lists the tools now, whatever is cached.
    pub(super) async fn refresh(
        &self,
        server: &Arc<Server>,
        deadline: Deadline,
    ) -> Result<Arc<Vec<Tool>>, UpstreamError> {
        Ok(self.ask_server(server, ListTimeout::Own(deadline)).await?.tools)
    }

    /// Asks the server for its list, or joins the listing in progress. The listing continues if all
    /// callers stop waiting.
    async fn ask_server(
        &self,
        server: &Arc<Server>,
        timeout: ListTimeout,
    ) -> Result<ToolList, UpstreamError> {
        let wanted = lock(&self.state).news;
        loop {
            let ListRequest { since, mut outcome } = self.list_request(server);
            let deadline = match timeout {
                ListTimeout::Own(deadline) => deadline,
                ListTimeout::Shared(limit) => Deadline::since(since, limit),
            };
            let listed = match timeout_at(deadline.at, outcome.wait_for(Option::is_some)).await {
                Ok(outcome) => outcome.map_or(None, |outcome| outcome.clone()),
                Err(_) => {
                    Some(Err(deadline.missed(server.name(), server.listing_stage(), WasSent::No)))
                }
            };
            match listed.unwrap_or_else(|| Err(no_list(server))) {
                // Asked for before the server said that its tools have changed.
                Ok(list) if list.news < wanted => {}
                listed => return listed,
            }
        }
    }

    fn list_request(&self, server: &Arc<Server>) -> ListRequest {
        let mut state = lock(&self.state);
        if let Some(request) = &state.request {
            return request.clone();
        }
        let (tell, outcome) = watch::channel(None);
        let request = ListRequest { since: Instant::now(), outcome };
        state.request = Some(request.clone());
        let server = server.clone();
        tokio::spawn(async move {
            let listed = server.tool_cache.list(&server).await;
            lock(&server.tool_cache.state).request = None;
            tell.send_replace(Some(listed));
        });
        request
    }

    async fn list(&self, server: &Arc<Server>) -> Result<ToolList, UpstreamError> {
        let news = lock(&self.state).news;
        let lease = server.lease(Deadline::in_time(LIST_TIMEOUT)).await?;
        let deadline = Deadline::of_call(LIST_TIMEOUT.into(), server.spec.timeout);
        let tools = server.judge(&lease, lease.connection.tools(deadline).await)?;
        let version = lease.connection.version();
        drop(lease);
        self.remember(CachedTools::now(version.clone(), tools.clone())).await;
        let list = ToolList { tools: Arc::new(tools), version, freshness: Freshness::Asked, news };
        let before = lock(&self.state).list.replace(list.clone());
        if before.is_none_or(|before| before.tools != list.tools) {
            self.changes.send_modify(|changes| *changes += 1);
        }
        Ok(list)
    }

    async fn remember(&self, remembered: CachedTools) {
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&remembered)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "cannot cache the tools of a server");
        }
    }
}

fn no_list(server: &Server) -> UpstreamError {
    UpstreamError::Protocol {
        server: server.name().to_owned(),
        why: "it sent no list of tools".to_owned(),
    }
}

fn ask_in_background(server: &Arc<Server>) {
    if std::mem::replace(&mut lock(&server.tool_cache.state).is_due, true) {
        return;
    }
    let server = server.clone();
    tokio::spawn(async move {
        tokio::time::sleep(PAUSE).await;
        lock(&server.tool_cache.state).is_due = false;
        let is_new = |list: &ToolList| list.freshness == Freshness::Asked;
        if server.tool_cache.current().as_ref().is_some_and(is_new) {
            return;
        }
        let deadline = Deadline::in_time(LIST_TIMEOUT);
        if let Err(error) = server.tool_cache.refresh(&server, deadline).await {
            tracing::debug!(server = server.name(), %error, "cannot list the tools of a server again");
        }
    });
}
