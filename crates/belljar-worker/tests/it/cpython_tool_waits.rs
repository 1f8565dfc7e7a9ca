//! How Python code waits for its tool calls: sync, awaited, in threads, not at all (D2).

use serde_json::json;

use crate::cpython_tools::{Cell, GuestFrame, echo};

/// Lets all of these calls come before the first is answered, and answers them in reverse.
fn reverse(code: &str, calls: usize) -> Cell {
    let mut cell = Cell::start(code);
    let heard: Vec<_> = (0..calls).map(|_| cell.call()).collect();
    for (call, arguments) in heard.into_iter().rev() {
        cell.reply(call, &arguments);
    }
    cell
}

/// D2: calls that are gathered are all on their way at once.
#[test]
fn gathered_calls_are_parallel() {
    let codes = [
        "import asyncio\nr = await asyncio.gather(*[mcp.a.b(i=i) for i in range(5)])\n[x['i'] for x in r]",
        "import asyncio\nr = [asyncio.create_task(mcp.a.b(i=i)) for i in range(5)]\n[(await t)['i'] for t in r]",
        "import asyncio\nr = [mcp.a.b(i=i) for i in range(5)]\n[(await t)['i'] for t in r]",
        "import asyncio\nawait asyncio.sleep(0)\nr = [mcp.a.b(i=i) for i in range(5)]\n[t['i'] for t in r]",
        "import asyncio\nr = {}\nasync def one(i):\n    r[i] = await asyncio.wait_for(mcp.a.b(i=i), 10)\nawait asyncio.gather(*map(one, range(5)))\n[r[i]['i'] for i in range(5)]",
        "import asyncio\nawait asyncio.sleep(0)\n[mcp.a.b(i=i)  for i in range(5)] and [0, 1, 2, 3, 4]",
    ];
    for code in codes {
        assert_eq!(reverse(code, 5).value(), json!([0, 1, 2, 3, 4]), "{code}");
    }
    // Control: without a loop a call waits for its reply, so the second comes after the first.
    let mut cell = Cell::start("[mcp.a.b(i=i)['i'] for i in range(2)]");
    let (call, arguments) = cell.call();
    cell.reply(call, &arguments);
    let (call, arguments) = cell.call();
    cell.reply(call, &arguments);
    assert_eq!((call, cell.value()), (2, json!([0, 1])));
}

/// D2: calls of threads are on their way at once, and each thread gets its own reply.
#[test]
fn calls_of_threads_are_parallel() {
    let code = "from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    rows = list(pool.map(lambda i: mcp.a.b(i=i)['i'], range(8)))
rows";
    assert_eq!(reverse(code, 8).value(), json!([0, 1, 2, 3, 4, 5, 6, 7]));
}

/// D2: threads and a loop call side by side, many times.
#[test]
fn threads_and_a_loop_share_the_way() {
    let code = "import asyncio
async def one(i):
    thread = asyncio.create_task(asyncio.to_thread(lambda: mcp.a.b(i=i)['i']))
    task = asyncio.create_task(mcp.a.b(i=-i))
    await asyncio.sleep(0)
    return [mcp.a.b(i=i * 2)['i'], await thread, (await task)['i']]
rows = await asyncio.gather(*map(one, range(60)))
rows == [[2 * i, i, -i] for i in range(60)]";
    let said = echo(code);
    assert_eq!(said.last(), Some(&GuestFrame::Done(json!(true))));
    assert_eq!(said.len(), 181);
    // Numbers are in the order of the frames, whoever made the call.
    for (before, heard) in said.iter().take(180).enumerate() {
        let GuestFrame::Call(head, _) = heard else { unreachable!("{heard:?}") };
        assert_eq!(head["call"], json!(before + 1));
    }
}

/// D2: a call can be awaited again, and by several.
#[test]
fn awaiting_twice_gives_the_same() {
    let code = "import asyncio
call = mcp.a.b(i=1)
first = await call
async def other(): return await call
rest = await asyncio.gather(call, call, other(), asyncio.create_task(call))
[first, *rest, all(x is first for x in rest)]";
    let one = json!({"i": 1});
    assert_eq!(echo(code).last(), Some(&GuestFrame::Done(json!([one, one, one, one, one, true]))));
    // Control: two calls are two.
    assert_eq!(echo("import asyncio\nawait mcp.a.b() is await mcp.a.b()").len(), 3);
}

/// D2: without `await` a call behaves as its value.
#[test]
fn unawaited_calls_behave_as_their_value() {
    let code = "import asyncio, copy, json, pickle
await asyncio.sleep(0)
d = lambda: mcp.a.b(x=1, y=[3, 2])
l = lambda: tools.call('l', d())
rows = {
    'index': d()['x'], 'len': len(d()), 'iter': list(d()), 'str': str(d()), 'repr': repr(d()),
    'eq': d() == {'x': 1, 'y': [3, 2]}, 'ne': d() != d(), 'in': 'x' in d(), 'not in': 'z' in d(),
    'bool': bool(d()), 'get': d().get('z', 5), 'items': list(d().items()), 'format': f'{d()}',
    'unpack': {**d()}, 'dict': dict(d()), 'sorted': sorted(d()['y']), 'json': json.dumps(d()),
    'copy': copy.deepcopy(d()), 'pickle': pickle.loads(pickle.dumps(d())), 'nested': [d()],
    'argument': l(), 'repeat': [d()['y'] * 2, d()['y'] + [1]],
}
rows";
    let value = json!({"x": 1, "y": [3, 2]});
    let shown = "{'x': 1, 'y': [3, 2]}";
    let said = echo(code);
    assert_eq!(
        said.last(),
        Some(&GuestFrame::Done(json!({
            "index": 1, "len": 2, "iter": ["x", "y"], "str": shown, "repr": shown,
            "eq": true, "ne": false, "in": true, "not in": false,
            "bool": true, "get": 5, "items": [["x", 1], ["y", [3, 2]]], "format": shown,
            "unpack": value, "dict": value, "sorted": [2, 3], "json": r#"{"x": 1, "y": [3, 2]}"#,
            "copy": value, "pickle": value, "nested": [value],
            "argument": value, "repeat": [[3, 2, 3, 2], [3, 2, 1]],
        })))
    );
}

/// D2: a call that was given up does not stand in the way of others, early or late.
#[test]
fn cancelled_calls_are_forgotten() {
    let mut cell = Cell::start(
        "import asyncio
try:
    await asyncio.wait_for(mcp.a.slow(), 0.01)
except asyncio.TimeoutError:
    said = 'given up'
[said, await mcp.a.fast()]",
    );
    let (slow, _) = cell.call();
    let (fast, _) = cell.call();
    cell.reply(slow, &json!("late"));
    cell.reply(fast, &json!("fast"));
    assert_eq!(cell.value(), json!(["given up", "fast"]));
    // After the end nobody reads it, and nobody minds.
    cell.reply(slow, &json!("later"));
    // Control: in time it is the value.
    let code = "import asyncio\nawait asyncio.wait_for(mcp.a.slow(i=1), 10)";
    assert_eq!(echo(code).last(), Some(&GuestFrame::Done(json!({"i": 1}))));
}

/// D2: timers go off while calls wait.
#[test]
fn timers_go_on_while_calls_wait() {
    let mut cell = Cell::start(
        "import asyncio
async def ticks():
    for n in range(3):
        await asyncio.sleep(0.001)
        print('tick', n)
    return 'ticked'
await asyncio.gather(mcp.a.b(), ticks())",
    );
    let (call, _) = cell.call();
    for n in 0..3 {
        assert_eq!(cell.hear(), GuestFrame::Print(format!("tick {n}\n")));
    }
    cell.reply(call, &json!("reply"));
    assert_eq!(cell.value(), json!(["reply", "ticked"]));
}

/// D2: the clock of the run goes on for the code, not for a call that is on its way.
#[test]
fn the_clock_of_the_code_stands_still_during_a_call() {
    let limit = json!({"limits": {"wall_ms": 200}});
    let start = |code| Cell::start_with(crate::cpython_harness::Python::Plain, code, &limit);
    let mut slow = start("mcp.a.b()");
    let mut control = start("x = 1\nwhile True: pass");
    let (call, _) = slow.call();
    // By the time this one is over, so is the time of the other.
    let error = control.error();
    assert_eq!((&error["code"], &error["line"]), (&json!("limit.timeout"), &json!(2)));
    slow.reply(call, &json!("slow"));
    assert_eq!(slow.value(), json!("slow"));
    let mut both = start("mcp.a.b()\nwhile True: pass");
    let (call, _) = both.call();
    both.reply(call, &json!("fast"));
    let error = both.error();
    assert_eq!((&error["code"], &error["line"]), (&json!("limit.timeout"), &json!(2)));
}

/// D2: where no call can be made, the error says so.
#[test]
fn calls_from_elsewhere_are_refused() {
    let child = "import os
reader, writer = os.pipe()
if os.fork() == 0:
    try:
        mcp.a.b()
    except RuntimeError as error:
        os.write(writer, str(error).encode())
    os._exit(0)
os.wait()
[os.read(reader, 1000).decode(), mcp.a.b(i=1)]";
    let refusal = "only the run's own process can call tools, not a child it forked; use threads or asyncio.gather to call several at a time";
    assert_eq!(echo(child).last(), Some(&GuestFrame::Done(json!([refusal, {"i": 1}]))));

    let mut nested = Cell::start(
        "import os, signal, threading
said = []
def handler(*_):
    try:
        mcp.a.nested()
    except RuntimeError as error:
        said.append(str(error))
    print('handled')
signal.signal(signal.SIGUSR1, handler)
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
value = mcp.a.b()
[value, said]",
    );
    let (call, _) = nested.call();
    assert_eq!(nested.hear(), GuestFrame::Print("handled\n".to_owned()));
    nested.reply(call, &json!("outer"));
    let refusal = "a tool cannot be called from a signal handler or destructor that runs while the code waits for another call";
    assert_eq!(nested.value(), json!(["outer", [refusal]]));
}
