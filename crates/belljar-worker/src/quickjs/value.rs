//! From the value of a run to JSON (A8).
//!
//! The walk is done here, on bytes, so that it stops as soon as the limit is passed, and so that
//! nothing the guest overrides changes it: only `toJSON`, getters and proxies of the value itself
//! run guest code. What JSON has no place for is an error that names where it is, unlike with
//! `JSON.stringify`, which drops it.

mod builtins;
mod error;
mod write;

use std::collections::HashMap;

use belljar_wire::RunValue;
use rquickjs::{
    Atom, Coerced, Object, String as JsString, Type, Value, atom::PredefinedAtom, function::This,
};

use super::text::text_and_loss;
use builtins::{BuiltinContents, BuiltinKind, Builtins, Entries};
use error::PathStep;
pub(super) use error::{EncodeError, describe};
use write::JsonWriter;

/// The most levels of objects and arrays within each other.
const MAX_DEPTH: usize = 100;
/// Keys whose JSON is remembered: rows of a table share a few.
const MAX_KNOWN_KEYS: usize = 512;

/// Encodes a value; `library` is the guest library's `values`.
pub(super) fn encode<'js>(
    value: &Value<'js>,
    library: &Object<'js>,
    max_bytes: usize,
) -> Result<RunValue, EncodeError> {
    let mut encoder = Encoder {
        builtins: Builtins::new(library),
        out: JsonWriter::new(max_bytes),
        containers: Vec::new(),
        keys: HashMap::new(),
    };
    if encoder.value(value, &PathStep::Top)? == WriteOutcome::Nothing {
        encoder.out.raw(b"null")?;
    }
    let (value, lossy) = encoder.out.finish();
    Ok(RunValue { lossy, cut: false, value })
}

struct Encoder<'js> {
    builtins: Builtins<'js>,
    out: JsonWriter,
    /// The containers around the current value.
    containers: Vec<Value<'js>>,
    keys: HashMap<Atom<'js>, Box<[u8]>>,
}

/// Whether a value left anything in the output; `undefined` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteOutcome {
    Something,
    Nothing,
}

impl<'js> Encoder<'js> {
    /// Writes a value found at this step of its container.
    fn value(
        &mut self,
        value: &Value<'js>,
        at: &PathStep<'_, 'js>,
    ) -> Result<WriteOutcome, EncodeError> {
        match value.type_of() {
            Type::Undefined => return Ok(WriteOutcome::Nothing),
            Type::Null => self.out.raw(b"null")?,
            Type::Bool => self.out.boolean(value.as_bool() == Some(true))?,
            Type::Int => self.out.integer(value.as_int().unwrap_or_default())?,
            Type::Float => self.out.float(value.as_float().unwrap_or_default())?,
            Type::String => match value.as_string() {
                Some(string) => self.text(string)?,
                None => return Ok(WriteOutcome::Nothing),
            },
            Type::Array | Type::Object | Type::Exception | Type::Proxy | Type::BigInt => {
                return match self.own_json(value, at)? {
                    Some(replacement) => self.replaced(&replacement),
                    None => self.replaced(value),
                };
            }
            Type::Promise => return Err(EncodeError::unsupported("a promise")),
            Type::Function | Type::Constructor => {
                return Err(EncodeError::unsupported("a function"));
            }
            Type::Symbol => return Err(EncodeError::unsupported("a symbol")),
            Type::Module | Type::Uninitialized | Type::Unknown => {
                return Err(EncodeError::unsupported("an internal value of the engine"));
            }
        }
        Ok(WriteOutcome::Something)
    }

    fn text(&mut self, string: &JsString<'js>) -> Result<(), EncodeError> {
        let (text, lossy) = text_and_loss(string)?;
        self.out.note_loss(lossy);
        self.out.string(&text)
    }

    /// The answer of the value's own `toJSON`, if it has one.
    fn own_json(
        &mut self,
        value: &Value<'js>,
        at: &PathStep<'_, 'js>,
    ) -> Result<Option<Value<'js>>, EncodeError> {
        let method: Value = match value.as_object() {
            Some(object) => object.get(PredefinedAtom::ToJSON)?,
            None => self.builtins.big_int_to_json()?,
        };
        if !method.is_function() || self.builtins.is_set_aside(&method)? {
            return Ok(None);
        }
        let Some(method) = method.as_function() else { return Ok(None) };
        Ok(Some(method.call((This(value.clone()), at.key()?))?))
    }

    /// Writes a value whose `toJSON`, if any, has had its say.
    fn replaced(&mut self, value: &Value<'js>) -> Result<WriteOutcome, EncodeError> {
        if value.is_big_int() {
            return Err(EncodeError::unsupported("a BigInt"));
        }
        let Some(object) = value.as_object().filter(|_| is_container(value)) else {
            return self.value(value, &PathStep::Top);
        };
        if self.containers.contains(value) {
            return Err(EncodeError::cycle());
        }
        if self.containers.len() == MAX_DEPTH {
            return Err(EncodeError::depth());
        }
        self.containers.push(value.clone());
        let written = self.container(object);
        self.containers.pop();
        written
    }

    fn container(&mut self, object: &Object<'js>) -> Result<WriteOutcome, EncodeError> {
        if object.is_array() {
            self.array(object)?;
        } else if object.is_proxy() {
            match self.builtins.is_array(object)? {
                true => self.array(object)?,
                false => self.properties(object)?,
            }
        } else if object.is_error() {
            self.error(object)?;
        } else {
            match self.builtins.kind_of(object)? {
                None => self.properties(object)?,
                Some(kind) => return self.builtin(object, kind),
            }
        }
        Ok(WriteOutcome::Something)
    }

    /// Writes an array, or a proxy of one. (`Array::len` takes for granted that the length fits
    /// 31 bits, which is not so.)
    fn array(&mut self, array: &Object<'js>) -> Result<(), EncodeError> {
        let length: Coerced<f64> = array.get(PredefinedAtom::Length)?;
        self.indexed(array, length.0)
    }

    /// Writes what is at the first indices.
    fn indexed(&mut self, object: &Object<'js>, length: f64) -> Result<(), EncodeError> {
        self.out.raw(b"[")?;
        let mut index: u32 = 0;
        while f64::from(index) < length {
            self.item(index as usize, &object.get(index)?)?;
            index = index.saturating_add(1);
        }
        self.out.raw(b"]")
    }

    fn item(&mut self, index: usize, item: &Value<'js>) -> Result<(), EncodeError> {
        if index > 0 {
            self.out.raw(b",")?;
        }
        let step = PathStep::Index(index);
        if self.value(item, &step).map_err(|error| error.under(&step))? == WriteOutcome::Nothing {
            self.out.raw(b"null")?;
        }
        Ok(())
    }

    fn properties(&mut self, object: &Object<'js>) -> Result<(), EncodeError> {
        self.out.raw(b"{")?;
        let mut is_first = true;
        for key in object.keys::<Atom>() {
            let key = key?;
            let value: Value = object.get(key.clone())?;
            if value.is_undefined() {
                continue;
            }
            let before = self.out.len();
            if !is_first {
                self.out.raw(b",")?;
            }
            self.key(&key)?;
            let step = PathStep::Property(&key);
            match self.value(&value, &step).map_err(|error| error.under(&step))? {
                WriteOutcome::Something => is_first = false,
                WriteOutcome::Nothing => self.out.cut(before),
            }
        }
        self.out.raw(b"}")
    }

    /// Writes a key and its colon.
    fn key(&mut self, key: &Atom<'js>) -> Result<(), EncodeError> {
        if let Some(known) = self.keys.get(key) {
            return self.out.raw(known);
        }
        let start = self.out.len();
        self.text(&key.to_js_string()?)?;
        self.out.raw(b":")?;
        if self.keys.len() < MAX_KNOWN_KEYS {
            self.keys.insert(key.clone(), self.out.since(start).into());
        }
        Ok(())
    }

    /// Writes an error as its name and message, without its stack.
    fn error(&mut self, error: &Object<'js>) -> Result<(), EncodeError> {
        let entries = [("name", PredefinedAtom::Name), ("message", PredefinedAtom::Message)];
        let mut flat = Vec::new();
        for (name, key) in entries {
            flat.push((name.to_owned(), error.get(key)?));
        }
        self.entries(flat)
    }

    fn entries(&mut self, entries: Vec<(String, Value<'js>)>) -> Result<(), EncodeError> {
        self.out.raw(b"{")?;
        let mut is_first = true;
        for (key, value) in &entries {
            let before = self.out.len();
            if !is_first {
                self.out.raw(b",")?;
            }
            self.out.string(key)?;
            self.out.raw(b":")?;
            let step = PathStep::Entry(key);
            match self.value(value, &step).map_err(|error| error.under(&step))? {
                WriteOutcome::Something => is_first = false,
                WriteOutcome::Nothing => self.out.cut(before),
            }
        }
        self.out.raw(b"}")
    }

    fn builtin(
        &mut self,
        object: &Object<'js>,
        kind: BuiltinKind,
    ) -> Result<WriteOutcome, EncodeError> {
        match self.builtins.open(object, kind)? {
            BuiltinContents::Pretender => self.properties(object)?,
            BuiltinContents::Value(value) => return self.value(&value, &PathStep::Top),
            BuiltinContents::Entries(Entries { pairs, lossy }) => {
                self.out.note_loss(lossy);
                self.entries(pairs)?;
            }
            BuiltinContents::Items(items) => self.array(&items)?,
            BuiltinContents::Indexed(length) => self.indexed(object, length)?,
            BuiltinContents::Live(what) => return Err(EncodeError::unsupported(what)),
        }
        Ok(WriteOutcome::Something)
    }
}

fn is_container(value: &Value<'_>) -> bool {
    value.is_object() && !value.is_function() && !value.is_promise()
}
