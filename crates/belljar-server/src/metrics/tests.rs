//! Every name of I1 is there, and numbers land in the bucket they belong to.

use belljar_contract::{ErrorCode, Metrics, RunError};

use super::*;

#[test]
fn i1_a_run_shows_in_every_metric_it_is_about() {
    let metrics = ServerMetrics::default();
    let error = RunError::new(ErrorCode::LimitTimeout, "late");
    let mut result = RunResult::not_run("run_1", RunStatus::Failed, error);
    result.tools.injected = vec!["a".to_owned(), "b".to_owned()];
    result.metrics =
        Metrics { startup_ms: 0.3, execution_ms: 7.0, memory_mb: 4.1, ..Metrics::default() };
    metrics.run_ended(result.status, Some(&result), Duration::from_millis(12));
    metrics.discovered(Duration::from_millis(1));
    metrics.checkpointed(Duration::from_millis(2));
    let text = metrics.text();
    for line in [
        "code_execution_total{status=\"failed\"} 1",
        "code_execution_total{status=\"completed\"} 0",
        "code_execution_errors_total{type=\"TimeoutError\"} 1",
        "code_execution_duration_ms_bucket{le=\"10\"} 0",
        "code_execution_duration_ms_bucket{le=\"25\"} 1",
        "code_execution_duration_ms_count 1",
        "sandbox_startup_ms_sum 0.3",
        "code_execution_ms_bucket{le=\"5\"} 0",
        "sandbox_peak_memory_mb_bucket{le=\"8\"} 1",
        "tools_injected_count_bucket{le=\"1\"} 0",
        "tools_injected_count_bucket{le=\"2\"} 1",
        "tool_discovery_ms_count 1",
        "checkpoint_save_ms_count 1",
        "checkpoint_save_ms_bucket{le=\"+Inf\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn i1_what_a_client_makes_up_makes_no_series() {
    let metrics = ServerMetrics::default();
    // Statuses and types of errors are closed sets, whatever a client or a cell says.
    metrics.answered("/v1/runs", "BREW", 405);
    let text = metrics.text();
    assert!(!text.contains("BREW"), "{text}");
    assert!(text.contains("method=\"other\",status=\"405\"} 1"), "{text}");
}
