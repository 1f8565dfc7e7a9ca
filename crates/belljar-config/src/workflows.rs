//! Settings for workflows: whether clients may use them, how many, and whether with code.

use belljar_workflow_formats::CodeExecution;

use super::{ConfigError, ConfigFiles, RawConfig};

/// How many workflows run in parallel, unless a file says otherwise.
pub const MAX_RUNNING: u32 = 16;
/// How many workflows may wait, unless a file says otherwise.
pub const MAX_QUEUED: u32 = 1000;

/// The permissions of clients of `serve` for workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkflowSettings {
    /// Whether clients may use workflows.
    pub serve: bool,
    /// Whether workflows may contain code.
    pub code: CodeExecution,
    /// How many run in parallel.
    pub max_running: u32,
    /// How many may wait in the queue.
    pub max_queued: u32,
}

impl WorkflowSettings {
    /// A project's file cannot enable what the operator's file disables. Of two numbers the lower
    /// one counts.
    pub(super) fn resolve(files: ConfigFiles<'_>) -> Result<Self, ConfigError> {
        let all = || [files.operator, files.project].into_iter().flatten();
        let is_on = |says: fn(&RawConfig) -> Option<bool>| {
            let said = [files.operator.and_then(says), files.project.and_then(says)];
            said.contains(&Some(true)) && !said.contains(&Some(false))
        };
        let code = CodeExecution::of(
            is_on(RawConfig::enables_code_execution),
            is_on(RawConfig::enables_shell),
        );
        let serve = all().all(|file| file.serves_workflows().unwrap_or(true));
        let least = |stated: Result<Vec<_>, _>, usual: u32| {
            Ok(stated?.into_iter().flatten().min().unwrap_or(usual))
        };
        let max_running = least(all().map(RawConfig::max_running).collect(), MAX_RUNNING)?;
        let max_queued = least(all().map(RawConfig::max_queued).collect(), MAX_QUEUED)?;
        Ok(Self { serve, code, max_running, max_queued })
    }
}
