//! Making a session: admission, a fresh cell of its own, a place among the others.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use belljar_contract::{
    EngineName, ErrorCode, Grants, Language, Limits, RunError, RunRequest, Workspace,
};
use belljar_jail::{CellKind, CellLimits, session::FIRST_BRANCH};

use tokio::sync::{Mutex, OwnedSemaphorePermit, watch};

use super::{
    Inner, Session, Turn,
    branch::{Branch, Newcomer},
    cell::SessionCell,
    told::Told,
};
use crate::{Host, cell::Cell, grants::Checked, ids::session_id, orders::cell_limits};

/// Sessions at once.
pub const MAX_SESSIONS: usize = 512;
/// Descriptors the host has of each session: its stream, its keeper's, and handles on their processes.
const DESCRIPTORS_OF_ONE: u64 = 7;
/// Descriptors that are left for everything else: runs, clients, servers, the store.
const OTHER_DESCRIPTORS: u64 = 256;

/// The most sessions this process can have: as many as there are descriptors for.
pub fn most_sessions() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    sessions_for(limit.unwrap_or(u64::MAX))
}

fn sessions_for(descriptors: u64) -> usize {
    let most = descriptors.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_OF_ONE;
    usize::try_from(most).unwrap_or(MAX_SESSIONS).clamp(1, MAX_SESSIONS)
}
/// What keeps libraries of Python from starting threads of their own, unless the caller wants them: a
/// guest with threads cannot be branched.
const ONE_THREAD: [&str; 4] =
    ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"];
/// More CPU time than a session lives for; what a run may use is measured by the host.
const CPU_SECONDS: u64 = 30 * 24 * 3600;

/// A session to be made.
#[derive(Debug, Clone)]
pub struct SessionRequest {
    /// What its code is written in.
    pub language: Language,
    /// What it may use: memory, files, processes. What a single run may use is each run's own.
    pub limits: Limits,
    /// What its runs may reach.
    pub grants: Grants,
    /// The directory it works on a copy of; nothing is ever committed there.
    pub workspace: Option<PathBuf>,
}

impl SessionRequest {
    /// A session with the default limits and no grants.
    pub fn new(language: Language) -> Self {
        Self { language, limits: Limits::DEFAULT, grants: Grants::default(), workspace: None }
    }
}

impl Host {
    /// Makes a session.
    pub async fn open_session(&self, request: SessionRequest) -> Result<Session, RunError> {
        let place = self.session_places(1)?.pop().ok_or_else(too_many)?;
        let SessionRequest { language, limits, grants, workspace } = request;
        // Modules that are granted by name tell which Python is wanted.
        let imports: String =
            grants.modules.iter().map(|name| format!("import {name}\n")).collect();
        let zygote = self.zygote_for(EngineName::default_for(language), &imports);
        let as_run = RunRequest {
            limits,
            grants,
            workspace: workspace.map(|path| Workspace { path, ..Workspace::default() }),
            ..RunRequest::new(language, "")
        };
        let (pool, checked, written) = self.admit_session(&as_run, zygote).await?;
        let Checked { cell: cell_grants, mut guest, workspace } = checked;
        if let Some(tree) = cell_grants.trees.iter().find(|tree| tree.target().starts_with("/tmp"))
        {
            return Err(covered_by_tmp(tree.target()));
        }
        if zygote.engine == EngineName::CPython {
            for name in ONE_THREAD {
                guest.env.entry(name.to_owned()).or_insert_with(|| "1".to_owned());
            }
        }
        let bounds = CellLimits { cpu_seconds: CPU_SECONDS, ..cell_limits(&limits) };
        let Cell { connection, body } =
            pool.make_granted(CellKind::Session, cell_grants, bounds).await?;
        let written = self.trees(written);
        let writing = written.written_by(body.keeper());
        let cell = SessionCell::new(body, writing);
        let crashed = |error: std::io::Error| {
            RunError::new(ErrorCode::SandboxCrashed, format!("the session has no guest: {error}"))
        };
        let pidfd = cell.keeper().await.first_guest().await.map_err(crashed)?;
        let first = Newcomer::of(pidfd, &cell).map_err(crashed)?;
        let live = Branch::new(connection.kept(), FIRST_BRANCH, first, &cell).map_err(crashed)?;
        let inner = Inner {
            id: session_id(),
            forked_from: None,
            language,
            zygote,
            limits,
            guest,
            workspace: workspace.map(Arc::new),
            written,
            created: SystemTime::now(),
            host: self.clone(),
            pool,
            turn: Arc::default(),
            told: std::sync::Mutex::new(Told::new()),
            ending: watch::channel(None).0,
        };
        Ok(inner.settled_in(cell, live, place))
    }

    /// Places for so many sessions: all or none.
    pub(super) fn session_places(
        &self,
        count: usize,
    ) -> Result<Vec<OwnedSemaphorePermit>, RunError> {
        if count == 0 {
            let message = "a session is forked into one or more";
            return Err(RunError::new(ErrorCode::RequestInvalid, message));
        }
        let places = (0..count).map(|_| self.sessions().clone().try_acquire_owned());
        places.collect::<Result<_, _>>().map_err(|_| too_many())
    }
}

impl Inner {
    /// A session like this one for a guest that was cloned from one of its own.
    pub(super) fn forked(
        &self,
        cell: Arc<SessionCell>,
        branch: Branch,
        place: OwnedSemaphorePermit,
    ) -> Session {
        let inner = Self {
            id: session_id(),
            forked_from: Some(self.id.clone()),
            language: self.language,
            zygote: self.zygote,
            limits: self.limits,
            guest: self.guest.clone(),
            workspace: self.workspace.clone(),
            written: self.written.clone(),
            created: SystemTime::now(),
            host: self.host.clone(),
            pool: self.pool.clone(),
            turn: Arc::default(),
            told: std::sync::Mutex::new(Told::new()),
            ending: watch::channel(None).0,
        };
        inner.settled_in(cell, branch, place)
    }

    fn settled_in(
        mut self,
        cell: Arc<SessionCell>,
        live: Branch,
        place: OwnedSemaphorePermit,
    ) -> Session {
        let turn = Turn {
            cell: Some(cell.clone()),
            live: Some(live),
            _place: Some(place),
            ..Turn::default()
        };
        self.tell_guests(&turn);
        self.turn = Arc::new(Mutex::new(turn));
        let inner = Arc::new(self);
        cell.join(&inner);
        Session { inner }
    }
}

/// Each branch of a session has its own `/tmp`, which would hide what is granted there.
fn covered_by_tmp(path: &Path) -> RunError {
    let message = format!("a session cannot be granted {}: its own /tmp hides it", path.display());
    RunError::new(ErrorCode::RequestInvalid, message)
        .with_hint("grant a directory that is not below /tmp, or make this one the workspace")
}

fn too_many() -> RunError {
    let most = most_sessions();
    let message = format!("there are {most} sessions, which is the most there may be");
    let refused = RunError::new(ErrorCode::LimitSessions, message);
    refused.with_hint(match most {
        MAX_SESSIONS => "end those no longer needed",
        _ => "end those no longer needed, or allow the host more open files (ulimit -n)",
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_SESSIONS, sessions_for};

    #[test]
    fn reliability_14_there_are_as_many_sessions_as_descriptors_allow() {
        assert_eq!(sessions_for(1024), 109);
        assert_eq!(sessions_for(1 << 20), MAX_SESSIONS);
        assert_eq!(sessions_for(u64::MAX), MAX_SESSIONS);
        assert_eq!(sessions_for(64), 1);
    }
}
