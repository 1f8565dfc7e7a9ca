//! Every test, as every kind of host, with every kind of guest.
#![expect(clippy::disallowed_methods, reason = "the suite starts its own roles")]

use std::{
    fs, io,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::OnceLock,
};

use belljar_jail::{CellGrants, Guests, View, ZygotePlan};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    apart, files,
    harness::session::{LIMITS, Result, Setup},
    hostile, network, python, refused,
    skip::skip,
};

/// An unused id: an ordinary user.
const ORDINARY: u32 = 61_998;
const MODES: [(&str, bool, Guests); 4] = [
    ("root_scripts", true, Guests::Script),
    ("user_scripts", false, Guests::Script),
    ("root_programs", true, Guests::Programs),
    ("user_programs", false, Guests::Programs),
];

/// A test; it is told what the guests are.
pub(crate) type Test = fn(Guests) -> Result<()>;

fn tests() -> impl Iterator<Item = &'static (&'static str, Test)> {
    [apart::TESTS, refused::TESTS, hostile::TESTS, files::TESTS, network::TESTS, python::TESTS]
        .into_iter()
        .flatten()
}

/// The full plan, for guests of this kind.
pub(crate) fn setup(guests: Guests) -> Setup {
    let (zygote, plan) = match guests {
        Guests::Script => ("__zygote", ZygotePlan::full()),
        Guests::Programs => ("__programs", ZygotePlan::full().for_programs(view())),
    };
    let zygote = vec![zygote.to_owned()];
    Setup { zygote, plan, limits: LIMITS, grants: CellGrants::default() }
}

/// A program cells may start, that waits for the end of its input.
pub(crate) const PROGRAM: &str = "/usr/bin/cat";

pub(crate) fn view() -> View {
    let mut view = View { trees: vec!["/usr".into()], ..View::default() };
    for path in ["/bin", "/sbin", "/lib", "/lib64"] {
        match fs::read_link(path) {
            Ok(target) => view.links.push((path.into(), target)),
            Err(_) if Path::new(path).is_dir() => view.trees.push(path.into()),
            Err(_) => {}
        }
    }
    view.readable = vec!["/usr/lib".into(), "/usr/lib64".into(), "/lib".into()];
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", PROGRAM];
    view.executable = loaders.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    view
}

/// Runs the suite; the other roles are processes that it starts.
pub(crate) fn run_tests() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (mode, as_root, guests) in MODES {
        for (name, _) in tests() {
            let trial = move || trial(mode, as_root, guests, name);
            trials.push(Trial::test(format!("{mode}::{name}"), trial));
        }
    }
    if arguments.list {
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    let copy = match copy() {
        Ok(copy) => copy,
        Err(error) => {
            eprintln!("no copy for ordinary users: {error}");
            return ExitCode::FAILURE;
        }
    };
    COPY.get_or_init(|| copy.path().join("branch"));
    libtest_mimic::run(&arguments, trials).exit_code()
}

static COPY: OnceLock<PathBuf> = OnceLock::new();

/// A copy of this program that an ordinary user can start, wherever this one lies.
fn copy() -> io::Result<tempfile::TempDir> {
    let directory = tempfile::Builder::new().prefix("belljar-branch-").tempdir_in("/var/tmp")?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    let path = directory.path().join("branch");
    fs::copy("/proc/self/exe", &path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    if is_root() {
        chown(&path, Some(ORDINARY), Some(ORDINARY))?;
    }
    Ok(directory)
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn trial(mode: &str, as_root: bool, guests: Guests, name: &str) -> std::result::Result<(), Failed> {
    if as_root && !is_root() {
        skip(&format!("{mode}::{name} needs root"));
        return Ok(());
    }
    let program = COPY.get().filter(|_| !as_root);
    let mut command = Command::new(program.map_or(Path::new("/proc/self/exe"), |path| path));
    let guests = if guests == Guests::Script { "scripts" } else { "programs" };
    command.args(["__host", guests, name]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    if !as_root && is_root() {
        command.gid(ORDINARY).uid(ORDINARY);
    }
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// The `__host` role: makes one test.
pub(crate) fn host(guests: &str, name: &str) -> ExitCode {
    let guests = if guests == "scripts" { Guests::Script } else { Guests::Programs };
    let Some((_, test)) = tests().find(|(found, _)| *found == name) else {
        return ExitCode::FAILURE;
    };
    match test(guests) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Fails unless the two are the same.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, not {wanted:?}")) }
}
