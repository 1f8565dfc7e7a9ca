//! `python`: from request to result of `1+1` in Python, compared with other ways to run an agent's
//! Python.
//!
//! Libraries that restrict Python from inside are measured twice: in a new process, as a single
//! request would cost, and in a process that has already imported them. In the second case only
//! rules of the language confine the code (pydantic-monty: a worker process it keeps ready).

use std::time::Duration;

use anyhow::ensure;
use belljar_contract::{Language, RunRequest};

use super::{
    Bench, expect_value,
    host_cases::{HostCases, one_shot},
    peers::time_program,
    python_peer::PythonPeer,
    resident_peer::ResidentPeer,
    rounds::{self, Frequency, TimedCase},
    row::BenchRow,
};

const CODE: &str = "1+1";
const REST: Duration = Duration::from_millis(15);

/// A library that runs an agent's Python.
struct PythonLibrary {
    package: &'static str,
    /// How often the case with a new process is timed: importing the library may take long.
    cold: Frequency,
    /// The name of the warm case.
    warm: &'static str,
    /// Python code that imports the library and defines `answer()`, which runs the code afresh.
    script: &'static str,
}

const LIBRARIES: [PythonLibrary; 3] = [
    PythonLibrary {
        package: "RestrictedPython",
        cold: Frequency::Less,
        warm: "in process",
        script: "from RestrictedPython import compile_restricted, safe_globals
def answer():
    return eval(compile_restricted('1+1', '<agent>', 'eval'), dict(safe_globals))
",
    },
    PythonLibrary {
        package: "smolagents",
        cold: Frequency::Seldom,
        warm: "in process",
        script: "from smolagents.local_python_executor import LocalPythonExecutor
def answer():
    executor = LocalPythonExecutor([])
    executor.send_tools({})
    return executor('1+1').output
",
    },
    PythonLibrary {
        package: "pydantic-monty",
        cold: Frequency::Less,
        warm: "warm pool",
        script: "from pydantic_monty import Monty
pool = Monty().__enter__()
def answer():
    with pool.checkout() as session:
        return session.feed_run('1+1')
",
    },
];

/// Measures the time from request to result.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let Some(python) = PythonPeer::of(bench) else { return Ok(Vec::new()) };
    let request = RunRequest::new(Language::Python, CODE);
    let ours = HostCases::new(request, REST, |result| expect_value(result, "2"))?;
    let mut cases: Vec<TimedCase<'_>> = ours.cases("belljar python").into();
    cases.push(one_shot("belljar python", "python", CODE));
    cases.push(python.cold("python3 -c", &python.version, Frequency::Less, "print(1+1)", is_two));
    for library in &LIBRARIES {
        match python.packages.get(library.package) {
            Some(version) => cases.extend(library.cases(bench, &python, version)?),
            None => bench.omissions.missing(library.package),
        }
    }
    cases.extend(pyodide(bench)?);
    let rows = rounds::measure(bench, "python", cases)?;
    ours.end();
    Ok(rows)
}

impl PythonLibrary {
    fn cases(
        &self,
        bench: &Bench<'_>,
        python: &PythonPeer,
        version: &str,
    ) -> anyhow::Result<Vec<TimedCase<'static>>> {
        let cold = format!("{}print(answer())\n", self.script);
        let cold_name = format!("{}, new process", self.package);
        let warm_name = format!("{}, {}", self.package, self.warm);
        // A file with the library's name would be imported instead of the library.
        let file = format!("answer_by_{}.py", self.package);
        let script = bench.file(&file, &driver_script(self.script))?;
        let mut driver = match ResidentPeer::start(&python.program, &script) {
            Ok(driver) => driver,
            Err(error) => {
                bench.omissions.left_out(self.package, &format!("{error:#}"));
                return Ok(Vec::new());
            }
        };
        Ok(vec![
            python.cold(&cold_name, version, self.cold, &cold, is_two),
            TimedCase::new(&warm_name, version, Frequency::Less, move || {
                let (time, answer) = driver.ask()?;
                is_two(&answer).map(|()| time)
            }),
        ])
    }
}

/// Answers each input line with the time it took, by its own clock, and the answer.
fn driver_script(library: &str) -> String {
    format!(
        "import sys, time
{library}
print('ready', flush=True)
for _ in sys.stdin:
    began = time.perf_counter_ns()
    got = answer()
    print(time.perf_counter_ns() - began, got, flush=True)
"
    )
}

/// `CPython` compiled to `WebAssembly`, in a new Deno process each time.
fn pyodide(bench: &Bench<'_>) -> anyhow::Result<Option<TimedCase<'static>>> {
    let found = bench.peers.deno.as_ref().zip(bench.peers.pyodide.as_ref());
    let Some((deno, pyodide)) = found else {
        bench.omissions.missing("pyodide on deno");
        return Ok(None);
    };
    let home = serde_json::to_string(&pyodide.directory)?;
    let script = format!(
        "const home = {home};
const {{ loadPyodide }} = await import(home + '/pyodide.mjs');
const python = await loadPyodide({{ indexURL: home + '/' }});
console.log(python.runPython('1+1'));
"
    );
    let script = bench.file("pyodide.mjs", &script)?.to_string_lossy().into_owned();
    let program = deno.program().to_owned();
    Ok(Some(TimedCase::new(
        "pyodide on deno cold",
        &pyodide.version,
        Frequency::Seldom,
        move || {
            let arguments = ["run", "-A", "--no-prompt", "--no-config", &script];
            let (time, answer) = time_program(&program, &arguments)?;
            is_two(&answer).map(|()| time)
        },
    )))
}

fn is_two(answer: &str) -> anyhow::Result<()> {
    ensure!(answer == "2", "it answered {answer:?} instead of 2");
    Ok(())
}
