//! Group commit: many writers, few transactions, and nobody pays for another's mistake.

use belljar_store::{Lease, Store, StoreError};

use crate::support::{begin, project, row};

fn append_all(
    store: &Store,
    leases: impl IntoIterator<Item = Lease>,
) -> tokio::task::JoinSet<(Lease, Result<u64, StoreError>)> {
    let appends = leases.into_iter().map(|lease| {
        let store = store.clone();
        async move {
            let number = store.append(&lease, vec![row(1, None)], 2).await;
            (lease, number)
        }
    });
    appends.collect()
}

#[tokio::test]
async fn concurrent_appends_share_transactions() {
    let (_directory, store) = project();
    let lease = begin(&store, "run_a").await;
    let before = store.write_counts();
    let answers = append_all(&store, vec![lease; 200]).join_all().await;
    let mut numbers: Vec<u64> = answers.into_iter().map(|(_, number)| number.unwrap()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=200));
    let after = store.write_counts();
    assert_eq!(after.operations - before.operations, 200);
    let transactions = after.transactions - before.transactions;
    assert!(transactions < 100, "{transactions} transactions for 200 appends");
    assert_eq!(store.journal(&"run_a".into()).await.unwrap().len(), 200);
}

#[tokio::test]
async fn one_that_fails_undoes_itself_only() {
    let (_directory, store) = project();
    let good = begin(&store, "run_a").await;
    let stale = Lease { fence: 7, ..good.clone() };
    let unknown = Lease { run_id: "run_x".into(), fence: 1 };
    let leases = [good, stale, unknown].into_iter().cycle().take(90);
    for (lease, number) in append_all(&store, leases).join_all().await {
        match (lease.run_id.as_str(), lease.fence) {
            ("run_a", 1) => assert!(number.is_ok(), "{number:?}"),
            ("run_a", _) => assert!(matches!(number, Err(StoreError::Fenced { .. }))),
            _ => assert!(matches!(number, Err(StoreError::UnknownRun(_)))),
        }
    }
    assert_eq!(store.journal(&"run_a".into()).await.unwrap().len(), 30);
}

/// Two processes append to runs of their own at the same time; each waits for the other's lock.
#[tokio::test(flavor = "multi_thread")]
async fn two_stores_on_one_file_take_turns() {
    let (directory, first) = project();
    let second = Store::open(directory.path()).unwrap();
    let (a, b) = (begin(&first, "run_a").await, begin(&second, "run_b").await);
    let (firsts, seconds) = (append_all(&first, vec![a; 100]), append_all(&second, vec![b; 100]));
    for (_, number) in firsts.join_all().await.into_iter().chain(seconds.join_all().await) {
        number.unwrap();
    }
    assert_eq!(first.journal(&"run_b".into()).await.unwrap().len(), 100);
    assert_eq!(second.journal(&"run_a".into()).await.unwrap().len(), 100);
}

#[tokio::test]
async fn dropping_the_last_clone_writes_what_is_queued() {
    let (directory, store) = project();
    let lease = begin(&store, "run_a").await;
    let clone = store.clone();
    let append = clone.append(&lease, vec![row(1, None)], 2);
    // Queued, and then nobody waits for it.
    let mut append = Box::pin(append);
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(append.as_mut().poll(context).is_pending())
    });
    assert!(polled.await);
    drop(append);
    drop((clone, store));
    let reopened = Store::open(directory.path()).unwrap();
    assert_eq!(reopened.journal(&"run_a".into()).await.unwrap().len(), 1);
}
