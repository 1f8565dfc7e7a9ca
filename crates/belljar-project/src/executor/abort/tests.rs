//! When the caller is asked, and what it can still say.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::*;

fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

#[test]
fn a_run_that_failed_is_asked_about_once_more_and_one_that_succeeded_is_not() {
    for success in [false, true] {
        let has_heard = AtomicBool::new(false);
        let (signal, arrived) = oneshot::channel();
        block_on(async {
            let mut abort = Abort::new(async {
                let _ = arrived.await;
                has_heard.store(true, Ordering::SeqCst);
            });
            // Control: nothing has come yet, so the step before the run is made.
            assert_eq!(abort.unless(ready(7)).await, Some(7));
            signal.send(()).unwrap();
            abort.look_again(&RunResult { success, ..RunResult::default() }).await;
        });
        assert_eq!(has_heard.load(Ordering::SeqCst), !success);
    }
}

#[test]
fn an_abort_that_has_come_can_be_asked_again() {
    block_on(async {
        let mut abort = Abort::new(ready(()));
        assert_eq!(abort.unless(std::future::pending::<u8>()).await, None);
        assert_eq!(abort.unless(ready(7)).await, None);
        abort.look_again(&RunResult::default()).await;
    });
}
