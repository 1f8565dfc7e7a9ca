//! Sessions that hold one value and some files. `set VALUE`, `get`; `crash` ends the session;
//! anything else is what a run without a session would do.

use std::{
    collections::BTreeMap,
    sync::{Mutex, atomic::Ordering},
};

use belljar_contract::{
    Access, CheckpointId, ExecuteRequest, Language, RunId, SessionFile, SessionFileKind, SessionId,
    SessionInfo, SessionRequest,
};
use belljar_server::{
    ApprovalRequest, CheckpointInfo, CheckpointTaken, EventInfo, FileContent, FileList, Records,
    RecordsError, RunInfo, RunReport, RunReporter, SessionError, Sessions,
};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::fake::{FakeBackend, ended, report};

const MOST_FILE_BYTES: u64 = 1 << 20;
const MOST_SESSIONS: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct FakeSession {
    language: Language,
    forked_from: Option<SessionId>,
    state: FakeSessionState,
    checkpoints: Vec<(CheckpointId, FakeSessionState)>,
    runs: u64,
    ended: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FakeSessionState {
    value: String,
    files: BTreeMap<String, Vec<u8>>,
}

pub(crate) type AllSessions = Mutex<BTreeMap<SessionId, FakeSession>>;

impl FakeBackend {
    fn with<T>(
        &self,
        id: &SessionId,
        change: impl FnOnce(&mut FakeSession) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let mut sessions = self.sessions.lock().unwrap();
        let held = sessions.get_mut(id);
        let held = held.ok_or_else(|| SessionError::Unknown { id: id.clone() })?;
        if let Some(why) = &held.ended {
            return Err(SessionError::Ended { id: id.clone(), why: why.clone() });
        }
        change(held)
    }

    fn add(&self, held: FakeSession) -> Result<SessionId, SessionError> {
        let mut sessions = self.sessions.lock().unwrap();
        if sessions.values().filter(|held| held.ended.is_none()).count() >= MOST_SESSIONS {
            return Err(SessionError::TooMany { what: "sessions", most: MOST_SESSIONS as u64 });
        }
        let id = SessionId::from(format!("ses_{}", self.next.fetch_add(1, Ordering::SeqCst)));
        sessions.insert(id.clone(), held);
        Ok(id)
    }
}

fn info(id: &SessionId, held: &FakeSession) -> SessionInfo {
    SessionInfo {
        session_id: id.clone(),
        language: held.language,
        created_ms: 1,
        last_used_ms: 2,
        expires_ms: 3,
        forked_from: held.forked_from.clone(),
        checkpoints: held.checkpoints.iter().map(|(id, _)| id.clone()).collect(),
        runs: held.runs,
        busy: false,
        memory_bytes: None,
    }
}

fn file((path, content): (&String, &Vec<u8>)) -> SessionFile {
    SessionFile { path: path.clone(), bytes: content.len() as u64, kind: SessionFileKind::File }
}

impl Sessions for FakeBackend {
    async fn create_session(&self, request: SessionRequest) -> Result<SessionInfo, SessionError> {
        if request.grants.read != Access::None {
            let why = "reading is not allowed here".to_owned();
            return Err(SessionError::Refused { why, hint: None });
        }
        let held = FakeSession {
            language: request.language.unwrap_or(Language::TypeScript),
            forked_from: None,
            state: FakeSessionState::default(),
            checkpoints: Vec::new(),
            runs: 0,
            ended: None,
        };
        let id = self.add(held)?;
        self.session(&id).await
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, SessionError> {
        let sessions = self.sessions.lock().unwrap();
        let living = sessions.iter().filter(|(_, held)| held.ended.is_none());
        Ok(living.map(|(id, held)| info(id, held)).collect())
    }

    async fn session(&self, id: &SessionId) -> Result<SessionInfo, SessionError> {
        self.with(id, |held| Ok(info(id, held)))
    }

    async fn destroy_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.with(id, |held| {
            held.ended = Some("it was destroyed".to_owned());
            Ok(())
        })
    }

    async fn run_in_session(
        &self,
        id: &SessionId,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> Result<RunReport, SessionError> {
        let run = RunId::from(format!("run_{}", self.next.fetch_add(1, Ordering::SeqCst)));
        let value = self.with(id, |held| {
            held.runs += 1;
            Ok(match request.code.split_once(' ').unwrap_or((&request.code, "")) {
                ("set", value) => {
                    held.state.value = value.to_owned();
                    Some(json!(null))
                }
                ("get", _) => Some(json!(held.state.value)),
                ("crash", _) => {
                    held.ended = Some("its cell crashed".to_owned());
                    Some(json!(null))
                }
                _ => None,
            })
        })?;
        observer.started(&run);
        let mut result = match value {
            Some(value) => ended(&run, value),
            None => self.run(&run, &request.code, &observer).await,
        };
        result["session_id"] = json!(id);
        Ok(report(&result))
    }

    async fn checkpoint(&self, id: &SessionId) -> Result<CheckpointTaken, SessionError> {
        let checkpoint_id = format!("cp_{}", self.next.fetch_add(1, Ordering::SeqCst));
        let checkpoint_id = CheckpointId::from(checkpoint_id);
        self.with(id, |held| {
            held.checkpoints.push((checkpoint_id.clone(), held.state.clone()));
            Ok(CheckpointTaken { checkpoint_id, dropped: Vec::new() })
        })
    }

    async fn checkpoints(&self, id: &SessionId) -> Result<Vec<CheckpointInfo>, SessionError> {
        let about = |checkpoint_id: &CheckpointId| CheckpointInfo {
            checkpoint_id: checkpoint_id.clone(),
            created_ms: 1,
            memory_bytes: Some(0),
        };
        self.with(id, |held| Ok(held.checkpoints.iter().map(|(id, _)| about(id)).collect()))
    }

    async fn rollback(
        &self,
        id: &SessionId,
        checkpoint_id: &CheckpointId,
    ) -> Result<(), SessionError> {
        self.with(id, |held| {
            held.state = held.at(Some(checkpoint_id))?;
            Ok(())
        })
    }

    async fn fork(
        &self,
        id: &SessionId,
        count: u32,
        checkpoint_id: Option<&CheckpointId>,
    ) -> Result<Vec<SessionId>, SessionError> {
        let state = self.with(id, |held| held.at(checkpoint_id))?;
        let held = self.with(id, |held| {
            let forked_from = Some(id.clone());
            Ok(FakeSession { forked_from, state, checkpoints: Vec::new(), ..held.clone() })
        })?;
        (0..count).map(|_| self.add(held.clone())).collect()
    }

    async fn put_file(
        &self,
        id: &SessionId,
        path: &str,
        content: FileContent,
    ) -> Result<SessionFile, SessionError> {
        self.with(id, |_| Ok(()))?;
        let mut bytes = Vec::new();
        let mut content = content.reader.take(MOST_FILE_BYTES + 1);
        let read = content.read_to_end(&mut bytes).await;
        read.map_err(|error| SessionError::Failed { message: error.to_string() })?;
        if bytes.len() as u64 > MOST_FILE_BYTES {
            let what = "the file".to_owned();
            return Err(SessionError::TooLarge { what, most_bytes: MOST_FILE_BYTES });
        }
        self.with(id, |held| {
            held.state.files.insert(path.to_owned(), bytes);
            Ok(file(held.state.files.get_key_value(path).unwrap()))
        })
    }

    async fn get_file(&self, id: &SessionId, path: &str) -> Result<FileContent, SessionError> {
        let content = self.with(id, |held| {
            let unknown = || SessionError::UnknownFile { path: path.to_owned() };
            held.state.files.get(path).cloned().ok_or_else(unknown)
        })?;
        let bytes = Some(content.len() as u64);
        Ok(FileContent { bytes, reader: Box::pin(std::io::Cursor::new(content)) })
    }

    async fn list_files(&self, id: &SessionId, _at_most: u32) -> Result<FileList, SessionError> {
        self.with(id, |held| {
            Ok(FileList { files: held.state.files.iter().map(file).collect(), truncated: false })
        })
    }

    async fn delete_file(&self, id: &SessionId, path: &str) -> Result<(), SessionError> {
        self.with(id, |held| {
            let unknown = || SessionError::UnknownFile { path: path.to_owned() };
            held.state.files.remove(path).map(drop).ok_or_else(unknown)
        })
    }
}

impl FakeSession {
    fn at(&self, checkpoint_id: Option<&CheckpointId>) -> Result<FakeSessionState, SessionError> {
        let Some(wanted) = checkpoint_id else { return Ok(self.state.clone()) };
        let found = self.checkpoints.iter().find(|(id, _)| id == wanted);
        let unknown = || SessionError::UnknownCheckpoint { id: wanted.clone() };
        found.map(|(_, state)| state.clone()).ok_or_else(unknown)
    }
}

impl Records for FakeBackend {
    async fn runs(&self, _: u32, _: Option<&RunId>) -> Result<Vec<RunInfo>, RecordsError> {
        Ok(Vec::new())
    }

    async fn approvals(&self) -> Result<Vec<ApprovalRequest>, RecordsError> {
        Ok(self.asked.lock().unwrap().clone())
    }

    async fn events(
        &self,
        after: u64,
        at_most: u32,
        run_id: Option<&RunId>,
    ) -> Result<Vec<EventInfo>, RecordsError> {
        let events = self.events.lock().unwrap();
        let of_run = |event: &&EventInfo| run_id.is_none_or(|id| *id == event.run_id);
        let later = events.iter().filter(|event| event.seq > after).filter(of_run);
        Ok(later.take(at_most as usize).cloned().collect())
    }
}
