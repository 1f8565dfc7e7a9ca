//! Built-in objects: telling them apart, and getting at what is in them.
//!
//! An object is a built-in when the prototype of one is on its prototype chain and its insides
//! open. Prototypes are compared with those of the untouched context, see `guest/values.js`.

use rquickjs::{Array, Function, Object, Result, Value, atom::PredefinedAtom};

use crate::quickjs::text::text_of;

/// A chain longer than this is made to annoy.
const MAX_PROTOTYPES: usize = 1000;

/// The untouched context's prototypes and openers.
#[derive(Debug)]
pub(super) struct Builtins<'js> {
    object_prototype: Value<'js>,
    big_int_prototype: Object<'js>,
    date_to_json: Value<'js>,
    is_array: Function<'js>,
    open: Function<'js>,
    prototypes: Vec<(Value<'js>, Kind)>,
}

/// What a built-in object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Date,
    Map,
    Set,
    RegExp,
    TypedArray,
    DataView,
    Buffer,
    Boxed,
    /// Something that has no value of its own.
    Live(&'static str),
}

/// What to write in place of a built-in object.
#[derive(Debug)]
pub(super) enum Opened<'js> {
    /// It only has the prototype: an object like any other.
    Pretender,
    Value(Value<'js>),
    Entries(Vec<(String, Value<'js>)>),
    Items(Array<'js>),
    /// Its own indices, this many.
    Indexed(f64),
    Live(&'static str),
}

impl<'js> Builtins<'js> {
    /// Reads the guest library's `values`.
    pub(super) fn new(library: &Object<'js>) -> Result<Self> {
        let kinds: Array = library.get("kinds")?;
        let mut prototypes = Vec::with_capacity(kinds.len());
        for pair in kinds.iter::<Array>() {
            let pair = pair?;
            let name: String = pair.get(1)?;
            prototypes.push((pair.get(0)?, Kind::from_name(&name)));
        }
        Ok(Self {
            object_prototype: library.get("objectPrototype")?,
            big_int_prototype: library.get("bigIntPrototype")?,
            date_to_json: library.get("dateToJSON")?,
            is_array: library.get("isArray")?,
            open: library.get("open")?,
            prototypes,
        })
    }

    pub(super) fn is_date_to_json(&self, method: &Value<'js>) -> bool {
        self.date_to_json == *method
    }

    /// What the guest may have put there to make BigInts encodable.
    pub(super) fn big_int_to_json(&self) -> Result<Value<'js>> {
        self.big_int_prototype.get(PredefinedAtom::ToJSON)
    }

    /// Whether a proxy stands for an array.
    pub(super) fn is_array(&self, proxy: &Object<'js>) -> Result<bool> {
        self.is_array.call((proxy.clone(),))
    }

    /// The kind of the first built-in on the prototype chain.
    pub(super) fn kind_of(&self, object: &Object<'js>) -> Option<Kind> {
        let mut prototype = object.get_prototype()?;
        for _ in 0..MAX_PROTOTYPES {
            if *prototype.as_value() == self.object_prototype {
                return None;
            }
            let known = self.prototypes.iter().find(|(known, _)| known == prototype.as_value());
            if let Some((_, kind)) = known {
                return Some(*kind);
            }
            if prototype.is_proxy() {
                return None;
            }
            prototype = prototype.get_prototype()?;
        }
        None
    }

    /// Looks into a built-in.
    pub(super) fn open(&self, object: &Object<'js>, kind: Kind) -> Result<Opened<'js>> {
        let name = match kind {
            Kind::Live(what) => return Ok(Opened::Live(what)),
            Kind::Date => "date",
            Kind::Map => "map",
            Kind::Set => "set",
            Kind::RegExp => "regexp",
            Kind::TypedArray => "typedArray",
            Kind::DataView => "dataView",
            Kind::Buffer => "buffer",
            Kind::Boxed => "boxed",
        };
        let opened: Value = self.open.call((name, object.clone()))?;
        if opened.is_undefined() {
            return Ok(Opened::Pretender);
        }
        Ok(match (kind, opened) {
            (Kind::Map, flat) => Opened::Entries(entries_of(flat.get()?)?),
            (Kind::Set, items) => Opened::Items(items.get()?),
            (Kind::TypedArray, length) => Opened::Indexed(length.get()?),
            (_, value) => Opened::Value(value),
        })
    }
}

/// `[key, value, key, value, …]` as pairs.
fn entries_of<'js>(flat: Array<'js>) -> Result<Vec<(String, Value<'js>)>> {
    let mut entries = Vec::with_capacity(flat.len() / 2);
    for index in (0..flat.len()).step_by(2) {
        entries.push((text_of(&flat.get(index)?)?, flat.get(index + 1)?));
    }
    Ok(entries)
}

impl Kind {
    fn from_name(name: &str) -> Self {
        match name {
            "date" => Self::Date,
            "map" => Self::Map,
            "set" => Self::Set,
            "regexp" => Self::RegExp,
            "typedArray" => Self::TypedArray,
            "dataView" => Self::DataView,
            "buffer" => Self::Buffer,
            "boxed" => Self::Boxed,
            "WeakMap" => Self::Live("a WeakMap"),
            "WeakSet" => Self::Live("a WeakSet"),
            "WeakRef" => Self::Live("a WeakRef"),
            "iterator" => Self::Live("an iterator"),
            "asyncIterator" => Self::Live("an async iterator"),
            "timer" => Self::Live("a timer"),
            _ => Self::Live("a live object"),
        }
    }
}
