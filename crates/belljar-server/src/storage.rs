//! The sizes of the store, as metrics.

use std::fmt::Write as _;

use belljar_contract::{RecordKind, StoreSizes};

/// The sizes in Prometheus' text format.
pub(crate) fn metrics(sizes: &StoreSizes) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, values: &[(String, u64)]| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in values {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let of_kind =
        |(kind, bytes): (&RecordKind, &u64)| (format!("{{kind=\"{}\"}}", kind.as_str()), *bytes);
    let kinds: Vec<_> = sizes.kinds.iter().map(of_kind).collect();
    gauge("store_bytes", "Bytes of the store's file, by kind of content.", &kinds);
    for (name, help, value) in [
        ("store_file_bytes", "The store's file.", sizes.file),
        ("store_log_bytes", "The write-ahead log of the store.", sizes.log),
        ("store_free_bytes", "Unused bytes of the store's file.", sizes.free),
    ] {
        gauge(name, help, &[(String::new(), value)]);
    }
    text
}
