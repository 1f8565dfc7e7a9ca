//! Promises that were rejected without a handler.
//!
//! As in Node, a rejection is an error when it is still unhandled once the job queue is empty.

use std::{cell::RefCell, rc::Rc};

use rquickjs::{Ctx, Persistent, Runtime, Value};

/// The rejections without a handler; must be empty before the runtime is dropped.
#[derive(Debug, Default)]
pub(super) struct RejectionTracker {
    unhandled: RefCell<Vec<UnhandledRejection>>,
}

#[derive(Debug)]
struct UnhandledRejection {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

impl RejectionTracker {
    /// Makes the runtime report rejections to a new tracker.
    pub(super) fn watch(runtime: &Runtime) -> Rc<Self> {
        let rejections = Rc::new(Self::default());
        let tracker = rejections.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                tracker.note(&ctx, promise, reason, is_handled);
            },
        )));
        rejections
    }

    fn note<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        let promise = Persistent::save(ctx, promise);
        let mut unhandled = self.unhandled.borrow_mut();
        if !is_handled {
            let reason = Persistent::save(ctx, reason);
            unhandled.push(UnhandledRejection { promise, reason });
        } else if let Some(at) = unhandled.iter().rposition(|one| one.promise == promise) {
            // Dropped after the borrow ends: freeing a promise may free others.
            let handled = unhandled.remove(at);
            drop(unhandled);
            drop(handled);
        }
    }

    /// The reason of the oldest unhandled rejection.
    pub(super) fn first<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Option<Value<'js>>> {
        let reason = self.unhandled.borrow().first().map(|first| first.reason.clone());
        reason.map(|reason| reason.restore(ctx)).transpose()
    }

    /// Forgets all rejections so far.
    pub(super) fn clear(&self) {
        let forgotten = self.unhandled.take();
        drop(forgotten);
    }
}
