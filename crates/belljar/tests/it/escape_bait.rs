//! The targets of hostile code: a secret file, a secret variable, a listener, a directory to
//! write to, an inherited descriptor; and how it is told from outside whether it got there.
//!
//! Each payload has a control: the same code, run by the plain interpreter outside, does get there.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{TcpListener, UdpSocket},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::command::{BELLJAR, Place};

/// The aim of a payload. Outside it has to get there, where that can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The text of the secret file, of the variable or behind the inherited descriptor.
    Secrets,
    /// A change in the directory.
    Files,
    /// A connection or datagram.
    Network,
    /// To say this, which nothing else does.
    Saying(&'static str),
    /// A process that is there afterwards.
    Process,
    /// Only to do harm, which is not tried outside.
    Harm,
}

/// A piece of hostile code. `{…}` stands for a path or a number of the bait.
pub(crate) struct Payload {
    pub(crate) name: &'static str,
    pub(crate) aim: Aim,
    pub(crate) code: String,
    pub(crate) flags: &'static [&'static str],
}

pub(crate) fn payload(name: &'static str, aim: Aim, code: impl Into<String>) -> Payload {
    Payload { name, aim, code: code.into(), flags: &[] }
}

/// Everything there is to reach.
pub(crate) struct Bait {
    place: Place,
    tcp: TcpListener,
    udp: UdpSocket,
    secret: String,
    variable: String,
    /// An argument no other process has.
    pub(crate) mark: String,
    before: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl Bait {
    pub(crate) fn lay() -> Self {
        let place = Place::new();
        let unique = format!("{}-{:?}", std::process::id(), Instant::now());
        let unique: String = unique.chars().filter(char::is_ascii_digit).collect();
        let secret = format!("secret-{unique}");
        place.file("home/secret", &secret);
        place.file("home/tree/file", "kept");
        place.file("home/granted/file", "kept");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        // Whatever is left of a run becomes a child of this process.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let mut bait = Self {
            place,
            tcp,
            udp,
            secret,
            variable: format!("variable-{unique}"),
            mark: format!("31{}", &unique[unique.len() - 7..]),
            before: BTreeMap::new(),
        };
        bait.before = bait.files();
        bait
    }

    /// The code with everything filled in.
    fn fill(&self, code: &str) -> String {
        let home = self.home().display().to_string();
        let port = |address: io::Result<std::net::SocketAddr>| address.unwrap().port().to_string();
        code.replace("{home}", &home)
            .replace("{tcp}", &port(self.tcp.local_addr()))
            .replace("{udp}", &port(self.udp.local_addr()))
            .replace("{mark}", &self.mark)
    }

    fn home(&self) -> PathBuf {
        self.place.path().join("home")
    }

    /// Runs something with the secrets in its environment and behind a descriptor it inherits.
    fn run(&self, program: &[&str]) -> Output {
        let secret = self.home().join("secret").display().to_string();
        let inherit = "exec 9<\"$0\"; exec \"$@\"";
        self.place
            .command("/bin/sh")
            .args(["-c", inherit, &secret])
            .args(program)
            .env("BELLJAR_BAIT", &self.variable)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .output()
            .unwrap()
    }

    fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.home()];
        while let Some(path) = pending.pop() {
            let seen = fs::symlink_metadata(&path).unwrap();
            let content = if seen.is_dir() {
                pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            } else {
                fs::read(&path).unwrap_or_default()
            };
            found.insert(path, (seen.mode(), content));
        }
        found
    }

    /// Which of the aims were reached, and everything back in its place.
    fn reached(&mut self, said: &str, aim: Aim) -> Vec<Aim> {
        let mut reached = Vec::new();
        if said.contains(&self.secret) || said.contains(&self.variable) {
            reached.push(Aim::Secrets);
        }
        let changed = self.files().into_iter().any(|(path, entry)| {
            let granted = path.starts_with(self.home().join("granted"));
            let plain = entry.0 & 0o6000 == 0 && entry.0 & 0o170_000 != 0o020_000;
            self.before.get(&path) != Some(&entry) && !(granted && plain)
        });
        if changed || self.before.keys().any(|path| !path.exists()) {
            reached.push(Aim::Files);
            self.restore();
        }
        while self.tcp.accept().is_ok() || self.udp.recv(&mut [0; 64]).is_ok() {
            reached.push(Aim::Network);
        }
        if let Aim::Saying(text) = aim
            && said.contains(text)
        {
            reached.push(aim);
        }
        if !self.nothing_is_left() {
            reached.push(Aim::Process);
        }
        reached
    }

    fn restore(&mut self) {
        for name in ["tree", "granted"] {
            let _ = fs::remove_dir_all(self.home().join(name));
            self.place.file(&format!("home/{name}/file"), "kept");
        }
        for path in self.files().into_keys().filter(|path| !self.before.contains_key(path)) {
            let _ = fs::remove_file(path);
        }
        let open = fs::Permissions::from_mode(0o644);
        fs::set_permissions(self.home().join("tree/file"), open).unwrap();
        self.before = self.files();
    }

    /// Whether every process of a run has ended, a moment after it.
    fn nothing_is_left(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            let left = children();
            if left.is_empty() {
                return true;
            }
            if Instant::now() > deadline {
                // Those are this process's own children now.
                left.iter().for_each(|pid| end(*pid));
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// This process's children that run; those that have ended are reaped.
fn children() -> Vec<i32> {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    found
}

fn end(pid: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// In a cell none of the payloads reaches anything, and each ends as a run does: the results.
pub(crate) fn contained(language: &str, payloads: &[Payload]) -> Vec<Value> {
    let mut bait = Bait::lay();
    let (mut failures, mut results) = (Vec::new(), Vec::new());
    for payload in payloads {
        let code = bait.fill(&payload.code);
        let flags: Vec<String> = payload.flags.iter().map(|flag| bait.fill(flag)).collect();
        let mut arguments = vec![BELLJAR, "run", "--json", "-l", language, "--permissive"];
        let timeout = if payload.aim == Aim::Harm { "2s" } else { "8s" };
        arguments.extend(["--timeout", timeout, "-c", &code]);
        arguments.extend(flags.iter().map(String::as_str));
        let output = bait.run(&arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let result: Value = serde_json::from_str(&said).unwrap_or_default();
        let mut reached = bait.reached(&said, payload.aim);
        // Refused attempts are in the log word by word.
        let printed = result["stdout"].as_str().unwrap_or_default();
        reached.retain(|aim| !matches!(aim, Aim::Saying(text) if !printed.contains(text)));
        if !reached.is_empty() || result["isolation"]["tier"] != "full" {
            failures.push(format!("{}: {reached:?}: {said}", payload.name));
        }
        results.push(result);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    results
}

/// Outside each payload gets where it wants to.
pub(crate) fn controls(interpreter: &[&str], payloads: &[Payload]) {
    let mut bait = Bait::lay();
    let mut failures = Vec::new();
    for payload in payloads.iter().filter(|payload| payload.aim != Aim::Harm) {
        let code = bait.fill(&payload.code);
        let output = bait.run(&[interpreter, &["-c", &code]].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let reached = bait.reached(&said, payload.aim);
        if !reached.contains(&payload.aim) {
            failures.push(format!("{}: {reached:?}: {said}", payload.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Ends the program at some moment of a run, again and again, and looks at what is left.
pub(crate) fn killed_hosts_leave_nothing(language: &str, code: &str) {
    let bait = Bait::lay();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let granted = bait.home().join("granted").display().to_string();
    let tree = bait.home().join("tree").display().to_string();
    let code = bait.fill(code);
    let mut moment = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..12 {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let life = Duration::from_micros((moment >> 33) % 700_000);
        let grants = ["--write", &granted, "--workspace", &tree, "--read", "/usr/share"];
        let mut host = bait
            .place
            .command(BELLJAR)
            .args(["run", "--json", "-l", language, "--permissive", "-c", &code])
            .args(grants)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(life);
        host.kill().unwrap();
        host.wait().unwrap();
        assert!(bait.nothing_is_left(), "killed after {life:?}");
    }
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
    let tree = bait.home().join("tree");
    let kept = bait.files().into_iter().filter(|(path, _)| path.starts_with(&tree));
    let before = bait.before.iter().filter(|(path, _)| path.starts_with(&tree));
    assert!(before.map(|(path, entry)| (path.clone(), entry.clone())).eq(kept));
}
