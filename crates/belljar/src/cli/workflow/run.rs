//! `belljar workflow run` and `resume`: drives a workflow here and shows its progress.

use std::{
    env, fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use belljar_contract::{
    ApprovalId, CommitExecutable, JsonMap, JsonValue, RunResult, WorkflowStatus, json_value,
    resolved_path,
};
use belljar_project::{
    ProjectWorkflowError, ProjectWorkflows, WorkflowPermissions, WorkflowSubmission, now_ms,
};
use belljar_tools::{ApprovalNotice, CallObserver};
use belljar_wire::json::{JsonFlaw, check_keys};
use belljar_workflow::{DriveError, DriveResult, LeaveReason, WorkflowStoreError};
use belljar_workflow_formats::CodeExecution;
use tokio_util::sync::CancellationToken;

use super::{
    board::TaskBoard,
    decision_prompt::DecisionPrompt,
    event_line::{event_line, failure_text},
    file::WorkflowFile,
    find_workflow,
    host::{HostStart, WorkflowContext, WorkflowHost, requested_permissions},
    pause::{PauseNotice, paused, paused_and_left},
    show::full_report,
    stored_workflows,
};
use crate::cli::{
    access::commit_names,
    arguments::{WorkflowResumeArguments, WorkflowRunArguments},
    print_json,
    run::CALLER,
    signals::{SignalListener, StopSignal},
    terminal::{
        json_text::{Layout, lay_out},
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// How long one poll for events waits, with a tree to redraw and without.
const TREE_POLL: Duration = Duration::from_millis(100);
const LINE_POLL: Duration = Duration::from_secs(1);
/// Events fetched at once.
const PAGE: u32 = 500;

/// Runs `belljar workflow run`.
pub(super) async fn run(
    arguments: &WorkflowRunArguments,
    context: WorkflowContext<'_>,
) -> anyhow::Result<ExitCode> {
    let code = CodeExecution::of(arguments.enable_code_execution, arguments.enable_shell);
    let file = match WorkflowFile::load(&arguments.file, code)? {
        Ok(file) => file,
        Err(faults) => return faults.print(arguments.json),
    };
    file.warn()?;
    let here = env::current_dir()?;
    let workspace = arguments.workspace.workspace.as_ref().map(|path| resolved_path(&here, path));
    let new = WorkflowSubmission {
        id: arguments.id.clone(),
        inputs: inputs(arguments)?,
        workspace: workspace.clone(),
        ..WorkflowSubmission::new(file.read.dag.clone(), CALLER)
    };
    let permissions = requested_permissions(arguments)?;
    let mut signals = SignalListener::listen()?;
    let prompts = OpenPrompts::default();
    let started =
        context.start(&arguments.limits, permissions, |then| prompts.counting(then), &mut signals);
    let host = match started.await? {
        HostStart::Ready(host) => *host,
        HostStart::Not(result, stop) => return not_started(&result, stop),
    };
    let id = match host.workflows.create(new).await {
        Ok(id) => id,
        Err(error) => {
            host.end(&mut signals).await;
            if let ProjectWorkflowError::Faulty(faults) = &error {
                return file.located(faults).print(arguments.json);
            }
            return Err(error.into());
        }
    };
    let commit = arguments.workspace.commit.then_some(workspace).flatten();
    let executable = commit_executable(&arguments.workspace.commit_executable, context)?;
    let options = DriveOptions { as_json: arguments.json, commit, executable, prompts };
    drive(host, &id, options, &mut signals).await
}

/// Runs `belljar workflow resume`.
pub(super) async fn resume(
    arguments: &WorkflowResumeArguments,
    context: WorkflowContext<'_>,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(context.project)?;
    let id = find_workflow(&workflows, &arguments.id).await?;
    let mut signals = SignalListener::listen()?;
    let prompts = OpenPrompts::default();
    let watch = |then| prompts.counting(then);
    let started =
        context.start(&arguments.limits, WorkflowPermissions::default(), watch, &mut signals);
    let host = match started.await? {
        HostStart::Ready(host) => *host,
        HostStart::Not(result, stop) => return not_started(&result, stop),
    };
    let here = env::current_dir()?;
    let commit = arguments.commit_to.as_ref().map(|path| resolved_path(&here, path));
    let executable = commit_executable(&arguments.commit_executable, context)?;
    let options = DriveOptions { as_json: arguments.json, commit, executable, prompts };
    drive(host, &id, options, &mut signals).await
}

/// Reads the inputs from the flags.
fn inputs(arguments: &WorkflowRunArguments) -> anyhow::Result<JsonMap> {
    let mut inputs = match &arguments.inputs {
        None => JsonMap::new(),
        Some(given) => {
            let JsonValue::Object(inputs) = json_or_file("--inputs", given)? else {
                bail!("--inputs: the inputs must be a JSON object");
            };
            inputs
        }
    };
    for given in &arguments.input {
        let (name, value) = given.split_once('=').with_context(|| {
            format!("--input {given}: expected NAME=VALUE, for example --input version=1.4")
        })?;
        let value = match check_keys(value.as_bytes()) {
            Ok(()) => json_value::parse(value).unwrap_or_else(|_| JsonValue::from(value)),
            Err(JsonFlaw::Malformed(_)) => JsonValue::from(value),
            Err(flaw @ (JsonFlaw::RepeatedKey(_) | JsonFlaw::ReservedKey(_))) => {
                bail!("--input {name}: {flaw}")
            }
        };
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
}

/// A value given as JSON or as @FILE.
pub(super) fn json_or_file(what: &str, given: &str) -> anyhow::Result<JsonValue> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some(path) => {
            fs::read_to_string(path).with_context(|| format!("{what}: cannot read {path}"))?
        }
    };
    check_keys(text.as_bytes()).with_context(|| what.to_owned())?;
    json_value::parse(&text).with_context(|| format!("{what}: not valid JSON"))
}

/// How a workflow is driven and shown.
struct DriveOptions {
    as_json: bool,
    /// Where to write its files if it completes.
    commit: Option<PathBuf>,
    executable: CommitExecutable,
    prompts: OpenPrompts,
}

/// Names that a commit writes although the host would execute them.
fn commit_executable(
    given: &[String],
    context: WorkflowContext<'_>,
) -> anyhow::Result<CommitExecutable> {
    let mut names = commit_names(given).map_err(|refused| anyhow!(refused.message))?;
    names.extend(context.settings.commit_executable.iter().cloned());
    Ok(CommitExecutable::Names(names))
}

/// Drives a workflow, shows its progress and prints the outcome.
async fn drive(
    host: WorkflowHost,
    id: &str,
    options: DriveOptions,
    signals: &mut SignalListener,
) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    let mut watcher = Watcher::new(&host.workflows, id, &options.prompts).await;
    let mut signal = None;
    let driven = {
        let driving = host.workflows.run(id, &stop);
        let mut driving = std::pin::pin!(driving);
        loop {
            tokio::select! {
                driven = &mut driving => break Some(driven),
                came = signals.received() => {
                    // A second signal skips the wait for running tasks.
                    if signal.replace(came).is_some() {
                        break None;
                    }
                    watcher.say("stopping: running tasks get a moment to end");
                    stop.cancel();
                }
                () = watcher.watch(&host.workflows) => {}
            }
        }
    };
    watcher.finish(&host.workflows).await;
    let event_line = print_outcome(&host.workflows, id, driven, &options).await;
    host.end(signals).await;
    match (event_line, signal) {
        (Ok(_), Some(signal)) => Ok(ExitCode::from(signal.exit_status())),
        (event_line, _) => event_line,
    }
}

async fn print_outcome(
    workflows: &ProjectWorkflows,
    id: &str,
    driven: Option<Result<DriveResult, DriveError>>,
    options: &DriveOptions,
) -> anyhow::Result<ExitCode> {
    let driven = match driven {
        None => return print_how_to_go_on(id, None),
        Some(Err(error)) => return Err(drive_error(id, error)),
        Some(Ok(driven)) => driven,
    };
    if driven.reason != LeaveReason::Ended {
        return print_how_to_go_on(id, Some(driven.status));
    }
    let completed = driven.failure.is_none();
    if options.as_json {
        print_json(&full_report(workflows, id, None).await?)?;
    } else if completed {
        let text = lay_out(&driven.output.to_string(), Layout::Expanded, TextStyle::of_stdout());
        writeln!(io::stdout(), "{text}")?;
    }
    if let Some(failure) = &driven.failure {
        let style = TextStyle::of_stderr();
        let status = driven.status.as_str();
        writeln!(
            io::stderr(),
            "{}: {}",
            style.paint(TextRole::Bad, status),
            failure_text(failure)
        )?;
        writeln!(io::stderr(), "details: belljar workflow show {id}")?;
        return Ok(ExitCode::FAILURE);
    }
    match &options.commit {
        Some(directory) => commit(workflows, id, directory, &options.executable).await,
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Writes the changed files to a directory.
async fn commit(
    workflows: &ProjectWorkflows,
    id: &str,
    to: &Path,
    executable: &CommitExecutable,
) -> anyhow::Result<ExitCode> {
    let exported = workflows.export(id, to, executable).await?;
    for (path, why) in exported.refused.iter().chain(&exported.withheld) {
        writeln!(io::stderr(), "not committed: {} ({})", visible(path), visible(why))?;
    }
    writeln!(io::stderr(), "committed {} files to {}", exported.written.len(), to.display())?;
    let all = exported.refused.is_empty();
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_how_to_go_on(id: &str, status: Option<WorkflowStatus>) -> anyhow::Result<ExitCode> {
    let how = match status == Some(WorkflowStatus::Paused) {
        true => paused_and_left(id),
        false => format!("to resume it: belljar workflow resume {id}"),
    };
    writeln!(io::stderr(), "{how}")?;
    Ok(ExitCode::SUCCESS)
}

/// Explains why a workflow could not be driven.
pub(super) fn drive_error(id: &str, error: DriveError) -> anyhow::Error {
    if let DriveError::Store(WorkflowStoreError::Held { owner, .. }) = &error {
        let process = owner.split(':').next().unwrap_or_default();
        return anyhow::anyhow!(
            "process {process} drives workflow {id}; to watch it: belljar workflow events {id} \
             --follow"
        );
    }
    if let DriveError::Superseded { .. } = &error {
        let reason = format!("{error}; this process wrote nothing more and stopped its tasks");
        return anyhow::anyhow!("{reason}; to watch it: belljar workflow events {id} --follow");
    }
    anyhow::Error::from(error).context(format!("to retry later: belljar workflow resume {id}"))
}

/// The error if the host could not start, or the exit status if a signal came first.
pub(super) fn not_started(
    result: &RunResult,
    stop: Option<StopSignal>,
) -> anyhow::Result<ExitCode> {
    if let Some(stop) = stop {
        return Ok(ExitCode::from(stop.exit_status()));
    }
    let error = result.error.as_ref();
    let message = error.map_or("nothing ran", |error| error.message.as_str());
    let hint = error.and_then(|error| error.hint.as_deref()).unwrap_or_default();
    bail!("{message} ({hint})")
}

/// Shows the progress of a workflow: a tree on a terminal, lines elsewhere.
struct Watcher {
    id: String,
    after: u64,
    began_ms: Option<u64>,
    board: Option<TaskBoard>,
    drawn: usize,
    decisions: Option<DecisionPrompt>,
    prompts: OpenPrompts,
    pause: PauseNotice,
}

impl Watcher {
    async fn new(workflows: &ProjectWorkflows, id: &str, prompts: &OpenPrompts) -> Self {
        let machine = workflows.load(id, None).await.ok();
        let mut decisions = DecisionPrompt::at_terminal();
        let (mut after, mut board, mut pause) = (0, None, PauseNotice::default());
        if let Some(machine) = &machine {
            pause = PauseNotice::of(machine);
            after = machine.last_event();
            board = TextStyle::of_stderr().is_terminal().then(|| TaskBoard::of(&machine.tasks()));
            if let Some(decisions) = &mut decisions {
                decisions.add_open(machine.decisions());
            }
        }
        let (id, prompts) = (id.to_owned(), prompts.clone());
        let watcher =
            Self { id, after, began_ms: None, board, drawn: 0, decisions, prompts, pause };
        watcher.begin(machine.as_ref());
        watcher
    }

    /// Prints the id, and the decisions that wait for an answer.
    fn begin(&self, machine: Option<&belljar_workflow::Machine>) {
        let style = TextStyle::of_stderr();
        let _ = writeln!(
            io::stderr(),
            "{}",
            style.paint(TextRole::Dim, &format!("workflow {}", self.id))
        );
        if self.decisions.is_none() {
            for decision in machine.into_iter().flat_map(belljar_workflow::Machine::decisions) {
                let _ = writeln!(
                    io::stderr(),
                    "{}",
                    super::event_line::decision_text(&self.id, &decision)
                );
            }
        }
    }

    /// Polls once and shows the events since the last poll.
    async fn watch(&mut self, workflows: &ProjectWorkflows) {
        let has_tree = self.board.is_some() || self.decisions.is_some();
        let timeout = if has_tree { TREE_POLL } else { LINE_POLL };
        match workflows.events(&self.id, self.after, PAGE, timeout).await {
            Ok(events) => self.show(&events),
            // The driver reports errors of the store.
            Err(_) => tokio::time::sleep(LINE_POLL).await,
        }
        if let Some(decisions) = &mut self.decisions {
            decisions.poll(workflows, &self.id).await;
        }
        if self.pause.is_due() {
            self.say(&paused(&self.id));
        }
        self.draw();
    }

    fn show(&mut self, events: &[belljar_workflow::WorkflowEvent]) {
        let style = TextStyle::of_stderr();
        for event in events {
            self.after = event.seq;
            self.pause.observe(event);
            let began = *self.began_ms.get_or_insert(event.at_ms);
            if let Some(decisions) = &mut self.decisions {
                decisions.observe(event);
            }
            if let Some(board) = &mut self.board {
                board.take(event);
            } else if let Some(line) = event_line(&self.id, event, style) {
                let ms = event.at_ms.saturating_sub(began);
                let _ = writeln!(io::stderr(), "{:>4}.{:03}s {line}", ms / 1000, ms % 1000);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.prompts.is_any_open() || self.decisions.as_ref().is_some_and(DecisionPrompt::is_asking)
    }

    /// Redraws the tree, unless a question is on the screen.
    fn draw(&mut self) {
        let Some(board) = &self.board else { return };
        if self.is_quiet() {
            // The old tree stays; the next one is drawn below.
            self.drawn = 0;
            return;
        }
        let now = u64::try_from(now_ms()).unwrap_or_default();
        let style = TextStyle::of_stderr();
        let lines = board.lines(now, style, style.width);
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\u{1b}[{}A", self.drawn));
        }
        for line in &lines {
            text.push_str(&format!("\u{1b}[2K{line}\n"));
        }
        text.push_str("\u{1b}[J");
        self.drawn = lines.len();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn say(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
        self.drawn = 0;
    }

    /// Shows the remaining events.
    async fn finish(&mut self, workflows: &ProjectWorkflows) {
        self.decisions = None;
        while let Ok(events) = workflows.events(&self.id, self.after, PAGE, Duration::ZERO).await {
            if events.is_empty() {
                break;
            }
            self.show(&events);
        }
        self.draw();
    }
}

/// Counts the tool calls that are being asked about at the terminal.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenPrompts(Arc<AtomicUsize>);

impl OpenPrompts {
    fn is_any_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn counting(&self, then: Arc<dyn CallObserver>) -> Arc<dyn CallObserver> {
        Arc::new(PromptCounter { asking: self.0.clone(), then })
    }
}

#[derive(Debug)]
struct PromptCounter {
    asking: Arc<AtomicUsize>,
    then: Arc<dyn CallObserver>,
}

impl CallObserver for PromptCounter {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        self.asking.fetch_add(1, Ordering::SeqCst);
        self.then.approval_waits(notice);
    }

    fn approval_over(&self, id: &ApprovalId) {
        let less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.asking.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        self.then.approval_over(id);
    }
}
