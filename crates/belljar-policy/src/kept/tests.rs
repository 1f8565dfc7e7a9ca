//! D7: what a user says for good is kept with the user, per project, and nothing else counts.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::Map;

use super::{AcceptedServer, KeptRules, KeptRulesError, known_projects};
use crate::StandingRule;

fn rule(id: &str) -> StandingRule {
    StandingRule::new(id.to_owned(), "fs__read", Map::new(), "abc", ("cli", 7)).unwrap()
}

fn kept() -> (tempfile::TempDir, PathBuf, KeptRules) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("state/belljar");
    let rules = KeptRules::new(&directory, "/srv/a");
    (home, directory, rules)
}

#[test]
fn d7_rules_of_one_project_are_none_of_another() {
    let (_home, directory, rules) = kept();
    assert_eq!(rules.load().unwrap().rules, []);
    rules.add(rule("rule_1")).unwrap();
    rules.add(rule("rule_2")).unwrap();
    let other = KeptRules::new(&directory, "/srv/b");
    other.remember_project().unwrap();
    assert_eq!(rules.load().unwrap().rules, [rule("rule_1"), rule("rule_2")]);
    assert_eq!(other.load().unwrap().rules, []);
    assert_eq!(known_projects(&directory), [PathBuf::from("/srv/a"), PathBuf::from("/srv/b")]);
    assert_eq!(other.remove("rule_1").unwrap(), None);
    assert_eq!(rules.remove("rule_1").unwrap(), Some(rule("rule_1")));
    assert_eq!(rules.load().unwrap().rules, [rule("rule_2")]);
}

#[test]
fn d6_an_acceptance_names_one_configuration_of_a_server() {
    let (_home, _, rules) = kept();
    let accepted = |fingerprint: &str| AcceptedServer {
        server: "fs".to_owned(),
        fingerprint: fingerprint.to_owned(),
    };
    rules.accept(accepted("1")).unwrap();
    rules.accept(accepted("2")).unwrap();
    assert_eq!(rules.load().unwrap().accepted, [accepted("2")]);
    assert!(rules.retract("fs").unwrap());
    assert!(!rules.retract("fs").unwrap());
    assert_eq!(rules.load().unwrap().accepted, []);
}

/// S3: a file that others can write is a failure; so is one that is not as Belljar writes it.
#[test]
fn s3_rules_that_others_could_have_written_do_not_count() {
    let (_home, directory, rules) = kept();
    rules.add(rule("rule_1")).unwrap();
    let path = rules.path();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
    assert!(matches!(rules.load(), Err(KeptRulesError::Untrusted(_))));
    assert_eq!(known_projects(&directory), [] as [PathBuf; 0]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(rules.load().unwrap().rules.len(), 1, "control: as it was");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"tool\"", "\"tol\"")).unwrap();
    assert!(matches!(rules.load(), Err(KeptRulesError::Damaged { .. })));
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(rules.load(), Err(KeptRulesError::Untrusted(_))));
}

#[test]
fn two_writers_lose_nothing() {
    let (_home, _, rules) = kept();
    rules.remember_project().unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let rules = rules.clone();
            std::thread::spawn(move || {
                for number in 0..8 {
                    rules.add(rule(&format!("rule_{writer}_{number}"))).unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(rules.load().unwrap().rules.len(), 32);
}
