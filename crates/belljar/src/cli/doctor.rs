//! `belljar doctor`: checks what this machine can enforce, by trying it (I3).
//!
//! Two kinds of evidence: each layer tested on its own, and one real run in a cell. The verdict is
//! `full` only if both succeed; otherwise runs are refused.

use std::{
    fmt::Write as _,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use belljar_contract::{EngineName, Grants, Language, RunError, RunResult, StoreSizes, Tier};
use belljar_project::{
    Finding, FindingState, Project, Sandbox, config::quantity::milliseconds, examine, locate_engine,
};
use serde::Serialize;

use super::{
    arguments::DoctorArguments,
    gc::sizes_text,
    print_json,
    project::existing_store,
    run, runtime,
    terminal::style::{TextRole, TextStyle},
};

/// Together with the column of names this fits an ordinary terminal.
const TEXT_WIDTH: usize = 72;
/// The finding about the files that configure the project.
const CONFIGURATION: &str = "configuration";

/// All findings and the verdict, also the JSON output.
#[derive(Debug, Serialize)]
struct Diagnosis {
    version: &'static str,
    kernel: String,
    machine: &'static str,
    uid: u32,
    findings: Vec<Finding>,
    run: RunResult,
    engines: Vec<EngineFinding>,
    /// Findings that TypeScript and JavaScript do not need.
    extras: Vec<Finding>,
    /// Sizes of the project's store, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreSizes>,
    verdict: DoctorVerdict,
}

/// An engine, and whether this machine has it.
#[derive(Debug, Serialize)]
struct EngineFinding {
    name: EngineName,
    languages: &'static [Language],
    /// Its program on this machine; `None` if it is part of Belljar's own, or missing.
    program: Option<PathBuf>,
    /// Why this machine cannot start it.
    missing: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DoctorVerdict {
    Full,
    Refused,
    /// Code would run, but a configuration file is not valid.
    ConfigurationInvalid,
    /// Code would run, but the project's store cannot be used.
    StoreUnusable,
}

/// Runs `belljar doctor`: tries every layer and reports which ones this machine enforces.
pub(crate) fn doctor(
    arguments: DoctorArguments,
    project: anyhow::Result<Project>,
) -> anyhow::Result<ExitCode> {
    let diagnosis = runtime()?.block_on(diagnose(project));
    if arguments.json {
        print_json(&diagnosis)?;
    } else {
        io::stdout().write_all(text(&diagnosis, TextStyle::of_stdout()).as_bytes())?;
    }
    Ok(match diagnosis.verdict {
        DoctorVerdict::Full => ExitCode::SUCCESS,
        DoctorVerdict::Refused
        | DoctorVerdict::ConfigurationInvalid
        | DoctorVerdict::StoreUnusable => ExitCode::FAILURE,
    })
}

async fn diagnose(project: anyhow::Result<Project>) -> Diagnosis {
    let findings = examine(Path::new("/proc/self/exe")).await.unwrap_or_else(|error| {
        vec![Finding {
            layer: "examination".to_owned(),
            state: FindingState::Missing,
            detail: run::error_chain(&error),
            remedy: Some("no layer could be tried; check that /proc is mounted".to_owned()),
        }]
    });
    let (run, mut extras) = try_runs().await;
    let store = match project {
        Ok(project) => examine_store(&project, &mut extras).await,
        Err(error) => {
            extras.push(configuration_finding(&error));
            None
        }
    };
    let verdict = with_extras(verdict(&findings, &run), &extras);
    Diagnosis {
        version: env!("CARGO_PKG_VERSION"),
        kernel: kernel_release(),
        machine: std::env::consts::ARCH,
        uid: rustix::process::getuid().as_raw(),
        findings,
        run,
        engines: EngineName::ALL.iter().map(|engine| find_engine(*engine)).collect(),
        extras,
        store,
        verdict,
    }
}

/// Why the project cannot be opened, without the excerpt of the file.
fn configuration_finding(error: &anyhow::Error) -> Finding {
    let message = format!("{error:#}");
    let is_excerpt = |line: &&str| {
        let number = line.split_once('|').map(|(number, _)| number.trim());
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let lines: Vec<_> = message.lines().filter(|line| !is_excerpt(line)).collect();
    let (layer, detail) = (CONFIGURATION.to_owned(), lines.join(" "));
    let remedy = Some("commands that use the project refuse to start until it is corrected".into());
    Finding { layer, state: FindingState::Missing, detail, remedy }
}

/// Reads the whole store of the project, if it has one, and reports its size or its fault.
async fn examine_store(project: &Project, extras: &mut Vec<Finding>) -> Option<StoreSizes> {
    let layer = "store".to_owned();
    let examined = async {
        let Some(store) = existing_store(project)? else { return Ok(None) };
        store.examine().await?;
        anyhow::Ok(Some(store.sizes().await?))
    };
    match examined.await {
        Ok(sizes) => {
            let detail = sizes_text(sizes.as_ref()?);
            extras.push(Finding { layer, state: FindingState::Works, detail, remedy: None });
            sizes
        }
        Err(error) => {
            // The message itself says what to do.
            let (state, detail) = (FindingState::Missing, format!("{error:#}"));
            extras.push(Finding { layer, state, detail, remedy: None });
            None
        }
    }
}

async fn try_runs() -> (RunResult, Vec<Finding>) {
    match Sandbox::builder().pool(0).build().await {
        Ok(sandbox) => {
            let result = sandbox.run("return 1 + 1").await;
            let extras = if result.success { try_extras(&sandbox).await } else { Vec::new() };
            sandbox.shutdown().await;
            (result, extras)
        }
        Err(error) => (run::refused_result(&error), Vec::new()),
    }
}

/// Looks for an engine on this machine.
fn find_engine(name: EngineName) -> EngineFinding {
    let (program, missing) = match locate_engine(name) {
        Ok(program) => (program, None),
        Err(reason) => (None, Some(reason)),
    };
    EngineFinding { name, languages: name.row().languages, program, missing }
}

/// Tries the other languages, a workspace and a session.
async fn try_extras(sandbox: &Sandbox) -> Vec<Finding> {
    let python = sandbox.python("import sys\n'.'.join(map(str, sys.version_info[:3]))").run().await;
    let bash = sandbox.bash("printf '\"%s\"' \"${BASH_VERSION%%(*}\"").run().await;
    let workspace = match tempfile::tempdir() {
        Ok(directory) => {
            let code = "fs.writeFileSync('/work/x', ''); return 'copy-on-write'";
            let run = sandbox.typescript(code).workspace(directory.path()).run().await;
            extra("workspace", &run, "needs overlayfs in user namespaces (Linux 5.11 or newer)")
        }
        Err(error) => Finding {
            layer: "workspace".to_owned(),
            state: FindingState::Substituted,
            detail: format!("not tried: {error}"),
            remedy: None,
        },
    };
    vec![
        extra("python", &python, "only needed for Python: apt-get install python3"),
        extra("bash", &bash, "only needed for shell scripts: apt-get install bash"),
        workspace,
        try_session(sandbox).await,
        try_network(sandbox).await,
    ]
}

/// Asks the proxy of a granted cell for a host that was not granted.
async fn try_network(sandbox: &Sandbox) -> Finding {
    const CODE: &str = "exec 3<>/dev/tcp/127.0.0.1/3128\n\
                        printf 'CONNECT 192.0.2.2:443 HTTP/1.1\\r\\nHost: 192.0.2.2:443\\r\\n\\r\\n' >&3\n\
                        read -r _ status _ <&3\nprintf '\"%s\"' \"$status\"";
    let grants = Grants { net: vec!["192.0.2.1".to_owned()], ..Grants::default() };
    let run = sandbox.bash(CODE).grants(grants).run().await;
    let layer = "network".to_owned();
    let remedy = "only needed for code that is granted hosts, with --net";
    if run.error.is_some() || run.result.get() != "\"403\"" {
        let found = extra(&layer, &run, remedy);
        let (state, remedy) = (FindingState::Substituted, Some(remedy.to_owned()));
        return Finding { state, remedy, ..found };
    }
    let (state, held_by) = match run.isolation.layers.iter().any(|held| held == "landlock-tcp") {
        true => (FindingState::Works, "namespace, system call filter and Landlock's rule for TCP"),
        false => (
            FindingState::Substituted,
            "namespace and system call filter alone: Landlock has no rules for TCP before Linux 6.7",
        ),
    };
    let detail = format!("granted hosts only, by {held_by}");
    Finding { layer, state, detail, remedy: None }
}

/// Tries a checkpoint and a rollback in a session.
async fn try_session(sandbox: &Sandbox) -> Finding {
    let taken_back = async {
        let session = sandbox.session(Language::TypeScript).open().await?;
        let kept = session.checkpoint().await?;
        session.rollback(&kept.id).await?;
        session.destroy().await;
        Ok::<(), RunError>(())
    };
    let (state, detail, remedy) = match taken_back.await {
        Ok(()) => (FindingState::Works, "with checkpoints and forks".to_owned(), None),
        Err(error) => {
            let remedy = "sessions need Linux 6.15 or newer; single runs do not";
            (FindingState::Substituted, error.message, Some(remedy.to_owned()))
        }
    };
    Finding { layer: "sessions".to_owned(), state, detail, remedy }
}

fn extra(name: &str, run: &RunResult, remedy: &str) -> Finding {
    let (state, detail, remedy) = match &run.error {
        None => {
            let said: String = serde_json::from_str(run.result.get()).unwrap_or_default();
            (FindingState::Works, said, None)
        }
        Some(error) => (FindingState::Substituted, error.message.clone(), Some(remedy.to_owned())),
    };
    Finding { layer: name.to_owned(), state, detail, remedy }
}

fn verdict(findings: &[Finding], run: &RunResult) -> DoctorVerdict {
    let none_missing = findings.iter().all(|finding| finding.state != FindingState::Missing);
    let ran = run.success && run.result.get() == "2" && run.isolation.tier == Tier::Full;
    if none_missing && ran { DoctorVerdict::Full } else { DoctorVerdict::Refused }
}

/// Lowers the verdict if the configuration or the store is unusable: nothing else among the extras is
/// marked as missing.
fn with_extras(verdict: DoctorVerdict, extras: &[Finding]) -> DoctorVerdict {
    let unusable = extras.iter().find(|extra| extra.state == FindingState::Missing);
    match unusable {
        Some(extra) if verdict == DoctorVerdict::Full && extra.layer == CONFIGURATION => {
            DoctorVerdict::ConfigurationInvalid
        }
        Some(_) if verdict == DoctorVerdict::Full => DoctorVerdict::StoreUnusable,
        _ => verdict,
    }
}

fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |release| release.trim().to_owned())
}

fn text(diagnosis: &Diagnosis, style: TextStyle) -> String {
    let mut text = String::new();
    let who = if diagnosis.uid == 0 { "root" } else { "an ordinary user" };
    let _ = writeln!(
        text,
        "belljar {} on Linux {} ({}), as uid {} ({who})\n",
        diagnosis.version, diagnosis.kernel, diagnosis.machine, diagnosis.uid
    );
    let names = diagnosis.findings.iter().map(|finding| finding.layer.chars().count());
    let width = names.max().unwrap_or(0).max(8);
    let mut said = Vec::new();
    for finding in &diagnosis.findings {
        // Layers that depend on each other share a remedy; it is printed once.
        let remedy = finding.remedy.as_deref().filter(|remedy| !said.contains(remedy));
        text.push_str(&finding_text(finding, remedy, width, style));
        said.extend(remedy);
    }
    text.push_str(&run_text(&diagnosis.run, width, style));
    for engine in &diagnosis.engines {
        text.push_str(&finding_text(&engine.finding(), None, width, style));
    }
    for finding in &diagnosis.extras {
        text.push_str(&finding_text(finding, finding.remedy.as_deref(), width, style));
    }
    text.push('\n');
    text.push_str(&verdict_text(diagnosis, style));
    text
}

impl EngineFinding {
    /// Its line: the languages it runs and where it is.
    fn finding(&self) -> Finding {
        let languages: Vec<_> = self.languages.iter().map(|language| language.as_str()).collect();
        let (state, place) = match (&self.missing, &self.program) {
            (Some(reason), _) => (FindingState::Substituted, reason.clone()),
            (None, Some(program)) => (FindingState::Works, program.display().to_string()),
            (None, None) => (FindingState::Works, "part of belljar".to_owned()),
        };
        let detail = format!("{}: {place}", languages.join(", "));
        Finding { layer: format!("engine {}", self.name), state, detail, remedy: None }
    }
}

fn finding_text(finding: &Finding, remedy: Option<&str>, width: usize, style: TextStyle) -> String {
    let mark = match finding.state {
        FindingState::Works => style.paint(TextRole::Good, "✓"),
        FindingState::Substituted => style.paint(TextRole::Caution, "~"),
        FindingState::Missing => style.paint(TextRole::Bad, "✗"),
    };
    let detail = if finding.detail.is_empty() { "works" } else { &finding.detail };
    let mut lines = wrapped(detail).into_iter();
    let first = lines.next().unwrap_or_default();
    let mut text = format!("  {mark} {:<width$}  {first}\n", finding.layer);
    let remedy = remedy.map(wrapped).unwrap_or_default();
    let remedy = remedy.iter().map(|line| style.paint(TextRole::Accent, line));
    for line in lines.chain(remedy) {
        let _ = writeln!(text, "    {:<width$}  {line}", "");
    }
    text
}

/// Breaks text into lines at spaces.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= TEXT_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn run_text(run: &RunResult, width: usize, style: TextStyle) -> String {
    let (mark, detail) = match &run.error {
        None => {
            let time = milliseconds(run.metrics.startup_ms + run.metrics.execution_ms);
            (style.paint(TextRole::Good, "✓"), format!("1 + 1 = {} in {time}", run.result.get()))
        }
        Some(error) => {
            (style.paint(TextRole::Bad, "✗"), format!("{:?}: {}", error.kind, error.message))
        }
    };
    format!("  {mark} {:<width$}  {detail}\n", "a run")
}

fn verdict_text(diagnosis: &Diagnosis, style: TextStyle) -> String {
    match diagnosis.verdict {
        DoctorVerdict::Full => format!(
            "{}: every layer works; code runs here with full isolation.\n",
            style.paint(TextRole::Good, "full")
        ),
        DoctorVerdict::Refused => format!(
            "{}: Belljar runs no code on this machine, because a layer of the sandbox is missing.\n\
             Fix the lines marked ✗ above, then run `belljar doctor` again.\n",
            style.paint(TextRole::Bad, "refused")
        ),
        DoctorVerdict::ConfigurationInvalid => format!(
            "{}: every layer works, but Belljar cannot use the configuration of this project.\n\
             Correct it as `configuration` above says, then run `belljar doctor` again.\n",
            style.paint(TextRole::Bad, "configuration invalid")
        ),
        DoctorVerdict::StoreUnusable => format!(
            "{}: every layer works, but this project's store cannot be used.\n\
             Follow the advice at `store` above, then run `belljar doctor` again.\n",
            style.paint(TextRole::Bad, "store unusable")
        ),
    }
}

#[cfg(test)]
mod tests;
