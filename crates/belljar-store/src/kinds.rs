//! The kinds of records in a store, and the tables of each.

/// A kind of record. Retention, sizes and metrics name them alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// Durable runs: code, request, result.
    Runs,
    /// The journals of durable runs, call by call.
    Journals,
    /// The events of runs.
    Events,
    /// The audit log of tool calls.
    Audit,
    /// Questions to a person, and the decisions.
    Approvals,
    /// Large values, by their content.
    Blobs,
    /// Records of sessions, live and ended.
    Sessions,
    /// Workflows with their inputs, events and commands.
    Workflows,
    /// Cached results of runs and calls.
    Cache,
    /// The rest: learned shapes of tool results, and the schema itself.
    Other,
}

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

impl RecordKind {
    /// Every kind, in the order in which sizes are listed.
    pub const ALL: [Self; 10] = [
        Self::Runs,
        Self::Journals,
        Self::Events,
        Self::Audit,
        Self::Approvals,
        Self::Blobs,
        Self::Sessions,
        Self::Workflows,
        Self::Cache,
        Self::Other,
    ];

    /// As configuration and metrics spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Journals => "journals",
            Self::Events => "events",
            Self::Audit => "audit",
            Self::Approvals => "approvals",
            Self::Blobs => "blobs",
            Self::Sessions => "sessions",
            Self::Workflows => "workflows",
            Self::Cache => "cache",
            Self::Other => "other",
        }
    }

    /// The kind of a table.
    pub(crate) fn of_table(name: &str) -> Self {
        let found = TABLES.iter().find(|(table, _)| *table == name);
        found.map_or(Self::Other, |(_, kind)| *kind)
    }
}
