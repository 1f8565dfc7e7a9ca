//! One owner at a time; who was superseded changes nothing and is told.

use std::time::Duration;

use belljar_contract::WorkflowStatus;
use belljar_workflow::workflow_store::{
    ClaimReason, GiveBack, LeaseRequest, QueuedCommand, ResumeExclusions, WorkflowBatch,
    WorkflowLease, WorkflowStore, WorkflowStoreError,
};

use crate::conformance::{
    CaseFailure, CaseResult, StoreFixture, create, event, holds, input, inputs, opened, owned,
    same, standing, wants,
};

pub(super) async fn a_live_lease_is_respected<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let lease = owned(&one, "flow").await?;
    let refused = two.claim("flow", wants("other", 10_000)).await;
    let is_refused = matches!(
        &refused,
        Err(WorkflowStoreError::Held { owner, until_ms: 10_001, .. }) if owner == "suite"
    );
    holds(&format!("a live lease was claimed: {refused:?}"), is_refused)?;
    one.commit(&lease, inputs(vec![input(1, b"x")])).await?;
    Ok(())
}

pub(super) async fn a_lapsed_lease_is_free<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let first = owned(&one, "flow").await?;
    let second = two.claim("flow", wants("other", 10_001)).await?;
    holds("the fence did not grow", second.fence > first.fence)?;
    let row = one.find("flow").await?.map(|row| (row.owner, row.lease_until_ms));
    same("owner", &row, &Some(("other".to_owned(), 20_001)))?;
    superseded(one.commit(&first, inputs(vec![input(1, b"x")])).await.map(|_| ()))
}

pub(super) async fn one_of_two_claims_wins<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    create(&one, "flow", 1).await?;
    let mut now = 1;
    for _ in 0..20 {
        let claims = tokio::join!(
            one.claim("flow", wants("one", now)),
            two.claim("flow", wants("two", now))
        );
        let (winner, loser) = match claims {
            (Ok(lease), Err(error)) => ((lease, "one"), error),
            (Err(error), Ok(lease)) => ((lease, "two"), error),
            both => return Err(CaseFailure(format!("not one of two: {both:?}"))),
        };
        let told = matches!(&loser, WorkflowStoreError::Held { owner, .. } if owner == winner.1);
        holds(&format!("the loser was told {loser:?}"), told)?;
        one.renew(&winner.0, now).await?;
        now += 20_000;
    }
    Ok(())
}

/// All a writer can do with a lease.
async fn writes(
    store: &impl WorkflowStore,
    lease: &WorkflowLease,
) -> [Result<(), WorkflowStoreError>; 3] {
    let mut batch = inputs(vec![input(1, b"stale")]);
    batch.snapshot = Some(b"stale".to_vec());
    batch.events = vec![event(1, 1)];
    batch.intents = vec![opened("stale", 1)];
    batch.taken = vec![(1, 1)];
    batch.answers = vec![("c".to_owned(), b"stale".to_vec())];
    batch.state = standing(WorkflowStatus::Aborted, 9, true);
    batch.lease_until_ms = Some(i64::MAX);
    [
        store.commit(lease, batch).await.map(|_| ()),
        store.renew(lease, i64::MAX).await,
        store.release(lease, GiveBack::Free).await,
    ]
}

fn superseded(outcome: Result<(), WorkflowStoreError>) -> CaseResult {
    let is_told = matches!(
        &outcome,
        Err(WorkflowStoreError::Superseded { held, current, .. }) if held < current
    );
    holds(&format!("a superseded writer was told {outcome:?}"), is_told)
}

pub(super) async fn superseded_writes_are_refused<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let stale = owned(&one, "flow").await?;
    let (id, sender) = ("c".to_owned(), "suite".to_owned());
    let command = QueuedCommand { seq: 0, id, sender, at_ms: 1, body: Vec::new() };
    one.send("flow", command).await?;
    let fresh = two.claim("flow", wants("other", 50_000)).await?;
    let before = two.load("flow", None).await?;
    for outcome in writes(&one, &stale).await {
        superseded(outcome)?;
    }
    let row = one.load("flow", None).await?;
    same("what is kept", &row, &before)?;
    same("events", &one.events("flow", 0, 9, Duration::ZERO).await?, &Vec::new())?;
    let answer = one.command("flow", "c", Duration::ZERO).await?.and_then(|row| row.answer);
    same("answer", &answer, &None)?;
    drop((one, two));
    let store = stores.open().await;
    same("after a restart", &store.load("flow", None).await?, &before)?;
    // Control: who has it may do all of it.
    for outcome in writes(&store, &fresh).await {
        outcome?;
    }
    Ok(())
}

pub(super) async fn a_taken_over_lease_is_void<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let first = owned(&one, "flow").await?;
    let request = LeaseRequest { take_over: true, ..wants("other", 2) };
    let second = two.claim("flow", request).await?;
    holds("the fence did not grow", second.fence > first.fence)?;
    superseded(one.commit(&first, inputs(vec![input(1, b"x")])).await.map(|_| ()))?;
    same("last", &two.commit(&second, inputs(vec![input(1, b"y")])).await?, &1)
}

pub(super) async fn a_released_flow_is_free<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let first = owned(&one, "flow").await?;
    one.release(&first, GiveBack::Free).await?;
    superseded(one.commit(&first, inputs(vec![input(1, b"x")])).await.map(|_| ()))?;
    let second = two.claim("flow", wants("other", 2)).await?;
    holds("the fence did not grow", second.fence > first.fence)
}

pub(super) async fn a_resting_flow_has_an_owner_and_is_free<F: StoreFixture>(
    stores: &F,
) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let first = owned(&one, "flow").await?;
    let state = standing(WorkflowStatus::Paused, i64::MAX, false);
    one.commit(&first, WorkflowBatch { state, ..inputs(Vec::new()) }).await?;
    one.release(&first, GiveBack::Resting).await?;
    superseded(one.commit(&first, inputs(vec![input(1, b"x")])).await.map(|_| ()))?;
    let row = two.find("flow").await?.map(|row| (row.owner, row.lease_until_ms));
    same("who looks after it", &row, &Some(("suite".to_owned(), 0)))?;
    same("while it rests", &two.abandoned(2, ResumeExclusions::default(), 9).await?, &Vec::new())?;
    let second = two.claim("flow", wants("other", 2)).await?;
    holds("the fence did not grow", second.fence > first.fence)
}

pub(super) async fn failed_claims_are_counted<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let mut lease = owned(&store, "flow").await?;
    let mut now = 20_000;
    let attempts = async || -> Result<Option<u32>, CaseFailure> {
        Ok(store.find("flow").await?.map(|row| row.fruitless_attempts))
    };
    let found = |now| LeaseRequest { why: ClaimReason::Found, ..wants("found", now) };
    for count in 1..=2 {
        lease = store.claim("flow", found(now)).await?;
        // It begins something, which is no progress.
        store.commit(&lease, inputs(vec![input(count.into(), b"x")])).await?;
        same("claims in vain", &attempts().await?, &Some(count))?;
        now += 20_000;
    }
    store.release(&lease, GiveBack::Failed).await?;
    same("after a failure", &attempts().await?, &Some(2))?;
    let row = store.find("flow").await?.map(|row| (row.owner, row.lease_until_ms));
    same("whose it was", &row, &Some(("found".to_owned(), 0)))?;
    let lease = store.claim("flow", found(now)).await?;
    store.commit(&lease, WorkflowBatch { progress: true, ..inputs(Vec::new()) }).await?;
    same("after progress", &attempts().await?, &Some(0))?;
    for how in [GiveBack::Free, GiveBack::Resting] {
        now += 20_000;
        let lease = store.claim("flow", found(now)).await?;
        same("claimed again", &attempts().await?, &Some(1))?;
        store.release(&lease, how).await?;
        same("left in good order", &attempts().await?, &Some(0))?;
    }
    store.claim("flow", found(now)).await?;
    store.claim("flow", wants("asked", now + 20_000)).await?;
    same("claimed because somebody asked", &attempts().await?, &Some(0))
}

pub(super) async fn leases_are_renewed<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    let lease = owned(&one, "flow").await?;
    one.renew(&lease, 30_000).await?;
    let refused = two.claim("flow", wants("other", 29_999)).await;
    holds(
        "a renewed lease",
        matches!(refused, Err(WorkflowStoreError::Held { until_ms: 30_000, .. })),
    )?;
    // A commit renews it as well, and no renewal shortens it.
    one.commit(&lease, WorkflowBatch { lease_until_ms: Some(40_000), ..inputs(Vec::new()) })
        .await?;
    one.renew(&lease, 5).await?;
    let refused = two.claim("flow", wants("other", 39_999)).await;
    holds(
        "a renewed lease",
        matches!(refused, Err(WorkflowStoreError::Held { until_ms: 40_000, .. })),
    )?;
    two.claim("flow", wants("other", 40_000)).await?;
    Ok(())
}

pub(super) async fn abandoned_flows_are_found<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    // The state that each is committed as; all leases end at 10 001.
    let states = [
        ("under way", standing(WorkflowStatus::Running, 0, false)),
        ("asleep", standing(WorkflowStatus::Paused, 50_000, false)),
        ("asked", standing(WorkflowStatus::Paused, i64::MAX, false)),
        ("ended", standing(WorkflowStatus::Completed, i64::MAX, true)),
    ];
    for (id, state) in states {
        let lease = owned(&store, id).await?;
        store.commit(&lease, WorkflowBatch { state, ..inputs(Vec::new()) }).await?;
    }
    let found = async |now_ms| -> Result<Vec<String>, CaseFailure> {
        let rows = store.abandoned(now_ms, ResumeExclusions::default(), 99).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    };
    same("while owned", &found(10_000).await?, &Vec::<String>::new())?;
    same("lapsed", &found(10_001).await?, &vec!["under way".to_owned()])?;
    let due = vec!["under way".to_owned(), "asleep".to_owned()];
    same("due", &found(50_000).await?, &due)?;
    for id in ["asked", "ended"] {
        let (command, sender) = ("c".to_owned(), "suite".to_owned());
        let command = QueuedCommand { seq: 0, id: command, sender, at_ms: 1, body: Vec::new() };
        store.send(id, command).await?;
    }
    let mut commanded = found(10_001).await?;
    commanded.sort_unstable();
    let expected = ["asked", "ended", "under way"].map(str::to_owned);
    same("commanded", &commanded, &expected.to_vec())?;
    same_but_left_alone(&store).await?;
    store.claim("under way", wants("other", 10_001)).await?;
    holds("one was claimed", !found(10_001).await?.contains(&"under way".to_owned()))
}

/// Those that are left alone keep no others from being found, however few are asked for.
async fn same_but_left_alone(store: &impl WorkflowStore) -> CaseResult {
    let found = async |but: ResumeExclusions, most| -> Result<Vec<String>, CaseFailure> {
        let rows = store.abandoned(10_001, but, most).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    };
    create(store, "stopped", 0).await?;
    let stopped = || Some("suite".to_owned());
    let all = found(ResumeExclusions::default(), 1).await?;
    same("the first", &all, &vec!["stopped".to_owned()])?;
    let but = ResumeExclusions { stopped: stopped(), ..ResumeExclusions::default() };
    same("but stopped", &found(but, 1).await?, &vec!["under way".to_owned()])?;
    let request = LeaseRequest { why: ClaimReason::Found, ..wants("found", 1) };
    let lease = store.claim("stopped", request).await?;
    store.release(&lease, GiveBack::Failed).await?;
    let but = |fruitless_attempts| ResumeExclusions { stopped: stopped(), fruitless_attempts };
    same("once in vain", &found(but(2), 1).await?, &vec!["stopped".to_owned()])?;
    same("but in vain", &found(but(1), 1).await?, &vec!["under way".to_owned()])
}
