//! Starts the program under test, as this user or as an ordinary one.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::getuid;

pub(crate) use crate::place::{Outcome, Place, outcome};
use crate::skip::{skip, without_sandbox};

/// The program under test.
pub(crate) const BELLJAR: &str = env!("CARGO_BIN_EXE_belljar");

impl Place {
    /// Runs the program with nothing on its standard input.
    pub(crate) fn belljar(&self, arguments: &[&str]) -> Outcome {
        let output = self.command(BELLJAR).args(arguments).output();
        outcome(output.expect("the program under test starts"))
    }

    /// Runs the program with this on its standard input.
    pub(crate) fn belljar_reading(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
        let mut child = self
            .command(BELLJAR)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program under test starts");
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        // It may refuse its arguments before it reads.
        let _ = stdin.write_all(input.as_ref());
        drop(stdin);
        outcome(child.wait_with_output().expect("the program under test ends"))
    }

    /// A command that starts a program as an ordinary user, which only root can do.
    pub(crate) fn command_as(&self, user: u32, program: &Path) -> Command {
        let id = user.to_string();
        let mut command = self.command("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(program);
        command.env("PATH", "/usr/bin:/bin");
        command
    }

    /// The program under test as an ordinary user, who then owns these paths of the place; without a user,
    /// as whoever runs the tests.
    pub(crate) fn belljar_as(&self, user: Option<u32>, owned: &[&str]) -> Command {
        let Some(user) = user else { return self.command(BELLJAR) };
        let program = self.path().join("belljar");
        if !program.exists() {
            fs::copy(BELLJAR, &program).unwrap();
        }
        // First, because it makes the directory in which the program starts.
        let command = self.command_as(user, &program);
        for path in owned {
            chown(self.path().join(path), Some(user), Some(user)).unwrap();
        }
        command
    }
}

/// Starts a host over HTTP. It listens at the address that is returned.
pub(crate) fn serve_http(mut command: Command) -> (Child, String) {
    let mut host = command
        .args(["serve", "--http", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program under test starts");
    let mut line = String::new();
    BufReader::new(host.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
    (host, address)
}

/// Runs the program in a place of its own.
pub(crate) fn belljar(arguments: &[&str]) -> Outcome {
    Place::new().belljar(arguments)
}

/// The program's output on a terminal until this text is there; then Ctrl-C ends it.
pub(crate) fn until_shown(place: &Place, text: &str, arguments: &[&str]) -> String {
    const UNTIL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/until.py");
    let mut command = place.command("python3");
    command.args([UNTIL, text, BELLJAR]).args(arguments).env("TERM", "xterm");
    outcome(command.output().expect("python3 starts")).stdout
}

/// Whether to skip a test because this machine cannot sandbox. The parent of [`as_ordinary_user`] has
/// checked that for its children.
pub(crate) fn no_sandbox() -> bool {
    !is_ordinary_users_child()
        && without_sandbox(|| {
            let error = belljar(&["run", "-c", "1", "--json"]).json()["error"].clone();
            (error["code"] == "sandbox.unsupported").then(|| error["message"].to_string())
        })
}

/// Whether to skip a test because only root can run it.
pub(crate) fn not_root() -> bool {
    !getuid().is_root() && skip("this test needs root")
}

/// Whether to skip a test because this build has no crash points.
pub(crate) fn no_crash_points() -> bool {
    cfg!(not(debug_assertions)) && skip("only debug builds have crash points")
}

/// Where a child of [`as_ordinary_user`] finds a program that it can start.
const PROGRAM: &str = "BELLJAR_TEST_PROGRAM";

/// The program under test, where this user can reach it.
pub(crate) fn program() -> String {
    std::env::var(PROGRAM).unwrap_or_else(|_| BELLJAR.to_owned())
}

/// Whether [`as_ordinary_user`] started this process.
fn is_ordinary_users_child() -> bool {
    std::env::var_os(PROGRAM).is_some()
}

/// Whether to leave a test to the child of [`as_ordinary_user`]: root starts one for it.
#[expect(clippy::print_stderr, reason = "it is said aloud")]
pub(crate) fn left_to_child() -> bool {
    let is_left = getuid().is_root();
    if is_left {
        eprintln!("LEFT TO THE CHILD, an ordinary user");
    }
    is_left
}

/// Whether to leave a test to the parent of this child.
#[expect(clippy::print_stderr, reason = "it is said aloud")]
pub(crate) fn left_to_parent() -> bool {
    let is_left = is_ordinary_users_child();
    if is_left {
        eprintln!("LEFT TO THE PARENT");
    }
    is_left
}

/// Runs tests of this program again, as a user who has a program to start and a place of their own.
pub(crate) fn as_ordinary_user(tests: &str) {
    let (place, user) = (Place::new(), 12_353);
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (program, suite) = (place.path().join("belljar"), place.path().join("tests"));
    fs::copy(BELLJAR, &program).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &suite).unwrap();
    let own: &Path = &place.path().join("own");
    fs::create_dir(own).unwrap();
    chown(own, Some(user), Some(user)).unwrap();
    let mut command = place.command_as(user, &suite);
    command.args([tests, "--test-threads", "2"]).current_dir("/");
    command.env("TMPDIR", own).env(PROGRAM, &program);
    let ran = outcome(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(ran.status, Some(0), "{}{}", ran.stdout, ran.stderr);
}

/// Runs a test to its end.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test)
}
