//! B4: copies of a guest that come to nothing: there is no process more than before, and the guest goes
//! on as it was, or is given up if it had a hand in it.

use belljar_contract::{CheckpointId, ErrorCode, Grants};
use belljar_project::{Sandbox, Session};
use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    descendants::descendants,
    host_support::eventually,
    session_support::{PYTHON, sandbox, session, value},
};

/// A zygote and its warden, and a keeper.
const OTHERS: usize = 3;

fn family() -> usize {
    descendants(std::process::id()).len()
}

/// Those that have not ended: who has is there until its keeper takes note.
fn alive() -> usize {
    let has_ended = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    };
    descendants(std::process::id()).iter().filter(|pid| !has_ended(pid)).count()
}

/// Puts something else in the place of what makes a copy of the guest. What the copy does, and what the
/// other one says for it, is the caller's to fill in.
const HOSTILE: &str = "
import ctypes, os, struct, sys, time
frame = sys._getframe()
while frame.f_code.co_name != 'cell_main': frame = frame.f_back
brancher = frame.f_locals['brancher']
library = ctypes.PyDLL(None)
clone = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]
def branch(fd, branched, ready, reroot, rerooted):
    byte, room = ctypes.create_string_buffer(1), ctypes.create_string_buffer(24)
    part = ctypes.create_string_buffer(struct.pack('PN', ctypes.addressof(byte), 1))
    parts, control = ctypes.addressof(part), ctypes.addressof(room)
    message = struct.pack('PIPNPNi', 0, 0, parts, 1, control, 24, 0)
    library.recvmsg(fd, ctypes.create_string_buffer(message), 0x40000000)
    own, = struct.unpack_from('i', room, 16)
    if library.syscall(clone, 0x8000 | 17, 0, 0, 0, 0) == 0:
        COPY
        while True: time.sleep(300)
    PARENT
    os.close(own)
    os.write(fd, branched)
    os.read(fd, len(reroot))
    os.read(fd, 1)
    os.write(fd, rerooted)
    return False
brancher.branch = branch
";

/// A session whose code does that from now on.
async fn hostile(sandbox: &Sandbox, copy: &str, parent: &str) -> (Session, CheckpointId) {
    let grants = Grants { modules: vec!["ctypes".to_owned()], ..Grants::default() };
    let session = sandbox.session(PYTHON.language).grants(grants).open().await.expect("room");
    value(&session, "x = 1").await;
    let before = session.checkpoint().await.expect("as long as it is honest");
    value(&session, &HOSTILE.replace("COPY", copy).replace("PARENT", parent)).await;
    (session, before.id)
}

#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_fork_that_is_refused_leaves_no_process_and_can_be_repeated() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    value(&session, PYTHON.set).await;
    value(&session, "f = open('note.txt', 'w')\nf.write('on'), f.flush()").await;
    let before = family();
    for _ in 0..20 {
        let refused = session.fork(1).await.expect_err("a file is open for writing");
        assert_eq!(refused.code, ErrorCode::SessionNotBranched, "{refused:?}");
        assert_eq!(alive(), before);
        assert_eq!(value(&session, PYTHON.next).await, json!(2));
    }
    value(&session, "f.write('e'); f.close()").await;
    // Control: at once, so nobody else has the file open any more.
    let fork = session.fork(1).await.expect("nothing is in the way").remove(0);
    assert_eq!(value(&fork, PYTHON.read).await, json!("one"));
    assert_eq!(family(), before + 1);
    sandbox.shutdown().await;
}

/// It is killed, not asked to go, and that is waited for.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_copy_in_vain_that_stays_is_killed() {
    let sandbox = sandbox().await;
    let (session, _) = hostile(&sandbox, "os.write(own, b'0')", "pass").await;
    value(&session, "f = open('open.txt', 'w')").await;
    for _ in 0..3 {
        let refused = session.fork(1).await.expect_err("a file is open for writing");
        assert_eq!(refused.code, ErrorCode::SessionNotBranched, "{refused:?}");
        // At once: whoever looks after cells now and then would end it too.
        assert_eq!(alive(), OTHERS + 2, "a guest and its checkpoint");
        assert_eq!(value(&session, "x").await, json!(1));
    }
    // Control: what it does otherwise works, and so does this without it.
    value(&session, "f.close()\ndel brancher.branch").await;
    let fork = session.fork(1).await.expect("it is honest again").remove(0);
    assert_eq!(value(&fork, "x").await, json!(1));
    sandbox.shutdown().await;
}

/// A copy that says nothing, says only half, or is the guest itself: there is none, and the guest that
/// made it is ended with it. The checkpoint from before is as good as ever.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_copy_that_does_not_answer_is_cleared_away() {
    let sandbox = sandbox().await;
    for (copy, parent, why) in [
        ("os.close(own)", "pass", "unexpected end"),
        ("os.write(own, b'0'); os.read(own, 1); os.close(own)", "pass", "invalid data"),
        ("os.close(own)", "os.write(own, b'0')", "invalid data"),
        // As long as the host waits for anybody.
        ("pass", "pass", "did not answer"),
    ] {
        let (session, before) = hostile(&sandbox, copy, parent).await;
        let broken = session.fork(1).await.expect_err("there is no copy");
        assert_eq!(broken.code, ErrorCode::SandboxCrashed, "{copy}: {broken:?}");
        assert!(broken.message.contains(why), "{copy}: {broken:?}");
        eventually("only the checkpoint is left", || family() == OTHERS + 1).await;
        session.rollback(&before).await.expect("it is kept");
        assert_eq!(value(&session, "x").await, json!(1), "{copy}");
        let fork = session.fork(1).await.expect("it was honest then").remove(0);
        assert_eq!(value(&fork, "x").await, json!(1), "{copy}");
        drop((fork, session));
        eventually("all of it is gone", || family() == OTHERS - 1).await;
    }
    sandbox.shutdown().await;
}
