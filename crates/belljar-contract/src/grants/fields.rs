//! The types that the fields of grants have: how each is read from JSON, written, asked for and given.
//!
//! A grant that needs another type adds it here.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Value, json};

use super::{Access, GrantAsk, GrantKind, GrantValue};

/// A field of [`Grants`](super::Grants).
pub(super) trait GivenField {
    /// Whether it gives anything.
    fn is_given(&self) -> bool;
    /// Takes a value of its own kind, and no other.
    fn give(&mut self, value: GrantValue);
    /// Its value.
    fn value(&self) -> GrantValue;
}

/// A field of [`GrantsRequest`](super::GrantsRequest) or [`TaskGrants`](super::TaskGrants).
pub(super) trait AskedField {
    /// The request in this field, if it asks for anything.
    fn ask(&self, kind: GrantKind) -> Option<GrantAsk<'_>>;
    /// Reads it from JSON. The error says what it takes.
    fn read(&mut self, json: &Value) -> Result<(), &'static str>;
    /// Its JSON, if it asks for anything.
    fn write(&self) -> Option<Value>;
    /// Also asks for what the same field of another request asks for, given as its JSON. Where only one
    /// can count, its own does.
    fn add(&mut self, more: &Value) {
        if self.write().is_none() {
            let _ = self.read(more);
        }
    }
}

macro_rules! given_field {
    ($type:ty, $variant:ident, $is_given:expr) => {
        impl GivenField for $type {
            fn is_given(&self) -> bool {
                $is_given(self)
            }

            fn give(&mut self, value: GrantValue) {
                if let GrantValue::$variant(value) = value {
                    *self = value;
                }
            }

            fn value(&self) -> GrantValue {
                GrantValue::$variant(self.clone())
            }
        }
    };
}

given_field!(Vec<PathBuf>, Paths, |paths: &Self| !paths.is_empty());
given_field!(BTreeMap<String, String>, Variables, |variables: &Self| !variables.is_empty());
given_field!(Vec<String>, Names, |names: &Self| !names.is_empty());
given_field!(bool, Switch, |is_on: &bool| *is_on);

impl AskedField for Access {
    fn ask(&self, kind: GrantKind) -> Option<GrantAsk<'_>> {
        match self {
            Self::None => None,
            Self::All | Self::Only(_) if kind == GrantKind::Hosts => Some(GrantAsk::Hosts(self)),
            Self::All | Self::Only(_) => Some(GrantAsk::Paths(self)),
        }
    }

    fn read(&mut self, json: &Value) -> Result<(), &'static str> {
        *self = match json.as_bool() {
            Some(true) => Self::All,
            Some(false) => Self::None,
            None => texts(json).map(Self::from).ok_or("true, false or a list of strings")?,
        };
        Ok(())
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::All => Some(json!(true)),
            Self::Only(list) => Some(json!(list)),
        }
    }

    fn add(&mut self, more: &Value) {
        let mut other = Self::None;
        let _ = other.read(more);
        match (&mut *self, other) {
            (Self::None, other) => *self = other,
            (_, Self::All) => *self = Self::All,
            (Self::Only(list), Self::Only(more)) => list.extend(more),
            (Self::All, Self::Only(_)) | (_, Self::None) => {}
        }
    }
}

impl AskedField for Vec<String> {
    fn ask(&self, kind: GrantKind) -> Option<GrantAsk<'_>> {
        (!self.is_empty()).then(|| ask_for_names(self, kind))
    }

    fn read(&mut self, json: &Value) -> Result<(), &'static str> {
        *self = texts(json).ok_or("a list of strings")?;
        Ok(())
    }

    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| json!(self))
    }
}

/// For a grant where an empty list means something else than none.
impl AskedField for Option<Vec<String>> {
    fn ask(&self, kind: GrantKind) -> Option<GrantAsk<'_>> {
        self.as_ref().map(|names| ask_for_names(names, kind))
    }

    fn read(&mut self, json: &Value) -> Result<(), &'static str> {
        *self = match json.is_null() {
            true => None,
            false => Some(texts(json).ok_or("a list of strings")?),
        };
        Ok(())
    }

    fn write(&self) -> Option<Value> {
        self.as_ref().map(|names| json!(names))
    }
}

impl AskedField for bool {
    fn ask(&self, _: GrantKind) -> Option<GrantAsk<'_>> {
        self.then_some(GrantAsk::Value(GrantValue::Switch(true)))
    }

    fn read(&mut self, json: &Value) -> Result<(), &'static str> {
        *self = json.as_bool().ok_or("true or false")?;
        Ok(())
    }

    fn write(&self) -> Option<Value> {
        self.then_some(json!(true))
    }
}

fn ask_for_names(names: &[String], kind: GrantKind) -> GrantAsk<'_> {
    match kind {
        GrantKind::Variables => {
            GrantAsk::Variables(names.iter().map(|name| (name.as_str(), None)).collect())
        }
        GrantKind::Tools => GrantAsk::Tools(names),
        GrantKind::Paths | GrantKind::Hosts | GrantKind::Names | GrantKind::Switch => {
            GrantAsk::Value(GrantValue::Names(names.to_vec()))
        }
    }
}

impl GrantValue {
    /// Its JSON in a request.
    ///
    /// # Errors
    /// A path is not UTF-8 text.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        match self {
            Self::Paths(paths) => serde_json::to_value(paths),
            Self::Variables(variables) => serde_json::to_value(variables),
            Self::Names(names) => serde_json::to_value(names),
            Self::Switch(is_on) => serde_json::to_value(is_on),
        }
    }
}

impl GrantKind {
    /// The value that texts of flags stand for. Paths stay as written, and variables are `NAME=VALUE`.
    pub fn value_of(self, texts: Vec<String>) -> GrantValue {
        let variable = |text: String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text, String::new()),
        };
        match self {
            Self::Paths => GrantValue::Paths(texts.into_iter().map(PathBuf::from).collect()),
            Self::Variables => GrantValue::Variables(texts.into_iter().map(variable).collect()),
            Self::Hosts | Self::Names | Self::Tools => GrantValue::Names(texts),
            Self::Switch => GrantValue::Switch(true),
        }
    }
}

fn texts(json: &Value) -> Option<Vec<String>> {
    json.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
