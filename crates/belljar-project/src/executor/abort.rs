//! The caller's wish to end a run. It is asked about before the run, while it goes on, and once more
//! after it has failed.

use std::{
    future::{Future, ready},
    pin::Pin,
    task::{Context, Poll},
};

use belljar_contract::{ErrorCode, RunError, RunId, RunResult, RunStatus};

/// Completes when the caller aborts the run, and can be polled again after that.
pub(super) struct Abort<F> {
    wish: Option<Pin<Box<F>>>,
}

impl<F: Future<Output = ()>> Abort<F> {
    pub(super) fn new(wish: F) -> Self {
        Self { wish: Some(Box::pin(wish)) }
    }

    /// Waits for a step before the run; `None` if the caller aborts first.
    pub(super) async fn unless<T>(&mut self, step: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = &mut *self => None,
            done = step => Some(done),
        }
    }

    /// Asks once more after a run that failed: a terminal's signal also reaches zygote and cell,
    /// which may end first.
    pub(super) async fn look_again(&mut self, result: &RunResult) {
        if result.success {
            return;
        }
        // Yielding lets the runtime process arrived signals.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            () = &mut *self => {}
            () = ready(()) => {}
        }
    }
}

impl<F: Future<Output = ()>> Future for Abort<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(wish) = &mut self.wish {
            std::task::ready!(wish.as_mut().poll(context));
            self.wish = None;
        }
        Poll::Ready(())
    }
}

/// The result of a run that was aborted before it began.
pub(super) fn not_started(id: RunId) -> RunResult {
    let error = RunError::new(ErrorCode::RunAborted, "the run was aborted");
    RunResult::not_run(id, RunStatus::Aborted, error)
}

#[cfg(test)]
mod tests;
