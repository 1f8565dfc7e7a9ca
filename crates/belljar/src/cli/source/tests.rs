//! A1: which language code is in, and which files are not code.

use std::path::Path;

use belljar_contract::{EngineName, Language};

use super::{CodeSource, RunArguments, language, language_of, text};

#[test]
fn a1_the_file_name_tells_the_language() {
    let language_of = |name: &str| language_of(Path::new(name)).unwrap();
    for name in ["a.ts", "a.mts", "a.cts", "a.d.ts"] {
        assert_eq!(language_of(name), Some(Language::TypeScript), "{name}");
    }
    for name in ["a.js", "a.mjs", "a.cjs"] {
        assert_eq!(language_of(name), Some(Language::JavaScript), "{name}");
    }
    for name in ["a.sh", "a.bash"] {
        assert_eq!(language_of(name), Some(Language::Bash), "{name}");
    }
    assert_eq!(language_of("job.py"), Some(Language::Python));
    for name in ["dir.js/a", "a.txt", "a"] {
        assert_eq!(language_of(name), None, "{name}");
    }
}

#[test]
fn a1_what_cannot_be_run_is_told() {
    let told = |name: &str| language_of(Path::new(name)).unwrap_err().to_string();
    insta::assert_snapshot!(told("view.tsx"), @"view.tsx: cannot run .tsx files: JSX is not supported");
    insta::assert_snapshot!(language("cobol").unwrap_err(), @"use typescript (ts), javascript (js), python (py) or bash (sh)");
}

#[test]
fn a1_unnamed_code_is_typescript_unless_said_otherwise() {
    let source = |language, engine| {
        let code = Some("1".to_owned());
        let arguments = RunArguments { code, language, engine, ..RunArguments::default() };
        let source = CodeSource::load(&arguments).unwrap();
        (source.language, source.file_name)
    };
    assert_eq!(source(None, None), (Language::TypeScript, "main.ts".to_owned()));
    assert_eq!(source(language("js").ok(), None), (Language::JavaScript, "main.js".to_owned()));
    let (cpython, python) = (Some(EngineName::CPython), (Language::Python, "main.py".to_owned()));
    assert_eq!(source(None, cpython), python);
}

#[test]
fn text_is_utf8_within_its_size_and_loses_its_mark() {
    let read = |bytes: &[u8]| text(bytes, 8, "it").map_err(|error| error.to_string());
    assert_eq!(read(b"\xef\xbb\xbf1"), Ok("1".to_owned()));
    assert_eq!(read(b"12345678"), Ok("12345678".to_owned()));
    assert_eq!(read(b"123456789"), Err("it is larger than 8 bytes".to_owned()));
    assert_eq!(read(b"ab\xff"), Err("it is not UTF-8 text (at byte 2)".to_owned()));
}
