//! What a caller asks for.

pub use belljar_wire::Language;
use serde_json::value::RawValue;

use crate::Limits;

/// One piece of guest code, and what it may use.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The code.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// The name errors and stacks show for it.
    pub file_name: String,
    /// The global `context`; `None` is an empty object.
    pub context: Option<Box<RawValue>>,
    /// What it may use.
    pub limits: Limits,
}

impl RunRequest {
    /// TypeScript with the default limits and no context.
    pub fn typescript(code: impl Into<String>) -> Self {
        Self::new(Language::TypeScript, code)
    }

    /// Code with the default limits and no context.
    pub fn new(language: Language, code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            language,
            file_name: language.file_name().to_owned(),
            context: None,
            limits: Limits::DEFAULT,
        }
    }
}
