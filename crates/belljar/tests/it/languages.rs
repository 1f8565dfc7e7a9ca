//! Python and bash through the whole program (A2, A3, A4, A5, A6, A10).

use std::path::Path;

use belljar_testing::{as_root, sandboxed};
use serde_json::{Value, json};

use crate::command::{BELLJAR, Place, belljar, outcome};

/// The result of a run in a place of its own.
fn run(arguments: &[&str]) -> Value {
    belljar(&[&["run", "--json"], arguments].concat()).json()
}

fn python(code: &str, more: &[&str]) -> Value {
    run(&[&["-l", "python", "-c", code], more].concat())
}

fn bash(code: &str, more: &[&str]) -> Value {
    run(&[&["-l", "bash", "-c", code], more].concat())
}

/// Type and code of the error.
fn error(result: &Value) -> (&str, &str) {
    let text = |key: &str| result["error"][key].as_str().unwrap_or("none");
    (text("type"), text("code"))
}

#[sandboxed]
#[test]
fn a2_python_gives_its_last_expression() {
    let result = python("x=[1,2,3]\nsum(x)", &[]);
    assert_eq!((&result["result"], &result["success"]), (&json!(6), &json!(true)), "{result:#}");
    assert_eq!(result["isolation"]["engine"], "cpython");
    assert_eq!(result["isolation"]["tier"], "full");
    let layers = result["isolation"]["layers"].as_array().unwrap().len();
    let script = run(&["-c", "1"]);
    assert_eq!(layers, script["isolation"]["layers"].as_array().unwrap().len());
}

#[sandboxed]
#[test]
fn a3_bash_prints_and_its_last_line_is_the_value() {
    let result = bash("printf \"%s\\n\" b a | sort", &[]);
    assert_eq!((&result["stdout"], &result["result"]), (&json!("a\nb\n"), &json!(null)));
    let result = bash("echo working; echo '{\"n\": [1, 2]}'", &[]);
    assert_eq!((&result["result"], &result["exit_code"]), (&json!({"n": [1, 2]}), &json!(0)));
    let result = bash("exit 3", &[]);
    assert_eq!(
        (error(&result), &result["exit_code"]),
        (("RuntimeError", "runtime.exit"), &json!(3))
    );
}

/// `data` is there in a run, restricted or not, and is not taken from the folder the code runs in.
#[sandboxed]
#[test]
fn a11_data_works_in_runs_of_python() {
    let grouped = python("data.group_by([1, 2, 3], lambda n: n % 2)", &[]);
    assert_eq!(grouped["result"], json!({"1": [1, 3], "0": [2]}), "{grouped:#}");
    assert_eq!(grouped["logs"], json!([]));
    let permissive = python("data.groupBy([1], lambda n: n)", &["--permissive"]);
    assert_eq!(permissive["result"], json!({"1": [1]}), "{permissive:#}");
    let own = "for name in ('calendar', 'unicodedata', 'belljar_guest'):\n    \
               open(f'/work/{name}.py', 'w').write('1 / 0')\n\
               [data.top_k([1, 2], 1), data.add_time('2024-02-28', 2, 'day').isoformat()[:10], len(dir(data)) > 40]";
    let result = python(own, &[]);
    assert_eq!(result["result"], json!([[2], "2024-03-01", true]), "{result:#}");
    let unknown = python("data.nothing", &[]);
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.contains("data has no 'nothing'; it has: "), "{message}");
}

/// Each request is refused, and succeeds with the grant: the control.
#[sandboxed]
#[test]
fn a4_a5_what_python_is_not_granted_it_cannot_reach() {
    let place = Place::new();
    let secret = place.file("secret.txt", "host data");
    let secret = secret.to_str().unwrap();
    let read = format!("open({secret:?}).read()");
    let denied = python(&read, &[]);
    assert_eq!(error(&denied), ("RuntimeError", "runtime.thrown"), "{denied:#}");
    assert!(denied["error"]["message"].as_str().unwrap().starts_with("FileNotFoundError"));
    let elsewhere = python("open('/etc/hostname').read()", &[]);
    assert!(elsewhere["error"]["hint"].as_str().unwrap().contains("--read"), "{elsewhere:#}");
    assert_eq!(python(&read, &["--read", secret])["result"], "host data");

    let write = format!("open({secret:?}, 'w').write('x')");
    let denied = python(&write, &["--read", secret]);
    assert_eq!(error(&denied).0, "PermissionError", "{denied:#}");
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "host data");
    assert_eq!(python(&write, &["--write", secret])["result"], 1);
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "x");

    let environment = "import os\nos.environ['TOKEN']";
    let denied = python(environment, &[]);
    assert!(denied["error"]["hint"].as_str().unwrap().contains("--env TOKEN"), "{denied:#}");
    assert_eq!(python(environment, &["--env", "TOKEN=abc"])["result"], "abc");
}

#[sandboxed]
#[test]
fn a2_restricted_mode_refuses_by_name_and_the_jail_holds_without_it() {
    let remove = "import subprocess\nsubprocess.run(['rm', '-rf', '/'])";
    let refused = python(remove, &[]);
    assert_eq!(error(&refused), ("PermissionError", "permission.module"));
    assert!(refused["error"]["hint"].as_str().unwrap().contains("--module subprocess"));
    assert_eq!(refused["error"]["missing"], json!({"kind": "modules", "name": "subprocess"}));
    let refused = python(remove, &["--permissive"]);
    assert_eq!(error(&refused), ("PermissionError", "permission.command"), "{refused:#}");
    // The control: what was granted runs.
    let echo = "import subprocess\nsubprocess.run(['echo', 'hi'], capture_output=True).stdout";
    let granted = python(echo, &["--module", "subprocess", "--command", "echo"]);
    assert_eq!(granted["result"], "aGkK", "{granted:#}");

    let connect = "import socket\nsocket.create_connection(('127.0.0.1', 1))";
    assert_eq!(error(&python(connect, &[])), ("PermissionError", "permission.module"));
    let refused = python(connect, &["--module", "socket"]);
    assert_eq!(error(&refused), ("PermissionError", "permission.network"));

    let raw = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
               [libc.syscall(41, 2, 1, 0), libc.syscall(39) > 0]";
    assert_eq!(error(&python(raw, &[])), ("PermissionError", "permission.module"));
    assert_eq!(python(raw, &["--permissive"])["result"], json!([-1, true]));
}

#[sandboxed]
#[test]
fn a3_a4_bash_has_the_commands_it_was_granted() {
    for (code, reason) in [("git x", "not granted to this run"), ("sudo id", "no other user")] {
        let result = bash(code, &[]);
        assert_eq!(error(&result), ("PermissionError", "permission.command"), "{result:#}");
        assert!(result["stderr"].as_str().unwrap().contains(reason), "{result:#}");
    }
    let by_path = bash("/usr/bin/perl x", &[]);
    assert_eq!(error(&by_path), ("PermissionError", "permission.command"), "{by_path:#}");
    let granted = bash("perl -e 'print 1'", &["--command", "perl"]);
    assert_eq!((&granted["success"], &granted["stdout"]), (&json!(true), &json!("1")));
    let ordinary = bash("touch x; rm x; mkdir d; rmdir d; ls; whoami; hostname; ps | wc -l", &[]);
    let said = "user\nbelljar\n2\n";
    assert_eq!((&ordinary["success"], &ordinary["stdout"]), (&json!(true), &json!(said)));
    for path in ["/etc/x", "/usr/x", "/x", "/usr/bin/x", "/belljar/x"] {
        let result = bash(&format!("echo x > {path}"), &[]);
        let said = result["stderr"].as_str().unwrap();
        assert!(
            said.contains("Read-only file system") || said.contains("Permission denied"),
            "{said}"
        );
    }
    assert_eq!(bash("echo x > /work/x; cat x", &[])["stdout"], "x\n");
}

#[sandboxed]
#[test]
fn a6_python_and_bash_end_at_their_limits() {
    let bomb = python("x = []\nwhile True: x.append('a' * 10_000_000)", &["--memory", "64MiB"]);
    assert_eq!(error(&bomb), ("MemoryError", "limit.memory"), "{bomb:#}");
    let deaf = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n\
                while True: pass";
    let spin = python(deaf, &["--timeout", "500ms"]);
    assert_eq!(error(&spin).0, "TimeoutError", "{spin:#}");
    let kept = python("print('before')\nwhile True: pass", &["--timeout", "300ms"]);
    assert_eq!((&kept["stdout"], &kept["error"]["line"]), (&json!("before\n"), &json!(2)));
    let forks = python("import os\nwhile True: os.fork()", &["--timeout", "2s"]);
    assert_eq!(forks["success"], false, "{forks:#}");
    let forks = bash(":(){ :|:& };:; sleep 30", &["--timeout", "1s"]);
    assert_eq!(error(&forks).0, "TimeoutError", "{forks:#}");
    for flood in [python("while True: print('x' * 1000)", &[]), bash("yes", &[])] {
        assert_eq!(error(&flood), ("LimitError", "limit.output"), "{flood:#}");
        assert_eq!(flood["stdout"].as_str().unwrap().len(), 64 << 10);
        assert_eq!(flood["truncated"]["stdout"], true);
    }
    // Memory of all processes together.
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (printf -v x '%040000000d' 0; sleep 5) & done; wait";
    let many = bash(many, &["--memory", "64MiB"]);
    assert_eq!(error(&many), ("MemoryError", "limit.memory"), "{many:#}");
}

/// The library's handlers around a fork run when code forks, whatever was skipped in making its
/// cell: no lock is held for ever, no thread is counted that is not there, no number drawn twice.
#[sandboxed]
#[test]
fn a2_a_child_of_python_code_is_whole() {
    let code = "import json, logging, os, random, signal, threading, time
is_taken = threading.Event()
def hold():
    logging._lock.acquire()
    is_taken.set()
    time.sleep(0.2)
    logging._lock.release()
threading.Thread(target=hold).start()
is_taken.wait()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(5)
    logging.getLogger('child').info('said by nobody')
    os.write(writer, json.dumps([threading.active_count(), random.random()]).encode())
    os._exit(0)
status = os.waitpid(child, 0)[1]
os.close(writer)
threads, number = json.loads(os.read(reader, 1000) or b'[0, 0]')
return [status, threads, number == random.random()]";
    let result = python(code, &["--permissive"]);
    assert_eq!(result["result"], json!([0, 1, false]), "{result:#}");
}

#[sandboxed]
#[test]
fn a5_bad_grants_are_told() {
    let told = |arguments: &[&str]| {
        let result = run(arguments);
        let text = |key: &str| result["error"][key].as_str().unwrap_or("none").to_owned();
        format!("{}: {}", text("code"), text("message"))
    };
    insta::assert_snapshot!(told(&["-c", "1", "--read", "/no/such"]), @"request.invalid: cannot grant reading of /no/such: No such file or directory (os error 2)");
    insta::assert_snapshot!(told(&["-c", "1", "--read", "/tmp"]), @"request.invalid: cannot grant reading of /tmp: the cell has its own files there");
    insta::assert_snapshot!(told(&["-c", "1", "--write", "/"]), @"request.invalid: cannot grant writing to /: the cell has its own files there");
    insta::assert_snapshot!(told(&["-c", "1", "--workspace", "/"]), @"request.invalid: cannot use / as the workspace: it is the root directory");
    insta::assert_snapshot!(told(&["-c", "1", "--command", "ls"]), @"request.invalid: commands cannot be granted here: the engine quickjs starts no programs");
    insta::assert_snapshot!(told(&["-l", "sh", "-c", "1", "--command", "no-such"]), @"request.invalid: the command no-such does not exist on this machine, or not below /usr");
    insta::assert_snapshot!(told(&["-l", "sh", "-c", "1", "--command", "../x"]), @r#"request.invalid: "../x" is not a name of a command"#);
    insta::assert_snapshot!(told(&["-l", "sh", "-c", "1", "--module", "os"]), @"request.invalid: modules cannot be granted here: the engine bash imports no modules");
    insta::assert_snapshot!(told(&["-l", "py", "-c", "1", "--env", "A-B=1"]), @r#"request.invalid: "A-B" is not a name of an environment variable"#);
}

/// A root host shows cells the files of their owner as their own, which not every file system can do.
#[sandboxed]
#[as_root]
#[test]
fn a5_a_file_system_that_maps_no_owner_is_told() {
    let script = r#"mkdir d && mount -t "$1" "$1" d && echo there > d/x &&
        exec "$2" run --json -l bash -c 'cat "$DIR/x"' --env DIR="$PWD/d" --read d"#;
    let granted = |file_system: &str| {
        let place = Place::new();
        let mut command = place.command("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", file_system, BELLJAR]);
        outcome(command.output().unwrap()).json()
    };
    let refused = granted("ramfs");
    assert_eq!(error(&refused), ("PermissionError", "permission.file"), "{refused:#}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not support id-mapped mounts"), "{message}");
    // Control: another file system, the same way.
    let control = granted("tmpfs");
    assert_eq!(control["stdout"], "there\n", "{control:#}");
}

#[sandboxed]
#[test]
fn c2_files_come_back_from_every_language() {
    let javascript = "fs.mkdirSync('/work/out'); fs.writeFileSync('/work/out/a.txt', 'hi')";
    let python_code = "import os\nos.mkdir('out')\nopen('out/a.txt', 'w').write('hi')";
    let results = [
        run(&["-c", javascript]),
        python(python_code, &[]),
        bash("mkdir out; printf hi > out/a.txt", &[]),
    ];
    for result in results {
        let expected =
            json!([{"path": "out/a.txt", "mediaType": "text/plain", "bytes": 2, "data": "aGk="}]);
        assert_eq!(result["artifacts"], expected, "{result:#}");
        assert_eq!(result["changes"], json!([]));
    }
    let place = Place::new();
    let named = "open('/work/b.csv', 'w').write('x')\nartifact('/work/b.csv')";
    let arguments = ["run", "-l", "python", "-c", named, "--artifacts", "got"];
    assert_eq!(place.belljar(&arguments).status, Some(0));
    assert_eq!(std::fs::read_to_string(place.path().join("work/got/b.csv")).unwrap(), "x");
}

#[sandboxed]
#[test]
fn a5_javascript_sees_the_variables_it_was_granted() {
    let code = "return [process.env.TOKEN, 'TOKEN' in process.env, Object.keys(process.env)]";
    let granted = run(&["-c", code, "--env", "TOKEN=abc"]);
    assert_eq!(granted["result"], json!(["abc", true, ["TOKEN"]]), "{granted:#}");
    // The grant of one is not the grant of another.
    let other = run(&["-c", "return process.env.OTHER ?? 'none'", "--env", "TOKEN=abc"]);
    assert_eq!(other["result"], json!("none"), "{other:#}");
    // Code that fails for want of one is told how to get it.
    let failed = run(&["-c", "if (!process.env.TOKEN) throw new Error('no TOKEN')"]);
    assert!(failed["error"]["hint"].as_str().unwrap().contains("--env TOKEN"), "{failed:#}");
}

/// The use of a guest is known even if it ends itself before it could be measured.
#[sandboxed]
#[test]
fn a9_a_guest_that_kills_itself_is_measured_all_the_same() {
    let code = "import os, time\nx = 'x' * 50_000_000\n\
                while time.process_time() < 0.2: pass\nos.kill(os.getpid(), 9)";
    let result = python(code, &[]);
    assert_eq!(error(&result), ("SandboxError", "sandbox.crashed"), "{result:#}");
    let metric = |name: &str| result["metrics"][name].as_f64().unwrap();
    assert!(metric("cpuTimeMs") >= 190.0, "{result:#}");
    assert!(metric("memoryUsedMB") >= 50.0, "{result:#}");
}

/// A flood of small frames does not keep the host from looking at the clock.
#[sandboxed]
#[test]
fn a6_the_clock_is_looked_at_during_a_flood() {
    let limits = ["--timeout", "500ms", "--max-output", "16MiB"];
    let result = python("while True: print()", &limits);
    assert_eq!(error(&result), ("TimeoutError", "limit.timeout"), "{result:#}");
}

/// A2: pools work in a cell, where processes and queues have no locks in common.
#[sandboxed]
#[test]
fn a2_pools_work_in_a_cell() {
    let code = "from multiprocessing import Pool\nfrom multiprocessing.pool import ThreadPool\n\
                with Pool(2) as pool:\n    squares = pool.map(lambda n: n * n, [1, 2, 3])\n\
                with ThreadPool() as pool:\n    squares += pool.map(lambda n: n * n, [4])\nsquares";
    let result = python(code, &["--module", "multiprocessing"]);
    assert_eq!(result["result"], json!([1, 4, 9, 16]), "{result:#}");
    // Control: what shares a lock between processes says so.
    let result =
        python("import multiprocessing as mp\nmp.Lock()", &["--module", "multiprocessing"]);
    assert!(result["error"]["hint"].to_string().contains("cannot share locks"), "{result:#}");
}

/// Runs Python that has numpy, pandas and matplotlib; `scripts/test` sets it up.
fn data_python(code: &str) -> Value {
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python-data/bin");
    assert!(programs.is_dir(), "{}: run scripts/test once, it sets this up", programs.display());
    let path = std::env::var("PATH").unwrap_or_default();
    let place = Place::new();
    let mut command = place.command(BELLJAR);
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.args(["run", "--json", "-l", "python", "-c", code]);
    outcome(command.output().unwrap()).json()
}

#[sandboxed]
#[test]
fn a2_a8_tables_come_back_as_records_and_figures_as_files() {
    let code = "import pandas as pd\n\
                sales = pd.DataFrame({'city': ['Rome', 'Oslo', 'Rome'], 'n': [1, 2, 3]})\n\
                sales.groupby('city').n.sum().reset_index()";
    let result = data_python(code);
    let expected = json!([{"city": "Oslo", "n": 2}, {"city": "Rome", "n": 4}]);
    assert_eq!((&result["result"], &result["success"]), (&expected, &json!(true)), "{result:#}");
    let long = data_python("import pandas as pd\npd.DataFrame({'n': range(5000)})");
    assert_eq!(
        (long["result"].as_array().unwrap().len(), &long["truncated"]["result"]),
        (1000, &json!(true))
    );
    let threads = "import numpy, threading\n\
                   [threading.active_count(), float(numpy.ones((50, 50)).dot(numpy.ones(50))[0])]";
    assert_eq!(data_python(threads)["result"], json!([1, 50.0]));
    let figure = data_python("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()");
    let artifact = &figure["artifacts"][0];
    assert_eq!(artifact["path"], "out/figure-1.png", "{figure:#}");
    assert_eq!(artifact["mediaType"], "image/png");
}
