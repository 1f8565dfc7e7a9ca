//! The made-up repository is the same everywhere, and as large as the story says.

use super::{commits, percent_saved};

#[test]
fn the_commits_are_about_one_point_two_megabytes_and_always_the_same() {
    let first = serde_json::to_string(&commits::repository()).unwrap();
    let second = serde_json::to_string(&commits::repository()).unwrap();
    assert!(first == second, "two generations differ");
    assert!((1_100_000..1_300_000).contains(&first.len()), "{} bytes", first.len());
}

#[test]
fn the_saving_is_counted_to_two_decimals() {
    assert!((percent_saved(1_200_000, 500) - 99.96).abs() < 1e-9);
}
