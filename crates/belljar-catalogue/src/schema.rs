//! Reads JSON Schemas of servers into types that can be printed in any language.
//!
//! Reading never fails: a schema that is not understood, too deep or too large is [`Type::Unknown`]. Local
//! references become names, so that a schema that refers to itself stays finite, and small or
//! single uses of a name are written in place. Work and size are bounded, because the schemas come
//! from servers.

mod lower;
mod named;
mod note;
mod simplify;

use serde_json::Value;

pub(crate) use note::Note;

/// A type, as far as the printers need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Unknown,
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// Exactly this text, number, boolean or null.
    Literal(Value),
    Array(Box<Type>),
    Tuple(TupleType),
    Object(ObjectType),
    Union(Vec<Type>),
    /// All of them at once; only if they could not be merged.
    Both(Vec<Type>),
    /// A definition of the same [`Schema`].
    Named(usize),
}

/// An array with a type for each place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TupleType {
    pub(crate) items: Vec<Type>,
    /// How many of the items are always there.
    pub(crate) required: usize,
    /// The type of items after these; `None` if there may be none.
    pub(crate) rest: Option<Box<Type>>,
}

/// An object with named fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectType {
    /// Required ones first, each group in the order of the schema.
    pub(crate) fields: Vec<SchemaField>,
    pub(crate) rest: Rest,
}

/// The further fields that an object may have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rest {
    /// It has no further fields.
    Closed,
    /// The schema does not say: more fields are valid, but probably not intended.
    Unsaid,
    /// Fields of any name, of this type.
    Typed(Box<Type>),
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SchemaField {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) kind: Type,
    pub(crate) note: Note,
}

/// A JSON Schema, read into types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    pub(crate) root: Type,
    /// The targets of [`Type::Named`]; only those that are used.
    pub(crate) definitions: Vec<Definition>,
}

/// A type with a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// Its name in the schema; not unique, and untrusted like any text of a server.
    pub(crate) name: String,
    pub(crate) kind: Type,
}

impl Schema {
    /// Reads a schema; what cannot be understood becomes [`Type::Unknown`].
    pub(crate) fn read(schema: &Value) -> Self {
        named::tidy(simplify::simplify(lower::lower(schema)))
    }
}

impl Type {
    /// Whether it is written in one short word.
    pub(crate) fn is_plain(&self) -> bool {
        !matches!(
            self,
            Self::Array(_) | Self::Tuple(_) | Self::Object(_) | Self::Union(_) | Self::Both(_)
        )
    }

    /// The types directly within this one.
    pub(crate) fn inner(&self) -> Vec<&Type> {
        match self {
            Self::Unknown
            | Self::Never
            | Self::Null
            | Self::Boolean
            | Self::Integer
            | Self::Number
            | Self::String
            | Self::Literal(_)
            | Self::Named(_) => Vec::new(),
            Self::Array(items) => vec![items],
            Self::Tuple(tuple) => tuple.items.iter().chain(tuple.rest.as_deref()).collect(),
            Self::Object(object) => {
                let fields = object.fields.iter().map(|field| &field.kind);
                fields.chain(object.rest.typed()).collect()
            }
            Self::Union(types) | Self::Both(types) => types.iter().collect(),
        }
    }

    /// The same type with `change` made to each type directly within it.
    pub(crate) fn map(self, mut change: impl FnMut(Self) -> Self) -> Self {
        match self {
            Self::Unknown
            | Self::Never
            | Self::Null
            | Self::Boolean
            | Self::Integer
            | Self::Number
            | Self::String
            | Self::Literal(_)
            | Self::Named(_) => self,
            Self::Array(items) => Self::Array(Box::new(change(*items))),
            Self::Tuple(tuple) => Self::Tuple(TupleType {
                items: tuple.items.into_iter().map(&mut change).collect(),
                required: tuple.required,
                rest: tuple.rest.map(|rest| Box::new(change(*rest))),
            }),
            Self::Object(object) => {
                let fields = object.fields.into_iter();
                let mut changed =
                    |field: SchemaField| SchemaField { kind: change(field.kind), ..field };
                let fields = fields.map(&mut changed).collect();
                let rest = match object.rest {
                    Rest::Typed(kind) => Rest::Typed(Box::new(change(*kind))),
                    rest @ (Rest::Closed | Rest::Unsaid) => rest,
                };
                Self::Object(ObjectType { fields, rest })
            }
            Self::Union(types) => Self::Union(types.into_iter().map(change).collect()),
            Self::Both(types) => Self::Both(types.into_iter().map(change).collect()),
        }
    }
}

impl Rest {
    /// The type of further fields, if they have one.
    pub(crate) fn typed(&self) -> Option<&Type> {
        match self {
            Self::Typed(kind) => Some(kind),
            Self::Closed | Self::Unsaid => None,
        }
    }
}

/// The target of a local reference: `#` or `#/definitions/x`.
pub fn pointed<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    // A name with a space or the like may be written as in an address.
    root.pointer(pointer).or_else(|| root.pointer(&percent_decoded(pointer)?))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%');
        let byte = escaped
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a schema says that a server of the FastMCP kind wrapped a value, because structured
/// content has to be an object, in one with the single field `result`.
pub fn is_wrapped(output_schema: &Value) -> bool {
    output_schema.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests;
