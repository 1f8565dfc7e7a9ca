//! Python in a session: what one run makes is there in the next (B1).

use belljar_contract::{ErrorCode, Stream};
use belljar_wire::RunCommand;
use serde_json::{Value, json};

use crate::{
    cpython_harness::{Outcome, Python, command, granted, run, run_session},
    cpython_tools::{Cell, GuestFrame},
    harness::{codes, stack_of_old},
};

/// Runs code, one after the other, in one session.
fn session(codes: &[&str]) -> Vec<Outcome> {
    let commands: Vec<_> = codes.iter().map(|code| command(code)).collect();
    run_session(Python::Plain, &commands)
}

/// The value of the last of runs that must all succeed.
#[track_caller]
fn last(codes: &[&str]) -> Value {
    let outcomes = session(codes);
    for (code, outcome) in codes.iter().zip(&outcomes) {
        assert_eq!(outcome.error, None, "{code}");
    }
    outcomes.into_iter().next_back().expect("there is a run").value
}

fn hurried(code: &str) -> RunCommand {
    let mut command = command(code);
    command.limits.wall_ms = 300;
    command
}

/// B1: variables, imports, functions, classes and files outlive their run.
#[test]
fn b1_names_outlive_their_run() {
    let made = "import math as m, json
from collections import Counter
x: int = 1
a, *b = [2, 3, 4]
def double(n): return 2 * n
class Point:
    def __init__(self, n): self.n = n
async def later(n): return n
for i in range(3): pass
with open('note.txt', 'w') as file: file.write('kept')";
    let used = "[x + 1, a, b, double(4), Point(5).n, await later(6), i, m.floor(7.5), \
        json.loads('8'), Counter('aa')['a'], open('note.txt').read(), __name__, \
        '_' in globals()]";
    let expected = json!([2, 2, [3, 4], 8, 5, 6, 2, 7, 8, 2, "kept", "__main__", false]);
    assert_eq!(last(&[made, used]), expected);
    // Code with a `return` at its top level is another kind of program.
    let returned = "y = x * 10\ndef z(): return y\nif y: return z()";
    assert_eq!(last(&[made, returned, "[y, z()]"]), json!([10, 10]));
    // Control: without a session nothing stays.
    assert_eq!(run("'x' in globals()").value, json!(false));
}

/// B1: functions of earlier runs see what names mean now, and names may be bound again.
#[test]
fn b1_functions_see_later_changes() {
    let made = "n = 1\ndef step(): return n\ndef twice(): return 2 * step()";
    assert_eq!(last(&[made, "n = 5", "twice()"]), json!(10));
    assert_eq!(last(&[made, "def step(): return 100", "twice()"]), json!(200));
    assert_eq!(last(&[made, "class n: pass\nn = 3\ntwice()"]), json!(6));
    assert_eq!(
        last(&[
            "def grow():\n    global total\n    total = globals().get('total', 0) + 1",
            "grow()",
            "grow()\ntotal"
        ]),
        json!(2)
    );
}

/// B1: the value of a run is that of a single run; `result` counts in the run that sets it.
#[test]
fn b1_values_are_of_their_own_run() {
    let outcomes = session(&[
        "result = 5",
        "y = 1",
        "result",
        "print('x')",
        "result = 5",
        "result += 1",
        "None",
    ]);
    let values: Vec<_> = outcomes.into_iter().map(|outcome| outcome.value).collect();
    assert_eq!(
        values,
        [json!(5), json!(null), json!(5), json!(null), json!(5), json!(6), json!(null)]
    );
}

/// B1: a run in a session ends as it does alone, the places of its errors included.
#[test]
fn b1_a_run_in_a_session_is_like_any_other() {
    for code in [
        "1 + 1",
        "import sys\nprint('out')\nprint('err', file=sys.stderr)",
        "def f():\n    return missing\n\nf()",
        "{'a': 1}['b']",
        "x = [\n",
        "raise ValueError('no') from KeyError('why')",
        "import sys\nsys.exit(3)",
        "import sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "def f(): return f()\nf()",
        "import subprocess",
        "import asyncio\nasync def fail(): 1 / 0\ntask = asyncio.create_task(fail())\nawait asyncio.sleep(0.01)",
        "lambda: 1",
        "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('w')",
        "open('/nowhere')",
    ] {
        let single = run(code);
        let outcomes = session(&["unrelated = 1", code]);
        assert_eq!(outcomes.get(1), Some(&single), "{code}");
    }
}

/// B1: the state is there after an exception, a syntax error, an exit, a timeout, no memory.
#[test]
fn b1_state_outlives_failures() {
    // The limits of a session's process are those it is made with; here the code plays the jail.
    let first = "import resource
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
kept = ['first']";
    let full = "kept.append('full')\nhoard = []\nwhile True: hoard.append(bytearray(1 << 20))";
    let endless = "kept.append('stubborn')\nwhile True:\n    try:\n        while True: pass\n    \
        except ValueError: pass";
    let caught = "kept.append('caught')\nfor _ in range(3):\n    try:\n        while True: pass\n    \
        except BaseException: pass";
    let waiting = "import asyncio\nkept.append('waited')\nasync def spin():\n    while True: await \
        asyncio.sleep(0)\ntask = asyncio.create_task(spin())\nawait asyncio.sleep(60)";
    let outcomes = run_session(
        Python::Plain,
        &[
            command(first),
            command("kept.append('thrown')\n1 / 0"),
            command("kept.append("),
            command("import sys\nkept.append('exit')\nsys.exit(2)"),
            command("import os\nkept.append('_exit')\nos._exit(2)"),
            hurried(endless),
            hurried(caught),
            hurried("import time\nkept.append('slept')\ntime.sleep(60)"),
            hurried(waiting),
            command(full),
            command("kept.append(len(hoard) > 10)\ndel hoard"),
            command("kept"),
        ],
    );
    use ErrorCode as Code;
    let late = Some(Code::LimitTimeout);
    let expected = [
        None,
        Some(Code::RuntimeThrown),
        Some(Code::SyntaxInvalid),
        Some(Code::RuntimeExit),
        Some(Code::RuntimeExit),
        late,
        late,
        late,
        late,
        Some(Code::LimitMemory),
        None,
        None,
    ];
    assert_eq!(codes(&outcomes), expected, "{outcomes:#?}");
    let kept = json!([
        "first", "thrown", "exit", "_exit", "stubborn", "caught", "slept", "waited", "full", true
    ]);
    assert_eq!(outcomes.last().map(|outcome| &outcome.value), Some(&kept));
    let message = "timed out: the run went over its 300 ms of wall time, at line 4";
    assert_eq!(outcomes.get(5).map(|outcome| outcome.told().1), Some(message));
}

/// B1: errors in functions of earlier runs show the lines of those runs.
#[test]
fn b1_tracebacks_are_of_the_right_run() {
    let outcomes = session(&[
        "def outer(f):\n    # one\n    return inner(f)\n\ndef inner(f): return f().a",
        "x = 1",
        "\n\nouter(lambda: 1 / 0)",
        "outer(lambda: None)",
        "import traceback\ntry:\n    outer(lambda: None)\nexcept AttributeError as error:\n    \
         lines = [(one.filename, one.lineno, one.line) for one in traceback.extract_tb(error.__traceback__)]\nlines[-3:]",
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    let (error, stack) = (at(2).failure(), at(2).failure().stack.clone().unwrap_or_default());
    assert_eq!((error.line, error.column), (Some(3), Some(15)));
    for expected in [
        "File \"main.py\", line 3, in <module>\n    outer(lambda: 1 / 0)",
        "File \"<run 1>\", line 3, in outer\n    return inner(f)",
        "File \"<run 1>\", line 5, in inner\n    def inner(f): return f().a",
        "File \"main.py\", line 3, in <lambda>\n    outer(lambda: 1 / 0)",
    ] {
        assert!(stack.contains(expected), "{stack}");
    }
    assert_eq!((at(3).failure().line, at(3).failure().column), (Some(1), Some(1)));
    let lines = json!([
        ["<run 5>", 3, "outer(lambda: None)"],
        ["<run 1>", 3, "return inner(f)"],
        ["<run 1>", 5, "def inner(f): return f().a"]
    ]);
    assert_eq!(at(4).value, lines);
    let late = run_session(
        Python::Plain,
        &[command("def spin():\n    while True: pass"), hurried("spin()")],
    );
    let message = "timed out: the run went over its 300 ms of wall time, at line 2 of <run 1>";
    assert_eq!(late.get(1).map(Outcome::told), Some((ErrorCode::LimitTimeout, message)));
}

/// B1: the lines of earlier runs are kept within bounds; their functions still work.
#[test]
fn b1_old_sources_are_forgotten() {
    let first = "def old():\n    raise ValueError('old')";
    let filler = format!("# {}\n1", "x".repeat(1 << 20));
    let stack_after = |fillers| stack_of_old(session, first, &filler, fillers).unwrap_or_default();
    let text = "line 2, in old\n    raise ValueError('old')";
    assert!(stack_after(1).contains(text), "{}", stack_after(1));
    let forgotten = stack_after(4);
    assert!(forgotten.contains("<run 1>\", line 2, in old"), "{forgotten}");
    assert!(!forgotten.contains(text), "{forgotten}");
}

/// B1: context, environment, restricted mode and output are each run's own, for functions of
/// earlier runs too.
#[test]
fn b1_what_is_granted_is_of_one_run() {
    let with = |code: &str, modules: &[&str], env: &[(&str, &str)], context: &str| {
        let mut command = granted(modules, code);
        let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        command.grants.env = pairs.collect();
        command.context = context.into();
        command
    };
    let made = "import os
os.environ['MINE'] = 'm'
def look(): return [context.get('n'), os.environ.get('A'), os.environ.get('MINE')]
def reach():
    import pickle
    return eval('1 + 1')
print('first')
look() + [reach()]";
    let outcomes = run_session(
        Python::Plain,
        &[
            with(made, &["pickle", "eval"], &[("A", "a")], r#"{"n": 1}"#),
            with("look()", &[], &[], r#"{"n": 2}"#),
            with("context = {'n': 9}\nlook()", &[], &[("A", "b")], ""),
            with("look()", &[], &[], ""),
            with("reach()", &["eval"], &[], ""),
            with("import pickle\neval('1')", &["pickle"], &[], ""),
            with("reach()", &["pickle", "eval"], &[], ""),
        ],
    );
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!((&at(0).value, at(0).stdout()), (&json!([1, "a", "m", 2]), "first\n".to_owned()));
    assert_eq!((&at(1).value, at(1).prints.len()), (&json!([2, null, "m"]), 0));
    assert_eq!(at(2).value, json!([9, "b", "m"]));
    assert_eq!(at(3).value, json!([null, null, "m"]));
    for (index, what) in [(4, "import pickle"), (5, "eval()")] {
        let message = format!(
            "PermissionError: {what} is refused in restricted mode: {} is not granted",
            what.trim_start_matches("import ").trim_end_matches("()")
        );
        assert_eq!(at(index).told(), (ErrorCode::PermissionModule, message.as_str()));
        assert_eq!(at(index).denied.len(), 1);
    }
    assert_eq!(at(6).value, json!(2));
}

/// B1: what is granted in run after run is there in each, whatever code does about it, and what code
/// had there itself comes back when it is granted no longer. Builtins are Python's in every run.
#[test]
fn b1_what_stays_granted_is_as_it_was_granted() {
    let with = |code: &str, env: &[(&str, &str)]| {
        let mut command = command(code);
        let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        command.grants.env = pairs.collect();
        command
    };
    let (look, zone) = ("[os.environ.get('A'), len([1])]", [("A", "a"), ("TZ", "Asia/Tokyo")]);
    let commands = [
        with("import os, time\nos.environ['A'] = 'own'", &[]),
        with(look, &[("A", "a")]),
        with(look, &[("A", "a")]),
        with("os.environ['A'] = 'mine'\n__builtins__.len = repr\nlen([1])", &[("A", "a")]),
        with(look, &[("A", "a")]),
        with(look, &[]),
        with("del os.environ['A']", &[("A", "a")]),
        with(look, &[]),
        with("time.timezone", &zone),
        with("time.timezone", &zone),
        with("[time.timezone, 'TZ' in os.environ]", &[("A", "a")]),
    ];
    let outcomes = run_session(Python::Plain, &commands);
    let values: Vec<Value> = outcomes.into_iter().map(|outcome| outcome.value).collect();
    let (granted, tokyo) = (json!(["a", 1]), json!(-9 * 3600));
    let expected = json!([
        null,
        granted,
        granted,
        "[1]",
        granted,
        ["mine", 1],
        null,
        [null, 1],
        tokyo,
        tokyo,
        [0, false]
    ]);
    assert_eq!(Value::from(values), expected);
}

/// B1: what a run leaves running is not heard in later ones, and does them no harm.
#[test]
fn b1_leftovers_of_a_run_are_not_heard() {
    let outcomes = session(&[
        "import threading, time, asyncio, sys, io
done = threading.Event()
def chatter():
    while not done.is_set():
        print('chatter'); output('out'); debug('log'); time.sleep(0.005)
threading.Thread(target=chatter, daemon=True).start()
sys.stdout = io.StringIO()
raise ValueError('left')",
        "time.sleep(0.05)\nprint('second')",
        "async def forever():
    try:
        while True: await asyncio.sleep(0.001)
    finally: print('cancelled')
async def fails(): 1 / 0
lock, waiting = asyncio.Lock(), asyncio.create_task(forever())
failed = asyncio.create_task(fails())
coroutine = forever()
await asyncio.sleep(0.01)",
        "await asyncio.sleep(0.01)\nasync with lock: pass\n'third'",
        "from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
list(pool.map(abs, [-1, -2]))",
        "with ThreadPoolExecutor(2) as other: found = list(other.map(abs, [-3]))
try: pool.submit(abs, 1)
except RuntimeError: found.append('ended')
found",
        "done.set()\ncoroutine.close()\nthreading.active_count() >= 1",
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!(at(0).told(), (ErrorCode::RuntimeThrown, "ValueError: left"));
    let prints = [(Stream::Stdout, "second\n".to_owned())];
    assert_eq!((at(1).error.as_ref(), &at(1).prints[..]), (None, &prints[..]));
    assert_eq!(at(2).told().0, ErrorCode::RuntimeUnhandledRejection);
    assert_eq!(
        (at(3).error.as_ref(), &at(3).value, at(3).prints.len()),
        (None, &json!("third"), 0)
    );
    assert_eq!(at(4).value, json!([1, 2]));
    assert_eq!((at(5).error.as_ref(), &at(5).value), (None, &json!([3, "ended"])));
    assert_eq!(at(6).error, None);
}

/// B1: each run warns of its own lines; what is half printed belongs to its run.
#[test]
fn b1_output_is_each_runs_own() {
    let warn = "import warnings\nwarnings.warn('careful')\nprint('half', end='')";
    let outcomes = session(&[warn, warn, "print('whole')"]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    for index in [0, 1] {
        assert!(at(index).printed(Stream::Stderr).contains("UserWarning: careful"));
        assert_eq!(at(index).stdout(), "half");
    }
    assert_eq!(at(2).stdout(), "whole\n");
}

/// B1: what children print is captured in every run.
#[test]
fn b1_children_are_heard_in_each_run() {
    let shout = "import subprocess\nsubprocess.run(['echo', word])";
    let commands = [
        "word = 'one'",
        shout,
        "word = 'two'",
        shout,
        "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    os._exit(0)\nos.waitpid(pid, 0)[1]",
    ];
    let commands: Vec<_> = commands.iter().map(|code| granted(&["subprocess"], code)).collect();
    let outcomes = run_session(Python::Plain, &commands);
    let heard: Vec<_> = outcomes.iter().map(Outcome::stdout).collect();
    assert_eq!(heard, ["", "one\n", "", "two\n", "child\n"]);
}

/// B1: tools can be called in every run, by functions of earlier ones too; what an earlier run
/// left waiting, in a thread or as a call, ends with it.
#[test]
fn b1_tools_are_there_in_each_run() {
    let more = json!({"session": true});
    let made = "import threading, asyncio
def ask(n): return mcp.shop.double(n=n)
said = []
def wait():
    try: ask(-1)
    except RuntimeError as error: said.append(str(error))
ask(1)";
    let mut cell = Cell::start_with(Python::Plain, made, &more);
    answer(&mut cell);
    assert_eq!(cell.value(), json!(2));
    // A thread waits, and the run fails.
    cell.run("thread = threading.Thread(target=wait)\nthread.start()\nwhile not mcp: pass\nimport time\ntime.sleep(0.1)\n1 / 0", &more);
    let (late, _) = cell.call();
    assert_eq!(cell.error().get("code"), Some(&json!("runtime.thrown")));
    // The next frame is for the next run.
    cell.run("thread.join()\nsaid + [ask(2), tools.call('shop__double', {'n': 3})]", &more);
    let _ = late;
    answer(&mut cell);
    answer(&mut cell);
    let ended = "the run that made this call has ended; call the tool again";
    assert_eq!(cell.value(), json!([ended, 4, 6]));
    // A call nobody awaited, in a run that fails.
    cell.run("async def go(): pass\nleft = [ask(7)]\nawait go()\n1 / 0", &more);
    cell.call();
    assert_eq!(cell.error().get("code"), Some(&json!("runtime.thrown")));
    cell.run(
        "try: await left[0]\nexcept RuntimeError as error: text = str(error)\n[text, await ask(5)]",
        &more,
    );
    answer(&mut cell);
    assert_eq!(cell.value(), json!([ended, 10]));
}

/// Doubles the number of the next call.
#[track_caller]
fn answer(cell: &mut Cell) {
    let heard = cell.hear();
    let GuestFrame::Call(head, arguments) = heard else { unreachable!("no call, but {heard:?}") };
    let call = head.get("call").and_then(Value::as_u64).expect("a number");
    let n = arguments.get("n").and_then(Value::as_i64).expect("a number");
    cell.reply(call, &json!(2 * n));
}

/// B1: figures come back with the run that drew them, each under a name of its own.
#[test]
fn b1_figures_are_of_their_run() {
    let draw = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\n";
    let failing = format!("{draw}1 / 0");
    let commands = [command(draw), command(&failing), command("1"), command(draw)];
    let outcomes = run_session(Python::Data, &commands);
    let names: Vec<Vec<_>> = outcomes
        .iter()
        .map(|outcome| {
            outcome.artifacts.iter().filter_map(|path| path.rsplit('/').next()).collect()
        })
        .collect();
    assert_eq!(names, [vec!["figure-1.png"], vec![], vec![], vec!["figure-2.png"]]);
    let frame = "import pandas as pd\ndf = pd.DataFrame({'n': [1, 2]})";
    let outcomes = run_session(Python::Data, &[command(frame), command("df.n.sum()")]);
    assert_eq!(outcomes.get(1).map(|outcome| &outcome.value), Some(&json!(3)));
}

/// B1: a run in a session cannot be durable, and says so.
#[test]
fn b1_a_session_is_not_durable() {
    let more = json!({"session": true, "durable": {"seed": "00".repeat(32), "now_ms": 0.0}});
    let mut cell = Cell::start_with(Python::Plain, "1", &more);
    assert_eq!(cell.error().get("code"), Some(&json!("request.invalid")));
    cell.run("2", &json!({"session": true}));
    assert_eq!(cell.value(), json!(2));
}
