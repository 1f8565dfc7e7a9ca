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

/// A7: a locale that is not here is never taken for American without a word.
#[test]
fn a7_a_locale_that_is_not_here_is_told() {
    let code = "for (let i = 0; i < 3; i++) new Date(0).toLocaleDateString('ko-KR'); (5).toLocaleString('de')";
    let outcome = run(code);
    let told = "[intl] the locale ko-KR is not available: written as en-US";
    assert_eq!(outcome.printed(Stream::Log), told);
    // Control: one that is here is not told.
    for locale in ["de", "de-DE", "en-CA", "sv-SE", "en-GB", "en-AU", "pt-BR"] {
        let code = format!("(5).toLocaleString('{locale}')");
        assert_eq!(run(&code).printed(Stream::Log), "", "{locale}");
    }
    assert_eq!(
        run("(5).toLocaleString('de-CH')").printed(Stream::Log),
        "[intl] the locale de-CH is not available: written as de"
    );
}
