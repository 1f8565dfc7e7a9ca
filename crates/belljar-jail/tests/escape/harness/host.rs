//! The `__host` role: a host that runs attempts in cells, and what the test runner makes of it.

use std::{io, io::Write, path::PathBuf, sync::Arc};

use belljar_contract::{EngineName, ErrorCode, Grants, Limits, RunRequest, RunResult, Stream};
use belljar_jail::{Guests, NetworkAccess};
use belljar_runtime::{Host, HostConfig, Listener, RunOptions, ZygotePlan, ZygoteProgram};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;
use tokio::sync::{oneshot, watch};

use crate::frames;

use super::{
    attempt::{self, Attempt, Ending, Judge},
    bait::{self, Bait},
    home,
    outcome::Outcome,
    probe::Report,
    raw::call,
    software,
    spawn::{self, Who},
};

/// The task of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) plan: ZygotePlan,
    /// The kind of guests; the host makes the view of programs.
    pub(crate) guests: Guests,
    pub(crate) privileged: Option<PathBuf>,
    /// Files to grant, for a host that lays no bait.
    pub(crate) home: Option<PathBuf>,
    /// In a mount namespace whose mounts are shared, as those of most machines are.
    pub(crate) mounts_are_shared: bool,
    pub(crate) pool_size: usize,
    /// How this program becomes a zygote.
    pub(crate) zygote: Vec<String>,
    /// The attempts, each in a cell of its own.
    pub(crate) attempts: Vec<String>,
}

impl Spec {
    /// A host with the full plan.
    pub(crate) fn full(attempts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            plan: ZygotePlan::full(),
            guests: Guests::Script,
            privileged: spawn::privileged(),
            home: None,
            mounts_are_shared: false,
            pool_size: 0,
            zygote: vec!["__zygote".to_owned()],
            attempts: attempts.into_iter().map(Into::into).collect(),
        }
    }

    /// The same for guests that are programs.
    pub(crate) fn of_programs(attempts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let zygote = vec!["__programs".to_owned()];
        Self { guests: Guests::Programs, zygote, ..Self::full(attempts) }
    }
}

/// How one run ended, as the host saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) name: String,
    pub(crate) report: Option<Report>,
    pub(crate) error: Option<Failure>,
    pub(crate) tier: String,
    /// The changed files of the host that had to stay as they were.
    #[serde(default)]
    pub(crate) damage: Option<String>,
}

/// Why a run gave no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The error's type, as results spell it.
    pub(crate) kind: String,
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Verdict {
    fn of(name: &str, result: &RunResult) -> Self {
        let error = result.error.as_ref().map(|error| Failure {
            kind: format!("{:?}", error.kind),
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
        });
        let report = serde_json::from_str(result.result.get()).ok();
        let tier = result.isolation.tier.to_string();
        Self { name: name.to_owned(), report, error, tier, damage: None }
    }

    /// Nothing could be started at all.
    fn not_started(name: &str, error: &belljar_runtime::LaunchError) -> Self {
        let failure = Failure {
            kind: format!("{:?}", error.code().kind()),
            code: error.code().as_str().to_owned(),
            message: error.to_string(),
        };
        let (name, error, tier) = (name.to_owned(), Some(failure), "refused".to_owned());
        Self { name, report: None, error, tier, damage: None }
    }

    /// The report of the probe, if it made one.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.report.as_ref().map(|report| &report.outcome)
    }

    /// Whether this is one of the ways the attempt is allowed to end.
    pub(crate) fn check(
        &self,
        attempt: &Attempt,
        guests: Guests,
        network: NetworkAccess,
    ) -> Result<(), String> {
        if let Some(damage) = &self.damage {
            return Err(format!("{}: {damage}", attempt.name));
        }
        if attempt.granted == Some(Judge::Files) {
            let reported = self.report.is_some() && self.error.is_none();
            return if reported { Ok(()) } else { Err(format!("{}: {self}", attempt.name)) };
        }
        let is_harmless = guests == Guests::Programs && attempt.harmless_for_programs.is_some()
            || network == NetworkAccess::Proxy && attempt.harmless_with_proxy.is_some();
        if is_harmless {
            let succeeded = self.outcome().is_some_and(Outcome::has_succeeded);
            let stale = || format!("{}: marked as harmless, yet {self}", attempt.name);
            return if succeeded { Ok(()) } else { Err(stale()) };
        }
        let ended = attempt.ends.iter().any(|ending| match (ending, &self.error) {
            (Ending::Blocked, None) => self.outcome().is_some_and(Outcome::is_blocked),
            (Ending::Killed(signal), Some(error)) => {
                error.code == "sandbox.crashed"
                    && error.message.contains(&format!("(signal {signal})"))
            }
            (Ending::Error(code), Some(error)) => error.code == code.as_str(),
            (Ending::Blocked, Some(_)) | (Ending::Killed(_) | Ending::Error(_), None) => false,
        });
        if ended { Ok(()) } else { Err(format!("{}: {self}", attempt.name)) }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.error, self.outcome()) {
            (Some(Failure { code, message, .. }), _) => write!(out, "{code}: {message}"),
            (None, Some(outcome)) => write!(out, "{outcome}"),
            (None, None) => write!(out, "no report"),
        }
    }
}

/// Starts a host as somebody and collects its verdicts.
pub(crate) fn run(who: Who, spec: &Spec) -> Result<Vec<Verdict>, String> {
    verdicts_of("__host", who, spec, spec.attempts.len())
}

/// Starts this program in a role of a host and collects the verdicts that it prints, one for each attempt.
pub(crate) fn verdicts_of<V: DeserializeOwned>(
    role: &str,
    who: Who,
    spec: &impl Serialize,
    attempts: usize,
) -> Result<Vec<V>, String> {
    let text = serde_json::to_string(spec).map_err(|error| error.to_string())?;
    let output = spawn::this_program(who, &[role, &text])
        .and_then(|mut command| {
            let command = command.env(bait::VARIABLE, "in the environment");
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.output()
        })
        .map_err(|error| format!("could not start a host: {error}"))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let verdicts: Vec<V> =
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if verdicts.len() == attempts {
        return Ok(verdicts);
    }
    let (got, last) = (verdicts.len(), lines.lines().last().unwrap_or("nothing"));
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{got} of {attempts} verdicts; printed last: {last}; {}: {errors}", output.status))
}

/// The role of a host that makes the attempts of a spec in its cells.
pub(crate) fn main(spec: &str) -> io::Result<()> {
    let spec: Spec = serde_json::from_str(spec)?;
    spawn::privileged_is_at(spec.privileged.clone());
    // A host that may be killed lays no bait, which would outlive it.
    let needs_bait = |name: &String| !frames::HONEST.iter().any(|attempt| attempt.name == name);
    let (bait, mut laid, _leaked) = if spec.attempts.iter().any(needs_bait) {
        let (bait, laid) = Bait::lay(Who::Same)?;
        let leaked = bait::leak_directory(&bait)?;
        (bait, Some(laid), Some(leaked))
    } else {
        let home = spec.home.clone().unwrap_or_default();
        (Bait { home, ..Bait::nothing() }, None, None)
    };
    if spec.mounts_are_shared {
        share_mounts()?;
    }
    runtime()?.block_on(async {
        let host = match Host::start(config(&spec, &bait)).await {
            Ok(host) => host,
            Err(error) => {
                let names = spec.attempts.iter();
                return names.map(|name| Verdict::not_started(name, &error)).try_for_each(print);
            }
        };
        for name in &spec.attempts {
            let mut verdict = make(&host, name, &bait).await;
            if let Some(laid) = laid.as_mut() {
                verdict.damage = laid.home.damage()?;
                laid.home.restore(&bait.marker)?;
            }
            print(verdict)?;
        }
        host.shutdown().await;
        Ok(())
    })
}

/// Enters a mount namespace in which whatever is mounted shows wherever it is copied to.
fn share_mounts() -> io::Result<()> {
    let failed = io::Error::from_raw_os_error;
    call!(SYS_unshare, libc::CLONE_NEWNS).map_err(failed)?;
    let shared = libc::MS_SHARED | libc::MS_REC;
    call!(SYS_mount, c"none", c"/", 0, shared, 0).map(drop).map_err(failed)
}

/// The runtime hosts of this suite use.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// How a host of this suite is set up.
pub(crate) fn config(spec: &Spec, bait: &Bait) -> HostConfig {
    let zygote = ZygoteProgram { path: "/proc/self/exe".into(), arguments: spec.zygote.clone() };
    let plan = match spec.guests {
        Guests::Script => spec.plan.clone(),
        Guests::Programs => spec.plan.clone().for_programs(software::view(bait)),
    };
    let pool_size = spec.pool_size;
    let (engines, ready) = (Arc::new(zygote), vec![EngineName::QuickJs]);
    HostConfig {
        engines,
        ready,
        plan,
        pool_size,
        maximum: Limits::MAXIMUM,
        protected: Vec::new(),
        reserved_names: Vec::new(),
    }
}

fn print(verdict: Verdict) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &verdict)?;
    out.write_all(b"\n")?;
    out.flush()
}

async fn make(host: &Host, name: &str, bait: &Bait) -> Verdict {
    match attempt::find(name) {
        Some(attempt) if attempt.plant.is_some() => beside_a_neighbour(host, attempt, bait).await,
        attempt => {
            let limits = attempt.map_or(Limits::DEFAULT, limits_of);
            Verdict::of(name, &host.run(request(name, bait, limits)).await)
        }
    }
}

/// Tells when a neighbour has said that it planted something.
#[derive(Debug)]
struct PlantListener(watch::Sender<bool>);

impl Listener for PlantListener {
    fn printed(&self, _: Stream, _: &[u8]) {
        self.0.send_replace(true);
    }
}

/// Two cells at once: the look begins once the neighbour has planted, and it stays meanwhile.
async fn beside_a_neighbour(host: &Host, attempt: &Attempt, bait: &Bait) -> Verdict {
    let (enough, stop) = oneshot::channel::<()>();
    let (planted, mut is_planted) = watch::channel(false);
    let neighbour = tokio::spawn({
        let host = host.clone();
        let planting = request(&format!("plant {}", attempt.name), bait, limits_of(attempt));
        let listener: Arc<dyn Listener> = Arc::new(PlantListener(planted));
        let id = "run_neighbour".to_owned();
        let options =
            RunOptions { id: Some(id.into()), listener: Some(listener), ..RunOptions::default() };
        async move { host.run_with(planting, options, async { drop(stop.await) }).await }
    });
    // An error is the end of the neighbour, which is told below.
    let _ = is_planted.wait_for(|planted| *planted).await;
    let look = host.run(request(attempt.name, bait, limits_of(attempt))).await;
    drop(enough);
    let mut verdict = Verdict::of(attempt.name, &look);
    let told = |outcome| Some(Report { outcome });
    let neighbour = match neighbour.await {
        Ok(neighbour) => neighbour,
        Err(error) => {
            verdict.report = told(Outcome::inconclusive(error.to_string()));
            return verdict;
        }
    };
    if let Some(error) = neighbour.error.filter(|error| error.code != ErrorCode::RunAborted) {
        let message = format!("the neighbour ended: {}", error.message);
        verdict.report = told(Outcome::succeeded(message));
        return verdict;
    }
    match serde_json::from_str::<Report>(&neighbour.stdout) {
        Err(error) => {
            let message = format!("the neighbour planted nothing: {error}");
            verdict.report = told(Outcome::inconclusive(message));
        }
        Ok(planted) if !planted.outcome.has_succeeded() => verdict.report = Some(planted),
        Ok(_) => {}
    }
    verdict
}

fn limits_of(attempt: &Attempt) -> Limits {
    let mut limits = Limits::DEFAULT;
    (attempt.limits)(&mut limits);
    limits
}

/// A run of the probe.
pub(crate) fn request(code: &str, bait: &Bait, limits: Limits) -> RunRequest {
    let context = to_raw_value(&bait.for_cell()).ok();
    let name = code.strip_prefix("plant ").unwrap_or(code);
    let is_granted = attempt::find(name).is_some_and(|attempt| attempt.granted.is_some());
    let (grants, workspace) =
        if is_granted { home::grants(&bait.home) } else { (Grants::default(), None) };
    RunRequest { context, limits, grants, workspace, ..RunRequest::typescript(code) }
}
