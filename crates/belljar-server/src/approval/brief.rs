//! Arguments of a call, shortened to fit a form.
//!
//! If they do not fit, every value is shortened and every key is kept: the person sees at least
//! what to look at elsewhere.

use serde_json::{Map, Value};

use super::{QuestionExtent, visible};

/// Characters kept at each end of a long text.
const TEXT_ENDS: usize = 40;
/// Items kept of a long list.
const LIST_ITEMS: usize = 5;

/// The arguments as text of about `room` characters, and whether that is all of them.
pub(super) fn arguments(arguments: &Value, room: usize) -> (String, QuestionExtent) {
    let whole = visible(&pretty(arguments));
    if whole.chars().nth(room).is_none() {
        return (whole, QuestionExtent::Whole);
    }
    let brief = visible(&pretty(&shortened(arguments)));
    if brief.chars().nth(room).is_none() {
        return (brief, QuestionExtent::InPart);
    }
    let shown: String = brief.chars().take(room).collect();
    let left_out = whole.len().saturating_sub(shown.len());
    (format!("{shown}\n… and {left_out} bytes more"), QuestionExtent::InPart)
}

/// The arguments for a model, if they are longer than `room` bytes: shortened, or the beginning of that as text.
pub(crate) fn brief_arguments(arguments: &Value, room: usize) -> Option<Value> {
    if arguments.to_string().len() <= room {
        return None;
    }
    let brief = shortened(arguments);
    let text = brief.to_string();
    if text.len() <= room {
        return Some(brief);
    }
    let end = text.floor_char_boundary(room);
    let beginning = text.get(..end).unwrap_or_default();
    Some(Value::from(format!("{beginning}… and {} bytes more", text.len() - end)))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::from(ends(text)),
        Value::Array(items) => {
            let mut kept: Vec<Value> = items.iter().take(LIST_ITEMS).map(shortened).collect();
            if items.len() > LIST_ITEMS {
                kept.push(Value::from(format!("… and {} more", items.len() - LIST_ITEMS)));
            }
            Value::from(kept)
        }
        Value::Object(fields) => {
            let kept = fields.iter().map(|(key, value)| (key.clone(), shortened(value)));
            Value::from(kept.collect::<Map<_, _>>())
        }
    }
}

/// A short text as it is; of a long one, its two ends.
fn ends(text: &str) -> String {
    let count = text.chars().count();
    if count <= 3 * TEXT_ENDS {
        return text.to_owned();
    }
    let head: String = text.chars().take(TEXT_ENDS).collect();
    let tail: String = text.chars().skip(count - TEXT_ENDS).collect();
    format!("{head}… {} characters more …{tail}", count - 2 * TEXT_ENDS)
}
