//! An object whose keys keep their order.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use indexmap::IndexMap;

use super::JsonValue;

/// An object of JSON. Two objects are equal if they have the same keys and values, in any order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonMap(Box<IndexMap<String, JsonValue>>);

impl JsonMap {
    /// An object without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a key out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<JsonValue> {
        self.0.shift_remove(key)
    }
}

impl Deref for JsonMap {
    type Target = IndexMap<String, JsonValue>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for JsonMap {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<K: Into<String>, V: Into<JsonValue>> FromIterator<(K, V)> for JsonMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into()));
        Self(Box::new(entries.collect()))
    }
}

impl<K: Into<String>, V: Into<JsonValue>, const N: usize> From<[(K, V); N]> for JsonMap {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl From<BTreeMap<String, JsonValue>> for JsonMap {
    fn from(entries: BTreeMap<String, JsonValue>) -> Self {
        entries.into_iter().collect()
    }
}

impl Extend<(String, JsonValue)> for JsonMap {
    fn extend<I: IntoIterator<Item = (String, JsonValue)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl IntoIterator for JsonMap {
    type Item = (String, JsonValue);
    type IntoIter = indexmap::map::IntoIter<String, JsonValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a JsonMap {
    type Item = (&'a String, &'a JsonValue);
    type IntoIter = indexmap::map::Iter<'a, String, JsonValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
