//! The sessions of a host: their owners, their lifetimes, and why they ended (B3).
//!
//! The project's store remembers ended sessions after their host is gone. Without a store they are
//! remembered while the host lives.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use belljar_contract::{CheckpointId, RunError, SessionId};
use belljar_runtime::{SessionEnding, SessionSpec};
use belljar_store::{NewSession, SessionEnd, SessionRecord, Store};
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use crate::{
    Sandbox, Session,
    executor::{is_owner_this_process, this_process},
    is_owner_alive, now_ms,
};

/// Default time after which an unused session ends.
pub(crate) const IDLE: Duration = Duration::from_secs(15 * 60);
/// Default time after which any session ends.
pub(crate) const LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// Longest value for either time.
const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Ended sessions that are remembered without a store.
const MAX_REMEMBERED: usize = 1024;

/// The sessions of a host. Cheap to clone; all clones share them.
///
/// ```no_run
/// # async fn example(sandbox: belljar_project::Sandbox) -> Result<(), belljar_project::RunError> {
/// use belljar_project::{
///     Language, SessionLifetimes, SessionOwner, SessionRegistry, SessionSpec,
/// };
///
/// let sessions = SessionRegistry::new(sandbox, None).await;
/// let owner = SessionOwner { caller: "example".to_owned(), tools: None };
/// let request = SessionSpec::new(Language::Python);
/// let kept = sessions.open(request, SessionLifetimes::default(), owner).await?;
/// kept.session.run("x = 1").await;
/// sessions.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SessionRegistry {
    inner: Arc<RegistryInner>,
}

#[derive(Debug)]
struct RegistryInner {
    sandbox: Sandbox,
    store: Option<Store>,
    live: Mutex<HashMap<SessionId, KeptSession>>,
    ended: Mutex<Vec<(SessionId, SessionEnding)>>,
}

/// A live session with its lifetime and owner.
#[derive(Debug, Clone)]
pub struct KeptSession {
    /// The session in its sandbox.
    pub session: Session,
    /// Ends the session when it is unused for this long.
    pub idle: Duration,
    /// Ends the session after this long, used or not.
    pub lifetime: Duration,
    /// Recorded in audit rows and approvals.
    pub caller: String,
    /// The only tools that its runs may call, unless a run names its own; `None` means what policy
    /// allows.
    pub tools: Option<Vec<String>>,
}

/// The owner of a session, and the tools its runs may call.
#[derive(Debug, Clone, Default)]
pub struct SessionOwner {
    /// Recorded in audit rows and approvals.
    pub caller: String,
    /// The only tools that its runs may call; `None` means what policy allows.
    pub tools: Option<Vec<String>>,
}

/// How long a session may live; `None` means the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionLifetimes {
    /// Longest time without use.
    pub idle: Option<Duration>,
    /// Longest time in total.
    pub lifetime: Option<Duration>,
}

/// Why a session cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SessionLookupError {
    /// No session with this id is known.
    #[error("there is no session {0}")]
    Unknown(SessionId),
    /// The session has ended.
    #[error("session {id} has ended: {}", ending.message)]
    Ended {
        /// Id of the session.
        id: SessionId,
        /// The reason, with its code.
        ending: SessionEnding,
    },
}

impl SessionRegistry {
    /// A registry without sessions. Sessions of dead hosts in this store are marked as ended.
    pub async fn new(sandbox: Sandbox, store: Option<Store>) -> Self {
        if let Some(store) = &store {
            close_orphans(store).await;
        }
        let (live, ended) = (Mutex::default(), Mutex::default());
        Self { inner: Arc::new(RegistryInner { sandbox, store, live, ended }) }
    }

    /// Opens a session and records it in the store.
    pub async fn open(
        &self,
        request: SessionSpec,
        lifetimes: SessionLifetimes,
        whose: SessionOwner,
    ) -> Result<KeptSession, RunError> {
        let session = self.inner.sandbox.open_session(request).await?;
        let idle = lifetimes.idle.unwrap_or(IDLE).clamp(Duration::from_secs(1), MAX_TIME);
        let lifetime =
            lifetimes.lifetime.unwrap_or(LIFETIME).clamp(Duration::from_secs(1), MAX_TIME);
        let SessionOwner { caller, tools } = whose;
        let kept = KeptSession { session, idle, lifetime, caller, tools };
        self.register(vec![kept.clone()]).await;
        Ok(kept)
    }

    /// Duplicates a session; the copies have its lifetime.
    pub async fn fork(
        &self,
        of: &KeptSession,
        count: usize,
        checkpoint: Option<&CheckpointId>,
    ) -> Result<Vec<KeptSession>, RunError> {
        let forked = of.session.fork_from(count, checkpoint).await?;
        let forked = forked.into_iter().map(|session| KeptSession { session, ..of.clone() });
        let forked: Vec<_> = forked.collect();
        self.register(forked.clone()).await;
        Ok(forked)
    }

    /// A live session, or the reason why there is none.
    pub async fn get(&self, id: &SessionId) -> Result<KeptSession, SessionLookupError> {
        let found = lock(&self.inner.live).get(id).cloned();
        if let Some(kept) = found {
            return match kept.session.ending() {
                None => Ok(kept),
                Some(ending) => Err(SessionLookupError::Ended { id: id.clone(), ending }),
            };
        }
        match self.inner.ending(id).await {
            Some(ending) => Err(SessionLookupError::Ended { id: id.clone(), ending }),
            None => Err(SessionLookupError::Unknown(id.clone())),
        }
    }

    /// The live sessions, newest first.
    pub fn list(&self) -> Vec<KeptSession> {
        let live = lock(&self.inner.live);
        let mut all: Vec<_> =
            live.values().filter(|kept| kept.session.ending().is_none()).cloned().collect();
        drop(live);
        all.sort_by_cached_key(|kept| std::cmp::Reverse(kept.session.info().created_ms));
        all
    }

    /// Ends a session; it is gone when this returns.
    pub async fn destroy(&self, id: &SessionId) -> Result<(), SessionLookupError> {
        let kept = self.get(id).await?;
        kept.session.destroy().await;
        self.inner.note_end(&kept, &SessionEnding::destroyed()).await;
        Ok(())
    }

    /// Ends all sessions because the host stops.
    pub async fn shutdown(&self) {
        let all: Vec<_> = lock(&self.inner.live).values().cloned().collect();
        for kept in all {
            let ending = host_ended("the host was shut down");
            kept.session.end(ending.clone()).await;
            self.inner.note_end(&kept, &ending).await;
        }
    }

    async fn register(&self, new: Vec<KeptSession>) {
        if let Some(store) = &self.inner.store {
            let rows = new.iter().map(row).collect();
            if let Err(error) = store.begin_sessions(rows).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot save a session");
            }
        }
        for kept in new {
            let id = kept.session.id().clone();
            lock(&self.inner.live).insert(id, kept.clone());
            tokio::spawn(watch_session(self.inner.clone(), kept));
        }
    }
}

impl RegistryInner {
    /// Why a session ended that is no longer live.
    async fn ending(&self, id: &SessionId) -> Option<SessionEnding> {
        let remembered = lock(&self.ended).iter().find(|(of, _)| of == id).cloned();
        if let Some((_, ending)) = remembered {
            return Some(ending);
        }
        let record = self.store.as_ref()?.session(id).await.ok().flatten()?;
        match record.end {
            Some(end) => Some(SessionEnding { code: end.code, message: end.reason }),
            // A live host has the session.
            None if is_owner_alive(&record.began.owner) => None,
            None => Some(host_ended("its host has ended")),
        }
    }

    /// Records the end of a session and removes it.
    async fn note_end(&self, kept: &KeptSession, ending: &SessionEnding) {
        let info = kept.session.info();
        if lock(&self.live).remove(&info.id).is_none() {
            return;
        }
        {
            let mut ended = lock(&self.ended);
            if ended.len() >= MAX_REMEMBERED {
                ended.remove(0);
            }
            ended.push((info.id.clone(), ending.clone()));
        }
        let Some(store) = &self.store else { return };
        let last_used_ms = i64::try_from(info.last_used_ms).unwrap_or(i64::MAX);
        let (code, reason) = (ending.code.clone(), ending.message.clone());
        let end = SessionEnd { code, reason, at_ms: now_ms() };
        if let Err(error) = store.end_session(&info.id, last_used_ms, end).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, id = info.id.as_str(), "cannot save the end of a session");
        }
    }
}

impl KeptSession {
    /// When the session ends if it stays unused, in milliseconds since 1970.
    pub fn expires_ms(&self) -> u64 {
        let info = self.session.info();
        let idle = info.last_used_ms.saturating_add(milliseconds(self.idle));
        idle.min(info.created_ms.saturating_add(milliseconds(self.lifetime)))
    }

    /// The remaining time, or the reason why none is left.
    fn time_left(&self) -> Result<Duration, SessionEnding> {
        let info = self.session.info();
        let now = u64::try_from(now_ms()).unwrap_or_default();
        let age = Duration::from_millis(now.saturating_sub(info.created_ms));
        let ending = |code: &str, message: String| SessionEnding { code: code.to_owned(), message };
        let Some(life) = self.lifetime.checked_sub(age).filter(|left| !left.is_zero()) else {
            let limit = self.lifetime.as_secs();
            return Err(ending("lifetime", format!("its lifetime of {limit} s was over")));
        };
        if info.waiting > 0 {
            return Ok(life.min(self.idle));
        }
        let unused = Duration::from_millis(now.saturating_sub(info.last_used_ms));
        match self.idle.checked_sub(unused).filter(|left| !left.is_zero()) {
            Some(left) => Ok(left.min(life)),
            None => {
                let limit = self.idle.as_secs();
                Err(ending("idle", format!("it was unused for {limit} s")))
            }
        }
    }
}

/// Waits until a session has ended, and ends it when its time is over.
async fn watch_session(inner: Arc<RegistryInner>, kept: KeptSession) {
    loop {
        let left = match kept.time_left() {
            Ok(left) => left,
            Err(ending) => {
                kept.session.end(ending.clone()).await;
                return inner.note_end(&kept, &ending).await;
            }
        };
        // Slightly later than due, so that rounding does not cause another short wait.
        let then = Instant::now() + left + Duration::from_millis(5);
        tokio::select! {
            ending = kept.session.ended() => return inner.note_end(&kept, &ending).await,
            () = sleep_until(then) => {}
        }
    }
}

/// Marks sessions of dead hosts as ended.
async fn close_orphans(store: &Store) {
    let open = store.sessions(u32::MAX, true).await.unwrap_or_default();
    for SessionRecord { began, last_used_ms, .. } in open {
        if is_owner_alive(&began.owner) || is_owner_this_process(&began.owner) {
            continue;
        }
        let SessionEnding { code, message } = host_ended("its host has ended");
        let end = SessionEnd { code, reason: message, at_ms: now_ms() };
        if let Err(error) = store.end_session(&began.id, last_used_ms, end).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, id = began.id.as_str(), "cannot save the end of a session");
        }
    }
}

fn row(kept: &KeptSession) -> NewSession {
    let info = kept.session.info();
    NewSession {
        id: info.id,
        caller: kept.caller.clone(),
        language: info.language,
        owner: this_process(),
        forked_from: info.forked_from,
        created_ms: i64::try_from(info.created_ms).unwrap_or(i64::MAX),
    }
}

fn host_ended(message: &str) -> SessionEnding {
    SessionEnding { code: "host_ended".to_owned(), message: message.to_owned() }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
