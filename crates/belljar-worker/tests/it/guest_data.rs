//! The `data` library beyond its documented examples: odd input, ties, refusals (A11).

use serde_json::json;

use crate::harness::values;

#[test]
fn a11_lists_of_any_kind_are_taken() {
    let actual = values(&[
        "data.groupBy(new Set([1, 2]), (n) => n)",
        "data.countBy(new Map([['a', 1], ['b', 1]]), 1)",
        "data.sumBy([])",
        "data.meanBy([])",
        "data.minBy([])",
        "data.topK([3, 1, 2], 5)",
        "data.sumBy([1, null, 2, undefined])",
        "data.groupBy([{ a: { b: 1 } }, { a: {} }], 'a.b')",
        "data.groupBy([{ 'a.b': 1 }], 'a.b')",
        "Object.keys(data.groupBy([{ k: '__proto__' }], 'k'))",
        "data.chunk([], 3)",
        "data.zip([1], ['a', 'b'])",
        "data.flatten([[[1]]], 2)",
        "data.partition([{ ok: 1 }, {}], 'ok')",
    ]);
    let expected = json!([
        {"1": [1], "2": [2]},
        {"1": 2},
        0,
        null,
        null,
        [3, 2, 1],
        3,
        {"1": [{"a": {"b": 1}}], "undefined": [{"a": {}}]},
        {"1": [{"a.b": 1}]},
        ["__proto__"],
        [],
        [[1, "a"], [null, "b"]],
        [1],
        [[{"ok": 1}], [{}]],
    ]);
    assert_eq!(actual, expected);
}

/// A11. Sorting is stable, mixes types in a fixed order and leaves the input alone.
#[test]
fn sorting_has_a_fixed_order() {
    let actual = values(&[
        "data.sortBy([true, 'b', 10, null, 'a', 2, undefined, NaN, 'B'])",
        "data.sortBy([{ a: 1, i: 0 }, { a: 0, i: 1 }, { a: 1, i: 2 }], 'a').map((r) => r.i)",
        "data.sortBy([{ a: 1 }, { a: null }, { a: 3 }], ['a', 'desc']).map((r) => r.a)",
        "data.sortBy([new Date(5), new Date(1)]).map(Number)",
        "(() => { const list = [2, 1]; data.sortBy(list); return list; })()",
        "data.sortBy([{ a: 'x', b: 1 }, { a: 'y', b: 2 }, { a: 'x', b: 3 }], 'a', (r) => r.b, 'desc').map((r) => r.b)",
        "data.maxBy([{ d: '2024-01-02' }, { d: '2024-03-01' }], 'd')",
    ]);
    let expected = json!([
        [2, 10, true, "B", "a", "b", null, null, null],
        [1, 0, 2],
        [3, 1, null],
        [1, 5],
        [2, 1],
        [3, 1, 2],
        {"d": "2024-03-01"},
    ]);
    assert_eq!(actual, expected);
}

#[test]
fn a11_wrong_input_is_refused_with_a_reason() {
    let actual = values(&[
        "data.groupBy('abc', 'x')",
        "data.groupBy({ a: 1 }, 'x')",
        "data.groupBy([1])",
        "data.sumBy([{ v: '1' }], 'v')",
        "data.topK([1], -1)",
        "data.chunk([1], 0)",
        "data.pick(5, 'a')",
        "data.filter([1], 5)",
        "data.sortBy([1], 'desc')",
        "data.join([], [], 'id', 'outer')",
        "data.pivot([], 'a', 'b', 'c', 'median')",
        "data.percentile([1], 101)",
        "data.histogram([1], { bins: 0 })",
        "data.summarise([1, 'a'])",
        "data.parseCsv(5)",
        "data.parseCsv('a\\n\"open')",
        "data.select({}, 5)",
        "data.truncate('x', -1)",
    ]);
    let expected = json!([
        "TypeError: data.groupBy: expected an array, got a string",
        "TypeError: data.groupBy: expected an array, got an object (use Object.values or Object.entries)",
        "TypeError: data.groupBy: a key must be a function or a property name, got undefined",
        "TypeError: data.sumBy: expected a number, got a string",
        "RangeError: data.topK: k must be a whole number, got -1",
        "RangeError: data.chunk: size must be at least 1",
        "TypeError: data.pick: expected an object or an array of them, got a number",
        "TypeError: data.filter: a test must be a function, a property name or an object, got a number",
        "TypeError: data.sortBy: \"desc\" must follow a key",
        "RangeError: data.join: expected \"inner\" or \"left\", got 'outer'",
        "RangeError: data.pivot: unknown aggregate 'median', use sum, mean, count, min, max, first, last or a function",
        "RangeError: data.percentile: the percentile must be between 0 and 100, got 101",
        "RangeError: data.histogram: bins must be between 1 and 1000, got 0",
        "TypeError: data.summarise: expected numbers or rows, got a string among them",
        "TypeError: data.parseCsv: expected a string, got a number",
        "SyntaxError: data.parseCsv: the quote at character 2 is not closed",
        "TypeError: data.select: the path must be a string, got a number",
        "RangeError: data.truncate: maxChars must be a whole number, got -1",
    ]);
    assert_eq!(actual, expected);
}

#[test]
fn a11_tables_are_joined_pivoted_and_written() {
    let actual = values(&[
        "data.join([{ id: 1, v: 1 }, { id: 2, v: 2 }], [{ id: 1, v: 9, w: 8 }], 'id', 'left')",
        "data.pivot([{ a: 1, b: 'x', v: 2 }, { a: 1, b: 'y', v: 4 }, { a: 2, b: 'x', v: 6 }], 'a', 'b', 'v', 'mean')",
        "data.pivot([{ a: 1, b: 'x', v: 2 }], (r) => r.a, 'b', 'v', (values) => values.join())",
        "data.parseCsv('\\ufeffa;b\\r\\n1;\"x \"\"y\"\"\\r\\nz\"\\r\\n', { delimiter: ';' })",
        "data.parseCsv('1,true\\n2.5e3,007', { header: false })",
        "data.parseCsv('a,b\\n1,\\n', { types: false })",
        "data.parseCsv('a,b\\n1')",
        "data.parseCsv('')",
        "data.toCsv([{ a: 'x,\"y\"', b: new Date(0) }, { a: null, c: { d: 1 } }])",
        "data.toCsv([{ a: 1, b: 2 }], { columns: ['b'], delimiter: '\\t' })",
        "data.table([{ name: '日本', n: 5 }, { name: 'x'.repeat(50), n: 12.5 }], { maxWidth: 8 })",
        "data.table(Array.from({ length: 3 }, (_, n) => ({ n })), { maxRows: 1 })",
        "data.table([])",
    ]);
    let expected = json!([
        [{"id": 1, "v": 1, "v_right": 9, "w": 8}, {"id": 2, "v": 2, "v_right": null, "w": null}],
        [{"a": 1, "x": 2, "y": 4}, {"a": 2, "x": 6, "y": null}],
        [{"row": 1, "x": "2"}],
        [{"a": 1, "b": "x \"y\"\r\nz"}],
        [[1, true], [2500, "007"]],
        [{"a": "1", "b": ""}],
        [{"a": 1, "b": null}],
        [],
        "a,b,c\n\"x,\"\"y\"\"\",1970-01-01T00:00:00.000Z,\n,,\"{\"\"d\"\":1}\"",
        "b\n2",
        "name         n\n--------  ----\n日本         5\nxxxxxxx…  12.5",
        "n\n-\n0\n... 2 more rows",
        "\n",
    ]);
    assert_eq!(actual, expected);
}

#[test]
fn a11_numbers_are_summarised() {
    let actual = values(&[
        "data.summarise([])",
        "data.summarise([5])",
        "data.summarise([{ v: 1 }, { v: 3 }], 'v').mean",
        "data.summarise([{ a: true, d: new Date(0), m: 1, l: [1] }, { a: false, d: new Date(1), m: 'x' }])",
        "data.percentile([{ v: 10 }, { v: 20 }], 25, 'v')",
        "data.percentile([], 50)",
        "data.histogram([7, 7])",
        "data.histogram([])",
        "data.histogram([1, 2, 3, 99], { bins: 2, min: 1, max: 3 })",
        "data.sumBy(Array(10).fill(0.1))",
    ]);
    let expected = json!([
        {"count": 0, "min": null, "max": null, "mean": null, "median": null, "p95": null, "sum": 0, "stdev": 0},
        {"count": 1, "min": 5, "max": 5, "mean": 5, "median": 5, "p95": 5, "sum": 5, "stdev": 0},
        2,
        {"count": 2, "columns": {
            "a": {"type": "boolean", "count": 2, "nulls": 0, "distinct": 2,
                "top": [{"value": false, "count": 1}, {"value": true, "count": 1}]},
            "d": {"type": "date", "count": 2, "nulls": 0,
                "min": "1970-01-01T00:00:00.000Z", "max": "1970-01-01T00:00:00.001Z"},
            "m": {"type": "number|string", "count": 2, "nulls": 0},
            "l": {"type": "array", "count": 1, "nulls": 1}}},
        12.5,
        null,
        [{"from": 7, "to": 8, "count": 2}],
        [],
        [{"from": 1, "to": 2, "count": 1}, {"from": 2, "to": 3, "count": 2}],
        1,
    ]);
    assert_eq!(actual, expected);
}

#[test]
fn a11_dates_are_read_written_and_moved() {
    let actual = values(&[
        "data.parseDate('2024-02-30')",
        "data.parseDate('03/04/2024')",
        "data.parseDate('31/02/2024', 'DD/MM/YYYY')",
        "data.parseDate({})",
        "data.parseDate('2024-01-02 03:04')",
        "data.parseDate('2024-01-02T03:04:05+02:00')",
        "data.parseDate('1700000000000')",
        "data.parseDate('5 March 99', 'D MMMM YY')",
        "data.parseDate('12:30 am', 'h:mm a')",
        "data.formatDate(0, 'dddd MMMM M/D/YY h:mm:ss.SSS a [at] Z')",
        "['second', 'minute', 'hour', 'day', 'week', 'quarter', 'year'].map((u) => data.startOf('2024-05-19T13:14:15.5Z', u))",
        "data.startOf('2024-03-10T12:00:00Z', 'day', 'America/New_York')",
        "data.addTime('2024-02-29', 1, 'year')",
        "data.addTime('2024-01-01', -1.5, 'days')",
        "data.addTime('2024-01-01', '1', 'day')",
        "data.addTime('2024-01-01', 1, 'fortnight')",
        "data.diffTime('2024-03-15', '2024-01-16', 'months')",
        "data.diffTime('2020-02-29', '2024-02-28', 'year')",
        "data.diffTime('2024-01-01T00:00Z', '2024-01-01T01:30Z', 'hour')",
    ]);
    let expected = json!([
        "RangeError: data.parseDate: not a date: '2024-02-30'",
        "RangeError: data.parseDate: '03/04/2024' may be day or month first; give a pattern, for example \"DD/MM/YYYY\"",
        "RangeError: data.parseDate: not a date: '31/02/2024' (expected DD/MM/YYYY)",
        "TypeError: data.parseDate: expected a date, a number or a string, got an object",
        "2024-01-02T03:04:00.000Z",
        "2024-01-02T01:04:05.000Z",
        "2023-11-14T22:13:20.000Z",
        "1999-03-05T00:00:00.000Z",
        "1970-01-01T00:30:00.000Z",
        "Thursday January 1/1/70 12:00:00.000 am at Z",
        [
            "2024-05-19T13:14:15.000Z",
            "2024-05-19T13:14:00.000Z",
            "2024-05-19T13:00:00.000Z",
            "2024-05-19T00:00:00.000Z",
            "2024-05-13T00:00:00.000Z",
            "2024-04-01T00:00:00.000Z",
            "2024-01-01T00:00:00.000Z"
        ],
        "2024-03-10T05:00:00.000Z",
        "2025-02-28T00:00:00.000Z",
        "2023-12-30T12:00:00.000Z",
        "TypeError: data.addTime: the amount must be a number, got a string",
        "RangeError: data.addTime: unknown unit 'fortnight', use millisecond, second, minute, hour, day, week, month, quarter, year",
        -1,
        3,
        1.5,
    ]);
    assert_eq!(actual, expected);
}

/// A11. Whatever is cut says so, and the result fits.
#[test]
fn big_values_are_cut_to_size() {
    let actual = values(&[
        "data.truncate('x'.repeat(100), 50)",
        "data.truncate({ a: 1 }, 50)",
        "data.truncate([1, 2, 3].map((id) => ({ id, text: 'word '.repeat(40) })), 200)",
        "JSON.stringify(data.truncate({ a: { b: { c: Array(5000).fill('text') } } }, 300)).length <= 300",
        "data.select({ a: [{ b: [1, 2] }, { b: [3] }] }, 'a[*].b[0]')",
        "data.select(null, 'a.b')",
        "data.select({ 'a.b': 1 }, 'a.b')",
    ]);
    let expected = json!([
        "xxxxxxxxxxxxxxxxxxxxxxxxx… (75 more characters)",
        {"a": 1},
        [{"id": 1, "text": "word word word word word word … (170 more characters)"},
            {"id": 2, "text": "word word word word word word … (170 more characters)"}, "… 1 more items"],
        true,
        [1, 3],
        null,
        1,
    ]);
    assert_eq!(actual, expected);
}
