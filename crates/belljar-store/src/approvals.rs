//! Questions to a person, and the answers.
//!
//! An approval leaves `pending` once and never returns to it. The transaction that changes it
//! checks its state first, so that of several processes exactly one decides. After its deadline an
//! approval reads as expired; the functions that *act* on that ([`Store::wait_decision`],
//! [`Store::decide`]) write it first, so that it cannot be approved afterwards.
//!
//! An approval whose run is over reads as expired, too, and cannot be decided. That is not written: an
//! aborted run that a person resumes asks again.

use std::time::Duration;

use belljar_contract::{
    ApprovalId, ApprovalKind, ApprovalQuestion, ConsentScope, RunId, SessionId, Verdict,
};
use rusqlite::{Connection, Row};
use thiserror::Error;

use crate::{
    Store, StoreError,
    spill::{self, spill},
};

mod decide;
mod given;

pub use given::GivenRule;

/// The first and the longest delay between two polls of an approval.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A shorter prefix finds no approval, so that a typing error approves nothing.
const SHORTEST_PREFIX: usize = 4;
/// The longest result, in bytes, that a person may enter for a call.
const MOST_RESULT: usize = 1 << 20;

const COLUMNS: &str = "id, run_id, call, kind, tool, caller, line, code_line, created_ms, \
                       expires_ms, state, decided_by, decided_ms, arguments, arguments_blob, result, \
                       widest, session_id, definition, scope, rule";

/// SQL: whether the run of an approval is over, so that nothing waits for the answer. The run of a
/// workflow's task is not over until the workflow has closed the task: the workflow resumes it. Such a
/// run is named after its task.
const RUN_IS_OVER: &str = "EXISTS (SELECT 1 FROM runs WHERE runs.id = approvals.run_id
    AND (runs.finished_ms IS NOT NULL
        OR (runs.status = 'aborted' AND NOT EXISTS (SELECT 1 FROM flow_intents
            WHERE closed_seq IS NULL AND instr(runs.id, substr(key, 1, 32)) = 5))))";

/// A question that a call puts to a person, as it is first written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    /// The id by which a decision refers to it.
    pub id: ApprovalId,
    /// The run that waits for the answer.
    pub run_id: RunId,
    /// The tool call of the run it is about.
    pub call: u32,
    /// The question. A call has one approval for each question.
    pub question: ApprovalQuestion,
    /// The qualified name of the tool, `server__tool`.
    pub tool: String,
    /// The call's arguments, as JSON.
    pub arguments: String,
    /// The client that asked for the run.
    pub caller: String,
    /// The line of the guest code that makes the call.
    pub line: Option<u32>,
    /// The text of that line.
    pub code_line: Option<String>,
    /// When it was asked.
    pub created_ms: i64,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The extent of a yes beyond the call.
    pub terms: ConsentTerms,
}

/// The extent of a yes beyond the call that it is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsentTerms {
    /// The longest that a yes may last.
    pub widest: ConsentScope,
    /// The session that the run is in.
    pub session: Option<SessionId>,
    /// A hash of the tool's definition and of its server's configuration.
    pub definition: String,
}

impl NewApproval {
    /// Whether the call may have happened already, and a person has to say what to do about it.
    pub fn is_in_doubt(&self) -> bool {
        self.question.kind() == ApprovalKind::InDoubt
    }
}

/// A question and its decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The question; it never changes.
    pub asked: NewApproval,
    /// Where the decision stands.
    pub state: ApprovalState,
    /// The person or client whose decision counted; `None` while pending and when it expired.
    pub decided_by: Option<String>,
    /// When it was decided, or found to be expired.
    pub decided_ms: Option<i64>,
    /// The result of the call as JSON, if a person said that it had happened.
    pub result: Option<String>,
    /// The rule that was approved with the call.
    pub given: Option<GivenRule>,
}

/// Where the decision about a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// No decision has been made, and the time is not over.
    Pending,
    /// A person said yes.
    Approved,
    /// A person said no.
    Denied,
    /// No decision came before the deadline, or the run ended first.
    Expired,
    /// A person said that the call had happened, and gave its result.
    Happened,
}

impl ApprovalState {
    /// Its name, as it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Happened => "happened",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Pending, Self::Approved, Self::Denied, Self::Expired, Self::Happened];
        all.into_iter().find(|state| state.as_str() == name)
    }
}

/// Whether a verdict answers a question of this kind: a yes to a call is not a yes to a second
/// call.
fn answers(verdict: &Verdict, question: &NewApproval) -> bool {
    match verdict {
        Verdict::Approve | Verdict::ApproveRule(_) => !question.is_in_doubt(),
        Verdict::Retry | Verdict::Use(_) => question.is_in_doubt(),
        Verdict::Deny => true,
    }
}

fn into_parts(verdict: Verdict) -> (ApprovalState, Option<String>) {
    match verdict {
        Verdict::Approve | Verdict::ApproveRule(_) | Verdict::Retry => {
            (ApprovalState::Approved, None)
        }
        Verdict::Deny => (ApprovalState::Denied, None),
        Verdict::Use(result) => (ApprovalState::Happened, Some(result)),
    }
}

/// A choice of approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvals {
    /// Those that can still be decided.
    Pending,
    /// Every approval, decided or not.
    All,
}

/// Why a decision did not count.
#[derive(Debug, Error)]
pub enum DecideError {
    /// There is no such approval.
    #[error("there is no approval {0}")]
    Unknown(ApprovalId),
    /// Another person or client decided first.
    #[error("approval {id} was {} by {by} before", state.as_str())]
    AlreadyDecided {
        /// The id of the approval.
        id: ApprovalId,
        /// How it was decided.
        state: ApprovalState,
        /// The person or client whose decision counts.
        by: String,
        /// The time of that decision, in milliseconds since 1970.
        at_ms: i64,
    },
    /// The deadline is over.
    #[error("approval {id} has expired")]
    Expired {
        /// The id of the approval.
        id: ApprovalId,
        /// The deadline, in milliseconds since 1970.
        expires_ms: i64,
    },
    /// The run has ended, so nothing waits for the answer.
    #[error("approval {0} is closed: its run has ended; nothing waits for this answer")]
    RunEnded(ApprovalId),
    /// The call may have happened, and the answer is not one for that question.
    #[error(
        "approval {0} is about a call that may have happened: the answers are retry, use and deny"
    )]
    InDoubt(ApprovalId),
    /// The call was not made yet, and the answer is not one for that question.
    #[error("approval {0} is about a call that was not made yet: the answers are approve and deny")]
    NotInDoubt(ApprovalId),
    /// The result that a person entered is larger than 1 MiB.
    #[error("the result for approval {0} is larger than 1 MiB")]
    LargeResult(ApprovalId),
    /// Reading or writing the store failed; no decision was recorded.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Creates an approval, or returns the one that the same call has created for the same kind of
    /// question.
    pub async fn request_approval(&self, approval: NewApproval) -> Result<Approval, StoreError> {
        self.write(move |connection| {
            let now_ms = approval.created_ms;
            let (run_id, call, kind) =
                (approval.run_id.as_str(), approval.call, approval.question.to_string());
            let of_call = "run_id = ?1 AND call = ?2 AND kind = ?3";
            if let Some(found) = find(connection, of_call, (run_id, call, kind), now_ms)? {
                return Ok(found);
            }
            insert(connection, &approval)?;
            let state = ApprovalState::Pending;
            let (decided_by, decided_ms, result, given) = (None, None, None, None);
            let asked = Approval { asked: approval, state, decided_by, decided_ms, result, given };
            asked.at_time(connection, now_ms)
        })
        .await
    }

    /// The approval with exactly this id, as it stands at `now_ms`.
    pub async fn approval(
        &self,
        id: &ApprovalId,
        now_ms: i64,
    ) -> Result<Option<Approval>, StoreError> {
        let id = id.clone();
        self.read(move |connection| find(connection, "id = ?1", [id.as_str()], now_ms)).await
    }

    /// The approval with this id, or the only one whose id begins like this. The part after the
    /// first `_` of an id counts as a beginning, too.
    pub async fn find_approval(
        &self,
        prefix: &str,
        now_ms: i64,
    ) -> Result<Option<Approval>, StoreError> {
        let prefix = prefix.to_owned();
        self.read(move |connection| {
            let exact = find(connection, "id = ?1", [&prefix], now_ms)?;
            // The prefix that all ids share does not select one.
            let telling = prefix.split_once('_').map_or(&*prefix, |(_, telling)| telling);
            if exact.is_some() || telling.chars().count() < SHORTEST_PREFIX {
                return Ok(exact);
            }
            let mut statement = connection.prepare_cached(
                "SELECT id FROM approvals WHERE substr(id, 1, length(?1)) = ?1
                 OR substr(id, instr(id, '_') + 1, length(?1)) = ?1",
            )?;
            let ids = statement.query_map([&prefix], |row| row.get(0))?;
            let ids = ids.collect::<Result<Vec<String>, _>>()?;
            match ids.as_slice() {
                [] => Ok(None),
                [id] => find(connection, "id = ?1", [id], now_ms),
                several => Err(StoreError::AmbiguousId { matches: several.len(), prefix }),
            }
        })
        .await
    }

    /// Lists approvals, oldest first.
    pub async fn approvals(
        &self,
        which: Approvals,
        now_ms: i64,
    ) -> Result<Vec<Approval>, StoreError> {
        self.read(move |connection| {
            let pending = format!("state = 'pending' AND expires_ms > ?1 AND NOT {RUN_IS_OVER}");
            let condition = match which {
                Approvals::Pending => &pending,
                // Always true; the parameter has to be somewhere.
                Approvals::All => "?1 IS NOT NULL",
            };
            list(connection, condition, now_ms)
        })
        .await
    }
}

impl Approval {
    /// The approval as it stands at this time: expired when its deadline or its run is over.
    fn at_time(self, connection: &Connection, now_ms: i64) -> Result<Self, StoreError> {
        let is_over = self.state == ApprovalState::Pending
            && (now_ms >= self.asked.expires_ms || is_run_over(connection, &self.asked.id)?);
        let state = if is_over { ApprovalState::Expired } else { self.state };
        Ok(Self { state, ..self })
    }
}

/// Whether the run of an approval is over, so that nothing waits for the answer.
fn is_run_over(connection: &Connection, id: &ApprovalId) -> Result<bool, StoreError> {
    let sql = format!("SELECT 1 FROM approvals WHERE id = ?1 AND {RUN_IS_OVER}");
    Ok(connection.prepare_cached(&sql)?.exists([id.as_str()])?)
}

/// The approval that meets an SQL condition, as it stands at this time.
fn find<P: rusqlite::Params>(
    connection: &Connection,
    condition: &str,
    parameters: P,
    now_ms: i64,
) -> Result<Option<Approval>, StoreError> {
    let stored = find_stored(connection, condition, parameters)?;
    stored.map(|approval| approval.at_time(connection, now_ms)).transpose()
}

/// The approval that meets an SQL condition, as it is stored.
fn find_stored<P: rusqlite::Params>(
    connection: &Connection,
    condition: &str,
    parameters: P,
) -> Result<Option<Approval>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(parameters)?;
    rows.next()?.map(|row| from_row(connection, row)).transpose()
}

/// All approvals that meet an SQL condition on the time (`?1`).
fn list(
    connection: &Connection,
    condition: &str,
    now_ms: i64,
) -> Result<Vec<Approval>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM approvals WHERE {condition} ORDER BY created_ms, rowid"
    ))?;
    let mut rows = statement.query([now_ms])?;
    let mut approvals = Vec::new();
    while let Some(row) = rows.next()? {
        approvals.push(from_row(connection, row)?.at_time(connection, now_ms)?);
    }
    Ok(approvals)
}

fn insert(connection: &Connection, approval: &NewApproval) -> Result<(), StoreError> {
    let arguments = spill(connection, &approval.arguments, approval.created_ms)?;
    let mut statement = connection.prepare_cached(&format!(
        "INSERT INTO approvals ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'pending', NULL, NULL, ?11, ?12, NULL,
                 ?13, ?14, ?15, 'once', NULL)"
    ))?;
    statement.execute((
        approval.id.as_str(),
        approval.run_id.as_str(),
        approval.call,
        approval.question.to_string(),
        &approval.tool,
        &approval.caller,
        approval.line,
        &approval.code_line,
        approval.created_ms,
        approval.expires_ms,
        arguments.inline,
        arguments.blob,
        approval.terms.widest.as_str(),
        approval.terms.session.as_deref(),
        &approval.terms.definition,
    ))?;
    Ok(())
}

fn from_row(connection: &Connection, row: &Row<'_>) -> Result<Approval, StoreError> {
    let (id, state): (String, String) = (row.get(0)?, row.get(10)?);
    // A state of some other version: one row must not hide all others, and must not be approved.
    let state = ApprovalState::from_name(&state).unwrap_or_else(|| {
        tracing::warn!(state, id, "an approval has an unknown state; it counts as expired");
        ApprovalState::Expired
    });
    let asked = NewApproval {
        id: id.into(),
        run_id: row.get::<_, String>(1)?.into(),
        call: row.get(2)?,
        question: ApprovalQuestion::from_record(&row.get::<_, String>(3)?),
        tool: row.get(4)?,
        caller: row.get(5)?,
        line: row.get(6)?,
        code_line: row.get(7)?,
        created_ms: row.get(8)?,
        expires_ms: row.get(9)?,
        arguments: spill::text(connection, row, 13)?.unwrap_or_default(),
        terms: ConsentTerms {
            // A scope of some other version: the narrowest.
            widest: ConsentScope::from_name(&row.get::<_, String>(16)?).unwrap_or_default(),
            session: row.get::<_, Option<String>>(17)?.map(Into::into),
            definition: row.get(18)?,
        },
    };
    let (decided_by, decided_ms, result) = (row.get(11)?, row.get(12)?, row.get(15)?);
    let given = given::from_columns(&row.get::<_, String>(19)?, row.get(20)?);
    Ok(Approval { asked, state, decided_by, decided_ms, result, given })
}
