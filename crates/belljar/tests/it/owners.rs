//! S3: state that somebody else has planted or could change is refused; one's own is used.
//!
//! One user plants, another one comes along. That takes a root who can act as both.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use belljar_testing::as_root;

use crate::command::{BELLJAR, Outcome, Place, outcome};

const ATTACKER: u32 = 12_351;
const VICTIM: u32 = 12_352;
/// Whoever is let in against expectation serves until it is ended.
const SERVED: &str = "20";

/// A directory that everybody may use, and the program where everybody can start it.
struct SharedDirectory {
    place: Place,
    program: PathBuf,
    directory: PathBuf,
}

impl SharedDirectory {
    /// Only root can make it: it acts as other users.
    fn new() -> Self {
        let place = Place::new();
        open_to(place.path(), 0o755);
        let program = place.path().join("belljar");
        fs::copy(BELLJAR, &program).unwrap();
        let directory = place.path().join("shared");
        fs::create_dir(&directory).unwrap();
        open_to(&directory, 0o1777);
        Self { place, program, directory }
    }

    /// Runs the program there as a user, for as long as `SERVED` says at most.
    fn belljar(&self, user: u32, arguments: &[&str]) -> Outcome {
        outcome(self.command(user, arguments).output().unwrap())
    }

    fn command(&self, user: u32, arguments: &[&str]) -> Command {
        let id = user.to_string();
        let mut command = self.place.command("timeout");
        command.args(["--signal", "INT", SERVED, "setpriv", "--reuid", &id, "--regid", &id]);
        command.arg("--clear-groups").arg(&self.program).args(arguments);
        command.current_dir(&self.directory).env("HOME", "/nonexistent");
        command
    }

    /// Whether a host of a user's is let in: its first line says so.
    fn serves(&self, user: u32) -> bool {
        let mut host = self.command(user, &SERVE).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(host.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let id = rustix::process::Pid::from_child(&host);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        host.wait().unwrap();
        said.contains("listening on")
    }

    /// Writes a file of a user's, with what leads there.
    fn plant(&self, user: u32, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.directory.join(name);
        for above in path.ancestors().skip(1).take_while(|above| **above != self.directory) {
            if !above.exists() {
                fs::create_dir(above).unwrap();
                chown(above, Some(user), Some(user)).unwrap();
            }
        }
        fs::write(&path, text).unwrap();
        chown(&path, Some(user), Some(user)).unwrap();
        open_to(&path, mode);
        path
    }

    fn state(&self) -> PathBuf {
        self.directory.join(".belljar")
    }
}

fn open_to(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

const SERVE: [&str; 3] = ["serve", "--http", "127.0.0.1:0"];
const TOKEN: &str = "ATTACKERKNOWNTOKENATTACKERKNOWNTOKEN";

fn assert_refused(ran: &Outcome, why: &str) {
    assert_eq!(ran.status, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains(why) && !ran.stderr.contains("listening"), "{ran:#?}");
}

/// A token that its planter knows would let them use everything of the host's.
#[as_root]
#[test]
fn s3_a_planted_token_lets_nobody_into_a_host_of_root() {
    let shared = SharedDirectory::new();
    let planted = shared.plant(ATTACKER, ".belljar/token", TOKEN, 0o600);
    let stranger = format!("belongs to user {ATTACKER}");
    assert_refused(&shared.belljar(0, &SERVE), &stranger);
    // The directory is root's by now, the token still is not.
    chown(shared.state(), Some(0), Some(0)).unwrap();
    assert_refused(&shared.belljar(0, &SERVE), &stranger);
    // A link is no better, wherever it leads.
    let own = shared.plant(0, "own-token", TOKEN, 0o600);
    fs::remove_file(&planted).unwrap();
    symlink(&own, &planted).unwrap();
    assert_refused(&shared.belljar(0, &SERVE), "is a link");
    fs::remove_file(&planted).unwrap();
    assert!(shared.serves(0));
}

/// A directory that its planter can write to: the victim's client would send its token anywhere.
#[as_root]
#[test]
fn s3_a_token_is_not_sent_where_somebody_else_says() {
    let shared = SharedDirectory::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let pid = std::process::id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let since = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    let address = format!("{} {pid} {since}\n", listener.local_addr().unwrap());
    let list = ["session", "list"];
    let assert_unheard = || {
        let heard = listener.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(heard, Err(std::io::ErrorKind::WouldBlock));
    };

    shared.plant(ATTACKER, ".belljar/address", &address, 0o644);
    open_to(&shared.state(), 0o777);
    let stranger = format!("belongs to user {ATTACKER}");
    assert_refused(&shared.belljar(VICTIM, &SERVE), &stranger);
    shared.plant(VICTIM, ".belljar/token", TOKEN, 0o600);
    assert_refused(&shared.belljar(VICTIM, &list), &stranger);
    assert_unheard();

    // The directory is the victim's, and others can write to it.
    chown(shared.state(), Some(VICTIM), Some(VICTIM)).unwrap();
    assert_refused(&shared.belljar(VICTIM, &list), "chmod go-w");
    open_to(&shared.state(), 0o755);
    assert_refused(&shared.belljar(VICTIM, &list), &stranger);
    assert_unheard();

    // All of it is the victim's, and whoever listens is not.
    shared.plant(VICTIM, ".belljar/address", &address, 0o600);
    let ran = shared.belljar(VICTIM, &list);
    assert!(ran.stderr.contains("no host runs"), "{ran:#?}");
    assert_unheard();

    // The control: for the user whose process listens, the same files are good.
    for path in [".belljar", ".belljar/address", ".belljar/token"] {
        chown(shared.directory.join(path), Some(0), Some(0)).unwrap();
    }
    let heard = std::thread::spawn(move || {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while std::time::Instant::now() < until {
            if listener.accept().is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    });
    shared.belljar(0, &list);
    assert!(heard.join().unwrap());
}

/// A database that its planter can write to: every approval in it may be forged.
#[as_root]
#[test]
fn s3_a_planted_database_decides_nothing() {
    let shared = SharedDirectory::new();
    shared.plant(VICTIM, ".mcp.json", r#"{"mcpServers": {"s": {"command": "true"}}}"#, 0o644);
    let database = shared.plant(ATTACKER, ".belljar/belljar.db", "", 0o666);
    let stranger = format!("belongs to user {ATTACKER}");
    let commands: [&[&str]; 5] = [
        &["run", "-c", "1"],
        &["approvals", "list"],
        &["tools", "list"],
        &["runs"],
        &["workflow", "list"],
    ];
    for command in commands {
        assert_refused(&shared.belljar(VICTIM, command), &stranger);
    }
    // The directory is the victim's by now; the database is not, or others can write to it.
    chown(shared.state(), Some(VICTIM), Some(VICTIM)).unwrap();
    assert_refused(&shared.belljar(VICTIM, &["approvals", "list"]), &stranger);
    chown(&database, Some(VICTIM), Some(VICTIM)).unwrap();
    assert_refused(&shared.belljar(VICTIM, &["approvals", "list"]), "chmod go-w");
    open_to(&database, 0o600);
    let ran = shared.belljar(VICTIM, &["approvals", "list"]);
    assert_eq!(ran.status, Some(0), "{ran:#?}");
}

/// Configuration that somebody else has planted is passed over, which is told; what needs none runs.
#[as_root]
#[test]
fn s3_a_planted_configuration_is_passed_over_and_told() {
    let shared = SharedDirectory::new();
    let planted = shared.plant(ATTACKER, "belljar.toml", "[limits]\ntimeout = '1 parsec'\n", 0o644);
    let ran = shared.belljar(VICTIM, &["run", "-c", "return 6 * 7", "--json"]);
    assert!(ran.stderr.contains(&format!("belongs to user {ATTACKER}")), "{ran:#?}");
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    // The control: the victim's own is read, and this one makes no sense.
    chown(&planted, Some(VICTIM), Some(VICTIM)).unwrap();
    let ran = shared.belljar(VICTIM, &["run", "-c", "return 6 * 7", "--json"]);
    assert!(ran.stderr.contains("parsec"), "{ran:#?}");
    open_to(&planted, 0o666);
    assert_refused(&shared.belljar(VICTIM, &["run", "-c", "1"]), "chmod go-w");
}

/// Where others could exchange the state between a look and its use, none is used and none is made.
#[as_root]
#[test]
fn s3_state_is_not_kept_where_others_could_exchange_it() {
    let shared = SharedDirectory::new();
    open_to(&shared.directory, 0o777);
    assert_refused(&shared.belljar(VICTIM, &SERVE), "chmod go-w");
    assert!(!shared.state().exists());
    chown(&shared.directory, Some(ATTACKER), Some(ATTACKER)).unwrap();
    open_to(&shared.directory, 0o1777);
    assert_refused(&shared.belljar(VICTIM, &SERVE), &format!("belongs to user {ATTACKER}"));
    assert!(!shared.state().exists());
    // The control: a directory of one's own, which one's own group may write to.
    chown(&shared.directory, Some(VICTIM), Some(VICTIM)).unwrap();
    open_to(&shared.directory, 0o775);
    assert!(shared.serves(VICTIM));
    open_to(&shared.directory, 0o777);
    assert_refused(&shared.belljar(VICTIM, &["runs"]), "chmod go-w");
}
