//! What the files say about what is kept for how long.

use std::time::Duration;

use crate::Retention;
use belljar_store::RecordKind;

use super::{
    ConfigError, ConfigFiles, RawConfig,
    quantity::{self, QuantityError},
};

/// What ages are counted in.
const DAY: Duration = Duration::from_hours(24);
/// What is written for an age that never comes.
const FOREVER: &str = "forever";
/// What is written for a size that is never reached.
const UNLIMITED: &str = "unlimited";
/// Examples of both.
const AGES: &str = "30 (a plain number is days) or \"forever\"";
const SIZES: &str = "512MiB, 1GB (a plain number is bytes) or \"unlimited\"";

/// Only the operator's file says so: whoever wrote a project has no say in what is known of what it
/// did.
pub(super) fn resolve(files: ConfigFiles<'_>) -> Result<Retention, ConfigError> {
    files.project.map_or(Ok(()), RawConfig::refuse_retention)?;
    let mut retention = Retention::default();
    let Some(file) = files.operator else { return Ok(retention) };
    let workflows = file.keep_days()?.map(|days| (RecordKind::Workflows, Some(DAY * days)));
    for (kind, age) in workflows.into_iter().chain(file.ages()?) {
        match age {
            Some(age) => retention.ages.insert(kind, age),
            None => retention.ages.remove(&kind),
        };
    }
    if let Some(most) = file.max_size()? {
        retention.max_size = most;
    }
    Ok(retention)
}

/// A number of days; nothing if it is for ever.
pub(super) fn age(text: &str) -> Result<Option<Duration>, QuantityError> {
    if text == FOREVER {
        return Ok(None);
    }
    let days = quantity::count(text).map_err(|error| with_example(error, AGES))?;
    Ok(Some(DAY * days))
}

/// A number of bytes; nothing if there may be any number.
pub(super) fn most_bytes(text: &str) -> Result<Option<u64>, QuantityError> {
    if text == UNLIMITED {
        return Ok(None);
    }
    quantity::size(text).map(Some).map_err(|error| with_example(error, SIZES))
}

/// The error with an example that has the word for no bound in it.
fn with_example(error: QuantityError, example: &'static str) -> QuantityError {
    match error {
        QuantityError::Number(text, _) => QuantityError::Number(text, example),
        QuantityError::Unit(text, unit, _) => QuantityError::Unit(text, unit, example),
        other @ (QuantityError::Zero | QuantityError::TooLarge(_)) => other,
    }
}
