//! Acknowledged rows survive `kill -9`, and no pair of rows is stored by half (D7).
//!
//! The test starts this same binary with `BELLJAR_STORE_CHILD` set; the child appends until it is
//! killed and prints each number it was given, after it was given it.

use std::{
    env,
    io::{Write as _, stdout},
    path::Path,
};

use belljar_store::{ClaimReason, Lease, Store};

use crate::support::{CHILD, begin, killed_child, row};

/// Rows are appended in pairs, one of them large.
const LARGE: usize = 30_000;

/// Does nothing unless it is the child.
#[test]
fn child_appends_until_it_is_killed() {
    let Some(directory) = env::var_os(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&directory)).unwrap();
        let lease = begin(&store, "run_a").await;
        let appending: tokio::task::JoinSet<()> = (0..3_u8)
            .map(|writer| {
                let (store, lease) = (store.clone(), lease.clone());
                async move {
                    for call in 0.. {
                        let large = vec![writer.wrapping_add(call as u8); LARGE];
                        let pair = vec![row(call, None), row(call, Some(large))];
                        let first = store.append(&lease, pair, 2).await.unwrap();
                        let mut out = stdout().lock();
                        out.write_all(format!("\nack {first}\n").as_bytes()).unwrap();
                        out.flush().unwrap();
                    }
                }
            })
            .collect();
        appending.join_all().await;
    });
}

#[tokio::test]
async fn every_acknowledged_row_survives_a_kill() {
    for after in [1, 7, 40] {
        let directory = tempfile::tempdir().unwrap();
        let acknowledged =
            killed_child("crash::child_appends_until_it_is_killed", directory.path(), after);
        assert!(acknowledged.len() >= after, "the child ended by itself: {acknowledged:?}");
        let store = Store::open(directory.path()).unwrap();
        // Reading checks that the numbers are dense.
        let journal = store.journal(&"run_a".into()).await.unwrap();
        for first in acknowledged {
            assert!(first < journal.len() as u64, "row {first} was acknowledged and is gone");
        }
        for pair in journal.chunks(2) {
            let [(_, small), (_, large)] = pair else { panic!("half a pair") };
            assert_eq!((small.call, small.body.as_ref()), (large.call, None));
            assert_eq!(large.body.as_ref().map(Vec::len), Some(LARGE));
        }
        // The next owner goes on where the dead one stopped.
        let seen = Lease { run_id: "run_a".into(), fence: 1 };
        let lease = store.claim_run(seen, "next", ClaimReason::Asked, 9).await.unwrap();
        let next = store.append(&lease, vec![row(1, None)], 9).await.unwrap();
        assert_eq!(next, journal.len() as u64 + 1);
    }
}
