//! The process and the standard library as Python code finds them (A2, A5, A10).

use serde_json::{Value, json};

use crate::cpython_harness::{Python, command, granted, run, run_command, value};

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (code, expected) in cases {
        assert_eq!(value(code), *expected, "{code}");
    }
}

/// A5: the environment is what was granted and a few harmless names.
#[test]
fn environment() {
    let mut command = command("import os, time\n[dict(os.environ), time.tzname[0]]");
    command.grants.env = [("TOKEN".into(), "t".into()), ("TZ".into(), "Asia/Tokyo".into())].into();
    let outcome = run_command(Python::Plain, &command);
    assert_eq!(outcome.value[1], json!("JST"));
    let mut names: Vec<_> = outcome.value[0].as_object().expect("a dict").keys().collect();
    names.sort();
    let expected = [
        "HOME",
        "JOBLIB_MULTIPROCESSING",
        "LANG",
        "LOGNAME",
        "MPLBACKEND",
        "MPLCONFIGDIR",
        "PATH",
        "TMPDIR",
        "TOKEN",
        "TZ",
        "USER",
    ];
    assert_eq!(names, expected);
}

/// A2: folder, arguments, modules of the workspace.
#[test]
fn workspace() {
    check(&[
        (
            "import os, sys\n[os.environ['HOME'] in (os.getcwd(), '/work'), sys.argv, sys.path[0] == os.getcwd(), '' in sys.path]",
            json!([true, ["main.py"], true, false]),
        ),
        (
            "for n in range(3):\n    open(f'mod{n}.py', 'w').write(f'x = {n}')\n    __import__(f'mod{n}')\nimport mod2, os\n[mod2.x, os.path.exists('__pycache__')]",
            json!([2, false]),
        ),
        (
            "import inspect\ndef f():\n    return 1\ninspect.getsource(f)",
            json!("def f():\n    return 1\n"),
        ),
        ("import os.path\nos.path.basename(__file__)", json!("main.py")),
        (
            "import tempfile\nwith tempfile.NamedTemporaryFile() as f:\n    f.name.startswith('/tmp/')\n'ok'",
            json!("ok"),
        ),
    ]);
}

/// A2: cells do not share their random numbers.
#[test]
fn random_numbers_differ() {
    let code =
        "import random, uuid, tempfile\n[random.random(), str(uuid.uuid4()), tempfile.mktemp()]";
    let (one, two) = (value(code), value(code));
    for index in 0..3 {
        assert_ne!(one[index], two[index]);
    }
}

/// A2: copies of a process that was told to keep what modules want done after a fork: generators are
/// seeded anew, handlers of unknown modules run, locks are mended where code runs that may fork.
#[test]
#[expect(clippy::disallowed_methods, reason = "asks the machine's Python")]
fn a2_copies_of_a_zygote() {
    const SCRIPT: &str = "import os, sys
sys.path.insert(0, sys.argv[1])
from belljar_guest import forks
forks.keep()
import json, logging, random, threading
done = []
os.register_at_fork(after_in_child=lambda: done.append('other'))
random.gauss(0, 1)

def copy(act):
    reader, writer = os.pipe()
    if os.fork() == 0:
        act()
        drawn = [random.gauss(0, 1), random.random()]
        os.write(writer, json.dumps([drawn, done, threading.active_count()]).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(reader, 4096))

same = [copy(lambda: None) for _ in range(2)]
other = [copy(forks.reseed) for _ in range(2)]
threading.Thread(target=threading.Event().wait, daemon=True).start()
counted = [copy(lambda: None)[2]]
forks.grant()
counted.append(copy(lambda: None)[2])
forks.suspend()
counted.append(copy(lambda: None)[2])
forks.resume()
counted.append(copy(lambda: None)[2])
print(json.dumps([same[0] == same[1], other[0] == other[1], other[0][0][0] == same[0][0][0],
                  other[0][1], counted]))
";
    let place = format!("{}/forks-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    std::fs::create_dir_all(&place).expect("a directory");
    let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cpython/guest");
    std::os::unix::fs::symlink(guest, format!("{place}/belljar_guest")).expect("a link");
    // Without `site`, which may import any of these modules.
    let python = std::process::Command::new("python3")
        .args(["-I", "-S", "-B", "-c", SCRIPT])
        .arg(&place)
        .output();
    std::fs::remove_dir_all(&place).expect("it was made above");
    let output = python.expect("Python");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    // A copy that was neither seeded nor mended is the control.
    assert_eq!(told, json!([true, false, false, ["other"], [2, 1, 2, 1]]));
}

/// A2: asyncio works without sockets: threads wake the loop through a pipe.
#[test]
fn asyncio_without_sockets() {
    let no_sockets = "m = __import__('asyncio').selector_events.socket\ndef no(*a, **k): raise PermissionError(1, 'no')\nm.socketpair = m.socket.__init__ = no\n";
    let code = format!(
        "{no_sockets}import asyncio, time\nasync def main():\n    loop = asyncio.get_running_loop()\n    a = loop.run_in_executor(None, time.sleep, 0.01)\n    b = asyncio.to_thread(lambda: 'b')\n    return [await a, await b, await asyncio.wait_for(asyncio.sleep(0, 1), 1)]\nasyncio.run(main())"
    );
    assert_eq!(value(&code), json!([null, "b", 1]));
    let code = format!(
        "{no_sockets}import asyncio\np = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\nout, _ = await p.communicate(b'through')\n[out.decode(), p.returncode]"
    );
    let outcome = run_command(Python::Plain, &granted(&["subprocess"], &code));
    assert_eq!((outcome.error, outcome.value), (None, json!(["through", 0])));
}

/// A2: sqlite3 keeps databases in files, with no lock taken.
#[test]
fn sqlite_without_locks() {
    let no_locks = "import fcntl, sqlite3, pathlib\n";
    for target in
        ["'my db?.sqlite'", "pathlib.Path('a.db')", "'file:b.db?mode=rwc', uri=True", "':memory:'"]
    {
        let code = format!(
            "{no_locks}db = sqlite3.connect({target})\ndb.execute('create table t (x)')\ndb.execute('insert into t values (1)')\ndb.commit()\ndb.execute('select * from t').fetchall()"
        );
        assert_eq!(value(&code), json!([[1]]), "{target}");
    }
    let code = "import os, sqlite3\nsqlite3.connect('a b.db').execute('create table t (x)')\nsqlite3.connect('a b.db').execute('select count(*) from t').fetchone()[0], os.path.exists('a b.db')";
    assert_eq!(value(code), json!([0, true]));
}

/// A2, A10: threads end with the code: others are joined, daemons are not waited for.
#[test]
fn threads() {
    check(&[
        (
            "import threading, time\nseen = []\ndef work():\n    time.sleep(0.05)\n    seen.append(1)\nthreading.Thread(target=work).start()\nseen",
            json!([1]),
        ),
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n'done'",
            json!("done"),
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor(2)\nf = ex.submit(sum, [1, 2])\nf.result()",
            json!(3),
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as ex:\n    r = list(ex.map(str, range(3)))\nr",
            json!(["0", "1", "2"]),
        ),
    ]);
    let outcome = run(
        "import threading\ndef f(): raise ValueError('in thread')\nt = threading.Thread(target=f)\nt.start()\nt.join()\n'ok'",
    );
    assert_eq!(outcome.value, json!("ok"));
    assert!(outcome.prints.iter().any(|(_, text)| text.contains("ValueError: in thread")));
}

/// A2: processes have no locks in common, so pools of processes are pools of threads.
#[test]
fn a2_pools_of_processes_run_in_threads() {
    let code = "import multiprocessing as mp, os\nfrom multiprocessing.pool import Pool\n\
                def square(n): return n * n\n\
                with Pool(2) as pool:\n    first = pool.map(square, [1, 2, 3])\n\
                with mp.Pool(processes=2, maxtasksperchild=1) as pool:\n    second = pool.starmap(pow, [(2, 3), (3, 2)])\n\
                with mp.get_context('fork').Pool() as pool:\n    third = pool.apply_async(square, (9,)).get()\n\
                with mp.pool.ThreadPool(2) as pool:\n    fourth = pool.map(square, [4])\n\
                with Pool(2) as pool:\n    pids = set(pool.map(lambda _: os.getpid(), range(4)))\n\
                [first, second, third, fourth, pids == {os.getpid()}]";
    let outcome = run_command(Python::Plain, &granted(&["multiprocessing"], code));
    assert_eq!(outcome.value, json!([[1, 4, 9], [8, 9], 81, [16], true]));
}

/// A10: a value is not delayed by a fork that goes on.
#[test]
fn multiprocessing_children_do_not_answer() {
    let code = "import multiprocessing as mp\np = mp.get_context('fork').Process(target=print, args=('child',))\np.start()\np.join()\np.exitcode";
    let outcome = run_command(Python::Plain, &granted(&["multiprocessing"], code));
    assert_eq!((outcome.error, outcome.value), (None, json!(0)));
}
