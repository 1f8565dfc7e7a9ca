//! The meaning of names, which depends on nothing but the names.

use proptest::prelude::*;

use super::{Catalogue, ResolveError, Style, identifier};
use crate::{Tool, spelling::fold};

fn tool(server: &str, name: &str) -> Tool {
    Tool::bare(server, name)
}

fn catalogue(names: &[(&str, &str)]) -> Catalogue {
    Catalogue::new(names.iter().map(|(server, name)| tool(server, name)).collect())
}

fn resolved(catalogue: &Catalogue, server: Option<&str>, name: &str) -> Result<String, String> {
    catalogue.resolve(server, name).map(Tool::qualified_name).map_err(|error| error.to_string())
}

#[test]
fn a_tool_is_found_however_its_name_is_spelt() {
    let known = catalogue(&[("my-fs", "read_file"), ("my-fs", "write_file"), ("git", "log.show")]);
    for server in ["my-fs", "myFs", "my_fs"] {
        for name in ["read_file", "readFile", "read-file", "ReadFile"] {
            assert_eq!(resolved(&known, Some(server), name).unwrap(), "my-fs__read_file");
        }
    }
    for name in [
        "my-fs__read_file",
        "my-fs:read_file",
        "my-fs.read_file",
        "myFs.readFile",
        "read_file",
        "readFile",
        "my_fs__read_file",
    ] {
        assert_eq!(resolved(&known, None, name).unwrap(), "my-fs__read_file", "{name}");
    }
    assert_eq!(resolved(&known, None, "git.log.show").unwrap(), "git__log.show");
    assert_eq!(resolved(&known, None, "log.show").unwrap(), "git__log.show");
}

#[test]
fn the_exact_spelling_wins_and_any_other_is_ambiguous() {
    let known = catalogue(&[("git", "list-commits"), ("git", "list_commits")]);
    assert_eq!(resolved(&known, Some("git"), "list-commits").unwrap(), "git__list-commits");
    assert_eq!(resolved(&known, Some("git"), "list_commits").unwrap(), "git__list_commits");
    assert_eq!(
        resolved(&known, Some("git"), "listCommits").unwrap_err(),
        "`listCommits` could be any of: git__list-commits, git__list_commits"
    );
    assert_eq!(known.alias(&tool("git", "list-commits"), Style::Camel), None);
    assert_eq!(known.alias(&tool("git", "list_commits"), Style::Snake), None);
}

#[test]
fn a_name_several_servers_know_needs_its_server() {
    let known = catalogue(&[("a", "search"), ("b", "search"), ("a__b", "c"), ("a", "b__c")]);
    assert_eq!(
        resolved(&known, None, "search").unwrap_err(),
        "`search` could be any of: a__search, b__search"
    );
    assert_eq!(resolved(&known, None, "b.search").unwrap(), "b__search");
    // One qualified name for two tools: neither is guessed.
    assert_eq!(
        resolved(&known, None, "a__b__c").unwrap_err(),
        "`a__b__c` could be any of: a__b__c, a__b__c"
    );
    assert_eq!(resolved(&known, Some("a"), "b__c").unwrap(), "a__b__c");
    let servers = catalogue(&[("my-fs", "x"), ("my_fs", "x")]);
    assert_eq!(
        resolved(&servers, Some("myFs"), "x").unwrap_err(),
        "`myFs` could be any of: my-fs, my_fs"
    );
    assert_eq!(servers.server_alias("my-fs", Style::Camel), None);
}

#[test]
fn what_is_unknown_is_told_with_what_is_near() {
    let known = catalogue(&[("fs", "read_file"), ("fs", "write_file"), ("git", "log")]);
    assert_eq!(
        resolved(&known, Some("fs"), "readFiel").unwrap_err(),
        "server `fs` has no tool `readFiel`; did you mean `read_file`?"
    );
    assert_eq!(
        resolved(&known, Some("gti"), "log").unwrap_err(),
        "there is no server `gti`; did you mean `git`? (servers: fs, git)"
    );
    assert_eq!(
        resolved(&known, None, "fs.reed_file").unwrap_err(),
        "there is no tool `fs.reed_file`; did you mean `fs__read_file`? (servers: fs, git)"
    );
    assert_eq!(
        resolved(&known, None, "zz\u{202e}\n").unwrap_err(),
        "there is no tool `zz\\u{202e}\\n` (servers: fs, git)"
    );
    assert_eq!(
        resolved(&Catalogue::default(), None, "x").unwrap_err(),
        "there is no tool `x` (no server with tools is configured)"
    );
    assert!(matches!(
        known.resolve(Some("fs"), "log"),
        Err(ResolveError::UnknownTool { server: Some(_), .. })
    ));
}

#[test]
fn names_of_objects_are_names_like_others() {
    let odd = ["__proto__", "constructor", "then", "toString", "搜索", "a b", "delete", "import"];
    let names: Vec<(&str, &str)> = odd.iter().map(|name| ("s", *name)).collect();
    let known = catalogue(&names);
    for name in odd {
        assert_eq!(resolved(&known, Some("s"), name).unwrap(), format!("s__{name}"));
    }
    let empty = catalogue(&[("s", "x"), ("s", "--")]);
    for name in ["__proto__", "constructor", "", "__", "....", "\0"] {
        assert!(resolved(&empty, Some("s"), name).is_err(), "{name}");
        assert!(resolved(&empty, None, name).is_err(), "{name}");
    }
}

#[test]
fn identifiers_are_what_the_language_writes() {
    let both = |name: &str| (identifier(name, Style::Camel), identifier(name, Style::Snake));
    let some = |camel: &str, snake: &str| (Some(camel.to_owned()), Some(snake.to_owned()));
    assert_eq!(both("read_file"), some("readFile", "read_file"));
    assert_eq!(both("API-get-user"), some("apiGetUser", "api_get_user"));
    assert_eq!(both("getHTTPStatus"), some("getHTTPStatus", "get_http_status"));
    assert_eq!(both("2fa.enable"), some("_2faEnable", "_2fa_enable"));
    assert_eq!(both("import"), some("import", "import_"));
    assert_eq!(both("then"), (None, Some("then".to_owned())));
    assert_eq!(both("__proto__"), (None, Some("proto".to_owned())));
    assert_eq!(both("搜索"), (None, None));
    assert_eq!(both("--"), (None, None));
}

#[test]
fn the_version_is_of_the_content_not_of_the_order() {
    let one = catalogue(&[("a", "x"), ("b", "y")]);
    let other = catalogue(&[("b", "y"), ("a", "x")]);
    assert_eq!(one.version(), other.version());
    let mut changed = tool("a", "x");
    changed.description = Some("now with words".to_owned());
    assert_ne!(Catalogue::new(vec![changed, tool("b", "y")]).version(), one.version());
    assert_ne!(Catalogue::default().version(), one.version());
}

#[test]
fn a_name_given_twice_is_one_tool_whatever_the_order() {
    let mut second = tool("a", "x");
    second.description = Some("another".to_owned());
    let forward = Catalogue::new(vec![tool("a", "x"), second.clone()]);
    let backward = Catalogue::new(vec![second, tool("a", "x")]);
    assert_eq!(forward.tools(), backward.tools());
    assert_eq!(forward.tools().len(), 1);
}

proptest! {
    /// An alias leads to its tool, and no two tools of a server share one.
    #[test]
    fn an_alias_leads_back(names in prop::collection::btree_set("[a-zA-Z0-9_. -]{1,8}|\\PC{1,6}", 1..12)) {
        let known = Catalogue::new(names.iter().map(|name| tool("s", name)).collect());
        for style in [Style::Camel, Style::Snake] {
            let mut seen = std::collections::BTreeSet::new();
            for one in known.tools() {
                if let Some(alias) = known.alias(one, style) {
                    prop_assert_eq!(fold(&alias), fold(&one.name));
                    prop_assert_eq!(known.resolve(Some("s"), &alias).unwrap(), one);
                    prop_assert!(seen.insert(alias));
                }
            }
        }
    }

    /// A tool is always reached by its exact name, and what resolves does not depend on order.
    #[test]
    fn the_exact_name_always_resolves(
        names in prop::collection::vec(("[ab_.-]{1,3}", "[abAB_.:-]{1,4}"), 1..10),
        asked in "[abAB_.:-]{0,7}",
    ) {
        let tools: Vec<Tool> = names.iter().map(|(server, name)| tool(server, name)).collect();
        let known = Catalogue::new(tools.clone());
        for one in &tools {
            prop_assert_eq!(known.resolve(Some(&one.server), &one.name).unwrap(), one);
        }
        let mut reversed = tools;
        reversed.reverse();
        let again = Catalogue::new(reversed);
        prop_assert_eq!(resolved(&known, None, &asked), resolved(&again, None, &asked));
    }
}
