//! The guest library against Node (A1): tables of expressions with what Node 20.20 makes of them.
//!
//! The expected values in `guest/*.txt` are never ours: `node expect.mjs FILE.txt` writes them.

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
        "return [{}].map((f) => {{
            try {{ return f() ?? null; }} catch (e) {{ return `${{e.name}}: ${{e.message}}`; }}
        }});",
        as_functions(&cases)
    ));
    let actual = all.as_array().expect("an array of values");
    assert_eq!(actual.len(), cases.len());
    for ((expression, expected), actual) in cases.iter().zip(actual) {
        let expected: Value = serde_json::from_str(expected).expect("the table holds JSON");
        assert_eq!(*actual, expected, "{expression}");
    }
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
