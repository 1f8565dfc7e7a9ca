//! Promises of the repository about its dependencies.

use super::section;

/// S19: a version that was taken back, or that an advisory is about, is not accepted where that can be
/// found out; where it cannot, `scripts/test` says so.
#[test]
fn s19_yanked_versions_are_denied() {
    let deny = include_str!("../../../deny.toml");
    assert!(section(deny, "[advisories]").any(|line| line == "yanked = \"deny\""));
    assert!(section(deny, "[advisories]").any(|line| line == "ignore = []"));
    let script = include_str!("../../../scripts/test");
    assert!(script.contains("check advisories"));
}
