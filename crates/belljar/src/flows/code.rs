//! Code tasks: a durable run each, named after the task, so that one which was under way when its host
//! died goes on inside itself and no call of it is made twice.

use std::{
    fmt::Display,
    sync::Arc,
    time::{Duration, Instant},
};

use belljar_flow::{Code, Failure, Job, Outcome, Start, Work};
use belljar_runtime::{CommitExecutable, Grants, Language, Limits, RunRequest, Workspace};
use belljar_store::{Approval, Approvals, Verdict};
use belljar_tools::{ApprovalNotice, Glob, LISTING_TIMEOUT, ToolGrants, ToolReach, crash_point};
use serde_json::value::to_raw_value;

use super::{
    allowed,
    known::qualified,
    node,
    performer::{Driven, Hands, cancelled},
    ran::Ran,
    tools::Watch,
};
use crate::{Durability, Execution, ResumeError, Resumed, now_ms};

/// How often it is looked whether a person has decided.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often a run is resumed that stops for a person whom nobody asks.
const MOST_IN_VAIN: u32 = 10;

/// How much of a key is in the name of a run.
const KEY_LETTERS: usize = 32;

/// Code that is to run, with what it gets.
pub(super) struct Asked<'a> {
    pub(super) code: &'a Code,
    pub(super) tools: ToolGrants,
    pub(super) limits: Limits,
    pub(super) grants: Grants,
}

impl Hands {
    pub(super) async fn run_code(&self, job: &Job, driven: &Driven, code: &Code) -> Outcome {
        let grants = match driven.terms.grants(&code.grants) {
            Ok(grants) => grants,
            Err(failure) => return Outcome { read_only: true, ..Outcome::failed(failure) },
        };
        let mut limits = allowed::limits(self.options.limits, &code.limits);
        if code.no_room {
            // As many as there are before the code begins: it can make none.
            limits.inodes = 1;
        }
        let tools = self.tools_of(code, job.start.speculative).await;
        self.run_asked(job, driven, Asked { code, tools, limits, grants }).await
    }

    /// Runs code, or goes on with it, to its end.
    pub(super) async fn run_asked(&self, job: &Job, driven: &Driven, asked: Asked<'_>) -> Outcome {
        let id = run_id(&job.start);
        let Some(store) = self.executor.store() else { return cancelled(false) };
        let record = match store.run(&id).await {
            Ok(record) => record,
            Err(error) => return Outcome::failed(Failure::new("store.failed", error.to_string())),
        };
        let directory = match self.lay_out(job, &id, record.as_ref()).await {
            Ok(directory) => directory,
            Err(failure) => return Outcome { read_only: true, ..Outcome::failed(failure) },
        };
        let watch = Arc::new(Watch::new(self.options.observer.clone()));
        let (code, shape) = (asked.code, asked.code.shape);
        let ran = match record {
            Some(_) => self.go_on(&id, job, &watch).await,
            None => Ok({
                let request = match self.request(job, asked, directory.as_deref()) {
                    Ok(execution) => execution,
                    Err(failure) => {
                        return Outcome { read_only: true, ..Outcome::failed(failure) };
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
                Ran::of(&ran)
            }),
        };
        let ran = match (ran, &job.start.work) {
            // What became of a tool task is asked by the workflow, which takes a result for an answer.
            (Ok(ran), Work::McpTool(_)) if ran.is_in_doubt() => {
                return self.in_doubt(&id).await;
            }
            (Ok(ran), _) => self.until_decided(&id, ran, job, &watch).await,
            (lost @ Err(_), _) => lost,
        };
        let ran = match ran {
            Ok(ran) if node::is_shifted(code) => ran.a_line_up(),
            Ok(ran) => ran,
            // Nobody knows what it has done.
            Err(failure) => return Outcome::failed(failure),
        };
        crash_point("flow_ran");
        let mut outcome = ran.outcome(shape, &watch, job.start.again);
        if let (Some(directory), Some(files)) = (&directory, &job.files) {
            outcome = self.collect((&job.flow, &id), directory, files, outcome).await;
        }
        outcome
    }

    fn request(
        &self,
        job: &Job,
        asked: Asked<'_>,
        directory: Option<&std::path::Path>,
    ) -> Result<Execution, Failure> {
        let Asked { code, tools, limits, grants } = asked;
        let Some(language) = language(&code.language) else {
            let message = format!("there is no engine for `{}`", code.language);
            return Err(Failure { lasting: true, ..Failure::new("language.unsupported", message) });
        };
        let mut request = RunRequest::new(language, node::wrapped(code, language));
        request.file_name = file_name(&job.start.instance, language);
        request.context = to_raw_value(&code.context).ok();
        (request.limits, request.grants) = (limits, grants);
        // Nothing of the host looks there: what goes further is decided when the workflow's files are
        // brought to a directory.
        let executable = CommitExecutable::All;
        request.workspace =
            directory.map(|path| Workspace { path: path.to_owned(), commit: true, executable });
        Ok(Execution {
            tools,
            intent: code.intent.clone(),
            durability: Durability::Always,
            ..Execution::new(request, "")
        })
    }

    /// The tools a code task may use; ahead of a decision, those that change nothing.
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

    /// Goes on with a run that was begun before, once nobody else is at it.
    async fn go_on(&self, id: &str, job: &Job, watch: &Arc<Watch>) -> Result<Ran, Failure> {
        loop {
            let cancel = job.cancel.clone();
            let began = Instant::now();
            let error = match self.executor.resume(id, watch.clone(), cancel.cancelled()).await {
                Ok(Resumed::Ran(result)) => {
                    self.measure(job, &result, began.elapsed());
                    return Ok(Ran::of(&result));
                }
                Ok(Resumed::Ended(json)) => return Ok(Ran::read(json.get())),
                Err(error) => error,
            };
            let is_busy = matches!(error, ResumeError::StillRunning { .. });
            if !is_busy || job.cancel.is_cancelled() {
                return Err(Failure {
                    may_have_acted: true,
                    lasting: true,
                    ..Failure::new("run.lost", error.to_string())
                });
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = job.cancel.cancelled() => {}
            }
        }
    }

    /// A call of which nobody knows whether it happened: the workflow asks, so the run need not.
    pub(super) async fn in_doubt(&self, id: &str) -> Outcome {
        if let Some(store) = self.executor.store() {
            let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
            for approval in pending.into_iter().filter(|one| one.asked.run_id == id) {
                let asked = &approval.asked.id;
                let _ = store.decide(asked, Verdict::Deny, "workflow", now_ms()).await;
            }
        }
        Outcome::failed(in_doubt("nobody knows whether the call happened"))
    }

    /// A run that stopped for a person goes on when they have decided.
    async fn until_decided(
        &self,
        id: &str,
        mut ran: Ran,
        job: &Job,
        watch: &Arc<Watch>,
    ) -> Result<Ran, Failure> {
        let Some(store) = self.executor.store() else { return Ok(ran) };
        let (mut told, mut in_vain) = (Vec::new(), 0);
        while matches!(ran.status.as_str(), "in_doubt" | "approval_required") {
            let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
            let mut of_run = pending.into_iter().filter(|one| one.asked.run_id == id).peekable();
            if of_run.peek().is_none() {
                told.iter().for_each(|over: &String| self.options.observer.approval_over(over));
                told.clear();
                if in_vain == MOST_IN_VAIN {
                    return Ok(ran);
                }
                in_vain += 1;
                ran = self.go_on(id, job, watch).await?;
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY * (in_vain - 1)) => continue,
                    () = job.cancel.cancelled() => return Ok(ran),
                }
            }
            in_vain = 0;
            for approval in of_run {
                if !told.contains(&approval.asked.id) {
                    told.push(approval.asked.id.clone());
                    self.options.observer.approval_waits(&notice(approval));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = job.cancel.cancelled() => return Ok(ran),
            }
        }
        Ok(ran)
    }
}

/// The failure of what may have happened or not.
pub(super) fn in_doubt(message: &str) -> Failure {
    let failure = Failure::new("tool.in_doubt", message);
    Failure { in_doubt: true, may_have_acted: true, ..failure }
}

/// The run of an attempt. Whoever performs the attempt again finds it by this.
pub(super) fn run_id(start: &Start) -> String {
    let ahead = if start.speculative { "_ahead" } else { "" };
    format!("{}{ahead}", run_of(&start.key, &start.attempt))
}

/// The run of an attempt at the work with a key.
pub(super) fn run_of(key: &str, attempt: &impl Display) -> String {
    let key: String = key.chars().take(KEY_LETTERS).collect();
    format!("run_{key}_{attempt}")
}

/// The runs that an intent of a workflow may have begun: its key is that of the start and the attempt.
pub(crate) fn runs_of_intent(intent: &str) -> Vec<String> {
    let Some((key, attempt)) = intent.split_once('#') else { return Vec::new() };
    let run = run_of(key, &attempt);
    vec![run.clone(), format!("{run}_ahead")]
}

/// Whether a run is that of a task. Names of other runs have no second part.
pub(crate) fn is_of_workflow(run_id: &str) -> bool {
    run_id.strip_prefix("run_").is_some_and(|name| name.contains('_'))
}

pub(super) fn language(name: &str) -> Option<Language> {
    match name {
        "python" | "" => Some(Language::Python),
        "typescript" => Some(Language::TypeScript),
        "javascript" => Some(Language::JavaScript),
        "bash" => Some(Language::Bash),
        _ => None,
    }
}

fn file_name(instance: &str, language: Language) -> String {
    let extension = match language {
        Language::Python => "py",
        Language::TypeScript => "ts",
        Language::JavaScript => "js",
        Language::Bash => "sh",
    };
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("{}.{extension}", instance.chars().take(60).map(plain).collect::<String>())
}

fn notice(approval: Approval) -> ApprovalNotice {
    let asked = approval.asked;
    let reason = match asked.is_in_doubt() {
        true => "it may have happened: `retry`, `use` or `deny`".to_owned(),
        false => String::new(),
    };
    ApprovalNotice {
        id: asked.id,
        run_id: asked.run_id,
        tool: asked.tool,
        arguments: asked.arguments,
        reason,
        line: asked.line,
        code_line: asked.code_line,
        expires_ms: asked.expires_ms,
    }
}
