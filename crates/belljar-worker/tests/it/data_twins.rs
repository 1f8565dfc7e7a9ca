//! The `data` library gives the same in TypeScript and in Python (A11). Each expression is both.

use belljar_wire::RunCommand;
use serde_json::{Value, json};

use crate::{
    cpython_harness::{self, Python},
    harness,
};

/// The `context` of the expressions.
fn context() -> Value {
    json!({
        "orders": [
            {"id": 1, "city": "Rome", "total": 10, "paid": true, "at": "2024-01-31T10:00:00Z"},
            {"id": 2, "city": "Oslo", "total": 2.5, "paid": false, "at": "2024-02-01"},
            {"id": 3, "city": "Rome", "total": null, "paid": true, "at": 1_700_000_000},
            {"id": 4, "total": 7, "paid": null, "tags": ["a", "b"]},
        ],
        "cities": [{"city": "Rome", "area": 1285, "id": "r"}, {"city": "Oslo", "area": 454, "id": "o"}],
        "numbers": [3, 1, 4, 1, 5, 9, 2, 6, 5.5],
        "nested": {"items": [{"user": {"name": "Ada"}}, {"user": {"name": "Bob"}}, {}], "a.b": 7},
        "csv": "\u{feff}city,area,code,note\nRome,1285,007,\"old, \"\"very\"\"\"\r\nOslo,4.5e2,x,\n\nBergen,true\n",
        "long": "x".repeat(5000),
    })
}

const EXPRESSIONS: &[&str] = &[
    r#"data.groupBy(context.orders, "city")"#,
    r#"data.groupBy(context.numbers, "length")"#,
    r#"data.countBy(context.orders, "paid")"#,
    r#"data.countBy(context.orders, "total")"#,
    r#"data.sumBy(context.orders, "total")"#,
    r#"data.sumBy(context.orders, "total", "city")"#,
    r#"data.meanBy(context.orders, "total", "city")"#,
    r#"data.meanBy([])"#,
    r#"data.sumBy([0.1, 0.2, 0.3, 1e100, -1e100])"#,
    r#"data.sortBy(context.orders, "total", "desc", "id")"#,
    r#"data.sortBy(context.orders, ["city", "desc"], "id")"#,
    r#"data.sortBy(["b", 2, "a", 10, 1])"#,
    r#"data.topK(context.orders, 2, "total")"#,
    r#"data.topK(context.numbers, 3)"#,
    r#"data.minBy(context.orders, "total")"#,
    r#"data.maxBy(context.orders, "total")"#,
    r#"data.minBy([])"#,
    r#"data.uniqueBy(context.orders, "city")"#,
    r#"data.uniqueBy([1, 1, "1", 2])"#,
    r#"data.indexBy(context.orders, "city")"#,
    r#"data.filter(context.orders, {"city": "Rome", "id": 3})"#,
    r#"data.filter(context.orders, "paid")"#,
    r#"data.map(context.orders, "id")"#,
    r#"data.pick(context.orders, "id", "city")"#,
    r#"data.omit(context.orders, ["at", "paid", "tags"])"#,
    r#"data.chunk(context.numbers, 4)"#,
    r#"data.flatten([[1], [2, [3, [4]]], 5])"#,
    r#"data.flatten([[1], [2, [3, [4]]], 5], 2)"#,
    r#"data.partition(context.orders, "paid")"#,
    r#"data.zip(["a", "b"], [1, 2])"#,
    r#"data.join(context.orders, context.cities, "city")"#,
    r#"data.join(context.orders, context.cities, "city", "left")"#,
    r#"data.join(context.cities, context.orders, ["city", "city"])"#,
    r#"data.pivot(context.orders, "city", "paid", "total")"#,
    r#"data.pivot(context.orders, "city", "paid", "total", "max")"#,
    r#"data.pivot(context.orders, "paid", "city", "id", "count")"#,
    r#"data.parseCsv(context.csv)"#,
    r#"data.parseCsv(context.csv, {"types": false, "header": false})"#,
    r#"data.parseCsv("a;b\n1;2", {"delimiter": ";"})"#,
    r#"data.parseCsv("1,2", {"header": ["x", "y", "z"]})"#,
    r#"data.parseCsv("")"#,
    r#"data.toCsv(context.orders)"#,
    r#"data.toCsv(data.parseCsv(context.csv), {"columns": ["note", "area"]})"#,
    r#"data.table(context.orders)"#,
    r#"data.table(context.orders, {"maxRows": 2, "maxWidth": 5})"#,
    r#"data.percentile(context.numbers, 90)"#,
    r#"data.percentile(context.orders, 50, "total")"#,
    r#"data.histogram(context.numbers, {"bins": 3})"#,
    r#"data.histogram(context.numbers, 4)"#,
    r#"data.histogram([2, 2])"#,
    r#"data.histogram(context.orders, {"bins": 2, "key": "total", "min": 0, "max": 8})"#,
    r#"data.summarise(context.numbers)"#,
    r#"data.summarise(context.orders)"#,
    r#"data.summarise(context.orders, "total")"#,
    r#"data.summarise([])"#,
    r#"data.select(context.nested, "items[1].user.name")"#,
    r#"data.select(context.nested, "items[*].user.name")"#,
    r#"data.select(context.nested, "a.b")"#,
    r#"data.select(context.nested, "items[9].user")"#,
    r#"data.truncate(context.nested, 40)"#,
    r#"data.truncate(context.long, 100)"#,
    r#"data.truncate({"long": context.long, "n": context.numbers}, 300)"#,
    r#"data.formatDate(context.orders[0].at, "YYYY-MM-DD[T]HH:mm:ss.SSS Z")"#,
    r#"data.formatDate(context.orders[2].at, "dddd D MMMM YY, h:mm a")"#,
    r#"data.formatDate("2024-03-10T15:30:00Z", "ddd D MMM YYYY HH:mm Z", "Europe/Berlin")"#,
    r#"data.formatDate(data.parseDate("31/12/2023 5:06 PM", "DD/MM/YYYY h:mm A"), "YYYY-MM-DD HH:mm")"#,
    r#"data.formatDate(data.parseDate("Tue, 05 Mar 2024 10:00:00 GMT"), "YYYY-MM-DD HH:mm")"#,
    r#"data.formatDate(data.startOf("2024-05-15T13:14:15Z", "quarter"), "YYYY-MM-DD HH:mm")"#,
    r#"data.formatDate(data.startOf("2024-05-15T13:14:15Z", "week"), "YYYY-MM-DD HH:mm")"#,
    r#"data.formatDate(data.startOf("2024-05-15T03:00:00Z", "day", "America/New_York"), "DD HH:mm")"#,
    r#"data.formatDate(data.addTime("2024-01-31", 1, "month"))"#,
    r#"data.formatDate(data.addTime("2024-01-31", -1.5, "days"), "YYYY-MM-DD HH")"#,
    r#"data.diffTime("2024-01-01", "2024-03-15", "days")"#,
    r#"data.diffTime("2024-01-31", "2023-11-30", "months")"#,
    r#"data.diffTime("2024-01-01", "2024-01-01T06:00:00Z", "day")"#,
];

/// As it is written in Python.
fn python(expression: &str) -> String {
    expression.replace("false", "False").replace("true", "True").replace("null", "None")
}

fn with_context(command: RunCommand) -> RunCommand {
    RunCommand { context: context().to_string().into_bytes(), ..command }
}

#[test]
fn a11_data_gives_the_same_in_both_languages() {
    let list: Vec<String> = EXPRESSIONS.iter().map(|one| format!("{one} ?? null")).collect();
    let code = format!("return [{}]", list.join(",\n"));
    let script = harness::run_command(with_context(harness::command(&code)));
    assert_eq!(script.error, None);
    let list: Vec<String> = EXPRESSIONS.iter().map(|one| python(one)).collect();
    let code = format!("[{}]", list.join(",\n"));
    let twin = with_context(cpython_harness::command(&code));
    let twin = cpython_harness::run_command(Python::Plain, &twin);
    assert_eq!(twin.error, None);
    for (at, expression) in EXPRESSIONS.iter().enumerate() {
        assert_eq!(twin.value[at], script.value[at], "{expression}");
    }
}

#[test]
fn a11_both_languages_have_the_same_functions() {
    let script = harness::value("return Object.keys(data).sort()");
    let twin = "[n for n in dir(data) if n in ('filter', 'map', 'pick', 'omit', 'chunk', 'flatten', \
        'partition', 'zip', 'join', 'pivot', 'table', 'percentile', 'histogram', 'summarise', \
        'select', 'truncate') or any(c.isupper() for c in n)]";
    let twin = cpython_harness::value(&format!("sorted({twin})"));
    assert_eq!(twin, script);
    let both = "data.group_by([1, 2], lambda n: n % 2) == data.groupBy([1, 2], lambda n: n % 2) \
        and data.parse_csv('a') == data.parseCsv('a') and data.top_k([1, 2], 1) == [2]";
    assert_eq!(cpython_harness::value(both), json!(true));
}

#[test]
fn a11_data_says_what_it_expected() {
    for (code, message) in [
        (
            "data.groupBy({'a': 1}, 'a')",
            "TypeError: data.groupBy: expected a list, got a dict (use .values() or .items())",
        ),
        ("data.sumBy(['x'])", "TypeError: data.sumBy: expected a number, got a str"),
        (
            "data.parseDate('01/02/2024')",
            "ValueError: data.parseDate: '01/02/2024' may be day or month first; give a pattern, for example \"DD/MM/YYYY\"",
        ),
        (
            "data.startOf('2024-01-01', 'moon')",
            "ValueError: data.startOf: unknown unit 'moon', use millisecond, second, minute, hour, day, week, month, quarter, year",
        ),
    ] {
        assert_eq!(cpython_harness::run(code).failure().message, message, "{code}");
    }
    // A name of the code's own is the code's.
    assert_eq!(cpython_harness::value("data = [1]\ndata[0]"), json!(1));
}
