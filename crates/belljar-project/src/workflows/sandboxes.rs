//! Sandbox tasks: sessions that live across the tasks of one workflow, on one host.
//!
//! Before a task uses a session, the session is checkpointed, so that a rollback of the workflow can take
//! back what the task changed in it. A session keeps its newest checkpoints only; a rollback that needs an
//! older one reports the task as not undone.

use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

use belljar_contract::{RunRequest, RunStatus};
use belljar_flow::{Failure, Job, Outcome, Sandbox as Action, Undo, Work};
use belljar_runtime::{SessionSpec, run_id};
use serde_json::{Value, json};
use tokio::sync::Mutex as Turn;

use super::{
    allowed,
    code::language as code_language,
    performer::{Driven, Hands, cancelled, lasting},
    task_result,
    tools::Watch,
};
use crate::{Durability, Execution, KeptSession, Lifetimes, Whose};

/// Destroyed sandboxes of a workflow that are remembered, to be told from those there never were.
const MOST_REMEMBERED: usize = 1000;

/// A session of a workflow.
#[derive(Debug, Clone)]
pub(super) struct OwnSandbox {
    id: String,
    /// Whoever uses it: its checkpoint and its run belong together.
    turn: Arc<Turn<()>>,
    /// Whether the workflow has ended it.
    is_destroyed: bool,
}

/// Why a sandbox cannot be used.
struct Gone {
    code: &'static str,
    message: String,
}

impl Hands {
    pub(super) async fn sandbox(&self, job: &Job, driven: &Driven, action: &Action) -> Outcome {
        if job.start.speculative {
            return lasting("speculation.refused", "a sandbox is not used ahead of a decision");
        }
        match action {
            Action::Create { language, limits, grants } => {
                self.make_sandbox(driven, language, (limits, grants)).await
            }
            Action::Execute { sandbox_id, code, limits } => {
                self.use_sandbox(job, driven, (&text(sandbox_id), code), limits).await
            }
            Action::Destroy { sandbox_id } => self.end_sandbox(driven, &text(sandbox_id)).await,
            Action::List => self.list_sandboxes(driven).await,
        }
    }

    async fn make_sandbox(
        &self,
        driven: &Driven,
        language: &str,
        (limits, grants): (&belljar_flow::Limits, &belljar_flow::Grants),
    ) -> Outcome {
        let Some(known) = code_language(language) else {
            let message = format!("there is no engine for `{language}`");
            return lasting("language.unsupported", message);
        };
        let grants = match driven.terms.grants(grants) {
            Ok(grants) => grants,
            Err(failure) => return Outcome { read_only: true, ..Outcome::failed(failure) },
        };
        let request = SessionSpec {
            limits: allowed::limits(self.options.limits, limits),
            grants,
            ..SessionSpec::new(known)
        };
        let whose = Whose { caller: driven.caller.clone(), tools: None };
        match self.sessions.open(request, Lifetimes::default(), whose).await {
            Ok(kept) => {
                let id = kept.session.id().to_owned();
                driven.own(OwnSandbox {
                    id: id.clone(),
                    turn: Arc::default(),
                    is_destroyed: false,
                });
                let sandbox_id = Value::from(id.clone());
                let action = Action::Destroy { sandbox_id };
                let undo = Some(Box::new(Undo::By(Work::Sandbox { action })));
                let made = json!({ "sandbox_id": id, "language": known.as_str() });
                Outcome { read_only: true, undo, ..Outcome::done(made) }
            }
            Err(error) => {
                let failure = Failure::new(error.code.as_str(), error.message);
                Outcome { read_only: true, ..Outcome::failed(failure) }
            }
        }
    }

    async fn use_sandbox(
        &self,
        job: &Job,
        driven: &Driven,
        (id, code): (&str, &str),
        limits: &belljar_flow::Limits,
    ) -> Outcome {
        if job.start.again {
            let message = format!("sandbox {id} is gone: the host went away while it ran code");
            return unusable(Gone { code: "session.lost", message }, true);
        }
        let (kept, own) = match self.usable(driven, id).await {
            Ok(usable) => usable,
            Err(gone) => return unusable(gone, false),
        };
        let _turn = own.turn.lock().await;
        let undo = Some(Box::new(before_use(id, &kept).await));
        let mut request = RunRequest::new(kept.session.language(), code);
        request.limits = allowed::limits(kept.session.limits(), limits);
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let execution = Execution {
            durability: Durability::Never,
            observer: watch.clone(),
            ..Execution::new(request, driven.caller.clone())
        };
        let aborted = job.cancel.cancelled();
        let began = Instant::now();
        let ran = self.executor.execute_in(&kept.session, run_id(), execution, aborted).await;
        self.measure(job, &ran, began.elapsed());
        if ran.status == RunStatus::Aborted {
            return Outcome { undo, ..cancelled(watch.has_acted()) };
        }
        let (state, report) = (task_result::state(&ran), task_result::report(&ran));
        Outcome { read_only: !watch.has_acted(), undo, state, ..Outcome::done(report) }
    }

    async fn end_sandbox(&self, driven: &Driven, id: &str) -> Outcome {
        let was_there = driven.disown(id);
        let destroyed = was_there && self.sessions.destroy(id).await.is_ok();
        let told = json!({ "destroyed": destroyed, "sandbox_id": id });
        let undo = destroyed.then(|| {
            let message = format!("sandbox {id} was destroyed, and is not brought back");
            Box::new(Undo::Not(Failure::new("sandbox.destroyed", message)))
        });
        Outcome { read_only: true, undo, ..Outcome::done(told) }
    }

    async fn list_sandboxes(&self, driven: &Driven) -> Outcome {
        let mut all = Vec::new();
        for own in driven.owned() {
            let Ok(kept) = self.sessions.get(&own.id).await else { continue };
            let info = kept.session.info();
            all.push(json!({
                "sandbox_id": own.id,
                "language": info.language.as_str(),
                "created_ms": info.created_ms,
                "last_used_ms": info.last_used_ms,
                "expires_ms": kept.expires_ms(),
            }));
        }
        Outcome { read_only: true, ..Outcome::done(json!({ "sandboxes": all })) }
    }

    /// Takes a session back to what it was before a task used it.
    pub(super) async fn restore_sandbox(
        &self,
        driven: &Driven,
        id: &str,
        checkpoint: &str,
    ) -> Outcome {
        let (kept, own) = match self.usable(driven, id).await {
            Ok(usable) => usable,
            Err(Gone { code, message }) => return lasting(code, message),
        };
        let _turn = own.turn.lock().await;
        match kept.session.rollback(checkpoint).await {
            Ok(()) => Outcome { read_only: true, ..Outcome::done(Value::Null) },
            Err(error) => {
                let message = format!("sandbox {id} is not what it was: {}", error.message);
                lasting(error.code.as_str(), message)
            }
        }
    }

    /// A session of the workflow that lives here, or what became of it.
    async fn usable(&self, driven: &Driven, id: &str) -> Result<(KeptSession, OwnSandbox), Gone> {
        let gone = |code, message| Gone { code, message };
        let Some(own) = driven.sandbox(id) else {
            let message = format!(
                "this workflow has no sandbox {id} on this host: what a sandbox holds does not outlive \
                 its host"
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
            Err(why) => Err(gone("session.ended", format!("sandbox {id} is gone: {why}"))),
        }
    }

    /// Ends all sessions of a workflow.
    pub(super) async fn end_sandboxes(&self, driven: &Driven) {
        for own in driven.owned() {
            let _ = self.sessions.destroy(&own.id).await;
        }
    }
}

impl Driven {
    fn own(&self, sandbox: OwnSandbox) {
        let mut all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_REMEMBERED
            && let Some(oldest) = all.iter().position(|own| own.is_destroyed)
        {
            all.remove(oldest);
        }
        all.push(sandbox);
    }

    /// Notes that a sandbox is destroyed; whether it was there.
    fn disown(&self, id: &str) -> bool {
        let mut all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter_mut().find(|own| own.id == id && !own.is_destroyed);
        own.map(|own| own.is_destroyed = true).is_some()
    }

    fn sandbox(&self, id: &str) -> Option<OwnSandbox> {
        let all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|own| own.id == id).cloned()
    }

    /// Those that the workflow has not destroyed.
    pub(super) fn owned(&self) -> Vec<OwnSandbox> {
        let all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|own| !own.is_destroyed).cloned().collect()
    }
}

/// What takes back whatever is done in a session next.
async fn before_use(id: &str, kept: &KeptSession) -> Undo {
    match kept.session.checkpoint().await {
        Ok(point) => {
            let (sandbox_id, checkpoint) = (id.to_owned(), point.id);
            Undo::By(Work::RestoreSandbox { sandbox_id, checkpoint })
        }
        Err(error) => {
            let message =
                format!("sandbox {id} could not be kept as it was before: {}", error.message);
            Undo::Not(Failure::new("sandbox.not_kept", message))
        }
    }
}

fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// The report of a use of a sandbox that is not there: the workflow may look at it and go on.
fn unusable(Gone { code, message }: Gone, may_have_acted: bool) -> Outcome {
    let message = format!("{message}; make it anew, and keep what must last in files");
    let report = task_result::failed_report(code, &message);
    Outcome { read_only: !may_have_acted, ..Outcome::done(report) }
}
