//! The log entries of a run that are on neither stream: `debug(x)` and blocked attempts.
//!
//! A result lists every print in `logs`, in order. Those that also went to a stream are found by
//! walking both streams along with the list.

use belljar_contract::RunResult;

/// The entries a person has not seen yet on standard output or standard error.
pub(crate) fn only_logged(result: &RunResult) -> Vec<&str> {
    if result.truncated.stdout || result.truncated.stderr {
        // What was cut from a stream cannot be told from what never was there.
        return Vec::new();
    }
    let mut streams = [result.stdout.as_str(), result.stderr.as_str()];
    let mut unseen = Vec::new();
    for entry in &result.logs {
        if !streams.iter_mut().any(|stream| take(stream, entry)) {
            unseen.push(entry.as_str());
        }
    }
    unseen
}

/// Takes the entry off the front of a stream, if it is there as a whole print.
fn take(stream: &mut &str, entry: &str) -> bool {
    let Some(rest) = stream.strip_prefix(entry) else { return false };
    if let Some(rest) = rest.strip_prefix('\n') {
        *stream = rest;
        return true;
    }
    // A print without a line end: it counts unless it would be nothing at all.
    let taken = !entry.is_empty();
    if taken {
        *stream = rest;
    }
    taken
}

#[cfg(test)]
mod tests;
