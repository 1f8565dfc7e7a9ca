//! Whole files, as bytes or text, within the run's memory.

use std::{
    fs::File,
    io::{self, Read},
    rc::Rc,
};

use rquickjs::{Ctx, Exception, Function, Object, Result, String as JsString, TypedArray, Value};

use super::{CurrentRun, at, errors};

/// Adds `read` to `files`.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    files: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let current = current.clone();
    let read =
        move |ctx: Ctx<'js>, fail: Function<'js>, path: JsString<'js>, text: Option<String>| {
            let bytes = match read_within(&at(&path)?, current.memory_bytes()) {
                Ok(bytes) => bytes,
                Err(ReadFailure::TooLarge) => {
                    return Err(Exception::throw_internal(&ctx, "out of memory"));
                }
                Err(ReadFailure::Failed(error, call)) => {
                    return Err(errors::raise(&fail, &error, call));
                }
            };
            // Copies are counted by the engine, which has a limit; memory handed over is not.
            match text {
                Some(encoding) => decoded(&ctx, &bytes, &encoding),
                None => Ok(TypedArray::new_copy(ctx, bytes)?.into_value()),
            }
        };
    files.set("read", Function::new(ctx.clone(), read)?)
}

enum ReadFailure {
    TooLarge,
    Failed(io::Error, &'static str),
}

fn read_within(path: &std::path::Path, max: u64) -> std::result::Result<Vec<u8>, ReadFailure> {
    let mut file = File::open(path).map_err(|error| ReadFailure::Failed(error, "open"))?;
    // This size is only a start: files grow, and some have no size.
    let size = file.metadata().map_or(0, |found| found.len());
    if size > max {
        return Err(ReadFailure::TooLarge);
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(size).map_err(|_| ReadFailure::TooLarge)?;
    bytes.try_reserve_exact(room.saturating_add(1)).map_err(|_| ReadFailure::TooLarge)?;
    match Read::by_ref(&mut file).take(max.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > max => Err(ReadFailure::TooLarge),
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(ReadFailure::TooLarge),
        Err(error) => Err(ReadFailure::Failed(error, "read")),
    }
}

/// The bytes as text; guest/fs-bytes.js knows which encodings there are.
fn decoded<'js>(ctx: &Ctx<'js>, bytes: &[u8], encoding: &str) -> Result<Value<'js>> {
    if encoding == "utf8"
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Ok(JsString::from_str(ctx.clone(), text)?.into_value());
    }
    let units = bytes.chunks(2).map_while(|pair| Some(u16::from_le_bytes(pair.try_into().ok()?)));
    let text = match encoding {
        "utf8" => collect(bytes.utf8_chunks().flat_map(|chunk| {
            let replaced = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            chunk.valid().chars().chain(replaced)
        })),
        "utf16le" => collect(
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
        ),
        "ascii" => collect(bytes.iter().map(|byte| char::from(byte & 0x7f))),
        _ => collect(bytes.iter().copied().map(char::from)),
    };
    match text {
        Some(text) => Ok(JsString::from_str(ctx.clone(), &text)?.into_value()),
        None => Err(Exception::throw_internal(ctx, "out of memory")),
    }
}

/// The characters as a string; none when there is no memory for it.
fn collect(characters: impl Iterator<Item = char>) -> Option<String> {
    let mut text = String::new();
    for character in characters {
        text.try_reserve(character.len_utf8()).ok()?;
        text.push(character);
    }
    Some(text)
}
