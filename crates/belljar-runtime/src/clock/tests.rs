//! D7: a person may take longer than a run may.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{self, sleep, timeout},
};

use super::Clock;

const SECOND: Duration = Duration::from_secs(1);

fn paused_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

#[test]
fn d7_the_clock_stands_still_while_a_person_is_asked() {
    paused_runtime().block_on(async {
        let (waits, seen) = watch::channel(false);
        let began = time::Instant::now();
        let clock = tokio::spawn(Clock::start(2 * SECOND, Some(seen)).run_out());
        sleep(SECOND).await;
        waits.send_replace(true);
        sleep(60 * SECOND).await;
        assert!(!clock.is_finished());
        waits.send_replace(false);
        clock.await.expect("no panic");
        assert_eq!(began.elapsed().as_secs(), 62);
    });
}

#[test]
fn d7_a_bridge_that_is_gone_does_not_stop_the_clock() {
    paused_runtime().block_on(async {
        let (waits, seen) = watch::channel(true);
        drop(waits);
        let clock = Clock::start(SECOND, Some(seen)).run_out();
        assert!(timeout(2 * SECOND, clock).await.is_ok());
    });
}
