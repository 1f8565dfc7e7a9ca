//! What the files say about workflows: whether clients have them, and whether YAML may have code.

use super::Files;

/// What clients of `serve` may do with workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkflowSettings {
    /// Whether they have any.
    pub(crate) serve: bool,
    /// Whether those in YAML may have code.
    pub(crate) enable_code_execution: bool,
}

impl WorkflowSettings {
    /// What the operator's file says no to, no project's file says yes to.
    pub(super) fn resolve(files: Files<'_>) -> Self {
        let all = || [files.operator, files.project].into_iter().flatten();
        let says = |file: Option<&super::RawConfig>| file?.enables_code_execution();
        let said = [says(files.operator), says(files.project)];
        let enable_code_execution = said.contains(&Some(true)) && !said.contains(&Some(false));
        let serve = all().all(|file| file.serves_workflows().unwrap_or(true));
        Self { serve, enable_code_execution }
    }
}
