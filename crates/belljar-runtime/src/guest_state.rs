//! The object that code leaves in `state`, which a result carries beside the value.

use belljar_contract::RunResult;
use serde_json::value::RawValue;

use crate::value;

/// The largest state that comes back, in bytes of JSON. The guest's side has the same number.
const MAX_STATE_BYTES: usize = 1 << 20;

/// The `state` of a run, as its cell sent it.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuestState {
    /// A JSON object; `None` if the code left nothing.
    pub(crate) value: Option<Box<RawValue>>,
    /// Whether the state was left out because it was too large or not JSON.
    pub(crate) is_cut: bool,
}

impl GuestState {
    /// Checks what a cell sent; the error says how it broke the protocol.
    pub(crate) fn check(is_cut: bool, json: Vec<u8>) -> Result<Self, &'static str> {
        if is_cut && json.is_empty() {
            return Ok(Self { value: None, is_cut });
        }
        if json.len() > MAX_STATE_BYTES {
            return Err("the state is too large");
        }
        let value = value::parse_strict(json).ok_or("the state is not JSON")?;
        if !value.get().starts_with('{') {
            return Err("the state is not an object");
        }
        Ok(Self { value: Some(value), is_cut })
    }

    /// The state as results show it: an empty object if there is none.
    pub(crate) fn into_json(self) -> Box<RawValue> {
        self.value.unwrap_or_else(RunResult::no_state)
    }
}

#[cfg(test)]
mod tests;
