//! Every single call of the set-up, one by one: recorded once, then made to fail at exactly that
//! place. Whatever call it is, the run is refused or the cell is as confined as any other.
//!
//! A supervisor beside the zygote's program learns of each call by seccomp notification and
//! answers it. Calls are named by process, in order of appearance (warden, zygote, keeper, guest),
//! and by their place in that process, so a recording fits the next run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use belljar_jail::Guests;
use libtest_mimic::{Failed, Trial};
use serde::{Deserialize, Serialize};

use crate::{
    faults,
    harness::{
        held::{self, Facts, HeldCell, StartOutcome},
        home::Home,
        host::{Spec, Verdict},
        processes,
        raw::{self, call},
        spawn::{self, Who},
    },
    modes::{needs_root, report},
};

/// Which call: of which process, and its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    process: usize,
    call: usize,
}

/// The system calls that a supervisor saw.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Recording {
    /// The numbers of the calls of each process, in order.
    calls: Vec<Vec<i32>>,
    /// Whether the call that was to fail was made.
    failed: bool,
}

const GUEST: usize = 3;
/// The findings of the probe in the cell, among those from outside.
const INSIDE: &str = "inside";
const PROCESSES: [&str; 4] = ["warden", "zygote", "keeper", "guest"];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, who) in [("root", Who::Same), ("user", Who::Other(spawn::ORDINARY))] {
        let script = format!("faults::each_single_call_as_{name}");
        trials.push(Trial::test(script, move || sweep(who, Guests::Script)));
        let programs = format!("faults::calls_for_programs_with_grants_as_{name}");
        trials.push(Trial::test(programs, move || sweep(who, Guests::Programs)));
    }
    trials
}

fn sweep(who: Who, guests: Guests) -> Result<(), Failed> {
    if !spawn::is_root() {
        return needs_root::<()>("looking into cells").map(|_| ());
    }
    let directory = tempfile::Builder::new().prefix("belljar-escape-").tempdir()?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(directory.path(), open)?;
    let home = match guests {
        Guests::Script => None,
        Guests::Programs => Some(Home::lay(who, "nothing to find here")?),
    };
    let target = Target { who, directory: directory.path(), home: home.as_ref().map(Home::path) };
    let (healthy, recording) = target.record()?;
    let mut failures = Vec::new();
    let (mut tried, mut refused) = (0, 0);
    for (process, calls) in recording.calls.iter().enumerate() {
        for (call, number) in calls.iter().enumerate() {
            if !target.is_worth_it(call, *number) {
                continue;
            }
            tried += 1;
            match target.outcome(Place { process, call }, &healthy) {
                Ok(Harmless::Refused) => refused += 1,
                Ok(Harmless::AsConfined | Harmless::Lost) => {}
                Err(error) => {
                    let name = PROCESSES.get(process).unwrap_or(&"other");
                    failures.push(format!("{name}, call {call} (number {number}): {error}"));
                }
            }
        }
    }
    eprintln!("{tried} calls made to fail: {refused} refusals");
    if recording.calls.len() <= GUEST || refused * 2 < tried {
        failures.push(format!("only {refused} of {tried} failing calls led to a refusal"));
    }
    report(failures)
}

/// Why a failing call did no harm.
enum Harmless {
    /// The cell was refused, and no guest code ran.
    Refused,
    /// The cell is like any other: the call did not matter.
    AsConfined,
    /// The cell was there and is gone.
    Lost,
}

/// The system call that is made to fail.
struct Target<'a> {
    who: Who,
    directory: &'a Path,
    /// Files to grant: then guests are programs.
    home: Option<&'a Path>,
}

impl Target<'_> {
    /// Programs make many calls on their way, most of them the loader's. Those that confine are
    /// tried one by one; of the others, some, but for the one after which memory is taken
    /// elsewhere: limits come on top of what there is, so they would be other numbers.
    fn is_worth_it(&self, call: usize, number: i32) -> bool {
        let is_sampled = call.is_multiple_of(12) && i64::from(number) != libc::SYS_brk;
        self.home.is_none() || faults::confines(number) || is_sampled
    }

    fn outcome(&self, place: Place, healthy: &Facts) -> Result<Harmless, String> {
        let file = self.directory.join(format!("{}-{}", place.process, place.call));
        match held::start(self.who, self.spec(Some(place), &file))? {
            StartOutcome::Ended(verdicts) => harmless_end(&verdicts),
            StartOutcome::Held(held) => match differences(&held, healthy) {
                Ok(()) => held.end().map(|()| Harmless::AsConfined),
                // The findings from inside are older than whatever may have ended it.
                Err(error) if held.is_whole() || healthy.get(INSIDE) != Some(&held.said) => {
                    held.end().and(Err(error))
                }
                // The later work of a zygote has failed meanwhile: a process on the way
                // out looks like nothing at all, and the host has to say that the cell is lost.
                Err(error) => {
                    harmless_end(&held.finish()?).map_err(|end| format!("{error}; {end}"))
                }
            },
        }
    }

    /// A healthy cell, and every call on the way to it that is part of the set-up.
    fn record(&self) -> Result<(Facts, Recording), String> {
        let file = self.directory.join("recording");
        let StartOutcome::Held(held) = held::start(self.who, self.spec(None, &file))? else {
            return Err("no cell even without a fault".to_owned());
        };
        let healthy = look(&held)?;
        // Work of a zygote after its first cell belongs to it.
        let zygote = held.tree.zygote;
        if !processes::soon(|| waits_for_orders(zygote)) {
            return Err("the zygote does not come to rest".to_owned());
        }
        held.end()?;
        // Whoever detaches what is granted leaves a recording too, a shorter one.
        let read = || serde_json::from_slice::<Recording>(&fs::read(&file).ok()?).ok();
        let whole = || read().filter(|recording| recording.calls.len() > GUEST);
        let recording = processes::until(Duration::from_secs(5), whole).ok_or("no recording")?;
        Ok((healthy, recording))
    }

    fn spec(&self, place: Option<Place>, file: &Path) -> Spec {
        let place = serde_json::to_string(&place).unwrap_or_default();
        let file = file.display().to_string();
        let role = if self.home.is_some() { "__programs" } else { "__zygote" };
        let zygote = ["__sweep", &place, &file, "--", role].map(str::to_owned).to_vec();
        let none = [] as [&str; 0];
        let plain = if self.home.is_some() { Spec::of_programs(none) } else { Spec::full(none) };
        Spec { zygote, home: self.home.map(Path::to_owned), ..plain }
    }
}

/// Nothing ran, or zygote or keeper fell once the cell was whole and it went with them.
fn harmless_end(verdicts: &[Verdict]) -> Result<Harmless, String> {
    let [verdict] = verdicts else { return Err(format!("not one verdict: {verdicts:?}")) };
    let code = verdict.error.as_ref().map_or("", |error| &error.code);
    if verdict.report.is_none() && verdict.tier == "refused" {
        return Ok(Harmless::Refused);
    }
    match code {
        // Limits are lowered for the run by the guest itself, before any code.
        "sandbox.failed" | "sandbox.engine" => Ok(Harmless::Refused),
        "sandbox.zygote_lost" | "sandbox.crashed" => Ok(Harmless::Lost),
        _ => Err(format!("neither held nor refused: {verdict:?}")),
    }
}

fn differences(held: &HeldCell, healthy: &Facts) -> Result<(), String> {
    let seen = look(held)?;
    let differ = seen.iter().filter(|(key, value)| healthy.get(*key) != Some(value));
    let differ: Vec<String> = differ.map(|(key, value)| format!("{key} is {value}")).collect();
    if differ.is_empty() { Ok(()) } else { Err(format!("ran, but {}", differ.join("; "))) }
}

/// Whether a zygote has done what it had to.
fn waits_for_orders(zygote: i32) -> bool {
    let call = fs::read_to_string(format!("/proc/{zygote}/syscall")).unwrap_or_default();
    let number = call.split(' ').next().and_then(|number| number.parse().ok());
    matches!(number, Some(libc::SYS_recvfrom | libc::SYS_recvmsg))
}

/// All four processes, and what the probe found out inside.
fn look(held: &HeldCell) -> Result<Facts, String> {
    let tree = &held.tree;
    let (keeper, guest) = *tree.cells.first().ok_or("no cell")?;
    let mut all = Facts::from([(INSIDE.to_owned(), held.said.clone())]);
    for (name, pid) in PROCESSES.iter().zip([tree.warden, tree.zygote, keeper, guest]) {
        let mut facts = held::facts(pid)?;
        // The others may be about to close something; only the guest's have to be settled.
        if pid != guest {
            facts.remove("descriptors");
        }
        all.extend(facts.into_iter().map(|(key, value)| (format!("{name}: {key}"), value)));
    }
    Ok(all)
}

/// The `__sweep` role: puts a supervisor beside itself and becomes this program in another role.
pub(crate) fn main(place: &str, file: &str, rest: &[&str]) -> io::Result<()> {
    let place: Option<Place> = serde_json::from_str(place)?;
    let errno = io::Error::from_raw_os_error;
    // The lowest free descriptor will be the listener's.
    let next = fs::File::open("/dev/null")?.as_raw_fd();
    let this = rustix::process::getpid().as_raw_pid();
    if raw::fork().map_err(errno)?.is_none() {
        let _ = supervise(this, next, place, &PathBuf::from(file));
        raw::end_now(0);
    }
    const NEW_LISTENER: u64 = 1 << 3;
    call!(SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).map_err(errno)?;
    raw::load_filter(&mut filter(), NEW_LISTENER).map_err(errno)?;
    Err(spawn::become_role(rest))
}

/// Every call is reported but those that end a process or a signal handler, and `close`, which on
/// Linux closes whatever it answers.
fn filter() -> Vec<libc::sock_filter> {
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let quiet = [libc::SYS_exit, libc::SYS_exit_group, libc::SYS_rt_sigreturn, libc::SYS_close];
    let mut filter = vec![instruction(0x20, 0, 0, 0)];
    for (left, number) in (0u8..4).rev().zip(quiet) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        filter.push(instruction(0x15, left + 1, 0, number));
    }
    filter.push(instruction(0x06, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    filter.push(instruction(0x06, 0, 0, libc::SECCOMP_RET_ALLOW));
    filter
}

/// A call that waits for an answer: `struct seccomp_notif`.
struct Notice {
    id: u64,
    pid: i32,
    number: i32,
}

fn supervise(pid: i32, fd: i32, place: Option<Place>, file: &Path) -> Result<(), raw::Errno> {
    let pidfd = call!(SYS_pidfd_open, pid, 0)?;
    let listener = loop {
        match call!(SYS_pidfd_getfd, pidfd, fd, 0) {
            Ok(listener) => break i32::try_from(listener).unwrap_or(-1),
            Err(libc::EBADF) => std::thread::yield_now(),
            Err(errno) => return Err(errno),
        }
    };
    // Holding the zygote's end of the control socket would hide its end from the host.
    for fd in (0..listener.max(64)).filter(|fd| *fd != listener) {
        let _ = call!(SYS_close, fd);
    }
    let mut progress = Progress::default();
    while let Some(notice) = receive(listener) {
        let fails = progress.take(&notice, place);
        answer(listener, notice.id, fails);
    }
    // Nobody reads one of a run with a fault, and its directory may be gone by now.
    if place.is_some() {
        return Ok(());
    }
    let recording = serde_json::to_vec(&progress.recording()).unwrap_or_default();
    let draft = file.with_extension("draft");
    if fs::write(&draft, recording).is_ok() {
        let _ = fs::rename(draft, file);
    }
    Ok(())
}

/// The next call, or nothing when every process is gone.
fn receive(listener: i32) -> Option<Notice> {
    const RECEIVE: u64 = 0xc050_2100;
    loop {
        let mut poll = crate::harness::raw::words(&[listener as u64 | 1 << 32]);
        call!(SYS_poll, &mut poll[..], 1, -1).ok()?;
        let ready = poll[6];
        if ready & libc::POLLIN as u8 == 0 {
            return None;
        }
        let mut notice = [0; 80];
        // A process that was killed meanwhile waits for no answer.
        if call!(SYS_ioctl, listener, RECEIVE, &mut notice[..]).is_ok() {
            let word =
                |at: usize| u64::from_ne_bytes(notice[at..at + 8].try_into().unwrap_or_default());
            let (pid, number) = (word(8) as i32, word(16) as i32);
            return Some(Notice { id: word(0), pid, number });
        }
    }
}

fn answer(listener: i32, id: u64, fails: bool) {
    const SEND: u64 = 0xc018_2101;
    const CONTINUE: u64 = 1 << 32;
    let error = u64::from((-libc::EPERM).cast_unsigned());
    let answer = raw::words(&[id, 0, if fails { error } else { CONTINUE }]);
    let _ = call!(SYS_ioctl, listener, SEND, &answer);
}

/// The number of calls of each process.
#[derive(Debug, Default)]
struct Progress {
    order: BTreeMap<i32, usize>,
    lenders: BTreeSet<i32>,
    calls: Vec<Vec<i32>>,
    /// The first thing a zygote's program does as such is to receive its orders.
    begun: bool,
    failed: bool,
    /// A guest's set-up ends with the last limit it lowers for its run.
    guest_is_ready: bool,
}

impl Progress {
    /// Whether the call is the one to fail.
    fn take(&mut self, notice: &Notice, place: Option<Place>) -> bool {
        self.begun |= i64::from(notice.number) == libc::SYS_recvmsg;
        if !self.begun {
            return false;
        }
        let number = i64::from(notice.number);
        if !self.order.contains_key(&notice.pid) {
            // Closing what was inherited is asked about in some builds. One that begins by reading
            // only waits, to lend its user namespace to who maps ids.
            if number == libc::SYS_read {
                self.lenders.insert(notice.pid);
            }
            if number == libc::SYS_fcntl || self.lenders.contains(&notice.pid) {
                return false;
            }
        }
        let next = self.order.len();
        let process = *self.order.entry(notice.pid).or_insert(next);
        if self.calls.len() <= process {
            self.calls.push(Vec::new());
        }
        // After the last limit the first thing a probe does is to open a file.
        let opens = number == libc::SYS_openat;
        self.guest_is_ready |= process == GUEST && opens && self.guest_has_limits();
        if process == GUEST && self.guest_is_ready {
            return false;
        }
        self.calls[process].push(notice.number);
        let here = Place { process, call: self.calls[process].len() - 1 };
        let fails = place == Some(here) && !self.failed;
        self.failed |= fails;
        fails
    }

    fn guest_has_limits(&self) -> bool {
        let sets = |number: &i32| i64::from(*number) == libc::SYS_prlimit64;
        let filtered = |number: &i32| i64::from(*number) == libc::SYS_seccomp;
        let are_lowered =
            |calls: &Vec<i32>| calls.iter().rev().take(3).any(sets) && calls.iter().any(filtered);
        self.calls.get(GUEST).is_some_and(are_lowered)
    }

    fn recording(self) -> Recording {
        Recording { calls: self.calls, failed: self.failed }
    }
}
