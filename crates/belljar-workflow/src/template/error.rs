//! Errors of templates: the reason, the template, and similar names.

use super::DEPTH;

/// Why a template could not be rendered or parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template uses a name that does not exist.
    #[error("unknown name {name} in `{template}`{}", did_you_mean(near))]
    Unknown {
        /// The name, as a path: `results.fetch`.
        name: String,
        /// The beginning of the template.
        template: String,
        /// Similar names that exist.
        near: Vec<String>,
    },
    /// The template cannot be parsed, or failed while it was rendered.
    #[error("{what} in `{template}`")]
    Broken {
        /// The reason, as the template engine or our own check gives it.
        what: String,
        /// The beginning of the template.
        template: String,
    },
    /// The text must be one expression and is not.
    #[error("not an expression: {what} in `{template}`")]
    NotAnExpression {
        /// The reason it cannot be parsed.
        what: String,
        /// The beginning of the template.
        template: String,
    },
    /// The value that holds the template is nested too deeply.
    #[error("a value is nested more than {DEPTH} levels deep")]
    Deep,
}

/// ` (did you mean a or b?)`, or nothing.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    format!(" (did you mean {}?)", near.join(" or "))
}
