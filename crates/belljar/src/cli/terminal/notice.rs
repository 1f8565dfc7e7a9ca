//! A line for people who wait for something slow.

use std::{
    future::Future,
    io::{self, Write as _},
    time::Duration,
};

use super::style::{TextRole, TextStyle};

/// Shorter waits need no notice.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Waits for `work`; on a terminal, prints a notice if that takes long.
pub(crate) async fn with_notice<T>(
    what: impl FnOnce() -> String,
    work: impl Future<Output = T>,
) -> T {
    let style = TextStyle::of_stderr();
    tokio::pin!(work);
    if style.is_terminal() {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(NOTICE_AFTER) => {}
        }
        let _ = writeln!(io::stderr(), "{}", style.paint(TextRole::Dim, &what()));
    }
    work.await
}
