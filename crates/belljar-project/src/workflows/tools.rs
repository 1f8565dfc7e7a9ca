//! Tool tasks: one call through the bridge, with policy, approval and audit like any other.
//!
//! A call that may have to wait for a person has a journal, so that the approval and the fact that
//! the call was sent outlive the host. Any other call goes directly to the bridge: the workflow's
//! own journal holds its intent and its outcome.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use belljar_contract::{ApprovalId, ErrorCode, Grants, RunError, exact_json};
use belljar_tools::{
    ApprovalNotice, CallArguments, CallObserver, RunContext, Tool, ToolReach, crash_point,
};
use belljar_workflow::{Code, Job, TaskFailure, TaskOutcome, ToolAction};

use super::{
    code::{CodeTask, run_id},
    performer::{DrivenWorkflow, TaskPerformer, cancelled, lasting},
    task_result,
    tool_facts::{ToolFacts, only_tool, qualified},
};
use crate::{
    Executor,
    executor::{OneCall, OneCallEnd},
};

impl TaskPerformer {
    pub(super) async fn call_tool(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        call: &ToolAction,
    ) -> TaskOutcome {
        let Some(bridge) = self.executor.bridge() else {
            return lasting("tool.unknown", "this project has no tools");
        };
        let fact = match self.tool_facts.get(&call.tool) {
            Some(fact) => Some(fact),
            None => {
                self.look_up(&BTreeSet::from([call.tool.clone()])).await;
                self.tool_facts.get(&call.tool)
            }
        };
        let name = match &fact {
            Some(fact) => fact.name.clone(),
            None => qualified(&bridge.servers(), &call.tool),
        };
        let is_read_only = fact.as_ref().is_some_and(|fact| fact.read_only);
        if job.start.speculative && !is_read_only {
            let message =
                format!("{name} may change something, so it cannot run ahead of a decision");
            return lasting("speculation.refused", message);
        }
        // A call with a journal continues from it, whatever policy says now.
        let prior = if job.start.again { self.prior_call(job).await } else { PriorCall::None };
        let may_ask = fact.as_ref().is_some_and(|fact| fact.may_ask);
        match prior {
            PriorCall::CodeRun => self.resume_code_run(job, driven, is_read_only).await,
            PriorCall::Journaled => {
                self.call_durably(job, driven, call, (&name, fact.as_ref())).await
            }
            PriorCall::None if may_ask => {
                self.call_durably(job, driven, call, (&name, fact.as_ref())).await
            }
            PriorCall::None => self.call_now(job, driven, call, &name, fact.as_ref()).await,
        }
    }
    async fn call_now(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        call: &ToolAction,
        name: &str,
        fact: Option<&ToolFacts>,
    ) -> TaskOutcome {
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let context = RunContext {
            session: None,
            run_id: run_id(&job.start),
            caller: driven.caller.clone(),
            grants: only_tool(name),
            // The operator's timeout; the workflow watches the task's own.
            tool_timeout: self.options.limits.tool_timeout,
            code: String::new(),
            observer: watch.clone(),
        };
        let arguments = call_arguments(call);
        crash_point("flow_call");
        let answered = tokio::select! {
            answered = self.executor.call(&context, name, arguments) => answered,
            () = job.cancel.cancelled() => {
                let is_harmless = fact.is_some_and(|fact| fact.repeatable);
                return cancelled(watch.has_left() && !is_harmless);
            }
        };
        crash_point("flow_called");
        match answered {
            Ok(value) => {
                let read_only = fact.is_some_and(|fact| fact.read_only);
                TaskOutcome { read_only, ..TaskOutcome::done(task_result::tool_value(value)) }
            }
            Err(error) => {
                let is_harmless = fact.is_some_and(|fact| fact.repeatable) || !watch.has_left();
                failed(error, is_harmless)
            }
        }
    }

    /// Makes or continues a call that may wait for a person.
    async fn call_durably(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        call: &ToolAction,
        (name, fact): (&str, Option<&ToolFacts>),
    ) -> TaskOutcome {
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let id = run_id(&job.start);
        let one_call = OneCall {
            id: id.clone(),
            caller: driven.caller.clone(),
            tool: name.to_owned(),
            arguments: call_arguments(call),
            grants: only_tool(name),
            // The operator's timeout; the workflow watches the task's own.
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
            OneCallEnd::Answered(result) => match result.error {
                None => {
                    let value = task_result::parsed(&result.result);
                    let read_only = fact.is_some_and(|fact| fact.read_only);
                    TaskOutcome { read_only, ..TaskOutcome::done(value) }
                }
                Some(error) => {
                    failed(error, is_repeatable || !(watch.has_left() || job.start.again))
                }
            },
            OneCallEnd::InDoubt => self.in_doubt(&id).await,
            OneCallEnd::Lost(why) => TaskOutcome::failed(TaskFailure {
                may_have_acted: !is_repeatable,
                lasting: true,
                ..TaskFailure::new("run.lost", why)
            }),
        }
    }

    /// Continues a call that an older version made by a run of code.
    async fn resume_code_run(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        is_read_only: bool,
    ) -> TaskOutcome {
        let (limits, grants) = (self.options.limits, Grants::default());
        let code = Code::default();
        let (tools, hosts) = Default::default();
        let task = CodeTask { code: &code, tools, limits, grants, hosts };
        let mut outcome = self.run_code_task(job, driven, task).await;
        outcome.read_only |= is_read_only;
        outcome
    }

    /// How an earlier host made the call. If that cannot be read, assume a journal.
    async fn prior_call(&self, job: &Job) -> PriorCall {
        let Some(store) = self.executor.store() else { return PriorCall::None };
        match store.run(&run_id(&job.start)).await {
            Ok(None) => PriorCall::None,
            Ok(Some(record)) if !Executor::is_one_call(&record) => PriorCall::CodeRun,
            Ok(Some(_)) | Err(_) => PriorCall::Journaled,
        }
    }
}

/// How an earlier host made a call.
enum PriorCall {
    /// Without a journal, or not at all.
    None,
    /// As a durable call, with a journal of its own.
    Journaled,
    /// As a durable run of code.
    CodeRun,
}

/// The arguments of a call. The bridge refuses an integer that would reach the server rounded.
fn call_arguments(call: &ToolAction) -> CallArguments {
    // A map of JSON values cannot fail to be JSON.
    CallArguments::parse(serde_json::to_vec(&call.arguments).unwrap_or_default())
}

/// Turns the error of a call into a failure of a task.
fn failed(error: RunError, is_harmless: bool) -> TaskOutcome {
    let code = error.code;
    let is_lasting = matches!(
        code,
        ErrorCode::ToolArguments
            | ErrorCode::ToolUnknown
            | ErrorCode::PermissionTool
            | ErrorCode::ApprovalDenied
    );
    let is_open = matches!(code, ErrorCode::ToolTimeout | ErrorCode::ToolInDoubt);
    let RunError { message, hint, tool_name, .. } = error;
    let failure = TaskFailure {
        details: Some(exact_json!({ "tool": tool_name, "hint": hint })),
        lasting: is_lasting,
        may_have_acted: is_open && !is_harmless,
        in_doubt: code == ErrorCode::ToolInDoubt && !is_harmless,
        ..TaskFailure::new(code.as_str(), message)
    };
    TaskOutcome { read_only: is_harmless, ..TaskOutcome::failed(failure) }
}

/// Observes whether a call was sent that may change something.
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

    /// Whether any call was sent.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Whether a call was sent that may change something.
    pub(super) fn has_acted(&self) -> bool {
        self.acted.load(Ordering::SeqCst)
    }
}

impl CallObserver for Watch {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        self.then.approval_waits(notice);
    }

    fn approval_over(&self, id: &ApprovalId) {
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
