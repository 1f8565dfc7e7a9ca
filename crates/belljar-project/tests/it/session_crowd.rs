//! Many sessions at once; files from outside; tools in a session (B1, B2, C2, D1).

use belljar_contract::{Language, RunRequest};
use belljar_project::{FileError, SessionFileKind};
use belljar_runtime::RunOptions;
use belljar_testing::sandboxed;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::{
    descendants::descendants,
    host_support::eventually,
    session_support::{ALL, PYTHON, TYPESCRIPT, sandbox, session, value},
};

/// As `belljar-bench sessions` does with 300, with fewer.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn b1_many_sessions_of_all_languages_answer() {
    const CROWD: usize = 45;
    let sandbox = sandbox().await;
    let mut sessions = Vec::new();
    for (n, words) in ALL.into_iter().cycle().take(CROWD).enumerate() {
        let session = session(&sandbox, words.language).await;
        let set = match words.language {
            Language::Bash => format!("x={n}"),
            Language::TypeScript | Language::JavaScript | Language::Python => format!("x = {n}"),
        };
        value(&session, &set).await;
        sessions.push((session, words));
    }
    for (n, (session, words)) in sessions.iter().enumerate() {
        assert_eq!(value(session, words.next).await, json!(n + 1), "{words:?}");
        let memory = session.info().memory_bytes;
        assert!(memory > 0 && memory < 64 << 20, "{memory} {words:?}");
    }
    drop(sessions);
    let zygotes = 2 * ALL.len();
    eventually("they are gone", || descendants(std::process::id()).len() == zygotes).await;
    sandbox.shutdown().await;
}

/// Files go in and come out, belong to the guest, and follow the branches.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn c2_files_of_a_session_from_outside() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, PYTHON.language).await;
    let put = session.put_file("data/in.txt", &b"from outside"[..]).await.expect("it is put");
    assert_eq!((&*put.path, put.bytes), ("data/in.txt", 12));
    assert_eq!(value(&session, "open('data/in.txt').read()").await, json!("from outside"));
    // It is the guest's own: to be changed, replaced and removed.
    value(&session, "with open('data/in.txt', 'a') as f: f.write('!')").await;
    value(&session, "import os\nos.symlink('/etc', 'link')\nos.mkfifo('pipe')").await;
    let (bytes, mut content) = session.get_file("/work/data/in.txt").await.expect("it is there");
    let mut text = String::new();
    content.read_to_string(&mut text).await.unwrap();
    assert_eq!((bytes, &*text), (13, "from outside!"));
    let (files, cut) = session.list_files(100).await.expect("listed");
    let shown: Vec<_> = files.iter().map(|file| (&*file.path, file.kind)).collect();
    let expected = [
        ("data", SessionFileKind::Directory),
        ("data/in.txt", SessionFileKind::File),
        ("link", SessionFileKind::Link),
    ];
    assert_eq!((&*shown, cut), (&expected[..], false));
    for bad in ["../x", "/etc/passwd", "link/passwd", "pipe", "data"] {
        assert!(matches!(session.get_file(bad).await.err(), Some(FileError::Path(_))), "{bad}");
    }
    assert!(matches!(session.get_file("none").await.err(), Some(FileError::Missing)));
    let here = session.checkpoint().await.expect("nothing of a file from outside is left open");
    session.put_file("data/in.txt", &b"other"[..]).await.expect("replaced");
    session.delete_file("link").await.expect("removed");
    assert_eq!(value(&session, "open('data/in.txt').read()").await, json!("other"));
    session.rollback(&here.id).await.expect("kept");
    assert_eq!(value(&session, "open('data/in.txt').read()").await, json!("from outside!"));
    let names = "import os\nsorted(os.listdir('.'))";
    assert_eq!(value(&session, names).await, json!(["data", "link", "pipe"]));
    // As much as fits and no more; half a file is never seen.
    let large = tokio::io::repeat(b'x').take(300 << 20);
    let refused = session.put_file("large", large).await.expect_err("there is no room");
    assert!(matches!(refused, FileError::TooLarge(_)), "{refused:?}");
    assert_eq!(value(&session, names).await, json!(["data", "link", "pipe"]));
    sandbox.shutdown().await;
}

/// Files that are handed back beside the value come back when they are new or changed.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn c2_artifacts_come_back_once() {
    let sandbox = sandbox().await;
    let session = session(&sandbox, TYPESCRIPT.language).await;
    let write = "fs.mkdirSync('out', { recursive: true }); fs.writeFileSync('out/a.txt', 'one'); 1";
    let first = session.run(write).await;
    assert_eq!(first.artifacts.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["out/a.txt"]);
    assert!(session.run("2").await.artifacts.is_empty());
    let changed = session.run("fs.writeFileSync('out/a.txt', 'two'); 3").await;
    assert_eq!(changed.artifacts.len(), 1, "{changed:?}");
    sandbox.shutdown().await;
}

/// A workspace is seen, changed in every branch for itself, and never touched.
#[sandboxed]
#[tokio::test(flavor = "multi_thread")]
async fn c1_b4_a_sessions_workspace_is_a_copy() {
    let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
    std::fs::write(place.path().join("a.txt"), "original").unwrap();
    let sandbox = sandbox().await;
    let opened = sandbox.session(PYTHON.language).workspace(place.path()).open().await;
    let session = opened.expect("it may be seen");
    assert_eq!(value(&session, "open('a.txt').read()").await, json!("original"));
    let fork = session.fork(1).await.expect("one").remove(0);
    value(&session, "with open('a.txt', 'w') as f: f.write('changed')").await;
    assert_eq!(value(&fork, "open('a.txt').read()").await, json!("original"));
    assert_eq!(std::fs::read_to_string(place.path().join("a.txt")).unwrap(), "original");
    let mut committed = RunRequest::new(PYTHON.language, "1");
    committed.workspace = Some(belljar_project::Workspace {
        path: place.path().to_owned(),
        commit: true,
        ..belljar_project::Workspace::default()
    });
    let refused = session.run_with(committed, RunOptions::default(), std::future::pending()).await;
    assert!(!refused.success);
    sandbox.shutdown().await;
}
