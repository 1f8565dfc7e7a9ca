//! The measurements of a run are true, and its limits hold by them (A6), through the whole program.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::command::{Place, belljar};

/// Error code and metrics of a run; the code is `none` when there is no error.
fn run(language: &str, code: &str, more: &[&str]) -> (String, Value) {
    let arguments = [&["run", "--json", "-l", language, "-c", code], more].concat();
    let result = belljar(&arguments).json();
    let code = result["error"]["code"].as_str().unwrap_or("none").to_owned();
    (code, result["metrics"].clone())
}

/// Holds memory in processes whose first thread may have ended, for a second.
fn held_in_forks(is_first_ended: bool) -> String {
    let end = if is_first_ended { "ctypes.CDLL(None).syscall(60, 0)" } else { "time.sleep(60)" };
    format!(
        "
import ctypes, os, threading, time
def hold():
    keep = b'x' * (100 << 20)
    time.sleep(5)
    os._exit(0)
for _ in range(4):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        {end}
time.sleep(5)
1"
    )
}

#[sandboxed]
#[test]
fn s1_memory_of_processes_without_their_first_thread_counts() {
    for is_first_ended in [false, true] {
        let code = held_in_forks(is_first_ended);
        let more = ["--module", "ctypes", "--memory", "128MiB", "--timeout", "30s"];
        let (code, metrics) = run("python", &code, &more);
        assert_eq!(code, "limit.memory", "first thread ended: {is_first_ended}");
        assert!(metrics["memoryUsedMB"].as_f64() > Some(128.0), "{metrics}");
    }
    // Control: with room for it.
    let more = ["--module", "ctypes", "--memory", "1GiB", "--timeout", "30s"];
    let (code, metrics) = run("python", &held_in_forks(true), &more);
    assert_eq!(code, "none");
    assert!(metrics["memoryUsedMB"].as_f64() > Some(350.0), "{metrics}");
}

/// Eight children of 300 ms of CPU time each, one after the other.
const UNWAITED: &str = "
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.3: pass
        os._exit(0)
    try: os.waitpid(pid, 0)
    except ChildProcessError: pass
1";

#[sandboxed]
#[test]
fn s7_cpu_time_of_children_that_nobody_waits_for_counts() {
    let (code, metrics) = run("python", UNWAITED, &["--cpu", "1s", "--timeout", "30s"]);
    assert_eq!(code, "limit.cpu", "{metrics}");
    // Control: with time for it. Of each child up to a sampling period is not seen.
    let (code, metrics) = run("python", UNWAITED, &["--cpu", "20s", "--timeout", "30s"]);
    assert_eq!(code, "none");
    let cpu_ms = metrics["cpuTimeMs"].as_f64().expect("a number");
    assert!((2000.0..3500.0).contains(&cpu_ms), "{metrics}");
}

/// Parents that nobody waits for, of children that live for less than a sampling period.
const UNWAITED_PARENTS: &str = "
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def burn(seconds):
    while time.process_time() < seconds: pass
    os._exit(0)
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for _ in range(25):
            child = os.fork()
            if child == 0: burn(0.012)
            os.waitpid(child, 0)
        os._exit(0)
    try: os.waitpid(pid, 0)
    except ChildProcessError: pass
1";

#[sandboxed]
#[test]
fn s7_cpu_time_that_unwaited_parents_had_waited_for_counts() {
    let (code, metrics) = run("python", UNWAITED_PARENTS, &["--cpu", "1s", "--timeout", "60s"]);
    assert_eq!(code, "limit.cpu", "{metrics}");
    // Control: with time for it.
    let (code, metrics) = run("python", UNWAITED_PARENTS, &["--cpu", "40s", "--timeout", "60s"]);
    assert_eq!(code, "none", "{metrics}");
}

/// The slack of memory is small, whichever way it is asked for.
#[sandboxed]
#[test]
fn bug_11_a_run_does_not_hold_more_than_its_limit() {
    let python = |mebibytes: u32| {
        format!("import time\na = b'x' * ({mebibytes} << 20)\ntime.sleep(0.5)\nlen(a)")
    };
    // Long enough for all four to hold theirs at once, however busy the machine is.
    let forks = |mebibytes: u32, seconds: u32| {
        format!(
            "
import os, time
def hold():
    if os.fork() == 0:
        a = b'x' * ({mebibytes} << 20)
        time.sleep({seconds})
        os._exit(0)
for _ in range(4): hold()
for _ in range(4): os.wait()
1"
        )
    };
    // The shell has what it reads three times for a moment, which a busy machine makes longer.
    let bash = |megabytes: u32| {
        format!("x=$(head -c {megabytes}000000 /dev/zero | tr '\\0' x); sleep 0.5; echo ${{#x}}")
    };
    // Memory that the engine did not allocate itself counts, too.
    let typescript = |mebibytes: u32| {
        format!(
            "const held = [];
for (let i = 0; i < {mebibytes}; i++) held.push(new TextEncoder().encode('x'.repeat(1 << 20)));
await new Promise((done) => setTimeout(done, 300));
return held.length"
        )
    };
    let memory = ["--memory", "64MiB"];
    for (language, code) in [
        ("python", python(90)),
        ("python", forks(25, 25)),
        ("bash", bash(90)),
        ("bash", bash(200)),
        ("typescript", typescript(90)),
        ("typescript", typescript(2000)),
    ] {
        assert_eq!(run(language, &code, &memory).0, "limit.memory", "{code}");
    }
    // Control: what fits is had, interpreter and shell not counted.
    for (language, code) in [
        ("python", python(60)),
        ("python", forks(5, 1)),
        ("bash", bash(16)),
        ("python", "1".into()),
        ("typescript", typescript(55)),
    ] {
        assert_eq!(run(language, &code, &memory).0, "none", "{code}");
    }
}

/// `max_memory_mb` is what it says, and so is its default of 256.
#[sandboxed]
#[test]
fn bug_11_memory_of_agents_is_as_small_as_they_say() {
    let place = Place::new();
    let success = |limit: &str, bytes: &str| {
        let agent = format!(
            "nodes:\n  - name: a\n    uses: code.execute\n    with:\n      code: |\n        \
             x = b'x' * {bytes}\n        len(x)\n{limit}    output: r\n"
        );
        place.file("work/agent.yaml", &agent);
        let ran =
            place.belljar(&["workflow", "run", "agent.yaml", "--json", "--enable-code-execution"]);
        ran.json()["output"]["r"]["success"].clone()
    };
    let small = "      max_memory_mb: 64\n";
    assert_eq!(success(small, "100_000_000"), json!(false));
    assert_eq!(success(small, "50_000_000"), json!(true));
    assert_eq!(success("", "300_000_000"), json!(false));
    assert_eq!(success("", "200_000_000"), json!(true));
}
