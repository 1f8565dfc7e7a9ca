//! Searches tools by intent, offline: by the words that an intent shares with a tool's description, and
//! by how near the two are in meaning.
//!
//! [`Index`] holds the tools, [`Index::search`] ranks them. Nothing here knows of servers or
//! protocols, and a hostile description can at most win a search.

mod disk;
mod document;
mod index;
mod intent;
mod meaning;
mod neighbours;
mod rank;
mod reader;
mod table;
mod terms;
mod usage;
mod words;

pub use disk::IndexLoadError;
pub use document::{Document, Parameter};
pub use index::{Index, Key, Update};
pub use rank::{Parts, Query, ScoreSet, SearchHit};
pub use table::{DIMENSIONS, VectorTable};
pub use usage::UsageHistory;
