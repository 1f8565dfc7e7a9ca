//! The sizes of the store, as metrics.

use std::fmt::Write as _;

/// Sizes of the store, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StorageSizes {
    /// The bytes of each kind of record.
    pub kinds: Vec<(&'static str, u64)>,
    /// The size of the database file.
    pub file: u64,
    /// The size of its write-ahead log.
    pub log: u64,
    /// The unused part of the database file.
    pub free: u64,
}

impl StorageSizes {
    /// The same in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, values: &[(String, u64)]| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (labels, value) in values {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let of_kind = |(kind, bytes): &(&str, u64)| (format!("{{kind=\"{kind}\"}}"), *bytes);
        let kinds: Vec<_> = self.kinds.iter().map(of_kind).collect();
        gauge("store_bytes", "Bytes of the store's file, by kind of content.", &kinds);
        for (name, help, value) in [
            ("store_file_bytes", "The store's file.", self.file),
            ("store_log_bytes", "The write-ahead log of the store.", self.log),
            ("store_free_bytes", "Unused bytes of the store's file.", self.free),
        ] {
            gauge(name, help, &[(String::new(), value)]);
        }
        text
    }
}
