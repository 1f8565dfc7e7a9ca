//! Sandbox tasks: sessions that live across the tasks of one workflow, on one host.

use std::sync::PoisonError;

use belljar_flow::{Failure, Job, Outcome, Sandbox as Action};
use belljar_runtime::{RunRequest, SessionRequest, Status, run_id};
use serde_json::{Value, json};

use super::{
    allowed,
    code::language as code_language,
    performer::{Driven, Hands, cancelled, lasting},
    ran::Ran,
    tools::Watch,
};
use crate::{Durability, Execution, Lifetimes, Whose};

/// What a session is called that was lost.
const LOST: &str = "session.lost";

impl Hands {
    pub(super) async fn sandbox(&self, job: &Job, driven: &Driven, action: &Action) -> Outcome {
        if job.start.speculative {
            return lasting("speculation.refused", "a sandbox is not used ahead of a decision");
        }
        match action {
            Action::Create { language, limits } => {
                self.make_sandbox(driven, language, limits).await
            }
            Action::Execute { sandbox_id, code, limits } => {
                self.use_sandbox(job, driven, (&text(sandbox_id), code), limits).await
            }
            Action::Destroy { sandbox_id } => self.end_sandbox(driven, &text(sandbox_id)).await,
            Action::List => {
                let all = own(driven);
                Outcome { read_only: true, ..Outcome::done(json!({ "sandboxes": all })) }
            }
        }
    }

    async fn make_sandbox(
        &self,
        driven: &Driven,
        language: &str,
        limits: &belljar_flow::Limits,
    ) -> Outcome {
        let Some(known) = code_language(language) else {
            let message = format!("there is no engine for `{language}`");
            return lasting("language.unsupported", message);
        };
        let request = SessionRequest {
            limits: allowed::limits(self.options.limits, limits),
            ..SessionRequest::new(known)
        };
        let whose = Whose { caller: driven.caller.clone(), tools: None };
        match self.sessions.open(request, Lifetimes::default(), whose).await {
            Ok(kept) => {
                let id = kept.session.id().to_owned();
                driven.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
                let made = json!({ "sandbox_id": id, "language": known.as_str() });
                Outcome { read_only: true, ..Outcome::done(made) }
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
        let kept = match own(driven).iter().any(|own| own == id) {
            true => self.sessions.get(id).await.map_err(|error| error.to_string()),
            false => Err(format!("this workflow has no sandbox {id} on this host")),
        };
        let kept = match kept {
            Ok(kept) if !job.start.again => kept,
            Ok(_) => return lost(id, "the host went away while it ran code", true),
            Err(why) => return lost(id, &why, job.start.again),
        };
        let mut request = RunRequest::new(kept.session.language(), code);
        request.limits = allowed::limits(kept.session.limits(), limits);
        let watch = std::sync::Arc::new(Watch::new(self.options.observer.clone()));
        let execution = Execution {
            durability: Durability::Never,
            observer: watch.clone(),
            ..Execution::new(request, driven.caller.clone())
        };
        let aborted = job.cancel.cancelled();
        let ran = self.executor.execute_in(&kept.session, run_id(), execution, aborted).await;
        if ran.status == Status::Aborted {
            return cancelled(watch.has_acted());
        }
        Outcome { read_only: !watch.has_acted(), ..Outcome::done(Ran::of(&ran).report()) }
    }

    async fn end_sandbox(&self, driven: &Driven, id: &str) -> Outcome {
        let was_there = {
            let mut all = driven.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
            let before = all.len();
            all.retain(|own| own != id);
            all.len() < before
        };
        let destroyed = was_there && self.sessions.destroy(id).await.is_ok();
        let told = json!({ "destroyed": destroyed, "sandbox_id": id });
        Outcome { read_only: true, ..Outcome::done(told) }
    }

    /// Ends all sessions of a workflow.
    pub(super) async fn end_sandboxes(&self, driven: &Driven) {
        for id in own(driven) {
            let _ = self.sessions.destroy(&id).await;
        }
    }
}

fn own(driven: &Driven) -> Vec<String> {
    driven.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn lost(id: &str, why: &str, may_have_acted: bool) -> Outcome {
    let message = format!(
        "sandbox {id} cannot be used: {why}; what a sandbox holds does not outlive its host, so make \
         it anew in the workflow, or keep what must last in files"
    );
    let failure = Failure { lasting: true, may_have_acted, ..Failure::new(LOST, message) };
    Outcome { read_only: !may_have_acted, ..Outcome::failed(failure) }
}
