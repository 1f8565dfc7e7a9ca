//! A small internet: network namespaces with real servers, which `internet/enter.sh` makes and removes.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::getuid;
use serde_json::Value;

use crate::command::{BELLJAR, Outcome, Place, outcome, program};

/// Set inside: the directory of the servers' files.
const DIRECTORY: &str = "BELLJAR_TEST_INTERNET";
/// Set inside: where an ordinary user finds a program that they can start.
const PROGRAM: &str = "BELLJAR_TEST_PROGRAM";
const ORDINARY_USER: u32 = 12_354;

/// The servers that a test can reach.
#[derive(Debug)]
pub(crate) struct Internet {
    directory: PathBuf,
}

/// Runs the body of a test inside; as root first as root and then as an ordinary user. `test` is the
/// whole name of the calling test, which is started again inside.
pub(crate) fn inside(test: &str, body: impl FnOnce(&Internet)) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return body(&Internet { directory: directory.into() });
    }
    enter(test, getuid().as_raw());
    if getuid().is_root() {
        enter(test, ORDINARY_USER);
    }
}

/// Starts a test again, as a user, with servers of its own.
fn enter(test: &str, user: u32) {
    let place = Place::new();
    let (own, program, suite) =
        (place.path().join("own"), place.path().join("belljar"), place.path().join("suite"));
    fs::create_dir(&own).unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::copy(BELLJAR, &program).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &suite).unwrap();
    let here = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/internet/enter.sh"));
    let mut command = if user == getuid().as_raw() {
        place.command(here)
    } else {
        chown(&own, Some(user), Some(user)).unwrap();
        place.command_as(user, here)
    };
    command.arg(&own).arg(tool("python")).arg(&suite).args(["--exact", test, "--nocapture"]);
    command.env("PATH", path()).env("PYTHONDONTWRITEBYTECODE", "1").current_dir("/");
    command.env(DIRECTORY, &own).env(PROGRAM, &program).env("TMPDIR", &own);
    let ran = outcome(command.output().unwrap());
    let all = format!("as user {user}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.status, Some(0), "{all}");
    // A name that matches no test is not an error to the suite.
    assert!(ran.stdout.contains("1 passed"), "{all}");
}

/// A program that `scripts/network-tools` has installed.
fn tool(name: &str) -> String {
    let root = std::env::var("BELLJAR_NETWORK_TOOLS").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/network-tools").to_owned()
    });
    let path = format!("{root}/venv/bin/{name}");
    assert!(Path::new(&path).exists(), "{path} is missing: run scripts/network-tools first");
    path
}

/// The Python with the clients comes first.
fn path() -> String {
    let python = tool("python");
    let directory = Path::new(&python).parent().unwrap().display();
    format!("{directory}:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
}

impl Internet {
    /// Starts the program under test, which trusts the servers' authority beside nothing.
    pub(crate) fn command(&self, place: &Place) -> Command {
        let mut command = place.command(program());
        command.env("PATH", path()).env("SSL_CERT_FILE", self.directory.join("authority.pem"));
        command
    }

    /// The result of code in this language, with these flags.
    pub(crate) fn run(&self, place: &Place, language: &str, code: &str, flags: &[&str]) -> Value {
        let run = ["run", "--json", "-l", language, "-c", code];
        self.belljar(place, &[&run[..], flags].concat()).json()
    }

    /// The outcome of the program under test with these arguments.
    pub(crate) fn belljar(&self, place: &Place, arguments: &[&str]) -> Outcome {
        outcome(self.command(place).args(arguments).output().unwrap())
    }

    /// The certificate of the servers' authority, as PEM.
    pub(crate) fn authority(&self) -> String {
        fs::read_to_string(self.directory.join("authority.pem")).unwrap()
    }

    /// Lets `/released` be there.
    pub(crate) fn release(&self) {
        fs::write(self.directory.join("released"), "").unwrap();
    }

    /// The requests that servers have received: method, URL and `Authorization`, or `-`.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.lines("requests")
    }

    /// The names that somebody has asked the server of names for.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lines("names")
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join(name)).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}
