//! Whole numbers as clients and models write them in JSON.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Number, Value};

/// Integers above this differ between JSON readers, so none is taken.
pub const MAX_JSON_INTEGER: u64 = (1 << 53) - 1;

/// The whole number that a value is. Models write `5` as `5.0` now and then, so that counts.
pub fn whole_number(value: &Value) -> Option<u64> {
    let float = |number: f64| {
        let fits = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        fits.then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(float))
}

/// Reads a field that is a whole number, absent or null; for `#[serde(deserialize_with)]`.
///
/// # Errors
/// The value is negative, has a fraction, or does not fit the field.
pub fn optional_whole_number<'de, D, T>(json: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let Some(given) = Option::<Number>::deserialize(json)? else { return Ok(None) };
    let number = whole_number(&Value::Number(given.clone()));
    let fits = number.filter(|number| *number <= MAX_JSON_INTEGER);
    let fits = fits.and_then(|number| T::try_from(number).ok());
    let wrong = || D::Error::custom(format!("{given} is not a whole number from 0, or too large"));
    fits.map(Some).ok_or_else(wrong)
}
