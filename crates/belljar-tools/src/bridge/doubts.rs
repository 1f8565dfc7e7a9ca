//! Calls in doubt: they were sent before the host ended, and it is unknown whether they happened.
//!
//! All of them are resolved before any other call leaves. A run that stops for a person aborts its
//! calls, so a call that had just left would be in doubt, too.

use std::sync::Arc;

use belljar_wire::ToolFault;
use tokio::sync::watch;

/// The calls in doubt of one run.
#[derive(Debug, Clone)]
pub(super) struct Doubts(Arc<watch::Sender<DoubtState>>);

#[derive(Debug, Default)]
struct DoubtState {
    /// How many are not resolved yet.
    open: usize,
    /// Those that a person has to decide about.
    undecided: Vec<ToolFault>,
}

impl Doubts {
    /// So many calls of the journal were sent and did not end.
    pub(super) fn new(open: usize) -> Self {
        Self(Arc::new(watch::Sender::new(DoubtState { open, undecided: Vec::new() })))
    }

    /// Closes one of them. After the last one, returns why the run has to stop, if it has to.
    pub(super) fn close(&self, undecided: Option<ToolFault>) -> Option<ToolFault> {
        let mut stop = None;
        self.0.send_modify(|left| {
            left.open = left.open.saturating_sub(1);
            left.undecided.extend(undecided);
            if left.open == 0 {
                stop = together(&left.undecided);
            }
        });
        stop
    }

    /// Completes when other calls may leave; never completes if a person has to decide first.
    pub(super) async fn are_over(&self) {
        let mut left = self.0.subscribe();
        // The sender is `self`'s own: it does not go away.
        let _ = left.wait_for(|left| left.open == 0 && left.undecided.is_empty()).await;
    }
}

/// All undecided calls as one fault.
fn together(undecided: &[ToolFault]) -> Option<ToolFault> {
    let (first, others) = undecided.split_first()?;
    let mut fault = first.clone();
    if !others.is_empty() {
        let more = format!("; so are {} more calls: see `belljar approvals`", others.len());
        fault.message.push_str(&more);
    }
    Some(fault)
}

#[cfg(test)]
mod tests;
