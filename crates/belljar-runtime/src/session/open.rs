//! Opens sessions: admission, a fresh cell, and the limit on their number.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use belljar_contract::{
    EngineName, ErrorCode, Grants, Language, Limits, RunError, RunRequest, Workspace,
};
use belljar_jail::{CellKind, CellLimits, session::FIRST_BRANCH};
use belljar_net::NetPolicy;
use tokio::sync::{Mutex, OwnedSemaphorePermit, watch};

use super::{
    CellSession, SessionGuests, SessionState,
    branch::{Branch, NewGuest},
    cell::SessionCell,
    network::CellNetwork,
    snapshot::SessionFacts,
};
use crate::{Host, cell::Cell, cell_limits::cell_limits, grants::CheckedGrants, ids::session_id};

/// The most sessions of one host at once.
pub const MAX_SESSIONS: usize = 512;
/// Descriptors of the host for each session: its stream, its keeper's socket, pidfds, and a listener if it
/// has hosts.
const DESCRIPTORS_OF_ONE: u64 = 8;
/// Descriptors reserved for everything else: runs, clients, servers, the store.
const OTHER_DESCRIPTORS: u64 = 256;

/// The most sessions this process can have with its limit of open files.
pub fn most_sessions() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    sessions_for(limit.unwrap_or(u64::MAX))
}

fn sessions_for(descriptors: u64) -> usize {
    let most = descriptors.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_OF_ONE;
    usize::try_from(most).unwrap_or(MAX_SESSIONS).clamp(1, MAX_SESSIONS)
}

/// Longer than any session lives. The host measures the CPU time of each run.
const CPU_SECONDS: u64 = 30 * 24 * 3600;

/// A session to open.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// The language of its code.
    pub language: Language,
    /// The engine of all its runs; `None` is the usual one for its language.
    pub engine: Option<EngineName>,
    /// The limits of the session: memory, files, processes. Each run has its own limits for the rest.
    pub limits: Limits,
    /// The grants of all its runs.
    pub grants: Grants,
    /// A directory that it sees copy-on-write at `/work`. Nothing is ever committed to it.
    pub workspace: Option<PathBuf>,
    /// The host's rules about the hosts that it is granted, for its whole life. Without them, exactly those
    /// hosts may be reached.
    pub policy: Option<NetPolicy>,
}

impl SessionSpec {
    /// A session with the default limits and no grants.
    pub fn new(language: Language) -> Self {
        Self {
            language,
            engine: None,
            limits: Limits::DEFAULT,
            grants: Grants::default(),
            workspace: None,
            policy: None,
        }
    }
}

impl Host {
    /// Opens a session: makes a cell of its own and waits until its guest is ready.
    pub async fn open_session(&self, spec: SessionSpec) -> Result<CellSession, RunError> {
        let place = self.session_places(1)?.pop().ok_or_else(too_many)?;
        let SessionSpec { language, engine, limits, grants, workspace, policy } = spec;
        // Granted modules decide whether the zygote has the data libraries loaded.
        let imports: String =
            grants.modules.iter().map(|name| format!("import {name}\n")).collect();
        let as_run = RunRequest {
            engine,
            limits,
            grants,
            workspace: workspace.map(|path| Workspace { path, ..Workspace::default() }),
            ..RunRequest::new(language, "")
        };
        let zygote = self.pools.engines.zygote_for(as_run.engine(), &imports);
        let (pool, checked, written) = self.admit_session(&as_run, zygote, policy).await?;
        let CheckedGrants { cell: cell_grants, mut guest, workspace, network } = checked;
        if let Some(tree) = cell_grants.trees.iter().find(|tree| tree.target().starts_with("/tmp"))
        {
            return Err(covered_by_tmp(tree.target()));
        }
        for name in zygote.engine.row().one_thread_variables {
            guest.env.entry((*name).to_owned()).or_insert_with(|| "1".to_owned());
        }
        let cell_limits = CellLimits { cpu_seconds: CPU_SECONDS, ..cell_limits(&limits) };
        let Cell { connection, mut body } =
            pool.make_granted(CellKind::Session, cell_grants, cell_limits).await?;
        let reach = Arc::new(network);
        let sockets = body.take_listener();
        let network =
            sockets.map(|sockets| CellNetwork::start(sockets, reach.clone())).transpose()?;
        let written = self.written_trees(written);
        let guard = written.guard(body.keeper());
        let cell = SessionCell::new(body, (reach, network), guard);
        let no_guest = |error: std::io::Error| {
            RunError::new(
                ErrorCode::SandboxCrashed,
                format!("could not start the guest of the session: {error}"),
            )
        };
        let pidfd = cell.keeper().await.first_guest().await.map_err(no_guest)?;
        let first = NewGuest::of(pidfd, &cell).map_err(no_guest)?;
        let live =
            Branch::new(connection.for_session(), FIRST_BRANCH, first, &cell).map_err(no_guest)?;
        let state = SessionState {
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
            guests: Arc::default(),
            facts: std::sync::Mutex::new(SessionFacts::new()),
            ending: watch::channel(None).0,
        };
        Ok(state.into_session(cell, live, place))
    }

    /// Reserves room for so many sessions: all or none.
    pub(super) fn session_places(
        &self,
        count: usize,
    ) -> Result<Vec<OwnedSemaphorePermit>, RunError> {
        if count == 0 {
            let message = "`count` is 0: a fork makes one session or more";
            return Err(RunError::new(ErrorCode::RequestInvalid, message));
        }
        let places = (0..count).map(|_| self.sessions.clone().try_acquire_owned());
        places.collect::<Result<_, _>>().map_err(|_| too_many())
    }
}

impl SessionState {
    /// A new session like this one, for a clone of one of its guests.
    pub(super) fn forked(
        &self,
        cell: Arc<SessionCell>,
        branch: Branch,
        place: OwnedSemaphorePermit,
    ) -> CellSession {
        let state = Self {
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
            guests: Arc::default(),
            facts: std::sync::Mutex::new(SessionFacts::new()),
            ending: watch::channel(None).0,
        };
        state.into_session(cell, branch, place)
    }

    fn into_session(
        mut self,
        cell: Arc<SessionCell>,
        live: Branch,
        place: OwnedSemaphorePermit,
    ) -> CellSession {
        let guests = SessionGuests {
            cell: Some(cell.clone()),
            live: Some(live),
            _place: Some(place),
            ..SessionGuests::default()
        };
        self.note_guests(&guests);
        self.guests = Arc::new(Mutex::new(guests));
        let state = Arc::new(self);
        cell.join(&state);
        CellSession { state }
    }
}

/// Each branch of a session has its own `/tmp`, which would hide a grant there.
fn covered_by_tmp(path: &Path) -> RunError {
    let message = format!("a session cannot be granted {}: its own /tmp hides it", path.display());
    RunError::new(ErrorCode::RequestInvalid, message)
        .with_hint("grant a directory that is not below /tmp, or use this one as the workspace")
}

fn too_many() -> RunError {
    let most = most_sessions();
    let message = format!("the maximum of {most} sessions is reached");
    let refused = RunError::new(ErrorCode::LimitSessions, message);
    refused.with_hint(match most {
        MAX_SESSIONS => "end sessions that are no longer needed",
        _ => {
            "end sessions that are no longer needed, or allow the host more open files (ulimit -n)"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_SESSIONS, sessions_for};

    #[test]
    fn reliability_14_there_are_as_many_sessions_as_descriptors_allow() {
        assert_eq!(sessions_for(1024), 96);
        assert_eq!(sessions_for(1 << 20), MAX_SESSIONS);
        assert_eq!(sessions_for(u64::MAX), MAX_SESSIONS);
        assert_eq!(sessions_for(64), 1);
    }
}
