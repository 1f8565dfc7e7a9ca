//! What code leaves in `state`: an object that is handed on beside the value.

use belljar_contract::RunResult;
use serde_json::value::RawValue;

use crate::value;

/// The most of it that comes back, in bytes of JSON. The guest's side knows the same number.
const MAX_STATE_BYTES: usize = 1 << 20;

/// The `state` of a run, as its cell sent it.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// A JSON object; nothing when the code left nothing.
    pub(crate) value: Option<Box<RawValue>>,
    /// It was too large or no JSON, and is left out.
    pub(crate) is_cut: bool,
}

impl State {
    /// Checks what a cell sent; an error says how it breaks the protocol.
    pub(crate) fn checked(is_cut: bool, json: Vec<u8>) -> Result<Self, &'static str> {
        if is_cut && json.is_empty() {
            return Ok(Self { value: None, is_cut });
        }
        if json.len() > MAX_STATE_BYTES {
            return Err("a state that is too large");
        }
        let value = value::readable(json).ok_or("a state that is not JSON")?;
        if !value.get().starts_with('{') {
            return Err("a state that is no object");
        }
        Ok(Self { value: Some(value), is_cut })
    }

    /// As it stands in results.
    pub(crate) fn into_json(self) -> Box<RawValue> {
        self.value.unwrap_or_else(RunResult::no_state)
    }
}

#[cfg(test)]
mod tests;
