//! Cells are single-use, come from a pool that never fails for being empty, and leave nothing
//! behind (A10); a dead zygote is replaced.

use std::time::Duration;

use belljar_contract::{ErrorCode, ErrorKind, RunRequest, RunStatus};
use belljar_runtime::RunOptions;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::{
    descendants::descendants,
    harness::{host, run},
    processes::{at_rest, eventually},
    skip::skip,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials! {
        current_thread:
            nothing_of_a_run_is_there_for_the_next,
            two_cells_do_not_share_their_randomness,
            a_result_has_the_canonical_shape,
            the_code_of_cells_is_in_huge_pages;
        two_threads:
            two_hundred_at_once_each_get_their_own_answer,
            ten_thousand_runs_leave_nothing_behind,
            a_dead_zygote_is_replaced,
            reliability_14_a_frozen_zygote_is_replaced,
            reliability_14_parked_cells_that_died_are_not_handed_out,
            a_dead_guest_is_an_error_of_its_run,
            a_run_can_be_aborted_and_dropped,
            a10_shutting_down_ends_everything_also_while_cells_are_being_parked;
    }
}

fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("our own process");
}

/// Far more at once than there are parked cells: each gets its own number back.
async fn two_hundred_at_once_each_get_their_own_answer() {
    let host = host(4).await;
    let runs = (0..200).map(|number| {
        let host = host.clone();
        tokio::spawn(async move {
            let result = run(&host, &format!("await 0; return {number}")).await;
            assert!(result.success, "{:?}", result.error);
            assert_eq!(result.result.get(), number.to_string());
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.expect("a correct answer");
    }
    host.shutdown().await;
}

/// A10: ten thousand runs leave no descriptor, mount or process.
async fn ten_thousand_runs_leave_nothing_behind() {
    let host = host(4).await;
    for _ in 0..100 {
        assert!(run(&host, "1").await.success);
    }
    // Warden and zygote, and four parked cells of two processes each.
    let before = at_rest().await;
    assert_eq!(before.processes, 2 + 4 * 2);
    let runs = (0..4).map(|_| {
        let host = host.clone();
        tokio::spawn(async move {
            for number in 0..2500 {
                let result = run(&host, &format!("return {number}")).await;
                assert_eq!(result.result.get(), number.to_string(), "{:?}", result.error);
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.expect("correct answers");
    }
    assert_eq!(at_rest().await, before);
    host.shutdown().await;
    eventually("nothing is left", || descendants(std::process::id()).is_empty()).await;
}

/// A cell never serves two runs.
async fn nothing_of_a_run_is_there_for_the_next() {
    for pool_size in [0, 1, 4] {
        let host = host(pool_size).await;
        for _ in 0..6 {
            let result = run(&host, "globalThis.seen = (globalThis.seen ?? 0) + 1").await;
            assert_eq!(result.result.get(), "1");
        }
        host.shutdown().await;
    }
}

/// Randomness differs between cells of one zygote.
async fn two_cells_do_not_share_their_randomness() {
    let host = host(2).await;
    let code = "[Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(8))]";
    let first = run(&host, code).await;
    let second = run(&host, code).await;
    let parse = |text: &str| serde_json::from_str::<Vec<serde_json::Value>>(text).expect("a list");
    let (first, second) = (parse(first.result.get()), parse(second.result.get()));
    for (a, b) in first.iter().zip(&second) {
        assert_ne!(a, b);
    }
    host.shutdown().await;
}

/// The run in flight ends with a clear error, and the next one works.
async fn a_dead_zygote_is_replaced() {
    let host = host(2).await;
    let in_flight = {
        let host = host.clone();
        tokio::spawn(async move {
            host.run(RunRequest::typescript("await new Promise(r => setTimeout(r, 20_000)); 1"))
                .await
        })
    };
    // Warden and zygote, two parked cells and one in use, of two processes each.
    eventually("the run is in its cell", || descendants(std::process::id()).len() == 8).await;
    let warden = descendants(std::process::id())[0];
    kill(descendants(warden)[0]);
    let result = in_flight.await.expect("a result");
    let error = result.error.expect("an error");
    assert_eq!(
        (error.kind, error.code),
        (ErrorKind::SandboxError, ErrorCode::SandboxZygoteLost),
        "{error:?}"
    );
    for _ in 0..3 {
        let next = run(&host, "1 + 1").await;
        assert_eq!(next.result.get(), "2", "{:?}", next.error);
    }
    host.shutdown().await;
}

/// Nobody waits for it twice: the run that finds out gets a cell of another one.
async fn reliability_14_a_frozen_zygote_is_replaced() {
    let host = host(1).await;
    let warden = descendants(std::process::id())[0];
    let zygote = descendants(warden)[0];
    signal(zygote, Signal::STOP);
    for _ in 0..4 {
        let result = run(&host, "1 + 1").await;
        assert_eq!(result.result.get(), "2", "{:?}", result.error);
    }
    eventually("the frozen one is gone", || !descendants(std::process::id()).contains(&zygote))
        .await;
    host.shutdown().await;
}

async fn reliability_14_parked_cells_that_died_are_not_handed_out() {
    let host = host(2).await;
    let warden = descendants(std::process::id())[0];
    let zygote = descendants(warden)[0];
    // The keepers; with them go their guests.
    let keepers = descendants(zygote);
    assert_eq!(keepers.len(), 4, "two cells of two processes");
    for keeper in keepers {
        let _ = kill_process(Pid::from_raw(keeper.cast_signed()).expect("a pid"), Signal::KILL);
    }
    eventually("the parked cells are dead", || descendants(zygote).is_empty()).await;
    for _ in 0..3 {
        let result = run(&host, "1 + 1").await;
        assert_eq!(result.result.get(), "2", "{:?}", result.error);
    }
    host.shutdown().await;
}

/// CPU time of a process in ticks of 10 ms: far more than a cell needs to get ready.
fn ticks_used(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let times = after_name.split(' ').skip(11).take(2);
    times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// A guest that dies is an error of its run alone.
async fn a_dead_guest_is_an_error_of_its_run() {
    let host = host(0).await;
    let in_flight = {
        let host = host.clone();
        tokio::spawn(async move {
            host.run(RunRequest::typescript("console.log('before'); while (true) {}")).await
        })
    };
    let mut guest = 0;
    eventually("the run is busy", || {
        // Warden, zygote, keeper, guest.
        let all = descendants(std::process::id());
        guest = all.get(3).copied().unwrap_or(0);
        ticks_used(guest) >= 5
    })
    .await;
    kill(guest);
    let result = in_flight.await.expect("a result");
    let error = result.error.expect("an error");
    assert_eq!((error.kind, error.code), (ErrorKind::SandboxError, ErrorCode::SandboxCrashed));
    assert!(error.message.contains("signal 9"), "{}", error.message);
    assert_eq!(run(&host, "2").await.result.get(), "2");
    host.shutdown().await;
}

/// Aborting keeps what was printed, and dropping a run ends its cell.
async fn a_run_can_be_aborted_and_dropped() {
    let host = host(0).await;
    let code = "console.log('before'); await new Promise(r => setTimeout(r, 20_000)); 1";
    let abort = tokio::time::sleep(Duration::from_millis(150));
    let result = host.run_with(RunRequest::typescript(code), RunOptions::default(), abort).await;
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.error.expect("an error").code, ErrorCode::RunAborted);
    assert_eq!(result.stdout, "before\n");
    eventually("the aborted cell is gone", || descendants(std::process::id()).len() == 2).await;
    let dropped = tokio::time::timeout(Duration::from_millis(150), run(&host, code)).await;
    assert!(dropped.is_err(), "it would have slept for 20 s");
    eventually("the dropped cell is gone", || descendants(std::process::id()).len() == 2).await;
    host.shutdown().await;
}

/// A9: the canonical shape, and metrics measured by the host.
async fn a_result_has_the_canonical_shape() {
    let host = host(1).await;
    let result = run(&host, "console.log('hi'); console.warn('careful'); ({ a: [1, NaN] })").await;
    assert!(result.metrics.execution_ms > 0.0 && result.metrics.cpu_ms > 0.0);
    assert!(result.metrics.memory_mb > 1.0);
    let mut shape = serde_json::to_value(&result).expect("JSON");
    assert!(shape["id"].as_str().is_some_and(|id| id.starts_with("run_") && id.len() == 24));
    for volatile in ["id", "metrics"] {
        shape[volatile] = serde_json::Value::Null;
    }
    let layers = shape["isolation"]["layers"].take();
    assert_eq!(layers.as_array().map(Vec::len), Some(belljar_runtime::Mechanism::ALL.len()));
    let expected = serde_json::json!({
        "id": null, "status": "completed", "success": true, "result": {"a": [1, null]},
        "stdout": "hi\n", "stderr": "careful\n", "logs": ["hi", "careful"], "exit_code": 0,
        "error": null, "metrics": null,
        "isolation": {"tier": "full", "engine": "quickjs", "layers": null, "memory": "rlimit"},
        "truncated": {"stdout": false, "stderr": false, "logs": false, "result": false, "state": false},
        "artifacts": [], "unreturned": {"files": [], "more": false}, "changes": [], "tools": {"discovered": [], "injected": []},
        "cached": false, "session_id": null, "state": {}, "lossy": true
    });
    assert_eq!(shape, expected);
    host.shutdown().await;
}

/// A pool that is being refilled when its host is shut down starts nothing any more (A10).
async fn a10_shutting_down_ends_everything_also_while_cells_are_being_parked() {
    for _ in 0..20 {
        let host = host(2).await;
        assert_eq!(run(&host, "return 1").await.result.get(), "1");
        host.shutdown().await;
        assert_eq!(descendants(std::process::id()), Vec::<u32>::new());
    }
}

/// A zygote hands its cells their code in huge pages, where the kernel has any to give.
async fn the_code_of_cells_is_in_huge_pages() {
    let choice = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let can_be_had = choice.is_ok_and(|choice| !choice.contains("[never]"));
    let refused = huge_pages_refused();
    let host = host(1).await;
    for _ in 0..3 {
        assert_eq!(run(&host, "[1].map((one) => one + 1)").await.result.get(), "[2]");
    }
    at_rest().await;
    if !getuid().is_root() {
        skip("only root may look at where the code of cells is");
        return host.shutdown().await;
    }
    // Code of no file, which has no name either.
    let is_copied = |line: &str| line.contains(" r-xp ") && line.trim_end().ends_with(" 00:00 0");
    let maps = descendants(std::process::id())
        .into_iter()
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
    let copied = maps.filter(|maps| maps.lines().any(is_copied)).count();
    if can_be_had && huge_pages_refused() == refused {
        // The zygote, a keeper and a guest; the warden is older.
        assert_eq!(copied, 3);
    } else {
        assert!([0, 3].contains(&copied), "{copied}");
    }
    host.shutdown().await;
}

/// How often the kernel had none to give.
fn huge_pages_refused() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/vmstat").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("thp_fault_fallback ")?.parse().ok())
}
