//! Tool calls of Python code: how they are spelled, what leaves the cell, what comes back (D1, D2).
//!
//! The host is played here, frame by frame.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::cpython_harness::{Python, connect};

const RUN: u8 = 1;
const TOOL_REPLY: u8 = 2;
const TIMER: u8 = 3;
const READY: u8 = 65;
const PRINT: u8 = 67;
const DONE: u8 = 69;
const FAILED: u8 = 70;
const TOOL_CALL: u8 = 72;
const TIMER_WANTED: u8 = 73;

/// The frames of a cell, as far as these tests look at them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GuestFrame {
    /// A call: its head, its arguments.
    Call(Value, Value),
    /// It wants to be told when it is this late.
    TimerWanted(f64),
    /// The text of a print.
    Print(String),
    /// The value of a run that succeeded.
    Done(Value),
    /// The error of a run that failed.
    Failed(Value),
    /// The kind and head of any other frame.
    Other(u8, Value),
}

/// A cell that runs code.
#[derive(Debug)]
pub(crate) struct Cell {
    socket: UnixStream,
}

impl Cell {
    /// Starts a run that is not durable.
    pub(crate) fn start(code: &str) -> Self {
        Self::start_with(Python::Plain, code, &json!({}))
    }

    /// Starts a run; `more` is put into the head of the command, over what is there.
    pub(crate) fn start_with(python: Python, code: &str, more: &Value) -> Self {
        let socket = connect(python);
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket takes a timeout");
        let mut cell = Self { socket };
        assert_eq!(cell.read_frame().0, READY);
        cell.run(code, more);
        cell
    }

    /// Starts a run in a cell that has none; `more` is as above.
    pub(crate) fn run(&mut self, code: &str, more: &Value) {
        let mut head = json!({
            "language": "python", "file_name": "main.py", "code_bytes": code.len(),
            "limits": {
                "memory_bytes": 2_u64 << 30, "wall_ms": 20_000, "cpu_ms": 20_000,
                "result_bytes": 1 << 20, "processes": 32, "open_files": 256,
            },
            "grants": {"modules": ["pickle", "subprocess"]},
            "durable": null,
        });
        merge(&mut head, more);
        self.send(RUN, &head, code.as_bytes());
    }

    /// The next thing it says.
    pub(crate) fn hear(&mut self) -> GuestFrame {
        let (kind, head, body) = self.read_frame();
        let json = |body: &[u8]| serde_json::from_slice(body).expect("the body is JSON");
        match kind {
            TOOL_CALL => GuestFrame::Call(head, json(&body)),
            TIMER_WANTED => {
                let at_ms = head.get("at_ms").and_then(Value::as_f64);
                GuestFrame::TimerWanted(at_ms.expect("a number"))
            }
            PRINT => GuestFrame::Print(String::from_utf8(body).expect("prints are UTF-8")),
            DONE => GuestFrame::Done(json(&body)),
            FAILED => GuestFrame::Failed(head),
            other => GuestFrame::Other(other, head),
        }
    }

    /// The next call: its number and its arguments.
    #[track_caller]
    pub(crate) fn call(&mut self) -> (u64, Value) {
        let heard = self.hear_next();
        let GuestFrame::Call(head, arguments) = heard else {
            unreachable!("no call, but {heard:?}")
        };
        (number_of(&head), arguments)
    }

    /// The value it ends with.
    #[track_caller]
    pub(crate) fn value(&mut self) -> Value {
        let heard = self.hear_next();
        let GuestFrame::Done(value) = heard else { unreachable!("no value, but {heard:?}") };
        value
    }

    /// The error it ends with.
    #[track_caller]
    pub(crate) fn error(&mut self) -> Value {
        let heard = self.hear_next();
        let GuestFrame::Failed(error) = heard else { unreachable!("no error, but {heard:?}") };
        error
    }

    /// The next thing it says that is not printed.
    fn hear_next(&mut self) -> GuestFrame {
        loop {
            let heard = self.hear();
            if !matches!(heard, GuestFrame::Print(_)) {
                return heard;
            }
        }
    }

    /// Answers a call with a value.
    pub(crate) fn reply(&mut self, call: u64, value: &Value) {
        self.reply_bytes(call, value.to_string().as_bytes());
    }

    /// Answers a call with JSON as it is.
    pub(crate) fn reply_bytes(&mut self, call: u64, value: &[u8]) {
        self.send(TOOL_REPLY, &json!({"call": call, "ok": true, "now_ms": null}), value);
    }

    /// Answers a call in a durable run.
    pub(crate) fn reply_at(&mut self, call: u64, value: &Value, now_ms: f64) {
        let head = json!({"call": call, "ok": true, "now_ms": now_ms});
        self.send(TOOL_REPLY, &head, value.to_string().as_bytes());
    }

    /// Tells a durable run how late it is.
    pub(crate) fn timer(&mut self, now_ms: f64) {
        self.send(TIMER, &json!({ "now_ms": now_ms }), b"");
    }

    /// Answers a call with a failure.
    pub(crate) fn fault(&mut self, call: u64, code: &str, message: &str) {
        self.fault_of("mail__send", call, code, message);
    }

    /// Answers a call with a failure of this tool.
    pub(crate) fn fault_of(&mut self, tool: &str, call: u64, code: &str, message: &str) {
        let fault = json!({
            "code": code, "message": message, "hint": "what to do", "toolName": tool,
        });
        let head = json!({"call": call, "ok": false, "now_ms": null});
        self.send(TOOL_REPLY, &head, fault.to_string().as_bytes());
    }

    fn send(&mut self, kind: u8, head: &Value, body: &[u8]) {
        let head = head.to_string();
        let length = |bytes: usize| u32::try_from(bytes).expect("it fits").to_le_bytes();
        let header = [&[kind, 0, 0, 0][..], &length(head.len()), &length(body.len())].concat();
        let frame = [&header, head.as_bytes(), body].concat();
        self.socket.write_all(&frame).expect("the cell listens");
    }

    fn read_frame(&mut self) -> (u8, Value, Vec<u8>) {
        let mut header = [0; 12];
        self.socket.read_exact(&mut header).expect("the cell says something");
        let [kind, _, _, _, a, b, c, d, e, f, g, h] = header;
        let mut part = |length: [u8; 4]| {
            let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
            self.socket.read_exact(&mut bytes).expect("a frame is whole");
            bytes
        };
        let head = serde_json::from_slice(&part([a, b, c, d])).expect("a head is JSON");
        (kind, head, part([e, f, g, h]))
    }
}

fn number_of(head: &Value) -> u64 {
    head.get("call").and_then(Value::as_u64).expect("a call has a number")
}

fn merge(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        if value.is_object() && into[name].is_object() {
            merge(&mut into[name], value);
        } else {
            into[name] = value.clone();
        }
    }
}

/// Runs code, answers every call with its arguments, and gives what it said.
pub(crate) fn echo(code: &str) -> Vec<GuestFrame> {
    let mut cell = Cell::start(code);
    let mut said = Vec::new();
    loop {
        let heard = cell.hear();
        if let GuestFrame::Call(head, arguments) = &heard {
            cell.reply(number_of(head), arguments);
        }
        let is_last = matches!(heard, GuestFrame::Done(_) | GuestFrame::Failed(_));
        said.push(heard);
        if is_last {
            return said;
        }
    }
}

/// D1: a call leaves as it is written, and its reply is the value.
#[test]
fn calls_leave_as_written() {
    let cases: &[(&str, Value, &str, Value)] = &[
        ("mcp.git.log(n=1)", json!("git"), "log", json!({"n": 1})),
        ("mcp.git.log({'n': 1})", json!("git"), "log", json!({"n": 1})),
        ("mcp.git.log({'n': 1}, path='.')", json!("git"), "log", json!({"n": 1, "path": "."})),
        ("mcp.git.log()", json!("git"), "log", json!({})),
        ("mcp.git.log(None)", json!("git"), "log", json!({})),
        ("mcp.git.log(context)", json!("git"), "log", json!({})),
        ("mcp['my-git']['log.all'](self=1)", json!("my-git"), "log.all", json!({"self": 1})),
        ("tools.call('git__log', {'n': 1})", json!(null), "git__log", json!({"n": 1})),
        ("tools.call('git__log', name='x')", json!(null), "git__log", json!({"name": "x"})),
        ("tools.call('git__log', args={'n': 1})", json!(null), "git__log", json!({"n": 1})),
        ("tools.call('git__log')", json!(null), "git__log", json!({})),
        ("__callTool__('git__log', {'n': 1})", json!(null), "git__log", json!({"n": 1})),
        ("tools.search('mail')", json!("belljar"), "search", json!({"intent": "mail", "k": 5})),
        ("tools.describe('a__b')", json!("belljar"), "describe", json!({"name": "a__b"})),
        ("tools.list()", json!("belljar"), "list", json!({})),
        ("load('blob_1')", json!("belljar"), "load", json!({"handle": "blob_1"})),
    ];
    for (code, server, tool, arguments) in cases {
        let head = json!({"call": 1, "server": server, "tool": tool, "line": 2});
        let expected =
            [GuestFrame::Call(head, arguments.clone()), GuestFrame::Done(arguments.clone())];
        assert_eq!(echo(&format!("\n{code}")), expected, "{code}");
    }
}

/// D1: arguments follow the rules of values; calls are numbered; the line is the agent's.
#[test]
fn arguments_travel_like_values() {
    let code = "import datetime, json
def many(tool, things):
    return [tool(day=datetime.date(2024, 1, 2), tags={'b', 'a'}, n=n)['n'] for n in things]
class Mapping(dict): pass
return many(mcp.a.b, [1, 2]) + [mcp.a.b(Mapping(x=(1, None)))]";
    let arguments = |n| json!({"day": "2024-01-02", "tags": ["a", "b"], "n": n});
    let head = |call, line| json!({"call": call, "server": "a", "tool": "b", "line": line});
    let last = json!({"x": [1, null]});
    assert_eq!(
        echo(code),
        [
            GuestFrame::Call(head(1, 3), arguments(1)),
            GuestFrame::Call(head(2, 3), arguments(2)),
            GuestFrame::Call(head(3, 5), last.clone()),
            GuestFrame::Done(json!([1, 2, last])),
        ]
    );
}

/// D1: what is no call says how to write one, and nothing leaves.
#[test]
fn misspelt_calls_say_how() {
    let cases = [
        (
            "mcp.a.b('x')",
            "TypeError: mcp.a.b() takes its arguments by name, mcp.a.b(name=value), or as one dict; it was given str",
        ),
        (
            "mcp.a.b(1, 2)",
            "TypeError: mcp.a.b() takes its arguments by name, mcp.a.b(name=value), or as one dict; it was given 2 values",
        ),
        ("mcp.a.b({'x': 1}, x=2)", "TypeError: mcp.a.b() got 'x' twice: in the dict and by name"),
        (
            "tools.call('a__b', [1])",
            "TypeError: tools.call() takes its arguments by name, tools.call('a__b', name=value), or as one dict; it was given list",
        ),
        ("tools.call(1)", "TypeError: the name of a tool must be a string, not int"),
        ("mcp.a()", "TypeError: mcp.a is a server; call one of its tools: mcp.a.TOOL(name=value)"),
        (
            "mcp.a.b.c()",
            "AttributeError: mcp.a.b is a tool and has no 'c'; call it, mcp.a.b(...), or if there is a tool 'b.c': mcp.a['b.c'](...)",
        ),
        ("list(mcp)", "TypeError: 'Servers' object is not iterable"),
        ("mcp.a['x' * 2000]()", "ToolError: no tool has a name of more than 1024 bytes"),
    ];
    for (code, message) in cases {
        let said = echo(code);
        let [GuestFrame::Failed(error)] = said.as_slice() else { unreachable!("{code}: {said:?}") };
        assert_eq!(error["message"], *message, "{code}");
    }
}

/// D1: an argument JSON has no place for is an error with its path, before anything leaves.
#[test]
fn unserialisable_arguments_do_not_leave() {
    let code = "try:
    mcp.a.b(rows=[1, {'f': print}])
except SerializationError as error:
    caught = [str(error), error.code, isinstance(error, TypeError)]
caught.append(mcp.a.b(rows=[1, {'f': 'print'}])['rows'])
mcp.a.b(x=mcp)";
    let said = echo(code);
    let path = "args.rows[1].f is a function, which JSON cannot represent";
    let control = json!({"rows": [1, {"f": "print"}]});
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(
        said[0],
        GuestFrame::Call(json!({"call": 1, "server": "a", "tool": "b", "line": 5}), control)
    );
    let GuestFrame::Failed(error) = &said[1] else { unreachable!("{said:?}") };
    assert_eq!(error["code"], "serialization.unsupported");
    assert_eq!(
        error["message"],
        "SerializationError: args.x is a tool, which JSON cannot represent"
    );
    assert_eq!(error["line"], 6);
    let caught = echo(&code.replace("\nmcp.a.b(x=mcp)", "\ncaught"));
    assert_eq!(
        caught.last(),
        Some(&GuestFrame::Done(json!([
            path,
            "serialization.unsupported",
            true,
            [1, {"f": "print"}]
        ])))
    );
}

/// D1: arguments over the limit do not leave either.
#[test]
fn large_arguments_do_not_leave() {
    let fits = "len(mcp.a.b(text='x' * 1_000_000)['text'])";
    assert_eq!(echo(fits).last(), Some(&GuestFrame::Done(json!(1_000_000))));
    let said = echo("mcp.a.b(text='x' * 1_100_000)");
    let [GuestFrame::Failed(error)] = said.as_slice() else { unreachable!("{said:?}") };
    assert_eq!(error["code"], "limit.result");
    assert_eq!(error["message"], "LimitError: the arguments are larger than 1 MiB of JSON");
}

/// D1: a reply of 20 MB arrives whole, between small ones.
#[test]
fn a_large_reply_arrives_whole() {
    let mut cell = Cell::start(
        "a, big, c = await __import__('asyncio').gather(mcp.a.a(), mcp.a.big(), mcp.a.c())
return [a, len(big), big[0], big[-1], c]",
    );
    for expected in 1..=3 {
        assert_eq!(cell.call().0, expected);
    }
    let row = json!({"name": "a row with ünïcode", "n": 123_456}).to_string();
    let rows = vec![row.as_str(); 500_000];
    let body = format!("[{}]", rows.join(","));
    assert!(body.len() > 20 << 20, "{}", body.len());
    cell.reply(1, &json!("first"));
    cell.reply_bytes(2, body.as_bytes());
    cell.reply(3, &json!("last"));
    let row: Value = serde_json::from_str(&row).expect("a row is JSON");
    assert_eq!(cell.value(), json!(["first", 500_000, row, row, "last"]));
}

/// D1: a reply there is no memory for is an error of its own call only.
#[test]
fn a_reply_without_memory_harms_no_other() {
    let code = "try:
    said = len(mcp.a.big())
except MemoryError:
    said = 'no memory'
[said, mcp.a.small()]";
    let limit = json!({"limits": {"memory_bytes": 400_u64 << 20}});
    let play = |bytes: usize| {
        let mut cell = Cell::start_with(Python::Plain, code, &limit);
        let (call, _) = cell.call();
        cell.reply_bytes(call, format!("\"{}\"", "x".repeat(bytes)).as_bytes());
        let (call, _) = cell.call();
        cell.reply(call, &json!("small"));
        cell.value()
    };
    assert_eq!(play(400 << 20), json!(["no memory", "small"]));
    // Control: what fits is read.
    assert_eq!(play(1 << 20), json!([1 << 20, "small"]));
}
