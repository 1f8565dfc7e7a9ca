//! Locale data that the build packs can be unpacked.

use super::{INDEX, PACKED, locale_text};

#[test]
fn every_section_is_unpacked() {
    for line in INDEX.lines() {
        let [locale, section, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let text = locale_text(locale.to_owned(), section.to_owned()).expect(line);
        let value: serde_json::Value = serde_json::from_str(&text).expect(line);
        assert!(value.is_object(), "{line}");
    }
    assert_eq!(locale_text("et".to_owned(), "numbers".to_owned()), None);
}

/// The program is one file to download: a locale is worth some ten kilobytes of it.
#[test]
fn the_data_stays_small() {
    assert!(PACKED.len() + INDEX.len() < 512 << 10, "{}", PACKED.len());
}
