//! A question is decided once, by a person or by time (E2, E4).

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use belljar_contract::{ApprovalQuestion, ConsentScope, RunStatus, Verdict};
use belljar_store::{
    Approval, ApprovalState, Approvals, ClaimReason, ConsentTerms, DecideError, GivenRule, Lease,
    NewApproval, RecordKind, Store, StoreError,
};

use crate::support::{begin, project, prune, sql};

fn question(id: &str, call: u32) -> NewApproval {
    NewApproval {
        id: id.into(),
        run_id: "run_a".into(),
        call,
        question: ApprovalQuestion::MayCall,
        tool: "mail__send".to_owned(),
        arguments: "{\"to\":\"a@b.c\"}".to_owned(),
        caller: "cli".to_owned(),
        line: Some(3),
        code_line: Some("await mcp.mail.send(x)".to_owned()),
        created_ms: 100,
        expires_ms: 200,
        terms: ConsentTerms::default(),
    }
}

fn pending(asked: NewApproval) -> Approval {
    let (decided_by, decided_ms, result, given) = (None, None, None, None);
    Approval { asked, state: ApprovalState::Pending, decided_by, decided_ms, result, given }
}

#[tokio::test]
async fn the_same_call_asks_once_per_kind() {
    let (_directory, store) = project();
    let large = NewApproval { arguments: "x".repeat(20_000), ..question("apr_1", 1) };
    assert_eq!(store.request_approval(large.clone()).await.unwrap(), pending(large.clone()));
    let again = NewApproval { created_ms: 150, expires_ms: 900, ..question("apr_2", 1) };
    assert_eq!(store.request_approval(again.clone()).await.unwrap(), pending(large.clone()));
    let doubt = NewApproval { question: ApprovalQuestion::MayRepeat { times_sent: 1 }, ..again };
    assert_eq!(store.request_approval(doubt.clone()).await.unwrap(), pending(doubt.clone()));
    let all = store.approvals(Approvals::Pending, 150).await.unwrap();
    assert_eq!(all, [pending(large), pending(doubt)]);
}

#[tokio::test]
async fn a_decision_is_kept_with_who_and_when() {
    let (_directory, store) = project();
    store.request_approval(question("apr_1", 1)).await.unwrap();
    let denied = store.decide(&"apr_1".into(), Verdict::Deny, "ann", 150).await.unwrap();
    let expected = Approval {
        state: ApprovalState::Denied,
        decided_by: Some("ann".to_owned()),
        decided_ms: Some(150),
        ..pending(question("apr_1", 1))
    };
    assert_eq!(denied, expected);
    // A replay that asks again finds the decision, also when its time is over.
    let replay = NewApproval { created_ms: 5000, ..question("apr_9", 1) };
    assert_eq!(store.request_approval(replay).await.unwrap(), expected);
    assert_eq!(store.approvals(Approvals::Pending, 150).await.unwrap(), []);
    assert_eq!(store.approvals(Approvals::All, 150).await.unwrap(), [expected]);
    let again = store.decide(&"apr_1".into(), Verdict::Approve, "bob", 160).await.unwrap_err();
    assert_eq!(again.to_string(), "approval apr_1 was denied by ann before");
    let unknown = store.decide(&"apr_7".into(), Verdict::Approve, "bob", 160).await;
    assert!(matches!(unknown, Err(DecideError::Unknown(id)) if id == "apr_7"));
}

/// Approving a call does not approve making it a second time (reliability 3).
#[tokio::test]
async fn reliability_3_a_call_in_doubt_has_answers_of_its_own() {
    let (_directory, store) = project();
    store.request_approval(question("apr_1", 1)).await.unwrap();
    let doubt = NewApproval {
        question: ApprovalQuestion::MayRepeat { times_sent: 1 },
        ..question("apr_2", 1)
    };
    store.request_approval(doubt).await.unwrap();
    let again = NewApproval {
        question: ApprovalQuestion::MayRepeat { times_sent: 2 },
        ..question("apr_3", 1)
    };
    store.request_approval(again).await.unwrap();
    let approve = store.decide(&"apr_2".into(), Verdict::Approve, "ann", 150).await;
    assert!(matches!(approve, Err(DecideError::InDoubt(id)) if id == "apr_2"));
    for verdict in [Verdict::Retry, Verdict::Use("1".to_owned())] {
        let refused = store.decide(&"apr_1".into(), verdict, "ann", 150).await;
        assert!(matches!(refused, Err(DecideError::NotInDoubt(id)) if id == "apr_1"));
    }
    let large = Verdict::Use(" ".repeat((1 << 20) + 1));
    let refused = store.decide(&"apr_2".into(), large, "ann", 150).await;
    assert!(matches!(refused, Err(DecideError::LargeResult(_))), "{refused:?}");
    // Controls: each takes its own answers, and what the call gave is kept.
    let retried = store.decide(&"apr_3".into(), Verdict::Retry, "ann", 150).await.unwrap();
    assert_eq!((retried.state, retried.result), (ApprovalState::Approved, None));
    let given = Verdict::Use("{\"sent\":1}".to_owned());
    let used = store.decide(&"apr_2".into(), given, "ann", 150).await.unwrap();
    assert_eq!(
        (used.state, used.result.as_deref()),
        (ApprovalState::Happened, Some("{\"sent\":1}"))
    );
    assert_eq!(store.approval(&"apr_2".into(), 160).await.unwrap(), Some(used));
    let approved = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 150).await.unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
}

/// Twenty rounds of two processes and two people each: one of them wins, all see the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_processes_exactly_one_decides() {
    let (directory, first) = project();
    let second = Store::open(directory.path()).unwrap();
    for call in 0..20 {
        let id = format!("apr_{call}");
        first.request_approval(question(&id, call)).await.unwrap();
        let tries = [(&first, Verdict::Approve), (&second, Verdict::Deny)].into_iter().cycle();
        let tries: tokio::task::JoinSet<_> =
            (0..4)
                .zip(tries)
                .map(|(who, (store, verdict))| {
                    let (store, id) = (store.clone(), id.clone());
                    async move {
                        store.decide(&id.as_str().into(), verdict, &format!("p{who}"), 150).await
                    }
                })
                .collect();
        let outcomes = tries.join_all().await;
        let mut winners = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok());
        let winner = winners.next().unwrap();
        assert_eq!(winners.next(), None);
        let losers = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        for loser in losers {
            let DecideError::AlreadyDecided { state, by, .. } = loser else {
                panic!("{loser:?}");
            };
            assert_eq!((*state, Some(by)), (winner.state, winner.decided_by.as_ref()));
        }
        assert_eq!(second.approval(&id.as_str().into(), 150).await.unwrap().as_ref(), Some(winner));
    }
}

#[tokio::test]
async fn past_its_time_nobody_decides() {
    let (_directory, store) = project();
    store.request_approval(question("apr_1", 1)).await.unwrap();
    store.request_approval(question("apr_2", 2)).await.unwrap();
    // Control: a moment before, it is still there to be decided.
    assert_eq!(store.approvals(Approvals::Pending, 199).await.unwrap().len(), 2);
    assert_eq!(store.approvals(Approvals::Pending, 200).await.unwrap(), []);
    let read = store.approval(&"apr_1".into(), 200).await.unwrap().unwrap();
    assert_eq!(read.state, ApprovalState::Expired);
    let late = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 200).await;
    assert!(matches!(late, Err(DecideError::Expired { expires_ms: 200, .. })));
    // Written down: a clock that is set back does not bring it to life.
    let back = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 150).await;
    assert!(matches!(back, Err(DecideError::Expired { .. })));
}

#[tokio::test]
async fn who_waits_learns_what_another_process_decided() {
    let (directory, waiting) = project();
    let other = Store::open(directory.path()).unwrap();
    waiting.request_approval(question("apr_1", 1)).await.unwrap();
    let wait = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.wait_decision(&"apr_1".into(), || 150).await }
    });
    let decided = other.decide(&"apr_1".into(), Verdict::Approve, "ann", 150).await.unwrap();
    assert_eq!(wait.await.unwrap().unwrap(), decided);
    let unknown = waiting.wait_decision(&"apr_7".into(), || 150).await;
    assert!(matches!(unknown, Err(StoreError::UnknownApproval(_))));
}

/// When the waiting side has seen the time pass, it is over for everybody.
#[tokio::test]
async fn who_waits_too_long_settles_it_for_all() {
    let (directory, waiting) = project();
    let other = Store::open(directory.path()).unwrap();
    waiting.request_approval(question("apr_1", 1)).await.unwrap();
    let clock = AtomicI64::new(100);
    let expired =
        waiting.wait_decision(&"apr_1".into(), || clock.fetch_add(60, Ordering::Relaxed)).await;
    assert_eq!(expired.unwrap().state, ApprovalState::Expired);
    let late = other.decide(&"apr_1".into(), Verdict::Approve, "ann", 150).await;
    assert!(matches!(late, Err(DecideError::Expired { .. })));
}

/// Many wait, and look again and again; what they ask about may be large.
#[tokio::test]
async fn who_waits_does_not_read_the_question_again() {
    let (directory, store) = project();
    let large = NewApproval { arguments: "x".repeat(100_000), ..question("apr_1", 1) };
    store.request_approval(large).await.unwrap();
    sql(directory.path()).execute("UPDATE blobs SET bytes = x'00'", []).unwrap();
    // Control: whoever reads it finds that it is damaged.
    assert!(matches!(store.approval(&"apr_1".into(), 150).await, Err(StoreError::Damaged { .. })));
    let asked = "apr_1".into();
    let waiting = store.wait_decision(&asked, || 150);
    assert!(tokio::time::timeout(Duration::from_millis(300), waiting).await.is_err());
}

#[tokio::test]
async fn a_beginning_is_enough_if_it_is_the_only_one() {
    let (_directory, store) = project();
    for (call, id) in (0..).zip(["apr_12345678", "apr_12349999", "apr_abcd%_12"]) {
        store.request_approval(question(id, call)).await.unwrap();
    }
    let find = async |prefix: &str| store.find_approval(prefix, 150).await;
    let found = async |prefix: &str| find(prefix).await.unwrap().map(|one| one.asked.id);
    for short in ["apr_12345678", "apr_12345", "12345", "12345678"] {
        assert_eq!(found(short).await.as_deref(), Some("apr_12345678"), "{short}");
    }
    assert_eq!(found("abcd%").await.as_deref(), Some("apr_abcd%_12"));
    for none in ["", "a", "apr", "apr_", "apr_123", "123", "%%%%", "____", "9999", "apr_12345678x"]
    {
        assert_eq!(found(none).await, None, "{none}");
    }
    for (short, count) in [("1234", 2), ("apr_1234", 2)] {
        let several = find(short).await;
        let Err(StoreError::AmbiguousId { matches, .. }) = several else { panic!("{several:?}") };
        assert_eq!(matches, count, "{short}");
    }
}

/// A run that is over waits for nobody; one that rests does, and so does one that is taken up again.
#[tokio::test]
async fn reliability_3_what_a_run_asked_is_closed_when_it_is_over() {
    let (_directory, store) = project();
    let mut lease = begin(&store, "run_a").await;
    store.request_approval(question("apr_1", 1)).await.unwrap();
    for status in ["interrupted", "approval_required", "in_doubt"] {
        store.set_run_status(&lease, RunStatus::from_name(status).unwrap(), 110).await.unwrap();
        assert_eq!(store.approvals(Approvals::Pending, 120).await.unwrap().len(), 1, "{status}");
    }
    store.set_run_status(&lease, RunStatus::Aborted, 120).await.unwrap();
    assert_eq!(store.approvals(Approvals::Pending, 130).await.unwrap(), []);
    let seen = store.approval(&"apr_1".into(), 130).await.unwrap().unwrap();
    assert_eq!(seen.state, ApprovalState::Expired);
    let refused = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 130).await.unwrap_err();
    let why = "approval apr_1 is closed: its run has ended; nothing waits for this answer";
    assert_eq!(refused.to_string(), why);
    // Taken up again it waits again.
    let seen = Lease { run_id: "run_a".into(), fence: lease.fence };
    lease = store.claim_run(seen, "me", ClaimReason::Asked, 140).await.unwrap();
    assert_eq!(
        store.request_approval(question("apr_1", 1)).await.unwrap().state,
        ApprovalState::Pending
    );
    store.finish_run(&lease, RunStatus::Failed, "{}".to_owned(), 150).await.unwrap();
    assert_eq!(store.approvals(Approvals::Pending, 155).await.unwrap(), []);
    let refused = store.decide(&"apr_1".into(), Verdict::Deny, "ann", 155).await.unwrap_err();
    assert_eq!(refused.to_string(), why);
    // The same when the run is gone.
    prune(&store, RecordKind::Runs, 160).await;
    assert!(store.run(&"run_a".into()).await.unwrap().is_none());
    assert_eq!(store.approvals(Approvals::Pending, 165).await.unwrap(), []);
    let refused = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 165).await.unwrap_err();
    assert_eq!(refused.to_string(), why);
}

/// The question of a run without a record is closed by the waiting process; one of a run with a record is not.
#[tokio::test]
async fn reliability_3_a_question_nobody_waits_for_is_closed() {
    let (_directory, store) = project();
    store.request_approval(question("apr_1", 1)).await.unwrap();
    begin(&store, "run_b").await;
    let kept = NewApproval { run_id: "run_b".into(), ..question("apr_2", 1) };
    store.request_approval(kept.clone()).await.unwrap();
    for id in ["apr_1", "apr_2"] {
        store.close_orphaned_approval(&id.into(), 150).await.unwrap();
    }
    assert_eq!(store.approvals(Approvals::Pending, 160).await.unwrap(), [pending(kept)]);
    let refused = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 160).await;
    assert!(matches!(refused, Err(DecideError::RunEnded(_))), "{refused:?}");
}

/// Words of some other version: one row must not hide the others, and must not be approved.
#[tokio::test]
async fn unknown_words_in_a_row_do_not_hide_the_others() {
    let (directory, store) = project();
    for (call, id) in (1..).zip(["apr_1", "apr_2"]) {
        store.request_approval(question(id, call)).await.unwrap();
    }
    // Control: both wait.
    assert_eq!(store.approvals(Approvals::Pending, 150).await.unwrap().len(), 2);
    let changed = "UPDATE approvals SET state = 'postponed', kind = 'later' WHERE id = 'apr_1'";
    sql(directory.path()).execute(changed, []).unwrap();
    let all = store.approvals(Approvals::All, 150).await.unwrap();
    let all: Vec<_> = all.iter().map(|one| (one.asked.id.as_str(), one.state)).collect();
    assert_eq!(all, [("apr_1", ApprovalState::Expired), ("apr_2", ApprovalState::Pending)]);
    let refused = store.decide(&"apr_1".into(), Verdict::Approve, "ann", 150).await;
    assert!(matches!(refused, Err(DecideError::Expired { .. })), "{refused:?}");
}

/// D7: a rule belongs to the run or the session of the call that it was approved with, and stays with it
/// after a restart.
#[tokio::test]
async fn d7_a_rule_is_found_by_its_run_or_its_session_only() {
    let (directory, store) = project();
    let in_session = |id: &str, call, run: &str, session: Option<&str>| NewApproval {
        run_id: run.into(),
        terms: ConsentTerms {
            widest: ConsentScope::Always,
            session: session.map(Into::into),
            definition: "d".to_owned(),
        },
        ..question(id, call)
    };
    for asked in [
        in_session("apr_1", 1, "run_a", Some("ses_1")),
        in_session("apr_2", 2, "run_a", Some("ses_1")),
        in_session("apr_3", 3, "run_a", Some("ses_1")),
    ] {
        store.request_approval(asked).await.unwrap();
    }
    let given = |scope, rule: &str| GivenRule { scope, rule: rule.to_owned() };
    let (run, session) = (given(ConsentScope::Run, "r"), given(ConsentScope::Session, "s"));
    for (id, verdict, rule) in [
        ("apr_1", Verdict::Approve, &run),
        ("apr_2", Verdict::Approve, &session),
        ("apr_3", Verdict::Approve, &given(ConsentScope::Always, "a")),
    ] {
        store.decide_with(&id.into(), verdict, Some(rule.clone()), "ann", 150).await.unwrap();
    }
    drop(store);
    let store = Store::open(directory.path()).unwrap();
    let found = async |run: &str, session: Option<&str>| {
        store.given_rules(&run.into(), session.map(Into::into).as_ref()).await.unwrap()
    };
    assert_eq!(found("run_a", Some("ses_1")).await, [run.clone(), session.clone()]);
    assert_eq!(found("run_a", None).await, [run]);
    assert_eq!(found("run_b", Some("ses_1")).await, [session]);
    assert_eq!(found("run_b", Some("ses_2")).await, []);
    assert_eq!(found("run_b", None).await, []);
}
