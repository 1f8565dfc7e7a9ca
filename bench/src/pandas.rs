//! `pandas`: a data frame of a thousand rows built, grouped and summed; compared with a new process
//! that imports pandas.

use std::time::Duration;

use anyhow::ensure;
use belljar_contract::{Language, RunRequest};
use belljar_project::RunResultExt as _;
use serde_json::{Value, json};

use super::{
    Bench,
    host_cases::HostCases,
    python_peer::PythonPeer,
    rounds::{self, Frequency, TimedCase},
    row::BenchRow,
};

/// The pause between runs: a cell with pandas takes longer to create.
const REST: Duration = Duration::from_millis(40);

/// The code that both sides run; the expression `ANSWER` then gives the groups.
pub(super) const WORK: &str = "import pandas as pd
rows = pd.DataFrame({'key': [i % 10 for i in range(1000)], 'value': list(range(1000))})
sums = rows.groupby('key', as_index=False)['value'].sum()
";
const ANSWER: &str = "sums.to_dict('records')";

/// Measures the time from request to result.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let Some((python, version)) = PythonPeer::with_pandas(bench, "pandas") else {
        return Ok(Vec::new());
    };
    let ours = HostCases::new(request(), REST, |result| check(&result.value()?))?;
    let mut cases: Vec<TimedCase<'_>> = ours.cases("belljar pandas").into();
    let cold = format!("import json\n{WORK}print(json.dumps({ANSWER}))\n");
    let answers = |said: &str| check(&serde_json::from_str(said)?);
    cases.push(python.cold("pandas, new python3", &version, Frequency::Less, &cold, answers));
    let rows = rounds::measure(bench, "pandas", cases)?;
    ours.end();
    Ok(rows)
}

/// The request that Belljar runs.
pub(super) fn request() -> RunRequest {
    RunRequest::new(Language::Python, format!("{WORK}{ANSWER}\n"))
}

fn check(records: &Value) -> anyhow::Result<()> {
    // Every tenth number of 0..1000, starting at the key: 10 × (0 + … + 99) + 100 × key.
    let right = (0..10).map(|key| json!({"key": key, "value": 49_500 + 100 * key}));
    ensure!(*records == right.collect::<Value>(), "the groups are wrong: {records}");
    Ok(())
}
