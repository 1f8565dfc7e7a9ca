//! How an approval leaves `pending`: a person decides, or its deadline passes.

use belljar_contract::{ApprovalId, Verdict};
use rusqlite::OptionalExtension as _;
use tokio::time::sleep;

use super::{
    Approval, ApprovalState, Connection, DecideError, Duration, FIRST_PAUSE, GivenRule,
    LONGEST_PAUSE, MOST_RESULT, Store, StoreError, answers, find_stored, into_parts, is_run_over,
};

impl Store {
    /// Decides an approval. Of several attempts, in any process, exactly one counts.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        verdict: Verdict,
        by: &str,
        now_ms: i64,
    ) -> Result<Approval, DecideError> {
        self.decide_with(id, verdict, None, by, now_ms).await
    }

    /// The same, and records the rule that a person approved with the call.
    pub async fn decide_with(
        &self,
        id: &ApprovalId,
        verdict: Verdict,
        given: Option<GivenRule>,
        by: &str,
        now_ms: i64,
    ) -> Result<Approval, DecideError> {
        let (id, by) = (id.clone(), by.to_owned());
        if let Verdict::Use(result) = &verdict
            && result.len() > MOST_RESULT
        {
            return Err(DecideError::LargeResult(id));
        }
        let decided = self.write(move |connection| {
            let Some(approval) = expire_if_due(connection, &id, now_ms)? else {
                return Ok(Err(DecideError::Unknown(id)));
            };
            if approval.state != ApprovalState::Pending {
                return Ok(Err(too_late(approval)));
            }
            if is_run_over(connection, &id)? {
                return Ok(Err(DecideError::RunEnded(id)));
            }
            if !answers(&verdict, &approval.asked) {
                return Ok(Err(match approval.asked.is_in_doubt() {
                    true => DecideError::InDoubt(id),
                    false => DecideError::NotInDoubt(id),
                }));
            }
            let (state, result) = into_parts(verdict);
            let decided = Approval {
                state,
                result,
                given,
                decided_by: Some(by),
                decided_ms: Some(now_ms),
                ..approval
            };
            save(connection, &decided)?;
            Ok(Ok(decided))
        });
        // The outer failure rolls the transaction back; the inner one keeps a recorded expiry.
        let decided = decided.await?;
        self.decided().notify_waiters();
        decided
    }

    /// Expires a pending approval whose call has stopped waiting. An approval whose run has a record
    /// stays pending: the run may be resumed, and asks again.
    pub async fn close_orphaned_approval(
        &self,
        id: &ApprovalId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |connection| {
            let of_no_run = "id = ?1 AND state = 'pending'
                AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = approvals.run_id)";
            match find_stored(connection, of_no_run, [id.as_str()])? {
                Some(approval) => expire(connection, approval, now_ms).map(drop),
                None => Ok(()),
            }
        })
        .await
    }

    /// Waits until an approval is no longer pending, and returns it.
    ///
    /// Another process may decide, so this polls; a decision through this store is seen at once.
    /// `now_ms` is called before each poll.
    pub async fn wait_decision(
        &self,
        id: &ApprovalId,
        now_ms: impl Fn() -> i64 + Send,
    ) -> Result<Approval, StoreError> {
        let mut pause = FIRST_PAUSE;
        loop {
            // Listening begins before the poll: a decision in between is not missed.
            let decided = self.decided().notified();
            tokio::pin!(decided);
            decided.as_mut().enable();
            let now = now_ms();
            let unknown = || StoreError::UnknownApproval(id.clone());
            let PendingState { is_pending, expires_ms } =
                self.pending_state(id).await?.ok_or_else(unknown)?;
            if !is_pending {
                return self.approval(id, now).await?.ok_or_else(unknown);
            }
            let left = expires_ms.saturating_sub(now);
            if left <= 0 {
                let id = id.clone();
                let settled = self.write(move |connection| expire_if_due(connection, &id, now));
                return settled.await?.ok_or_else(unknown);
            }
            let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
            tokio::select! {
                () = sleep(pause.min(left)) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = decided => {}
            }
        }
    }

    async fn pending_state(&self, id: &ApprovalId) -> Result<Option<PendingState>, StoreError> {
        let id = id.clone();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT state = 'pending', expires_ms FROM approvals WHERE id = ?1",
            )?;
            let state = statement.query_row([id.as_str()], |row| {
                Ok(PendingState { is_pending: row.get(0)?, expires_ms: row.get(1)? })
            });
            Ok(state.optional()?)
        })
        .await
    }
}

/// The columns that a poll reads. The question itself may be megabytes, and many callers poll.
struct PendingState {
    is_pending: bool,
    expires_ms: i64,
}

/// An approval, after its expiry was recorded if its deadline has passed.
fn expire_if_due(
    connection: &Connection,
    id: &ApprovalId,
    now_ms: i64,
) -> Result<Option<Approval>, StoreError> {
    let Some(approval) = find_stored(connection, "id = ?1", [id.as_str()])? else {
        return Ok(None);
    };
    let is_over = approval.state == ApprovalState::Pending && now_ms >= approval.asked.expires_ms;
    if is_over { expire(connection, approval, now_ms).map(Some) } else { Ok(Some(approval)) }
}

fn expire(
    connection: &Connection,
    approval: Approval,
    now_ms: i64,
) -> Result<Approval, StoreError> {
    let state = ApprovalState::Expired;
    let expired = Approval { state, decided_ms: Some(now_ms), ..approval };
    save(connection, &expired)?;
    Ok(expired)
}

fn save(connection: &Connection, approval: &Approval) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE approvals SET state = ?2, decided_by = ?3, decided_ms = ?4, result = ?5,
         scope = ?6, rule = ?7 WHERE id = ?1",
    )?;
    let Approval { asked, state, decided_by, decided_ms, result, given } = approval;
    let scope = given.as_ref().map(|given| given.scope).unwrap_or_default();
    statement.execute((
        asked.id.as_str(),
        state.as_str(),
        decided_by,
        decided_ms,
        result,
        scope.as_str(),
        given.as_ref().map(|given| &given.rule),
    ))?;
    Ok(())
}

fn too_late(approval: Approval) -> DecideError {
    let Approval { asked, state, decided_by, decided_ms, .. } = approval;
    if state == ApprovalState::Expired {
        if decided_ms.is_some_and(|at_ms| at_ms < asked.expires_ms) {
            return DecideError::RunEnded(asked.id);
        }
        return DecideError::Expired { id: asked.id, expires_ms: asked.expires_ms };
    }
    DecideError::AlreadyDecided {
        id: asked.id,
        state,
        by: decided_by.unwrap_or_default(),
        at_ms: decided_ms.unwrap_or_default(),
    }
}
