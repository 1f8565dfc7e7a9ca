//! O1: what is kept for how long, what is deleted, and copies of all of it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use belljar_contract::RunStatus;
use belljar_project::{RecordCollector, Retention, Sweep, now_ms};
use belljar_store::{AuditFilter, AuditRow, Lease, NewRun, RecordKind, Store};
use belljar_testing::sandboxed;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::command::{Outcome, Place, block_on};

const DAY_MS: i64 = 24 * 3600 * 1000;

/// Long enough to be a value of its own, and easy to look for.
fn secret(name: &str) -> String {
    format!("the secret of {name}. ").repeat(2_000)
}

fn state(place: &Place) -> PathBuf {
    place.path().join("work/.belljar")
}

/// A run that began so many days ago, with a large value in its result if it has ended.
async fn run(store: &Store, id: &str, days: i64, is_over: bool) -> Lease {
    let at_ms = now_ms() - days * DAY_MS;
    let run = NewRun {
        id: id.into(),
        caller: "test".to_owned(),
        work: belljar_contract::Language::TypeScript.into(),
        code: "return 1".to_owned(),
        request_json: "{}".to_owned(),
        durable: true,
        seed: "5eed".to_owned(),
        owner: "1:0".to_owned(),
        started_ms: at_ms,
    };
    let lease = store.begin_run(run).await.unwrap();
    if is_over {
        let result = json!({ "id": id, "result": secret(id) }).to_string();
        store.finish_run(&lease, RunStatus::Completed, result, at_ms).await.unwrap();
    }
    lease
}

/// A project with runs of these ages.
fn project(runs: &[(&str, i64, bool)]) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path().join("work")).unwrap();
    let store = Store::open(&state(&place)).unwrap();
    block_on(async {
        for (id, days, is_over) in runs {
            run(&store, id, *days, *is_over).await;
        }
    });
    place
}

fn runs(place: &Place) -> Vec<String> {
    let listed = place.belljar(&["runs", "--json"]).json();
    let ids = listed.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// Whether any file of the store has this text in it.
fn is_on_disk(state: &Path, text: &str) -> bool {
    let files = fs::read_dir(state).unwrap().map(|file| file.unwrap().path());
    let mut files = files.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap());
    files.any(|bytes| bytes.windows(text.len()).any(|found| found == text.as_bytes()))
}

#[test]
fn o1_gc_removes_what_is_old_and_over_and_says_what_went() {
    let place = project(&[("run_old", 40, true), ("run_open", 40, false), ("run_young", 1, true)]);
    let would = place.belljar(&["gc", "--dry-run", "--json"]).json();
    assert_eq!(
        (&would["dry_run"], &would["removed"]["runs"]),
        (&json!(true), &json!(1)),
        "{would}"
    );
    assert_eq!(runs(&place).len(), 3, "a dry run removes nothing");
    let went = place.belljar(&["gc", "--json"]).json();
    assert_eq!(went["removed"]["runs"], 1, "{went}");
    assert!(went["after"]["kinds"]["blobs"].as_u64() < went["before"]["kinds"]["blobs"].as_u64());
    assert!(went["after"]["file"].as_u64() < went["before"]["file"].as_u64(), "{went}");
    assert_eq!(runs(&place), ["run_young", "run_open"]);
    let text = place.belljar(&["gc"]);
    assert!(text.stdout.starts_with("KIND"), "{text:#?}");
}

#[test]
fn o1_the_operator_says_for_how_long() {
    let place = project(&[("run_old", 40, true), ("run_young", 2, true)]);
    place.file(".config/belljar/belljar.toml", "[retention]\nruns_days = \"forever\"\n");
    assert_eq!(place.belljar(&["gc", "--json"]).json()["removed"], json!({}));
    place.file(".config/belljar/belljar.toml", "[retention]\nruns_days = 1\n");
    assert_eq!(place.belljar(&["gc", "--json"]).json()["removed"]["runs"], 2);
    // Whoever wrote the project has no say in it.
    place.file("work/belljar.toml", "[retention]\naudit_days = 1\n");
    let refused = place.belljar(&["gc"]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(
        refused.stderr.contains("retention.audit_days: allowed only in the user's own"),
        "{refused:#?}"
    );
}

/// Reliability 6: a store that is too large loses the oldest first, and keeps what is needed.
#[test]
fn reliability_6_a_store_that_is_too_large_loses_the_oldest_first() {
    let place = project(&[
        ("run_new", 0, true),
        ("run_old", 20, true),
        ("run_older", 25, true),
        ("run_open", 25, false),
    ]);
    place.file(".config/belljar/belljar.toml", "[retention]\nmax_size = \"250KiB\"\n");
    let would = place.belljar(&["gc", "--dry-run", "--json"]).json();
    assert_eq!(would["too_large"], true, "{would}");
    let went = place.belljar(&["gc", "--json"]).json();
    assert!(went["removed"]["runs"].as_u64() >= Some(1), "{went}");
    let left = runs(&place);
    assert!(!left.contains(&"run_older".to_owned()), "{left:?}");
    assert!(
        left.contains(&"run_open".to_owned()) && left.contains(&"run_new".to_owned()),
        "{left:?}"
    );
}

fn audit_row(call: u32) -> AuditRow {
    AuditRow {
        run_id: "run_old".into(),
        call,
        tool: "t".to_owned(),
        decision: "allow".to_owned(),
        reason: "rule 1".to_owned(),
        caller: "cli".to_owned(),
        argument_hash: "ab".repeat(32),
        started_ms: now_ms() - 20 * DAY_MS,
        duration_ms: 1.25,
        outcome: "ok".to_owned(),
    }
}

/// O1: a dry run also says what goes because the store is too large, and removes nothing.
#[test]
fn o1_a_dry_run_says_what_goes_for_size() {
    let place = project(&[("run_a", 1, true), ("run_b", 2, true), ("run_open", 2, false)]);
    place.file("work/operator.toml", "[retention]\nmax_size = '1KiB'\n");
    let gc = |more: &[&str]| {
        let command = ["gc", "--config", "operator.toml", "--json"];
        place.belljar(&[&command[..], more].concat()).json()
    };
    let would = gc(&["--dry-run"]);
    assert_eq!(
        (&would["dry_run"], &would["removed"]["runs"]),
        (&json!(true), &json!(2)),
        "{would}"
    );
    assert_eq!(runs(&place).len(), 3, "a dry run removes nothing");
    let left = fs::read_dir(state(&place)).unwrap().map(|file| file.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("dry-run")));
    // Control: it is what goes.
    let went = gc(&[]);
    assert_eq!(went["removed"], would["removed"], "{went}");
    assert_eq!(runs(&place), ["run_open"]);
}

/// O1: a backup takes the place of a backup, and of nothing else.
#[test]
fn o1_a_backup_replaces_neither_the_store_nor_other_files() {
    let place = project(&[("run_a", 1, true)]);
    place.file("work/.mcp.json", "{}");
    for target in [".belljar/belljar.db", ".belljar/copy.db", ".mcp.json"] {
        let refused = place.belljar(&["backup", "--force", target]);
        assert_eq!(refused.status, Some(2), "{target}: {refused:#?}");
    }
    assert_eq!(fs::read_to_string(place.path().join("work/.mcp.json")).unwrap(), "{}");
    assert_eq!(runs(&place), ["run_a"]);
    // Control: elsewhere, and in the place of an earlier one.
    for _ in 0..2 {
        let made = place.belljar(&["backup", "--force", "copy.db"]);
        assert_eq!(made.status, Some(0), "{made:#?}");
    }
}

/// Reliability 6: the audit goes by age alone, so nothing else goes because the audit is large.
#[test]
fn reliability_6_a_large_audit_crowds_nothing_out() {
    let place = project(&[("run_young", 1, true)]);
    let store = Store::open(&state(&place)).unwrap();
    let sizes = block_on(async {
        for call in 0..10_000 {
            store.audit(audit_row(call)).await.unwrap();
        }
        store.flush().await.unwrap();
        store.sizes().await.unwrap()
    });
    let audit = sizes.kinds[&RecordKind::Audit];
    let used = block_on(store.used_bytes()).unwrap();
    let reckoned = block_on(store.audit_bytes()).unwrap();
    assert!(reckoned.abs_diff(audit) < audit / 4, "{reckoned} instead of {audit}");
    let left_with = |most: u64| {
        let retention = Retention { max_size: Some(most), ..Retention::default() };
        let collector =
            RecordCollector::new(store.clone(), retention, place.path().join("scratch"));
        let collected = block_on(collector.collect(Sweep::Quick, now_ms())).unwrap();
        (collected.too_large, runs(&place).len())
    };
    // The audit is larger than all there may be, and the rest is not.
    let most = used - audit / 2;
    assert!(audit > most, "{audit} of {used}");
    assert_eq!(left_with(most), (false, 1));
    // Control: the rest is too large by itself.
    assert_eq!(left_with(1).1, 0);
}

/// Reliability 6: a host that lives briefly removes what is too much, too.
#[test]
fn reliability_6_a_host_looks_after_its_store_as_soon_as_it_starts() {
    let place = project(&[("run_new", 0, true), ("run_old", 20, true), ("run_older", 40, true)]);
    let store = Store::open(&state(&place)).unwrap();
    let row = audit_row(1);
    let retention = Retention { max_size: Some(1), ..Retention::default() };
    let collector = RecordCollector::new(store.clone(), retention, place.path().join("scratch"));
    let left = block_on(async {
        store.audit(row).await.unwrap();
        store.flush().await.unwrap();
        let looking = collector.run(CancellationToken::new());
        let _ = tokio::time::timeout(Duration::from_secs(10), looking).await;
        store.runs(10, None).await.unwrap()
    });
    let left: Vec<&str> = left.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(left, ["run_new"]);
    // Filling the store does not erase the audit.
    let audit = block_on(store.audit_rows(AuditFilter { run_id: None, tool: None }, 9)).unwrap();
    assert_eq!(audit.len(), 1);
}

/// Reliability 5: a run that is deleted is gone, from the file as well.
#[test]
fn reliability_5_a_deleted_run_takes_its_values_with_it() {
    let place = project(&[("run_gone", 1, true), ("run_kept", 1, true)]);
    assert!(is_on_disk(&state(&place), "the secret of run_gone. "), "control");
    let blob = {
        let store = Store::open(&state(&place)).unwrap();
        let bytes = secret("handle").into_bytes();
        block_on(store.put_run_blob(&"run_gone".into(), bytes, "text/plain", now_ms())).unwrap()
    };
    assert_eq!(place.belljar(&["blob", &blob]).stdout, secret("handle"), "control");
    let removed = place.belljar(&["runs", "rm", "run_gone"]);
    assert_eq!(removed.status, Some(0), "{removed:#?}");
    assert_eq!(place.belljar(&["blob", &blob]).status, Some(1));
    assert_eq!(runs(&place), ["run_kept"]);
    for name in ["run_gone", "handle"] {
        assert!(!is_on_disk(&state(&place), &format!("the secret of {name}. ")), "{name}");
    }
    assert!(is_on_disk(&state(&place), "the secret of run_kept. "));
}

#[test]
fn o1_a_run_that_somebody_runs_is_not_deleted() {
    let place = project(&[]);
    let id = std::process::id();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    let store = Store::open(&state(&place)).unwrap();
    block_on(async {
        let lease = run(&store, "run_live", 0, false).await;
        store
            .claim_run(
                lease,
                &format!("{id}:{started}"),
                belljar_store::ClaimReason::Asked,
                now_ms(),
            )
            .await
            .unwrap();
    });
    drop(store);
    let refused = place.belljar(&["runs", "rm", "run_live"]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("is still running"), "{refused:#?}");
    assert_eq!(runs(&place), ["run_live"]);
}

/// A place where a workflow `big` has run, whose only task gives a large value.
fn ran_big() -> Place {
    let place = Place::new();
    let text = "tasks:\n  - id: big\n    language: python\n    \
                code: \"return 'the secret of a task. ' * 2000\"\n";
    place.file("work/big.yaml", text);
    let run = ["workflow", "run", "big.yaml", "--id", "big", "--enable-code-execution"];
    let ran = place.belljar(&run);
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    place
}

#[sandboxed]
#[test]
fn reliability_14_the_command_line_names_tasks_as_http_does() {
    let shown = ran_big().belljar(&["workflow", "show", "big", "--json"]).json();
    assert_eq!(shown["tasks"][0]["task"], "big", "{}", shown["tasks"]);
    assert_eq!(shown["tasks"][0]["instance"], json!(null));
}

/// Reliability 5: what a workflow had is gone with it, and so are the runs of its code.
#[sandboxed]
#[test]
fn reliability_5_a_deleted_workflow_takes_its_values_and_runs_with_it() {
    let place = ran_big();
    assert!(is_on_disk(&state(&place), "the secret of a task. "), "control");
    assert_eq!(runs(&place).len(), 1, "control");
    let deleted = place.belljar(&["workflow", "delete", "big"]);
    assert_eq!(deleted.status, Some(0), "{deleted:#?}");
    assert_eq!(runs(&place), Vec::<String>::new());
    assert!(!is_on_disk(&state(&place), "the secret of a task. "));
    let sizes = place.belljar(&["gc", "--json"]).json();
    assert_eq!(sizes["removed"]["blobs"], json!(null), "nothing was left for later: {sizes}");
}

#[test]
fn o1_a_backup_is_made_while_the_store_is_in_use_and_can_be_restored() {
    let place = project(&[("run_a", 1, true)]);
    let busy = Store::open(&state(&place)).unwrap();
    block_on(run(&busy, "run_b", 0, true));
    let copy = place.path().join("copy.db");
    let backup = |more: &[&str]| -> Outcome {
        let arguments: Vec<&str> =
            ["backup", copy.to_str().unwrap()].iter().chain(more).copied().collect();
        place.belljar(&arguments)
    };
    let made = backup(&[]);
    assert_eq!(made.status, Some(0), "{made:#?}");
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = backup(&[]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("exists: choose another name"), "{refused:#?}");
    assert_eq!(backup(&["--force"]).status, Some(0));
    let there: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(there.len(), 2, "nothing is left beside it: {there:?}");
    let other = Place::new();
    fs::create_dir_all(state(&other)).unwrap();
    fs::copy(&copy, state(&other).join("belljar.db")).unwrap();
    assert_eq!(runs(&other), ["run_b", "run_a"]);
    drop(busy);
}
