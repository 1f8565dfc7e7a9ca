//! Intent mode (D5, E2): a run that states its purpose gets the few tools that fit.

use std::time::Instant;

use belljar_contract::ToolReport;

use super::{Execution, Executor};

/// Tools that an intent gets.
const MOST: usize = 5;

impl Executor {
    /// Chooses the tools of a run and reports them: the named tools, and those that fit the intent. A
    /// run that names no tools and no intent may use every tool that policy allows, and the report is
    /// empty.
    pub(super) async fn inject(&self, execution: &mut Execution) -> ToolReport {
        let Some(bridge) = &self.bridge else { return ToolReport::default() };
        let mut discovered = Vec::new();
        if let Some(intent) = execution.intent.as_deref() {
            let began = Instant::now();
            discovered = bridge.grant_matching(&mut execution.tools, intent, MOST).await;
            let took = began.elapsed();
            tracing::info!(intent, ?discovered, ?took, "searched tools for an intent");
            if let Some(meter) = self.meter() {
                meter.discovered(began.elapsed());
            }
        }
        let injected = bridge.granted_names(&execution.tools).await;
        if !injected.is_empty() {
            tracing::info!(?injected, "the run gets these tools");
        }
        ToolReport { discovered, injected }
    }
}
