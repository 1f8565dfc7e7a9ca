//! Reliability 14: a store that is gone, a disk that is full, an owner that cannot be looked up, and a
//! host that does not end.

use std::{
    fs,
    net::TcpStream,
    process::{Command, Stdio},
};

use belljar_contract::WorkflowStatus;
use belljar_store::Store;
use belljar_testing::{crash_points, sandboxed};
use belljar_workflow::{
    WorkflowStore as _,
    workflow_store::{ClaimReason, LeaseRequest},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    command::{BELLJAR, Place, block_on, outcome},
    descendants::descendants,
    ledger_support::{LedgerProject, Transport},
    mcp_support::{Project, serve_in, within},
    workflow_support::WorkflowWatch,
};

/// A store that is deleted under a host: that is noticed, and nothing more is acknowledged.
#[sandboxed]
#[test]
fn reliability_14_a_host_whose_store_is_gone_says_so_and_refuses_durable_work() {
    let project = Project::new(&[], "");
    let serving = project.serve(&[]);
    let health = || serving.http("GET /healthz", &[("Host", serving.address())], "");
    let durable = json!({ "code": "return 6 * 7", "durable": true }).to_string();
    let before = serving.api("POST /v1/runs", &durable);
    assert!(before.status == 200 && before.body.contains("42"), "control: {before:#?}");
    assert_eq!(health().status, 200, "control");
    let metrics = serving.api("GET /metrics", "").body;
    for line in ["store_bytes{kind=\"runs\"} ", "store_file_bytes ", "store_free_bytes "] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    fs::remove_file(project.path(".belljar/belljar.db")).unwrap();
    let ill = health();
    assert_eq!(ill.status, 503, "{ill:#?}");
    assert!(ill.body.contains("deleted or replaced") && !ill.body.contains("/"), "{ill:#?}");
    let after = serving.api("POST /v1/runs", &durable);
    assert!(after.body.contains("cannot make the run durable"), "{after:#?}");
    assert!(after.body.contains("was deleted or replaced while it was in use"), "{after:#?}");
    // Runs that need no record still work.
    let plain = serving.api("POST /v1/runs", &json!({ "code": "return 6 * 7" }).to_string());
    assert!(plain.body.contains("42"), "{plain:#?}");
}

/// A place whose `work` is a file system of two megabytes, as root in a mount namespace of its own.
fn in_small_file_system(place: &Place, script: &str) -> Command {
    let work = place.path().join("work");
    fs::create_dir_all(&work).unwrap();
    let mut command = place.command("unshare");
    let script = format!(
        "set -e; mount -t tmpfs -o size=2m tmpfs {0}; cd {0}; B={BELLJAR}; {script}",
        work.display()
    );
    command.args(["--mount", "sh", "-c", &script]);
    command
}

/// Reliability 14: with a full disk, what needs no room still works, and the rest says why it does not.
#[sandboxed]
#[test]
fn reliability_14_a_full_disk_is_told_and_what_needs_no_room_works() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can make a file system that is full");
        return;
    }
    let place = Place::new();
    let script = "$B run --durable -c 'return 1' >/dev/null 2>&1; test -s .belljar/belljar.db; \
        dd if=/dev/zero of=filler bs=4096 2>/dev/null || true; \
        echo runs; $B runs --json; \
        echo plain; $B run -c 'return 6 * 7'; \
        echo durable; $B run --durable -c 'return 6 * 7' 2>&1 || echo refused; \
        rm filler; echo again; $B run --durable -c 'return 6 * 7'";
    let ran = outcome(in_small_file_system(&place, script).output().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    let said = |from: &str, to: &str| {
        let (_, rest) = ran.stdout.split_once(from).unwrap_or_else(|| panic!("{ran:#?}"));
        rest.split_once(to).map_or(rest, |(said, _)| said).trim().to_owned()
    };
    assert!(said("runs\n", "plain\n").contains("\"status\": \"completed\""), "{ran:#?}");
    assert_eq!(said("plain\n", "durable\n"), "42", "{ran:#?}");
    let refused = said("durable\n", "again\n");
    assert!(refused.contains("no space left on the file system of"), "{ran:#?}");
    assert!(refused.ends_with("refused") && !refused.contains("42"), "{ran:#?}");
    assert_eq!(said("again\n", "\n\n"), "42", "{ran:#?}");
}

/// Reliability 14: an owner in another pid namespace lives as long as it holds its lock.
#[sandboxed]
#[test]
fn reliability_14_a_live_owner_in_another_pid_namespace_is_not_taken_for_dead() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can make a pid namespace here");
        return;
    }
    let place = Place::new();
    let code = "await new Promise(done => setTimeout(done, 600000)); return 1";
    let mut elsewhere = place
        .command("unshare")
        .args(["--pid", "--fork", "--kill-child", "--mount-proc", BELLJAR])
        .args(["run", "--durable", "--timeout", "15m", "-c", code])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let state = place.path().join("work/.belljar");
    let id = within("a durable run", || {
        assert!(elsewhere.try_wait().unwrap().is_none(), "it has ended");
        let store = state.join("belljar.db").is_file().then(|| Store::open(&state).ok())??;
        let run = block_on(store.runs(1, None)).ok()?.pop()?;
        Some(run.id)
    });
    let listed = || place.belljar(&["runs", "--json"]).json()[0]["status"].clone();
    assert_eq!(listed(), "running");
    let refused = place.belljar(&["resume", &id]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("is still running"), "{refused:#?}");
    // Control: once it is dead, it is known to be.
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
    within("its end", || (listed() == "interrupted").then_some(()));
    assert_eq!(place.belljar(&["runs", "rm", &id]).status, Some(0));
}

/// The end of a host that cannot end politely: its wardens are frozen.
fn stop_frozen(arguments: &[&str], again: bool) -> (Option<i32>, String) {
    let project = Project::new(&[], "");
    let log = project.path("log");
    let mut host = project
        .command(BELLJAR)
        .args(["serve", "--http", "127.0.0.1:0"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let address = within("belljar serve", || {
        let said = fs::read_to_string(&log).ok()?;
        let (_, rest) = said.split_once("listening on http://")?;
        rest.split_once("/mcp").map(|(address, _)| address.to_owned())
    });
    let frozen = descendants(host.id());
    assert!(!frozen.is_empty());
    let send = |pid: u32, signal| {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal)
    };
    for pid in &frozen {
        send(*pid, Signal::STOP).unwrap();
    }
    send(host.id(), Signal::TERM).unwrap();
    within("the first signal", || TcpStream::connect(&address).is_err().then_some(()));
    if again {
        send(host.id(), Signal::TERM).unwrap();
    }
    let status = within("its end", || host.try_wait().unwrap());
    for pid in frozen {
        let _ = send(pid, Signal::KILL);
    }
    (status.code(), fs::read_to_string(log).unwrap())
}

#[sandboxed]
#[test]
fn reliability_14_a_second_signal_ends_a_host_at_once() {
    let (status, said) = stop_frozen(&["--stop-within", "10m"], true);
    assert_eq!(status, Some(143), "{said}");
    assert!(said.contains("ending at once: terminated"), "{said}");
}

#[sandboxed]
#[test]
fn reliability_14_a_stop_has_a_deadline() {
    let (status, said) = stop_frozen(&["--stop-within", "300ms"], false);
    assert_eq!(status, Some(143), "{said}");
    assert!(said.contains("ending at once: the stop took too long"), "{said}");
}

/// Reliability 14: an empty file where a store may have been is said aloud.
#[test]
fn reliability_14_an_empty_store_is_said_aloud() {
    let place = Place::new();
    place.file("work/.belljar/belljar.db", "");
    let told = place.belljar(&["runs"]);
    assert!(
        told.stderr.contains("belljar.db was empty; a new store was created there"),
        "{told:#?}"
    );
    assert!(!place.belljar(&["runs"]).stderr.contains("was empty"), "only once");
}

/// Damage is told with path and remedy, by every command that opens the store.
#[test]
fn reliability_14_a_damaged_store_is_told_with_path_and_remedy() {
    let place = Place::new();
    let state = place.path().join("work/.belljar");
    fs::create_dir_all(place.path().join("work")).unwrap();
    let store = Store::open(&state).unwrap();
    block_on(store.put_blob(vec![7; 300_000], "text/plain", 1)).unwrap();
    drop(store);
    let file = state.join("belljar.db");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let told = place.belljar(&["runs"]);
    assert_eq!(told.status, Some(2), "{told:#?}");
    let path = file.display();
    assert!(told.stderr.contains(&format!("the store at {path} is damaged")), "{told:#?}");
    assert!(told.stderr.contains("put a backup in their place"), "{told:#?}");
    let doctor = place.belljar(&["doctor", "--json"]);
    assert_eq!(doctor.status, Some(1), "{doctor:#?}");
    assert!(doctor.stdout.contains("put a backup in their place"), "{doctor:#?}");
}

/// Reliability 14: a host that lives but is frozen loses its workflows when their lease has lapsed.
#[sandboxed]
#[crash_points]
#[test]
fn reliability_14_the_workflows_of_a_frozen_host_are_taken_over() {
    let project = LedgerProject::with(Transport::Http, "allow = [\"ledger__safe\"]");
    let text = "tasks:\n  - {id: once, tool: ledger:safe, arguments: {key: once}}\n  \
                - {id: then, tool: ledger:safe, arguments: {key: then}, depends_on: [once]}\n";
    project.place.file("work/frozen.yaml", text);
    let run = ["workflow", "run", "frozen.yaml", "--id", "frozen"];
    let died = project.start(&run, Some("flow_call:2")).wait_with_output().unwrap();
    assert_eq!(died.status.code(), None, "{died:?}");
    // The test itself is the host that lives and does nothing.
    let id = std::process::id();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    let watched = WorkflowWatch::of(&project.state());
    let claim = |lapsed_ms: i64| {
        let now_ms = belljar_project::now_ms();
        let owner = format!("{id}:{started}");
        let (until_ms, why) = (now_ms - lapsed_ms, ClaimReason::Asked);
        let request = LeaseRequest { owner, now_ms, until_ms, take_over: true, why };
        block_on(watched.store().claim("frozen", request)).unwrap();
    };
    claim(20_000);
    let serving = serve_in(&project.place, &[]);
    within("the workflow's end", || {
        let row = block_on(watched.store().find("frozen")).unwrap()?;
        (row.status == WorkflowStatus::Completed).then_some(())
    });
    assert_eq!(project.count("did safe then"), 1);
    serving.stop();
}
