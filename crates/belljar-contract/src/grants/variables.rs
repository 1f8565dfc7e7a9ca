//! Environment variables as a client asks for them: with a value of its own, or by name.
//!
//! In JSON a list of names, or an object whose values are texts or `null`; `null` names a variable of the
//! operator. A value of the client's own gives code nothing that the client does not have.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::{GrantAsk, GrantKind, fields::AskedField};

/// The environment variables that a client asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VariablesRequest(BTreeMap<String, Option<String>>);

impl VariablesRequest {
    /// Asks for a variable: with this value, or with the operator's.
    pub fn insert(&mut self, name: impl Into<String>, value: Option<String>) {
        self.0.insert(name.into(), value);
    }

    /// The value that the client states for a variable.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_deref()
    }
}

impl AskedField for VariablesRequest {
    fn ask(&self, _: GrantKind) -> Option<GrantAsk<'_>> {
        let asked = self.0.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
        (!self.0.is_empty()).then(|| GrantAsk::Variables(asked.collect()))
    }

    fn read(&mut self, json: &Value) -> Result<(), &'static str> {
        let own = |(name, value): (&String, &Value)| match value {
            Value::Null => Some((name.clone(), None)),
            Value::String(text) => Some((name.clone(), Some(text.clone()))),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let named = |name: &Value| Some((name.as_str()?.to_owned(), None));
        let read: Option<BTreeMap<_, _>> = match json {
            Value::Object(fields) => fields.iter().map(own).collect(),
            Value::Array(names) => names.iter().map(named).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        self.0 = read.ok_or("an object of strings, or a list of names")?;
        Ok(())
    }

    fn write(&self) -> Option<Value> {
        (!self.0.is_empty()).then(|| serde_json::json!(self))
    }
}

impl<'de> Deserialize<'de> for VariablesRequest {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(json)?;
        let mut request = Self::default();
        let wrong = |wanted| de::Error::custom(format!("it must be {wanted}"));
        request.read(&json).map_err(wrong)?;
        Ok(request)
    }
}

impl JsonSchema for VariablesRequest {
    fn schema_name() -> Cow<'static, str> {
        "Variables".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
                {"type": "array", "items": {"type": "string"}},
            ],
        })
    }

    fn inline_schema() -> bool {
        true
    }
}
