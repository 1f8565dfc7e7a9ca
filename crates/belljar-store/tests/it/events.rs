//! Events of all runs have one order (F4).

use belljar_contract::RunId;
use belljar_store::{Store, StoredEvent};

use crate::support::project;

#[tokio::test]
async fn events_are_read_from_where_one_left_off() {
    let (directory, store) = project();
    let other = Store::open(directory.path()).unwrap();
    let mut numbers = Vec::new();
    for (store, run, name) in
        [(&store, "a", "began"), (&other, "b", "began"), (&store, "a", "ended")]
    {
        numbers.push(store.append_event(&run.into(), name, "{}".to_owned(), 7).await.unwrap());
    }
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let read = async |after, limit, run: Option<&str>| -> Vec<(i64, String)> {
        let events = store.events(after, limit, run.map(RunId::from).as_ref()).await.unwrap();
        events
            .into_iter()
            .map(|event| (event.seq, format!("{}{}", event.run_id, event.name)))
            .collect()
    };
    let [first, second, third] = numbers[..] else { panic!("three were appended") };
    let all = [(first, "abegan".into()), (second, "bbegan".into()), (third, "aended".into())];
    assert_eq!(read(0, 9, None).await, all);
    assert_eq!(read(first, 1, None).await, all[1..2]);
    assert_eq!(read(first, 9, Some("a")).await, all[2..]);
    assert_eq!(read(third, 9, None).await, []);
    let event = store.events(second, 9, None).await.unwrap();
    let (run_id, name, data_json) = ("a".into(), "ended".to_owned(), "{}".to_owned());
    assert_eq!(event, [StoredEvent { seq: third, run_id, name, at_ms: 7, data_json }]);
}

#[tokio::test]
async fn events_nobody_waits_for_keep_their_order() {
    let (_directory, store) = project();
    for name in 0..50 {
        store.post_event(&"a".into(), &name.to_string(), "{}".to_owned(), 7).await.unwrap();
    }
    let last = store.append_event(&"a".into(), "50", "{}".to_owned(), 7).await.unwrap();
    let events = store.events(0, 99, None).await.unwrap();
    assert!(events.iter().map(|event| event.name.clone()).eq((0..=50).map(|n| n.to_string())));
    assert_eq!(events.last().map(|event| event.seq), Some(last));
}
