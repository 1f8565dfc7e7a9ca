//! Stored records: the subject of one, the kinds there are, and their size.

use std::{collections::BTreeMap, fmt};

use serde::{Serialize, Serializer};

use crate::Language;

/// The work that a record of a run is about: code in a language, or one tool call without code.
///
/// Its [`Display`](fmt::Display) is the text that records keep, and JSON has the same text, under the
/// key `language`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedWork {
    /// Guest code.
    Code(Language),
    /// One tool call, without code and without a cell.
    ToolCall,
    /// Work that this version does not know, by its text: a record of another version is still listed.
    Unknown(Box<str>),
}

impl RecordedWork {
    const TOOL_CALL: &'static str = "tool";

    /// The work that a record names.
    pub fn from_record(name: &str) -> Self {
        match Language::ALL.into_iter().find(|language| language.as_str() == name) {
            Some(language) => Self::Code(language),
            None if name == Self::TOOL_CALL => Self::ToolCall,
            None => Self::Unknown(name.into()),
        }
    }

    /// The text that records keep.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Code(language) => language.as_str(),
            Self::ToolCall => Self::TOOL_CALL,
            Self::Unknown(name) => name,
        }
    }
}

impl From<Language> for RecordedWork {
    fn from(language: Language) -> Self {
        Self::Code(language)
    }
}

impl fmt::Display for RecordedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RecordedWork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of version 0.1.0 have these texts, so each is read and written unchanged. A short name is
    /// none of them: it must not come back as the long one.
    #[test]
    fn d7_the_text_of_a_record_stays_as_it_is() {
        for (text, work) in [
            ("typescript", RecordedWork::Code(Language::TypeScript)),
            ("javascript", RecordedWork::Code(Language::JavaScript)),
            ("python", RecordedWork::Code(Language::Python)),
            ("bash", RecordedWork::Code(Language::Bash)),
            ("tool", RecordedWork::ToolCall),
            ("", RecordedWork::Unknown("".into())),
            ("py", RecordedWork::Unknown("py".into())),
            ("lua", RecordedWork::Unknown("lua".into())),
        ] {
            assert_eq!(RecordedWork::from_record(text), work);
            assert_eq!(work.to_string(), text);
            assert_eq!(serde_json::to_value(&work).ok(), Some(text.into()));
        }
    }
}

/// A kind of record. Retention, sizes and metrics name them alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
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
}

/// The size of a store, by kind of record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StoreSizes {
    /// Bytes of the database file.
    pub file: u64,
    /// Bytes of its write-ahead log.
    pub log: u64,
    /// Bytes of unused pages in the file.
    pub free: u64,
    /// Bytes of pages by kind of record; every kind has an entry.
    pub kinds: BTreeMap<RecordKind, u64>,
}
