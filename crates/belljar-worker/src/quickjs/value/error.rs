//! Why a value cannot be encoded as JSON, and where in it.

use belljar_contract::ErrorCode;
use belljar_wire::GuestError;
use rquickjs::{Atom, Error};

use crate::quickjs::{hints, text::text_of};

/// Longer paths are cut.
const MAX_PATH_BYTES: usize = 400;

/// Why a value could not be encoded as JSON.
#[derive(Debug)]
pub(in crate::quickjs) enum EncodeError {
    /// The value contains something that JSON cannot represent.
    Misfit {
        /// The fault at that place.
        what: Misfit,
        /// The steps from there up to the top.
        path: Vec<String>,
    },
    /// The JSON is longer than allowed.
    TooLarge,
    /// Guest code threw, or the engine failed.
    Engine(Error),
}

/// The fault of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quickjs) enum Misfit {
    /// It is of a kind that JSON cannot represent.
    Unsupported(&'static str),
    /// The value contains itself.
    Cycle,
    /// It is nested too deeply.
    Depth,
}

/// One step of a path.
#[derive(Debug)]
pub(super) enum PathStep<'a, 'js> {
    Top,
    Index(usize),
    Property(&'a Atom<'js>),
    Entry(&'a str),
}

impl PathStep<'_, '_> {
    /// The argument of `toJSON`.
    pub(super) fn key(&self) -> Result<String, Error> {
        match self {
            Self::Top => Ok(String::new()),
            Self::Index(index) => Ok(index.to_string()),
            Self::Property(atom) => text_of(&atom.to_js_string()?),
            Self::Entry(key) => Ok((*key).to_owned()),
        }
    }

    fn describe(&self) -> String {
        match (self, self.key()) {
            (Self::Top, _) | (_, Err(_)) => String::new(),
            (Self::Index(index), _) => format!("[{index}]"),
            (_, Ok(key)) if is_identifier(&key) => format!(".{key}"),
            (_, Ok(key)) => format!("[{key:?}]"),
        }
    }
}

fn is_identifier(key: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    key.chars().all(is_part) && key.chars().next().is_some_and(|first| !first.is_numeric())
}

impl EncodeError {
    pub(super) fn unsupported(what: &'static str) -> Self {
        Self::Misfit { what: Misfit::Unsupported(what), path: Vec::new() }
    }

    pub(super) fn cycle() -> Self {
        Self::Misfit { what: Misfit::Cycle, path: Vec::new() }
    }

    pub(super) fn depth() -> Self {
        Self::Misfit { what: Misfit::Depth, path: Vec::new() }
    }

    /// The same error, seen from the container.
    pub(super) fn under(mut self, step: &PathStep<'_, '_>) -> Self {
        if let Self::Misfit { path, .. } = &mut self {
            path.push(step.describe());
        }
        self
    }
}

impl From<Error> for EncodeError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The error for the agent; `root` is the name of the value.
pub(in crate::quickjs) fn describe(what: Misfit, root: &str, path: &[String]) -> GuestError {
    let mut place = String::from(root);
    path.iter().rev().for_each(|step| place.push_str(step));
    if place.len() > MAX_PATH_BYTES {
        place.truncate(place.floor_char_boundary(MAX_PATH_BYTES));
        place.push('…');
    }
    match what {
        Misfit::Unsupported(kind) => {
            let message = format!("{place} is {kind}, which JSON cannot represent");
            GuestError::new(ErrorCode::SerializationUnsupported, message)
                .with_hint(hints::for_unsupported(kind))
        }
        Misfit::Cycle => {
            let message = format!("{place} contains itself");
            GuestError::new(ErrorCode::SerializationUnsupported, message).with_hint(
                "Return only the fields that are needed, without the circular reference.",
            )
        }
        Misfit::Depth => {
            let message = format!("{place} is nested more than {} levels deep", super::MAX_DEPTH);
            GuestError::new(ErrorCode::SerializationDepth, message)
                .with_hint("Return a flatter value, or JSON.stringify the deep part.")
        }
    }
}
