//! The façade, as a Rust program uses it.

use std::process::Command;

use belljar_contract::{ErrorCode, ErrorKind, Limits, RunRequest};
use belljar_project::{BuildError, RunResultExt as _, Sandbox, ValueError};
use belljar_testing::sandboxed;

use crate::zygote::zygote;

/// The façade in this process, whose `main` belongs to the test harness.
fn with_sandbox<F: Future>(work: impl FnOnce(Sandbox) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sandbox = Sandbox::builder().program(zygote()).pool(1).build().await.unwrap();
        let output = work(sandbox.clone()).await;
        sandbox.shutdown().await;
        output
    })
}

#[expect(clippy::disallowed_methods, reason = "a test of a program has to start it")]
fn example() -> Command {
    Command::new(zygote())
}

#[sandboxed]
#[test]
fn a1_the_documented_example_runs() {
    let output = example().output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1 + 1 = 2\nbest customer: Grace, total: 15150\nfetch: Some(PermissionError)\n"
    );
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a1_a_program_that_forgot_init_is_told_before_anything_starts() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(Sandbox::new());
    assert!(matches!(refused, Err(BuildError::NotInitialised)), "{refused:?}");
}

#[sandboxed]
#[test]
fn a8_a_value_is_read_as_a_rust_type() {
    with_sandbox(|sandbox| async move {
        let names: Vec<String> = sandbox.run("['a', 'b']").await.value().unwrap();
        assert_eq!(names, ["a", "b"]);
        let wrong = sandbox.run("'text'").await.value::<u32>();
        assert!(matches!(wrong, Err(ValueError::Shape(_))), "{wrong:?}");
        let failed = sandbox.run("throw new Error('no')").await.value::<u32>();
        assert!(matches!(failed, Err(ValueError::Failed(Some(_)))), "{failed:?}");
    });
}

#[sandboxed]
#[test]
fn a6_a_runs_own_limits_hold_and_stay_within_the_maximum() {
    with_sandbox(|sandbox| async move {
        let timeout = std::time::Duration::from_millis(200);
        let result = sandbox.typescript("while (true) {}").timeout(timeout).run().await;
        assert_eq!(result.error_kind(), Some(ErrorKind::TimeoutError));
        let limits = Limits { memory: u64::MAX, ..Limits::DEFAULT };
        let request = RunRequest { limits, ..RunRequest::typescript("1") };
        let result = sandbox.run_request(request).await;
        assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::LimitMaximum));
    });
}

#[sandboxed]
#[test]
fn a7_a_context_that_is_not_json_is_a_failed_run() {
    with_sandbox(|sandbox| async move {
        let context = std::collections::BTreeMap::from([((1, 2), 3)]);
        let result = sandbox.typescript("1").context(&context).run().await;
        assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::RequestInvalid));
    });
}
