//! Text for terminals: colours, columns, JSON, times, and nothing that a terminal would obey.

pub(crate) mod columns;
pub(crate) mod elapsed;
pub(crate) mod json_text;
pub(crate) mod notice;
pub(crate) mod style;
pub(crate) mod visible;
