//! The limits of one workflow, one input and one value.
//!
//! Anything beyond them is refused, or fails with a code of its own, before it is journalled. So a
//! journal can always be read back, and no input uses up the memory or time of its host.

use belljar_contract::JsonValue;
use serde::Serialize;

use crate::effect::{InputKind, MachineInput, TaskEnding, TaskFailure, TaskOutcome};

/// How deeply a value may be nested. Reading is limited to 128, and a written value is wrapped.
pub(crate) const DEEPEST: usize = 64;
/// Bytes of one value: a result, the output of a template, a command. About the size of its JSON.
pub(crate) const VALUE_BYTES: usize = 16 * 1024 * 1024;
/// Values within one value that a template returns.
pub(crate) const ITEMS: usize = 1_000_000;
/// Bytes of all values of one workflow, and of one workflow as written.
pub(crate) const STATE_BYTES: usize = 64 * 1024 * 1024;
/// After how many new bytes the values are counted again.
pub(crate) const GROWTH_BYTES: usize = 4 * 1024 * 1024;
/// Task instances of one workflow at a time, and task definitions in all.
pub(crate) const INSTANCES: usize = 200_000;
/// Tasks that may begin because of one input.
pub(crate) const STEPS: usize = 200_000;

/// Whether a value is nested too deeply.
pub(crate) fn is_deep(value: &JsonValue) -> bool {
    fn within(value: &JsonValue, left: usize) -> bool {
        match value {
            JsonValue::Array(items) => left > 0 && items.iter().all(|item| within(item, left - 1)),
            JsonValue::Object(map) => left > 0 && map.values().all(|item| within(item, left - 1)),
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) | JsonValue::String(_) => {
                true
            }
        }
    }
    !within(value, DEEPEST)
}

/// The size of a value as JSON, estimated.
pub(crate) fn bytes_of(value: &JsonValue) -> usize {
    let mut bytes = 0_usize;
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        bytes += match value {
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => 8,
            JsonValue::String(text) => text.len() + 3,
            JsonValue::Array(items) => {
                todo.extend(items);
                2
            }
            JsonValue::Object(map) => {
                todo.extend(map.values());
                map.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
        };
    }
    bytes
}

/// Why a value cannot be a result.
pub(crate) fn unfit(value: &JsonValue) -> Option<TaskFailure> {
    if is_deep(value) {
        let message = format!("the result is nested more than {DEEPEST} levels deep");
        return Some(TaskFailure { lasting: true, ..TaskFailure::new("result.too_deep", message) });
    }
    if bytes_of(value) > VALUE_BYTES {
        let message = format!("the result has more than {VALUE_BYTES} bytes");
        return Some(TaskFailure {
            lasting: true,
            ..TaskFailure::new("result.too_large", message)
        });
    }
    None
}

/// Why a value cannot be stored: nested too deeply, or more than `most` bytes.
pub(crate) fn unwritable(value: &impl Serialize, most: usize) -> Option<String> {
    let text = match serde_json::to_vec(value) {
        Ok(text) => text,
        Err(error) => return Some(format!("cannot be written as JSON: {error}")),
    };
    if text.len() > most {
        return Some(format!("{} bytes are too many; at most {most} are allowed", text.len()));
    }
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (deepest > DEEPEST).then(|| format!("nested more than {DEEPEST} levels deep"))
}

/// An input with an outcome that can be stored; one that cannot becomes a failure.
pub(crate) fn bounded(input: MachineInput) -> MachineInput {
    let MachineInput { now_ms, what } = input;
    let what = match what {
        InputKind::Ended { instance, attempt, outcome } => {
            InputKind::Ended { instance, attempt, outcome: bounded_outcome(outcome) }
        }
        other @ (InputKind::Begin
        | InputKind::Fired { .. }
        | InputKind::Command { .. }
        | InputKind::Resumed { .. }
        | InputKind::RollBack { .. }) => other,
    };
    MachineInput { now_ms, what }
}

fn bounded_outcome(mut outcome: TaskOutcome) -> TaskOutcome {
    let state = JsonValue::Object(std::mem::take(&mut outcome.state));
    let unfit_state = unfit(&state);
    if let (None, JsonValue::Object(state)) = (&unfit_state, state) {
        outcome.state = state;
    }
    outcome.ending = match outcome.ending {
        TaskEnding::Done { value } => match unfit(&value).or(unfit_state) {
            // The task took effect, whatever its result.
            Some(failure) => TaskEnding::Failed {
                failure: TaskFailure { may_have_acted: !outcome.read_only, ..failure },
            },
            None => TaskEnding::Done { value },
        },
        TaskEnding::Failed { failure } => TaskEnding::Failed { failure: bounded_failure(failure) },
    };
    let mut left = VALUE_BYTES;
    outcome.logs.retain(|line| {
        let fits = line.len() <= left;
        left = left.saturating_sub(line.len());
        fits
    });
    outcome
}

/// A failure without details that cannot be stored.
pub(crate) fn bounded_failure(mut failure: TaskFailure) -> TaskFailure {
    failure.details = failure.details.filter(|details| unfit(details).is_none());
    if failure.message.len() > VALUE_BYTES {
        failure.message = "the error message was too long to store".to_owned();
    }
    failure
}
