//! How much a server gets at once and in a minute, and how long it is kept.

use std::time::{Duration, Instant};

use belljar_tools::{Sent, Stage, UpstreamError};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::harness::{Host, LONG, fixture, marked, new_mark, none, object, soon, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("limits::no_more_calls_at_once_than_configured", at_once),
        trial("limits::a_call_that_waits_too_long_for_its_turn_was_not_sent", turn),
        trial("limits::no_more_calls_in_a_minute_than_configured", rate),
        trial("limits::a_server_nobody_uses_is_ended", idle),
        trial("limits::a_server_has_the_timeout_that_is_configured", timeout),
    ]
}

async fn sleep_in_parallel(host: &Host, calls: usize, seconds: f64) -> Result<(), Failed> {
    let tasks: Vec<_> = (0..calls)
        .map(|_| {
            let upstreams = host.upstreams.clone();
            let arguments = object(json!({"seconds": seconds}));
            tokio::spawn(async move { upstreams.call("s", "sleep", arguments, LONG).await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn at_once() -> Result<(), Failed> {
    let mut raw = fixture(&[]);
    raw.max_concurrent = Some(3);
    let host = Host::with(raw);
    sleep_in_parallel(&host, 12, 0.05).await?;
    assert_eq!(host.text("most", none()).await, "3");
    // Control: the server itself would do more.
    let host = Host::with(fixture(&[]));
    sleep_in_parallel(&host, 8, 0.5).await?;
    let most: usize = host.text("most", none()).await.parse()?;
    assert!(most > 3, "{most}");
    Ok(())
}

async fn turn() -> Result<(), Failed> {
    let mut raw = fixture(&[]);
    raw.max_concurrent = Some(1);
    let host = Host::with(raw);
    host.text("calls", none()).await;
    let upstreams = host.upstreams.clone();
    let first = tokio::spawn(async move {
        upstreams.call("s", "sleep", object(json!({"seconds": 1.5})), LONG).await
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let short = Duration::from_millis(200);
    let error = host.upstreams.call("s", "calls", object(none()), short).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::TimedOut { stage: Stage::Turn, sent: Sent::No, .. }),
        "{error:?}"
    );
    first.await??;
    assert_eq!(host.text("calls", none()).await, "3");
    Ok(())
}

async fn rate() -> Result<(), Failed> {
    let mut raw = fixture(&[]);
    raw.rate_per_minute = Some(2);
    let host = Host::with(raw);
    host.text("calls", none()).await;
    host.text("calls", none()).await;
    let short = Duration::from_millis(500);
    let begun = Instant::now();
    let error = host.upstreams.call("s", "calls", object(none()), short).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::TimedOut { stage: Stage::Rate, sent: Sent::No, .. }),
        "{error:?}"
    );
    assert!(begun.elapsed() < short, "waited for what could not come");
    Ok(())
}

async fn idle() -> Result<(), Failed> {
    let mark = new_mark();
    let mut raw = fixture(&["--mark", &mark]);
    raw.idle_seconds = Some(1);
    let host = Host::with(raw);
    // In use for longer than it may idle: it is not ended under a call.
    assert_eq!(host.text("sleep", json!({"seconds": 2.5})).await, "slept");
    assert_eq!(marked(&mark).len(), 1);
    assert!(soon(|| marked(&mark).is_empty()).await);
    assert_eq!(host.text("calls", none()).await, "1");
    Ok(())
}

async fn timeout() -> Result<(), Failed> {
    let mut raw = fixture(&[]);
    raw.timeout = Some(1);
    let host = Host::with(raw);
    host.text("calls", none()).await;
    let begun = Instant::now();
    let error = host.call("sleep", json!({"seconds": 30})).await.unwrap_err();
    assert!(error.may_have_happened(), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    Ok(())
}
