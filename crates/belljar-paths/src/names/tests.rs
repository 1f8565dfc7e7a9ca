//! A name counts in every spelling that some file system takes for it, and others do not.

use std::os::unix::ffi::OsStrExt as _;

use super::*;

#[test]
fn s4_spellings_that_are_one_name_to_some_file_system() {
    for spelt in [
        ".git",
        ".GIT",
        ".Git",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".git\u{200d}",
        ".gi\u{202e}t",
        ".g\u{206a}\u{2060}it",
        "\u{ff0e}git",
        "．ＧＩＴ",
        ".ｇit",
        ".git.",
        ".git . .",
        ".git::$INDEX_ALLOCATION",
        "git~1",
        "GIT~2",
    ] {
        assert_eq!(executed(OsStr::new(spelt)), Some(".git"), "{spelt:?}");
    }
    assert_eq!(executed(OsStr::from_bytes(b".g\xffit")), Some(".git"));
    assert_eq!(executed(OsStr::new("VSCODE~1")), Some(".vscode"));
    assert_eq!(executed(OsStr::new(".ＶscodE")), Some(".vscode"));
    // Long s and the sign of the unit Kelvin.
    assert_eq!(executed(OsStr::new(".hu\u{17f}\u{212a}y")), Some(".husky"));
    assert!(is_same(OsStr::new(".BELLJAR "), ".belljar"));
    // A letter that is two in upper case, or is one of two.
    for spelt in [".ßh", ".ẞH", ".\u{17f}sh"] {
        assert_eq!(executed(OsStr::new(spelt)), Some(".ssh"), "{spelt}");
    }
}

#[test]
fn s4_an_ending_counts_whatever_is_before_it() {
    for spelt in ["a.code-workspace", "A.Code-Workspace", ".code-workspace", "é.code-workspace."] {
        assert_eq!(executed(OsStr::new(spelt)), Some("*.code-workspace"), "{spelt}");
    }
    for other in ["a.code-workspace.txt", "code-workspace", "é-workspace", "*~1"] {
        assert_eq!(executed(OsStr::new(other)), None, "{other}");
    }
    assert_eq!(executed_in(Path::new(".config/mise/config.toml")), Some("mise"));
}

#[test]
fn s4_a_spelling_leads_to_the_name_of_the_list() {
    for (spelt, expected) in [
        (".Envrc", Some(".envrc")),
        ("GIT~1", Some(".git")),
        ("a.code-workspace", Some("*.code-workspace")),
        ("*.code-workspace", Some("*.code-workspace")),
        // Withheld, but no spelling of `.git`: whoever names it does not mean the repository.
        ("commondir", None),
        ("foo", None),
    ] {
        assert_eq!(listed(OsStr::new(spelt)), expected, "{spelt}");
    }
}

#[test]
fn s4_other_names_are_ordinary() {
    for name in [
        "git",
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".github",
        ".npmrc",
        ".env",
        "a.git",
        ".git2",
        "..git",
        "Makefile",
        "README.md",
        "~1",
        "é",
        "",
        ".",
        "profile",
        "git~",
        "git~x",
        "HEAD",
    ] {
        assert_eq!(executed(OsStr::new(name)), None, "{name:?}");
    }
}

#[test]
fn s4_a_repository_is_known_by_a_head_and_where_its_objects_are() {
    let is = |names: &[&str]| is_repository(&|entry| names.contains(&entry));
    assert!(is(&["HEAD", "objects", "refs"]) && is(&["HEAD", "commondir"]));
    for others in [&["HEAD", "objects"][..], &["objects", "refs", "commondir"], &["HEAD"], &[]] {
        assert!(!is(others), "{others:?}");
    }
    for name in ["commondir", "CommonDir", "config.worktree", "Config.WorkTree."] {
        assert_eq!(executed(OsStr::new(name)), Some(GIT), "{name}");
    }
    for name in ["config", "objects", "worktree", "common"] {
        assert_eq!(executed(OsStr::new(name)), None, "{name}");
    }
}

#[test]
fn s4_any_part_of_a_path_counts() {
    assert_eq!(executed_in(Path::new("a/.Git/config")), Some(".git"));
    assert_eq!(executed_in(Path::new("/a/.envrc")), Some(".envrc"));
    assert_eq!(executed_in(Path::new("a/b/config")), None);
}

#[test]
fn s4_the_list_is_in_lower_case_and_has_each_name_once() {
    let mut names: Vec<_> = all_executed().collect();
    assert!(names.iter().all(|name| name.bytes().all(|byte| !byte.is_ascii_uppercase())));
    for (_, names) in EXECUTED {
        assert!(names.is_sorted(), "{names:?}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.contains(&GIT));
}

/// The list that people read is this one.
#[test]
fn s4_the_documents_have_the_whole_list() {
    let page = include_str!("../../../../docs/files.md");
    for (who, names) in EXECUTED {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let row = format!("| {who} | {} |", names.join(" "));
        assert!(page.contains(&row), "{row}");
    }
}
