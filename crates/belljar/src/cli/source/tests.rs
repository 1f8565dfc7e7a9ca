//! A1: which language code is in, and which files are not code.

use std::path::Path;

use belljar_contract::Language;

use super::{CodeSource, language, language_of, text};

#[test]
fn a1_the_file_name_tells_the_language() {
    for name in ["a.ts", "a.mts", "a.cts", "dir.js/a", "a.txt", "a", "a.d.ts"] {
        assert_eq!(language_of(Path::new(name)).unwrap(), Language::TypeScript, "{name}");
    }
    for name in ["a.js", "a.mjs", "a.cjs"] {
        assert_eq!(language_of(Path::new(name)).unwrap(), Language::JavaScript, "{name}");
    }
    for name in ["a.sh", "a.bash"] {
        assert_eq!(language_of(Path::new(name)).unwrap(), Language::Bash, "{name}");
    }
    assert_eq!(language_of(Path::new("job.py")).unwrap(), Language::Python);
}

#[test]
fn a1_what_cannot_be_run_is_told() {
    let told = |name: &str| language_of(Path::new(name)).unwrap_err().to_string();
    insta::assert_snapshot!(told("view.tsx"), @"view.tsx: cannot run .tsx files: JSX is not supported");
    insta::assert_snapshot!(language("cobol").unwrap_err(), @"use typescript (ts), javascript (js), python (py) or bash (sh)");
}

#[test]
fn a1_unnamed_code_is_typescript_unless_said_otherwise() {
    let source = CodeSource::unnamed("1".to_owned(), None);
    assert_eq!((source.language, source.file_name.as_str()), (Language::TypeScript, "main.ts"));
    let source = CodeSource::unnamed("1".to_owned(), language("js").ok());
    assert_eq!((source.language, source.file_name.as_str()), (Language::JavaScript, "main.js"));
}

#[test]
fn text_is_utf8_within_its_size_and_loses_its_mark() {
    let read = |bytes: &[u8]| text(bytes, 8, "it").map_err(|error| error.to_string());
    assert_eq!(read(b"\xef\xbb\xbf1"), Ok("1".to_owned()));
    assert_eq!(read(b"12345678"), Ok("12345678".to_owned()));
    assert_eq!(read(b"123456789"), Err("it is larger than 8 bytes".to_owned()));
    assert_eq!(read(b"ab\xff"), Err("it is not UTF-8 text (at byte 2)".to_owned()));
}
