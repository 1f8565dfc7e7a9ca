//! B2, B4: processes that are hidden beside a session's guest are counted and ended; those of a run
//! that goes on, or of a guest that is there, are not.

use std::{future::pending, time::Duration};

use belljar_contract::{ErrorCode, Grants, Limits, RunRequest};
use belljar_project::{Sandbox, Session};
use belljar_runtime::RunOptions;
use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    descendants::descendants,
    host_support::eventually,
    session_support::{PYTHON, sandbox, session, value},
};

/// A zygote and its warden.
const ZYGOTE: usize = 2;

/// Starts processes that wait: a child, one whose parent has ended and that is the keeper's then, or a
/// child with one of its own. Each has this much memory, and is known by its number in the cell.
const START: &str = "
import os, time
def start(how, megabytes=0):
    r, w = os.pipe()
    if os.fork() == 0:
        try:
            leave = how != 'child' and os.fork() != 0
            if leave and how == 'orphan': os._exit(0)
            memory = bytearray(megabytes << 20)
            for at in range(0, len(memory), 4096): memory[at] = 1
            if not leave: os.write(w, b'%d' % os.getpid())
            time.sleep(300)
        finally:
            os._exit(0)
    if how == 'orphan': os.wait()
    pid = int(os.read(r, 20))
    os.close(r)
    os.close(w)
    return pid
def is_there(pid):
    try: return os.kill(pid, 0) is None
    except ProcessLookupError: return False
";

fn family() -> usize {
    descendants(std::process::id()).len()
}

/// Longer than the time between two looks at a cell, twice.
const STAYS: &str = "time.sleep(4.5)";

/// Control and attempt in one: what a run has started stays as long as the run; then what is beneath
/// the guest stays, and what hides beside it is found.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b2_processes_that_hide_beside_a_guest_are_ended_between_runs() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    value(&session, START).await;
    let before = family();
    let run = format!(
        "own, hidden = start('child'), start('orphan')\n{STAYS}\n[is_there(own), is_there(hidden)]"
    );
    assert_eq!(value(&session, &run).await, json!([true, true]), "while the run goes on");
    eventually("the hidden one is gone", || family() == before + 1).await;
    assert_eq!(value(&session, "[is_there(own), is_there(hidden)]").await, json!([true, false]));
    // At the end of the session the other one goes, and one that hides at that moment.
    value(&session, "start('orphan')").await;
    session.destroy().await;
    eventually("nothing is left", || family() == ZYGOTE).await;
    sandbox.shutdown().await;
}

/// Processes beneath a guest end with it, however deep, while another guest of the cell is busy: then
/// nobody looks for what is left behind.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b2_a_guest_ends_with_what_it_started_and_another_goes_on() {
    let sandbox = sandbox().await;
    let parent = session(&sandbox, PYTHON.language).await;
    value(&parent, START).await;
    let fork: Session = parent.fork(1).await.expect("one").remove(0);
    eventually("a keeper and two guests", || family() == ZYGOTE + 3).await;
    value(&parent, "start('nested')").await;
    assert_eq!(family(), ZYGOTE + 5, "a child, and one of its own");
    let run = format!("own = start('child')\n{STAYS}\nis_there(own)");
    let running = tokio::spawn({
        let fork = fork.clone();
        async move { fork.run(run).await }
    });
    eventually("the other one has a child too", || family() == ZYGOTE + 6).await;
    parent.destroy().await;
    eventually("three are gone", || family() == ZYGOTE + 3).await;
    assert!(!running.is_finished(), "nobody looked for strays");
    // Control: what the other one has started is there to the end.
    let result = running.await.expect("a result");
    assert_eq!(result.result.get(), "true", "{:?}", result.error);
    assert_eq!(value(&fork, "is_there(own)").await, json!(true));
    sandbox.shutdown().await;
}

/// The session ends because of its memory limit, and leaves no process.
async fn assert_ended_by_memory(sandbox: Sandbox, session: &Session) {
    let ending = session.ended().await;
    assert_eq!(ending.code, "limit.memory", "{ending:?}");
    eventually("nothing is left", || family() == ZYGOTE).await;
    sandbox.shutdown().await;
}

/// No limit is avoided by spreading memory over processes that nobody measures.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b2_memory_of_processes_that_hide_is_counted() {
    let sandbox = sandbox().await;
    let limits = Limits { memory: 128 << 20, ..Limits::DEFAULT };
    let session = sandbox.session(PYTHON.language).limits(limits).open().await.unwrap();
    value(&session, START).await;
    let orphans =
        |megabytes: u32| format!("for _ in range(3): start('orphan', {megabytes})\n{STAYS}\n1");
    // Control: as many that are small.
    assert_eq!(value(&session, &orphans(1)).await, json!(1));
    let result = session.run(orphans(90)).await;
    let error = result.error.expect("too much");
    assert_eq!(error.code, ErrorCode::LimitMemory, "{error:?}");
    assert_ended_by_memory(sandbox, &session).await;
}

/// Memory that is hidden when a run has ended, and grows only then, is found by the next look at the cell
/// next; the session is told the true reason (S18).
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn s18_memory_that_grows_between_runs_is_a_limit_of_memory() {
    let sandbox = sandbox().await;
    let limits = Limits { memory: 64 << 20, ..Limits::DEFAULT };
    let session = sandbox.session(PYTHON.language).limits(limits).open().await.unwrap();
    value(&session, START).await;
    // Beneath the guest they may stay after the run.
    let children = "
for _ in range(4):
    if os.fork() == 0:
        time.sleep(2)
        memory = b'x' * (50 << 20)
        time.sleep(300)
1";
    assert_eq!(value(&session, children).await, json!(1));
    assert_ended_by_memory(sandbox, &session).await;
}

/// A process whose first thread has ended looks as if all of it had. It is ended with what else is
/// nobody's, also by a rollback (S1).
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn s1_processes_without_their_first_thread_are_ended() {
    let sandbox = sandbox().await;
    let grants = Grants { modules: vec!["ctypes".to_owned()], ..Grants::default() };
    let session = sandbox.session(PYTHON.language).grants(grants).open().await.expect("room");
    value(&session, START).await;
    let checkpoint = session.checkpoint().await.expect("a checkpoint");
    let before = family();
    let hide = "
import ctypes, threading
def hidden(alone):
    r, w = os.pipe()
    if os.fork() == 0:
        if os.fork() != 0: os._exit(0)
        os.setsid()
        def stay():
            state = lambda: open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0]
            while alone and state() != 'Z': pass
            os.write(w, b'x')
            time.sleep(300)
        threading.Thread(target=stay).start()
        if alone: ctypes.CDLL(None).syscall(60, 0)
        time.sleep(300)
    os.wait()
    os.read(r, 1)
hidden(True)
hidden(False)
1";
    assert_eq!(value(&session, hide).await, json!(1));
    session.rollback(&checkpoint.id).await.expect("back");
    eventually("both are gone", || family() == before).await;
    // Control: the session goes on.
    assert_eq!(value(&session, "1 + 1").await, json!(2));
    sandbox.shutdown().await;
}

/// S7, A6: what an earlier run left running is not charged to a later one; what it uses meanwhile is.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn s7_a_run_does_not_pay_for_what_an_earlier_one_has_used() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    let start = "
import os, time
(done, tell), (wait, go) = os.pipe(), os.pipe()
if os.fork() == 0:
    while time.process_time() < 1.5: pass
    os.write(tell, b'x')
    os.read(wait, 1)
    while True: pass
os.read(done, 1)";
    value(&session, start).await;
    let limits = Limits { cpu: Duration::from_millis(1200), ..Limits::DEFAULT };
    let run = |code: &str| RunRequest { limits, ..RunRequest::new(PYTHON.language, code) };
    let idle = session.run_with(run("time.sleep(0.3)"), RunOptions::default(), pending()).await;
    assert_eq!(idle.error.map(|error| error.code), None);
    // Control: the same process, busy now.
    let busy = session
        .run_with(run("os.write(go, b'x'); time.sleep(20)"), RunOptions::default(), pending())
        .await;
    assert_eq!(busy.error.map(|error| error.code), Some(ErrorCode::LimitCpu));
    session.destroy().await;
    sandbox.shutdown().await;
}
