//! A10: a run that is stopped ends at once and leaves nothing behind.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    process::{Child, Stdio},
};

use belljar_testing::sandboxed;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use serde_json::json;

use crate::{
    command::{BELLJAR, Outcome, Place, outcome},
    descendants::descendants,
};

/// A run whose code never ends.
fn endless(place: &Place) -> Child {
    place
        .command(BELLJAR)
        .args(["run", "-c", "while (true) {}", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("the program under test starts")
}

fn is_alive(pid: u32) -> bool {
    // A zombie's memory is gone, and so is its line here.
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Stops an endless run by a signal once its cell is there.
fn stopped_by(send: impl FnOnce(Pid) -> rustix::io::Result<()>) -> Outcome {
    let place = Place::new();
    let mut child = endless(&place);
    // Host → warden → zygote → keeper → guest.
    let mut family = descendants(child.id());
    while family.len() < 4 && child.try_wait().expect("a child can be waited for").is_none() {
        std::thread::yield_now();
        family = descendants(child.id());
    }
    send(Pid::from_child(&child)).expect("a child can be signalled");
    let mut stdout = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("it is text");
    let ended = outcome(child.wait_with_output().expect("the program under test ends"));
    let left: Vec<u32> = family.into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, Vec::<u32>::new(), "processes are left behind");
    Outcome { stdout, ..ended }
}

#[sandboxed]
#[test]
fn a10_an_interrupted_run_is_aborted_and_leaves_no_process() {
    let ended = stopped_by(|pid| kill_process(pid, Signal::INT));
    assert_eq!(ended.status, Some(130), "{ended:#?}");
    let result = ended.json();
    assert_eq!(
        (&result["status"], &result["success"], &result["error"]["code"]),
        (&json!("aborted"), &json!(false), &json!("run.aborted"))
    );
}

#[sandboxed]
#[test]
fn a10_a_terminated_run_is_aborted_and_leaves_no_process() {
    let ended = stopped_by(|pid| kill_process(pid, Signal::TERM));
    assert_eq!((ended.status, &ended.json()["status"]), (Some(143), &json!("aborted")));
}

/// As a terminal does it: everything in the foreground gets the signal, the cell too.
#[sandboxed]
#[test]
fn a10_a_run_interrupted_from_its_terminal_is_aborted_and_leaves_no_process() {
    let ended = stopped_by(|pid| kill_process_group(pid, Signal::INT));
    assert_eq!((ended.status, &ended.json()["status"]), (Some(130), &json!("aborted")));
}
