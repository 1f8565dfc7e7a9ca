//! Protected paths: whatever an upper directory holds in their place, a commit does the rest.

use std::{
    fs::{self, File},
    os::{fd::AsFd, unix::fs::symlink},
};

use belljar_jail::workspace::{
    ArtifactCaps, ChangeCaps, ChangeKind, ChangeList, CommitReport, ExecutedDirectory, NameUse,
    ProtectedPaths, WithheldReason, collect,
};
use belljar_paths::names::is_repository;

use crate::harness::{Workspace, find, mode, put, put_attribute, put_whiteout, set_mode, skipped};

const WHY: &str = "protected: guest code may not change it";

fn protected() -> ProtectedPaths {
    ProtectedPaths::new([".belljar", "sub/project/.belljar", "sub/project/new"].map(Into::into))
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    for path in [".belljar/db", "beside", "sub/project/.belljar/db", "sub/project/main"] {
        put(&workspace.lower, path, "original");
    }
    workspace
}

fn committed(workspace: &Workspace, protected: ProtectedPaths) -> (ChangeList, CommitReport) {
    let changes = workspace.changes_within(&ChangeCaps { protected, ..ChangeCaps::default() });
    let report = workspace.commit(&changes);
    (changes, report)
}

fn assert_untouched(workspace: &Workspace) {
    for path in [".belljar/db", "sub/project/.belljar/db"] {
        assert_eq!(fs::read_to_string(workspace.lower.join(path)).unwrap(), "original", "{path}");
    }
    for path in [".belljar", "sub/project/.belljar"] {
        assert_eq!(fs::read_dir(workspace.lower.join(path)).unwrap().count(), 1, "{path}");
    }
    assert!(!workspace.lower.join("sub/project/new").exists());
}

#[test]
fn what_is_written_there_is_listed_and_left_out() {
    let workspace = workspace();
    put(&workspace.upper, ".belljar/db", "from the guest");
    put(&workspace.upper, ".belljar-2/db", "from the guest");
    put(&workspace.upper, "beside", "from the guest");
    put(&workspace.upper, "sub/project/.belljar/more/and/more", "from the guest");
    put(&workspace.upper, "sub/project/new", "from the guest");
    put(&workspace.upper, "sub/project/main", "from the guest");
    let (changes, report) = committed(&workspace, protected());
    let left = [".belljar", "sub/project/.belljar", "sub/project/new"];
    assert_eq!(skipped(&report), left.map(|path| format!("{path}: {WHY}")));
    assert_eq!(find(&changes, "sub/project/new").kind, ChangeKind::Added);
    assert!(find(&changes, ".belljar").note().unwrap().contains("protected"));
    assert_untouched(&workspace);
    for path in [".belljar-2/db", "beside", "sub/project/main"] {
        let content = fs::read_to_string(workspace.lower.join(path)).unwrap();
        assert_eq!(content, "from the guest", "{path}");
    }
}

/// Else a list without it would tell the guest's caller, and so the next guest, that it is right.
#[test]
fn a_right_guess_is_listed_like_a_wrong_one() {
    let listed = |content: &str| {
        let workspace = workspace();
        put(&workspace.lower, "sub/project/new", "a secret");
        put(&workspace.upper, "sub/project/new", content);
        let caps = ChangeCaps { protected: protected(), ..ChangeCaps::default() };
        let changes = workspace.changes_within(&caps);
        changes.list.iter().map(|it| (it.path.clone(), it.kind, it.note())).collect::<Vec<_>>()
    };
    assert_eq!(listed("a secret"), listed("a guess!"));
    assert_eq!(listed("a secret").len(), 1);
}

#[test]
fn it_is_not_removed_nor_what_leads_there() {
    for path in [".belljar", "sub", "sub/project", "sub/project/.belljar"] {
        let workspace = workspace();
        put(&workspace.upper, "fine", "");
        fs::create_dir_all(workspace.upper.join(path).parent().unwrap()).unwrap();
        put_whiteout(&workspace.upper.join(path));
        let (_, report) = committed(&workspace, protected());
        assert_eq!(skipped(&report), [format!("{path}: {WHY}")]);
        assert_untouched(&workspace);
        assert!(workspace.lower.join("fine").exists());
        // The control.
        let (_, report) = committed(&workspace, ProtectedPaths::default());
        assert_eq!(skipped(&report), [""; 0]);
        assert!(!workspace.lower.join(path).exists());
    }
}

#[test]
fn what_leads_there_is_not_replaced() {
    for path in ["sub", "sub/project"] {
        for is_link in [true, false] {
            let workspace = workspace();
            put(&workspace.upper, "evil/project/.belljar/db", "from the guest");
            let at = workspace.upper.join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let target = if path == "sub" { "evil" } else { "../evil/project" };
            if is_link {
                symlink(target, &at).unwrap()
            } else {
                fs::write(&at, "").unwrap()
            }
            let (_, report) = committed(&workspace, protected());
            assert_eq!(skipped(&report), [format!("{path}: {WHY}")]);
            assert_untouched(&workspace);
            let (_, report) = committed(&workspace, ProtectedPaths::default());
            assert_eq!(skipped(&report), [""; 0]);
            assert!(!fs::symlink_metadata(workspace.lower.join(path)).unwrap().is_dir());
        }
    }
}

/// Where nothing leads there yet, a directory may, and nothing else.
#[test]
fn a_way_there_can_be_made_but_not_a_detour() {
    let protected = || ProtectedPaths::new(["a/b/.mcp.json".into()]);
    let made = Workspace::new();
    put(&made.upper, "a/b/.mcp.json", "from the guest");
    put(&made.upper, "a/b/file", "");
    let (_, report) = committed(&made, protected());
    assert_eq!(skipped(&report), [format!("a/b/.mcp.json: {WHY}")]);
    assert!(made.lower.join("a/b/file").exists() && !made.lower.join("a/b/.mcp.json").exists());
    let detour = Workspace::new();
    put(&detour.upper, "evil/.mcp.json", "from the guest");
    fs::create_dir(detour.upper.join("a")).unwrap();
    symlink("../evil", detour.upper.join("a/b")).unwrap();
    let (_, report) = committed(&detour, protected());
    assert_eq!(skipped(&report), [format!("a/b: {WHY}")]);
    // And a link that leads there is not made into something else.
    let link = Workspace::new();
    fs::create_dir_all(link.lower.join("real")).unwrap();
    fs::create_dir(link.lower.join("a")).unwrap();
    symlink("../real", link.lower.join("a/b")).unwrap();
    put(&link.upper, "a/b/file", "");
    let (_, report) = committed(&link, protected());
    assert_eq!(skipped(&report), [format!("a/b: {WHY}")]);
    assert!(fs::symlink_metadata(link.lower.join("a/b")).unwrap().is_symlink());
}

#[test]
fn a_directory_around_it_that_was_made_anew_keeps_it() {
    let workspace = workspace();
    put(&workspace.upper, "sub/project/other", "from the guest");
    put_attribute(&workspace.upper.join("sub/project"), "user.overlay.opaque", b"y");
    set_mode(&workspace.lower.join("sub/project"), 0o2755);
    set_mode(&workspace.upper.join("sub/project"), 0o700);
    let (changes, report) = committed(&workspace, protected());
    assert_eq!(skipped(&report), [""; 0]);
    assert_eq!(find(&changes, "sub/project/main").kind, ChangeKind::Deleted);
    assert_untouched(&workspace);
    assert!(!workspace.lower.join("sub/project/main").exists());
    assert!(workspace.lower.join("sub/project/other").exists());
    assert_eq!(mode(&workspace.lower.join("sub/project")), 0o2700);
}

#[test]
fn it_is_not_handed_back() {
    let workspace = workspace();
    put(&workspace.upper, "sub/project/new", "from the guest");
    put(&workspace.upper, "out/file", "");
    put(&workspace.upper, "out/kept/file", "");
    let named = [".belljar/db", "/work/sub/./project/new", "beside"].map(str::to_owned);
    let (upper, lower) =
        (File::open(&workspace.upper).unwrap(), File::open(&workspace.lower).unwrap());
    let paths = |protected: ProtectedPaths| {
        let caps = ArtifactCaps { protected, ..ArtifactCaps::default() };
        let found = collect(upper.as_fd(), Some(lower.as_fd()), &named, &caps);
        found.list.into_iter().map(|artifact| artifact.path).collect::<Vec<_>>()
    };
    let protected =
        ProtectedPaths::new([".belljar", "sub/project/new", "out/kept"].map(Into::into));
    assert_eq!(paths(protected), ["beside", "out/file"]);
    assert_eq!(paths(ProtectedPaths::default()).len(), 5);
}

/// Names are protected wherever they are, also in directories the guest made.
#[test]
fn a_name_is_left_out_in_every_directory() {
    let workspace = workspace();
    for path in ["servers.json", "new/servers.json", "new/state/a", "new/servers.json.txt"] {
        put(&workspace.upper, path, "from the guest");
    }
    let names = || {
        ProtectedPaths::default().with_names(|name| match name.to_str() {
            Some("servers.json" | "state") => Some(NameUse::Reserved),
            Some(".git") => Some(NameUse::Executed(".git")),
            _ => None,
        })
    };
    let (_, report) = committed(&workspace, names());
    let left = ["new/servers.json", "new/state", "servers.json"];
    assert_eq!(skipped(&report), left.map(|path| format!("{path}: {WHY}")));
    for path in left {
        assert!(!workspace.lower.join(path).exists(), "{path}");
    }
    assert!(workspace.lower.join("new/servers.json.txt").exists());
    // The control.
    let (_, report) = committed(&workspace, ProtectedPaths::default());
    assert_eq!(skipped(&report), [""; 0]);
    assert!(workspace.lower.join("new/servers.json").exists());
}

/// Files that the host would execute are reported down to the last one, and left alone.
#[test]
fn s4_what_is_executed_is_told_and_left_out() {
    let workspace = workspace();
    put(&workspace.lower, "sub/.git/config", "original");
    put(&workspace.lower, "bare/HEAD", "original");
    put(&workspace.lower, "bare/refs/a", "original");
    for path in
        [".git/hooks/a", "sub/.git/config", "bare/objects/a", "bare/config", "beside", "HEAD"]
            .into_iter()
            .chain(["linked/Head", "linked/commondir", "linked/more/a"])
    {
        put(&workspace.upper, path, "from the guest");
    }
    let protected = || {
        let rules = |name: &std::ffi::OsStr| (name == ".git").then_some(NameUse::Executed(".git"));
        let protected = ProtectedPaths::default().with_names(rules);
        protected.with_directory(ExecutedDirectory { name: ".git", is: is_repository })
    };
    let (changes, report) = committed(&workspace, protected());
    for path in
        [".git", ".git/hooks", ".git/hooks/a", "sub/.git/config", "bare/objects/a", "bare/config"]
            .into_iter()
            .chain(["linked/Head", "linked/commondir", "linked/more/a"])
    {
        assert_eq!(find(&changes, path).withheld, Some(WithheldReason::Executed(".git")), "{path}");
    }
    for path in [".git", "bare/objects", "bare/config", "linked/Head", "linked/more"] {
        assert!(!workspace.lower.join(path).exists(), "{path}: {report:?}");
    }
    let text = |path: &str| fs::read_to_string(workspace.lower.join(path)).unwrap();
    assert_eq!(text("sub/.git/config"), "original");
    assert_eq!((&*text("beside"), &*text("HEAD")), ("from the guest", "from the guest"));
    // A directory that holds one is not removed with it.
    fs::remove_dir_all(workspace.upper.join("sub")).unwrap();
    put_whiteout(&workspace.upper.join("sub"));
    let (changes, _) = committed(&workspace, protected());
    assert_eq!(find(&changes, "sub").withheld, Some(WithheldReason::Executed(".git")));
    assert_eq!(text("sub/.git/config"), "original");
    // The control.
    let (_, report) = committed(&workspace, ProtectedPaths::default());
    assert_eq!(skipped(&report), [""; 0]);
    assert!(!workspace.lower.join("sub").exists() && workspace.lower.join("bare/config").exists());
}
