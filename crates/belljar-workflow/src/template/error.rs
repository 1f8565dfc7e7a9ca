//! Errors of templates: what could not be rendered, in which template, and which name was near.

use super::DEPTH;

/// Why a template gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It names something there is not.
    #[error("unknown name {name} in `{template}`{}", did_you_mean(near))]
    Unknown {
        /// The name, as a path: `results.fetch`.
        name: String,
        /// The template, shortened.
        template: String,
        /// Names that exist and look like it.
        near: Vec<String>,
    },
    /// It cannot be read, or went wrong on the way.
    #[error("{what} in `{template}`")]
    Broken {
        /// The template engine's own words, or ours.
        what: String,
        /// The template, shortened.
        template: String,
    },
    /// It is meant to be an expression and is none.
    #[error("not an expression: {what} in `{template}`")]
    NotAnExpression {
        /// The reason it cannot be parsed.
        what: String,
        /// The template, shortened.
        template: String,
    },
    /// It is in a value that is too deep.
    #[error("a value is nested more than {DEPTH} deep")]
    Deep,
}

/// ` (did you mean a or b?)`, or nothing.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    format!(" (did you mean {}?)", near.join(" or "))
}
