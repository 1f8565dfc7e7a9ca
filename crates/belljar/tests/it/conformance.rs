//! The official conformance suite against the program itself, in both protocol revisions.

use crate::mcp_support::{Project, installed};
use belljar_testing::sandboxed;

#[sandboxed]
#[test]
fn e1_the_conformance_suite_passes_in_both_revisions() {
    installed("clients", "npm/node_modules/@modelcontextprotocol/conformance");
    let project = Project::new(&[], "");
    let serving = project.serve(&["--conformance"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/conformance");
    let (status, stdout, stderr) =
        project.finish("conformance", project.command(script).arg(&serving.url));
    // Exceptions are scenarios that do not apply, which are never run; docs/conformance.md has them.
    assert!(status.success(), "{stdout}{stderr}");
    assert_eq!(stdout.matches(", 0 failed").count(), stdout.matches(" failed").count(), "{stdout}");
    for total in ["Total: 83 passed, 0 failed", "Total: 153 passed, 0 failed"] {
        assert!(stdout.contains(total), "{total}: {stdout}");
    }
}
