//! The made-up repository is the same everywhere, and as large as the demo says.

use super::commits;

#[test]
fn the_commits_are_about_one_point_two_megabytes_and_always_the_same() {
    let first = serde_json::to_string(&commits::repository()).unwrap();
    let second = serde_json::to_string(&commits::repository()).unwrap();
    assert!(first == second, "two generations differ");
    assert!((1_100_000..1_300_000).contains(&first.len()), "{} bytes", first.len());
}
