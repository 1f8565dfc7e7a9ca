//! The names of tools as code writes them, and their schemas as types that code can read.
//!
//! Everything here comes from servers and is hostile: reading never fails, its work and size are bounded, and
//! no text leaves without its deceptive characters shown. Nothing here calls a tool or decides about a call.

mod names;
mod schema;
mod shape;
pub mod spelling;
mod types;
pub mod visible;

pub use belljar_policy::Tool;
pub use names::{Catalogue, ResolveError, Style, identifier};
pub use schema::{is_wrapped, pointed};
pub use shape::{ValueShape, ValueShapeLimits};
pub use types::{ValueShapes, describe, python, typescript};
