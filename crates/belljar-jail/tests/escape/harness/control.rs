//! Positive controls: the same attempt outside any cell, where it has to succeed.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    process::{ChildStdin, Stdio},
    sync::OnceLock,
};

use super::{
    attempt::{self, Attempt, Setting},
    bait::{self, Bait},
    host,
    outcome::Outcome,
    probe::{self, Report},
    raw::{self, call},
    spawn::{self, Who},
};

/// Makes an attempt on files outside, on files of its own: one that changed them has succeeded.
pub(crate) fn run_on_files(attempt: &Attempt) -> Result<Outcome, String> {
    let (bait, laid) = Bait::lay(spawn::ordinary()).map_err(|error| error.to_string())?;
    let outcome = run(attempt, &bait)?;
    let damage = laid.home.damage().map_err(|error| error.to_string())?;
    Ok(damage.map_or(outcome, Outcome::succeeded))
}

/// Makes the attempt outside and says how it went.
pub(crate) fn run(attempt: &Attempt, bait: &Bait) -> Result<Outcome, String> {
    let who = match attempt.control {
        Setting::User | Setting::Namespaces => spawn::ordinary(),
        Setting::Root if spawn::is_root() => Who::Same,
        Setting::Root => return Err("needs root".to_owned()),
        Setting::Cell => return honest_use(),
    };
    let neighbour = match attempt.plant {
        Some(_) => Some(start_neighbour(who, attempt, bait)?),
        None => None,
    };
    let (mut answer, _) = start(who, "look", attempt, bait)?;
    let report = read_report(&mut answer);
    drop(neighbour);
    report.map(|report| report.outcome)
}

/// Attempts against the host's end of the socket: the route works, when it is used honestly.
fn honest_use() -> Result<Outcome, String> {
    static OUTCOME: OnceLock<Result<Outcome, String>> = OnceLock::new();
    let run = || {
        let verdicts = host::run(Who::Same, &host::Spec::full(["honest_frame"]))?;
        let verdict = verdicts.first().ok_or("no verdict")?;
        verdict.outcome().cloned().ok_or_else(|| verdict.to_string())
    };
    OUTCOME.get_or_init(run).clone()
}

fn start_neighbour(who: Who, attempt: &Attempt, bait: &Bait) -> Result<Option<ChildStdin>, String> {
    let (mut answer, stdin) = start(who, "plant", attempt, bait)?;
    let planted = read_report(&mut answer)?;
    if planted.outcome.has_succeeded() {
        Ok(stdin)
    } else {
        Err(format!("could not plant: {}", planted.outcome))
    }
}

type ZygoteReply = BufReader<std::process::ChildStdout>;

/// Plants get an input whose end tells them to go; both get the same null device as error stream,
/// as cells of one zygote do.
fn start(
    who: Who,
    role: &str,
    attempt: &Attempt,
    bait: &Bait,
) -> Result<(ZygoteReply, Option<ChildStdin>), String> {
    let setting = format!("{:?}", attempt.control);
    let plain = Some(bait.undisguised());
    let bait = Bait { plain, ..bait.clone() };
    let text = serde_json::to_string(&bait).map_err(|error| error.to_string())?;
    let stdin = if role == "plant" { Stdio::piped() } else { Stdio::null() };
    let shared = shared_null().map_err(|error| error.to_string())?;
    let mut child = spawn::this_program(who, &["__control", role, attempt.name, &setting, &text])
        .and_then(|mut command| {
            command.env(bait::VARIABLE, "in the environment").stdin(stdin);
            command.stdout(Stdio::piped()).stderr(shared).spawn()
        })
        .map_err(|error| format!("could not start: {error}"))?;
    let answer = child.stdout.take().ok_or("no output")?;
    let stdin = child.stdin.take();
    std::thread::spawn(move || child.wait());
    Ok((BufReader::new(answer), stdin))
}

/// One open null device for every control, like the one cells of a zygote inherit.
fn shared_null() -> io::Result<Stdio> {
    static NULL: OnceLock<Option<fs::File>> = OnceLock::new();
    let open = || fs::OpenOptions::new().read(true).write(true).open("/dev/null").ok();
    let null = NULL.get_or_init(open).as_ref().ok_or(io::ErrorKind::NotFound)?;
    Ok(null.try_clone()?.into())
}

fn read_report(answer: &mut ZygoteReply) -> Result<Report, String> {
    let mut line = String::new();
    answer.read_line(&mut line).map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|_| "ended without a report".to_owned())
}

/// The role that makes one attempt outside of a cell, and prints its outcome.
pub(crate) fn main(role: &str, name: &str, setting: &str, bait: &str) -> io::Result<()> {
    let attempt = attempt::find(name).ok_or(io::ErrorKind::NotFound)?;
    let bait: Bait = serde_json::from_str(bait)?;
    let _leaked = bait::leak_directory(&bait)?;
    if setting == "Namespaces" {
        enter_namespaces()?;
    }
    let report =
        if role == "plant" { probe::plant(attempt, &bait) } else { probe::attempt(attempt, &bait) };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &report)?;
    out.write_all(b"\n")?;
    out.flush()?;
    if role == "plant" {
        io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    }
    Ok(())
}

/// Plain namespaces with every capability over them; returns as their pid 1.
fn enter_namespaces() -> io::Result<()> {
    let ids = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    call!(SYS_unshare, flags).map_err(io::Error::from_raw_os_error)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {} 1", ids.0))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", ids.1))?;
    if let Some(pid) = raw::fork().map_err(io::Error::from_raw_os_error)? {
        let _ = call!(SYS_wait4, pid, 0, 0, 0);
        raw::end_now(0);
    }
    let private = libc::MS_PRIVATE | libc::MS_REC;
    call!(SYS_mount, c"none", c"/", 0, private, 0).map_err(io::Error::from_raw_os_error)?;
    call!(SYS_mount, c"proc", c"/proc", c"proc", 0, 0).map_err(io::Error::from_raw_os_error)?;
    Ok(())
}
