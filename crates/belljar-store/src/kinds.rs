//! The kinds of records in a store, and the tables of each.

use belljar_contract::RecordKind;

/// Every table and its kind.
pub(crate) const TABLES: [(&str, RecordKind); 19] = [
    ("runs", RecordKind::Runs),
    ("run_blobs", RecordKind::Runs),
    ("journal", RecordKind::Journals),
    ("events", RecordKind::Events),
    ("audit", RecordKind::Audit),
    ("approvals", RecordKind::Approvals),
    ("blobs", RecordKind::Blobs),
    ("sessions", RecordKind::Sessions),
    ("flows", RecordKind::Workflows),
    ("flow_inputs", RecordKind::Workflows),
    ("flow_snapshots", RecordKind::Workflows),
    ("flow_intents", RecordKind::Workflows),
    ("flow_events", RecordKind::Workflows),
    ("flow_commands", RecordKind::Workflows),
    ("flow_blobs", RecordKind::Workflows),
    ("cache", RecordKind::Cache),
    ("cache_blobs", RecordKind::Cache),
    ("shapes", RecordKind::Other),
    ("sqlite_sequence", RecordKind::Other),
];

/// The kind of a table.
pub(crate) fn kind_of_table(name: &str) -> RecordKind {
    let found = TABLES.iter().find(|(table, _)| *table == name);
    found.map_or(RecordKind::Other, |(_, kind)| *kind)
}
