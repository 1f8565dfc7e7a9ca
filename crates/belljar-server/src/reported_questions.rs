//! The questions that clients know of.
//!
//! A request for the state of a run waits while all it could say was said before, and answers at once when
//! there is a new question.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use belljar_contract::ApprovalId;

use crate::backend::ApprovalRequest;

/// Ids that are remembered. A forgotten question is told once more.
const MOST_IDS: usize = 1_000;

/// The latest questions that clients were told about.
#[derive(Debug, Default)]
pub(crate) struct ReportedQuestions {
    ids: Mutex<VecDeque<ApprovalId>>,
}

impl ReportedQuestions {
    /// Whether some client was told about all of these questions.
    pub(crate) fn are_known(&self, waiting: &[ApprovalRequest]) -> bool {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().all(|one| ids.contains(&one.id))
    }

    /// Remembers that a client is told about these questions.
    pub(crate) fn remember(&self, waiting: &[ApprovalRequest]) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        for one in waiting {
            if !ids.contains(&one.id) {
                ids.push_back(one.id.clone());
            }
        }
        while ids.len() > MOST_IDS {
            ids.pop_front();
        }
    }
}
