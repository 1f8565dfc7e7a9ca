//! A line for people who begin to wonder what takes so long.

use std::{
    future::Future,
    io::{self, Write as _},
    time::Duration,
};

use super::look::{Look, Role};

/// Before this, nobody wonders.
const NOT_YET: Duration = Duration::from_secs(1);

/// Waits for `work`; on a terminal, says what is being done if that takes more than a moment.
pub(crate) async fn telling<T>(what: impl FnOnce() -> String, work: impl Future<Output = T>) -> T {
    let look = Look::of_stderr();
    tokio::pin!(work);
    if look.is_terminal() {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(NOT_YET) => {}
        }
        let _ = writeln!(io::stderr(), "{}", look.paint(Role::Dim, &what()));
    }
    work.await
}
