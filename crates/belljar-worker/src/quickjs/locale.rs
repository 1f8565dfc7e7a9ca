//! Locale data for `Intl`: what CLDR says of a locale, cut down by `scripts/locale-data`. It is packed by
//! section, such as the dates of German, and only what a program names is unpacked.

use rquickjs::{Object, function::Func};

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/locales.bin"));
/// `locale section start end`, a line each.
const INDEX: &str = include_str!(concat!(env!("OUT_DIR"), "/locales.txt"));
/// The largest section has a third of it.
const MAX_SECTION_BYTES: usize = 128 << 10;

/// Adds `localeText` to `native`.
pub(super) fn install(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("localeText", Func::from(locale_text))
}

/// A section of a locale's data, as JSON; none when the locale says nothing of its own there.
fn locale_text(locale: String, section: String) -> Option<String> {
    let key = format!("{locale} {section} ");
    let place = INDEX.lines().find_map(|line| line.strip_prefix(&key))?;
    let (start, end) = place.split_once(' ')?;
    let packed = PACKED.get(start.parse().ok()?..end.parse().ok()?)?;
    let text =
        miniz_oxide::inflate::decompress_to_vec_with_limit(packed, MAX_SECTION_BYTES).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests;
