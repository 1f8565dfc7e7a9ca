//! The one rule that turns the answer of a tool into a value for guest code.
//!
//! The rule is written for users in `docs/tools.md`, "What a tool returns"; the two change
//! together. The value is made as JSON bytes, because that is what crosses to the cell: a large text
//! that is JSON already is checked and passed on as it came, never built and written again.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Longer error texts are cut: a guest needs the beginning, and a log must not be flooded.
const MAX_MESSAGE: usize = 16 * 1024;

/// The answer of a server to a call, and the schema it should follow.
#[derive(Debug, Clone, Copy)]
pub struct AnswerParts<'a> {
    /// Its structured content, if it sent any.
    pub structured: Option<&'a Value>,
    /// Its content, in order.
    pub content: &'a [Block<'a>],
    /// Whether it says that the call failed.
    pub is_error: bool,
    /// The output schema the tool declares, if any.
    pub output_schema: Option<&'a Value>,
}

/// A piece of content. Serialised, it is the object guest code gets for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text, which may be JSON.
    Text {
        /// The text as the server sent it.
        text: &'a str,
    },
    /// A picture, as encoded bytes.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes in base64.
        data: &'a str,
        /// The media type of the picture.
        mime_type: &'a str,
    },
    /// A sound, as encoded bytes.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// Its bytes in base64.
        data: &'a str,
        /// The media type of the sound.
        mime_type: &'a str,
    },
    /// A resource, with its content.
    #[serde(rename_all = "camelCase")]
    Resource {
        /// The URI of the resource.
        uri: &'a str,
        /// The media type of the content.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        /// Its content if that is text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
        /// Its content in base64 if not.
        #[serde(skip_serializing_if = "Option::is_none")]
        blob: Option<&'a str>,
    },
    /// Where a resource is.
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        /// The URI of the resource.
        uri: &'a str,
        /// The name of the resource.
        name: &'a str,
        /// The server's own words about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        /// The media type of its content.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
    },
    /// A kind this version does not know, as the server sent it.
    #[serde(untagged)]
    Other(&'a Value),
}

/// The tool reported an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// The text of the answer, cut if it is very long.
    pub message: String,
}

/// The value guest code gets, as JSON.
pub fn value_of(answer: AnswerParts<'_>) -> Result<Vec<u8>, ToolFailure> {
    if answer.is_error {
        return Err(ToolFailure { message: message_of(answer) });
    }
    if let Some(structured) = answer.structured {
        return Ok(json(unwrapped(structured, answer.output_schema)));
    }
    match answer.content {
        [] => Ok(b"null".to_vec()),
        [only] => Ok(block_value(only)),
        several => {
            let mut list = vec![b'['];
            for (at, block) in several.iter().enumerate() {
                if at > 0 {
                    list.push(b',');
                }
                list.extend_from_slice(&block_value(block));
            }
            list.push(b']');
            Ok(list)
        }
    }
}

/// Whether a schema says that a server of the FastMCP kind wrapped a value, because structured
/// content has to be an object, in one with the single field `result`.
pub(crate) fn is_wrapped(output_schema: &Value) -> bool {
    output_schema.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true))
}

fn unwrapped<'a>(structured: &'a Value, output_schema: Option<&Value>) -> &'a Value {
    let wrapped = output_schema.is_some_and(is_wrapped);
    match structured.as_object() {
        Some(fields) if wrapped && fields.len() == 1 => fields.get("result").unwrap_or(structured),
        _ => structured,
    }
}

fn block_value(block: &Block<'_>) -> Vec<u8> {
    match block {
        Block::Text { text } => text_value(text),
        Block::Image { .. }
        | Block::Audio { .. }
        | Block::Resource { .. }
        | Block::ResourceLink { .. }
        | Block::Other(_) => json(block),
    }
}

/// JSON text of an object or an array as what it is, any other text as text: a text that happens
/// to be a number or `null` must not change its kind from one call to the next.
fn text_value(text: &str) -> Vec<u8> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    if trimmed.starts_with(['{', '[']) && serde_json::from_str::<ValidJson>(trimmed).is_ok() {
        return trimmed.as_bytes().to_vec();
    }
    json(text)
}

/// Types of this module and texts always have a JSON form.
fn json(value: impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&value).unwrap_or_else(|_| b"null".to_vec())
}

fn message_of(answer: AnswerParts<'_>) -> String {
    let texts: Vec<&str> = answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } | Block::Resource { text: Some(text), .. } => Some(*text),
            Block::Image { .. }
            | Block::Audio { .. }
            | Block::Resource { .. }
            | Block::ResourceLink { .. }
            | Block::Other(_) => None,
        })
        .filter(|text| !text.trim().is_empty())
        .collect();
    let message = match (texts.is_empty(), answer.structured) {
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
