//! Structs that JSON writes as objects, and in no other way.
//!
//! A derived `Deserialize` also takes a list of a struct's fields in order. No client means that, and a
//! request that is read so would be misread, so requests read their structs through this.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

/// A struct, read from an object only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrictObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StrictObject<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        json.deserialize_map(OnlyMap(PhantomData)).map(Self)
    }
}

/// Reads a field that is an object, absent or null; for `#[serde(deserialize_with)]`.
///
/// # Errors
/// The value is anything else, or not what the struct takes.
pub fn optional_object<'de, D, T>(json: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<StrictObject<T>>::deserialize(json)?.map(|StrictObject(value)| value))
}

/// The same for a field whose absence is its default.
///
/// # Errors
/// As for [`optional_object`].
pub fn object_or_default<'de, D, T>(json: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(optional_object(json)?.unwrap_or_default())
}
