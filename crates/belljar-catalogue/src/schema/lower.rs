//! The first pass: turns keywords into types and references into names; nothing is resolved yet.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Definition, Note, ObjectType, Rest, Schema, SchemaField, TupleType, Type, pointed};

/// Levels of types within types, without those behind a name.
const MAX_DEPTH: usize = 20;
/// Types read of one schema.
const MAX_TYPES: usize = 4_000;
/// Definitions read of one schema.
const MAX_NAMES: usize = 300;
/// Fields read of one object.
const MAX_FIELDS: usize = 400;
/// A choice of more values is described by their kinds only.
const MAX_CHOICES: usize = 64;

/// Reads a schema and all it refers to.
pub(super) fn lower(schema: &Value) -> Schema {
    let mut reader =
        SchemaReader { root: schema, named: HashMap::new(), names: Vec::new(), left: MAX_TYPES };
    let root = reader.value(schema, 0);
    let mut definitions: Vec<Definition> = Vec::new();
    // Definitions are read one after the other rather than where they are referred to, so that a
    // long chain of references does not become deep recursion.
    while let Some(reference) = reader.names.get(definitions.len()).copied() {
        let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
        let kind =
            pointed(schema, reference).map_or(Type::Unknown, |target| reader.value(target, 0));
        definitions.push(Definition { name, kind });
    }
    Schema { root, definitions }
}

struct SchemaReader<'a> {
    root: &'a Value,
    named: HashMap<&'a str, usize>,
    names: Vec<&'a str>,
    left: usize,
}

impl<'a> SchemaReader<'a> {
    fn value(&mut self, schema: &'a Value, depth: usize) -> Type {
        if depth > MAX_DEPTH || self.left == 0 {
            return Type::Unknown;
        }
        self.left -= 1;
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return Type::Never,
            Value::Null
            | Value::Bool(true)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => return Type::Unknown,
        };
        let mut parts = vec![self.own(keywords, depth)];
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(reference));
        }
        for branches in ["anyOf", "oneOf"].iter().filter_map(|keyword| list(keywords, keyword)) {
            let branches = branches.iter().map(|branch| self.value(branch, depth + 1)).collect();
            parts.push(Type::Union(branches));
        }
        for branch in list(keywords, "allOf").into_iter().flatten() {
            parts.push(self.value(branch, depth + 1));
        }
        let kind = Type::Both(parts);
        match keywords.get("nullable") {
            Some(Value::Bool(true)) => Type::Union(vec![kind, Type::Null]),
            _ => kind,
        }
    }

    fn reference(&mut self, reference: &'a str) -> Type {
        let next = self.names.len();
        let known = self.named.contains_key(reference);
        if !known && (next >= MAX_NAMES || pointed(self.root, reference).is_none()) {
            return Type::Unknown;
        }
        let index = *self.named.entry(reference).or_insert(next);
        if index == next {
            self.names.push(reference);
        }
        Type::Named(index)
    }

    /// The type that a schema states itself, without the schemas it refers to or combines.
    fn own(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Type {
        if let Some(value) = keywords.get("const") {
            return literal(value, depth);
        }
        if let Some(choices) = list(keywords, "enum") {
            return choice(choices, depth);
        }
        let kinds: Vec<&str> = match keywords.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => implied(keywords).into_iter().collect(),
        };
        let kinds: Vec<Type> =
            kinds.into_iter().map(|kind| self.kind(kind, keywords, depth)).collect();
        if kinds.is_empty() { Type::Unknown } else { Type::Union(kinds) }
    }

    fn kind(&mut self, kind: &str, keywords: &'a Map<String, Value>, depth: usize) -> Type {
        match kind {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "string" => Type::String,
            "array" => self.array(keywords, depth),
            "object" => self.object(keywords, depth),
            _ => Type::Unknown,
        }
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Type {
        let places = list(keywords, "prefixItems").or_else(|| list(keywords, "items"));
        let after = match keywords.get("items") {
            Some(Value::Array(_)) => keywords.get("additionalItems"),
            after => after,
        };
        let Some(places) = places else {
            let items = after.map_or(Type::Unknown, |items| self.value(items, depth + 1));
            return Type::Array(Box::new(items));
        };
        let bound = |keyword: &str| {
            keywords
                .get(keyword)
                .and_then(Value::as_u64)
                .and_then(|count| usize::try_from(count).ok())
        };
        let most = bound("maxItems").unwrap_or(usize::MAX);
        let items: Vec<Type> = places
            .iter()
            .take(most.min(MAX_FIELDS))
            .map(|place| self.value(place, depth + 1))
            .collect();
        // A tuple that does not say how many of its places are filled means all.
        let required = bound("minItems").unwrap_or(items.len()).min(items.len());
        let closed = after == Some(&Value::Bool(false)) || most <= places.len();
        let rest = (!closed)
            .then(|| Box::new(after.map_or(Type::Unknown, |after| self.value(after, depth + 1))));
        Type::Tuple(TupleType { items, required, rest })
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Type {
        let required: Vec<&str> =
            list(keywords, "required").into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = keywords.get("properties").and_then(Value::as_object);
        let declared = properties.into_iter().flatten();
        let (mut first, mut then): (Vec<_>, Vec<_>) =
            declared.partition(|(name, _)| required.contains(&name.as_str()));
        first.append(&mut then);
        let too_many = first.len() > MAX_FIELDS;
        let mut fields: Vec<SchemaField> = first
            .into_iter()
            .take(MAX_FIELDS)
            .map(|(name, schema)| SchemaField {
                name: name.clone(),
                required: required.contains(&name.as_str()),
                kind: self.value(schema, depth + 1),
                note: schema.as_object().map(Note::read).unwrap_or_default(),
            })
            .collect();
        for name in required.into_iter().take(MAX_FIELDS) {
            let undeclared = properties.is_none_or(|properties| !properties.contains_key(name));
            if undeclared && !fields.iter().any(|field| field.name == name) {
                let (name, note) = (name.to_owned(), Note::default());
                fields.push(SchemaField { name, required: true, kind: Type::Unknown, note });
            }
        }
        let rest = if too_many {
            Rest::Typed(Box::new(Type::Unknown))
        } else {
            self.rest(keywords, depth)
        };
        Type::Object(ObjectType { fields, rest })
    }

    fn rest(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Rest {
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        let mut types: Vec<Type> = patterns
            .into_iter()
            .flatten()
            .map(|(_, schema)| self.value(schema, depth + 1))
            .collect();
        match keywords.get("additionalProperties") {
            Some(Value::Bool(false)) if types.is_empty() => return Rest::Closed,
            None if types.is_empty() => return Rest::Unsaid,
            Some(Value::Bool(false)) | None => {}
            Some(schema) => types.push(self.value(schema, depth + 1)),
        }
        Rest::Typed(Box::new(Type::Union(types)))
    }
}

fn list<'a>(keywords: &'a Map<String, Value>, keyword: &str) -> Option<&'a Vec<Value>> {
    keywords.get(keyword).and_then(Value::as_array).filter(|list| !list.is_empty())
}

/// The kind a schema without one means.
fn implied(keywords: &Map<String, Value>) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().any(|name| keywords.contains_key(*name));
    if has(&["properties", "additionalProperties", "patternProperties"]) {
        return Some("object");
    }
    has(&["items", "prefixItems"]).then_some("array")
}

fn choice(choices: &[Value], depth: usize) -> Type {
    if choices.len() <= MAX_CHOICES {
        return Type::Union(choices.iter().map(|value| literal(value, depth)).collect());
    }
    let kinds = choices.iter().map(|value| match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Number(_) => Type::Integer,
        Value::String(_) => Type::String,
        Value::Array(_) | Value::Object(_) => Type::Unknown,
    });
    let mut distinct: Vec<Type> = Vec::new();
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    Type::Union(distinct)
}

fn literal(value: &Value, depth: usize) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Type::Literal(value.clone()),
        Value::Array(_) | Value::Object(_) if depth > MAX_DEPTH => Type::Unknown,
        Value::Array(items) => {
            let items: Vec<Type> = items.iter().map(|item| literal(item, depth + 1)).collect();
            Type::Tuple(TupleType { required: items.len(), items, rest: None })
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| SchemaField {
                name: name.clone(),
                required: true,
                kind: literal(value, depth + 1),
                note: Note::default(),
            });
            Type::Object(ObjectType { fields: fields.collect(), rest: Rest::Closed })
        }
    }
}
