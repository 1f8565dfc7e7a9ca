//! Places among the connections of a host.

use super::*;

#[tokio::test]
async fn a_host_has_so_many_places_and_others_have_their_own() {
    let places = HostPlaces::new(2);
    let host = |name: &str| RemoteHost::parse(name).unwrap();
    let now = Duration::ZERO;
    let first = places.take(&host("example.org"), now).await.unwrap();
    let _second = places.take(&host("example.org"), now).await.unwrap();
    assert!(places.take(&host("example.org"), now).await.is_none());
    assert!(places.take(&host("example.net"), now).await.is_some());
    drop(first);
    assert!(places.take(&host("example.org"), now).await.is_some());
    // Only hosts with connections are remembered.
    assert_eq!(places.hosts.lock().unwrap().len(), 1);
}
