//! Workflows of a project, started as a person starts them and looked at through its store.

use std::{path::Path, process::Child, sync::Arc, time::Duration};

use belljar_project::{new_command_id, now_ms};
use belljar_store::Store;
use belljar_workflow::{
    DecisionKind, DoubtResolution, Machine, SqliteWorkflowStore, WorkflowCommand, WorkflowDecision,
    WorkflowEvent, Workflows,
};

use crate::command::block_on;

/// Events that are fetched in one go; more than any workflow here has.
const ALL: u32 = 100_000;

/// The workflows of a project that others run.
pub(crate) struct WorkflowWatch(Workflows<SqliteWorkflowStore>);

impl WorkflowWatch {
    /// Those kept in this `.belljar`.
    pub(crate) fn of(state: &Path) -> Self {
        let store = Store::open(state).unwrap();
        Self(Workflows::new(Arc::new(SqliteWorkflowStore::new(store))))
    }

    pub(crate) fn store(&self) -> &Arc<SqliteWorkflowStore> {
        self.0.store()
    }

    pub(crate) fn machine(&self, id: &str) -> Machine {
        block_on(self.0.look(id, None)).unwrap()
    }

    pub(crate) fn events(&self, id: &str) -> Vec<WorkflowEvent> {
        block_on(self.0.events(id, 0, ALL, Duration::ZERO)).unwrap()
    }

    pub(crate) fn send(&self, id: &str, command: &WorkflowCommand) {
        block_on(self.0.send(id, &new_command_id(), "test", command, now_ms())).unwrap();
    }

    /// The decisions of a workflow that is there already.
    pub(crate) fn decisions(&self, id: &str) -> Vec<WorkflowDecision> {
        block_on(self.0.look(id, None)).map(|machine| machine.decisions()).unwrap_or_default()
    }

    /// Answers a decision: yes, or what `look` knows of a task in doubt.
    pub(crate) fn answer(
        &self,
        id: &str,
        decision: &WorkflowDecision,
        look: impl Fn(&str) -> DoubtResolution,
    ) {
        let command = match decision.kind {
            DecisionKind::InDoubt => {
                let (task, how) = (decision.instance.clone(), look(&decision.instance));
                WorkflowCommand::Resolve { task, how }
            }
            DecisionKind::Approval
            | DecisionKind::Before
            | DecisionKind::After
            | DecisionKind::OnError => {
                WorkflowCommand::Approve { decision: decision.id.clone(), value: None }
            }
        };
        self.send(id, &command);
    }

    /// Numbers of events follow each other from 1 on.
    pub(crate) fn check_events(&self, id: &str) -> Vec<WorkflowEvent> {
        let events = self.events(id);
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let expected: Vec<u64> = (1..=events.len() as u64).collect();
        assert_eq!(numbers, expected, "events of {id}");
        events
    }

    /// The content of a workflow's file.
    pub(crate) fn file(&self, id: &str, path: &str) -> Option<String> {
        let machine = self.machine(id);
        let belljar_workflow::FileEntry::File { blob, .. } = machine.files().get(path)? else {
            return None;
        };
        let bytes = block_on(self.store().project_store().blob(blob)).unwrap()?;
        Some(String::from_utf8(bytes).unwrap())
    }
}

/// Whether a program has ended.
pub(crate) fn has_ended(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}
