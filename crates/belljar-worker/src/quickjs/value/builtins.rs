//! Built-in objects: their kinds and their content.
//!
//! An object is a built-in when the prototype of one is on its prototype chain and its insides
//! open. Prototypes are compared with those of the untouched context, see `guest/values.js`.

use rquickjs::{Array, Function, Object, Result, Value, atom::PredefinedAtom};

use crate::quickjs::text::text_and_loss;

/// A chain longer than this is made to annoy.
const MAX_PROTOTYPES: usize = 1000;

/// The untouched context's prototypes and openers, each read when it is first asked for: most
/// values need few of them or none, and to touch one is to make its page the cell's own.
#[derive(Debug)]
pub(super) struct Builtins<'js> {
    /// The guest library's `values`.
    library: Object<'js>,
    plain: Option<PlainPrototypes<'js>>,
    prototypes: Option<Vec<(Value<'js>, BuiltinKind)>>,
}

/// The prototypes with which every object is compared.
#[derive(Debug)]
struct PlainPrototypes<'js> {
    object_prototype: Value<'js>,
    date_to_json: Value<'js>,
}

/// The kind of a built-in object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuiltinKind {
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

/// The value to write in place of a built-in object.
#[derive(Debug)]
pub(super) enum BuiltinContents<'js> {
    /// It only has the prototype: an object like any other.
    Pretender,
    Value(Value<'js>),
    Entries(Entries<'js>),
    Items(Array<'js>),
    /// Its own indices, this many.
    Indexed(f64),
    Live(&'static str),
}

/// The entries of a `Map`, under the texts of its keys.
#[derive(Debug)]
pub(super) struct Entries<'js> {
    pub(super) pairs: Vec<(String, Value<'js>)>,
    /// Some of its keys have no text of their own, and did not survive as they were.
    pub(super) lossy: bool,
}

impl<'js> Builtins<'js> {
    /// Prototypes are read later, when they are first needed.
    pub(super) fn new(library: &Object<'js>) -> Self {
        Self { library: library.clone(), plain: None, prototypes: None }
    }

    /// Whether a `toJSON` is set aside: dates are written here, which tells an invalid one from
    /// null, and buffers as the arrays of bytes they are.
    pub(super) fn is_set_aside(&mut self, method: &Value<'js>) -> Result<bool> {
        if self.plain()?.date_to_json == *method {
            return Ok(true);
        }
        let of_buffer: Value = self.library.get("bufferToJSON")?;
        Ok(of_buffer == *method)
    }

    /// The guest's own `toJSON` of BigInts, if it has set one.
    pub(super) fn big_int_to_json(&self) -> Result<Value<'js>> {
        let prototype: Object = self.library.get("bigIntPrototype")?;
        prototype.get(PredefinedAtom::ToJSON)
    }

    /// Whether a proxy stands for an array.
    pub(super) fn is_array(&self, proxy: &Object<'js>) -> Result<bool> {
        let is_array: Function = self.library.get("isArray")?;
        is_array.call((proxy.clone(),))
    }

    /// The kind of the first built-in on the prototype chain.
    pub(super) fn kind_of(&mut self, object: &Object<'js>) -> Result<Option<BuiltinKind>> {
        let mut next = object.get_prototype();
        for _ in 0..MAX_PROTOTYPES {
            let Some(prototype) = next else { return Ok(None) };
            if *prototype.as_value() == self.plain()?.object_prototype {
                return Ok(None);
            }
            let known = self.prototypes()?.iter().find(|(known, _)| known == prototype.as_value());
            if let Some((_, kind)) = known {
                return Ok(Some(*kind));
            }
            if prototype.is_proxy() {
                return Ok(None);
            }
            next = prototype.get_prototype();
        }
        Ok(None)
    }

    fn plain(&mut self) -> Result<&PlainPrototypes<'js>> {
        let plain = match self.plain.take() {
            Some(plain) => plain,
            None => PlainPrototypes {
                object_prototype: self.library.get("objectPrototype")?,
                date_to_json: self.library.get("dateToJSON")?,
            },
        };
        Ok(self.plain.insert(plain))
    }

    fn prototypes(&mut self) -> Result<&[(Value<'js>, BuiltinKind)]> {
        if self.prototypes.is_none() {
            let kinds: Array = self.library.get("kinds")?;
            let mut prototypes = Vec::with_capacity(kinds.len());
            for pair in kinds.iter::<Array>() {
                let pair = pair?;
                let name: String = pair.get(1)?;
                prototypes.push((pair.get(0)?, BuiltinKind::from_name(&name)));
            }
            self.prototypes = Some(prototypes);
        }
        Ok(self.prototypes.as_deref().unwrap_or_default())
    }

    /// Looks into a built-in.
    pub(super) fn open(
        &self,
        object: &Object<'js>,
        kind: BuiltinKind,
    ) -> Result<BuiltinContents<'js>> {
        let name = match kind {
            BuiltinKind::Live(what) => return Ok(BuiltinContents::Live(what)),
            BuiltinKind::Date => "date",
            BuiltinKind::Map => "map",
            BuiltinKind::Set => "set",
            BuiltinKind::RegExp => "regexp",
            BuiltinKind::TypedArray => "typedArray",
            BuiltinKind::DataView => "dataView",
            BuiltinKind::Buffer => "buffer",
            BuiltinKind::Boxed => "boxed",
        };
        let open: Function = self.library.get("open")?;
        let opened: Value = open.call((name, object.clone()))?;
        if opened.is_undefined() {
            return Ok(BuiltinContents::Pretender);
        }
        Ok(match (kind, opened) {
            (BuiltinKind::Map, flat) if flat.is_null() => {
                BuiltinContents::Live("a Map with objects as keys")
            }
            (BuiltinKind::Map, flat) => BuiltinContents::Entries(entries_of(&flat.get()?)?),
            (BuiltinKind::Set, items) => BuiltinContents::Items(items.get()?),
            (BuiltinKind::TypedArray, length) => BuiltinContents::Indexed(length.get()?),
            (_, value) => BuiltinContents::Value(value),
        })
    }
}

/// `[whether keys were lost, key, value, key, value, …]` as pairs.
fn entries_of<'js>(flat: &Array<'js>) -> Result<Entries<'js>> {
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    let mut lossy: bool = flat.get(0)?;
    for index in (1..flat.len()).step_by(2) {
        let (text, is_cut) = text_and_loss(&flat.get(index)?)?;
        lossy |= is_cut;
        pairs.push((text, flat.get(index + 1)?));
    }
    Ok(Entries { pairs, lossy })
}

impl BuiltinKind {
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
