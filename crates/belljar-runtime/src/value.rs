//! A value as a cell sent it: JSON, or refused.

use belljar_wire::ErrorCode;
use serde_json::value::RawValue;

use crate::{Limits, RunError};

/// Deeper than this, common JSON readers give up.
const MAX_DEPTH: usize = 127;

/// Checks that the bytes are one JSON document within its caps.
pub(crate) fn checked(value: Vec<u8>, limits: &Limits) -> Result<Box<RawValue>, RunError> {
    if value.len() as u64 > limits.result_bytes {
        return Err(RunError::new(
            ErrorCode::LimitResult,
            format!("the value is over {} bytes of JSON", limits.result_bytes),
        ));
    }
    let broken = || RunError::new(ErrorCode::SandboxProtocol, "the cell's value is not JSON");
    if depth(&value) > MAX_DEPTH {
        return Err(broken());
    }
    let text = String::from_utf8(value).map_err(|_| broken())?;
    RawValue::from_string(text).map_err(|_| broken())
}

/// Nesting of brackets outside strings; an upper bound when the text is not JSON.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
