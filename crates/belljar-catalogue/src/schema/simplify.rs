//! The second pass: removes repetition from unions, and merges types that apply at once.

use serde_json::Value;

use super::{Definition, ObjectType, Rest, Schema, SchemaField, TupleType, Type};

/// Branches a union may have when another type is merged into each of them.
const MAX_BRANCHES: usize = 32;
/// Fields and branches one schema may gain by merging.
const MAX_MERGED: usize = 4_000;
/// How many names are followed, one through the other.
const MAX_FOLLOWED: usize = 8;

/// Simplifies all types of a schema.
pub(super) fn simplify(schema: Schema) -> Schema {
    let mut work = Simplifier { raw: &schema.definitions, left: MAX_MERGED };
    let root = work.simple(schema.root.clone(), 0);
    let definitions = schema
        .definitions
        .iter()
        .map(|definition| Definition {
            name: definition.name.clone(),
            kind: work.simple(definition.kind.clone(), 0),
        })
        .collect();
    Schema { root, definitions }
}

struct Simplifier<'a> {
    raw: &'a [Definition],
    left: usize,
}

impl Simplifier<'_> {
    /// The type with everything in it simplified. `depth` counts the names that were followed to get
    /// here, which ends the recursion of a definition made of itself.
    fn simple(&mut self, kind: Type, depth: usize) -> Type {
        if let Type::Union(types) = kind {
            return union(types.into_iter().map(|kind| self.simple(kind, depth)).collect());
        }
        if let Type::Both(types) = kind {
            let types: Vec<Type> = types.into_iter().map(|kind| self.simple(kind, depth)).collect();
            let meant = !types.contains(&Type::Never);
            let joined = types
                .into_iter()
                .fold(Type::Unknown, |joined, kind| self.join(joined, kind, depth));
            // Nothing can be two kinds at once; the schema must mean something else.
            return if meant && joined == Type::Never { Type::Unknown } else { joined };
        }
        kind.map(|inner| self.simple(inner, depth))
    }

    /// The type of values that are both `left` and `right`.
    fn join(&mut self, left: Type, right: Type, depth: usize) -> Type {
        match (left, right) {
            (Type::Unknown, other) | (other, Type::Unknown) => other,
            (Type::Never, _) | (_, Type::Never) => Type::Never,
            (left, right) if left == right => left,
            (Type::Union(branches), other) | (other, Type::Union(branches)) => {
                self.join_union(branches, other, depth)
            }
            (Type::Named(name), other) | (other, Type::Named(name)) => {
                match self.follow(name, depth) {
                    Some(kind) => self.join(kind, other, depth + 1),
                    None => Type::Both(vec![Type::Named(name), other]),
                }
            }
            (Type::Both(mut types), other) | (other, Type::Both(mut types)) => {
                types.push(other);
                Type::Both(types)
            }
            (Type::Object(left), Type::Object(right)) => self.join_objects(left, right, depth),
            (Type::Array(left), Type::Array(right)) => {
                Type::Array(Box::new(self.join(*left, *right, depth)))
            }
            (Type::Tuple(tuple), Type::Array(items)) | (Type::Array(items), Type::Tuple(tuple)) => {
                Type::Tuple(TupleType { rest: tuple.rest.map(|_| items), ..tuple })
            }
            (left, right) if includes(&left, &right) => right,
            (left, right) if includes(&right, &left) => left,
            _ => Type::Never,
        }
    }

    fn join_union(&mut self, branches: Vec<Type>, other: Type, depth: usize) -> Type {
        let others = if let Type::Union(others) = &other { others.len() } else { 1 };
        let product = branches.len().saturating_mul(others);
        if product > MAX_BRANCHES || self.left < product {
            return Type::Both(vec![Type::Union(branches), other]);
        }
        self.left -= product;
        union(branches.into_iter().map(|kind| self.join(kind, other.clone(), depth)).collect())
    }

    fn join_objects(&mut self, left: ObjectType, right: ObjectType, depth: usize) -> Type {
        let count = left.fields.len() + right.fields.len();
        if self.left < count {
            return Type::Both(vec![Type::Object(left), Type::Object(right)]);
        }
        self.left -= count;
        let mut fields = left.fields;
        for field in right.fields {
            match fields.iter_mut().find(|known| known.name == field.name) {
                Some(known) => self.join_field(known, field, depth),
                None => fields.push(field),
            }
        }
        fields.sort_by_key(|field| !field.required);
        let rest = match (left.rest, right.rest) {
            (Rest::Unsaid, rest) | (rest, Rest::Unsaid) => rest,
            (Rest::Closed, _) | (_, Rest::Closed) => Rest::Closed,
            (Rest::Typed(left), Rest::Typed(right)) => {
                Rest::Typed(Box::new(self.join(*left, *right, depth)))
            }
        };
        Type::Object(ObjectType { fields, rest })
    }

    fn join_field(&mut self, known: &mut SchemaField, other: SchemaField, depth: usize) {
        known.required |= other.required;
        known.kind = self.join(known.kind.clone(), other.kind, depth);
        if known.note.is_empty() {
            known.note = other.note;
        }
    }

    /// The type of a name, unless too many names were followed.
    fn follow(&mut self, name: usize, depth: usize) -> Option<Type> {
        let kind = &self.raw.get(name)?.kind;
        if depth >= MAX_FOLLOWED {
            return None;
        }
        self.left = self.left.checked_sub(size(kind))?;
        Some(self.simple(kind.clone(), depth + 1))
    }
}

/// How many types a type is made of.
fn size(kind: &Type) -> usize {
    1 + kind.inner().into_iter().map(size).sum::<usize>()
}

/// One of the types, each said once.
pub(super) fn union(types: Vec<Type>) -> Type {
    let mut flat: Vec<Type> = Vec::new();
    for kind in types {
        if let Type::Union(inner) = kind {
            flat.extend(inner);
        } else {
            flat.push(kind);
        }
    }
    if flat.contains(&Type::Unknown) {
        return Type::Unknown;
    }
    let mut kept: Vec<Type> = Vec::new();
    for kind in flat {
        if kind == Type::Never || kept.iter().any(|known| includes(known, &kind)) {
            continue;
        }
        kept.retain(|known| !includes(&kind, known));
        kept.push(kind);
    }
    // `null` reads best last.
    kept.sort_by_key(|kind| *kind == Type::Null);
    match kept.len() {
        0 => Type::Never,
        1 => kept.pop().unwrap_or(Type::Never),
        _ => Type::Union(kept),
    }
}

/// Whether every value of `narrow` is one of `wide`, for the simple kinds.
fn includes(wide: &Type, narrow: &Type) -> bool {
    match (wide, narrow) {
        (Type::Number, Type::Integer)
        | (Type::Boolean, Type::Literal(Value::Bool(_)))
        | (Type::Number, Type::Literal(Value::Number(_)))
        | (Type::String, Type::Literal(Value::String(_))) => true,
        (Type::Integer, Type::Literal(Value::Number(number))) => !number.is_f64(),
        _ => wide == narrow,
    }
}
