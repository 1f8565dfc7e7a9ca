//! A5: what clients may ask for is the operator's, and a project only narrows it.

use std::path::Path;

use belljar_contract::{Grant, GrantKey, GrantTable};

use super::{
    super::{ConfigFiles, DefaultsOrder, RawConfig},
    GrantSettings,
};

fn settings(operator: &str, project: &str) -> Result<GrantSettings, String> {
    let file = |path: &str, keys: &str| {
        let text = format!("[grants]\n{keys}\n");
        RawConfig::parse(Path::new(path), text).expect("the test's file is valid")
    };
    let operator = file("/home/me/user.toml", operator);
    let project = file("/src/app/belljar.toml", project);
    let files = ConfigFiles {
        operator: Some(&operator),
        project: Some(&project),
        order: DefaultsOrder::ProjectFirst,
    };
    GrantSettings::resolve(files).map_err(|error| error.to_string())
}

fn allowed(operator: &str, project: &str, flags: GrantTable) -> (GrantTable, Vec<String>) {
    let settings = settings(operator, project).expect("valid grants");
    let (table, ignored) = settings.with_flags(flags, Path::new("/here"));
    (table, ignored.iter().map(ToString::to_string).collect())
}

fn table(lists: &[(GrantKey, &[&str])]) -> GrantTable {
    let mut table = GrantTable::default();
    for (key, values) in lists {
        table.state(*key, values.iter().map(|value| (*value).to_owned()).collect());
    }
    table
}

const READ: GrantKey = GrantKey::Of(Grant::Read);
const WRITE: GrantKey = GrantKey::Of(Grant::Write);
const ENV: GrantKey = GrantKey::Of(Grant::Env);
const MODULES: GrantKey = GrantKey::Of(Grant::Modules);
const COMMANDS: GrantKey = GrantKey::Of(Grant::Commands);

#[test]
fn a5_the_users_file_and_flags_add_up() {
    let flags = table(&[(READ, &["b"]), (COMMANDS, &["perl"])]);
    let user = "read = ['/data/x/../y', 'own']\ncommands = ['git']\nenv = ['A', 'B=c']";
    let expected = table(&[
        (READ, &["/data/y", "/home/me/own", "/here/b"]),
        (ENV, &["A", "B=c"]),
        (COMMANDS, &["git", "perl"]),
    ]);
    assert_eq!(allowed(user, "", flags), (expected, Vec::new()));
}

#[test]
fn a5_a_project_narrows_and_never_widens() {
    let user = "read = ['/data', '/src/app']\nwrite = ['/src/app/out']\nenv = ['A', 'B=c']\n\
                commands = ['git', 'perl']";
    let project = "read = ['docs', '/data', '/etc']\nwrite = ['.']\nenv = ['B', 'HOME']\n\
                   commands = ['git', 'gcc']\nmodules = ['pickle']\nworkspace = ['.']";
    let (both, ignored) = allowed(user, project, GrantTable::default());
    let expected = table(&[
        (READ, &["/data", "/src/app/docs"]),
        // Its own directory contains what the user allows.
        (WRITE, &["/src/app/out"]),
        (GrantKey::Workspace, &[]),
        (ENV, &["B=c"]),
        (MODULES, &["pickle"]),
        (COMMANDS, &["git"]),
    ]);
    assert_eq!(both, expected);
    let beyond = [
        ("read", "/etc"),
        ("write", "/src/app"),
        ("workspace", "/src/app"),
        ("env", "HOME"),
        ("commands", "gcc"),
    ];
    assert_eq!(ignored.len(), beyond.len(), "{ignored:#?}");
    for ((key, value), report) in beyond.into_iter().zip(&ignored) {
        let start = format!("/src/app/belljar.toml: grants.{key}: {value} does not count: ");
        assert!(report.starts_with(&start), "{report}");
    }
    // Without a user's word a project allows nothing, but fewer modules; a flag is narrowed, too.
    let flags = table(&[(COMMANDS, &["git", "gcc"])]);
    let (both, ignored) = allowed("", "commands = ['git', 'rm']\nread = ['/etc']", flags);
    assert_eq!(both, table(&[(COMMANDS, &["git"]), (READ, &[])]));
    assert_eq!(ignored.len(), 2, "{ignored:#?}");
    let (both, ignored) =
        allowed("modules = ['pickle']", "modules = ['ctypes']", GrantTable::default());
    assert_eq!((both, ignored.len()), (table(&[(MODULES, &[])]), 1));
}

#[test]
fn a5_a_projects_variables_have_no_values() {
    let refused = settings("env = ['A=b']", "env = ['A=c']").unwrap_err();
    let wanted = "/src/app/belljar.toml, line 2: grants.env: a project's file names variables, without values";
    assert_eq!(refused, wanted);
    assert!(settings("env = ['A=b']", "env = ['A']").is_ok());
    let refused = settings("read = ['']", "").unwrap_err();
    assert_eq!(refused, "/home/me/user.toml, line 2: grants.read: a value is empty");
}
