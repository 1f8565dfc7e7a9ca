//! How much the host holds for a run, and when that ends the run.

use belljar_contract::{ErrorCode, Limits};
use belljar_wire::{Command, ToolReply};

use super::{InputQueue, OpenCalls};

fn reply(call: u32, bytes: usize) -> Command {
    Command::ToolReply(ToolReply { call, now_ms: None, outcome: Ok(vec![b' '; bytes]) })
}

#[test]
fn arguments_count_until_their_call_has_an_outcome() {
    let limits = Limits { result_bytes: 1 << 20, ..Limits::DEFAULT };
    let open = OpenCalls::new(&limits);
    let mut queue = InputQueue::new(&open, &limits);
    for at in 1..1000 {
        open.begin(at, 1 << 20).unwrap();
        queue.add(reply(at, 10)).unwrap();
    }
    let mut further = 1000..;
    let error = further.find_map(|at| open.begin(at, 1 << 20).err()).unwrap();
    assert_eq!(error.code, ErrorCode::LimitMemory);
    assert!(further.start < 1033, "{further:?}");
}

#[test]
fn one_call_may_have_as_much_as_a_value() {
    let limits = Limits { result_bytes: 64 << 20, ..Limits::DEFAULT };
    let open = OpenCalls::new(&limits);
    open.begin(1, 64 << 20).unwrap();
    open.begin(2, 1).unwrap_err();
}

#[test]
fn outcomes_count_until_they_are_sent() {
    let limits = Limits { memory: 10 << 20, ..Limits::DEFAULT };
    let open = OpenCalls::new(&limits);
    let mut queue = InputQueue::new(&open, &limits);
    for at in 1..100 {
        queue.add(reply(at, 4 << 20)).unwrap();
        queue.add(reply(at, 4 << 20)).unwrap();
        assert!(queue.next().is_some() && queue.next().is_some());
    }
    queue.add(reply(100, 4 << 20)).unwrap();
    queue.add(reply(101, 4 << 20)).unwrap();
    let error = queue.add(reply(102, 4 << 20)).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMemory);
}
