//! Faults in arguments, with messages that lead to the right ones.

use std::fmt;

use belljar_catalogue::visible::{line, list};
use serde_json::Value;

use super::{fields_of, shown};
use crate::Tool;

/// The first fault in the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFault {
    /// The qualified name of the tool, if the fault is of a call.
    pub tool: Option<String>,
    /// Names of fields and indices of items that lead to the fault; empty for the whole.
    pub path: Vec<String>,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// A kind of fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The arguments are not one object.
    NotNamed {
        /// The kind of value that was given.
        given: String,
        /// The required and optional fields of the object.
        fields: (Vec<String>, Vec<String>),
    },
    /// A field the object does not have.
    Unknown {
        /// The field that was given.
        name: String,
        /// The field most like it.
        near: Option<String>,
        /// The required and optional fields of the object.
        fields: (Vec<String>, Vec<String>),
    },
    /// A field that has to be there is not.
    Missing {
        /// The field that is required.
        name: String,
        /// The given field most like it.
        near: Option<String>,
        /// The required and optional fields of the object.
        fields: (Vec<String>, Vec<String>),
    },
    /// It is of another kind.
    Kind {
        /// The kinds it could be.
        wanted: Vec<String>,
        /// The value that was given.
        given: String,
    },
    /// It is none of the choices.
    Choice {
        /// The value that was given.
        given: String,
        /// The values that would do.
        choices: Vec<String>,
        /// The choice most like it.
        near: Option<String>,
    },
    /// It is out of range.
    Range {
        /// The value that was given.
        given: String,
        /// The condition, as in "must be at least 1".
        wanted: String,
    },
    /// Nothing may be there.
    NotAllowed,
}

impl ArgumentFault {
    pub(super) fn new(path: &[String], kind: FaultKind) -> Self {
        Self { tool: None, path: path.to_vec(), kind }
    }

    /// Arguments that are not an object.
    pub(super) fn not_named(schema: &Value, given: &Value) -> Self {
        let fields = schema.as_object().map(fields_of).unwrap_or_default();
        Self::new(&[], FaultKind::NotNamed { given: shown(given), fields })
    }

    pub(super) fn of_tool(mut self, tool: &Tool) -> Self {
        self.tool = Some(tool.qualified_name());
        self
    }

    /// The more telling of two faults: the one deeper in the value.
    pub(super) fn deeper(self, other: Self) -> Self {
        let depth = |fault: &Self| {
            let telling = !matches!(fault.kind, FaultKind::Kind { .. } | FaultKind::NotAllowed);
            (fault.path.len(), telling)
        };
        if depth(&other) > depth(&self) {
            return other;
        }
        match (self, other) {
            // "must be a string or null" rather than the first of the two.
            (
                Self { tool, path, kind: FaultKind::Kind { mut wanted, given } },
                Self { path: other_path, kind: FaultKind::Kind { wanted: more, .. }, .. },
            ) if path == other_path => {
                wanted.extend(more);
                wanted.dedup();
                Self { tool, path, kind: FaultKind::Kind { wanted, given } }
            }
            (first, _) => first,
        }
    }

    /// The field, as code would write it.
    fn place(&self) -> String {
        let mut place = String::new();
        for part in &self.path {
            match part.parse::<usize>() {
                Ok(_) if !place.is_empty() => place.push_str(&format!("[{part}]")),
                _ if place.is_empty() => place.push_str(part),
                _ => place.push_str(&format!(".{part}")),
            }
        }
        line(&place, 120)
    }

    /// The field within the object where the fault is.
    fn field(&self, name: &str) -> String {
        let place = self.place();
        if place.is_empty() { line(name, 120) } else { format!("{place}.{}", line(name, 120)) }
    }

    fn subject(&self) -> String {
        let tool = self.tool.as_deref().map(|tool| line(tool, 120));
        match (self.path.is_empty(), tool) {
            (false, Some(tool)) => format!("`{}` of {tool}", self.place()),
            (false, None) => format!("`{}`", self.place()),
            (true, Some(tool)) => format!("the argument of {tool}"),
            (true, None) => "the value".to_owned(),
        }
    }
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool.as_deref().map_or_else(|| "it".to_owned(), |tool| line(tool, 120));
        let subject = self.subject();
        match &self.kind {
            FaultKind::NotNamed { given, fields } => {
                let given = line(given, 60);
                write!(to, "{tool} takes its arguments by name, in one object, not {given}")?;
                let first = fields.0.first().or(fields.1.first());
                match first {
                    Some(name) => write!(to, ": {{ {}: … }}{}", line(name, 60), field_list(fields)),
                    None => Ok(()),
                }
            }
            FaultKind::Unknown { name, near, fields } => {
                let what = if self.path.is_empty() { "an argument" } else { "a field" };
                write!(to, "`{}` is not {what} of {tool}", self.field(name))?;
                if let Some(near) = near {
                    write!(to, "; did you mean `{}`?", line(near, 80))?;
                }
                to.write_str(&field_list(fields))
            }
            FaultKind::Missing { name, near, fields } => {
                write!(to, "{tool} needs `{}`", self.field(name))?;
                if let Some(near) = near {
                    write!(to, "; `{}` was given: did you mean that?", line(near, 80))?;
                }
                to.write_str(&field_list(fields))
            }
            FaultKind::Kind { wanted, given } => {
                write!(to, "{subject} must be {}, not {}", kinds(wanted), line(given, 60))?;
                if given == "null" {
                    to.write_str("; leave it out instead")?;
                }
                Ok(())
            }
            FaultKind::Choice { given, choices, near } => {
                let (given, choices) = (line(given, 60), list(choices, 12));
                write!(to, "{subject} must be one of {choices}, not {given}")?;
                match near {
                    Some(near) => write!(to, "; did you mean `{}`?", line(near, 80)),
                    None => Ok(()),
                }
            }
            FaultKind::Range { given, wanted } => {
                write!(to, "{subject} {}, not {}", line(wanted, 120), line(given, 60))
            }
            FaultKind::NotAllowed => write!(to, "{subject} must not be given"),
        }
    }
}

impl std::error::Error for ArgumentFault {}

fn kinds(wanted: &[String]) -> String {
    let named: Vec<String> = wanted
        .iter()
        .map(|kind| match kind.as_str() {
            "array" | "object" | "integer" => format!("an {kind}"),
            "null" => "null".to_owned(),
            _ => format!("a {}", line(kind, 20)),
        })
        .collect();
    named.join(" or ")
}

/// The fields of the object, in brackets.
fn field_list((required, optional): &(Vec<String>, Vec<String>)) -> String {
    match (required.is_empty(), optional.is_empty()) {
        (true, true) => " (it takes none)".to_owned(),
        (true, false) => format!(" (all optional: {})", list(optional, 20)),
        (false, true) => format!(" (required: {})", list(required, 20)),
        (false, false) => {
            format!(" (required: {}; optional: {})", list(required, 20), list(optional, 20))
        }
    }
}
