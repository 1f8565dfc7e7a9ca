//! How long records are kept, as the files configure it.

use std::time::Duration;

use crate::Retention;
use belljar_store::RecordKind;

use super::{
    ConfigError, ConfigFiles, RawConfig,
    quantity::{self, QuantityError},
};

/// The unit of ages.
const DAY: Duration = Duration::from_hours(24);
/// The word for an age without end.
const FOREVER: &str = "forever";
/// The word for a size without limit.
const UNLIMITED: &str = "unlimited";
/// Examples for error messages.
const AGES: &str = "30 (a plain number is days) or \"forever\"";
const SIZES: &str = "512MiB, 1GB or \"unlimited\"";

/// Only the operator's file may configure retention: the author of a project must not decide how
/// long its traces are kept.
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

/// A number of days; `None` for ever.
pub(super) fn age(text: &str) -> Result<Option<Duration>, QuantityError> {
    if text == FOREVER {
        return Ok(None);
    }
    let days = quantity::count(text).map_err(|error| with_example(error, AGES))?;
    Ok(Some(DAY * days))
}

/// A number of bytes; `None` for no limit.
pub(super) fn most_bytes(text: &str) -> Result<Option<u64>, QuantityError> {
    if text == UNLIMITED {
        return Ok(None);
    }
    quantity::size(text).map(Some).map_err(|error| with_example(error, SIZES))
}

/// The same error with an example that includes the word for no limit.
fn with_example(error: QuantityError, example: &'static str) -> QuantityError {
    match error {
        QuantityError::Number(text, _) => QuantityError::Number(text, example),
        QuantityError::Unit(text, unit, _) => QuantityError::Unit(text, unit, example),
        other @ (QuantityError::NoUnit(..) | QuantityError::Zero | QuantityError::TooLarge(_)) => {
            other
        }
    }
}
