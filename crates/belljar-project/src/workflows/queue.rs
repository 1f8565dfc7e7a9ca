//! The queue of workflows: a limited number runs in the background, the others wait in order.
//!
//! A lost queue loses nothing: waiting workflows are stored and due.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use belljar_workflow::workflow_store::ClaimReason;

/// Running and waiting workflows.
#[derive(Debug, Clone)]
pub(super) struct DriveQueue {
    most: usize,
    state: Arc<Mutex<QueueState>>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<(String, ClaimReason)>,
    driven: BTreeSet<String>,
}

impl DriveQueue {
    /// At most `most` workflows run in parallel, and at least one.
    pub(super) fn new(most: u32) -> Self {
        Self { most: usize::try_from(most.max(1)).unwrap_or(usize::MAX), state: Arc::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut QueueState) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Appends a workflow unless it is queued. A request by a person is remembered.
    pub(super) fn push(&self, id: &str, why: ClaimReason) {
        self.with(|state| {
            if let Some((_, known)) = state.waiting.iter_mut().find(|(waiting, _)| waiting == id) {
                if why == ClaimReason::Asked {
                    *known = why;
                }
            } else if !state.driven.contains(id) {
                state.waiting.push_back((id.to_owned(), why));
            }
        });
    }

    /// The first waiting workflow, if a slot is free.
    pub(super) fn take_next(&self) -> Option<QueueSlot> {
        self.with(|state| {
            let has_room = state.driven.len() < self.most;
            let (id, why) = has_room.then(|| state.waiting.pop_front()).flatten()?;
            state.driven.insert(id.clone());
            Some(QueueSlot { queue: self.clone(), id, why })
        })
    }

    /// Number of waiting workflows.
    pub(super) fn len(&self) -> usize {
        self.with(|state| state.waiting.len())
    }

    /// The place of a waiting workflow; the first is 1.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.with(|state| Some(1 + state.waiting.iter().position(|(waiting, _)| waiting == id)?))
    }
}

/// A slot of the queue, free again when it is dropped.
#[derive(Debug)]
pub(super) struct QueueSlot {
    queue: DriveQueue,
    id: String,
    why: ClaimReason,
}

impl QueueSlot {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn why(&self) -> ClaimReason {
        self.why
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.queue.with(|state| state.driven.remove(&self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::{ClaimReason, DriveQueue};

    #[test]
    fn f1_those_that_wait_come_in_order_and_once() {
        let queue = DriveQueue::new(2);
        for id in ["a", "b", "c", "c", "d", "a"] {
            queue.push(id, ClaimReason::Found);
        }
        queue.push("c", ClaimReason::Asked);
        let (first, second) = (queue.take_next().unwrap(), queue.take_next().unwrap());
        assert_eq!((first.id(), second.id()), ("a", "b"));
        assert!(queue.take_next().is_none());
        // A running workflow is not queued again.
        queue.push("a", ClaimReason::Found);
        assert_eq!((queue.len(), queue.position("c"), queue.position("d")), (2, Some(1), Some(2)));
        assert_eq!((queue.position("a"), queue.position("x")), (None, None));
        drop(first);
        let third = queue.take_next().unwrap();
        assert_eq!(
            (third.id(), third.why(), second.why()),
            ("c", ClaimReason::Asked, ClaimReason::Found)
        );
        queue.push("a", ClaimReason::Found);
        assert_eq!((queue.position("d"), queue.position("a")), (Some(1), Some(2)));
    }
}
