//! A9: no log line is lost, and none is shown twice.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};

use super::only_logged;

fn result(stdout: &str, stderr: &str, logs: &[&str]) -> RunResult {
    let mut result =
        RunResult::not_run("run_1", RunStatus::Completed, RunError::new(ErrorCode::RunAborted, ""));
    result.stdout = stdout.to_owned();
    result.stderr = stderr.to_owned();
    result.logs = logs.iter().map(|&entry| entry.to_owned()).collect();
    result
}

#[test]
fn a9_what_was_printed_is_not_shown_again() {
    let result = result("one\ntwo\nlines\n", "bad\n", &["one", "bad", "two\nlines"]);
    assert_eq!(only_logged(&result), Vec::<&str>::new());
}

#[test]
fn a9_what_was_only_logged_is_shown() {
    let logs = ["seen", "[blocked] fetch()", "", "quiet", "seen too"];
    let result = result("seen\n\nseen too\n", "", &logs);
    assert_eq!(only_logged(&result), ["[blocked] fetch()", "quiet"]);
}

#[test]
fn a9_after_a_cut_nothing_is_guessed() {
    let mut result = result("on", "", &["one", "two"]);
    result.truncated.stdout = true;
    assert_eq!(only_logged(&result), Vec::<&str>::new());
}
