//! The guest library against Node (A1): tables of expressions with what Node 20.20 makes of them.
//!
//! The expected values in `guest/*.txt` are never ours: `node expect.mjs FILE.txt` writes them.

use belljar_contract::Stream;
use serde_json::Value;

use crate::harness::{run, value};

/// Separates what one expression printed from the next; nothing prints it by itself.
const MARK: &str = "\u{1}";

/// The expressions of a table, each with what is expected of it.
fn cases(table: &str) -> Vec<(&str, String)> {
    let mut cases: Vec<(&str, String)> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(expression) = line.strip_prefix(">>> ") {
            cases.push((expression, String::new()));
            continue;
        }
        let (_, expected) = cases.last_mut().expect("a table begins with an expression");
        if !expected.is_empty() {
            expected.push('\n');
        }
        expected.push_str(line);
    }
    assert!(cases.len() > 10, "the table was not read");
    cases
}

fn as_functions(cases: &[(&str, String)]) -> String {
    cases.iter().map(|(expression, _)| format!("() => ({expression}),\n")).collect()
}

/// Compares values; an expression that throws has its error's text as value.
fn check_values(table: &str) {
    let cases = cases(table);
    let all = value(&format!(
        "const all = [];
        for (const f of [{}]) {{
            try {{ all.push((await f()) ?? null); }} catch (e) {{ all.push(`${{e.name}}: ${{e.message}}`); }}
        }}
        return all;",
        as_functions(&cases)
    ));
    let actual = all.as_array().expect("an array of values");
    assert_eq!(actual.len(), cases.len());
    let differs = |((expression, expected), actual): (&(&str, String), &Value)| {
        let expected: Value = serde_json::from_str(expected).expect("the table holds JSON");
        (*actual != expected).then(|| format!("{expression}\n  here {actual}\n  Node {expected}"))
    };
    let differences: Vec<_> = cases.iter().zip(actual).filter_map(differs).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Compares what `console.log` prints.
fn check_prints(table: &str) {
    let cases = cases(table);
    let functions = as_functions(&cases);
    let code =
        format!("for (const f of [{functions}]) {{ console.log(f()); console.log('{MARK}'); }}");
    let outcome = run(&code);
    assert_eq!(outcome.error, None);
    let printed = outcome.stdout();
    let end = format!("\n{MARK}\n");
    let actual: Vec<&str> = printed.trim_end_matches(&end).split(&end).collect();
    assert_eq!(actual.len(), cases.len());
    for ((expression, expected), actual) in cases.iter().zip(actual) {
        assert_eq!(actual, expected, "{expression}");
    }
}

#[test]
fn a1_values_print_as_in_node() {
    check_prints(include_str!("guest/print-values.txt"));
}

#[test]
fn a1_numbers_are_formatted_as_in_node() {
    check_values(include_str!("guest/numbers.txt"));
}

#[test]
fn a1_dates_are_formatted_as_in_node() {
    check_values(include_str!("guest/dates.txt"));
}

#[test]
fn a1_texts_are_compared_and_joined_as_in_node() {
    check_values(include_str!("guest/text.txt"));
}

#[test]
fn a1_web_classes_behave_as_in_node() {
    check_values(include_str!("guest/web.txt"));
}

#[test]
fn a1_buffers_behave_as_in_node() {
    check_values(include_str!("guest/node-buffer.txt"));
}

#[test]
fn a1_modules_behave_as_in_node() {
    check_values(include_str!("guest/node-modules.txt"));
}

#[test]
fn a1_assertions_behave_as_in_node() {
    check_values(include_str!("guest/node-assert.txt"));
}

#[test]
fn a1_bodies_and_streams_behave_as_in_node() {
    check_values(include_str!("guest/web-bodies.txt"));
}

#[test]
fn a1_iso_like_dates_are_written_as_in_node() {
    check_values(include_str!("guest/locales.txt"));
}

/// A7: a locale that is not here is never taken for another without a word.
#[test]
fn a7_a_locale_that_is_not_here_is_told() {
    let code = "for (let i = 0; i < 3; i++) new Date(0).toLocaleDateString('et-EE'); (5).toLocaleString('de')";
    let outcome = run(code);
    let told = "[intl] the locale et-EE is not available: written as en-US";
    assert_eq!(outcome.printed(Stream::Log), told);
    // Control: one that is here is not told.
    for locale in
        ["de", "de-DE", "de-CH", "en-CA", "sv-SE", "en-GB", "pt-BR", "ko-KR", "zh-TW", "nb-NO"]
    {
        let code = format!("(5).toLocaleString('{locale}')");
        assert_eq!(run(&code).printed(Stream::Log), "", "{locale}");
    }
}

/// A7: nor is another country of a language, a calendar, digits, or an order of texts.
#[test]
fn a7_what_is_not_here_of_a_locale_is_told() {
    for (code, told) in [
        ("(5).toLocaleString('de-LU')", "the locale de-LU is not available: written as de"),
        ("(5).toLocaleString('en-PK')", "the locale en-PK is not available: written as en-001"),
        (
            "new Date(0).toLocaleDateString('ja-JP-u-ca-japanese')",
            "the calendar japanese is not available: written in gregory",
        ),
        (
            "new Date(0).toLocaleDateString('en', { calendar: 'hebrew' })",
            "the calendar hebrew is not available: written in gregory",
        ),
        (
            "(5).toLocaleString('zh-u-nu-hanidec')",
            "the numbering system hanidec is not available: written in latn",
        ),
        (
            "['b', '北京', '上海'].sort(new Intl.Collator('zh').compare)",
            "the order of zh is not available: texts are ordered by code point",
        ),
    ] {
        assert_eq!(run(code).printed(Stream::Log), format!("[intl] {told}"), "{code}");
    }
    // Control: what is here is used, and not told.
    for (code, expected) in [
        ("return new Date(0).toLocaleDateString('th-TH-u-ca-gregory')", "1/1/1970"),
        ("return (15).toLocaleString('hi-IN-u-nu-deva')", "\u{967}\u{96b}"),
        ("return ['z', 'ö', 'a', 'å'].sort(new Intl.Collator('sv').compare).join('')", "azåö"),
    ] {
        let outcome = run(code);
        assert_eq!(
            (outcome.value.as_str(), outcome.printed(Stream::Log)),
            (Some(expected), String::new())
        );
    }
}
