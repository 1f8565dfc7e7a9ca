//! Intent mode (D5, E2): a run that says what it is for gets the few tools that fit.

use std::time::Instant;

use belljar_runtime::ToolReport;

use super::{Execution, Executor};

/// As many tools as an intent gets.
const MOST: usize = 5;

impl Executor {
    /// Decides which tools a run gets, and notes it for its result: those that were named, and those
    /// that fit its intent. A run that neither names tools nor says what it is for may use whatever
    /// policy allows, and nothing is noted.
    ///
    /// [`execute`](Self::execute) does this by itself; who has to know before asks here.
    pub async fn inject(&self, execution: &mut Execution) {
        let (Some(bridge), None) = (&self.bridge, &execution.report) else { return };
        let mut discovered = Vec::new();
        if let Some(intent) = execution.intent.as_deref() {
            let began = Instant::now();
            discovered = bridge.grant_matching(&mut execution.tools, intent, MOST).await;
            tracing::info!(intent, ?discovered, took = ?began.elapsed(), "looked for tools");
            if let Some(meter) = self.meter() {
                meter.discovered(began.elapsed());
            }
        }
        let injected = bridge.granted_names(&execution.tools).await;
        if !injected.is_empty() {
            tracing::info!(?injected, "the run gets these tools");
        }
        execution.report = Some(ToolReport { discovered, injected });
    }
}
