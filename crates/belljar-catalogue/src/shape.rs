//! Types learned from the results of tools that declare no output schema.
//!
//! A shape says of which kinds the values seen were and which fields their objects had; never a
//! value itself. Shapes are learned by merging, which only widens them; size and depth are bounded, so
//! that no result, however large, makes a large shape. Objects that are used as maps are recognised, and
//! their keys, which are data, are not stored.

mod keys;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use keys::are_data;

/// How much a shape may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueShapeLimits {
    /// Levels of arrays and objects; deeper values are not described.
    pub depth: usize,
    /// Fields of an object; one with more is a map.
    pub fields: usize,
    /// Items of an array that are looked at, spread over all of it.
    pub items: usize,
    /// Shapes within the shape, itself included; further ones are not described.
    pub nodes: usize,
}

impl Default for ValueShapeLimits {
    fn default() -> Self {
        Self { depth: 8, fields: 60, items: 100, nodes: 600 }
    }
}

/// The kinds of the values seen so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueShape {
    /// Anything: too deep or too large to say.
    #[serde(default, skip_serializing_if = "is_false")]
    any: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    null: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    boolean: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    integer: bool,
    /// A number that is no integer was seen.
    #[serde(default, skip_serializing_if = "is_false")]
    number: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    string: bool,
    /// Arrays were seen, with such items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<Box<ValueShape>>,
    /// Objects were seen, with such fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<ObjectShape>,
    /// Objects were seen whose keys are data, with such values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<Box<ValueShape>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectShape {
    /// How many objects were looked at.
    seen: u64,
    fields: BTreeMap<String, FieldShape>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldShape {
    /// In how many of the objects.
    seen: u64,
    shape: ValueShape,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl ValueShape {
    /// The shape of one value.
    pub fn of(value: &Value, limits: ValueShapeLimits) -> Self {
        let mut shape = Self::read(value, limits, limits.depth);
        shape.bound(limits);
        shape
    }

    /// The shape of values of either kind.
    #[must_use]
    pub fn merge(self, other: Self, limits: ValueShapeLimits) -> Self {
        let mut merged = self.join(other, limits);
        merged.bound(limits);
        merged
    }

    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The shape as a JSON Schema that accepts everything it was learned from.
    pub fn to_schema(&self) -> Value {
        if self.any || self.is_empty() {
            return json!({});
        }
        let mut branches: Vec<Value> = Vec::new();
        let simple = [
            (self.boolean, "boolean"),
            (self.integer && !self.number, "integer"),
            (self.number, "number"),
            (self.string, "string"),
        ];
        branches
            .extend(simple.iter().filter(|(seen, _)| *seen).map(|(_, kind)| json!({"type": kind})));
        branches.extend(
            self.array.as_ref().map(|items| json!({"type": "array", "items": items.to_schema()})),
        );
        branches.extend(self.object.as_ref().map(ObjectShape::to_schema));
        branches.extend(
            self.map.as_ref().map(
                |values| json!({"type": "object", "additionalProperties": values.to_schema()}),
            ),
        );
        branches.extend(self.null.then(|| json!({"type": "null"})));
        match branches.len() {
            1 => branches.pop().unwrap_or_default(),
            _ => json!({ "anyOf": branches }),
        }
    }

    fn anything() -> Self {
        Self { any: true, ..Self::default() }
    }

    fn read(value: &Value, limits: ValueShapeLimits, depth: usize) -> Self {
        let mut shape = Self::default();
        match value {
            Value::Null => shape.null = true,
            Value::Bool(_) => shape.boolean = true,
            Value::Number(number) if number.is_f64() => shape.number = true,
            Value::Number(_) => shape.integer = true,
            Value::String(_) => shape.string = true,
            Value::Array(_) | Value::Object(_) if depth == 0 => shape.any = true,
            Value::Array(items) => {
                let looked_at = spread(items, limits.items);
                let shapes = looked_at.map(|item| Self::read(item, limits, depth - 1));
                let joined = shapes.reduce(|joined, item| joined.join(item, limits));
                shape.array = Some(Box::new(joined.unwrap_or_default()));
            }
            Value::Object(fields) => shape.read_object(fields, limits, depth),
        }
        shape
    }

    fn read_object(&mut self, given: &Map<String, Value>, limits: ValueShapeLimits, depth: usize) {
        let names: Vec<&str> = given.keys().map(String::as_str).collect();
        if given.len() > limits.fields || are_data(&names) {
            let values: Vec<&Value> = given.values().collect();
            let shapes =
                spread(&values, limits.items).map(|value| Self::read(value, limits, depth - 1));
            let joined = shapes.reduce(|joined, value| joined.join(value, limits));
            self.map = Some(Box::new(joined.unwrap_or_default()));
            return;
        }
        let read = |value| FieldShape { seen: 1, shape: Self::read(value, limits, depth - 1) };
        let fields = given.iter().map(|(name, value)| (name.clone(), read(value))).collect();
        self.object = Some(ObjectShape { seen: 1, fields });
    }

    fn join(self, other: Self, limits: ValueShapeLimits) -> Self {
        if self.any || other.any {
            return Self::anything();
        }
        let mut object = match (self.object, other.object) {
            (Some(left), Some(right)) => Some(left.join(right, limits)),
            (left, right) => left.or(right),
        };
        let mut map = join_boxed(self.map, other.map, limits);
        // Once keys are data, objects with fields are only more of the same.
        let is_map = object.as_ref().is_some_and(|fields| map.is_some() || fields.vary(limits));
        if let (true, Some(fields)) = (is_map, object.take_if(|_| is_map)) {
            map = join_boxed(map, Some(Box::new(fields.values(limits))), limits);
        }
        Self {
            any: false,
            null: self.null || other.null,
            boolean: self.boolean || other.boolean,
            integer: self.integer || other.integer,
            number: self.number || other.number,
            string: self.string || other.string,
            array: join_boxed(self.array, other.array, limits),
            object,
            map,
        }
    }

    /// Cuts what is beyond the limits.
    fn bound(&mut self, limits: ValueShapeLimits) {
        let mut left = limits.nodes;
        self.bound_within(limits.depth, &mut left);
    }

    fn bound_within(&mut self, depth: usize, left: &mut usize) {
        *left = left.saturating_sub(1);
        let nested = self.array.is_some() || self.object.is_some() || self.map.is_some();
        if nested && (depth == 0 || *left == 0) {
            *self = Self::anything();
            return;
        }
        let objects = self.object.iter_mut().flat_map(|object| object.fields.values_mut());
        let inner = self.array.as_deref_mut().into_iter().chain(self.map.as_deref_mut());
        for shape in inner.chain(objects.map(|field| &mut field.shape)) {
            shape.bound_within(depth.saturating_sub(1), left);
        }
        if *left == 0 && nested {
            *self = Self::anything();
        }
    }
}

impl ObjectShape {
    fn join(mut self, other: Self, limits: ValueShapeLimits) -> Self {
        for (name, field) in other.fields {
            let joined = match self.fields.remove(&name) {
                Some(known) => FieldShape {
                    seen: known.seen.saturating_add(field.seen),
                    shape: known.shape.join(field.shape, limits),
                },
                None => field,
            };
            self.fields.insert(name, joined);
        }
        Self { seen: self.seen.saturating_add(other.seen), fields: self.fields }
    }

    /// Whether the names are so many and so rare that they must be data.
    fn vary(&self, limits: ValueShapeLimits) -> bool {
        let names: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        let rare = self.fields.values().filter(|field| field.seen.saturating_mul(4) <= self.seen);
        let mostly_rare = self.fields.len() >= 16 && rare.count() * 4 >= self.fields.len() * 3;
        self.fields.len() > limits.fields || mostly_rare || are_data(&names)
    }

    /// The joined shape of all fields, without their names.
    fn values(self, limits: ValueShapeLimits) -> ValueShape {
        let shapes = self.fields.into_values().map(|field| field.shape);
        shapes.reduce(|joined, shape| joined.join(shape, limits)).unwrap_or_default()
    }

    fn to_schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .fields
            .iter()
            .map(|(name, field)| (name.clone(), field.shape.to_schema()))
            .collect();
        let always = self.fields.iter().filter(|(_, field)| field.seen >= self.seen);
        let required: Vec<&str> = always.map(|(name, _)| name.as_str()).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

fn join_boxed(
    left: Option<Box<ValueShape>>,
    right: Option<Box<ValueShape>>,
    limits: ValueShapeLimits,
) -> Option<Box<ValueShape>> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Box::new(left.join(*right, limits))),
        (left, right) => left.or(right),
    }
}

/// At most `most` of the items, spread evenly.
fn spread<T>(items: &[T], most: usize) -> impl Iterator<Item = &T> {
    let step = items.len().div_ceil(most.max(1)).max(1);
    items.iter().step_by(step)
}
