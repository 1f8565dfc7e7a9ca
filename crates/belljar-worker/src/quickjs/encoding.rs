//! The conversions behind `TextEncoder` and `TextDecoder`; the classes are in guest/encoding.js.
//!
//! Bytes arrive as hexadecimal text: reading a typed array in place needs `unsafe`, and the
//! engine's own `toHex` is much faster than fetching one element after the other.
//!
//! Memory that code can keep belongs to the engine, which counts it; a buffer of Rust would not be
//! counted.

use rquickjs::{
    CString, Ctx, Exception, Function, Object, String as JsString, TypedArray, convert::List,
};

/// 0x80..=0x9f of windows-1252, which is what the label `latin1` means on the web.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Adds `encodeUtf8` and `decodeText` to `native`. The guest side sees to it that the texts it hands over
/// are well-formed.
pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> rquickjs::Result<()> {
    let encode = |ctx: Ctx<'js>, text: JsString<'js>| {
        let text = in_engine(&ctx, text)?;
        TypedArray::<u8>::new_copy(ctx, text.as_bytes())
    };
    native.set("encodeUtf8", Function::new(ctx.clone(), encode)?)?;
    let decode =
        |ctx: Ctx<'js>, encoding: String, hex: JsString<'js>, fatal: bool, stream: bool| {
            let hex = in_engine(&ctx, hex)?;
            let bytes = bytes_of(&hex).ok_or_else(|| out_of_memory(&ctx))?;
            let decoded = decode_text(&encoding, &bytes, fatal, stream);
            Ok::<_, rquickjs::Error>(
                decoded.map(|DecodedText { text, left_over }| List((text, left_over))),
            )
        };
    native.set("decodeText", Function::new(ctx.clone(), decode)?)
}

/// The text as UTF-8, in memory that the engine counts.
fn in_engine<'js>(ctx: &Ctx<'js>, text: JsString<'js>) -> rquickjs::Result<CString<'js>> {
    text.to_cstring().map_err(|_| out_of_memory(ctx))
}

/// As the engine says it, so that a run that ends over it ends at its limit.
fn out_of_memory(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_internal(ctx, "out of memory")
}

/// Text, and how many bytes at the end wait for more.
#[derive(Debug, PartialEq, Eq)]
struct DecodedText {
    text: String,
    left_over: usize,
}

/// None when `fatal` and the bytes are not valid in this encoding.
fn decode_text(encoding: &str, bytes: &[u8], fatal: bool, stream: bool) -> Option<DecodedText> {
    let left_over = match (stream, encoding) {
        (true, "utf-8") => unfinished_utf8(bytes),
        (true, "utf-16le" | "utf-16be") => unfinished_utf16(bytes, encoding),
        _ => 0,
    };
    let (bytes, _) = bytes.split_at_checked(bytes.len().checked_sub(left_over)?)?;
    let text = match encoding {
        "utf-8" if fatal => std::str::from_utf8(bytes).ok()?.to_owned(),
        "utf-8" => String::from_utf8_lossy(bytes).into_owned(),
        "utf-16le" | "utf-16be" => decode_utf16(bytes, encoding, fatal)?,
        _ => bytes.iter().map(|byte| windows_1252(*byte)).collect(),
    };
    Some(DecodedText { text, left_over })
}

/// How long the beginning of a character is that the bytes end with.
fn unfinished_utf8(bytes: &[u8]) -> usize {
    let begins_character = |length: &usize| {
        let tail = bytes.len().checked_sub(*length).and_then(|at| bytes.get(at..));
        match tail.map(std::str::from_utf8) {
            Some(Err(error)) => error.valid_up_to() == 0 && error.error_len().is_none(),
            Some(Ok(_)) | None => false,
        }
    };
    (1..=3).find(begins_character).unwrap_or(0)
}

/// An odd byte, and a high surrogate before it.
fn unfinished_utf16(bytes: &[u8], encoding: &str) -> usize {
    let odd = bytes.len() % 2;
    let whole = bytes.len() - odd;
    let last = whole.checked_sub(2).and_then(|at| bytes.get(at..whole));
    let waits = last.is_some_and(|pair| (0xd800..0xdc00).contains(&unit(pair, encoding)));
    odd + if waits { 2 } else { 0 }
}

fn unit(pair: &[u8], encoding: &str) -> u16 {
    match (pair, encoding) {
        ([low, high], "utf-16le") | ([high, low], _) => u16::from_be_bytes([*high, *low]),
        _ => 0xfffd,
    }
}

fn decode_utf16(bytes: &[u8], encoding: &str, fatal: bool) -> Option<String> {
    // An odd last byte is no unit; `unit` turns it into the replacement character.
    if fatal && bytes.len() % 2 == 1 {
        return None;
    }
    let units = bytes.chunks(2).map(|pair| unit(pair, encoding));
    let decoded = char::decode_utf16(units);
    if fatal {
        return decoded.collect::<Result<_, _>>().ok();
    }
    Some(decoded.map(|result| result.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

fn windows_1252(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|at| WINDOWS_1252.get(usize::from(at)));
    special.copied().unwrap_or(char::from(byte))
}

/// The bytes that hexadecimal text stands for; none when there is no memory for them.
pub(super) fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digit = |character: u8| char::from(character).to_digit(16).unwrap_or(0) as u8;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(hex.len() / 2).ok()?;
    let pairs = hex.as_bytes().chunks_exact(2);
    bytes.extend(
        pairs.map(|pair| pair.iter().fold(0, |byte, character| byte << 4 | digit(*character))),
    );
    Some(bytes)
}
