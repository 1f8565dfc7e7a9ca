//! `belljar workflow run` and `resume`: a workflow driven here, in sight of whoever started it.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use belljar::{CommitExecutable, FlowTerms, Flows, FlowsError, NewFlow, RunResult, now_ms};
use belljar_flow::{DriveError, Driven, EngineError, Left, Status, formats::CodeExecution};
use belljar_tools::{ApprovalNotice, CallObserver};
use belljar_wire::json::{JsonFlaw, check_keys};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::super::{
    arguments::{WorkflowResumeArguments, WorkflowRunArguments},
    granted::{commit_names, resolve},
    interrupt::{Interrupt, Stop},
    json_text::{Layout, lay_out},
    look::{Look, Role},
    print_json,
    run::CALLER,
    visible::visible,
};
use super::{
    answer::Asker,
    file::WorkflowFile,
    find,
    host::{Host, Ready, Started, terms},
    kept,
    line::{shown, told, word},
    pause::{Pause, paused, paused_and_left},
    progress::Board,
    show::whole,
};

/// How long one look for events waits, when a tree has to be kept up to date and when not.
const LIVELY: Duration = Duration::from_millis(100);
const PATIENT: Duration = Duration::from_secs(1);
/// Events fetched at once.
const PAGE: u32 = 500;

/// `belljar workflow run`.
pub(super) async fn run(
    arguments: &WorkflowRunArguments,
    host: Host<'_>,
) -> anyhow::Result<ExitCode> {
    let code = CodeExecution::of(arguments.enable_code_execution, arguments.enable_shell);
    let file = match WorkflowFile::load(&arguments.file, code)? {
        Ok(file) => file,
        Err(wrong) => return wrong.tell(arguments.json),
    };
    file.warn()?;
    let here = env::current_dir()?;
    let workspace = arguments.workspace.as_ref().map(|path| resolve(&here, path));
    let new = NewFlow {
        id: arguments.id.clone(),
        inputs: inputs(arguments)?,
        workspace: workspace.clone(),
        ..NewFlow::new(file.read.dag.clone(), CALLER)
    };
    let terms = terms(arguments)?;
    let mut interrupt = Interrupt::listen()?;
    let quiet = Quiet::default();
    let started = host.start(&arguments.limits, terms, |then| quiet.before(then), &mut interrupt);
    let ready = match started.await? {
        Started::Ready(ready) => *ready,
        Started::Not(result, stop) => return not_started(&result, stop),
    };
    let id = match ready.flows.create(new).await {
        Ok(id) => id,
        Err(error) => {
            ready.end(&mut interrupt).await;
            if let FlowsError::Faulty(faults) = &error {
                return file.located(faults).tell(arguments.json);
            }
            return Err(error.into());
        }
    };
    let commit = arguments.commit.then_some(workspace).flatten();
    let executable = executable(&arguments.commit_executable, host)?;
    let how = How { as_json: arguments.json, commit, executable, quiet };
    drive(ready, &id, how, &mut interrupt).await
}

/// `belljar workflow resume`.
pub(super) async fn resume(
    arguments: &WorkflowResumeArguments,
    host: Host<'_>,
) -> anyhow::Result<ExitCode> {
    let workflows = kept(host.project)?;
    let id = find(&workflows, &arguments.id).await?;
    let mut interrupt = Interrupt::listen()?;
    let quiet = Quiet::default();
    let watch = |then| quiet.before(then);
    let started = host.start(&arguments.limits, FlowTerms::default(), watch, &mut interrupt);
    let ready = match started.await? {
        Started::Ready(ready) => *ready,
        Started::Not(result, stop) => return not_started(&result, stop),
    };
    let here = env::current_dir()?;
    let commit = arguments.commit_to.as_ref().map(|path| resolve(&here, path));
    let executable = executable(&arguments.commit_executable, host)?;
    let how = How { as_json: arguments.json, commit, executable, quiet };
    drive(ready, &id, how, &mut interrupt).await
}

/// The inputs that were given.
fn inputs(arguments: &WorkflowRunArguments) -> anyhow::Result<Map<String, Value>> {
    let mut inputs = match &arguments.inputs {
        None => Map::new(),
        Some(given) => {
            let Value::Object(inputs) = json_or_file("--inputs", given)? else {
                bail!("--inputs: inputs are a JSON object");
            };
            inputs
        }
    };
    for given in &arguments.input {
        let (name, value) = given.split_once('=').with_context(|| {
            format!("--input {given}: an input is NAME=VALUE, for example --input version=1.4")
        })?;
        let value = match check_keys(value.as_bytes()) {
            Ok(()) => serde_json::from_str(value).unwrap_or_else(|_| Value::from(value)),
            Err(JsonFlaw::Malformed(_)) => Value::from(value),
            Err(flaw @ (JsonFlaw::RepeatedKey(_) | JsonFlaw::ReservedKey(_))) => {
                bail!("--input {name}: {flaw}")
            }
        };
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
}

/// A value given as JSON, or in a file.
pub(super) fn json_or_file(what: &str, given: &str) -> anyhow::Result<Value> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some(path) => {
            fs::read_to_string(path).with_context(|| format!("{what}: could not read {path}"))?
        }
    };
    check_keys(text.as_bytes()).with_context(|| what.to_owned())?;
    serde_json::from_str(&text).with_context(|| format!("{what}: not valid JSON"))
}

/// How a workflow that is driven here is shown.
struct How {
    as_json: bool,
    /// Where its files go if it completes.
    commit: Option<PathBuf>,
    executable: CommitExecutable,
    quiet: Quiet,
}

/// What of the files that the host would execute goes to the directory.
fn executable(given: &[String], host: Host<'_>) -> anyhow::Result<CommitExecutable> {
    let mut names = commit_names(given).map_err(|refused| anyhow!(refused.message))?;
    names.extend(host.settings.commit_executable.iter().cloned());
    Ok(CommitExecutable::Names(names))
}

/// Drives a workflow, shows how it goes, and tells how it went.
async fn drive(
    ready: Ready,
    id: &str,
    how: How,
    interrupt: &mut Interrupt,
) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    let mut watcher = Watcher::new(&ready.flows, id, &how.quiet).await;
    let mut signal = None;
    let driven = {
        let driving = ready.flows.run(id, &stop);
        let mut driving = std::pin::pin!(driving);
        loop {
            tokio::select! {
                driven = &mut driving => break Some(driven),
                came = interrupt.received() => {
                    // The second one is for not waiting until tasks have ended.
                    if signal.replace(came).is_some() {
                        break None;
                    }
                    watcher.say("stopping: what runs gets a moment to end");
                    stop.cancel();
                }
                () = watcher.watch(&ready.flows) => {}
            }
        }
    };
    watcher.finish(&ready.flows).await;
    let told = tell(&ready.flows, id, driven, &how).await;
    ready.end(interrupt).await;
    match (told, signal) {
        (Ok(_), Some(signal)) => Ok(ExitCode::from(signal.exit_status())),
        (told, _) => told,
    }
}

async fn tell(
    flows: &Flows,
    id: &str,
    driven: Option<Result<Driven, DriveError>>,
    how: &How,
) -> anyhow::Result<ExitCode> {
    let driven = match driven {
        None => return stopped(id, None),
        Some(Err(error)) => return Err(explained(id, error)),
        Some(Ok(driven)) => driven,
    };
    if driven.left != Left::Ended {
        return stopped(id, Some(driven.status));
    }
    let completed = driven.failure.is_none();
    if how.as_json {
        print_json(&whole(flows, id, None).await?)?;
    } else if completed {
        let text = lay_out(&driven.output.to_string(), Layout::Expanded, Look::of_stdout());
        writeln!(io::stdout(), "{text}")?;
    }
    if let Some(failure) = &driven.failure {
        let look = Look::of_stderr();
        let status = word(&driven.status);
        writeln!(io::stderr(), "{}: {}", look.paint(Role::Bad, &status), shown(failure))?;
        writeln!(io::stderr(), "look at it: belljar workflow show {id}")?;
        return Ok(ExitCode::FAILURE);
    }
    match &how.commit {
        Some(directory) => commit(flows, id, directory, &how.executable).await,
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Brings what the workflow changed to the directory it began with.
async fn commit(
    flows: &Flows,
    id: &str,
    to: &Path,
    executable: &CommitExecutable,
) -> anyhow::Result<ExitCode> {
    let exported = flows.export(id, to, executable).await?;
    for (path, why) in exported.refused.iter().chain(&exported.withheld) {
        writeln!(io::stderr(), "not committed: {} ({})", visible(path), visible(why))?;
    }
    writeln!(io::stderr(), "committed {} files to {}", exported.written.len(), to.display())?;
    let all = exported.refused.is_empty();
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn stopped(id: &str, status: Option<Status>) -> anyhow::Result<ExitCode> {
    let how = match status == Some(Status::Paused) {
        true => paused_and_left(id),
        false => format!("go on from here: belljar workflow resume {id}"),
    };
    writeln!(io::stderr(), "{how}")?;
    Ok(ExitCode::SUCCESS)
}

/// Why a workflow could not be driven, for people.
pub(super) fn explained(id: &str, error: DriveError) -> anyhow::Error {
    if let DriveError::Engine(EngineError::Held { owner, .. }) = &error {
        let process = owner.split(':').next().unwrap_or_default();
        return anyhow::anyhow!(
            "workflow {id} is being run by process {process}; watch it: \
             belljar workflow events {id} --follow"
        );
    }
    if let DriveError::Superseded { .. } = &error {
        let told = format!("{error}; nothing more was written here, and its tasks were stopped");
        return anyhow::anyhow!("{told}; watch it: belljar workflow events {id} --follow");
    }
    anyhow::Error::from(error).context(format!("go on later: belljar workflow resume {id}"))
}

/// What is said when there is no sandbox, or a signal came first.
pub(super) fn not_started(result: &RunResult, stop: Option<Stop>) -> anyhow::Result<ExitCode> {
    if let Some(stop) = stop {
        return Ok(ExitCode::from(stop.exit_status()));
    }
    let error = result.error.as_ref();
    let message = error.map_or("nothing ran", |error| error.message.as_str());
    let hint = error.and_then(|error| error.hint.as_deref()).unwrap_or_default();
    bail!("{message} ({hint})")
}

/// Shows how a workflow goes: a tree on a terminal, lines elsewhere.
struct Watcher {
    id: String,
    after: u64,
    began_ms: Option<u64>,
    board: Option<Board>,
    drawn: usize,
    asker: Option<Asker>,
    quiet: Quiet,
    pause: Pause,
}

impl Watcher {
    async fn new(flows: &Flows, id: &str, quiet: &Quiet) -> Self {
        let machine = flows.look(id, None).await.ok();
        let mut asker = Asker::at_terminal();
        let (mut after, mut board, mut pause) = (0, None, Pause::default());
        if let Some(machine) = &machine {
            pause = Pause::of(machine);
            after = machine.told();
            board = Look::of_stderr().is_terminal().then(|| Board::of(&machine.tasks()));
            if let Some(asker) = &mut asker {
                asker.know(machine.decisions());
            }
        }
        let (id, quiet) = (id.to_owned(), quiet.clone());
        let watcher = Self { id, after, began_ms: None, board, drawn: 0, asker, quiet, pause };
        watcher.begin(machine.as_ref());
        watcher
    }

    /// Says what it is called, and what waits for an answer.
    fn begin(&self, machine: Option<&belljar_flow::Machine>) {
        let look = Look::of_stderr();
        let _ =
            writeln!(io::stderr(), "{}", look.paint(Role::Dim, &format!("workflow {}", self.id)));
        if self.asker.is_none() {
            for decision in machine.into_iter().flat_map(belljar_flow::Machine::decisions) {
                let _ = writeln!(io::stderr(), "{}", super::line::question(&self.id, &decision));
            }
        }
    }

    /// One look: what has happened since the last is shown.
    async fn watch(&mut self, flows: &Flows) {
        let is_lively = self.board.is_some() || self.asker.is_some();
        let patience = if is_lively { LIVELY } else { PATIENT };
        match flows.events(&self.id, self.after, PAGE, patience).await {
            Ok(events) => self.show(&events),
            // The driver says what is wrong with the store.
            Err(_) => tokio::time::sleep(PATIENT).await,
        }
        if let Some(asker) = &mut self.asker {
            asker.step(flows, &self.id).await;
        }
        if self.pause.is_to_be_told() {
            self.say(&paused(&self.id));
        }
        self.draw();
    }

    fn show(&mut self, events: &[belljar_flow::Event]) {
        let look = Look::of_stderr();
        for event in events {
            self.after = event.seq;
            self.pause.hear(event);
            let began = *self.began_ms.get_or_insert(event.at_ms);
            if let Some(asker) = &mut self.asker {
                asker.hear(event);
            }
            if let Some(board) = &mut self.board {
                board.take(event);
            } else if let Some(line) = told(&self.id, event, look) {
                let ms = event.at_ms.saturating_sub(began);
                let _ = writeln!(io::stderr(), "{:>4}.{:03}s {line}", ms / 1000, ms % 1000);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.quiet.is_on() || self.asker.as_ref().is_some_and(Asker::is_asking)
    }

    /// Draws the tree over what it was, unless a question is on the screen.
    fn draw(&mut self) {
        let Some(board) = &self.board else { return };
        if self.is_quiet() {
            // What is there stays; the next tree is drawn beneath.
            self.drawn = 0;
            return;
        }
        let now = u64::try_from(now_ms()).unwrap_or_default();
        let look = Look::of_stderr();
        let lines = board.lines(now, look, look.width);
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

    /// Shows what is left to show.
    async fn finish(&mut self, flows: &Flows) {
        self.asker = None;
        while let Ok(events) = flows.events(&self.id, self.after, PAGE, Duration::ZERO).await {
            if events.is_empty() {
                break;
            }
            self.show(&events);
        }
        self.draw();
    }
}

/// How many tool calls are being asked about at the terminal.
#[derive(Debug, Clone, Default)]
pub(super) struct Quiet(Arc<AtomicUsize>);

impl Quiet {
    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn before(&self, then: Arc<dyn CallObserver>) -> Arc<dyn CallObserver> {
        Arc::new(Counting { asking: self.0.clone(), then })
    }
}

#[derive(Debug)]
struct Counting {
    asking: Arc<AtomicUsize>,
    then: Arc<dyn CallObserver>,
}

impl CallObserver for Counting {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        self.asking.fetch_add(1, Ordering::SeqCst);
        self.then.approval_waits(notice);
    }

    fn approval_over(&self, id: &str) {
        let less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.asking.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        self.then.approval_over(id);
    }
}
