//! Both shapes are valid workflows with a thousand tasks.

use belljar_workflow::{Action, Dag};
use serde_json::Value;

use super::{TASKS, foreach, independent};

fn dag(value: Value) -> Dag {
    serde_json::from_value(value).unwrap()
}

#[test]
fn k1_a_thousand_tasks_are_a_thousand_in_both_shapes() {
    assert_eq!(dag(independent(8)).tasks.len(), TASKS as usize);
    let items = foreach(8)["tasks"][0]["items"].as_array().unwrap().len();
    assert_eq!(items, TASKS as usize);
    let each = dag(foreach(8)).tasks.remove(0);
    assert!(matches!(each.action, Action::Foreach(_)), "{each:?}");
}
