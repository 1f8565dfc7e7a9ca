//! Skips tests that cannot run here, loudly. Suites include this file as a module; a proc-macro crate
//! cannot export functions.

use std::sync::OnceLock;

/// Reports that a test is skipped. It fails instead where every test must run:
/// `BELLJAR_REQUIRE_SANDBOX=1`, as in CI.
#[allow(clippy::print_stderr, reason = "a skip is said aloud; the lint leaves unit tests alone")]
pub(crate) fn skip(reason: &str) -> bool {
    let required = std::env::var_os("BELLJAR_REQUIRE_SANDBOX").is_some_and(|value| value == "1");
    assert!(!required, "{reason}, and BELLJAR_REQUIRE_SANDBOX is 1");
    eprintln!("SKIPPED: {reason}");
    true
}

/// Whether to skip a test because this machine cannot sandbox. `missing` finds the reason, once per
/// process.
#[allow(dead_code, reason = "the suites of the jail need only `skip`")]
pub(crate) fn without_sandbox(missing: impl FnOnce() -> Option<String>) -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(missing).as_ref();
    missing.is_some_and(|reason| skip(&format!("this machine cannot sandbox: {reason}")))
}
