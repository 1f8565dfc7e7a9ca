//! Refuses inputs that a workflow does not have; most likely they are misspelled.
//!
//! A workflow that declares no inputs takes any: for an agent they are the initial state. A
//! workflow that declares some also has the inputs that its tasks read by name, which have no
//! default.

use belljar_contract::JsonMap;

use super::{DagFault, DagFaults};
use crate::dag::Dag;
use crate::template::near;

/// How a template or code reads one input, as written in JSON.
const READS: [&str; 6] = [".", "?.", "['", "[\\\"", ".get('", ".get(\\\""];

/// Refuses inputs that a workflow neither declares nor reads.
pub(crate) fn check_inputs(dag: &Dag, given: &JsonMap) -> Result<(), DagFaults> {
    let is_declared = |name: &String| dag.inputs.contains_key(name);
    if dag.inputs.is_empty() || given.keys().all(is_declared) {
        return Ok(());
    }
    let text = serde_json::to_string(&(&dag.tasks, &dag.output)).unwrap_or_default();
    let declared: Vec<String> = dag.inputs.keys().cloned().collect();
    let unknown = given.keys().filter(|name| !is_declared(name) && !reads(&text, name));
    let faults = unknown.map(|name| DagFault {
        task: None,
        part: "inputs".to_owned(),
        what: format!(
            "the workflow has no input `{name}`; it declares `{}`",
            declared.join("`, `")
        ),
        near: near(name, &declared),
    });
    let faults: Vec<DagFault> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(DagFaults(faults)) }
}

/// Whether an input is read by its name somewhere.
fn reads(text: &str, name: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let found = text.match_indices("inputs");
    let mut after = found.filter_map(|(at, word)| text.get(at + word.len()..));
    after.any(|rest| {
        let mut named = READS.iter().filter_map(|read| rest.strip_prefix(read)?.strip_prefix(name));
        named.any(|after| !after.starts_with(is_word))
    })
}
