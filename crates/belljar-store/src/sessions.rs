//! Records of sessions: who had them, and why they ended.
//!
//! A session lives in its host's memory and dies with it; a later host uses the row to tell a
//! client why it ended. The first end that is written stays.

use belljar_contract::{Language, SessionId};
use rusqlite::Row;

use crate::{Store, StoreError};

/// A session that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id, unique in the store.
    pub id: SessionId,
    /// The caller who asked for it.
    pub caller: String,
    /// The language of its code.
    pub language: Language,
    /// The process that it lives in.
    pub owner: String,
    /// The session it was forked from.
    pub forked_from: Option<SessionId>,
    /// When it was made.
    pub created_ms: i64,
}

/// The record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The facts known when it began.
    pub began: NewSession,
    /// When it was last used; written only when it ends.
    pub last_used_ms: i64,
    /// Its end, when it has ended.
    pub end: Option<SessionEnd>,
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// A stable name of the reason.
    pub code: String,
    /// The reason, for people.
    pub reason: String,
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
}

const COLUMNS: &str = "id, caller, language, owner, forked_from, created_ms, last_used_ms, \
                       ended_ms, end_code, end_reason";

impl Store {
    /// Records that sessions begin.
    pub async fn begin_sessions(&self, sessions: Vec<NewSession>) -> Result<(), StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(
                "INSERT INTO sessions (id, caller, language, owner, forked_from, created_ms,
                    last_used_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
            )?;
            for new in &sessions {
                statement.execute((
                    new.id.as_str(),
                    &new.caller,
                    new.language.as_str(),
                    &new.owner,
                    new.forked_from.as_deref(),
                    new.created_ms,
                ))?;
            }
            Ok(())
        })
        .await
    }

    /// Records how a session ended, unless its end is recorded already.
    pub async fn end_session(
        &self,
        id: &SessionId,
        last_used_ms: i64,
        end: SessionEnd,
    ) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE sessions SET last_used_ms = max(last_used_ms, ?2), ended_ms = ?3,
                        end_code = ?4, end_reason = ?5 WHERE id = ?1 AND ended_ms IS NULL",
                )?
                .execute((id.as_str(), last_used_ms, end.at_ms, end.code, end.reason))?;
            Ok(())
        })
        .await
    }

    /// The record of the session with this id.
    pub async fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let id = id.clone();
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?;
            let mut rows = statement.query_map([id.as_str()], from_row)?;
            Ok(rows.next().transpose()?)
        })
        .await
    }

    /// The newest sessions, newest first; with `without_end`, only those that have not ended.
    pub async fn sessions(
        &self,
        limit: u32,
        without_end: bool,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        self.read(move |connection| {
            let which = if without_end { "WHERE ended_ms IS NULL" } else { "" };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM sessions {which} ORDER BY created_ms DESC, id DESC LIMIT ?1"
            ))?;
            let rows = statement.query_map([limit], from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    let ended_ms: Option<i64> = row.get(7)?;
    let (code, reason): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
    Ok(SessionRecord {
        began: NewSession {
            id: row.get::<_, String>(0)?.into(),
            caller: row.get(1)?,
            language: language(row)?,
            owner: row.get(3)?,
            forked_from: row.get::<_, Option<String>>(4)?.map(SessionId::from),
            created_ms: row.get(5)?,
        },
        last_used_ms: row.get(6)?,
        end: ended_ms.map(|at_ms| SessionEnd {
            code: code.unwrap_or_default(),
            reason: reason.unwrap_or_default(),
            at_ms,
        }),
    })
}

fn language(row: &Row<'_>) -> rusqlite::Result<Language> {
    let name: String = row.get(2)?;
    // A language of some other version: one row must not hide all others, and no session of a record
    // runs code again.
    Ok(Language::from_name(&name).unwrap_or_else(|| {
        tracing::warn!(
            language = name,
            "a session has an unknown language; it counts as TypeScript"
        );
        Language::TypeScript
    }))
}
