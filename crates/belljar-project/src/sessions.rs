//! The sessions of a host: who has which, for how long, and what became of those that ended (B3).
//!
//! What can be known of a session after its host is in the project's store; without a store it is
//! known for as long as the host lives.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use belljar_contract::RunError;
use belljar_runtime::{SessionEnding, SessionSpec};
use belljar_store::{NewSession, SessionEnd, SessionRecord, Store};
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use crate::{
    Sandbox, Session,
    executor::{is_owner_this_process, this_process},
    is_owner_alive, now_ms,
};

/// A session nobody asks anything of ends after this long, unless it says otherwise.
pub(crate) const IDLE: Duration = Duration::from_secs(15 * 60);
/// And any after this long.
pub(crate) const LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// The longest either may be.
const MOST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Ended sessions that are known without a store.
const MAX_REMEMBERED: usize = 1024;

/// The sessions of a host. Cheap to clone; all clones have the same ones.
#[derive(Debug, Clone)]
pub struct SessionRegistry {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sandbox: Sandbox,
    store: Option<Store>,
    live: Mutex<HashMap<String, KeptSession>>,
    ended: Mutex<Vec<(String, SessionEnding)>>,
}

/// A session that lives, and for how long.
#[derive(Debug, Clone)]
pub struct KeptSession {
    /// The session.
    pub session: Session,
    /// It ends when nothing was asked of it for so long.
    pub idle: Duration,
    /// It ends after so long, used or not.
    pub lifetime: Duration,
    /// Whose it is.
    pub caller: String,
    /// The only tools its runs may call, unless a run says otherwise; `None` is what policy allows.
    pub tools: Option<Vec<String>>,
}

/// Whose a session is, and what its runs may call.
#[derive(Debug, Clone, Default)]
pub struct Whose {
    /// Who asked for it, for audit rows and approvals.
    pub caller: String,
    /// The only tools its runs may call; `None` is what policy allows.
    pub tools: Option<Vec<String>>,
}

/// For how long a session is to live, where that is said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lifetimes {
    /// Without being used.
    pub idle: Option<Duration>,
    /// In all.
    pub lifetime: Option<Duration>,
}

/// Why there is no such session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoSession {
    /// There never was one, as far as is known.
    #[error("no session is called {0}")]
    Unknown(String),
    /// There was one.
    #[error("session {id} has ended: {}", ending.message)]
    Ended {
        /// Which.
        id: String,
        /// Why.
        ending: SessionEnding,
    },
}

impl SessionRegistry {
    /// No session yet. Those that hosts of this store left behind when they died are noted as ended.
    pub async fn new(sandbox: Sandbox, store: Option<Store>) -> Self {
        if let Some(store) = &store {
            close_orphans(store).await;
        }
        let (live, ended) = (Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { sandbox, store, live, ended }) }
    }

    /// Makes a session.
    pub async fn open(
        &self,
        request: SessionSpec,
        lifetimes: Lifetimes,
        whose: Whose,
    ) -> Result<KeptSession, RunError> {
        let session = self.shared.sandbox.open_session(request).await?;
        let idle = lifetimes.idle.unwrap_or(IDLE).clamp(Duration::from_secs(1), MOST);
        let lifetime = lifetimes.lifetime.unwrap_or(LIFETIME).clamp(Duration::from_secs(1), MOST);
        let Whose { caller, tools } = whose;
        let kept = KeptSession { session, idle, lifetime, caller, tools };
        self.keep(vec![kept.clone()]).await;
        Ok(kept)
    }

    /// Makes sessions of one, which live as long as it was to.
    pub async fn fork(
        &self,
        of: &KeptSession,
        count: usize,
        checkpoint: Option<&str>,
    ) -> Result<Vec<KeptSession>, RunError> {
        let forked = of.session.fork_from(count, checkpoint).await?;
        let forked = forked.into_iter().map(|session| KeptSession { session, ..of.clone() });
        let forked: Vec<_> = forked.collect();
        self.keep(forked.clone()).await;
        Ok(forked)
    }

    /// A session that lives, or why it does not.
    pub async fn get(&self, id: &str) -> Result<KeptSession, NoSession> {
        let found = lock(&self.shared.live).get(id).cloned();
        if let Some(kept) = found {
            return match kept.session.ending() {
                None => Ok(kept),
                Some(ending) => Err(NoSession::Ended { id: id.to_owned(), ending }),
            };
        }
        match self.shared.ending(id).await {
            Some(ending) => Err(NoSession::Ended { id: id.to_owned(), ending }),
            None => Err(NoSession::Unknown(id.to_owned())),
        }
    }

    /// Those that live, newest first.
    pub fn list(&self) -> Vec<KeptSession> {
        let live = lock(&self.shared.live);
        let mut all: Vec<_> =
            live.values().filter(|kept| kept.session.ending().is_none()).cloned().collect();
        drop(live);
        all.sort_by_cached_key(|kept| std::cmp::Reverse(kept.session.info().created_ms));
        all
    }

    /// Ends one; it is gone when this returns.
    pub async fn destroy(&self, id: &str) -> Result<(), NoSession> {
        let kept = self.get(id).await?;
        kept.session.destroy().await;
        self.shared.note_end(&kept, &SessionEnding::destroyed()).await;
        Ok(())
    }

    /// Ends all of them, because the host does.
    pub async fn shutdown(&self) {
        let all: Vec<_> = lock(&self.shared.live).values().cloned().collect();
        for kept in all {
            let ending = host_ended("the host was shut down");
            kept.session.end(ending.clone()).await;
            self.shared.note_end(&kept, &ending).await;
        }
    }

    async fn keep(&self, new: Vec<KeptSession>) {
        if let Some(store) = &self.shared.store {
            let rows = new.iter().map(row).collect();
            if let Err(error) = store.begin_sessions(rows).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "a session was not written down");
            }
        }
        for kept in new {
            let id = kept.session.id().to_owned();
            lock(&self.shared.live).insert(id, kept.clone());
            tokio::spawn(look_after(self.shared.clone(), kept));
        }
    }
}

impl Shared {
    /// Why a session that is not there any more ended.
    async fn ending(&self, id: &str) -> Option<SessionEnding> {
        let remembered = lock(&self.ended).iter().find(|(of, _)| of == id).cloned();
        if let Some((_, ending)) = remembered {
            return Some(ending);
        }
        let record = self.store.as_ref()?.session(id).await.ok().flatten()?;
        match record.end {
            Some(end) => Some(SessionEnding { code: end.code, message: end.reason }),
            // It is somebody else's, who is at it.
            None if is_owner_alive(&record.began.owner) => None,
            None => Some(host_ended("the host that kept it has ended")),
        }
    }

    /// Writes down how a session ended, and forgets it.
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
            tracing::warn!(error, id = info.id, "a session's end was not written down");
        }
    }
}

impl KeptSession {
    /// When it ends unless something is asked of it, in milliseconds since 1970.
    pub fn expires_ms(&self) -> u64 {
        let info = self.session.info();
        let idle = info.last_used_ms.saturating_add(milliseconds(self.idle));
        idle.min(info.created_ms.saturating_add(milliseconds(self.lifetime)))
    }

    /// What is left of its time, or why there is nothing left.
    fn time_left(&self) -> Result<Duration, SessionEnding> {
        let info = self.session.info();
        let now = u64::try_from(now_ms()).unwrap_or_default();
        let age = Duration::from_millis(now.saturating_sub(info.created_ms));
        let ending = |code: &str, message: String| SessionEnding { code: code.to_owned(), message };
        let Some(life) = self.lifetime.checked_sub(age).filter(|left| !left.is_zero()) else {
            let limit = self.lifetime.as_secs();
            return Err(ending("lifetime", format!("its {limit} s of life were over")));
        };
        if info.waiting > 0 {
            return Ok(life.min(self.idle));
        }
        let unused = Duration::from_millis(now.saturating_sub(info.last_used_ms));
        match self.idle.checked_sub(unused).filter(|left| !left.is_zero()) {
            Some(left) => Ok(left.min(life)),
            None => {
                let limit = self.idle.as_secs();
                Err(ending("idle", format!("nothing was asked of it for {limit} s")))
            }
        }
    }
}

/// Waits for a session's end, and brings it about when its time is over.
async fn look_after(shared: Arc<Shared>, kept: KeptSession) {
    loop {
        let left = match kept.time_left() {
            Ok(left) => left,
            Err(ending) => {
                kept.session.end(ending.clone()).await;
                return shared.note_end(&kept, &ending).await;
            }
        };
        // A little later than asked: a millisecond that is not over would be waited for again.
        let then = Instant::now() + left + Duration::from_millis(5);
        tokio::select! {
            ending = kept.session.ended() => return shared.note_end(&kept, &ending).await,
            () = sleep_until(then) => {}
        }
    }
}

/// Notes the end of sessions whose host is gone.
async fn close_orphans(store: &Store) {
    let open = store.sessions(u32::MAX, true).await.unwrap_or_default();
    for SessionRecord { began, last_used_ms, .. } in open {
        if is_owner_alive(&began.owner) || is_owner_this_process(&began.owner) {
            continue;
        }
        let SessionEnding { code, message } = host_ended("the host that kept it has ended");
        let end = SessionEnd { code, reason: message, at_ms: now_ms() };
        if let Err(error) = store.end_session(&began.id, last_used_ms, end).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, id = began.id, "a session's end was not written down");
        }
    }
}

fn row(kept: &KeptSession) -> NewSession {
    let info = kept.session.info();
    NewSession {
        id: info.id,
        caller: kept.caller.clone(),
        language: info.language.as_str().to_owned(),
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
