//! The answer of a tool. Big texts are moved, not copied.

use rmcp::model as protocol;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, value::RawValue};

use super::unfolded::unfolded_bytes;

/// A structured result that takes more memory than this is refused.
const MAX_UNFOLDED_BYTES: usize = 1 << 30;

/// The answer of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolAnswer {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The structured result, if there is one; it may be null.
    pub structured: Option<Value>,
    /// Its content, in order.
    pub content: Vec<ContentBlock>,
}

/// One piece of content. Serialised, it is the object that guest code gets for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ContentBlock {
    /// A text, which may be JSON.
    Text {
        /// The text as the server sent it.
        text: String,
    },
    /// A picture, as encoded bytes.
    Image {
        /// Its bytes, in base 64.
        data: String,
        /// The media type of the bytes.
        mime_type: String,
    },
    /// A recording, as encoded bytes.
    Audio {
        /// Its bytes, in base 64.
        data: String,
        /// The media type of the bytes.
        mime_type: String,
    },
    /// The URI of a resource that is not included.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// The server's name for it.
        name: String,
        /// The server's own words about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The media type of the resource, if the server says.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A resource that is included in the answer.
    Resource {
        /// The URI of the resource.
        uri: String,
        /// The media type of its content, if the server says.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its content, if it is text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its content in base64, if it is not text.
        #[serde(skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    },
    /// A kind of content that this version does not know; guest code gets null for it.
    Other {
        /// The `type` that the server gave it.
        kind: String,
    },
}

/// Why a result is not the answer of a tool.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The server wants to ask a person something first, and has done nothing yet.
    WantsInput,
    /// It is not a valid result.
    Malformed(String),
}

impl ToolAnswer {
    /// Reads the `result` of an answer.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, NoAnswer> {
        let malformed = |error: serde_json::Error| NoAnswer::Malformed(error.to_string());
        let raw: RawAnswer<'_> = serde_json::from_slice(json).map_err(malformed)?;
        match raw.result_type.as_deref() {
            None | Some("complete") => {}
            Some("input_required") => return Err(NoAnswer::WantsInput),
            Some(other) => return Err(NoAnswer::Malformed(format!("a result of type `{other}`"))),
        }
        if raw.content.is_none() && raw.structured_content.is_none() && raw.is_error.is_none() {
            return Err(NoAnswer::Malformed("an answer without content".to_owned()));
        }
        let structured = raw.structured_content.map(RawValue::get);
        if structured.is_some_and(|json| unfolded_bytes(json) > MAX_UNFOLDED_BYTES) {
            let most = MAX_UNFOLDED_BYTES >> 20;
            return Err(NoAnswer::Malformed(format!("a result of over {most} MB of values")));
        }
        Ok(Self {
            is_error: raw.is_error.unwrap_or_default(),
            structured: structured.map(serde_json::from_str).transpose().map_err(malformed)?,
            content: raw.content.unwrap_or_default().into_iter().map(Into::into).collect(),
        })
    }

    /// The same for a result that the library has parsed already.
    pub(super) fn from_protocol(result: protocol::ServerResult) -> Result<Self, NoAnswer> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "every other kind of result is as wrong as the next, known today or not"
        )]
        match result {
            protocol::ServerResult::CallToolResult(result) => Ok(Self {
                is_error: result.is_error.unwrap_or_default(),
                structured: result.structured_content,
                content: result.content.into_iter().map(Into::into).collect(),
            }),
            protocol::ServerResult::InputRequiredResult(_) => Err(NoAnswer::WantsInput),
            protocol::ServerResult::CustomResult(result) => {
                let json = serde_json::to_vec(&result.0).unwrap_or_default();
                Self::from_json(&json)
            }
            _ => Err(NoAnswer::Malformed("not the result of a tool".to_owned())),
        }
    }
}

/// A field that is there, even if it is null, as it came.
fn present_raw<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAnswer<'a> {
    result_type: Option<String>,
    content: Option<Vec<RawBlock>>,
    #[serde(borrow, default, deserialize_with = "present_raw")]
    structured_content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

/// All kinds of blocks in one, so that a text of megabytes is read once and never buffered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBlock {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    description: Option<String>,
    resource: Option<RawResource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResource {
    #[serde(default)]
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

impl From<RawBlock> for ContentBlock {
    fn from(raw: RawBlock) -> Self {
        let mime_type = raw.mime_type;
        match raw.kind.as_str() {
            "text" => Self::Text { text: raw.text.unwrap_or_default() },
            "image" => Self::Image {
                mime_type: mime_type.unwrap_or_default(),
                data: raw.data.unwrap_or_default(),
            },
            "audio" => Self::Audio {
                mime_type: mime_type.unwrap_or_default(),
                data: raw.data.unwrap_or_default(),
            },
            "resource_link" => Self::ResourceLink {
                uri: raw.uri.unwrap_or_default(),
                name: raw.name.unwrap_or_default(),
                mime_type,
                description: raw.description,
            },
            "resource" => {
                let RawResource { uri, mime_type, text, blob } = raw.resource.unwrap_or_default();
                Self::Resource { uri, mime_type, text, blob }
            }
            _ => Self::Other { kind: raw.kind },
        }
    }
}

impl From<protocol::ContentBlock> for ContentBlock {
    fn from(block: protocol::ContentBlock) -> Self {
        match block {
            protocol::ContentBlock::Text(text) => Self::Text { text: text.text },
            protocol::ContentBlock::Image(image) => {
                Self::Image { mime_type: image.mime_type, data: image.data }
            }
            protocol::ContentBlock::Audio(audio) => {
                Self::Audio { mime_type: audio.mime_type, data: audio.data }
            }
            protocol::ContentBlock::ResourceLink(link) => Self::ResourceLink {
                uri: link.uri,
                name: link.name,
                mime_type: link.mime_type,
                description: link.description,
            },
            protocol::ContentBlock::Resource(embedded) => embedded.resource.into(),
            other => {
                // The library may learn of kinds this match does not know.
                let kind = serde_json::to_value(&other).ok();
                let kind = kind.as_ref().and_then(|block| block.get("type")?.as_str());
                Self::Other { kind: kind.unwrap_or_default().to_owned() }
            }
        }
    }
}

impl From<protocol::ResourceContents> for ContentBlock {
    fn from(resource: protocol::ResourceContents) -> Self {
        match resource {
            protocol::ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Self::Resource { uri, mime_type, text: Some(text), blob: None }
            }
            protocol::ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                Self::Resource { uri, mime_type, text: None, blob: Some(blob) }
            }
            _ => Self::Other { kind: "resource".to_owned() },
        }
    }
}
