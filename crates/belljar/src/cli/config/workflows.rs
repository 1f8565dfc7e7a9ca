//! What the files say about workflows: whether clients have them, how many at once, and whether YAML
//! may have code.

use std::time::Duration;

use belljar::{MAX_QUEUED, MAX_RUNNING};

use super::{ConfigError, Files, RawConfig};

/// What `keep_days` counts.
const DAY: Duration = Duration::from_hours(24);

/// What clients of `serve` may do with workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkflowSettings {
    /// Whether they have any.
    pub(crate) serve: bool,
    /// Whether those in YAML may have code.
    pub(crate) enable_code_execution: bool,
    /// How many are driven at once.
    pub(crate) max_running: u32,
    /// How many may wait for that.
    pub(crate) max_queued: u32,
    /// For how long those that have ended are kept; for ever if nothing is said.
    pub(crate) keep: Option<Duration>,
}

impl WorkflowSettings {
    /// What the operator's file says no to, no project's file says yes to; of two numbers the lower
    /// one counts.
    pub(super) fn resolve(files: Files<'_>) -> Result<Self, ConfigError> {
        let all = || [files.operator, files.project].into_iter().flatten();
        let says = |file: Option<&RawConfig>| file?.enables_code_execution();
        let said = [says(files.operator), says(files.project)];
        let enable_code_execution = said.contains(&Some(true)) && !said.contains(&Some(false));
        let serve = all().all(|file| file.serves_workflows().unwrap_or(true));
        let least = |stated: Result<Vec<_>, _>, usual: u32| {
            Ok(stated?.into_iter().flatten().min().unwrap_or(usual))
        };
        let max_running = least(all().map(RawConfig::max_running).collect(), MAX_RUNNING)?;
        let max_queued = least(all().map(RawConfig::max_queued).collect(), MAX_QUEUED)?;
        files.project.map_or(Ok(()), RawConfig::refuse_keep_days)?;
        let days = files.operator.map(RawConfig::keep_days).transpose()?.flatten();
        let keep = days.map(|days| DAY * days);
        Ok(Self { serve, enable_code_execution, max_running, max_queued, keep })
    }
}
