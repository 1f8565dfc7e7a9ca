//! Servers that die, hang, talk nonsense or were never there.

use std::time::{Duration, Instant};

use belljar_tools::{UpstreamError, WaitStage, WasSent};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{
    Host, LONG, fixture, marked, new_mark, none, object, only_text, server, soon, trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("faults::a_server_killed_between_calls_is_started_again", killed_between_calls),
        trial("faults::a_server_that_dies_in_a_call_leaves_it_in_doubt", dies_in_a_call),
        trial("faults::a_call_that_takes_too_long_is_in_doubt_and_cancelled", takes_too_long),
        trial("faults::a_dropped_call_is_cancelled", dropped),
        trial("faults::a_server_that_hangs_is_started_again", hangs),
        trial("faults::a_server_that_is_still_starting_was_not_sent_anything", slow_start),
        trial("faults::a_missing_program_is_named", missing_program),
        trial("faults::a_server_that_fails_is_left_alone_for_a_while", backs_off),
        trial("faults::nonsense_and_refusals_are_told_apart", nonsense),
        trial("faults::questions_of_a_server_are_refused", questions),
        trial("faults::a_server_has_only_what_is_configured", environment),
        trial("faults::a_server_that_dies_of_discovery_is_asked_the_old_way", dies_of_discovery),
        trial("faults::an_unknown_server_is_named_with_the_known_ones", unknown),
        trial("faults::a_server_that_logs_without_end_still_answers", floods),
        trial("faults::after_shutdown_nothing_is_started", shut_down),
    ]
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

async fn killed_between_calls() -> Result<(), Failed> {
    let mark = new_mark();
    let host = Host::with(fixture(&["--mark", &mark]));
    for round in 0..5 {
        assert_eq!(host.text("calls", none()).await, "1", "round {round}: the same server");
        // Until it is gone, but not until that is noticed: the next call must find out by itself.
        for pid in marked(&mark) {
            kill(pid);
            while std::path::Path::new(&format!("/proc/{pid}")).exists() {
                std::hint::spin_loop();
            }
        }
    }
    host.upstreams.shutdown().await;
    assert!(soon(|| marked(&mark).is_empty()).await);
    Ok(())
}

async fn dies_in_a_call() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    host.text("calls", none()).await;
    let error = host.call("die", none()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Lost { sent: WasSent::Perhaps, .. }), "{error:?}");
    assert!(error.may_have_happened());
    assert_eq!(host.text("calls", none()).await, "1");
    Ok(())
}

async fn takes_too_long() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    host.text("calls", none()).await;
    let begun = Instant::now();
    let short = Duration::from_millis(300);
    let error =
        host.upstreams.call("s", "sleep", object(json!({"seconds": 20})), short).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(
        matches!(
            error,
            UpstreamError::TimedOut { stage: WaitStage::Answer, sent: WasSent::Perhaps, .. }
        ),
        "{error:?}"
    );
    assert!(was_cancelled(&host).await);
    Ok(())
}

async fn dropped() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    host.text("calls", none()).await;
    let call = host.call("sleep", json!({"seconds": 20}));
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    assert!(was_cancelled(&host).await);
    Ok(())
}

async fn hangs() -> Result<(), Failed> {
    let mark = new_mark();
    let host = Host::with(fixture(&["--mark", &mark]));
    host.text("calls", none()).await;
    host.text("calls", none()).await;
    for pid in marked(&mark) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    }
    let begun = Instant::now();
    let short = Duration::from_millis(300);
    let call = || host.upstreams.call("s", "calls", object(none()), short);
    assert!(call().await.unwrap_err().may_have_happened());
    // Given up once it has said nothing for long; then it is another server that answers.
    while begun.elapsed() < Duration::from_secs(40) {
        tokio::time::sleep(Duration::from_millis(1000)).await;
        if let Ok(answer) = host.upstreams.call("s", "calls", object(none()), LONG / 20).await {
            assert!(only_text(answer).parse::<u32>()? < 3);
            return Ok(());
        }
    }
    Err("it was never started again".into())
}

async fn was_cancelled(host: &Host) -> bool {
    for _ in 0..100 {
        let cancelled: Value = serde_json::from_str(&host.text("cancelled", none()).await).unwrap();
        if cancelled.as_array().is_some_and(|ids| ids.len() == 1) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

async fn slow_start() -> Result<(), Failed> {
    let host = Host::with(fixture(&["--slow-start", "2"]));
    let short = Duration::from_millis(300);
    let error = host.upstreams.call("s", "calls", object(none()), short).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::TimedOut { stage: WaitStage::Start, sent: WasSent::No, .. }),
        "{error:?}"
    );
    assert!(!error.may_have_happened());
    // It goes on starting, and the first call was never made.
    assert_eq!(host.text("calls", none()).await, "1");
    Ok(())
}

async fn missing_program() -> Result<(), Failed> {
    let host = Host::with(server("no-such-program", &[]));
    let error = host.call("x", none()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `s` is not available: `no-such-program` could not be started: No such file or \
         directory (os error 2)"
    );
    assert_eq!(
        error.hint().as_deref(),
        Some("install `no-such-program`, or give its full path as `command` of the server")
    );
    let mut raw = server("sh", &[]);
    raw.cwd = Some("/no/such/directory".into());
    let error = Host::with(raw).call("x", none()).await.unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("its `cwd` is not a directory"));
    Ok(())
}

async fn backs_off() -> Result<(), Failed> {
    let host = Host::with(fixture(&["--fails"]));
    let error = host.call("x", none()).await.unwrap_err();
    let UpstreamError::NotStarted { why, log, .. } = &error else {
        return Err(format!("{error:?}").into());
    };
    assert_eq!(why, "it exited before it sent anything");
    let hint = "start its command in a terminal: an MCP server waits there for input";
    assert_eq!(error.hint().as_deref(), Some(hint));
    assert_eq!(log, "KEY is not set");
    assert!(!error.to_string().contains("KEY"), "what a server logs is for operators");
    // Short pauses are waited for, then it is said that there is one.
    let mut backing_off = None;
    for _ in 0..8 {
        match host.call("x", none()).await {
            Err(UpstreamError::NotStarted { .. }) => {}
            Err(UpstreamError::BackingOff { retry_in, why, .. }) => {
                backing_off = Some((retry_in, why));
                break;
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    let (retry_in, why) = backing_off.ok_or("never left alone")?;
    assert!(retry_in > Duration::from_secs(1) && retry_in <= Duration::from_secs(30));
    assert_eq!(why, "it exited before it sent anything");
    Ok(())
}

async fn nonsense() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    let error = host.call("mangle", none()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Protocol { .. }), "{error:?}");
    assert!(error.may_have_happened());
    let error = host.call("no_such_tool", none()).await.unwrap_err();
    assert_eq!(error.to_string(), "server `s` refused: no tool no_such_tool");
    assert!(!error.may_have_happened());
    let error = host.call("want_input", none()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Refused { .. }), "{error:?}");
    let answer = host.call("fail", none()).await?;
    assert!(answer.is_error);
    assert_eq!(only_text(answer), "it did not work");
    let answer = host.call("echo", json!({"a": [1, null]})).await?;
    assert_eq!(answer.structured, Some(json!({"a": [1, null]})));
    Ok(())
}

async fn questions() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    let reply: Value = serde_json::from_str(&host.text("ask", none()).await)?;
    assert_eq!(reply, json!({"action": "decline"}));
    Ok(())
}

async fn environment() -> Result<(), Failed> {
    let mut raw = fixture(&[]);
    raw.env.insert("KEY".into(), "value".into());
    raw.cwd = Some("/usr".into());
    let host = Host::with(raw);
    let described: Value = serde_json::from_str(&host.text("describe", none()).await)?;
    assert_eq!(described["directory"], "/usr");
    let environment = object(described["environment"].clone());
    assert_eq!(environment["KEY"], "value");
    // Cargo sets this for the test itself: a variable nobody configured.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO_")));
    let strangers: Vec<_> = environment.keys().filter(|name| name.starts_with("CARGO")).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    Ok(())
}

async fn dies_of_discovery() -> Result<(), Failed> {
    let host = Host::with(fixture(&["--dies-of-discovery"]));
    assert_eq!(host.text("calls", none()).await, "1");
    assert_eq!(host.upstreams.version("s").await?.protocol, "2025-11-25");
    Ok(())
}

async fn unknown() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    let error = host.upstreams.call("t", "x", object(none()), LONG).await.unwrap_err();
    assert_eq!(error.to_string(), "no server `t` is configured");
    assert_eq!(error.hint().as_deref(), Some("configured servers: s"));
    Ok(())
}

async fn floods() -> Result<(), Failed> {
    let host = Host::with(fixture(&[]));
    assert_eq!(host.text("flood", json!({"lines": 2000})).await, "flooded");
    Ok(())
}

async fn shut_down() -> Result<(), Failed> {
    let mark = new_mark();
    let host = Host::with(fixture(&["--daemon", &mark]));
    host.text("calls", none()).await;
    assert!(!marked(&mark).is_empty());
    let begun = Instant::now();
    host.upstreams.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(marked(&mark).is_empty(), "left: {:?}", marked(&mark));
    let error = host.call("calls", none()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::ShutDown { .. }), "{error:?}");
    Ok(())
}
