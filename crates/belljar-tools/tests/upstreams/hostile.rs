//! Servers that do harm: each is bounded, and the others do not notice.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use belljar_tools::{LimitSource, RawServer, UpstreamError, WaitStage, WasSent};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{
    Host, LONG, fixture, installed, marked, new_mark, none, object, only_text, server, soon, trial,
};

/// Every kind of `servers/hostile.py`.
const KINDS: [&str; 30] = [
    "hangs_at_start",
    "dies_at_start",
    "floods_notifications_at_start",
    "floods_stderr_at_start",
    "garbage_at_start",
    "hangs_in_list",
    "endless_cursor",
    "deep_schema",
    "wide_schema",
    "huge_description",
    "bad_names",
    "many_tools",
    "endless_line",
    "floods_notifications",
    "floods_log_messages",
    "floods_list_changed",
    "floods_requests_unread",
    "floods_requests",
    "floods_sampling",
    "floods_stderr",
    "garbage",
    "hangs_in_call",
    "dies_in_call",
    "huge_result",
    "wide_result",
    "deep_result",
    "huge_error",
    "wrong_ids",
    "answers_twice",
    "closes_its_output",
];
/// How long they are let loose; `BELLJAR_HOSTILE_SECONDS` is for more.
const SECONDS: u64 = 15;
/// The most memory of the host while they run: a message of 256 MB each of the few that send one.
const MOST_MEMORY_MB: u64 = 1500;
/// The memory that it may keep when they are gone.
const KEPT_MEMORY_MB: u64 = 300;
/// The most bytes of log: 200 lines of 2 kB for each in ten seconds, and the host's own lines.
const MOST_LOG_BYTES: usize = 10 << 20;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("hostile::thirty_servers_side_by_side_harm_nobody_else", side_by_side),
        trial("hostile::reliability_8_a_flood_of_requests_takes_no_memory", request_flood),
        trial("hostile::reliability_12_a_call_is_bound_by_its_timeout_from_the_start", bound),
        trial("hostile::reliability_12_the_others_are_listed_without_the_one_that_hangs", listed),
        trial("hostile::bug_8_a_frozen_server_is_replaced_after_one_call", frozen),
        trial("hostile::bug_8_a_busy_server_is_not_replaced", busy),
        trial("hostile::bug_13_a_timeout_names_the_limit_that_was_set", named_limit),
        trial("hostile::reliability_14_a_list_that_is_refused_is_not_kept_in_memory", many_tools),
        trial("hostile::s16_one_bad_name_leaves_out_that_tool", bad_names),
    ]
}

fn hostile(kind: &str) -> RawServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/servers/hostile.py");
    RawServer { timeout: Some(5), ..server(&installed("python/bin/python3"), &[script, kind]) }
}

/// The memory of this process, in megabytes.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// The most this process takes until it is asked.
struct MemoryWatch {
    most: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl MemoryWatch {
    fn begin() -> Self {
        let (most, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (seen, ended) = (most.clone(), is_over.clone());
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                seen.fetch_max(memory_mb(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self { most, is_over }
    }

    fn most_mb(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed)
    }
}

/// Counts what is logged.
#[derive(Clone, Default)]
struct CountingLog(Arc<AtomicUsize>);

impl io::Write for CountingLog {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(text.len(), Ordering::Relaxed);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CountingLog {
    /// Counts all that is logged from now on, as `--log` would write it.
    fn install() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let _ = tracing_subscriber::fmt().with_writer(move || writer.clone()).try_init();
        log
    }
}

/// R-D1, reliability 8 and 9: all of them at once, in one host with a server that works.
async fn side_by_side() -> Result<(), Failed> {
    let (log, memory) = (CountingLog::install(), MemoryWatch::begin());
    let mut servers: Vec<_> =
        KINDS.iter().map(|kind| ((*kind).to_owned(), hostile(kind))).collect();
    servers.push(("healthy".to_owned(), fixture(&[])));
    let host = Host::with_all(servers);
    host.upstreams.tools("healthy").await?;
    let seconds = std::env::var("BELLJAR_HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS));
    let attacks = KINDS.map(|kind| {
        let upstreams = host.upstreams.clone();
        tokio::spawn(async move {
            while Instant::now() < until {
                let _ = upstreams.tools_within(kind, Duration::from_secs(2)).await;
                let time = Duration::from_secs(2);
                let _ = upstreams.call(kind, "work", object(none()), time).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    });
    let (mut calls, mut slowest) = (0, Duration::ZERO);
    while Instant::now() < until {
        let began = Instant::now();
        let echoed = host.upstreams.call("healthy", "echo", object(json!({"n": calls})), LONG);
        assert_eq!(echoed.await?.structured, Some(json!({"n": calls})));
        slowest = slowest.max(began.elapsed());
        calls += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let listed = host.upstreams.all_tools(Duration::from_secs(1)).await;
    assert!(listed["healthy"].is_ok());
    for attack in attacks {
        attack.await?;
    }
    assert_eq!(
        host.upstreams.call("healthy", "calls", object(none()), LONG).await.map(only_text)?,
        (calls + 1).to_string(),
        "the healthy server was started again"
    );
    host.upstreams.shutdown().await;
    let (most, kept, logged) = (memory.most_mb(), memory_mb(), log.0.load(Ordering::Relaxed));
    println!(
        "{calls} healthy calls, the slowest {slowest:?}; memory {most} MB at most, {kept} MB kept; \
         {logged} bytes logged"
    );
    // On a machine that has other things to do as well; what counts is that all of them were answered.
    assert!(calls > 5, "{calls} calls of the healthy server");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    assert!(most < MOST_MEMORY_MB, "{most} MB");
    assert!(kept < KEPT_MEMORY_MB, "{kept} MB kept");
    assert!(logged < MOST_LOG_BYTES, "{logged} bytes logged");
    Ok(())
}

async fn request_flood() -> Result<(), Failed> {
    for kind in ["floods_requests_unread", "floods_requests", "floods_sampling"] {
        let host = Host::with(hostile(kind));
        host.upstreams.tools("s").await?;
        let before = memory_mb();
        let memory = MemoryWatch::begin();
        let error = host.upstreams.call("s", "work", object(none()), LONG / 4).await.unwrap_err();
        let UpstreamError::Lost { why, sent: WasSent::Perhaps, .. } = &error else {
            return Err(format!("{kind}: {error:?}").into());
        };
        assert!(why.starts_with("it sent more than 1000 requests in"), "{kind}: {why}");
        let grown = memory.most_mb().saturating_sub(before);
        assert!(grown < 50, "{kind}: {grown} MB");
    }
    Ok(())
}

async fn bound() -> Result<(), Failed> {
    let limit = Duration::from_millis(700);
    for (kind, waits_for) in
        [("hangs_at_start", WaitStage::Start), ("hangs_in_list", WaitStage::List)]
    {
        let host = Host::with(hostile(kind));
        let began = Instant::now();
        let error = host.upstreams.tools_within("s", limit).await.unwrap_err();
        let UpstreamError::TimedOut { stage, sent: WasSent::No, .. } = &error else {
            return Err(format!("{kind}: {error:?}").into());
        };
        // A server that has not been started by then hangs at its start as well.
        assert!(*stage == waits_for || *stage == WaitStage::Start, "{kind}: {stage:?}");
        assert!(began.elapsed() < limit * 10, "{kind}: {:?}", began.elapsed());
    }
    Ok(())
}

async fn listed() -> Result<(), Failed> {
    let servers = [
        ("good".to_owned(), fixture(&[])),
        ("list".to_owned(), hostile("hangs_in_list")),
        ("start".to_owned(), hostile("hangs_at_start")),
    ];
    let host = Host::with_all(servers);
    host.upstreams.tools("good").await?;
    let limit = Duration::from_secs(1);
    let began = Instant::now();
    let all = host.upstreams.all_tools(limit).await;
    assert!(began.elapsed() < limit * 5, "{:?}", began.elapsed());
    assert!(all["good"].is_ok());
    for server in ["list", "start"] {
        let error = all[server].as_ref().unwrap_err();
        assert!(matches!(error, UpstreamError::TimedOut { .. }), "{error:?}");
        assert_eq!(error.server(), server);
    }
    // Whoever asks next does not wait for what others have waited for in vain.
    let again = Instant::now();
    assert!(host.upstreams.all_tools(limit).await["good"].is_ok());
    assert!(again.elapsed() < limit / 2, "{:?}", again.elapsed());
    Ok(())
}

fn stop(mark: &str) {
    for pid in marked(mark) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    }
}

async fn frozen() -> Result<(), Failed> {
    let mark = new_mark();
    let host = Host::with(fixture(&["--mark", &mark]));
    host.text("calls", none()).await;
    let first = marked(&mark);
    stop(&mark);
    let short = Duration::from_millis(300);
    let error = host.upstreams.call("s", "calls", object(none()), short).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TimedOut { stage: WaitStage::Answer, .. }), "{error:?}");
    // The next one waits until it is known that the server does not answer, and gets another.
    let answer = host.upstreams.call("s", "calls", object(none()), LONG).await?;
    assert_eq!(only_text(answer), "1");
    let gone = || marked(&mark).iter().all(|pid| !first.contains(pid));
    assert!(soon(gone).await, "the frozen server is still there");
    Ok(())
}

async fn busy() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    host.text("calls", none()).await;
    let short = Duration::from_millis(300);
    let sleep = object(json!({"seconds": 20}));
    let error = host.upstreams.call("s", "sleep", sleep, short).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TimedOut { .. }), "{error:?}");
    // It answers others meanwhile, so it is the same server that counts on.
    assert_eq!(host.text("calls", none()).await, "3");
    Ok(())
}

async fn named_limit() -> Result<(), Failed> {
    let limit = Duration::from_secs(1);
    let host = Host::with(RawServer { timeout: Some(60), ..hostile("hangs_in_call") });
    host.upstreams.tools("s").await?;
    let error = host.upstreams.call("s", "work", object(none()), limit).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no answer from server `s` within 1000 ms, waiting for its answer"
    );
    assert_eq!(
        error.hint().as_deref(),
        Some("Make smaller calls. Or ask for more with --tool-timeout.")
    );
    let host = Host::with(RawServer { timeout: Some(1), ..hostile("hangs_in_call") });
    let error = host.call("work", none()).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::TimedOut { set_by: LimitSource::Server, .. }),
        "{error:?}"
    );
    assert_eq!(error.hint().as_deref(), Some("raise `timeout` of the server"));
    Ok(())
}

async fn many_tools() -> Result<(), Failed> {
    let host = Host::with(RawServer { timeout: Some(60), ..hostile("many_tools") });
    let before = memory_mb();
    let memory = MemoryWatch::begin();
    let error = host.upstreams.tools("s").await.unwrap_err();
    assert_eq!(error.to_string(), "server `s` broke the protocol: it has more than 10000 tools");
    let (most, kept) = (memory.most_mb() - before, memory_mb().saturating_sub(before));
    assert!(most < 100 && kept < 50, "{most} MB at most, {kept} MB kept");
    Ok(())
}

async fn bad_names() -> Result<(), Failed> {
    let host = Host::with(hostile("bad_names"));
    let tools = host.upstreams.tools("s").await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["work", "R\u{435}ad_file", "run!"]);
    Ok(())
}
