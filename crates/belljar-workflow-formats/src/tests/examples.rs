//! Files in the style of other people's tools, and of our own: each reads.

use super::{good, ids};
use crate::Format;

/// Every example file, by name.
pub(super) const ALL: [(&str, &str); 7] = [
    ("code-writer.yaml", include_str!("examples/code-writer.yaml")),
    ("page-survey.yaml", include_str!("examples/page-survey.yaml")),
    ("refund.yaml", include_str!("examples/refund.yaml")),
    ("two-sides.yaml", include_str!("examples/two-sides.yaml")),
    ("report.json", include_str!("examples/report.json")),
    ("diamond.json", include_str!("examples/diamond.json")),
    ("release.yaml", include_str!("examples/release.yaml")),
];

#[test]
fn f8_every_example_reads_and_its_dag_reads_again() {
    for (name, text) in ALL {
        let read = good(text);
        let written = serde_json::to_string(&read.dag).expect("JSON");
        let again: belljar_workflow::Dag = serde_json::from_str(&written).expect("a DAG");
        assert_eq!(again, read.dag, "{name}");
        // The agent's graph can be stored as a file of our own.
        let own = good(&written);
        assert_eq!((own.format, own.dag), (Format::Dag, read.dag), "{name}");
    }
}

#[test]
fn an_agent_with_a_loop_becomes_few_tasks() {
    let read = good(ALL[0].1);
    assert_eq!(
        ids(&read.dag.tasks),
        [
            "__start__",
            "open_sandbox",
            "write__enter",
            "write__loop",
            "give_up",
            "give_up__next",
            "close_sandbox"
        ]
    );
}
