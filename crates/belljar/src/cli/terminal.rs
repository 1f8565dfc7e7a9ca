//! Text for terminals: colours, columns, JSON and times. Control characters never reach the
//! terminal.

pub(crate) mod columns;
pub(crate) mod elapsed;
pub(crate) mod json_text;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod visible;
