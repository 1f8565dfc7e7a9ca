//! Log entries of a run that went to neither stream: `debug(x)` and blocked attempts.
//!
//! A result lists every print in `logs`, in order. Entries that also went to a stream are found by
//! comparing both streams with the list.

use belljar_contract::RunResult;

/// The entries that were printed neither to standard output nor to standard error.
pub(crate) fn only_logged(result: &RunResult) -> Vec<&str> {
    if result.truncated.stdout || result.truncated.stderr {
        // In truncated output a cut entry looks like one that was never there.
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

/// Removes the entry from the front of a stream, if it is there as a whole print.
fn take(stream: &mut &str, entry: &str) -> bool {
    let Some(rest) = stream.strip_prefix(entry) else { return false };
    if let Some(rest) = rest.strip_prefix('\n') {
        *stream = rest;
        return true;
    }
    // A print without a newline counts unless it is empty.
    let taken = !entry.is_empty();
    if taken {
        *stream = rest;
    }
    taken
}

#[cfg(test)]
mod tests;
