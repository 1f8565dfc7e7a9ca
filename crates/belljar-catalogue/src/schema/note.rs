//! The remarks of a schema on a field: description, default, format and bounds.

use serde_json::{Map, Value};

use crate::visible::line;

/// Remarks on a field, in the server's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The server's own words about the field.
    pub(crate) description: Option<String>,
    /// Its default, format and bounds, each a few words.
    pub(crate) facts: Vec<String>,
}

impl Note {
    pub(super) fn read(keywords: &Map<String, Value>) -> Self {
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        let description = text("description").or(text("title")).map(str::trim);
        let description = description.filter(|text| !text.is_empty()).map(str::to_owned);
        let mut facts = Vec::new();
        if let Some(default) = keywords.get("default").filter(|value| !value.is_null()) {
            facts.push(format!("default: {}", line(&default.to_string(), 40)));
        }
        let said = [
            ("format", "format: "),
            ("pattern", "pattern: "),
            ("minimum", "min: "),
            ("maximum", "max: "),
            ("exclusiveMinimum", "more than: "),
            ("exclusiveMaximum", "less than: "),
            ("minLength", "min length: "),
            ("maxLength", "max length: "),
            ("minItems", "min items: "),
            ("maxItems", "max items: "),
        ];
        for (keyword, name) in said {
            match keywords.get(keyword) {
                Some(Value::String(text)) => facts.push(format!("{name}{}", line(text, 40))),
                // Bounds that only say what a double can hold say nothing.
                Some(Value::Number(number)) if is_telling(number) => {
                    facts.push(format!("{name}{number}"));
                }
                _ => {}
            }
        }
        Self { description, facts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.description.is_none() && self.facts.is_empty()
    }

    /// The note in one text.
    pub(crate) fn text(&self) -> String {
        let facts = self.facts.join(", ");
        match (&self.description, facts.is_empty()) {
            (Some(description), true) => description.clone(),
            (Some(description), false) => format!("{description} ({facts})"),
            (None, _) => facts,
        }
    }
}

fn is_telling(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|number| number.abs() < 9e15)
}
