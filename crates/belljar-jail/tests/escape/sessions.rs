//! Every attempt once more, inside a branch of a session's cell.
//!
//! The host here is a small one: it watches wall time, CPU and memory as the real one does, and
//! ends the cell. Each attempt is made in the copy of a guest that was copied just before.

use std::{
    fs, io,
    io::Write,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use belljar_contract::Limits;
use belljar_jail::{
    CellGrants, CellLimits, GrantedTree, GuestEnd, Guests, NetworkAccess, TreeAccess, ZygotePlan,
    kill_by_pidfd,
    sample::{BranchProcesses, CellProcesses, CpuLedger, kernel_bytes},
    session::guest_end,
};
use libtest_mimic::{Failed, Trial};
use serde::{Deserialize, Serialize};

use crate::{
    harness::{
        attempt::{self, Attempt, Ending, Judge, MECHANISMS},
        bait::{self, Bait},
        home::{MINE, ONE, READ, WORK, WRITE},
        host,
        outcome::Outcome,
        probe::Report,
        session::{Branch, Cell, Setup, ends_within},
        software,
        spawn::{self, Who},
    },
    modes, network, programs,
};

/// Longer than any attempt needs that is not meant to run into a limit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Guests a cell has here: the one the attempt is made in, and the one it was copied from.
const BRANCHES: u64 = 2;

/// The user of the host, the kind of guests, and the network of their cells.
#[derive(Debug, Clone, Copy)]
struct Mode {
    name: &'static str,
    as_root: bool,
    guests: Guests,
    network: NetworkAccess,
}

const fn mode(name: &'static str, as_root: bool, guests: Guests) -> Mode {
    Mode { name, as_root, guests, network: NetworkAccess::None }
}

/// Cells of programs that have a proxy.
const fn with_proxy(name: &'static str, as_root: bool) -> Mode {
    Mode { network: NetworkAccess::Proxy, ..mode(name, as_root, Guests::Programs) }
}

const MODES: [Mode; 6] = [
    mode("session_root", true, Guests::Script),
    mode("session_user", false, Guests::Script),
    mode("session_programs_root", true, Guests::Programs),
    mode("session_programs_user", false, Guests::Programs),
    with_proxy("session_proxy_root", true),
    with_proxy("session_proxy_user", false),
];

/// The task of a host.
#[derive(Debug, Serialize, Deserialize)]
struct Spec {
    guests: Guests,
    network: NetworkAccess,
    privileged: Option<std::path::PathBuf>,
    attempts: Vec<String>,
}

/// How an attempt ended.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    name: String,
    report: Option<Report>,
    error: Option<String>,
    /// The signal that ended the guest, if one did.
    signal: Option<i32>,
    damage: Option<String>,
}

/// One trial per mode and mechanism.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for mode in MODES {
        let mut tables = vec![MECHANISMS];
        if mode.guests == Guests::Programs {
            tables.extend([programs::MECHANISMS, programs::GRANTED]);
        }
        if mode.network == NetworkAccess::Proxy {
            tables.push(network::WITH_PROXY);
        }
        for (mechanism, attempts) in tables.into_iter().flatten() {
            let trial = move || inside(mode, attempts);
            trials.push(Trial::test(format!("{}::{mechanism}", mode.name), trial));
        }
    }
    trials
}

fn inside(mode: Mode, attempts: &'static [Attempt]) -> Result<(), Failed> {
    let who = match (mode.as_root, spawn::is_root()) {
        (true, true) => Who::Same,
        (false, _) => spawn::ordinary(),
        (true, false) => return modes::needs_root::<()>(mode.name).map(drop),
    };
    let names = attempts.iter().map(|attempt| attempt.name.to_owned()).collect();
    let Mode { guests, network, .. } = mode;
    let spec = Spec { guests, network, privileged: spawn::privileged(), attempts: names };
    let verdicts: Vec<Verdict> = host::verdicts_of("__session_host", who, &spec, attempts.len())?;
    let checked = attempts.iter().zip(&verdicts);
    let failures = checked.filter_map(|(attempt, verdict)| verdict.check(attempt, mode).err());
    modes::report(failures.collect())
}

impl Verdict {
    fn check(&self, attempt: &Attempt, mode: Mode) -> Result<(), String> {
        let told = |what: &str| Err(format!("{}: {what}{self:?}", attempt.name));
        if self.damage.is_some() {
            return told("");
        }
        let outcome = self.report.as_ref().map(|report| &report.outcome);
        if attempt.granted == Some(Judge::Files) {
            return if outcome.is_some() { Ok(()) } else { told("") };
        }
        let is_harmless = attempt.harmless_in_sessions.is_some()
            || mode.guests == Guests::Programs && attempt.harmless_for_programs.is_some()
            || mode.network == NetworkAccess::Proxy && attempt.harmless_with_proxy.is_some();
        if is_harmless && outcome.is_some_and(Outcome::has_succeeded) {
            return Ok(());
        }
        let ended = attempt.ends.iter().any(|ending| match ending {
            Ending::Blocked => self.error.is_none() && outcome.is_some_and(Outcome::is_blocked),
            Ending::Killed(signal) => self.signal == Some(*signal),
            Ending::Error(_) => self.error.is_some(),
        });
        if ended { Ok(()) } else { told("") }
    }
}

/// The role of a host with one session, which makes the attempts of a spec.
pub(crate) fn main(spec: &str) -> io::Result<()> {
    let spec: Spec = serde_json::from_str(spec)?;
    spawn::privileged_is_at(spec.privileged.clone());
    let (bait, mut laid) = Bait::lay(Who::Same)?;
    let _leaked = bait::leak_directory(&bait)?;
    for name in &spec.attempts {
        let attempt = attempt::find(name).ok_or(io::ErrorKind::NotFound)?;
        let mut verdict = make(&spec, attempt, &bait);
        verdict.damage = laid.home.damage()?;
        laid.home.restore(&bait.marker)?;
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &verdict)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

fn make(spec: &Spec, attempt: &Attempt, bait: &Bait) -> Verdict {
    let mut verdict = Verdict {
        name: attempt.name.to_owned(),
        report: None,
        error: None,
        signal: None,
        damage: None,
    };
    match try_make(spec, attempt, bait, &mut verdict.signal) {
        Ok(report) => verdict.report = Some(report),
        Err(error) => verdict.error = Some(error),
    }
    verdict
}

fn try_make(
    spec: &Spec,
    attempt: &Attempt,
    bait: &Bait,
    signal: &mut Option<i32>,
) -> Result<Report, String> {
    let mut limits = Limits::DEFAULT;
    (attempt.limits)(&mut limits);
    let setup = setup(spec, attempt, bait, &limits).map_err(|error| error.to_string())?;
    let (mut cell, mut first) = Cell::start(&setup)?;
    let mut branch = cell.branch(&mut first)?;
    let context = serde_json::to_vec(&bait.for_cell()).map_err(|error| error.to_string())?;
    let _neighbour = match attempt.plant {
        Some(_) => Some(plant(&cell, &setup, attempt, context.clone())?),
        None => None,
    };
    let watched = watch(&cell, &branch, spec.guests, &limits).map_err(|error| error.to_string())?;
    let said = branch.run_with(attempt.name, context);
    drop(watched);
    let said = said.inspect_err(|_| *signal = end_of(&branch))?;
    serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))
}

/// A branch of another session's cell, of the same zygote, that has planted something.
fn plant(
    cell: &Cell,
    setup: &Setup,
    attempt: &Attempt,
    context: Vec<u8>,
) -> Result<(Cell, [Branch; 2]), String> {
    let (mut cell, mut first) = cell.beside(setup)?;
    let mut branch = cell.branch(&mut first)?;
    let said = branch.run_up_to_print(&format!("plant {}", attempt.name), context)?;
    let planted: Report = serde_json::from_str(&said).map_err(|error| error.to_string())?;
    if planted.outcome.is_blocked() || planted.outcome.has_succeeded() {
        return Ok((cell, [first, branch]));
    }
    Err(format!("could not plant: {}", planted.outcome))
}

/// The signal that ended a branch, if it was not its host.
fn end_of(branch: &Branch) -> Option<i32> {
    if !ends_within(&branch.pidfd, Duration::from_millis(200)) {
        return None;
    }
    match guest_end(&branch.pidfd).ok()?? {
        GuestEnd::Killed(signal) => Some(signal),
        GuestEnd::Exited(_) => None,
    }
}

/// Ends the cell when it uses more than it may, for as long as what this gives is kept.
fn watch(cell: &Cell, branch: &Branch, guests: Guests, limits: &Limits) -> io::Result<Sender<()>> {
    let keeper: OwnedFd = cell.keeper_pidfd.try_clone()?;
    let (whole, own) =
        (CellProcesses::find(&keeper, guests)?, BranchProcesses::of(&branch.pidfd, guests)?);
    let (limits, started) = (*limits, Instant::now());
    let (enough, told): (Sender<()>, Receiver<()>) = channel();
    thread::spawn(move || {
        let (mut ledger, mut looks) = (CpuLedger::default(), 0_u32);
        while told.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            // Its own use, and that of all guests: memory they share counts for each.
            let (usage, sample) = (own.sample(&mut ledger).usage, whole.whole_sample());
            let of_all = sample.usage;
            looks += 1;
            // Now and then only, as hosts do: it is slow.
            let for_them =
                if looks.is_multiple_of(20) { kernel_bytes(&sample.processes) } else { 0 };
            let is_over = usage.memory_bytes.max(for_them) > limits.memory
                || sample.has_unmeasured
                || of_all.memory_bytes > limits.memory.saturating_mul(BRANCHES)
                || of_all.cpu > limits.cpu
                || started.elapsed() > limits.timeout.min(PATIENCE);
            if is_over {
                let _ = kill_by_pidfd(&keeper);
                return;
            }
        }
    });
    Ok(enough)
}

fn setup(spec: &Spec, attempt: &Attempt, bait: &Bait, limits: &Limits) -> io::Result<Setup> {
    let (zygote, plan) = match spec.guests {
        Guests::Script => ("__zygote", ZygotePlan::full()),
        Guests::Programs => ("__programs", ZygotePlan::full().for_programs(software::view(bait))),
    };
    let grants = match attempt.granted {
        Some(_) => grants(&bait.home)?,
        None => CellGrants::default(),
    };
    let limits = CellLimits {
        memory_bytes: limits.memory,
        cpu_seconds: limits.cpu.as_secs().saturating_add(2),
        processes: limits.processes.into(),
        open_files: limits.open_files.into(),
        disk_bytes: limits.disk,
        inodes: limits.inodes,
    };
    let plan = plan.with_network(spec.network);
    Ok(Setup { zygote: vec![zygote.to_owned()], plan, limits, grants })
}

/// The grants of [`crate::harness::home::grants`], in the form that a cell gets.
fn grants(home: &Path) -> io::Result<CellGrants> {
    let granted = |name: &str, access| {
        let path = home.join(name);
        let found = fs::metadata(&path)?;
        let (is_directory, identity) = (found.is_dir(), (found.dev(), found.ino()));
        Ok(GrantedTree {
            path,
            access,
            is_directory,
            identity,
            covered: Vec::new(),
            fixed: Vec::new(),
        })
    };
    let nested = format!("{WRITE}/sub");
    let all = [
        (READ, TreeAccess::Read),
        (ONE, TreeAccess::Read),
        (WRITE, TreeAccess::Write),
        (&nested, TreeAccess::Read),
        (MINE, TreeAccess::Write),
        (WORK, TreeAccess::Workspace),
    ];
    let trees = all.into_iter().map(|(name, access)| granted(name, access));
    Ok(CellGrants { trees: trees.collect::<io::Result<_>>()?, ..CellGrants::default() })
}
