//! A6: every limit has a key and a maximum, and no project raises the operator's.

use std::{path::Path, time::Duration};

use belljar_contract::{EngineName, Language, Limits, Quantity};
use belljar_store::RecordKind;
use belljar_tools::{AuditTiming, PolicyRule};
use belljar_workflow_formats::CodeExecution;

use super::{ConfigFiles, DefaultsOrder, EngineSettings, Limit, ProjectSettings, RawConfig};

fn file(name: &str, text: &str) -> RawConfig {
    RawConfig::parse(Path::new(name), text.to_owned()).expect("the test's file is valid")
}

fn resolve(operator: &str, project: &str) -> Result<ProjectSettings, String> {
    let (operator, project) = (file("user.toml", operator), file("belljar.toml", project));
    let files = ConfigFiles {
        operator: Some(&operator),
        project: Some(&project),
        order: DefaultsOrder::ProjectFirst,
    };
    ProjectSettings::resolve(files).map_err(|error| error.to_string())
}

fn broken(text: &str) -> String {
    match RawConfig::parse(Path::new("belljar.toml"), text.to_owned()) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => {
            let limits = Limit::KEYS.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>();
            error.to_string().replace(&limits.join(", "), "[the limits]")
        }
    }
}

#[test]
fn a6_without_files_the_built_in_values_hold() {
    let settings = ProjectSettings::resolve(ConfigFiles {
        operator: None,
        project: None,
        order: DefaultsOrder::ProjectFirst,
    })
    .unwrap();
    assert_eq!(settings.limits(&[]), Limits::DEFAULT);
    assert_eq!(settings.maximum, belljar_runtime::maximum_limits_here());
}

#[test]
fn a6_every_limit_can_be_stated_in_a_file() {
    for limit in Limit::ALL {
        let stated: &[(&str, u64)] = match limit.quantity() {
            Quantity::Time => &[("'2s'", 2_000_000_000), ("1.5", 1_500_000_000)],
            Quantity::Size if limit.key().ends_with("_bytes") => {
                &[("'4KiB'", 4096), ("'1KB'", 1000), ("2048", 2048)]
            }
            Quantity::Size => &[("'4KiB'", 4096), ("'1KB'", 1000), ("'2048B'", 2048)],
            Quantity::Count => &[("32", 32)],
        };
        for (text, amount) in stated {
            let text = format!("[limits]\n{} = {text}\n", limit.key());
            let limits = resolve("", &text).unwrap().limits(&[]);
            assert_eq!(limit.get(&limits), *amount, "{text}");
        }
    }
}

#[test]
fn a6_flags_come_before_project_before_user() {
    let settings = resolve(
        "[limits]\nmemory = '100MiB'\ndisk = '1MiB'\nprocesses = 1",
        "[limits]\nmemory = '200MiB'\nprocesses = 2",
    )
    .unwrap();
    let limits = settings.limits(&[(Limit::Processes, 3)]);
    assert_eq!((limits.disk, limits.memory, limits.processes), (1 << 20, 200 << 20, 3));
}

#[test]
fn a6_cpu_time_follows_wall_time_unless_stated() {
    let minute = (Limit::Timeout, 60_000_000_000);
    let limits = resolve("", "").unwrap().limits(&[minute]);
    assert_eq!((limits.timeout.as_secs(), limits.cpu.as_secs()), (60, 60));
    let limits = resolve("[limits]\ncpu = 5", "").unwrap().limits(&[minute]);
    assert_eq!((limits.timeout.as_secs(), limits.cpu.as_secs()), (60, 5));
    let limits = resolve("[limits.maximum]\ncpu = 7", "").unwrap().limits(&[minute]);
    assert_eq!((limits.timeout.as_secs(), limits.cpu.as_secs()), (60, 7));
}

#[test]
fn a6_a_project_lowers_the_operators_maxima_and_never_raises_them() {
    let settings = resolve(
        "[limits.maximum]\nmemory = '1GiB'\ndisk = '20GiB'",
        "[limits.maximum]\nmemory = '4GiB'\ndisk = '1GiB'\ntimeout = '10h'",
    )
    .unwrap();
    assert_eq!(settings.maximum.memory, 1 << 30);
    assert_eq!(settings.maximum.disk, 1 << 30);
    assert_eq!(settings.maximum.timeout, Limits::MAXIMUM.timeout);
    // Control: the operator's own file may raise the built-in maximum.
    let settings = resolve("[limits.maximum]\ndisk = '20GiB'", "").unwrap();
    assert_eq!(settings.maximum.disk, 20 << 30);
}

#[test]
fn a6_built_in_defaults_give_way_to_a_lower_maximum() {
    let limits = resolve("[limits.maximum]\nmemory = '64MiB'", "").unwrap().limits(&[]);
    assert_eq!(limits.memory, 64 << 20);
    // A flag is left as it is: the host refuses it by name.
    let limits = resolve("[limits.maximum]\nmemory = '64MiB'", "")
        .unwrap()
        .limits(&[(Limit::Memory, 1 << 30)]);
    assert_eq!(limits.memory, 1 << 30);
}

#[test]
fn a6_a_default_above_the_maximum_is_an_error_with_its_line() {
    let error = resolve("[limits.maximum]\nmemory = '64MiB'", "[limits]\n\nmemory = '1GiB'");
    insta::assert_snapshot!(error.unwrap_err(), @"belljar.toml, line 3: limits.memory is 1 GiB, above the maximum of 64 MiB");
}

#[test]
fn a6_a_value_that_cannot_be_read_is_an_error_with_its_line() {
    let error = resolve("", "[limits]\ntimeout = '5 parsecs'").unwrap_err();
    insta::assert_snapshot!(error, @"belljar.toml, line 2: limits.timeout: `5 parsecs` has the unknown unit `parsecs`; write for example 300ms, 30s, 5m or 1h (a plain number is seconds)");
    let error = resolve("[limits.maximum]\nprocesses = 0", "").unwrap_err();
    insta::assert_snapshot!(error, @"user.toml, line 2: limits.maximum.processes: must be more than zero");
}

#[test]
fn a12_a_file_chooses_the_engine_of_a_language() {
    let engines = |operator, project| resolve(operator, project).unwrap().engines;
    let chosen = engines("[engines]\npython = 'cpython'", "[engines]\ntypescript = 'quickjs'");
    assert_eq!(chosen.engine(Language::TypeScript), Some(EngineName::QuickJs));
    assert_eq!(chosen.engine(Language::Python), Some(EngineName::CPython));
    assert_eq!(chosen.engine(Language::Bash), None);
    assert_eq!(engines("", ""), EngineSettings::default());
}

#[test]
fn a12_a_wrong_engine_in_a_file_is_an_error_with_its_line() {
    let error = |text| resolve("", text).unwrap_err();
    let there = EngineName::names();
    assert_eq!(
        error("\n[engines]\ntypescript = 'perl'"),
        format!(
            "belljar.toml, line 3: engines.typescript: there is no engine \"perl\"; engines: {there}"
        )
    );
    insta::assert_snapshot!(error("[engines]\n\npython = 'quickjs'"), @"belljar.toml, line 3: engines.python: the engine quickjs does not run python; engines that run python: cpython");
    insta::assert_snapshot!(broken("[engines]\nperl = 'cpython'"), @r"
    TOML parse error at line 2, column 1
      |
    2 | perl = 'cpython'
      | ^^^^
    unknown variant `perl`, expected one of `typescript`, `javascript`, `python`, `bash`
    ");
}

#[test]
fn d6_the_rules_of_all_files_hold_and_the_nearest_numbers() {
    let settings = resolve(
        "[permissions]\ndeny = ['a__*']\nallow = ['b__*']\napproval_timeout = '1m'\n\
         [results]\nmax_output_tokens = 100\n",
        "[permissions]\nallow = ['*']\napproval_timeout = '2m'\n[cache]\nttl = '10m'\n",
    )
    .unwrap();
    let rule = |pattern: &str| PolicyRule::new(pattern).unwrap();
    let tools = settings.tools;
    assert_eq!(tools.policy.deny, [rule("a__*")]);
    // The project's allow rules are added once its servers are known.
    assert_eq!(tools.policy.allow, [rule("b__*")]);
    assert_eq!(tools.approval_timeout, Duration::from_secs(120));
    assert_eq!(tools.max_output_tokens, Some(100));
    assert_eq!(tools.cache, Some(Duration::from_secs(600)));
}

#[test]
fn f8_code_of_workflows_is_off_until_somebody_enables_it_and_nobody_forbids_it() {
    let on = "[workflows]\nenable_code_execution = true\n";
    let off = "[workflows]\nenable_code_execution = false\nserve = false\n";
    let shell = "[workflows]\nenable_shell = true\n";
    let all = "[workflows]\nenable_code_execution = true\nenable_shell = true\n";
    for (user, project, code, serve) in [
        ("", "", CodeExecution::Off, true),
        (on, "", CodeExecution::On, true),
        ("", on, CodeExecution::On, true),
        (off, on, CodeExecution::Off, false),
        (on, off, CodeExecution::Off, false),
        // A3: the shell has its own switch, which has no effect without code execution.
        (on, shell, CodeExecution::WithShell, true),
        (all, "", CodeExecution::WithShell, true),
        (shell, "", CodeExecution::Off, true),
    ] {
        let workflows = resolve(user, project).unwrap().workflows;
        let found = (workflows.serve, workflows.code);
        assert_eq!(found, (serve, code), "{user}{project}");
    }
}

#[test]
fn f1_a_project_lowers_how_many_workflows_there_are_and_never_raises_it() {
    let some = "[workflows]\nmax_running = 4\nmax_queued = 9\n";
    let more = "[workflows]\nmax_running = 50\nmax_queued = 1\n";
    for (user, project, wanted) in [
        ("", "", (16, 1000)),
        (some, "", (4, 9)),
        ("", more, (50, 1)),
        (some, more, (4, 1)),
        (more, some, (4, 1)),
    ] {
        let workflows = resolve(user, project).unwrap().workflows;
        let found = (workflows.max_running, workflows.max_queued);
        assert_eq!(found, wanted, "{user}{project}");
    }
    let none = resolve("[workflows]\nmax_running = 0\n", "").unwrap_err();
    assert_eq!(none, "user.toml, line 2: workflows.max_running: must be more than zero");
}

/// O1: only the operator configures retention.
#[test]
fn o1_the_operator_says_what_is_kept_and_a_project_does_not() {
    let kept = |user: &str| resolve(user, "").unwrap().retention;
    let usual = crate::Retention::default();
    assert_eq!(kept(""), usual);
    let day = Duration::from_hours(24);
    let said = kept(
        "[retention]\nruns_days = 3\naudit_days = \"forever\"\nmax_size = \"1GiB\"\n\
         [workflows]\nkeep_days = 5\n",
    );
    let age = |kind| said.ages.get(&kind).copied();
    assert_eq!(age(RecordKind::Runs), Some(day * 3));
    assert_eq!(age(RecordKind::Audit), None);
    // The older key counts as long as the newer one is not set.
    assert_eq!(age(RecordKind::Workflows), Some(day * 5));
    assert_eq!(age(RecordKind::Events), usual.ages.get(&RecordKind::Events).copied());
    assert_eq!(said.max_size, Some(1 << 30));
    let both = kept("[retention]\nworkflows_days = 9\n[workflows]\nkeep_days = 5\n");
    assert_eq!(both.ages.get(&RecordKind::Workflows), Some(&(day * 9)));
    assert_eq!(kept("[retention]\nmax_size = \"unlimited\"\n").max_size, None);
    for (project, told) in [
        ("[workflows]\nkeep_days = 1\n", "workflows.keep_days"),
        ("[retention]\naudit_days = 1\n", "retention.audit_days"),
        ("[retention]\nmax_size = 1\n", "retention.max_size"),
    ] {
        let refused = resolve("", project).unwrap_err();
        assert!(
            refused.contains(&format!("line 2: {told}: allowed only in the user's own")),
            "{refused}"
        );
    }
    let odd = resolve("[retention]\nruns_days = \"always\"\n", "").unwrap_err();
    assert!(odd.contains("retention.runs_days"), "{odd}");
}

/// The author of a project must not decide how long its traces are kept (reliability 7).
#[test]
fn reliability_7_only_the_user_gives_audit_rows_up() {
    let says = |loses| format!("[audit]\nlose_rows_on_crash = {loses}\n");
    let audit = |user: &str, project: &str| resolve(user, project).unwrap().tools.audit;
    assert_eq!(audit("", ""), AuditTiming::BeforeEffects);
    assert_eq!(audit(&says(false), ""), AuditTiming::BeforeEffects);
    assert_eq!(audit(&says(true), ""), AuditTiming::Behind);
    let refused = resolve("", &says(true)).unwrap_err();
    assert!(
        refused.contains("line 2: audit.lose_rows_on_crash: allowed only in the user's"),
        "{refused}"
    );
}

#[test]
fn a6_unknown_keys_are_rejected_with_their_line() {
    insta::assert_snapshot!(broken("[limits]\ntimeout = 1\nmemroy = 2\n"), @r"
    TOML parse error at line 3, column 1
      |
    3 | memroy = 2
      | ^^^^^^
    unknown field `memroy`, expected one of [the limits], `maximum`
    ");
    insta::assert_snapshot!(broken("[limit]\n"), @r"
    TOML parse error at line 1, column 2
      |
    1 | [limit]
      |  ^^^^^
    unknown field `limit`, expected one of `limits`, `engines`, `mcp_servers`, `permissions`, `results`, `cache`, `workflows`, `retention`, `audit`, `workspace`, `grants`, `net`
    ");
    insta::assert_snapshot!(broken("[limits.maximum.maximum]\n"), @r"
    TOML parse error at line 1, column 17
      |
    1 | [limits.maximum.maximum]
      |                 ^^^^^^^
    unknown field `maximum`, expected one of [the limits]
    ");
    insta::assert_snapshot!(broken("[limits]\nmemory = true\n"), @r#"
    TOML parse error at line 2, column 10
      |
    2 | memory = true
      |          ^^^^
    invalid type: boolean `true`, expected a number, or a string with a unit such as "30s" or "512MiB"
    "#);
}

/// The rows of a table in the page about configuration: key, type, default and example.
fn rows_of(heading: &str) -> Vec<[&'static str; 4]> {
    let page = include_str!("../../../docs/configuration.md");
    let heading = format!("## `[{heading}]`\n");
    let (_, section) = page.split_once(&*heading).unwrap_or_else(|| panic!("no {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().unwrap_or_else(|_| panic!("{row}"))
    })
    .collect()
}

/// The text between backticks, if a cell is only that.
fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|inner| !inner.contains('`'))
}

/// The names that the parser knows: its error about an unknown one lists them.
fn known_names(text: &str) -> Vec<String> {
    let error = RawConfig::parse(Path::new("x"), text.to_owned()).unwrap_err().to_string();
    let (_, list) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
    let mut names: Vec<String> = list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    names.sort();
    names
}

/// The page about configuration has every table and key; its examples are valid, and its defaults are
/// the values that hold without them.
#[test]
fn a6_the_page_about_configuration_is_what_is_read() {
    let tables = known_names("[zzz]\nx = 1\n");
    for table in &tables {
        let (heading, prefix) = match table.as_str() {
            "mcp_servers" => ("mcp_servers.NAME".to_owned(), "mcp_servers.a".to_owned()),
            other => (other.to_owned(), other.to_owned()),
        };
        let rows = rows_of(&heading);
        let mut keys: Vec<String> =
            rows.iter().map(|[key, ..]| quoted(key).unwrap_or_default().to_owned()).collect();
        keys.sort();
        assert_eq!(keys, known_names(&format!("[{prefix}]\nzzz = 1\n")), "{heading}");
        for [key, _, default, example] in rows {
            let key = quoted(key).unwrap_or_default();
            let with = |value: &str| {
                let text = format!("[{prefix}]\n{key} = {value}\n");
                resolve(&text, "").unwrap_or_else(|error| panic!("{text}: {error}"))
            };
            with(quoted(example).unwrap_or_else(|| panic!("{key}: {example}")));
            let Some(default) = quoted(default) else { continue };
            let (stated, usual) = (with(default), resolve("", "").unwrap());
            let limits = (stated.limits(&[]), usual.limits(&[]));
            assert_eq!(limits.0, limits.1, "{table}.{key}");
            // Files state these two; what they are without files is the contract's.
            let (stated_limits, engines) = (usual.stated.clone(), usual.engines.clone());
            let same = ProjectSettings { stated: stated_limits, engines, ..stated };
            assert_eq!(same, usual, "{table}.{key}");
        }
    }
}
