//! I3: what this machine can enforce, with and without user namespaces.

use belljar_testing::sandboxed;
use serde_json::json;

use crate::command::{BELLJAR, Outcome, Place, belljar, outcome};

/// Runs the program where no user namespace may be made, as in many containers. The limit is set in a
/// user namespace of its own, so nothing else on the machine notices.
fn without_user_namespaces(arguments: &str) -> Outcome {
    let script =
        format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {BELLJAR} {arguments}");
    let place = Place::new();
    let output = place.command("unshare").args(["-Ur", "sh", "-c", &script]).output();
    outcome(output.expect("unshare is part of util-linux"))
}

#[sandboxed]
#[test]
fn i3_a_machine_that_can_is_told_so() {
    let outcome = belljar(&["doctor", "--json"]);
    let diagnosis = outcome.json();
    assert_eq!((outcome.status, &diagnosis["verdict"]), (Some(0), &json!("full")), "{outcome:#?}");
    assert_eq!(diagnosis["run"]["result"], 2);
    let findings = diagnosis["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    for finding in findings {
        assert_ne!(finding["state"], "missing", "{finding}");
    }
    for extra in diagnosis["extras"].as_array().unwrap() {
        assert_eq!(extra["state"], "works", "{extra}");
    }
    assert_eq!(diagnosis["extras"].as_array().unwrap().len(), 5);
    assert_eq!(belljar(&["doctor"]).status, Some(0));
}

/// A12: the engines are listed, with their languages and the programs that were found.
#[sandboxed]
#[test]
fn a12_the_engines_of_this_machine_are_listed() {
    let engines = &belljar(&["doctor", "--json"]).json()["engines"];
    let names: Vec<_> = engines.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(
        names,
        belljar_contract::EngineName::ALL.iter().map(|e| e.as_str()).collect::<Vec<_>>()
    );
    assert_eq!(engines[0]["languages"], json!(["typescript", "javascript"]));
    assert_eq!((&engines[0]["program"], &engines[0]["missing"]), (&json!(null), &json!(null)));
    let bash = engines[2]["program"].as_str().expect("this machine has bash");
    assert!(std::path::Path::new(bash).is_file(), "{bash}");
    // Without software of the machine, only what is part of Belljar is left.
    let place = Place::new();
    let output = place.command(BELLJAR).args(["doctor", "--json"]).env("PATH", "/nowhere").output();
    let engines = &outcome(output.unwrap()).json()["engines"];
    assert_eq!(engines[0]["missing"], json!(null));
    let missing = engines[1]["missing"].as_str().expect("no Python in that PATH");
    assert!(missing.contains("apt-get install python3"), "{missing}");
    let shown = belljar(&["doctor"]).stdout;
    assert!(shown.contains("typescript, javascript: part of belljar"), "{shown}");
    assert!(shown.contains(&format!("bash: {bash}")), "{shown}");
}

/// A project that no command can use is not reported as working; a valid file is the control.
#[sandboxed]
#[test]
fn i3_an_invalid_configuration_is_reported() {
    let place = Place::new();
    place.file("work/belljar.toml", "[limits]\nmemory = \"1GiB\"\n");
    let good = place.belljar(&["doctor", "--json"]);
    assert_eq!((good.status, &good.json()["verdict"]), (Some(0), &json!("full")), "{good:#?}");
    for (name, text, reason) in [
        ("work/belljar.toml", "[limits]\nmemroy = \"1GiB\"\n", "unknown field `memroy`"),
        ("work/.mcp.json", "{ \"mcpServers\": ", "not a list of MCP servers"),
    ] {
        let place = Place::new();
        place.file(name, text);
        let bad = place.belljar(&["doctor", "--json"]);
        assert_eq!(bad.status, Some(1), "{bad:#?}");
        assert_eq!(bad.json()["verdict"], "configuration_invalid", "{bad:#?}");
        let extras = bad.json()["extras"].clone();
        let finding = extras.as_array().unwrap().last().unwrap();
        assert_eq!(
            (&finding["layer"], &finding["state"]),
            (&json!("configuration"), &json!("missing"))
        );
        let detail = finding["detail"].as_str().unwrap();
        assert!(detail.contains(reason) && !detail.contains('|'), "{detail}");
        let shown = place.belljar(&["doctor"]);
        assert!(shown.stdout.contains("configuration invalid: every layer works"), "{shown:#?}");
    }
}

#[test]
fn i3_without_user_namespaces_it_says_what_is_missing_and_how_to_fix_it() {
    let outcome = without_user_namespaces("doctor --json");
    let diagnosis = outcome.json();
    assert_eq!((outcome.status, &diagnosis["verdict"]), (Some(1), &json!("refused")));
    let missing: Vec<&serde_json::Value> = diagnosis["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["state"] == "missing")
        .collect();
    assert!(!missing.is_empty(), "{outcome:#?}");
    assert!(missing.iter().any(|finding| finding["remedy"].is_string()), "{missing:#?}");
    assert_eq!(without_user_namespaces("doctor").status, Some(1));
}

#[test]
fn i3_without_user_namespaces_a_run_is_refused() {
    let outcome = without_user_namespaces("run -c 'return 1+1' --json");
    let result = outcome.json();
    assert_eq!(outcome.status, Some(1));
    assert_eq!(
        (&result["success"], &result["error"]["type"], &result["isolation"]["tier"]),
        (&json!(false), &json!("SandboxError"), &json!("refused"))
    );
    assert!(result["error"]["hint"].is_string());
}
