//! Finds a tool by what it is for, offline: the words an intent shares with what a tool says of
//! itself, and how near the two are in meaning.
//!
//! [`Index`] holds the tools, [`Index::search`] ranks them. Nothing here knows of servers or
//! protocols, and nothing a tool says can do more than win a search.

mod disk;
mod document;
mod index;
mod intent;
mod meaning;
mod rank;
mod reader;
mod table;
mod terms;
mod together;
mod words;

pub use disk::LoadError;
pub use document::{Document, Parameter};
pub use index::{Index, Key, Update};
pub use rank::{Found, Parts, Query, Use};
pub use table::{DIMENSIONS, Table};
pub use together::Together;
