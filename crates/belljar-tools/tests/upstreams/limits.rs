//! How much a server gets at once and in a minute, and how long it is kept.

use std::time::{Duration, Instant};

use belljar_tools::UpstreamError;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::harness::{Host, LONG, fixture, marked, new_mark, none, object, only_text, soon, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("limits::no_more_calls_at_once_than_configured", at_once),
        trial("limits::reliability_14_waiting_for_a_turn_is_not_part_of_a_calls_time", turn),
        trial("limits::bug_13_no_more_calls_in_a_minute_than_configured", rate),
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
        upstreams.call("s", "sleep", object(json!({"seconds": 3})), LONG).await
    });
    // In its place before the other one asks.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    let time = Duration::from_millis(1000);
    let answer = host.upstreams.call("s", "calls", object(none()), time).await?;
    assert_eq!(only_text(answer), "3");
    assert!(began.elapsed() > time, "it had no need to wait: {:?}", began.elapsed());
    first.await??;
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
    let UpstreamError::RateLimited { per_minute: 2, retry_in, .. } = &error else {
        return Err(format!("{error:?}").into());
    };
    assert!(*retry_in > Duration::from_secs(30) && *retry_in <= Duration::from_secs(60));
    assert!(!error.may_have_happened());
    assert_eq!(error.hint().as_deref(), Some("raise `rate_per_minute` of the server"));
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
