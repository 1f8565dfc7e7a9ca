//! Calls of which nobody knows whether they happened.
//!
//! All of them are looked at before any other call leaves. A run that stops for a person cuts its
//! calls off: one that had just left would be in doubt, too.

use std::sync::Arc;

use belljar_wire::ToolFault;
use tokio::sync::watch;

/// The doubts of one run.
#[derive(Debug, Clone)]
pub(super) struct Doubts(Arc<watch::Sender<Left>>);

#[derive(Debug, Default)]
struct Left {
    /// Nothing was found out about so many yet.
    open: usize,
    /// What a person has to decide.
    undecided: Vec<ToolFault>,
}

impl Doubts {
    /// So many calls of the journal were sent and did not end.
    pub(super) fn new(open: usize) -> Self {
        Self(Arc::new(watch::Sender::new(Left { open, undecided: Vec::new() })))
    }

    /// Nothing more is to be found out about one of them now. After the last: why the run has to
    /// stop, if it has to.
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

    /// Completes when other calls may leave; never if a person has to decide first.
    pub(super) async fn are_over(&self) {
        let mut left = self.0.subscribe();
        // The sender is `self`'s own: it does not go away.
        let _ = left.wait_for(|left| left.open == 0 && left.undecided.is_empty()).await;
    }
}

/// All that is undecided, told as one.
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
