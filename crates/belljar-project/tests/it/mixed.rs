//! Runs of every language at once, fifty at a time: each gets its own number back, and nothing of
//! them is left behind (A10, C1, C2).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use belljar_contract::{EngineName, RunResult};
use belljar_project::Sandbox;
use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    descendants::descendants,
    host_support::{at_rest, eventually, footprint},
    zygote::zygote,
};

const RUNS: usize = 1000;
const AT_ONCE: usize = 50;

/// The work of a run, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    TypeScript,
    Context,
    Python,
    Bash,
    PythonFiles,
    BashFiles,
    TypeScriptFiles,
    Commit,
    Artifact,
    Failure,
}

const KINDS: [Kind; 10] = [
    Kind::TypeScript,
    Kind::Context,
    Kind::Python,
    Kind::Bash,
    Kind::PythonFiles,
    Kind::BashFiles,
    Kind::TypeScriptFiles,
    Kind::Commit,
    Kind::Artifact,
    Kind::Failure,
];

#[sandboxed]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a10_a_thousand_mixed_runs_are_all_right_and_leave_nothing_behind() {
    let place = Arc::new(Place::new());
    let engines = [EngineName::QuickJs, EngineName::CPython, EngineName::Bash];
    let builder = Sandbox::builder().program(zygote()).pool(4).ready(engines);
    let sandbox = builder.build().await.expect("this machine can confine a zygote");
    for number in 0..KINDS.len() {
        one(&sandbox, &place, number).await;
    }
    let before = at_rest().await;

    let lanes = (0..AT_ONCE).map(|lane| {
        let (sandbox, place) = (sandbox.clone(), place.clone());
        tokio::spawn(async move {
            for number in (lane..RUNS).step_by(AT_ONCE) {
                one(&sandbox, &place, number).await;
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.expect("every answer is right");
    }

    let mut after = at_rest().await;
    eventually(&format!("{before:?} again, it is {after:?}"), || {
        after = footprint();
        after == before
    })
    .await;
    assert_eq!(place.shared(), ["seed.txt"], "the directory of all is as it was");
    sandbox.shutdown().await;
    eventually("nothing is left", || descendants(std::process::id()).is_empty()).await;
}

/// Directories the runs work on.
#[derive(Debug)]
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().expect("there is room") };
        fs::create_dir(place.all()).expect("there is room");
        fs::write(place.all().join("seed.txt"), "7").expect("there is room");
        place
    }

    /// The tree that many runs look at, each through its own view.
    fn all(&self) -> PathBuf {
        self.directory.path().join("all")
    }

    fn shared(&self) -> Vec<String> {
        names(&self.all())
    }

    /// The tree that one run works on and may change.
    fn own(&self, number: usize) -> PathBuf {
        let directory = self.directory.path().join(number.to_string());
        fs::create_dir_all(&directory).expect("there is room");
        directory
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Does one run and checks all it gives.
async fn one(sandbox: &Sandbox, place: &Place, number: usize) {
    let kind = KINDS[number % KINDS.len()];
    let result = run(sandbox, place, kind, number).await;
    let told = || format!("{number}, {kind:?}: {result:#?}");
    if kind == Kind::Failure {
        let message = result.error.as_ref().map(|error| error.message.as_str());
        assert_eq!(message, Some(format!("ValueError: {number}").as_str()), "{}", told());
        assert_eq!(result.stdout, format!("{number}\n"), "{}", told());
        return;
    }
    assert!(result.success, "{}", told());
    assert_eq!(result.result.get(), number.to_string(), "{}", told());
    let changes: Vec<(&str, &str, bool)> = result
        .changes
        .iter()
        .map(|change| (change.path.as_str(), change.kind.as_str(), change.committed))
        .collect();
    match kind {
        Kind::PythonFiles | Kind::BashFiles | Kind::TypeScriptFiles => {
            assert_eq!(changes, [("mine.txt", "added", false)], "{}", told());
        }
        Kind::Commit => {
            assert_eq!(changes, [("number.txt", "added", true)], "{}", told());
            let own = place.own(number);
            assert_eq!(names(&own), ["number.txt"], "{}", told());
            let text = fs::read_to_string(own.join("number.txt")).expect("it was committed");
            assert_eq!(text, format!("{number}\n"), "{}", told());
            // For the next time this number comes.
            fs::remove_file(own.join("number.txt")).expect("it is ours");
        }
        Kind::Artifact => {
            let [artifact] = result.artifacts.as_slice() else { panic!("{}", told()) };
            let data = BASE64_STANDARD.decode(&artifact.data).expect("base64");
            assert_eq!(String::from_utf8_lossy(&data), number.to_string(), "{}", told());
        }
        Kind::TypeScript | Kind::Context | Kind::Python | Kind::Bash | Kind::Failure => {}
    }
}

async fn run(sandbox: &Sandbox, place: &Place, kind: Kind, number: usize) -> RunResult {
    let run = match kind {
        Kind::TypeScript => {
            sandbox.typescript(format!("const n: number = await {number}; return n"))
        }
        Kind::Context => sandbox.typescript("context.number").context(&json!({ "number": number })),
        Kind::Python => sandbox.python(format!("sum([{number}])")),
        Kind::Bash => sandbox.bash(format!("echo $(({number} + 1 - 1))")),
        Kind::PythonFiles => {
            let code = format!(
                "open('mine.txt', 'w').write('{number}')\n\
                 int(open('mine.txt').read()) + int(open('seed.txt').read()) - 7"
            );
            sandbox.python(code).workspace(place.all())
        }
        Kind::BashFiles => {
            let code = format!("echo {number} > mine.txt; [ $(cat seed.txt) = 7 ] && cat mine.txt");
            sandbox.bash(code).workspace(place.all())
        }
        Kind::TypeScriptFiles => {
            let code = format!(
                "fs.writeFileSync('/work/mine.txt', '{number}');\n\
                 Number(fs.readFileSync('/work/mine.txt', 'utf8')) +\n\
                 Number(fs.readFileSync('/work/seed.txt', 'utf8')) - 7"
            );
            sandbox.typescript(code).workspace(place.all())
        }
        Kind::Commit => {
            let code = format!("echo {number} > number.txt; cat number.txt");
            sandbox.bash(code).workspace(place.own(number)).commit()
        }
        Kind::Artifact => sandbox.python(format!(
            "import os\nos.makedirs('/work/out', exist_ok=True)\n\
             open('/work/out/number.txt', 'w').write('{number}')\n{number}"
        )),
        Kind::Failure => sandbox.python(format!("print({number})\nraise ValueError({number})")),
    };
    run.run().await
}
