//! numpy, pandas and matplotlib in Python code (A2, A8, A9).

use belljar_contract::ErrorCode;
use serde_json::{Value, json};

use crate::cpython_harness::{Python, command, run_command, value_in};

const IMPORTS: &str = "import numpy as np, pandas as pd\n";

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (code, expected) in cases {
        assert_eq!(value_in(Python::Data, &format!("{IMPORTS}{code}")), *expected, "{code}");
    }
}

/// A8: numpy scalars and arrays are numbers and lists.
#[test]
fn numpy_values() {
    check(&[
        ("np.arange(6).reshape(2, 3)", json!([[0, 1, 2], [3, 4, 5]])),
        (
            "[np.int64(1), np.float32(0.5), np.bool_(True), np.str_('s'), np.float64(2)]",
            json!([1, 0.5, true, "s", 2.0]),
        ),
        ("{'m': np.mean([1, 2]), np.int64(3): 1}", json!({"m": 1.5, "3": 1})),
        (
            "[np.datetime64('2024-01-02'), np.array(['2024-01-02T03:04'], dtype='M8[ns]'), np.timedelta64(90, 's')]",
            json!(["2024-01-02T00:00:00", ["2024-01-02T03:04:00"], 90.0]),
        ),
        ("np.array(['a', None], dtype=object)", json!(["a", null])),
    ]);
}

/// A8: tables are records; an index that says something comes along.
#[test]
fn pandas_values() {
    check(&[
        (
            "pd.DataFrame({'a': [1, 2], 'b': ['x', None]}, dtype=object)",
            json!([{"a": 1, "b": "x"}, {"a": 2, "b": null}]),
        ),
        (
            "pd.DataFrame({'c': ['r', 'o', 'r'], 'n': [1, 2, 3]}).groupby('c').sum()",
            json!([{"c": "o", "n": 2}, {"c": "r", "n": 4}]),
        ),
        ("df = pd.DataFrame({'n': [1, 2, 3]})\ndf[df.n > 1]", json!([{"n": 2}, {"n": 3}])),
        ("pd.Series([1, 2])", json!([1, 2])),
        ("pd.Series({'a': 1, 'b': 2})", json!({"a": 1, "b": 2})),
        (
            "pd.Series([1, 2], index=['a', 'a'])",
            json!([{"index": "a", "value": 1}, {"index": "a", "value": 2}]),
        ),
        (
            "[pd.Timestamp('2024-01-02'), pd.NaT, pd.NA, pd.Timedelta('90s'), pd.Index([1, 2])]",
            json!(["2024-01-02T00:00:00", null, null, 90.0, [1, 2]]),
        ),
        (
            "pd.DataFrame({'d': pd.to_datetime(['2024-01-02', None])})",
            json!([{"d": "2024-01-02T00:00:00"}, {"d": null}]),
        ),
        ("pd.DataFrame({('a', 'x'): [1]})", json!([{"a.x": 1}])),
        ("pd.Series(['a', 'b'], dtype='category')", json!(["a", "b"])),
        ("pd.DataFrame({'x': [3, 4]}).describe().loc['mean', 'x']", json!(3.5)),
        (
            "import io\npd.read_csv(io.StringIO('a,b\\n1,2')).to_dict('records')",
            json!([{"a": 1, "b": 2}]),
        ),
    ]);
}

/// A8: long tables are cut and say so; NaN is lossy.
#[test]
fn long_tables_are_cut() {
    let code = format!("{IMPORTS}pd.DataFrame({{'a': range(5000), 'b': [float('nan')] * 5000}})");
    let outcome = run_command(Python::Data, &command(&code));
    assert_eq!(outcome.value.as_array().map(Vec::len), Some(1000));
    assert_eq!((outcome.cut, outcome.lossy), (true, true));
    assert_eq!(outcome.value[999], json!({"a": 999, "b": null}));
}

/// A7: a wrong column is told with those there are.
#[test]
fn wrong_columns_are_told() {
    let code = format!("{IMPORTS}df = pd.DataFrame({{'name': [1], 'age': [2]}})\ndf['nam']");
    let outcome = run_command(Python::Data, &command(&code));
    assert_eq!(outcome.told(), (ErrorCode::RuntimeThrown, "KeyError: 'nam'"));
    assert_eq!(outcome.hint(), "The keys are: 'name', 'age'. Did you mean `name`?");
    assert_eq!(outcome.failure().line, Some(3));
}

/// A2: numpy's global generator is seeded afresh in every cell.
#[test]
fn numpy_random_numbers_differ() {
    let code = "import numpy as np\nnp.random.rand()";
    assert_ne!(value_in(Python::Data, code), value_in(Python::Data, code));
}

/// A9: open figures come back as pictures.
#[test]
fn figures_are_artifacts() {
    let code = "import matplotlib.pyplot as plt, matplotlib\nplt.plot([1, 2, 3])\nplt.show()\nplt.figure()\nresult = matplotlib.get_backend().lower()\nplt.title('second')";
    let outcome = run_command(Python::Data, &command(code));
    assert_eq!((outcome.error, outcome.value), (None, json!("agg")));
    assert_eq!(outcome.prints, []);
    let names: Vec<_> = outcome.artifacts.iter().map(|path| path.rsplit('/').next()).collect();
    assert_eq!(names, [Some("figure-1.png"), Some("figure-2.png")]);
}
