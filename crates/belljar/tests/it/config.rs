//! A6: limits and maxima from `belljar.toml`, found where they should be.

use belljar_contract::Limit;
use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{command::Place, project_support::counting_server};

/// The code of the error of a run with this much memory asked for.
fn asking_for(place: &Place, arguments: &[&str]) -> serde_json::Value {
    let outcome = place.belljar(&[&["run", "-c", "1", "--json"], arguments].concat());
    outcome.json()["error"]["code"].clone()
}

const TOO_MUCH: &str = "limit.maximum";

#[sandboxed]
#[test]
fn a6_the_project_file_is_found_in_a_parent_directory() {
    let place = Place::new();
    place.file("belljar.toml", "[limits]\ncode_bytes = 3\n");
    let outcome = place.belljar(&["run", "-c", "1+1+1", "--json"]);
    assert_eq!(outcome.json()["error"]["code"], "limit.code");
    // A nearer file hides it, and a flag comes before both.
    place.file("work/belljar.toml", "[limits]\ncode_bytes = '1KB'\n");
    assert_eq!(place.belljar(&["run", "-c", "1+1+1"]).stdout, "3\n");
    let outcome = place.belljar(&["run", "-c", "1+1+1", "--max-code", "4", "--json"]);
    assert_eq!(outcome.json()["error"]["code"], "limit.code");
}

#[sandboxed]
#[test]
fn a6_a_project_never_raises_what_the_user_allows() {
    let place = Place::new();
    place.file(".config/belljar/belljar.toml", "[limits.maximum]\nmemory = '256MiB'\n");
    place.file("work/belljar.toml", "[limits.maximum]\nmemory = '8GiB'\n");
    assert_eq!(asking_for(&place, &["--memory", "300MiB"]), TOO_MUCH);
    assert_eq!(asking_for(&place, &["--memory", "200MiB"]), json!(null));
    place.file("work/belljar.toml", "[limits.maximum]\nmemory = '128MiB'\n");
    assert_eq!(asking_for(&place, &["--memory", "200MiB"]), TOO_MUCH);
}

#[sandboxed]
#[test]
fn a6_config_takes_the_place_of_the_users_file() {
    let place = Place::new();
    place.file(".config/belljar/belljar.toml", "[limits.maximum]\nmemory = '1MiB'\n");
    let other = place.file("other.toml", "[limits.maximum]\nmemory = '256MiB'\n");
    let other = other.to_str().unwrap();
    assert_eq!(asking_for(&place, &["--memory", "128MiB", "--config", other]), json!(null));
    assert_eq!(asking_for(&place, &["--memory", "300MiB", "--config", other]), TOO_MUCH);
}

#[test]
fn a6_a_file_that_makes_no_sense_is_named_with_the_line() {
    let place = Place::new();
    place.file("work/belljar.toml", "[limits]\nmemroy = '1MiB'\n");
    let outcome = place.belljar(&["run", "-c", "1"]);
    let told = outcome.stderr.replace(place.path().to_str().unwrap(), "[place]");
    let limits = Limit::KEYS.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let told = told.replace(&limits, "[the limits]");
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(told, @r"
    error: invalid configuration [place]/work/belljar.toml: TOML parse error at line 2, column 1
      |
    2 | memroy = '1MiB'
      | ^^^^^^
    unknown field `memroy`, expected one of [the limits], `maximum`
    ");
    let outcome = place.belljar(&["run", "-c", "1", "--config", "none.toml"]);
    assert_eq!(outcome.status, Some(2));
    insta::assert_snapshot!(outcome.stderr, @"error: cannot read the configuration none.toml: No such file or directory (os error 2)");
}

/// The decision of policy about `append` of each server.
fn policies(place: &Place) -> (Value, Value) {
    let listed = place.belljar(&["tools", "list", "--json"]).json();
    let of = |server: &str| {
        let tools = listed["tools"].as_array().unwrap();
        let name = format!("{server}__append");
        let found = tools.iter().find(|tool| tool["name"] == json!(name));
        found.map_or(Value::Null, |tool| tool["policy"].clone())
    };
    (of("mine"), of("own"))
}

#[test]
fn s5_a_project_allows_nothing_of_the_users_own_servers() {
    let place = Place::new();
    let (command, environment) = counting_server(&place.path().join("count.txt"));
    let user = format!("[mcp_servers.mine]\n{command}\n{environment}\n");
    let user_file = ".config/belljar/belljar.toml";
    place.file(user_file, &user);
    let project = format!("[mcp_servers.own]\n{command}\n{environment}\n[permissions]\n");
    place.file("work/belljar.toml", format!("{project}allow = ['*', 'own__*']\n"));
    assert_eq!(policies(&place), (json!("ask"), json!("allow")));
    let listed = place.belljar(&["tools", "list"]);
    let told = listed.stderr.replace(place.path().to_str().unwrap(), "[place]");
    insta::assert_snapshot!(told, @"[place]/work/belljar.toml: allow `*` does not apply to mine, which this project does not define; allow it in the user's belljar.toml");
    let listed = place.belljar(&["tools", "list", "--json"]).json();
    assert_eq!(listed["not_counted"][0]["servers"], json!(["mine"]));
    // Rules that narrow count, and so do the user's.
    place.file("work/belljar.toml", format!("{project}allow = ['own__*']\ndeny = ['mine__*']\n"));
    assert_eq!(policies(&place), (json!("deny"), json!("allow")));
    place.file("work/belljar.toml", format!("{project}allow = ['own__*']\n"));
    place.file(user_file, format!("{user}[permissions]\nallow = ['mine__*']\n"));
    assert_eq!(policies(&place), (json!("allow"), json!("allow")));
    assert_eq!(place.belljar(&["tools", "list"]).stderr, "");
}

#[test]
fn a6_an_age_that_makes_no_sense_is_told_of_forever() {
    let place = Place::new();
    let told = |line: &str| {
        place.file(".config/belljar/belljar.toml", format!("[retention]\n{line}\n"));
        let outcome = place.belljar(&["run", "-c", "1"]);
        assert_eq!(outcome.status, Some(2), "{outcome:#?}");
        outcome.stderr.replace(place.path().to_str().unwrap(), "[place]")
    };
    insta::assert_snapshot!(told("runs_days = 'for ever'"), @r#"error: [place]/.config/belljar/belljar.toml, line 2: retention.runs_days: `for ever` does not start with a number; write for example 30 (a plain number is days) or "forever""#);
    insta::assert_snapshot!(told("runs_days = '30 days'"), @r#"error: [place]/.config/belljar/belljar.toml, line 2: retention.runs_days: `30 days` has the unknown unit `days`; write for example 30 (a plain number is days) or "forever""#);
    insta::assert_snapshot!(told("max_size = 'any'"), @r#"error: [place]/.config/belljar/belljar.toml, line 2: retention.max_size: `any` does not start with a number; write for example 512MiB, 1GB or "unlimited""#);
}
