//! Tool tasks: one call over the bridge, with policy, approval and audit row like any other.
//!
//! A call that may have to wait for a person has a journal, so that the question and whether the call has
//! left outlive the host. Any other goes straight to the bridge: its intent and its outcome are in the
//! workflow's own journal.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use belljar_flow::{Code, Failure, Job, Outcome, ToolCall};
use belljar_runtime::{ErrorCode, Grants, ToolFault};
use belljar_tools::{
    ApprovalNotice, CallObserver, RunContext, Tool, ToolGrants, ToolReach, crash_point,
};
use serde_json::json;

use super::{
    code::{Asked, run_id},
    known::{Fact, only, qualified},
    performer::{Driven, Hands, cancelled, lasting},
};
use crate::{
    Executor,
    executor::{OneCall, OneCallEnd},
};

impl Hands {
    pub(super) async fn call_tool(&self, job: &Job, driven: &Driven, call: &ToolCall) -> Outcome {
        let Some(bridge) = self.executor.bridge() else {
            return lasting("tool.unknown", "this project has no tools");
        };
        let fact = match self.known.get(&call.tool) {
            Some(fact) => Some(fact),
            None => {
                self.look_up(&BTreeSet::from([call.tool.clone()])).await;
                self.known.get(&call.tool)
            }
        };
        let name = match &fact {
            Some(fact) => fact.name.clone(),
            None => qualified(&bridge.servers(), &call.tool),
        };
        let is_read_only = fact.as_ref().is_some_and(|fact| fact.read_only);
        if job.start.speculative && !is_read_only {
            let message = format!("{name} may change something, so it does not run ahead");
            return lasting("speculation.refused", message);
        }
        // One that has a journal goes on by it, whatever policy says by now.
        let begun = if job.start.again { self.begun(job).await } else { Begun::Not };
        let may_ask = fact.as_ref().is_some_and(|fact| fact.may_ask);
        match begun {
            Begun::AsCode => self.go_on_as_code(job, driven, is_read_only).await,
            Begun::AsCall => self.call_durably(job, driven, call, (&name, fact.as_ref())).await,
            Begun::Not if may_ask => {
                self.call_durably(job, driven, call, (&name, fact.as_ref())).await
            }
            Begun::Not => self.call_now(job, driven, call, &name, fact.as_ref()).await,
        }
    }
    async fn call_now(
        &self,
        job: &Job,
        driven: &Driven,
        call: &ToolCall,
        name: &str,
        fact: Option<&Fact>,
    ) -> Outcome {
        let Some(bridge) = self.executor.bridge() else { return cancelled(false) };
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let context = RunContext {
            run_id: run_id(&job.start),
            caller: driven.caller.clone(),
            grants: only(name),
            // The operator's: a task's own is for the workflow to watch.
            tool_timeout: self.options.limits.tool_timeout,
            code: String::new(),
            observer: watch.clone(),
        };
        let arguments = serde_json::to_vec(&call.arguments).unwrap_or_default();
        crash_point("flow_call");
        let answered = tokio::select! {
            answered = bridge.call(&context, name, arguments) => answered,
            () = job.cancel.cancelled() => {
                let is_harmless = fact.is_some_and(|fact| fact.repeatable);
                return cancelled(watch.has_left() && !is_harmless);
            }
        };
        crash_point("flow_called");
        match answered {
            Ok(bytes) => {
                let value = serde_json::from_slice(&bytes).unwrap_or_default();
                let read_only = fact.is_some_and(|fact| fact.read_only);
                Outcome { read_only, ..Outcome::done(value) }
            }
            Err(fault) => {
                let is_harmless = fact.is_some_and(|fact| fact.repeatable) || !watch.has_left();
                failed(fault, is_harmless)
            }
        }
    }

    /// A call that may wait for a person, or did so when its host went away.
    async fn call_durably(
        &self,
        job: &Job,
        driven: &Driven,
        call: &ToolCall,
        (name, fact): (&str, Option<&Fact>),
    ) -> Outcome {
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let id = run_id(&job.start);
        let one_call = OneCall {
            id: id.clone(),
            caller: driven.caller.clone(),
            tool: name.to_owned(),
            arguments: serde_json::to_vec(&call.arguments).unwrap_or_default(),
            grants: only(name),
            // The operator's: a task's own is for the workflow to watch.
            tool_timeout: self.options.limits.tool_timeout,
            observer: watch.clone(),
        };
        let is_repeatable = fact.is_some_and(|fact| fact.repeatable);
        crash_point("flow_call");
        let ended = tokio::select! {
            ended = self.executor.call_once(one_call) => ended,
            () = job.cancel.cancelled() => return cancelled(watch.has_left() && !is_repeatable),
        };
        crash_point("flow_called");
        match ended {
            OneCallEnd::Answered(Ok(bytes)) => {
                let value = serde_json::from_slice(&bytes).unwrap_or_default();
                let read_only = fact.is_some_and(|fact| fact.read_only);
                Outcome { read_only, ..Outcome::done(value) }
            }
            OneCallEnd::Answered(Err(fault)) => {
                failed(fault, is_repeatable || !(watch.has_left() || job.start.again))
            }
            OneCallEnd::InDoubt => self.in_doubt(&id).await,
            OneCallEnd::Lost(why) => Outcome::failed(Failure {
                may_have_acted: !is_repeatable,
                lasting: true,
                ..Failure::new("run.lost", why)
            }),
        }
    }

    /// A call that a version before this one made by a run of code.
    async fn go_on_as_code(&self, job: &Job, driven: &Driven, is_read_only: bool) -> Outcome {
        let (limits, grants) = (self.options.limits, Grants::default());
        let code = Code::default();
        let asked = Asked { code: &code, tools: ToolGrants::default(), limits, grants };
        let mut outcome = self.run_asked(job, driven, asked).await;
        outcome.read_only |= is_read_only;
        outcome
    }

    /// How a call was begun. If nobody can tell, it has a journal.
    async fn begun(&self, job: &Job) -> Begun {
        let Some(store) = self.executor.store() else { return Begun::Not };
        match store.run(&run_id(&job.start)).await {
            Ok(None) => Begun::Not,
            Ok(Some(record)) if !Executor::is_one_call(&record) => Begun::AsCode,
            Ok(Some(_)) | Err(_) => Begun::AsCall,
        }
    }
}

/// How a call was begun by a host before this one.
enum Begun {
    /// Without a journal, if at all.
    Not,
    /// With one.
    AsCall,
    /// By a durable run of code.
    AsCode,
}

/// A fault of the bridge, as a failure of a task.
fn failed(fault: ToolFault, is_harmless: bool) -> Outcome {
    let code = fault.code;
    let is_lasting = matches!(
        code,
        ErrorCode::ToolArguments
            | ErrorCode::ToolUnknown
            | ErrorCode::PermissionTool
            | ErrorCode::ApprovalDenied
    );
    let is_open = matches!(code, ErrorCode::ToolTimeout | ErrorCode::ToolInDoubt);
    let ToolFault { message, hint, tool_name, .. } = fault;
    let failure = Failure {
        details: Some(json!({ "tool": tool_name, "hint": hint })),
        lasting: is_lasting,
        may_have_acted: is_open && !is_harmless,
        in_doubt: code == ErrorCode::ToolInDoubt && !is_harmless,
        ..Failure::new(code.as_str(), message)
    };
    Outcome { read_only: is_harmless, ..Outcome::failed(failure) }
}

/// Knows whether anything was called that may change something.
#[derive(Debug)]
pub(super) struct Watch {
    then: Arc<dyn CallObserver>,
    left: AtomicBool,
    acted: AtomicBool,
}

impl Watch {
    pub(super) fn new(then: Arc<dyn CallObserver>) -> Self {
        Self { then, left: AtomicBool::new(false), acted: AtomicBool::new(false) }
    }

    /// Whether a call has left the host.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Whether one that may change something has.
    pub(super) fn has_acted(&self) -> bool {
        self.acted.load(Ordering::SeqCst)
    }
}

impl CallObserver for Watch {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        self.then.approval_waits(notice);
    }

    fn approval_over(&self, id: &str) {
        self.then.approval_over(id);
    }

    fn call_begins(&self, tool: &Tool, reach: ToolReach) {
        self.left.store(true, Ordering::SeqCst);
        if reach == ToolReach::Unknown {
            self.acted.store(true, Ordering::SeqCst);
        }
        self.then.call_begins(tool, reach);
    }

    fn call_ends(&self, tool: &str, is_ok: bool, duration: Duration) {
        self.then.call_ends(tool, is_ok, duration);
    }
}
