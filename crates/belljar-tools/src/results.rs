//! The one rule that turns the answer of a tool into a value for guest code.
//!
//! The rule is written for users in `docs/tools.md`, "What a tool returns"; the two change
//! together. JSON bytes cross to a cell: a large text that is JSON already is checked and passed on as
//! it came, never built and written again. The host takes the value itself.

use std::{borrow::Cow, fmt, io};

use belljar_catalogue::is_wrapped;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::upstream::{ContentBlock, ToolAnswer};

/// A value with more bytes of JSON is dropped on a blocking thread.
const BIG: usize = 1 << 20;
/// Longer error texts are cut: a guest needs the beginning, and a log must not be flooded.
const MAX_MESSAGE: usize = 16 * 1024;

/// The value of a call. It is JSON text for guest code and a value for the host; whichever of the two it
/// was made as, only the other has to be made.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolValue {
    /// A value of the host: structured content, or what a local tool returned.
    Value(Value),
    /// The content that the server sent instead of structured content.
    Content(Vec<ContentBlock>),
    /// JSON text that was checked.
    Json(Vec<u8>),
}

impl ToolValue {
    /// The value as JSON. A big value is dropped on a blocking thread.
    pub fn into_json(self) -> Vec<u8> {
        match self {
            Self::Value(value) => {
                let json = json(&value);
                if json.len() > BIG {
                    drop(tokio::task::spawn_blocking(move || drop(value)));
                }
                json
            }
            Self::Content(content) => content_json(&content),
            Self::Json(json) => json,
        }
    }

    /// The value itself.
    pub fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Content(_) | Self::Json(_) => self.parsed().into_owned(),
        }
    }

    /// The value itself, without giving this up.
    pub(crate) fn parsed(&self) -> Cow<'_, Value> {
        match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Content(content) => Cow::Owned(match content.as_slice() {
                [] => Value::Null,
                [only] => block_value(only),
                several => several.iter().map(block_value).collect(),
            }),
            Self::Json(json) => Cow::Owned(serde_json::from_slice(json).unwrap_or_default()),
        }
    }

    /// Whether its JSON takes more than about so many bytes.
    pub(crate) fn is_larger_than(&self, bytes: usize) -> bool {
        match self {
            Self::Value(value) => serde_json::to_writer(ByteBudget(bytes), value).is_err(),
            Self::Content(content) => content.iter().map(text_bytes).sum::<usize>() > bytes,
            Self::Json(json) => json.len() > bytes,
        }
    }
}

/// The tool reported an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// The text of the answer, cut if it is very long.
    pub message: String,
}

/// The value of an answer; `output_schema` is what the tool declares.
pub fn value_of(
    answer: ToolAnswer,
    output_schema: Option<&Value>,
) -> Result<ToolValue, ToolFailure> {
    if answer.is_error {
        return Err(ToolFailure { message: message_of(&answer) });
    }
    Ok(match answer.structured {
        Some(structured) => ToolValue::Value(unwrapped(structured, output_schema)),
        None => ToolValue::Content(answer.content),
    })
}

fn unwrapped(mut structured: Value, output_schema: Option<&Value>) -> Value {
    let wrapped = output_schema.is_some_and(is_wrapped);
    match structured.as_object_mut() {
        Some(fields) if wrapped && fields.len() == 1 => {
            fields.get_mut("result").map(Value::take).unwrap_or(structured)
        }
        _ => structured,
    }
}

fn content_json(content: &[ContentBlock]) -> Vec<u8> {
    match content {
        [] => b"null".to_vec(),
        [only] => block_json(only),
        several => {
            let mut list = vec![b'['];
            for (at, block) in several.iter().enumerate() {
                if at > 0 {
                    list.push(b',');
                }
                list.extend_from_slice(&block_json(block));
            }
            list.push(b']');
            list
        }
    }
}

fn block_json(block: &ContentBlock) -> Vec<u8> {
    match block {
        ContentBlock::Text { text } => match json_text(text) {
            Some(json) => json.as_bytes().to_vec(),
            None => json(text),
        },
        ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => json(block),
        ContentBlock::Other { .. } => b"null".to_vec(),
    }
}

fn block_value(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => match json_text(text) {
            Some(json) => serde_json::from_str(json).unwrap_or_default(),
            None => text.as_str().into(),
        },
        ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => serde_json::to_value(block).unwrap_or_default(),
        ContentBlock::Other { .. } => Value::Null,
    }
}

/// The JSON of a text that is an object or an array. Any other text stays text: a text that happens to
/// be a number or `null` must not change its kind from one call to the next.
fn json_text(text: &str) -> Option<&str> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    let is_json =
        trimmed.starts_with(['{', '[']) && serde_json::from_str::<ValidJson>(trimmed).is_ok();
    is_json.then_some(trimmed)
}

/// The bytes of what a block holds.
fn text_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => data.len(),
        ContentBlock::Resource { uri, text, blob, .. } => {
            uri.len() + text.as_ref().or(blob.as_ref()).map_or(0, String::len)
        }
        ContentBlock::ResourceLink { uri, name, description, .. } => {
            uri.len() + name.len() + description.as_ref().map_or(0, String::len)
        }
        ContentBlock::Other { .. } => 0,
    }
}

/// Fails once more than so many bytes are written to it.
struct ByteBudget(usize);

impl io::Write for ByteBudget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Types of this module and texts always have a JSON form.
fn json(value: impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&value).unwrap_or_else(|_| b"null".to_vec())
}

fn message_of(answer: &ToolAnswer) -> String {
    let texts: Vec<&str> = answer
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } | ContentBlock::Resource { text: Some(text), .. } => {
                Some(text.as_str())
            }
            ContentBlock::Image { .. }
            | ContentBlock::Audio { .. }
            | ContentBlock::Resource { .. }
            | ContentBlock::ResourceLink { .. }
            | ContentBlock::Other { .. } => None,
        })
        .filter(|text| !text.trim().is_empty())
        .collect();
    let message = match (texts.is_empty(), &answer.structured) {
        (false, _) => texts.join("\n"),
        (true, Some(structured)) => structured.to_string(),
        (true, None) => "the tool reported an error without a message".to_owned(),
    };
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

/// JSON that every later reader can parse: checked to the last character without building a value. Lone
/// surrogates, numbers beyond a double and more than 127 levels are refused; such a text stays text.
struct ValidJson;

impl<'de> Deserialize<'de> for ValidJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for ValidJson {
    type Value = Self;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
