//! E4, E5: what a model reads of the list of tools and of answers, counted by a real tokenizer.

use belljar_testing::sandboxed;

use crate::{
    command::{BELLJAR, Place, outcome},
    mcp_support::installed,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/answer-tokens");
const DATA_PYTHON: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../python-data/bin");

/// The cases and their bounds are in the script: a plot, a CSV file of 5 MB, 20,000 lines and others.
#[sandboxed]
#[test]
fn e4_e5_a_tokenizer_finds_no_answer_beyond_its_bound() {
    installed("clients", "npm/node_modules/js-tiktoken");
    assert!(std::path::Path::new(DATA_PYTHON).is_dir(), "run scripts/python-data");
    let place = Place::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = place.command("node");
    command.env("PATH", format!("{DATA_PYTHON}:{path}")).args([SCRIPT, "--check", BELLJAR]);
    if let Some(clients) = std::env::var_os("BELLJAR_MCP_CLIENTS") {
        command.env("BELLJAR_MCP_CLIENTS", clients);
    }
    let counted = outcome(command.output().expect("node starts"));
    assert_eq!(counted.status, Some(0), "{}{}", counted.stdout, counted.stderr);
    assert!(!counted.stderr.contains("left out"), "every case ran: {}", counted.stderr);
    assert!(counted.stdout.lines().count() > 15, "{}", counted.stdout);
}
