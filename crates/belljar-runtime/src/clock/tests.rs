//! D7, S12: a person may take longer than the run's timeout, and the run gains no working time from it.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{self, sleep},
};

use super::{MOST_WAITING, RunClock, Tick};

const SECOND: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::ZERO;

fn paused_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

/// When time runs out for a guest whose CPU time is this function of the time since its start, sampled as
/// often as a run is.
async fn runs_out(mut clock: RunClock, cpu: impl Fn(Duration) -> Duration) -> Duration {
    let began = time::Instant::now();
    let mut sample = time::interval(Duration::from_millis(20));
    loop {
        tokio::select! {
            biased;
            tick = clock.tick() => {
                if tick == Tick::OutOfTime || !clock.advance(cpu(began.elapsed())) {
                    return began.elapsed();
                }
            }
            _ = sample.tick() => if !clock.advance(cpu(began.elapsed())) {
                return began.elapsed();
            },
        }
    }
}

#[test]
fn d7_the_clock_stands_still_while_a_person_is_asked() {
    paused_runtime().block_on(async {
        let (waits, seen) = watch::channel(false);
        let clock = tokio::spawn(runs_out(RunClock::start(2 * SECOND, Some(seen)), |_| IDLE));
        sleep(SECOND).await;
        waits.send_replace(true);
        sleep(60 * SECOND).await;
        assert!(!clock.is_finished());
        waits.send_replace(false);
        assert_eq!(clock.await.expect("no panic").as_secs(), 62);
    });
}

#[test]
fn s12_a_guest_that_works_while_a_person_is_asked_pays_for_it() {
    paused_runtime().block_on(async {
        let (_waits, seen) = watch::channel(true);
        let busy = runs_out(RunClock::start(3 * SECOND, Some(seen.clone())), |passed| passed).await;
        assert_eq!(busy.as_secs(), 3);
        // A tenth of the time: ten times as long. More than one processor: no faster than the clock.
        let tenth = runs_out(RunClock::start(3 * SECOND, Some(seen.clone())), |passed| passed / 10);
        assert_eq!(tenth.await.as_secs(), 30);
        let two = runs_out(RunClock::start(3 * SECOND, Some(seen)), |passed| 2 * passed).await;
        assert_eq!(two.as_secs(), 3);
    });
}

#[test]
fn s12_work_that_is_forgotten_when_its_process_ends_still_counts() {
    paused_runtime().block_on(async {
        let (_waits, seen) = watch::channel(true);
        // Each half second, the process that did the work ends and is no longer counted.
        let cpu = |passed: Duration| Duration::from_millis(passed.as_millis() as u64 % 500);
        let ended = runs_out(RunClock::start(3 * SECOND, Some(seen)), cpu).await;
        assert!(ended < 4 * SECOND, "{ended:?}");
    });
}

#[test]
fn s12_nobody_is_waited_for_for_ever() {
    paused_runtime().block_on(async {
        let (waits, seen) = watch::channel(true);
        let mut clock = RunClock::start(SECOND, Some(seen));
        for _ in 0..2 {
            sleep(MOST_WAITING / 3).await;
            assert!(clock.advance(IDLE));
        }
        // The time in between is the run's own.
        waits.send_replace(false);
        assert_eq!(clock.tick().await, Tick::WaitChanged);
        assert!(clock.advance(IDLE));
        sleep(SECOND / 2).await;
        waits.send_replace(true);
        assert!(clock.advance(IDLE));
        let asked = time::Instant::now();
        assert_eq!(clock.tick().await, Tick::OutOfTime);
        assert!(asked.elapsed() <= MOST_WAITING / 3 + SECOND, "{:?}", asked.elapsed());
        assert!(!clock.advance(IDLE));
    });
}

#[test]
fn d7_a_bridge_that_is_gone_does_not_stop_the_clock() {
    paused_runtime().block_on(async {
        let (waits, seen) = watch::channel(true);
        drop(waits);
        let ended = runs_out(RunClock::start(SECOND, Some(seen)), |_| IDLE).await;
        assert_eq!(ended.as_secs(), 1);
    });
}
