//! Python as models write it: each program gives its value, or an error that names the remedy (A2, A7).
//!
//! The programs are run without a jail here, so those that only a cell refuses are in the suite of the
//! command line.

use belljar_contract::RunError;
use serde_json::{Value, json};

use crate::cpython_harness::{Python, command, run_command};

/// The expected outcome of a program.
enum Outcome {
    /// It gives this value.
    Value(Value),
    /// It fails, and what its caller is told has these words in it.
    Told(&'static str),
}

use Outcome::{Told, Value as Gives};

#[track_caller]
fn check(python: Python, programs: Vec<(&str, Outcome)>) {
    for (code, expected) in programs {
        let outcome = run_command(python, &command(code));
        match expected {
            Gives(value) => assert_eq!((outcome.error, outcome.value), (None, value), "{code}"),
            Told(words) => {
                let RunError { message, hint, .. } = outcome.failure().clone().into();
                let told = format!("{message} | {}", hint.unwrap_or_default());
                assert!(told.contains(words), "{code}: {told}");
            }
        }
    }
}

#[test]
fn plain_programs() {
    check(
        Python::Plain,
        vec![
            (
                "def fib(n):\n    return n if n < 2 else fib(n-1) + fib(n-2)\nfib(10)",
                Gives(json!(55)),
            ),
            (
                "from collections import Counter\nCounter('abca').most_common(1)",
                Gives(json!([["a", 2]])),
            ),
            ("import json\nprint(json.dumps({'a': 1}))\njson.loads('[1]')", Gives(json!([1]))),
            (
                "from datetime import date\ndate(2024, 2, 29).isoformat()",
                Gives(json!("2024-02-29")),
            ),
            ("import re\nre.findall(r'\\d+', 'a1b22')", Gives(json!(["1", "22"]))),
            (
                "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(1)",
                Gives(json!({"x": 1})),
            ),
            ("if __name__ == '__main__':\n    result = 5", Gives(json!(5))),
            ("import asyncio\nasync def f():\n    return 1\nasyncio.run(f())", Gives(json!(1))),
            (
                "with open('a.txt', 'w') as f:\n    f.write('hi')\nopen('a.txt').read()",
                Gives(json!("hi")),
            ),
            (
                "import csv, io\nlist(csv.DictReader(io.StringIO('a,b\\n1,2')))",
                Gives(json!([{"a": "1", "b": "2"}])),
            ),
            (
                "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t(a)')\n\
                 c.execute('insert into t values (1)')\nc.execute('select * from t').fetchall()",
                Gives(json!([[1]])),
            ),
        ],
    );
}

#[test]
fn programs_that_ask_for_their_surroundings() {
    check(
        Python::Plain,
        vec![
            ("import getpass\ngetpass.getuser()", Gives(json!("user"))),
            (
                "from concurrent.futures import ProcessPoolExecutor\ndef sq(x): return x * x\n\
                 with ProcessPoolExecutor(max_workers=2) as pool:\n    out = list(pool.map(sq, [2, 3]))\nout",
                Gives(json!([4, 9])),
            ),
            ("%matplotlib inline\nx = 1\nx", Gives(json!(1))),
            ("display({'a': 1})\nNone", Gives(json!(null))),
            (
                "import signal, time\ndef stop(*_): raise TimeoutError('mine')\n\
                 signal.signal(signal.SIGALRM, stop)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\n\
                 try:\n    time.sleep(5)\nexcept TimeoutError as e:\n    r = str(e)\nr",
                Gives(json!("mine")),
            ),
            (
                "try:\n    import urllib.request\n    urllib.request.urlopen('http://nowhere.invalid')\n\
                 except Exception as e:\n    said = str(e)\n'there is no network in this run' in said",
                Gives(json!(true)),
            ),
            (
                "lines = open('/proc/self/maps').read().splitlines()\n\
                 status = dict(l.split(':', 1) for l in open('/proc/self/status'))\n\
                 [any('.so' in line for line in lines), int(status['Pid']) > 0]",
                Gives(json!([true, true])),
            ),
            (
                "total = next(l for l in open('/proc/meminfo') if l.startswith('MemTotal'))\n\
                 int(total.split()[1])",
                Gives(json!(2 << 20)),
            ),
        ],
    );
}

#[test]
fn what_cannot_be_had_is_told_with_its_remedy() {
    check(
        Python::Plain,
        vec![
            ("import subprocess", Told("Ask for --module subprocess if there is no other way.")),
            ("import pickle", Told("json, or DataFrame.to_csv")),
            ("import multiprocessing", Told("ThreadPoolExecutor instead")),
            ("import importlib", Told("plain import statement")),
            ("eval('1')", Told("ast.literal_eval")),
            ("x = input('name? ')", Told("data is in `context`")),
            ("!pip install nosuchpackage", Told("Nothing can be installed during a run")),
            ("%pip install nosuchpackage\nimport x", Told("nosuchpackage is not installed here")),
            ("%%timeit\n1 + 1", Told("%timeit is for notebooks")),
            ("%%bash\nls", Told("with language bash")),
            ("files = !ls\nfiles", Told("with language bash")),
            ("?print", Told("use help(name)")),
            ("!ls -la", Told("language bash")),
            ("import nosuchmodule", Told("is not installed here")),
            ("import os\nos.environ['API_KEY']", Told("Grant it with --env API_KEY.")),
            ("open('/nowhere/rows.csv')", Told("Grant it with --read /nowhere/rows.csv.")),
            (
                "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)",
                Told("SIGALRM ended the code"),
            ),
            ("return object()", Told("which JSON cannot represent")),
            (
                "import urllib.request\nurllib.request.urlopen('http://nowhere.invalid')",
                Told("no network"),
            ),
        ],
    );
    // Reading what is not there is no reason to make a folder for it.
    let read = run_command(Python::Plain, &command("open('docs/a.txt')"));
    assert!(!read.hint().contains("makedirs"), "{}", read.hint());
    let write = run_command(Python::Plain, &command("open('docs/a.txt', 'w')"));
    assert!(write.hint().contains("os.makedirs("), "{}", write.hint());
}

/// Code that catches the error leaves the attempt in the log, also if it fails of what is missing then.
#[test]
fn attempts_to_reach_a_host_are_told_even_if_the_code_catches_them() {
    let caught = "import urllib.request\ntry:\n    urllib.request.urlopen('http://nowhere.invalid/x')\n\
                  except Exception:\n    rows = []\nlen(rows)";
    let outcome = run_command(Python::Plain, &command(caught));
    assert_eq!((&outcome.error, &outcome.value), (&None, &json!(0)));
    assert_eq!(outcome.denied, ["network: nowhere.invalid"]);
    let later = run_command(Python::Plain, &command(&format!("{caught}\nrows[0]")));
    assert!(later.failure().message.starts_with("IndexError"), "{:?}", later.error);
    assert_eq!(later.denied, ["network: nowhere.invalid"]);
    // Controls: an error that ends the run is told once, by its line, and other code has no such lines.
    let uncaught = "import urllib.request\nurllib.request.urlopen('http://nowhere.invalid')";
    let outcome = run_command(Python::Plain, &command(uncaught));
    assert_eq!(outcome.denied, ["urllib.request.urlopen('http://nowhere.invalid')"]);
    assert_eq!(run_command(Python::Plain, &command("1")).denied, Vec::<String>::new());
}

/// Functions of `atexit` run however the program ends.
#[test]
fn exit_functions_run_after_an_exit_with_a_status() {
    for status in ["0", "2", "'no'"] {
        let code = format!("import atexit, sys\natexit.register(print, 'bye')\nsys.exit({status})");
        let outcome = run_command(Python::Plain, &command(&code));
        assert_eq!(outcome.stdout(), "bye\n", "{status}");
    }
}

#[test]
fn data_programs() {
    let small = "import pandas as pd\ndf = pd.DataFrame({'city': ['Rome', 'Oslo'], 'n': [1, 2]})\n";
    let frame = |code: &str| format!("{small}{code}");
    let (shown, grouped) = (frame("display(df)"), frame("df.groupby('city').n.sum()"));
    check(
        Python::Data,
        vec![
            (
                "from sklearn.cluster import KMeans\n\
                 len(set(KMeans(2, n_init=1, random_state=0).fit([[1], [2], [9]]).labels_.tolist()))",
                Gives(json!(2)),
            ),
            (
                "from sklearn.linear_model import LinearRegression\n\
                 round(float(LinearRegression().fit([[1], [2]], [2, 4]).predict([[3]])[0]), 6)",
                Gives(json!(6.0)),
            ),
            (
                "from sklearn.ensemble import RandomForestClassifier\n\
                 RandomForestClassifier(3, n_jobs=-1).fit([[0], [1]], [0, 1]).n_classes_",
                Gives(json!(2)),
            ),
            (
                "from joblib import Parallel, delayed\n\
                 Parallel(n_jobs=2)(delayed(abs)(n) for n in [-1, 2])",
                Gives(json!([1, 2])),
            ),
            (
                "from threadpoolctl import threadpool_info\n\
                 'openblas' in [pool['internal_api'] for pool in threadpool_info()]",
                Gives(json!(true)),
            ),
            ("from scipy import stats\nround(float(stats.norm.cdf(0)), 3)", Gives(json!(0.5))),
            (
                "import psutil\np = psutil.Process()\n\
                 [psutil.virtual_memory().total, p.memory_info().rss > 0, p.pid > 0, psutil.cpu_count() > 0]",
                Gives(json!([2_u64 << 30, true, true, true])),
            ),
            ("!pip install pandas 'numpy>=1'\nimport pandas\nTrue", Gives(json!(true))),
            (
                "import seaborn as sns\nimport matplotlib.pyplot as plt\nsns.lineplot(x=[1, 2], y=[3, 4])\nplt.show()",
                Gives(json!(null)),
            ),
            (&shown, Gives(json!(null))),
            (&grouped, Gives(json!({"Oslo": 2, "Rome": 1}))),
            (
                "import requests\ntry:\n    requests.get('http://nowhere.invalid')\n\
                 except requests.RequestException as e:\n    said = str(e)\n'no network in this run' in said",
                Gives(json!(true)),
            ),
        ],
    );
}

/// joblib has no locks between processes in a cell, and says nothing of it in every run.
#[test]
fn joblib_is_silent() {
    let outcome = run_command(Python::Data, &command("import joblib\njoblib.cpu_count()"));
    assert_eq!((outcome.error, outcome.prints), (None, vec![]));
}
