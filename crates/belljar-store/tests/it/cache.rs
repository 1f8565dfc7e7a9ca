//! The cache keeps what is young and fits (H2), and shapes are what was learned last.

use belljar_store::{Store, StoreOptions};

use crate::support::project;

#[tokio::test]
async fn values_expire() {
    let (_directory, store) = project();
    store.cache_put("k", b"v".to_vec(), 20, 10).await.unwrap();
    assert_eq!(store.cache_get("k", 19).await.unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(store.cache_get("k", 20).await.unwrap(), None);
    assert_eq!(store.cache_get("other", 15).await.unwrap(), None);
    store.cache_put("k", b"w".to_vec(), 30, 15).await.unwrap();
    assert_eq!(store.cache_get("k", 20).await.unwrap().as_deref(), Some(&b"w"[..]));
}

#[tokio::test]
async fn the_oldest_make_room() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { cache_bytes: 100, ..StoreOptions::default() };
    let store = Store::open_with(directory.path(), options).unwrap();
    for key in ["a", "b", "c"] {
        store.cache_put(key, vec![0; 30], 99, 10).await.unwrap();
    }
    // Put again, so that it is the newest of this millisecond.
    store.cache_put("a", vec![1; 30], 99, 10).await.unwrap();
    store.cache_put("d", vec![0; 50], 99, 10).await.unwrap();
    store.cache_put("huge", vec![0; 101], 99, 10).await.unwrap();
    let mut kept = String::new();
    for key in ["a", "b", "c", "d", "huge"] {
        if store.cache_get(key, 11).await.unwrap().is_some() {
            kept.push_str(key);
        }
    }
    assert_eq!(kept, "ad");
}

#[tokio::test]
async fn a_shape_is_what_was_learned_last() {
    let (_directory, store) = project();
    assert_eq!(store.shape("t").await.unwrap(), None);
    for shape in ["1", "2"] {
        store.learn_shape("t", shape.to_owned(), 1).await.unwrap();
    }
    assert_eq!(store.shape("t").await.unwrap().as_deref(), Some("2"));
}
