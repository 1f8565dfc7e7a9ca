//! Times for people: how long ago, how much longer.

/// A time span in its largest unit: `12s`, `3m`, `2h`, `5d`.
pub(crate) fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The time since `then_ms`.
pub(crate) fn ago(then_ms: i64, now_ms: i64) -> String {
    format!("{} ago", span(now_ms.saturating_sub(then_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_their_largest_unit() {
        let told = [0, 59_999, 60_000, 3_600_000, 86_400_000, 3 * 86_400_000].map(span);
        assert_eq!(told, ["0s", "59s", "1m", "1h", "24h", "3d"]);
        assert_eq!(ago(5_000, 1_000), "0s ago");
    }
}
