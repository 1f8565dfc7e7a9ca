//! Code tasks. Each is a durable run named after its task: if the host dies, the run resumes from
//! its journal and makes no call twice.

use std::{
    fmt::Display,
    sync::Arc,
    time::{Duration, Instant},
};

use belljar_contract::{
    ApprovalId, CommitExecutable, Grants, Language, Limits, RunId, RunRequest, RunResult,
    RunStatus, Verdict, Workspace,
};
use belljar_store::{Approval, Approvals};
use belljar_tools::{Glob, LISTING_TIMEOUT, ToolGrants, ToolReach, crash_point};
use belljar_workflow::{Code, Job, TaskFailure, TaskOutcome, TaskStart, TaskWork};
use serde_json::value::to_raw_value;

use super::{
    node,
    performer::{DrivenWorkflow, TaskPerformer, cancelled},
    task_result,
    tool_facts::qualified,
    tools::Watch,
};
use crate::{Execution, ResumeError, ResumeOutcome, RunDurability, now_ms};

/// How often a pending decision is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often a run is resumed that stops for a person although no approval is pending.
const MAX_FAILED_RESUMES: u32 = 10;

/// How much of a task's key is part of a run id.
const KEY_LETTERS: usize = 32;

/// Code to run, with its tools, limits and grants.
pub(super) struct CodeTask<'a> {
    pub(super) code: &'a Code,
    pub(super) tools: ToolGrants,
    pub(super) limits: Limits,
    pub(super) grants: Grants,
    /// The hosts that flags of the operator allow.
    pub(super) hosts: Vec<String>,
}

impl TaskPerformer {
    pub(super) async fn run_code(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        code: &Code,
    ) -> TaskOutcome {
        let grants = match driven.permissions.grants(&code.grants, &self.executor) {
            Ok(grants) => grants,
            Err(failure) => return TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) },
        };
        let mut limits = self.options.limits.with(&code.limits);
        if code.no_room {
            // As many inodes as exist before the code starts: it can create none.
            limits.inodes = 1;
        }
        let tools = self.tools_of(code, job.start.speculative).await;
        let hosts = driven.permissions.hosts.clone();
        self.run_code_task(job, driven, CodeTask { code, tools, limits, grants, hosts }).await
    }

    /// Runs the code, or resumes it, to its end.
    pub(super) async fn run_code_task(
        &self,
        job: &Job,
        driven: &DrivenWorkflow,
        asked: CodeTask<'_>,
    ) -> TaskOutcome {
        let id = run_id(&job.start);
        let Some(store) = self.executor.store() else { return cancelled(false) };
        let record = match store.run(&id).await {
            Ok(record) => record,
            Err(error) => {
                return TaskOutcome::failed(TaskFailure::new("store.failed", error.to_string()));
            }
        };
        let directory = match self.lay_out(job, &id, record.as_ref()).await {
            Ok(directory) => directory,
            Err(failure) => return TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) },
        };
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let (code, shape) = (asked.code, asked.code.shape);
        let ran = match record {
            Some(_) => self.resume_run(&id, job, &watch).await,
            None => Ok({
                let request = match self.request(job, asked, directory.as_deref()) {
                    Ok(execution) => execution,
                    Err(failure) => {
                        return TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) };
                    }
                };
                let execution =
                    Execution { caller: driven.caller.clone(), observer: watch.clone(), ..request };
                let aborted = job.cancel.clone();
                crash_point("flow_run");
                let began = Instant::now();
                let run = self.executor.execute_as(id.clone(), execution, aborted.cancelled());
                let ran = run.await;
                self.measure(job, &ran, began.elapsed());
                ran
            }),
        };
        let ran = match (ran, &job.start.work) {
            // The workflow itself asks what became of a tool task, and accepts a result as the
            // answer.
            (Ok(ran), TaskWork::McpTool(_)) if task_result::is_in_doubt(&ran) => {
                return self.in_doubt(&id).await;
            }
            (Ok(ran), _) if task_result::had_connections(&ran) => {
                let message = "the host ended while the code could reach hosts: its requests may have had \
                               effects";
                return TaskOutcome::failed(in_doubt(message));
            }
            (Ok(ran), _) => self.until_decided(&id, ran, job, &watch).await,
            (lost @ Err(_), _) => lost,
        };
        let ran = match ran {
            Ok(ran) if node::is_shifted(code) => task_result::move_error_up(ran),
            Ok(ran) => ran,
            // Its effects are unknown.
            Err(failure) => return TaskOutcome::failed(failure),
        };
        crash_point("flow_ran");
        let mut outcome = task_result::outcome(ran, shape, &watch, job.start.again);
        if let (Some(directory), Some(files)) = (&directory, &job.files) {
            outcome = self.collect((&job.flow, &id), directory, files, outcome).await;
        }
        outcome
    }

    fn request(
        &self,
        job: &Job,
        asked: CodeTask<'_>,
        directory: Option<&std::path::Path>,
    ) -> Result<Execution, TaskFailure> {
        let CodeTask { code, tools, limits, grants, hosts } = asked;
        let mut request = RunRequest::new(code.language, node::wrapped(code));
        request.engine = code.engine;
        request.file_name = file_name(&job.start.instance, code.language);
        request.context = to_raw_value(&code.context).ok();
        (request.limits, request.grants) = (limits, grants);
        // The directory is private to Belljar. What leaves it is decided when the workflow's files
        // are exported.
        let executable = CommitExecutable::All;
        request.workspace =
            directory.map(|path| Workspace { path: path.to_owned(), commit: true, executable });
        Ok(Execution {
            tools,
            intent: code.intent.clone(),
            durability: RunDurability::UntilConnected,
            hosts: Some(hosts),
            ..Execution::new(request, "")
        })
    }

    /// The tools of a code task; ahead of a decision only read-only ones.
    async fn tools_of(&self, code: &Code, is_ahead: bool) -> ToolGrants {
        let Some(bridge) = self.executor.bridge() else { return ToolGrants::default() };
        let servers = bridge.servers();
        let globs = |names: &Vec<String>| -> Vec<Glob> {
            names.iter().map(|name| Glob::new(qualified(&servers, name))).collect()
        };
        let named = code.grants.tools.as_ref().map(globs);
        if !is_ahead {
            return ToolGrants { only: named, given: Vec::new() };
        }
        let reached = ToolGrants { only: named, given: Vec::new() };
        let (catalogue, _) = bridge.catalogue_for(&reached, LISTING_TIMEOUT).await;
        let may = |name: &str| {
            let named = reached.only.as_ref();
            named.is_none_or(|named| named.iter().any(|glob| glob.matches(name)))
        };
        let harmless =
            catalogue.tools().iter().filter(|tool| bridge.reach(tool) == ToolReach::ReadOnly);
        let names = harmless.map(belljar_tools::Tool::qualified_name).filter(|name| may(name));
        ToolGrants { only: Some(names.map(Glob::new).collect()), given: Vec::new() }
    }

    /// Resumes a run once no other process has it.
    async fn resume_run(
        &self,
        id: &RunId,
        job: &Job,
        watch: &Arc<Watch>,
    ) -> Result<RunResult, TaskFailure> {
        loop {
            let cancel = job.cancel.clone();
            let began = Instant::now();
            let error = match self.executor.resume(id, watch.clone(), cancel.cancelled()).await {
                Ok(ResumeOutcome::Ran(result)) => {
                    self.measure(job, &result, began.elapsed());
                    return Ok(*result);
                }
                Ok(ResumeOutcome::Ended(result)) => return Ok(*result),
                Err(error) => error,
            };
            let is_busy = matches!(error, ResumeError::StillRunning { .. });
            if !is_busy || job.cancel.is_cancelled() {
                return Err(TaskFailure {
                    may_have_acted: true,
                    lasting: true,
                    ..TaskFailure::new("run.lost", error.to_string())
                });
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = job.cancel.cancelled() => {}
            }
        }
    }

    /// The outcome of a call whose effect is unknown. The workflow asks about it, so the approvals
    /// of its run are closed.
    pub(super) async fn in_doubt(&self, id: &RunId) -> TaskOutcome {
        if let Some(store) = self.executor.store() {
            let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
            for approval in pending.into_iter().filter(|one| one.asked.run_id == *id) {
                let asked = &approval.asked.id;
                let _ = store.decide(asked, Verdict::Deny, "workflow", now_ms()).await;
            }
        }
        TaskOutcome::failed(in_doubt("it is unknown whether the call happened"))
    }

    /// Waits for decisions and resumes the run after each, until it ends.
    async fn until_decided(
        &self,
        id: &RunId,
        mut ran: RunResult,
        job: &Job,
        watch: &Arc<Watch>,
    ) -> Result<RunResult, TaskFailure> {
        let Some(store) = self.executor.store() else { return Ok(ran) };
        let (mut announced, mut failed_resumes) = (Vec::new(), 0);
        while matches!(ran.status, RunStatus::InDoubt | RunStatus::ApprovalRequired) {
            let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
            let mut of_run = pending.into_iter().filter(|one| one.asked.run_id == *id).peekable();
            if of_run.peek().is_none() {
                announced
                    .iter()
                    .for_each(|over: &ApprovalId| self.options.observer.approval_over(over));
                announced.clear();
                if failed_resumes == MAX_FAILED_RESUMES {
                    return Ok(ran);
                }
                failed_resumes += 1;
                ran = self.resume_run(id, job, watch).await?;
                tokio::select! {
                    () = tokio::time::sleep(POLL_INTERVAL * (failed_resumes - 1)) => continue,
                    () = job.cancel.cancelled() => return Ok(ran),
                }
            }
            failed_resumes = 0;
            for approval in of_run {
                if !announced.contains(&approval.asked.id) {
                    announced.push(approval.asked.id.clone());
                    if let Some(bridge) = self.executor.bridge() {
                        let reason = reason(&approval);
                        let notice = bridge.notice(approval.asked, reason);
                        self.options.observer.approval_waits(&notice);
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = job.cancel.cancelled() => return Ok(ran),
            }
        }
        Ok(ran)
    }
}

/// The failure of a call whose effect is unknown.
pub(super) fn in_doubt(message: &str) -> TaskFailure {
    let failure = TaskFailure::new("tool.in_doubt", message);
    TaskFailure { in_doubt: true, may_have_acted: true, ..failure }
}

/// The run id of an attempt. A repeated attempt finds its run by this id.
pub(super) fn run_id(start: &TaskStart) -> RunId {
    let ahead = if start.speculative { "_ahead" } else { "" };
    format!("{}{ahead}", run_of(&start.key, &start.attempt)).into()
}

/// The run id of an attempt at the work with a key.
pub(super) fn run_of(key: &str, attempt: &impl Display) -> RunId {
    let key: String = key.chars().take(KEY_LETTERS).collect();
    format!("{}{key}_{attempt}", RunId::PREFIX).into()
}

/// The runs that an intent of a workflow may have started.
pub(crate) fn runs_of_intent(intent: &str) -> Vec<RunId> {
    let Some((key, attempt)) = intent.split_once('#') else { return Vec::new() };
    let run = run_of(key, &attempt);
    vec![run.clone(), format!("{run}_ahead").into()]
}

/// Whether a run belongs to a workflow task. Ids of other runs have no second part.
pub(crate) fn is_of_workflow(run_id: &RunId) -> bool {
    run_id.strip_prefix(RunId::PREFIX).is_some_and(|name| name.contains('_'))
}

fn file_name(instance: &str, language: Language) -> String {
    let extension = language.extension();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("{}.{extension}", instance.chars().take(60).map(plain).collect::<String>())
}

fn reason(approval: &Approval) -> &'static str {
    match approval.asked.is_in_doubt() {
        true => "it may have happened: `retry`, `use` or `deny`",
        false => "",
    }
}
