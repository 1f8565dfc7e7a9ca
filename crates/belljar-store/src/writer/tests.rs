//! A group of writes in which one fails, or the whole transaction does.

use rusqlite::Connection;
use tokio::sync::oneshot::{self, Receiver};

use super::{AwaitedWrite, QueuedWrite, commit};
use crate::StoreError;

type Answer = Receiver<Result<(), StoreError>>;

fn operation(sql: &'static str) -> (Box<dyn QueuedWrite>, Answer) {
    let (reply, answer) = oneshot::channel();
    let work = move |connection: &Connection| Ok(connection.execute_batch(sql)?);
    (Box::new(AwaitedWrite::new(work, reply)), answer)
}

/// Does the statements as one group; the answers, and how many rows are there then.
fn group(statements: &[&'static str]) -> (Vec<Result<(), StoreError>>, i64) {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE t (x UNIQUE)").unwrap();
    let (batch, answers): (Vec<_>, Vec<_>) = statements.iter().copied().map(operation).unzip();
    commit(&mut connection, None, batch);
    let answers = answers.into_iter().map(|mut answer| answer.try_recv().unwrap()).collect();
    assert!(connection.is_autocommit(), "a transaction was left open");
    (answers, connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap())
}

#[test]
fn one_that_fails_halfway_leaves_nothing_and_the_others_stay() {
    let half = "INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)";
    let (answers, rows) = group(&["INSERT INTO t VALUES (1)", half, "INSERT INTO t VALUES (3)"]);
    assert!(matches!(answers[..], [Ok(()), Err(StoreError::Sqlite(_)), Ok(())]), "{answers:?}");
    assert_eq!(rows, 2);
}

/// As SQLite does by itself when the disk is full: nobody is told that it went well.
#[test]
fn when_the_whole_transaction_is_undone_everyone_is_told() {
    let give_up = "INSERT OR ROLLBACK INTO t VALUES (1)";
    let (answers, rows) = group(&["INSERT INTO t VALUES (1)", give_up, "INSERT INTO t VALUES (3)"]);
    let told = matches!(
        answers[..],
        [Err(StoreError::Commit(_)), Err(StoreError::Sqlite(_)), Err(StoreError::Commit(_))]
    );
    assert!(told, "{answers:?}");
    assert_eq!(rows, 0);
}
