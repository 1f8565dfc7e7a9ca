//! Two questions about files of the host, each answered in one place.
//!
//! - [`owner`]: may this file be used as our own state or configuration?
//! - [`names`]: would the host, or a tool on it, obey or execute a file of this name?
//!
//! A leaf: it knows files and names, but not their content.

pub mod names;
pub mod owner;
