//! The record of a session, for a later host (B3).

use belljar_contract::{Language, SessionId};
use belljar_store::{NewSession, SessionEnd, Store};

use crate::support::project;

fn new(id: &str, created_ms: i64) -> NewSession {
    NewSession {
        id: id.into(),
        caller: "test".to_owned(),
        language: Language::Python,
        owner: "1:2".to_owned(),
        forked_from: (id != "a").then(|| "a".into()),
        created_ms,
    }
}

fn end(code: &str, at_ms: i64) -> SessionEnd {
    SessionEnd { code: code.to_owned(), reason: format!("it was {code}"), at_ms }
}

#[tokio::test]
async fn b3_why_a_session_ended_is_known_to_the_next_host() {
    let (directory, store) = project();
    store.begin_sessions(vec![new("a", 1), new("b", 2)]).await.unwrap();
    store.end_session(&"a".into(), 5, end("idle", 7)).await.unwrap();
    // The first reason stays.
    store.end_session(&"a".into(), 9, end("destroyed", 9)).await.unwrap();
    let next = Store::open(directory.path()).unwrap();
    let a = next.session(&"a".into()).await.unwrap().unwrap();
    assert_eq!((a.began, a.last_used_ms, a.end), (new("a", 1), 5, Some(end("idle", 7))));
    assert_eq!(next.session(&"none".into()).await.unwrap(), None);
    let ids = async |without_end| -> Vec<SessionId> {
        let found = next.sessions(9, without_end).await.unwrap();
        found.into_iter().map(|session| session.began.id).collect()
    };
    assert_eq!(ids(false).await, ["b", "a"]);
    assert_eq!(ids(true).await, ["b"]);
    assert!(store.begin_sessions(vec![new("c", 1), new("b", 2)]).await.is_err(), "b is taken");
    assert_eq!(ids(false).await, ["b", "a"], "all or none");
}
