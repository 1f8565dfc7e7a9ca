//! What is known of one server's tools: in memory, else on disk, else by asking.

use std::sync::{Arc, Mutex};

use tokio::{
    sync::{OnceCell, watch},
    time::{Duration, Instant, timeout_at},
};

use super::{
    cache::{CacheFile, Remembered},
    connection::ServerVersion,
    error::{Sent, UpstreamError},
    patience::Deadline,
    server::{Server, lock},
};
use crate::Tool;

/// How long a list may take, the start of the server included.
const LISTED: Duration = Duration::from_secs(150);
/// Between two lists that nobody waits for, so that a server cannot keep the host busy with its news.
const PAUSE: Duration = Duration::from_millis(200);
/// The last revision of the protocol that begins with `initialize`, and every one before it, is older
/// than this; revisions are dates.
const FIRST_WITHOUT_INITIALIZE: &str = "2026-07-28";

/// What is known of a server's tools.
#[derive(Debug)]
pub(super) struct Known {
    state: Mutex<State>,
    file: Arc<CacheFile>,
    was_read: OnceCell<()>,
    /// Counts how often the tools of any server became others.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    list: Option<List>,
    /// How often the server said that its tools have changed.
    news: u64,
    /// Whether somebody is about to ask again.
    is_due: bool,
    /// The server is being asked, however many wait for that.
    asking: Option<Asking>,
}

/// A list that is being asked for, whether or not anybody still waits for it.
#[derive(Debug, Clone)]
struct Asking {
    since: Instant,
    outcome: watch::Receiver<Option<Result<List, UpstreamError>>>,
}

/// How long somebody waits for a list that is not known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    /// Until the caller's own deadline.
    Own(Deadline),
    /// This long from when the server was asked: others may have waited before.
    Shared(Duration),
}

#[derive(Debug, Clone)]
struct List {
    tools: Arc<Vec<Tool>>,
    version: ServerVersion,
    freshness: Freshness,
    /// The news that were in when it was asked for.
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

impl Known {
    pub(super) fn new(file: CacheFile, changes: watch::Sender<u64>) -> Self {
        Self { state: Mutex::default(), file: Arc::new(file), was_read: OnceCell::new(), changes }
    }

    /// The tools of the server. Starts it only if nothing is known of it.
    pub(super) async fn tools(
        &self,
        server: &Arc<Server>,
        patience: Patience,
    ) -> Result<Arc<Vec<Tool>>, UpstreamError> {
        self.read_file().await;
        match self.current() {
            Some(list) => {
                if list.freshness == Freshness::Old {
                    ask_in_background(server);
                }
                Ok(list.tools)
            }
            None => match self.ask(server, patience).await {
                Ok(list) => Ok(list.tools),
                // The server said that its tools have changed and then nothing more: what it said
                // before is the best there is.
                Err(error) => match lock(&self.state).list.clone() {
                    Some(list) => Ok(list.tools),
                    None => Err(error),
                },
            },
        }
    }

    /// What is known of the server's tools without asking it.
    pub(super) async fn remembered(&self) -> Option<Arc<Vec<Tool>>> {
        self.read_file().await;
        self.current().map(|list| list.tools)
    }

    /// What the server says it is.
    pub(super) async fn version(
        &self,
        server: &Arc<Server>,
    ) -> Result<ServerVersion, UpstreamError> {
        self.tools(server, Patience::Own(Deadline::in_time(LISTED))).await?;
        let state = lock(&self.state);
        // There is a list, or the call above had failed.
        state.list.as_ref().map(|list| list.version.clone()).ok_or_else(|| no_list(server))
    }

    /// Whether the server spoke a revision last time that begins with `initialize`.
    pub(super) fn speaks_older_protocol(&self) -> bool {
        let state = lock(&self.state);
        let list = state.list.as_ref();
        list.is_some_and(|list| list.version.protocol.as_str() < FIRST_WITHOUT_INITIALIZE)
    }

    /// The server has just been started: a list from disk is checked while that is cheap.
    pub(super) fn check_again(&self, server: &Arc<Server>) {
        let is_from_disk = |list: &List| list.freshness != Freshness::Asked;
        if lock(&self.state).list.as_ref().is_some_and(is_from_disk) {
            ask_in_background(server);
        }
    }

    /// The server says that its tools have changed.
    pub(super) fn has_changed(&self, server: &Arc<Server>) {
        lock(&self.state).news += 1;
        ask_in_background(server);
    }

    /// The list, unless there have been news since it was asked for.
    fn current(&self) -> Option<List> {
        let state = lock(&self.state);
        state.list.clone().filter(|list| list.news == state.news)
    }

    /// Reads what is remembered, once; who comes later waits until it is read.
    pub(super) async fn read_file(&self) {
        self.was_read.get_or_init(|| self.read_it()).await;
    }

    async fn read_it(&self) {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || file.read()).await;
        let Ok(Some(remembered)) = read else { return };
        let freshness = if remembered.is_old() { Freshness::Old } else { Freshness::Remembered };
        let Remembered { version, tools, .. } = remembered;
        let mut state = lock(&self.state);
        let news = state.news;
        state.list.get_or_insert(List { tools: Arc::new(tools), version, freshness, news });
    }

    /// Asks the server now, whatever is known.
    pub(super) async fn refresh(
        &self,
        server: &Arc<Server>,
        deadline: Deadline,
    ) -> Result<Arc<Vec<Tool>>, UpstreamError> {
        Ok(self.ask(server, Patience::Own(deadline)).await?.tools)
    }

    /// Asks the server, or waits for who is asking it already. It goes on being asked when nobody
    /// waits any more.
    async fn ask(&self, server: &Arc<Server>, patience: Patience) -> Result<List, UpstreamError> {
        let wanted = lock(&self.state).news;
        loop {
            let Asking { since, mut outcome } = self.asking(server);
            let deadline = match patience {
                Patience::Own(deadline) => deadline,
                Patience::Shared(limit) => Deadline::since(since, limit),
            };
            let listed = match timeout_at(deadline.at, outcome.wait_for(Option::is_some)).await {
                Ok(outcome) => outcome.map_or(None, |outcome| outcome.clone()),
                Err(_) => {
                    Some(Err(deadline.missed(server.name(), server.listing_stage(), Sent::No)))
                }
            };
            match listed.unwrap_or_else(|| Err(no_list(server))) {
                // Asked for before the server said that its tools have changed.
                Ok(list) if list.news < wanted => {}
                listed => return listed,
            }
        }
    }

    fn asking(&self, server: &Arc<Server>) -> Asking {
        let mut state = lock(&self.state);
        if let Some(asking) = &state.asking {
            return asking.clone();
        }
        let (tell, outcome) = watch::channel(None);
        let asking = Asking { since: Instant::now(), outcome };
        state.asking = Some(asking.clone());
        let server = server.clone();
        tokio::spawn(async move {
            let listed = server.known.list(&server).await;
            lock(&server.known.state).asking = None;
            tell.send_replace(Some(listed));
        });
        asking
    }

    async fn list(&self, server: &Arc<Server>) -> Result<List, UpstreamError> {
        let news = lock(&self.state).news;
        let lease = server.lease(Deadline::in_time(LISTED)).await?;
        let deadline = Deadline::of_call(LISTED.into(), server.spec.timeout);
        let tools = server.judge(&lease, lease.connection.tools(deadline).await)?;
        let version = lease.connection.version();
        drop(lease);
        self.remember(Remembered::now(version.clone(), tools.clone())).await;
        let list = List { tools: Arc::new(tools), version, freshness: Freshness::Asked, news };
        let before = lock(&self.state).list.replace(list.clone());
        if before.is_none_or(|before| before.tools != list.tools) {
            self.changes.send_modify(|changes| *changes += 1);
        }
        Ok(list)
    }

    async fn remember(&self, remembered: Remembered) {
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&remembered)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "could not remember the tools of a server");
        }
    }
}

fn no_list(server: &Server) -> UpstreamError {
    UpstreamError::Protocol { server: server.name().to_owned(), why: "no list".to_owned() }
}

fn ask_in_background(server: &Arc<Server>) {
    if std::mem::replace(&mut lock(&server.known.state).is_due, true) {
        return;
    }
    let server = server.clone();
    tokio::spawn(async move {
        tokio::time::sleep(PAUSE).await;
        lock(&server.known.state).is_due = false;
        let is_new = |list: &List| list.freshness == Freshness::Asked;
        if server.known.current().as_ref().is_some_and(is_new) {
            return;
        }
        let deadline = Deadline::in_time(LISTED);
        if let Err(error) = server.known.refresh(&server, deadline).await {
            tracing::debug!(server = server.name(), %error, "tools not listed again");
        }
    });
}
