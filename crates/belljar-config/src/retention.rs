//! How long records are kept, as the files configure it.

use std::{collections::BTreeMap, time::Duration};

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

/// How long records are kept, and how large the store may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Age by kind; a kind without an entry is kept for ever.
    pub ages: BTreeMap<RecordKind, Duration>,
    /// Largest size of the store in bytes, without the audit. Above it, ages are halved until the
    /// store fits.
    pub max_size: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        let days = [
            (RecordKind::Runs, 30),
            (RecordKind::Journals, 7),
            (RecordKind::Events, 7),
            (RecordKind::Audit, 90),
            (RecordKind::Approvals, 90),
            (RecordKind::Blobs, 7),
            (RecordKind::Sessions, 30),
            (RecordKind::Workflows, 30),
        ];
        let ages = days.into_iter().map(|(kind, days)| (kind, DAY * days)).collect();
        Self { ages, max_size: Some(4 << 30) }
    }
}

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
