//! One line on the terminal that says what the program waits for.
//!
//! The line appears after a second and only on a terminal that can redraw it; it is gone before anything
//! else is printed. A pipe never gets one.

use std::{
    future::Future,
    io::{self, Write as _},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::style::{TextRole, TextStyle};

/// Shorter waits need no line.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const FRAME: Duration = Duration::from_millis(120);
const FRAMES: [char; 8] = ['⣾', '⣽', '⣻', '⢿', '⡿', '⣟', '⣯', '⣷'];
/// Erases the line that the cursor is on.
const ERASE: &str = "\r\u{1b}[2K";

/// The terminal of this process, which all threads write to.
#[derive(Debug)]
struct ProgressScreen {
    is_drawn: bool,
    /// The cursor stands behind printed text, which a line would overwrite.
    is_mid_line: bool,
    /// A question is on the screen.
    is_paused: bool,
}

static SCREEN: Mutex<ProgressScreen> =
    Mutex::new(ProgressScreen { is_drawn: false, is_mid_line: false, is_paused: false });

fn screen() -> MutexGuard<'static, ProgressScreen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgressScreen {
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "{ERASE}");
        }
    }

    fn draw(&mut self, text: &str) {
        if !self.is_paused && !self.is_mid_line {
            self.is_drawn = true;
            let _ = write!(io::stderr(), "{ERASE}{text}");
        }
    }
}

/// Prints something without a progress line in the way. `leaves_mid_line`: the cursor stays on a line of
/// the terminal with text.
pub(crate) fn above<T>(leaves_mid_line: bool, print: impl FnOnce() -> T) -> T {
    let mut screen = screen();
    screen.erase();
    screen.is_mid_line = leaves_mid_line;
    print()
}

/// Shows no progress while a question is on the screen.
pub(crate) fn pause() {
    let mut screen = screen();
    screen.erase();
    screen.is_paused = true;
}

/// Shows progress again.
pub(crate) fn unpause() {
    screen().is_paused = false;
}

/// Waits for `work`; on a terminal, a line says what is waited for if that takes long.
pub(crate) async fn with_progress<T>(
    what: impl Fn() -> String,
    work: impl Future<Output = T>,
) -> T {
    let style = TextStyle::of_stderr();
    if !style.is_terminal() {
        return work.await;
    }
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(SHOWN_AFTER) => {}
    }
    if !TextStyle::can_redraw() {
        let _ = writeln!(io::stderr(), "{}", style.paint(TextRole::Dim, &what()));
        return work.await;
    }
    let began = Instant::now() - SHOWN_AFTER;
    let mut ticks = interval(FRAME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut frames = FRAMES.iter().cycle();
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            _ = ticks.tick() => {
                let seconds = began.elapsed().as_secs();
                let frame = frames.next().copied().unwrap_or(' ');
                let line = line(frame, &what(), seconds, style);
                screen().draw(&style.paint(TextRole::Dim, &line));
            }
        }
    };
    screen().erase();
    done
}

/// The line, short enough for the terminal.
fn line(frame: char, what: &str, seconds: u64, style: TextStyle) -> String {
    let room = style.width.saturating_sub(12);
    let what: String = what.chars().take(room).collect();
    format!("{frame} {what} ({seconds} s)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_the_terminal() {
        let style = TextStyle::PLAIN;
        assert_eq!(line('-', "running a.py", 3, style), "- running a.py (3 s)");
        assert!(line('-', &"x".repeat(500), 1000, style).chars().count() <= style.width);
    }
}
