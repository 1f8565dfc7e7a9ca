//! Durable runs of Python code: the same inputs in the same order give the same run (D6).
//!
//! Each program runs three times: with each input sent as late as can be, with all of them sent
//! before the code starts, and that once more in another process. What it says must not differ.

use serde_json::{Value, json};

use crate::{
    cpython_harness::Python,
    cpython_tools::{Cell, GuestFrame},
};

const START: f64 = 1_731_500_000_000.0;

/// The frames that the host sends.
#[derive(Debug, Clone, Copy)]
enum Input {
    /// A reply to this call, with its number as the value, so many milliseconds after the start.
    Reply(u64, f64),
    /// It is so many milliseconds after the start.
    Timer(f64),
}

impl Input {
    fn send(self, cell: &mut Cell) {
        match self {
            Self::Reply(call, at) => cell.reply_at(call, &json!({ "call": call }), START + at),
            Self::Timer(at) => cell.timer(START + at),
        }
    }

    /// Whether the host can know of it, having heard this.
    fn is_caused_by(self, said: &[GuestFrame]) -> bool {
        match self {
            Self::Reply(call, _) => said
                .iter()
                .any(|one| matches!(one, GuestFrame::Call(head, _) if head["call"] == json!(call))),
            Self::Timer(at) => {
                let wanted = |one: &GuestFrame| matches!(one, GuestFrame::TimerWanted(when) if *when <= START + at);
                said.iter().any(wanted)
            }
        }
    }
}

fn start(python: Python, seed: &str, code: &str) -> Cell {
    let durable = json!({"seed": seed.repeat(32), "now_ms": START});
    Cell::start_with(python, code, &json!({ "durable": durable }))
}

/// Sends each input as soon as there is a reason for it, and no sooner.
fn play_late(code: &str, inputs: &[Input]) -> Vec<GuestFrame> {
    let mut cell = start(Python::Plain, "5a", code);
    let (mut said, mut left) = (Vec::new(), inputs.iter());
    let mut next = left.next();
    loop {
        said.push(cell.hear());
        if matches!(said.last(), Some(GuestFrame::Done(_) | GuestFrame::Failed(_))) {
            return said;
        }
        while let Some(input) = next.filter(|input| input.is_caused_by(&said)) {
            input.send(&mut cell);
            next = left.next();
        }
    }
}

/// Sends all inputs before the code can ask for any.
fn play_early(python: Python, seed: &str, code: &str, inputs: &[Input]) -> Vec<GuestFrame> {
    let mut cell = start(python, seed, code);
    for input in inputs {
        input.send(&mut cell);
    }
    let mut said = Vec::new();
    while !matches!(said.last(), Some(GuestFrame::Done(_) | GuestFrame::Failed(_))) {
        said.push(cell.hear());
    }
    said
}

/// Plays the program all three ways; what it said.
#[track_caller]
fn replay(code: &str, inputs: &[Input]) -> Vec<GuestFrame> {
    let late = play_late(code, inputs);
    assert_eq!(play_early(Python::Plain, "5a", code, inputs), late, "inputs are there early");
    assert_eq!(play_early(Python::Again, "5a", code, inputs), late, "another process");
    late
}

#[track_caller]
fn value_of(said: &[GuestFrame]) -> &Value {
    let Some(GuestFrame::Done(value)) = said.last() else { unreachable!("{said:?}") };
    value
}

/// D6: chance comes from the seed, whoever is asked.
#[test]
fn chance_comes_from_the_seed() {
    let code = "import os, random, secrets, tempfile, uuid
def draw():
    return [
        random.random(), random.Random().random(), random.SystemRandom().random(), random.sample(range(1000), 3),
        secrets.token_hex(8), secrets.randbelow(10**9), os.urandom(6).hex(), str(uuid.uuid4()), str(uuid.uuid1()),
        tempfile.mktemp(dir='/'),
    ]
first = draw()
random.seed()
mcp.a.b(draw=random.random(), id=uuid.uuid4())
print(random.shuffle(first), {f'k{i}' for i in range(30)}, hash('x'))
return [first, draw(), random.Random(7).random()]";
    let said = replay(code, &[Input::Reply(1, 10.0)]);
    let drawn = value_of(&said);
    assert_ne!(drawn[0], drawn[1]);
    assert_eq!(drawn[2], json!(0.323_832_764_833_162_37));
    // Control: another seed is another run.
    let other = play_early(Python::Plain, "a5", code, &[Input::Reply(1, 10.0)]);
    assert_ne!(value_of(&other)[0], drawn[0]);
    assert_eq!(value_of(&other)[2], drawn[2]);
}

/// D6: every clock shows the time of the last input, and stands still in between.
#[test]
fn clocks_show_the_last_input() {
    let code = "import datetime, logging, time
def look():
    a = [time.time(), time.time_ns(), time.monotonic(), time.perf_counter(), time.process_time(), time.gmtime().tm_sec,
        datetime.datetime.now(), datetime.datetime.utcnow(), datetime.datetime.now(datetime.timezone.utc),
        datetime.datetime.today(), datetime.date.today(), time.strftime('%S'), time.ctime()]
    sum(range(100_000))
    assert time.time() == a[0] and time.monotonic() == a[2]
    return a
looks = [look()]
mcp.a.b()
looks.append(look())
time.sleep(60)
looks.append(look())
logging.warning('%s', logging.makeLogRecord({}).created)
looks";
    let said = replay(code, &[Input::Reply(1, 1500.25), Input::Timer(61_501.0)]);
    let expected = |time: f64, up: f64, clock: &str| {
        let second: u32 = clock[6..8].parse().expect("a number");
        let ns = json!((time * 1e6) as u64 * 1000);
        let iso = format!("2024-11-13T{clock}");
        let zoned = format!("{iso}+00:00");
        let text = format!("Wed Nov 13 {} 2024", &clock[..8]);
        json!([
            time,
            ns,
            up,
            up,
            up,
            second,
            iso,
            iso,
            zoned,
            iso,
            "2024-11-13",
            &clock[6..8],
            text
        ])
    };
    assert_eq!(
        *value_of(&said),
        json!([
            expected(1_731_500_000.0, 1000.0, "12:13:20"),
            expected(1_731_500_001.500_25, 1_001.500_25, "12:13:21.500250"),
            expected(1_731_500_061.501, 1_061.501, "12:14:21.501000"),
        ])
    );
    let wanted: Vec<_> =
        said.iter().filter(|one| matches!(one, GuestFrame::TimerWanted(_))).collect();
    assert_eq!(wanted, [&GuestFrame::TimerWanted(START + 61_501.0)]);
}

/// D6: the classes of `datetime` stay what they are.
#[test]
fn datetime_stays_itself() {
    let code = "import copy, datetime, pickle
now = datetime.datetime.now()
class Mine(datetime.datetime): pass
return [type(now) is datetime.datetime, isinstance(now, datetime.date), repr(now), type(Mine.now()) is Mine,
    pickle.loads(pickle.dumps(now)) == now, copy.copy(now) == now, (now - datetime.timedelta(days=1)).day,
    str(datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=2))))]";
    let said = replay(code, &[]);
    assert_eq!(
        *value_of(&said),
        json!([
            true,
            true,
            "datetime.datetime(2024, 11, 13, 12, 13, 20)",
            true,
            true,
            true,
            12,
            "2024-11-13 14:13:20+02:00"
        ])
    );
}

const RACE: &str = "import asyncio, random, time
async def sleeper(name, seconds):
    await asyncio.sleep(seconds)
    print('woke', name, time.time())
    return name
async def caller(n):
    reply = await mcp.a.b(n=n, at=time.time(), chance=random.random())
    print('got', n, reply, time.time())
    return n
tasks = [asyncio.create_task(one) for one in (sleeper('a', 0.3), caller(1), sleeper('b', 0.1), caller(2))]
done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
print([task.result() for task in done], len(pending))
done, _ = await asyncio.wait(tasks)
order = [task.result() for task in done]
try:
    await asyncio.wait_for(mcp.a.slow(), 0.25)
except asyncio.TimeoutError:
    print('too slow', time.time())
return [order, mcp.a.last(at=time.time())['call'], time.time()]";

/// D6: replies and timers race, and the order of inputs alone decides.
#[test]
fn the_order_of_inputs_decides_races() {
    let replies_first = [
        Input::Reply(2, 7.3),
        Input::Reply(1, 33.0),
        Input::Timer(100.0),
        Input::Timer(300.5),
        Input::Timer(551.0),
        Input::Reply(4, 600.0),
    ];
    let said = replay(RACE, &replies_first);
    assert_eq!(
        prints(&said),
        "got 2 {'call': 2} 1731500000.0073\n[2] 3\ngot 1 {'call': 1} 1731500000.033\n\
         woke b 1731500000.1\nwoke a 1731500000.3005\ntoo slow 1731500000.551\n"
    );
    assert_eq!(*value_of(&said), json!([["a", 1, "b", 2], 4, 1_731_500_000.6]));
    // Control: the same program with timers first.
    let timers_first = [
        Input::Timer(100.0),
        Input::Timer(300.5),
        Input::Reply(1, 333.0),
        Input::Reply(2, 377.3),
        Input::Reply(3, 377.4),
        Input::Reply(4, 600.0),
    ];
    let said = replay(RACE, &timers_first);
    assert_eq!(
        prints(&said),
        "woke b 1731500000.1\n['b'] 3\nwoke a 1731500000.3005\n\
         got 1 {'call': 1} 1731500000.333\ngot 2 {'call': 2} 1731500000.3773\n"
    );
    let wanted: Vec<_> = said
        .iter()
        .filter_map(
            |one| if let GuestFrame::TimerWanted(at) = one { Some(at - START) } else { None },
        )
        .collect();
    assert_eq!(wanted, [100.0, 300.0, 628.0]);
}

fn prints(said: &[GuestFrame]) -> String {
    let texts = said.iter().filter_map(|one| match one {
        GuestFrame::Print(text) => Some(text.as_str()),
        GuestFrame::Call(..)
        | GuestFrame::TimerWanted(_)
        | GuestFrame::Done(_)
        | GuestFrame::Failed(_)
        | GuestFrame::Other(..) => None,
    });
    texts.collect()
}

/// D6: a call that waits lets other replies take effect on the way, in their order.
#[test]
fn a_waiting_call_keeps_the_replies_of_others() {
    let code = "import asyncio, time
seen = []
async def other():
    seen.append((await mcp.a.other())['call'])
    seen.append(time.time())
task = asyncio.create_task(other())
await asyncio.sleep(0)
value = mcp.a.mine()['call']
seen.append(value)
await task
return [seen, await mcp.a.third()]";
    let inputs = [Input::Reply(1, 5.0), Input::Reply(2, 6.0), Input::Reply(3, 7.0)];
    let said = replay(code, &inputs);
    assert_eq!(*value_of(&said), json!([[2, 1, 1_731_500_000.006], {"call": 3}]));
}

/// D6: what would not be the same again is refused.
#[test]
fn threads_are_kept_out() {
    let tool = "import threading
said = []
def work():
    try:
        mcp.a.b()
    except RuntimeError as error:
        said.append(str(error))
thread = threading.Thread(target=work)
thread.start()
thread.join()
[said, mcp.a.b()]";
    let said = replay(tool, &[Input::Reply(1, 1.0)]);
    let refusal = "a tool cannot be called from a thread in a durable run, whose threads would not run in the same order again; call from the main thread, with asyncio.gather for several at a time";
    assert_eq!(*value_of(&said), json!([[refusal], {"call": 1}]));

    for (code, says) in [
        ("import asyncio\nawait asyncio.to_thread(len, [])", "wait for a thread"),
        (
            "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor\nawait asyncio.wrap_future(ThreadPoolExecutor(1).submit(len, []))",
            "wait for a thread",
        ),
        ("import asyncio\nawait asyncio.create_subprocess_exec('true')", "wait for files, pipes"),
    ] {
        let said = replay(code, &[]);
        let Some(GuestFrame::Failed(error)) = said.last() else { unreachable!("{said:?}") };
        let message = error["message"].as_str().expect("a message");
        assert!(message.starts_with("RuntimeError: an event loop cannot"), "{message}");
        assert!(message.contains(says), "{message}");
    }
    // Control: threads that only work do, and what waits for them has the real clock.
    let code = "import queue, time
from concurrent.futures import ThreadPoolExecutor
def work(n):
    time.sleep(0.001)
    return n * n
with ThreadPoolExecutor(4) as pool:
    squares = list(pool.map(work, range(5)))
try:
    queue.Queue().get(timeout=0.01)
except queue.Empty:
    squares.append('empty')
squares";
    assert_eq!(*value_of(&replay(code, &[])), json!([0, 1, 4, 9, 16, "empty"]));
}

/// D6: numpy and pandas draw from the seed and look at the same clock.
#[test]
fn data_packages_are_durable_too() {
    let code = "import numpy as np, pandas as pd, time
def draw():
    return [np.random.rand(), np.random.default_rng().random(), np.random.RandomState().rand(), pd.Series(range(99)).sample(2).tolist()]
looks = lambda: [pd.Timestamp.now(), pd.Timestamp.utcnow().isoformat(), pd.Timestamp.today(), pd.Timestamp('now'), pd.to_datetime('now', utc=True).isoformat()]
first = looks()
mcp.a.b(draw=draw())
return [draw(), first, looks()]";
    let inputs = [Input::Reply(1, 1000.0)];
    let first = play_early(Python::Data, "5a", code, &inputs);
    assert_eq!(play_early(Python::Data, "5a", code, &inputs), first);
    let clock = |second: u32| {
        let local = format!("2024-11-13T12:13:{second}");
        let utc = format!("{local}+00:00");
        json!([local, utc, local, local, utc])
    };
    assert_eq!(value_of(&first)[1], clock(20));
    assert_eq!(value_of(&first)[2], clock(21));
    // Control: another seed is another run.
    let other = play_early(Python::Data, "a5", code, &inputs);
    assert_ne!(value_of(&other)[0], value_of(&first)[0]);
}
