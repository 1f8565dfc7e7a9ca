//! B4: checkpoint, rollback and fork, of the interpreter and its files together.

use belljar_contract::{CheckpointId, ErrorCode, Grants, Language};
use belljar_project::{Sandbox, Session, SessionPhase};
use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    descendants::descendants,
    host_support::eventually,
    session_support::{ALL, PYTHON, TYPESCRIPT, failure, sandbox, session, value},
};

#[expect(clippy::print_stderr, reason = "a skip is said aloud")]
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Reads what is not there, past everything the interpreter checks.
const CRASH: &str = "import ctypes\nctypes.string_at(0)";

/// A session whose code can do that.
async fn fragile(sandbox: &Sandbox) -> Session {
    let grants = Grants { modules: vec!["ctypes".to_owned()], ..Grants::default() };
    sandbox.session(PYTHON.language).grants(grants).open().await.expect("there is room")
}

#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_rollback_restores_variables_and_files_twice() {
    let sandbox = sandbox().await;
    for words in ALL {
        let session = session(&sandbox, words.language).await;
        value(&session, words.set).await;
        value(&session, words.write).await;
        let here = session.checkpoint().await.expect("it can be kept");
        assert_eq!(here.dropped, Vec::<CheckpointId>::new());
        for _ in 0..2 {
            assert_eq!(value(&session, words.change).await, json!(2), "{words:?}");
            value(&session, words.overwrite).await;
            assert_eq!(value(&session, words.read).await, json!("two"), "{words:?}");
            session.rollback(&here.id).await.expect("it is kept");
            assert_eq!(value(&session, words.next).await, json!(2), "{words:?}");
            assert_eq!(value(&session, words.read).await, json!("one"), "{words:?}");
        }
        let checkpoints = session.info().checkpoints;
        assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
        let unknown = session.rollback(&"chk_none".into()).await.expect_err("there is none");
        assert_eq!(unknown.code, ErrorCode::SessionNoCheckpoint);
    }
    sandbox.shutdown().await;
}

#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_forks_are_distinct_and_their_parent_is_as_it_was() {
    let sandbox = sandbox().await;
    for words in ALL {
        let parent = session(&sandbox, words.language).await;
        value(&parent, words.set).await;
        value(&parent, words.write).await;
        let forks = parent.fork(3).await.expect("three of them");
        for (n, fork) in forks.iter().enumerate() {
            assert_eq!(fork.info().forked_from.as_ref(), Some(parent.id()));
            let set = match words.language {
                Language::Bash => format!("x=1{n}; printf {n} > note.txt"),
                Language::Python => {
                    format!("x = 1{n}\nwith open('note.txt','w') as f: f.write('{n}')")
                }
                Language::TypeScript | Language::JavaScript => {
                    format!("x = 1{n}; fs.writeFileSync('note.txt', '{n}')")
                }
            };
            value(fork, &set).await;
        }
        for (n, fork) in forks.iter().enumerate() {
            assert_eq!(value(fork, words.next).await, json!(11 + n), "{words:?}");
            assert_eq!(value(fork, words.read).await, json!(n.to_string()), "{words:?}");
        }
        assert_eq!(value(&parent, words.next).await, json!(2), "{words:?}");
        assert_eq!(value(&parent, words.read).await, json!("one"), "{words:?}");
        // The parent goes, its branches stay; with the last of them goes the cell.
        parent.destroy().await;
        assert_eq!(value(&forks[0], words.next).await, json!(11), "{words:?}");
        let of_fork = forks[1].fork(1).await.expect("a fork of a fork");
        assert_eq!(value(&of_fork[0], words.next).await, json!(12), "{words:?}");
    }
    eventually("only zygotes are left", || {
        let all = descendants(std::process::id());
        all.len() == 2 * ALL.len() || all.len() == 2 * ALL.len() + 1
    })
    .await;
    sandbox.shutdown().await;
    assert_eq!(descendants(std::process::id()), Vec::<u32>::new());
}

/// A fork of a checkpoint is of what was, and branches run side by side.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_checkpoint_can_be_forked_and_branches_run_side_by_side() {
    let sandbox = sandbox().await;
    let parent = session(&sandbox, PYTHON.language).await;
    value(&parent, "x = 1").await;
    let then = parent.checkpoint().await.expect("kept");
    value(&parent, "x = 50").await;
    let forks = parent.fork_from(2, Some(&then.id)).await.expect("two of them");
    let wait = "import time\ntime.sleep(0.3)\nx";
    let (a, b, c) = tokio::join!(forks[0].run(wait), forks[1].run(wait), parent.run(wait));
    let values = [a.result.get(), b.result.get(), c.result.get()];
    assert_eq!(values, ["1", "1", "50"]);
    parent.rollback(&then.id).await.expect("still there");
    assert_eq!(value(&parent, "x").await, json!(1));
    sandbox.shutdown().await;
}

#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_pandas_stays_loaded_in_every_branch() {
    let sandbox = sandbox().await;
    let parent = session(&sandbox, PYTHON.language).await;
    let loaded = parent.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})").await;
    if !loaded.success {
        let message = loaded.error.map(|error| error.message).unwrap_or_default();
        assert!(message.contains("No module named"), "{message}");
        assert!(std::env::var_os("BELLJAR_REQUIRE_PANDAS").is_none(), "{message}");
        skip("the python3 on the path has no pandas");
        return;
    }
    let before = parent.checkpoint().await.expect("kept");
    let forks = parent.fork(3).await.expect("three of them");
    for (n, fork) in forks.iter().enumerate() {
        value(fork, &format!("df['a'] += {n}")).await;
    }
    for (n, fork) in forks.iter().enumerate() {
        assert_eq!(value(fork, "int(df['a'].sum())").await, json!(3 + 2 * n));
    }
    value(&parent, "df['a'] *= 100").await;
    parent.rollback(&before.id).await.expect("kept");
    assert_eq!(value(&parent, "int(df['a'].sum())").await, json!(3));
    sandbox.shutdown().await;
}

/// A session whose guest is lost goes on from a checkpoint, and is told to.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_lost_session_goes_on_from_its_checkpoint() {
    let sandbox = sandbox().await;
    let session = fragile(&sandbox).await;
    value(&session, "x = 1").await;
    let here = session.checkpoint().await.expect("kept");
    let crash = session.run(CRASH).await.error.expect("it has ended itself");
    assert_eq!(crash.code, ErrorCode::SandboxCrashed, "{crash:?}");
    assert!(crash.hint.expect("what to do").contains(here.id.as_str()));
    assert!(matches!(session.info().phase, SessionPhase::Lost(_)));
    let lost = session.run("x").await.error.expect("there is nothing to run it in");
    assert_eq!(lost.code, ErrorCode::SessionLost);
    session.rollback(&here.id).await.expect("kept");
    assert_eq!(value(&session, "x + 1").await, json!(2));
    assert_eq!(session.info().phase, SessionPhase::Live);
    sandbox.shutdown().await;
}

/// A state that cannot be branched is refused, and the session goes on.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_open_files_and_threads_are_refused_and_harm_nothing() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    value(&session, "f = open('open.txt', 'w')\nf.write('a')").await;
    let refused = session.checkpoint().await.expect_err("a file is open for writing");
    assert_eq!(refused.code, ErrorCode::SessionNotBranched, "{refused:?}");
    value(&session, "f.write('b'); f.close()").await;
    assert_eq!(value(&session, "open('open.txt').read()").await, json!("ab"));
    let thread = "import threading\nstop = threading.Event()\n\
                  t = threading.Thread(target=stop.wait, daemon=True)\nt.start()";
    value(&session, thread).await;
    let refused = session.fork(1).await.expect_err("a thread cannot be copied");
    assert_eq!(refused.code, ErrorCode::SessionNotBranched, "{refused:?}");
    value(&session, "stop.set()\nt.join()").await;
    // Control: with both out of the way it can.
    let here = session.checkpoint().await.expect("nothing is in the way");
    value(&session, "open('open.txt', 'w').close()").await;
    session.rollback(&here.id).await.expect("kept");
    assert_eq!(value(&session, "open('open.txt').read()").await, json!("ab"));
    sandbox.shutdown().await;
}

/// Checkpoints are bounded; the oldest go, and that is told.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_the_oldest_checkpoints_go_and_that_is_told() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, TYPESCRIPT.language).await;
    let mut all = Vec::new();
    for n in 0..18 {
        value(&session, &format!("x = {n}")).await;
        all.push(session.checkpoint().await.expect("kept"));
    }
    let dropped: Vec<_> = all.iter().flat_map(|one| one.dropped.clone()).collect();
    assert_eq!(dropped, [all[0].id.clone(), all[1].id.clone()]);
    let gone = session.rollback(&all[0].id).await.expect_err("it was dropped");
    assert!(gone.message.contains("oldest"), "{}", gone.message);
    session.rollback(&all[2].id).await.expect("the oldest that is left");
    assert_eq!(value(&session, "x").await, json!(2));
    session.rollback(&all[17].id).await.expect("the newest");
    assert_eq!(value(&session, "x").await, json!(17));
    let told = session.info().checkpoints;
    let there = told.iter().filter(|one| one.dropped.is_none()).count();
    assert_eq!((there, told.len()), (16, 18));
    sandbox.shutdown().await;
}

/// The memory of checkpoints is bounded by that of the session.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b4_checkpoints_are_bounded_by_memory() {
    let sandbox = sandbox().await;
    let session =
        sandbox.session(PYTHON.language).memory(96 << 20).open().await.expect("there is room");
    value(&session, "y = bytearray(b'a' * (40 << 20))").await;
    let mut logs = Vec::new();
    for n in 0..5 {
        session.checkpoint().await.expect("kept");
        let result = session.run(format!("for i in range(0, len(y), 4096): y[i] = {n}")).await;
        assert!(result.success, "{:?}", result.error);
        logs.extend(result.logs);
    }
    let info = session.info();
    let dropped: Vec<_> = info.checkpoints.iter().filter_map(|one| one.dropped.clone()).collect();
    assert!(dropped.iter().any(|why| why.contains("96 MiB")), "{info:?}");
    // The run that made them too many says so.
    assert_eq!(logs.len(), dropped.len(), "{logs:?}");
    assert!(info.checkpoints.iter().any(|one| one.dropped.is_none()), "{info:?}");
    assert_eq!(value(&session, "y[0]").await, json!(4));
    sandbox.shutdown().await;
}

/// A crash of one branch is none of the others.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b2_a_crash_of_one_branch_leaves_the_others() {
    let sandbox = sandbox().await;
    let parent = fragile(&sandbox).await;
    value(&parent, "x = 1").await;
    let forks = parent.fork(2).await.expect("two of them");
    let message = failure(&forks[0], CRASH).await;
    assert!(message.contains("crashed") || message.contains("killed"), "{message}");
    assert_eq!(forks[0].ended().await.code, "sandbox.crashed");
    assert_eq!(value(&forks[1], "x + 1").await, json!(2));
    assert_eq!(value(&parent, "x + 1").await, json!(2));
    sandbox.shutdown().await;
}
