//! The zygote of these tests: the example, as the `main` of a test belongs to its harness.

use std::path::PathBuf;

use belljar_contract::ErrorCode;
use belljar_project::{BuildError, Sandbox};

use crate::skip::without_sandbox;

/// The program of `examples/embed.rs`, whose `main` begins with `init`.
pub(crate) fn zygote() -> PathBuf {
    let this = std::env::current_exe().expect("a test is a file");
    let profile = this.ancestors().nth(2).expect("a test is in `deps` of a profile's directory");
    let program = profile.join("examples").join("embed");
    assert!(
        program.is_file(),
        "cargo test builds examples; else: cargo build -p belljar-project --examples"
    );
    program
}

/// Whether to skip a test because this machine cannot sandbox.
pub(crate) fn no_sandbox() -> bool {
    // A thread of its own: a test may be inside a runtime already.
    without_sandbox(|| std::thread::spawn(missing).join().expect("it does not panic"))
}

fn missing() -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match Sandbox::builder().program(zygote()).pool(1).build().await {
            Ok(sandbox) => {
                sandbox.shutdown().await;
                None
            }
            Err(BuildError::Launch(error)) if error.code() == ErrorCode::SandboxUnsupported => {
                Some(error.to_string())
            }
            Err(error) => panic!("{error}"),
        }
    })
}
