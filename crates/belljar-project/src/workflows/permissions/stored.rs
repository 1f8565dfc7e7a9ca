//! The operator's rules as they are stored with a workflow: one key for each grant that has a rule.
//!
//! Invariant: the text of the grants that there are never changes. `null` allows any name.

use std::{collections::BTreeMap, path::PathBuf};

use belljar_contract::{
    ClientGrants, Grant, GrantKind, GrantRule, Grants, JsonMap, JsonValue, NameRule, json_value,
};
use serde::{
    Deserialize, Deserializer, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::SerializeMap as _,
};

/// Keys that differ from the grant's.
const KEYS: [(Grant, &str); 2] = [(Grant::Read, "readable"), (Grant::Write, "writable")];

fn key_of(grant: Grant) -> &'static str {
    KEYS.iter().find(|(other, _)| *other == grant).map_or(grant.key(), |(_, key)| *key)
}

fn ruled() -> impl Iterator<Item = Grant> {
    Grant::ALL.iter().copied().filter(|grant| grant.operator().is_some())
}

pub(super) fn serialize<S: Serializer>(rules: &ClientGrants, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(None)?;
    for grant in ruled() {
        let key = key_of(grant);
        match rules.rule(grant) {
            Some(GrantRule::Paths(paths)) => map.serialize_entry(key, paths)?,
            Some(GrantRule::Variables(variables)) => map.serialize_entry(key, variables)?,
            Some(GrantRule::Names(names)) => map.serialize_entry(key, &names.only())?,
            // No value is allowed: an empty object for variables, an empty list for anything else.
            None if grant.kind() == GrantKind::Variables => {
                map.serialize_entry(key, &BTreeMap::<String, String>::new())?;
            }
            None => map.serialize_entry::<_, [String]>(key, &[])?,
        }
    }
    map.end()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ClientGrants, D::Error> {
    let mut map = JsonMap::deserialize(from)?;
    // A grant that is not stored is as if no flag was given.
    let mut rules = ClientGrants::of_flags(&Grants::default());
    for grant in ruled() {
        let Some(json) = map.shift_remove(key_of(grant)) else { continue };
        let rule = match grant.kind() {
            GrantKind::Paths => GrantRule::Paths(read::<Vec<PathBuf>, D>(json)?),
            GrantKind::Variables => GrantRule::Variables(read::<BTreeMap<_, _>, D>(json)?),
            GrantKind::Names | GrantKind::Hosts | GrantKind::Tools | GrantKind::Switch => {
                let names = read::<Option<Vec<String>>, D>(json)?;
                GrantRule::Names(names.map_or(NameRule::Any, NameRule::Only))
            }
        };
        rules.allow(grant, rule);
    }
    Ok(rules)
}

fn read<'de, T: DeserializeOwned, D: Deserializer<'de>>(json: JsonValue) -> Result<T, D::Error> {
    json_value::from_value(json).map_err(D::Error::custom)
}
