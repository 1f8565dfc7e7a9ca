//! Whose turn it is: so many workflows are driven in the background at once, the others wait in order.
//!
//! Nothing is lost with the queue: what waits is in the store, and due.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use belljar_workflow::workflow_store::Why;

/// Workflows that are driven in the background, and those that wait for that.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    most: usize,
    all: Arc<Mutex<All>>,
}

#[derive(Debug, Default)]
struct All {
    waiting: VecDeque<(String, Why)>,
    driven: BTreeSet<String>,
}

impl Queue {
    /// One in which so many are driven at once, and at least one.
    pub(super) fn new(most: u32) -> Self {
        Self { most: usize::try_from(most.max(1)).unwrap_or(usize::MAX), all: Arc::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut All) -> T) -> T {
        act(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts one at the end, unless it is there. What was asked for once is asked for.
    pub(super) fn put(&self, id: &str, why: Why) {
        self.with(|all| {
            if let Some((_, known)) = all.waiting.iter_mut().find(|(waiting, _)| waiting == id) {
                if why == Why::Asked {
                    *known = why;
                }
            } else if !all.driven.contains(id) {
                all.waiting.push_back((id.to_owned(), why));
            }
        });
    }

    /// The first that waits, if there is room for it.
    pub(super) fn next(&self) -> Option<Turn> {
        self.with(|all| {
            let has_room = all.driven.len() < self.most;
            let (id, why) = has_room.then(|| all.waiting.pop_front()).flatten()?;
            all.driven.insert(id.clone());
            Some(Turn { queue: self.clone(), id, why })
        })
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.with(|all| all.waiting.len())
    }

    /// The place of one that waits; the first is 1.
    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.with(|all| Some(1 + all.waiting.iter().position(|(waiting, _)| waiting == id)?))
    }
}

/// The turn of a workflow, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    queue: Queue,
    id: String,
    why: Why,
}

impl Turn {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn why(&self) -> Why {
        self.why
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.queue.with(|all| all.driven.remove(&self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, Why};

    #[test]
    fn f1_those_that_wait_come_in_order_and_once() {
        let queue = Queue::new(2);
        for id in ["a", "b", "c", "c", "d", "a"] {
            queue.put(id, Why::Found);
        }
        queue.put("c", Why::Asked);
        let (first, second) = (queue.next().unwrap(), queue.next().unwrap());
        assert_eq!((first.id(), second.id()), ("a", "b"));
        assert!(queue.next().is_none());
        // One that is driven does not wait as well.
        queue.put("a", Why::Found);
        assert_eq!((queue.waiting(), queue.place("c"), queue.place("d")), (2, Some(1), Some(2)));
        assert_eq!((queue.place("a"), queue.place("x")), (None, None));
        drop(first);
        let third = queue.next().unwrap();
        assert_eq!((third.id(), third.why(), second.why()), ("c", Why::Asked, Why::Found));
        queue.put("a", Why::Found);
        assert_eq!((queue.place("d"), queue.place("a")), (Some(1), Some(2)));
    }
}
