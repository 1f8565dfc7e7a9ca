//! A session's cell takes run after run (B1); what is left over of one does not disturb the next.

use std::{io::Write, os::unix::net::UnixStream};

use belljar_contract::ErrorCode;
use belljar_wire::{
    Caps, Command, Event, RunCommand, RunValue, ToolReply, read_message, write_message,
};

use crate::cpython_harness::{Python, command, connect};

const CAPS: Caps = Caps { body_bytes: 1 << 26, text_bytes: 64 * 1024 };

fn session() -> UnixStream {
    let mut socket = connect(Python::Plain);
    assert_eq!(hear(&mut socket), Event::Ready);
    socket
}

fn hear(socket: &mut UnixStream) -> Event {
    read_message(socket, CAPS).expect("the cell goes on")
}

fn send(socket: &mut UnixStream, code: &str) {
    let run = RunCommand { session: true, ..command(code) };
    write_message(socket, &Command::Run(run)).expect("the cell takes a run");
}

fn value(socket: &mut UnixStream, code: &str) -> String {
    send(socket, code);
    let heard = hear_the_end(socket);
    let Event::Done(RunValue { value, .. }) = heard else { return format!("{heard:?}") };
    String::from_utf8(value).expect("JSON is text")
}

/// Skips printed lines: the last words of threads come at any time.
fn hear_the_end(socket: &mut UnixStream) -> Event {
    loop {
        let event = hear(socket);
        if !matches!(event, Event::Print { .. }) {
            return event;
        }
    }
}

#[test]
fn b1_a_session_takes_run_after_run() {
    let mut socket = session();
    assert_eq!(value(&mut socket, "1 + 1"), "2");
    send(&mut socket, "1 / 0");
    assert!(matches!(hear(&mut socket), Event::Failed(error)
        if error.code == ErrorCode::RuntimeThrown));
    assert_eq!(value(&mut socket, "3"), "3");
    // Control: a run that is not of a session is the last.
    write_message(&mut socket, &Command::Run(command("4"))).expect("the cell takes a run");
    assert!(matches!(hear(&mut socket), Event::Done(_)));
    send(&mut socket, "5");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(300))).expect("a time");
    assert!(read_message::<Event>(&mut socket, CAPS).is_err());
}

/// A reply may come when the code that asked for it has ended, in the middle of it even.
#[test]
fn b1_a_reply_that_comes_too_late_is_passed_over() {
    for size in [10, 1 << 20] {
        let mut socket = session();
        // Waits for the first call only, and reads the beginning of the other reply on the way.
        send(&mut socket, "mcp.a.b()\nraise SystemExit(3)");
        assert!(matches!(hear(&mut socket), Event::ToolCall(call) if call.call == 1));
        let reply = |call, body| {
            let reply = Command::ToolReply(ToolReply { call, now_ms: None, outcome: Ok(body) });
            let mut bytes = Vec::new();
            write_message(&mut bytes, &reply).expect("fits a frame");
            bytes
        };
        let (first, late) = (reply(1, b"0".to_vec()), reply(9, vec![b'0'; size]));
        let (begun, rest) = late.split_at(40);
        socket.write_all(&[&first, begun].concat()).expect("the cell reads");
        assert!(matches!(hear(&mut socket), Event::Failed(_)));
        socket.write_all(rest).expect("the cell reads");
        assert_eq!(value(&mut socket, "7"), "7");
    }
}

/// A thread that still waits for a reply when the run is over takes nothing of the next one's.
#[test]
fn b1_a_thread_left_behind_reads_nothing() {
    let mut socket = session();
    let code = "import threading, time
started = threading.Event()
def wait():
    started.set()
    mcp.a.b()
for _ in range(3):
    threading.Thread(target=wait, daemon=True).start()
started.wait()
time.sleep(0.05)
8";
    send(&mut socket, code);
    let mut asked = 0;
    let last = loop {
        let event = hear_the_end(&mut socket);
        let Event::ToolCall(call) = event else { break event };
        asked += 1;
        assert_eq!(call.call, asked);
    };
    assert!((1..=3).contains(&asked), "{asked}");
    assert!(matches!(&last, Event::Done(done) if done.value == b"8"), "{last:?}");
    for number in 0..5 {
        assert_eq!(value(&mut socket, &format!("{number}")), number.to_string());
    }
}
