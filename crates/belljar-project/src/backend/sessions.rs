//! Sessions for MCP and HTTP clients.

use std::time::Duration;

use belljar_contract::{
    CheckpointId, ErrorCode, ExecuteRequest, Grants, Language, LimitsRequest, RunError, RunId,
    RunResult, SessionFile, SessionId, SessionInfo, SessionRequest,
};
use belljar_net::NetPolicy;
use belljar_runtime::{FileError, most_sessions, run_id};
use belljar_server::{
    CheckpointInfo, CheckpointTaken, FileContent, FileList, RunReport, RunReporter, SessionError,
    Sessions,
};

use super::ProjectBackend;
use crate::{KeptSession, RunDurability, SessionLifetimes, SessionLookupError, SessionOwner};

/// Most sessions that one fork may create.
const MAX_FORKS: u32 = 64;

impl Sessions for ProjectBackend {
    async fn create_session(&self, request: SessionRequest) -> Result<SessionInfo, SessionError> {
        let asked = |error: RunError| refusal(&SessionId::default(), error);
        let workspace = self.permissions.workspace(request.workspace.as_ref()).map_err(asked)?;
        if workspace.as_ref().is_some_and(|workspace| workspace.commit) {
            return Err(SessionError::Refused {
                why: "a session's workspace is never committed".to_owned(),
                hint: Some("omit `commit`, and download the session's files instead".to_owned()),
            });
        }
        let grants = self.permissions.grants(&request.grants).map_err(asked)?;
        let made = belljar_runtime::SessionSpec {
            language: request.language.unwrap_or_else(|| Language::default_for(request.engine)),
            engine: request.engine,
            limits: self.permissions.limits.with(&request.limits),
            policy: self.session_policy(&grants).map_err(asked)?,
            grants,
            workspace: workspace.map(|workspace| workspace.path),
        };
        let lifetimes = SessionLifetimes {
            idle: request.idle_seconds.map(Duration::from_secs),
            lifetime: request.lifetime_seconds.map(Duration::from_secs),
        };
        let whose =
            SessionOwner { caller: self.permissions.caller.clone(), tools: request.grants.tools };
        let kept = self.sessions.open(made, lifetimes, whose).await;
        Ok(info(&kept.map_err(asked)?))
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, SessionError> {
        Ok(self.sessions.list().iter().map(info).collect())
    }

    async fn session(&self, id: &SessionId) -> Result<SessionInfo, SessionError> {
        Ok(info(&self.live_session(id).await?))
    }

    async fn destroy_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.sessions.destroy(id).await.map_err(no_session)
    }

    async fn run_in_session(
        &self,
        id: &SessionId,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> Result<RunReport, SessionError> {
        let kept = self.live_session(id).await?;
        let run = run_id();
        observer.started(&run);
        let result = self.run_in(&kept, run, request, observer).await;
        Ok(RunReport::ended(result))
    }

    async fn checkpoint(&self, id: &SessionId) -> Result<CheckpointTaken, SessionError> {
        let taken = self.live_session(id).await?.session.checkpoint().await;
        let taken = taken.map_err(|error| refusal(id, error))?;
        Ok(CheckpointTaken { checkpoint_id: taken.id, dropped: taken.dropped })
    }

    async fn checkpoints(&self, id: &SessionId) -> Result<Vec<CheckpointInfo>, SessionError> {
        let all = self.live_session(id).await?.session.info().checkpoints;
        let there = all.into_iter().filter(|checkpoint| checkpoint.dropped.is_none());
        let shown = there.map(|checkpoint| CheckpointInfo {
            checkpoint_id: checkpoint.id,
            created_ms: checkpoint.created_ms,
            memory_bytes: Some(checkpoint.memory_bytes),
        });
        Ok(shown.collect())
    }

    async fn rollback(
        &self,
        id: &SessionId,
        checkpoint_id: &CheckpointId,
    ) -> Result<(), SessionError> {
        let back = self.live_session(id).await?.session.rollback(checkpoint_id).await;
        back.map_err(|error| no_checkpoint(id, checkpoint_id, error))
    }

    async fn fork(
        &self,
        id: &SessionId,
        count: u32,
        checkpoint_id: Option<&CheckpointId>,
    ) -> Result<Vec<SessionId>, SessionError> {
        if count == 0 || count > MAX_FORKS {
            return Err(SessionError::Refused {
                why: format!("`count` must be from 1 to {MAX_FORKS}"),
                hint: None,
            });
        }
        let kept = self.live_session(id).await?;
        let forked = self.sessions.fork(&kept, count as usize, checkpoint_id).await;
        let named = checkpoint_id.cloned().unwrap_or_default();
        let forked = forked.map_err(|error| no_checkpoint(id, &named, error))?;
        Ok(forked.iter().map(|kept| kept.session.id().clone()).collect())
    }

    async fn put_file(
        &self,
        id: &SessionId,
        path: &str,
        content: FileContent,
    ) -> Result<SessionFile, SessionError> {
        let kept = self.live_session(id).await?;
        let most_bytes = kept.session.limits().disk;
        if content.bytes.is_some_and(|bytes| bytes > most_bytes) {
            return Err(SessionError::TooLarge { what: path.to_owned(), most_bytes });
        }
        let put = kept.session.put_file(path, content.reader).await;
        put.map_err(|error| no_file(id, path, error))
    }

    async fn get_file(&self, id: &SessionId, path: &str) -> Result<FileContent, SessionError> {
        let got = self.live_session(id).await?.session.get_file(path).await;
        let (bytes, reader) = got.map_err(|error| no_file(id, path, error))?;
        Ok(FileContent { bytes: Some(bytes), reader: Box::pin(reader) })
    }

    async fn list_files(&self, id: &SessionId, at_most: u32) -> Result<FileList, SessionError> {
        let listed = self.live_session(id).await?.session.list_files(at_most as usize).await;
        let (files, truncated) = listed.map_err(|error| no_file(id, "", error))?;
        Ok(FileList { files, truncated })
    }

    async fn delete_file(&self, id: &SessionId, path: &str) -> Result<(), SessionError> {
        let deleted = self.live_session(id).await?.session.delete_file(path).await;
        deleted.map_err(|error| no_file(id, path, error))
    }
}

impl ProjectBackend {
    /// The rules of `[net]` and of `serve --net` about the hosts that a session is granted.
    fn session_policy(&self, grants: &Grants) -> Result<Option<NetPolicy>, RunError> {
        if grants.net.is_empty() {
            return Ok(None);
        }
        let flags = self.permissions.host_flags();
        self.executor.granted_policy(Some(&flags), &grants.net).map(Some)
    }

    async fn live_session(&self, id: &SessionId) -> Result<KeptSession, SessionError> {
        self.sessions.get(id).await.map_err(no_session)
    }

    async fn run_in(
        &self,
        kept: &KeptSession,
        run: RunId,
        mut request: ExecuteRequest,
        observer: RunReporter,
    ) -> RunResult {
        let aborted = observer.aborted();
        let language = request.language.unwrap_or_else(|| kept.session.language());
        if let Some(error) = limit_of_session(&request.limits) {
            return self.executor.refuse(run, language, error).await;
        }
        request.grants.tools = request.grants.tools.or_else(|| kept.tools.clone());
        request.language = Some(language);
        let mut execution = match self.execution(request, observer) {
            Ok(execution) => execution,
            Err(error) => return self.executor.refuse(run, language, error).await,
        };
        let limits = &mut execution.request.limits;
        *limits = limits.inheriting(&kept.session.limits());
        if execution.durability == RunDurability::IfAsked {
            // The run waits for a person only as long as its host lives: a session has no journal.
            execution.durability = RunDurability::Never;
        }
        let result = self.executor.execute_in(&kept.session, run, execution, aborted).await;
        self.permissions.reworded(result)
    }
}

/// The error for a run that sets a limit which belongs to its whole session.
fn limit_of_session(asked: &LimitsRequest) -> Option<RunError> {
    let name = asked.first_of_session()?.json_key();
    let message = format!(
        "`{name}` is a limit of the whole session; a single run cannot change \
                           it"
    );
    let hint = "set it when you create the session, and omit it in its runs";
    Some(RunError::new(ErrorCode::RequestInvalid, message).with_hint(hint))
}

fn info(kept: &KeptSession) -> SessionInfo {
    let info = kept.session.info();
    let there = info.checkpoints.iter().filter(|checkpoint| checkpoint.dropped.is_none());
    SessionInfo {
        session_id: info.id,
        language: info.language,
        created_ms: info.created_ms,
        last_used_ms: info.last_used_ms,
        expires_ms: kept.expires_ms(),
        forked_from: info.forked_from,
        checkpoints: there.map(|checkpoint| checkpoint.id.clone()).collect(),
        runs: info.runs,
        busy: info.waiting > 0,
        memory_bytes: Some(info.memory_bytes),
    }
}

fn no_session(error: SessionLookupError) -> SessionError {
    match error {
        SessionLookupError::Unknown(id) => SessionError::Unknown { id },
        SessionLookupError::Ended { id, ending } => SessionError::Ended { id, why: ending.message },
    }
}

fn no_checkpoint(id: &SessionId, checkpoint: &CheckpointId, error: RunError) -> SessionError {
    if error.code == ErrorCode::SessionNoCheckpoint {
        return SessionError::UnknownCheckpoint { id: checkpoint.clone() };
    }
    refusal(id, error)
}

/// Translates an error of the runtime to the API.
fn refusal(id: &SessionId, error: RunError) -> SessionError {
    let RunError { code, message, hint, .. } = error;
    if code == ErrorCode::SessionEnded {
        return SessionError::Ended { id: id.clone(), why: message };
    }
    if matches!(code, ErrorCode::SessionNotBranched | ErrorCode::SessionLost) {
        return SessionError::Busy { why: message, hint };
    }
    if code == ErrorCode::LimitSessions {
        return SessionError::TooMany { what: "sessions", most: most_sessions() as u64 };
    }
    let is_ours =
        [ErrorCode::SandboxFailed, ErrorCode::SandboxCrashed, ErrorCode::SandboxZygoteLost];
    match is_ours.contains(&code) {
        true => SessionError::Failed { message },
        false => SessionError::Refused { why: message, hint },
    }
}

fn no_file(id: &SessionId, path: &str, error: FileError) -> SessionError {
    match error {
        FileError::Session(error) => refusal(id, error),
        FileError::Path(why) => SessionError::BadPath { why: why.to_owned() },
        FileError::Missing => SessionError::UnknownFile { path: path.to_owned() },
        FileError::NotEmpty => SessionError::Busy {
            why: format!("{path} is a directory that is not empty"),
            hint: Some("delete its contents first".to_owned()),
        },
        FileError::TooLarge(most_bytes) => {
            SessionError::TooLarge { what: path.to_owned(), most_bytes }
        }
        FileError::Content(error) => {
            SessionError::Refused { why: format!("the upload ended early: {error}"), hint: None }
        }
        FileError::Refused(error) => file_refused(&error),
    }
}

/// Translates an error of the operating system to the API.
fn file_refused(error: &std::io::Error) -> SessionError {
    let kind = error.kind();
    if kind == std::io::ErrorKind::PermissionDenied {
        return SessionError::BadPath {
            why: "the session's code has removed the permission to access it".to_owned(),
        };
    }
    if matches!(kind, std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
        let why = "the session's disk is full".to_owned();
        let hint = Some("delete files, or create a session with a larger `disk` limit".to_owned());
        return SessionError::Refused { why, hint };
    }
    SessionError::Failed { message: error.to_string() }
}
