//! I3: the verdict follows the evidence, and says what to do.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus, Tier};
use belljar_project::{Finding, FindingState};
use serde_json::value::RawValue;

use super::{Diagnosis, DoctorVerdict, text, verdict, with_extras};
use crate::cli::terminal::style::TextStyle;

fn finding(layer: &str, state: FindingState, detail: &str, remedy: Option<&str>) -> Finding {
    Finding {
        layer: layer.to_owned(),
        state,
        detail: detail.to_owned(),
        remedy: remedy.map(str::to_owned),
    }
}

fn good_run() -> RunResult {
    let mut run =
        RunResult::not_run("run_1", RunStatus::Completed, RunError::new(ErrorCode::RunAborted, ""));
    run.success = true;
    run.error = None;
    run.isolation.tier = Tier::Full;
    run.result = RawValue::from_string("2".to_owned()).unwrap();
    run.metrics.startup_ms = 1.0;
    run
}

fn bad_run() -> RunResult {
    let message = "could not put user namespace in force: EPERM";
    RunResult::not_run(
        "run_1",
        RunStatus::Failed,
        RunError::new(ErrorCode::SandboxUnsupported, message),
    )
}

fn diagnosis(findings: Vec<Finding>, run: RunResult) -> Diagnosis {
    let verdict = verdict(&findings, &run);
    let (kernel, machine) = ("6.18.0".to_owned(), "x86_64");
    Diagnosis {
        version: "0.1.0",
        kernel,
        machine,
        uid: 1000,
        findings,
        run,
        engines: Vec::new(),
        extras: Vec::new(),
        store: None,
        verdict,
    }
}

#[test]
fn i3_full_needs_every_layer_and_a_run() {
    let works = || finding("Landlock", FindingState::Works, "ABI 7", None);
    let substituted = finding("memory cgroup", FindingState::Substituted, "rlimit", None);
    let missing = finding("seccomp", FindingState::Missing, "ENOSYS", None);
    assert_eq!(verdict(&[works(), substituted], &good_run()), DoctorVerdict::Full);
    assert_eq!(verdict(&[works(), missing], &good_run()), DoctorVerdict::Refused);
    assert_eq!(verdict(&[works()], &bad_run()), DoctorVerdict::Refused);
}

#[test]
fn reliability_14_a_store_that_cannot_be_used_is_not_well() {
    let store = |state| [finding("store", state, "the store at x is damaged", None)];
    let (works, missing) = (store(FindingState::Works), store(FindingState::Missing));
    assert_eq!(with_extras(DoctorVerdict::Full, &works), DoctorVerdict::Full);
    assert_eq!(with_extras(DoctorVerdict::Full, &missing), DoctorVerdict::StoreUnusable);
    assert_eq!(with_extras(DoctorVerdict::Refused, &missing), DoctorVerdict::Refused);
}

#[test]
fn i3_a_healthy_machine_is_told_so() {
    let findings = vec![
        finding("user namespace", FindingState::Works, "with its own id map", None),
        finding(
            "memory cgroup",
            FindingState::Substituted,
            "not delegated; rlimits and sampling",
            Some("delegate a cgroup to have the kernel bound memory"),
        ),
    ];
    insta::assert_snapshot!(text(&diagnosis(findings, good_run()), TextStyle::PLAIN), @r"
    belljar 0.1.0 on Linux 6.18.0 (x86_64), as uid 1000 (an ordinary user)

      ✓ user namespace  with its own id map
      ~ memory cgroup   not delegated; rlimits and sampling
                        delegate a cgroup to have the kernel bound memory
      ✓ a run           1 + 1 = 2 in 1.00 ms

    full: every layer works; code runs here with full isolation.
    ");
}

#[test]
fn i3_a_machine_that_cannot_is_told_what_to_do() {
    let missing = |layer| {
        let remedy = "allow user namespaces: `sysctl -w user.max_user_namespaces=15000`; in a \
                      container, a seccomp profile that lets them through";
        finding(layer, FindingState::Missing, "Operation not permitted", Some(remedy))
    };
    let findings = vec![missing("userns"), missing("pidns")];
    insta::assert_snapshot!(text(&diagnosis(findings, bad_run()), TextStyle::PLAIN), @r"
    belljar 0.1.0 on Linux 6.18.0 (x86_64), as uid 1000 (an ordinary user)

      ✗ userns    Operation not permitted
                  allow user namespaces: `sysctl -w user.max_user_namespaces=15000`; in a
                  container, a seccomp profile that lets them through
      ✗ pidns     Operation not permitted
      ✗ a run     SandboxError: could not put user namespace in force: EPERM

    refused: Belljar runs no code on this machine, because a layer of the sandbox is missing.
    Fix the lines marked ✗ above, then run `belljar doctor` again.
    ");
}
