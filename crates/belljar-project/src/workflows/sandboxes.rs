//! Sandbox tasks: sessions shared by the tasks of one workflow, on one host.
//!
//! A session is checkpointed before a task uses it, so that a rollback of the workflow can undo the
//! task's changes. A session keeps only its newest checkpoints; a rollback that needs an older one
//! reports the task as not undone.

use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

use belljar_contract::{
    CheckpointId, EngineName, Language, LimitsRequest, RunRequest, RunStatus, SessionId, TaskGrants,
};
use belljar_contract::{JsonValue, exact_json};
use belljar_runtime::{SessionSpec, run_id};
use belljar_workflow::{
    Job, SandboxAction as Action, SessionUndo, TaskFailure, TaskOutcome, TaskWork,
};
use tokio::sync::Mutex as AsyncMutex;

use super::{
    performer::{DrivenWorkflow, TaskPerformer, cancelled, lasting},
    task_result,
    tools::Watch,
};
use crate::{Execution, KeptSession, RunDurability, SessionLifetimes, SessionOwner};

/// Destroyed sandboxes that are remembered, to distinguish them from unknown ones.
const MOST_REMEMBERED: usize = 1000;

/// A session that a workflow has created.
#[derive(Debug, Clone)]
pub(super) struct WorkflowSandbox {
    id: SessionId,
    /// Held during a checkpoint and the run after it, which belong together.
    turn: Arc<AsyncMutex<()>>,
    /// Whether the workflow has destroyed it.
    is_destroyed: bool,
}

/// Why a sandbox cannot be used.
struct UnusableSandbox {
    code: &'static str,
    message: String,
}

impl TaskPerformer {
    pub(super) async fn sandbox(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        action: &Action,
    ) -> TaskOutcome {
        if job.start.speculative {
            return lasting("speculation.refused", "a sandbox cannot be used ahead of a decision");
        }
        match action {
            Action::Create { language, engine, limits, grants } => {
                self.make_sandbox(driven, (*language, *engine), (limits, grants)).await
            }
            Action::Execute { sandbox_id, code, limits } => {
                self.use_sandbox(job, driven, (&session_id(sandbox_id), code), limits).await
            }
            Action::Destroy { sandbox_id } => {
                self.end_sandbox(driven, &session_id(sandbox_id)).await
            }
            Action::List => self.list_sandboxes(driven).await,
        }
    }

    async fn make_sandbox(
        &self,
        driven: &DrivenWorkflow,
        (language, engine): (Language, Option<EngineName>),
        (limits, grants): (&LimitsRequest, &TaskGrants),
    ) -> TaskOutcome {
        let grants = match driven.permissions.grants(grants, &self.executor) {
            Ok(grants) => grants,
            Err(failure) => return TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) },
        };
        let policy = match driven.permissions.policy(&grants, &self.executor) {
            Ok(policy) => policy,
            Err(failure) => return TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) },
        };
        let request = SessionSpec {
            engine,
            policy,
            limits: self.options.limits.with(limits),
            grants,
            ..SessionSpec::new(language)
        };
        let whose = SessionOwner { caller: driven.caller.clone(), tools: None };
        match self.sessions.open(request, SessionLifetimes::default(), whose).await {
            Ok(kept) => {
                let id = kept.session.id().clone();
                driven.add_sandbox(WorkflowSandbox {
                    id: id.clone(),
                    turn: Arc::default(),
                    is_destroyed: false,
                });
                let sandbox_id = JsonValue::from(id.as_str());
                let action = Action::Destroy { sandbox_id };
                let undo = Some(Box::new(SessionUndo::By(TaskWork::Sandbox { action })));
                let made = exact_json!({ "sandbox_id": id, "language": language });
                TaskOutcome { read_only: true, undo, ..TaskOutcome::done(made) }
            }
            Err(error) => {
                let failure = TaskFailure::new(error.code.as_str(), error.message);
                TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) }
            }
        }
    }

    async fn use_sandbox(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        (id, code): (&SessionId, &str),
        limits: &LimitsRequest,
    ) -> TaskOutcome {
        if job.start.again {
            let message = format!("sandbox {id} is lost: its host ended while it ran code");
            return unusable(UnusableSandbox { code: "session.lost", message }, true);
        }
        let (kept, own) = match self.usable(driven, id).await {
            Ok(usable) => usable,
            Err(gone) => return unusable(gone, false),
        };
        let _turn = own.turn.lock().await;
        let undo = Some(Box::new(before_use(id, &kept).await));
        let mut request = RunRequest::new(kept.session.language(), code);
        request.limits = kept.session.limits().with(limits);
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let execution = Execution {
            durability: RunDurability::Never,
            observer: watch.clone(),
            ..Execution::new(request, driven.caller.clone())
        };
        let aborted = job.cancel.cancelled();
        let began = Instant::now();
        let ran = self.executor.execute_in(&kept.session, run_id(), execution, aborted).await;
        self.measure(job, &ran, began.elapsed());
        // A rollback of the session undoes nothing at a host that it has reached.
        let may_have_acted = watch.has_acted() || kept.session.has_hosts();
        if ran.status == RunStatus::Aborted {
            return TaskOutcome { undo, ..cancelled(may_have_acted) };
        }
        let (state, report) = (task_result::state(&ran), task_result::report(&ran));
        TaskOutcome { read_only: !may_have_acted, undo, state, ..TaskOutcome::done(report) }
    }

    async fn end_sandbox(&self, driven: &DrivenWorkflow, id: &SessionId) -> TaskOutcome {
        let was_there = driven.mark_destroyed(id);
        let destroyed = was_there && self.sessions.destroy(id).await.is_ok();
        let output = exact_json!({ "destroyed": destroyed, "sandbox_id": id });
        let undo = destroyed.then(|| {
            let message = format!("sandbox {id} was destroyed and cannot be restored");
            Box::new(SessionUndo::Not(TaskFailure::new("sandbox.destroyed", message)))
        });
        TaskOutcome { read_only: true, undo, ..TaskOutcome::done(output) }
    }

    async fn list_sandboxes(&self, driven: &DrivenWorkflow) -> TaskOutcome {
        let mut all = Vec::new();
        for own in driven.live_sandboxes() {
            let Ok(kept) = self.sessions.get(&own.id).await else { continue };
            let info = kept.session.info();
            all.push(exact_json!({
                "sandbox_id": own.id,
                "language": info.language.as_str(),
                "created_ms": info.created_ms,
                "last_used_ms": info.last_used_ms,
                "expires_ms": kept.expires_ms(),
            }));
        }
        TaskOutcome { read_only: true, ..TaskOutcome::done(exact_json!({ "sandboxes": all })) }
    }

    /// Restores a session to its state before a task used it.
    pub(super) async fn restore_sandbox(
        &self,
        driven: &DrivenWorkflow,
        id: &SessionId,
        checkpoint: &CheckpointId,
    ) -> TaskOutcome {
        let (kept, own) = match self.usable(driven, id).await {
            Ok(usable) => usable,
            Err(UnusableSandbox { code, message }) => return lasting(code, message),
        };
        let _turn = own.turn.lock().await;
        match kept.session.rollback(checkpoint).await {
            Ok(()) => TaskOutcome { read_only: true, ..TaskOutcome::done(JsonValue::Null) },
            Err(error) => {
                let message = format!("cannot restore sandbox {id}: {}", error.message);
                lasting(error.code.as_str(), message)
            }
        }
    }

    /// A live session of the workflow, or the reason why there is none.
    async fn usable(
        &self,
        driven: &DrivenWorkflow,
        id: &SessionId,
    ) -> Result<(KeptSession, WorkflowSandbox), UnusableSandbox> {
        let gone = |code, message| UnusableSandbox { code, message };
        let Some(own) = driven.sandbox(id) else {
            let message = format!(
                "this workflow has no sandbox {id} on this host: a sandbox does not outlive its \
                 host"
            );
            return Err(gone("session.lost", message));
        };
        if own.is_destroyed {
            return Err(gone(
                "session.destroyed",
                format!("sandbox {id} was destroyed by this workflow"),
            ));
        }
        match self.sessions.get(id).await {
            Ok(kept) => Ok((kept, own)),
            Err(why) => Err(gone("session.ended", format!("sandbox {id} has ended: {why}"))),
        }
    }

    /// Ends all sessions of a workflow.
    pub(super) async fn end_sandboxes(&self, driven: &DrivenWorkflow) {
        for own in driven.live_sandboxes() {
            let _ = self.sessions.destroy(&own.id).await;
        }
    }
}

impl DrivenWorkflow {
    fn add_sandbox(&self, sandbox: WorkflowSandbox) {
        let mut all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_REMEMBERED
            && let Some(oldest) = all.iter().position(|own| own.is_destroyed)
        {
            all.remove(oldest);
        }
        all.push(sandbox);
    }

    /// Marks a sandbox as destroyed; false if there was none.
    fn mark_destroyed(&self, id: &SessionId) -> bool {
        let mut all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter_mut().find(|own| own.id == *id && !own.is_destroyed);
        own.map(|own| own.is_destroyed = true).is_some()
    }

    fn sandbox(&self, id: &SessionId) -> Option<WorkflowSandbox> {
        let all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|own| own.id == *id).cloned()
    }

    /// The sandboxes that the workflow has not destroyed.
    pub(super) fn live_sandboxes(&self) -> Vec<WorkflowSandbox> {
        let all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|own| !own.is_destroyed).cloned().collect()
    }
}

/// Checkpoints the session, so that the next use can be undone.
async fn before_use(id: &SessionId, kept: &KeptSession) -> SessionUndo {
    match kept.session.checkpoint().await {
        Ok(point) => {
            let (sandbox_id, checkpoint) = (id.clone(), point.id);
            SessionUndo::By(TaskWork::RestoreSandbox { sandbox_id, checkpoint })
        }
        Err(error) => {
            let message = format!("cannot checkpoint sandbox {id}: {}", error.message);
            SessionUndo::Not(TaskFailure::new("sandbox.not_kept", message))
        }
    }
}

fn session_id(id: &JsonValue) -> SessionId {
    id.as_str().map_or_else(|| id.to_string().into(), SessionId::from)
}

/// The result of using a sandbox that does not exist. The workflow may handle it.
fn unusable(
    UnusableSandbox { code, message }: UnusableSandbox,
    may_have_acted: bool,
) -> TaskOutcome {
    let message = format!("{message}; create it again, and keep lasting data in files");
    let report = task_result::failed_report(code, &message);
    TaskOutcome { read_only: !may_have_acted, ..TaskOutcome::done(report) }
}
