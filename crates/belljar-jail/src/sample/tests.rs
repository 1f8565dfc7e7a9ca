//! Processes that do not look like processes are measured all the same.
#![expect(clippy::disallowed_methods, reason = "programs to be measured")]

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead as _, BufReader},
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::*;

/// A program that is killed and waited for when it is dropped.
struct StartedProcess(Child);

impl StartedProcess {
    /// Python that has said that it is ready.
    fn python(code: &str) -> Self {
        let mut python = Command::new("python3");
        let python = python.args(["-c", code]).stdout(Stdio::piped()).spawn();
        let mut started = Self(python.expect("there is a Python"));
        let said = started.0.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        started
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn pidfd(&self) -> std::os::fd::OwnedFd {
        pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()).expect("it is there")
    }
}

impl Drop for StartedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has its first thread end, while a second one holds memory and has used CPU time.
const WITHOUT_ITS_FIRST_THREAD: &str = "
import ctypes, threading, time
def hold():
    keep = b'x' * (100 << 20)
    while time.process_time() < 0.2: pass
    # The first thread ends meanwhile; only this one can tell.
    while open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0] != 'Z': pass
    print('ready', flush=True)
    time.sleep(60)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(60, 0)
";

/// The memory and the time of a process count that looks like one that has ended.
#[test]
fn s1_a_process_without_its_first_thread_is_measured() {
    let whole = StartedProcess::python(
        "import time; keep = b'x' * (100 << 20); print('ready', flush=True); time.sleep(60)",
    );
    let other = StartedProcess::python(WITHOUT_ITS_FIRST_THREAD);
    let status = fs::read_to_string(format!("/proc/{}/status", other.id())).expect("told");
    assert!(status.contains("zombie") && counted(&status).is_none(), "{status}");
    for process in [&whole, &other] {
        let sample = ProcessWalk::one(process.id()).sample(&mut CpuLedger::default());
        assert!(sample.usage.memory_bytes > 100 << 20, "{sample:?}");
        assert!(!sample.has_unmeasured);
        assert_eq!(sample.processes.len(), 1);
        let together = held_together(&sample.processes);
        assert!(together > 100 << 20, "{together}");
        assert!(kernel_bytes(&sample.processes) > 0);
        let gauge = Gauge::of(&process.pidfd(), Guests::Programs).expect("a gauge");
        let resident = gauge.resident().expect("it is there");
        assert!(resident.own_bytes > 100 << 20 && resident.peak_bytes > 100 << 20, "{resident:?}");
        assert!(gauge.cpu_time().is_some());
    }
    let sample = ProcessWalk::one(other.id()).sample(&mut CpuLedger::default());
    assert!(sample.usage.cpu >= Duration::from_millis(150), "{sample:?}");
    assert!(!crate::numbers::has_ended(other.id()));
    // Control: one that has ended altogether holds nothing.
    let mut gone = StartedProcess::python("print('ready', flush=True)");
    let gauge = Gauge::of(&gone.pidfd(), Guests::Programs).expect("a gauge");
    let id = gone.id();
    while !crate::numbers::has_ended(id) {}
    let sample = ProcessWalk::one(id).sample(&mut CpuLedger::default());
    assert_eq!((sample.usage.memory_bytes, sample.has_unmeasured), (0, false));
    assert_eq!(gauge.resident(), None);
    gone.0.wait().expect("it has ended");
    assert_eq!(ProcessWalk::one(id).sample(&mut CpuLedger::default()), Sample::default());
}

/// Children of a process without its first thread are found, too.
#[test]
fn s1_children_of_a_process_without_its_first_thread_are_found() {
    let code = WITHOUT_ITS_FIRST_THREAD
        .replace("    keep", "    import subprocess; subprocess.Popen(['sleep', '60'])\n    keep");
    let process = StartedProcess::python(&code);
    let walk = ProcessWalk::all(|| vec![(process.id(), Some(0))]);
    let sample = walk.sample(&mut CpuLedger::default());
    let child = *children(process.id()).expect("told").first().expect("one child");
    rustix::process::kill_process(
        Pid::from_raw(child.cast_signed()).expect("a number"),
        rustix::process::Signal::KILL,
    )
    .expect("it is there");
    assert_eq!(sample.processes.len(), 2, "{sample:?}");
    assert!(sample.processes.iter().any(|found| found.pid == child && found.forks == 1));
}

/// A process may be called anything, and is measured all the same (A6).
#[test]
fn a6_whatever_a_process_is_called() {
    let name = OsStr::from_bytes(b"\xff) Z 1 \xfe");
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join(name);
    std::os::unix::fs::symlink("/bin/sleep", &program).expect("a link");
    let child = Command::new(&program).arg0("sleep").arg("60").spawn();
    let mut child = StartedProcess(child.expect("a program"));
    let gauge = Gauge::of(&child.pidfd(), Guests::Programs).expect("a gauge");
    // It has its name from the moment it is another program.
    while !fs::read(format!("/proc/{}/comm", child.id())).expect("there").contains(&0xff) {}
    let measured = (gauge.resident(), gauge.cpu_time(), MemoryReading::of(child.id()).bytes());
    let is_told = Stat::of(child.id()).is_some_and(|stat| !stat.has_ended());
    child.0.kill().expect("it is ended");
    child.0.wait().expect("it has ended");
    assert!(measured.0.is_some_and(|resident| resident.own_bytes > 0), "{measured:?}");
    assert!(measured.1.is_some() && measured.2.is_some_and(|bytes| bytes > 0), "{measured:?}");
    assert!(is_told);
    // Control: of one that is gone nothing is told, by whichever number.
    assert_eq!((gauge.resident(), gauge.cpu_time()), (None, None));
}

/// A sparse mapping is small in pages and large in the tables that map them (A6), and what was swapped
/// out is still held (S20).
#[test]
fn s20_page_tables_and_what_is_swapped_out_are_memory_too() {
    let pages = "RssAnon:\t  90 kB\nRssFile:\t 500 kB\nRssShmem:\t  10 kB\n";
    assert_eq!(counted(&format!("{pages}VmPTE:\t  40 kB\n")), Some(140 * 1024));
    let swapped = format!("{pages}VmPTE:\t  40 kB\nVmSwap:\t  60 kB\n");
    assert_eq!(counted(&swapped), Some(200 * 1024));
    assert_eq!(counted(pages), None);
    assert!(MemoryReading::of(std::process::id()).bytes().is_some_and(|bytes| bytes > 0));
}
