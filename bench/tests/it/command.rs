//! Starts the benchmarks.

use std::path::Path;

pub(crate) use crate::place::{Outcome, Place, outcome};
use crate::skip::without_sandbox;

/// The program under test.
pub(crate) const BENCH: &str = env!("CARGO_BIN_EXE_belljar-bench");

impl Place {
    /// Runs the program with nothing on its standard input.
    pub(crate) fn bench(&self, arguments: &[&str]) -> Outcome {
        let output = self.command(BENCH).args(arguments).output();
        outcome(output.expect("the program under test starts"))
    }
}

/// Whether to skip a test because this machine cannot sandbox.
pub(crate) fn no_sandbox() -> bool {
    without_sandbox(|| {
        let belljar = Path::new(BENCH).with_file_name("belljar");
        let output = Place::new().command(belljar).args(["run", "-c", "1", "--json"]).output();
        let output = output.expect("`belljar` is built beside: cargo build -p belljar");
        let error = outcome(output).json().pointer("/error").cloned()?;
        (error.pointer("/code")? == "sandbox.unsupported").then(|| error.to_string())
    })
}
