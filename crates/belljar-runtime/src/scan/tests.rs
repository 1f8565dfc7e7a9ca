//! A tree beyond the bounds is refused; names that the host executes are withheld.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    thread,
};

use belljar_testing::as_root;
use rustix::{
    fs::{mkdirat, openat},
    process::geteuid,
    thread::set_thread_uid,
};

use super::*;

fn reserved() -> Vec<OsString> {
    [".belljar", ".mcp.json"].map(OsString::from).to_vec()
}

fn requested(path: &Path, access: TreeAccess) -> RequestedTree {
    RequestedTree { path: path.to_owned(), access }
}

#[test]
fn s6_a_tree_beyond_the_bounds_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let deep = place.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join(".mcp.json"), "").unwrap();
    let tree = requested(place.path(), TreeAccess::Read);
    let scan = |entries, depth| {
        let found = TreeScan::of(&tree, &reserved(), ScanBounds { entries, depth });
        found.map(|found| found.unwrap().projects)
    };
    assert_eq!(scan(4, 3).unwrap(), [PathBuf::from("a/b/c")]);
    let refused = scan(3, 3).unwrap_err();
    assert!(refused.message.contains("more than 3 entries"), "{refused:?}");
    let refused = scan(4, 2).unwrap_err();
    assert!(refused.message.contains("more than 2 levels down"), "{refused:?}");
    assert_eq!(refused.code, ErrorCode::PermissionFile);
}

#[test]
fn s6_projects_in_a_tree_and_around_it_are_found() {
    let place = tempfile::tempdir().unwrap();
    let inner = place.path().join("p/src/q");
    fs::create_dir_all(inner.join(".belljar")).unwrap();
    fs::create_dir(place.path().join("p/.belljar")).unwrap();
    let survey =
        survey(&[requested(&place.path().join("p/src"), TreeAccess::Read)], &reserved()).unwrap();
    for project in [place.path().join("p"), inner] {
        for name in reserved() {
            assert!(survey.protected.contains(&project.join(name)), "{:?}", survey.protected);
        }
    }
    assert_eq!(survey.protected.len(), 4);
}

/// A scanned tree to write to.
fn written(place: &Path) -> WrittenTree {
    survey(&[requested(place, TreeAccess::Write)], &reserved()).unwrap().written.remove(0)
}

fn withhold(tree: &WrittenTree) -> WithholdReport {
    tree.withhold(&reserved(), None)
}

/// The names in a directory, without the random numbers of withheld ones.
fn left(place: &Path) -> Vec<String> {
    let names = fs::read_dir(place).unwrap().flatten();
    let names = names.map(|it| it.file_name().into_string().unwrap());
    let mut names: Vec<_> = names
        .map(|name| match name.split_once("withheld-by-belljar-") {
            Some((before, number)) if number.len() == 8 => format!("{before}withheld"),
            _ => name,
        })
        .collect();
    names.sort();
    names
}

/// Acts as a user for whom file modes count.
fn as_ordinary_user(place: &Path, what: impl FnOnce() + Send) {
    const NOBODY: u32 = 65534;
    let is_root = geteuid().is_root();
    if is_root {
        chown(place, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    thread::scope(|scope| {
        let done = scope.spawn(|| {
            if is_root {
                set_thread_uid(rustix::fs::Uid::from_raw(NOBODY)).unwrap();
            }
            what();
        });
        done.join().unwrap();
    });
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn s4_what_appears_in_a_tree_to_write_to_is_moved_aside() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("old/.git")).unwrap();
    let tree = requested(place.path(), TreeAccess::Write);
    let survey = survey(&[tree], &reserved()).unwrap();
    assert_eq!(survey.fixed(place.path()), [PathBuf::from("old/.git")]);
    fs::create_dir_all(place.path().join("new/.GIT")).unwrap();
    fs::write(place.path().join("new/.mcp.json"), "").unwrap();
    fs::write(place.path().join("new/beside"), "").unwrap();
    fs::write(place.path().join("old/.git/index"), "").unwrap();
    let report = withhold(&survey.written[0]);
    assert_eq!(report.notes.list.len(), 2, "{report:?}");
    assert!(report.error(None).is_none(), "{report:?}");
    let names = [".GIT.withheld", ".mcp.json.withheld", "beside"];
    assert_eq!(left(&place.path().join("new")), names);
    // An entry from before the run stays.
    assert!(place.path().join("old/.git/index").exists());
}

#[test]
fn s4_no_name_is_kept_by_taking_its_substitutes() {
    let place = tempfile::tempdir().unwrap();
    let tree = written(place.path());
    let long = format!(".git{}", ".".repeat(251));
    let stream = ".git::$INDEX_ALLOCATION";
    for name in [".envrc", &long, stream] {
        fs::write(place.path().join(name), "").unwrap();
    }
    for number in 0..100 {
        let substitute = format!(".envrc.withheld-by-belljar-{number}");
        fs::write(place.path().join(substitute), "").unwrap();
    }
    let report = withhold(&tree);
    assert_eq!((report.notes.list.len(), report.faults.list.len()), (3, 0), "{report:?}");
    let left = left(place.path());
    assert!(left.contains(&".envrc.withheld".to_owned()), "{left:?}");
    for name in [".envrc", &long, stream] {
        assert!(!left.contains(&name.to_owned()), "{left:?}");
    }
}

#[test]
fn s4_depth_and_number_keep_nothing() {
    // Longer than any path can be.
    const LEVELS: usize = 3000;
    let place = tempfile::tempdir().unwrap();
    let tree = written(place.path());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = openat(CWD, place.path(), flags, Mode::empty()).unwrap();
    for _ in 0..LEVELS {
        mkdirat(&at, "deep", Mode::RWXU).unwrap();
        mkdirat(&at, "beside", Mode::RWXU).unwrap();
        at = openat(&at, "deep", flags, Mode::empty()).unwrap();
    }
    mkdirat(&at, ".git", Mode::RWXU).unwrap();
    fs::create_dir_all(place.path().join("z/.git")).unwrap();
    fs::create_dir_all(place.path().join("a/.git")).unwrap();
    let report = withhold(&tree);
    assert_eq!((report.notes.list.len(), report.faults.list.len()), (3, 0), "{report:?}");
    assert!(stat_entry(&at, OsStr::new(".git")).unwrap().is_none());
    for beside in ["a", "z"] {
        assert_eq!(left(&place.path().join(beside)), [".git.withheld"]);
    }
}

#[test]
fn s4_a_closed_directory_keeps_nothing() {
    let place = tempfile::tempdir().unwrap();
    as_ordinary_user(place.path(), || {
        let tree = written(place.path());
        let closed = [("unlisted", 0o111), ("unpassed", 0o444), ("fixed", 0o555), ("shut", 0)];
        for (name, mode) in closed {
            fs::create_dir_all(place.path().join(name).join("proj/.git")).unwrap();
            set_mode(&place.path().join(name).join("proj"), mode);
            set_mode(&place.path().join(name), mode);
        }
        let report = withhold(&tree);
        assert_eq!((report.notes.list.len(), report.faults.list.len()), (4, 0), "{report:?}");
        for (name, was) in closed {
            let outer = place.path().join(name);
            assert_eq!(mode(&outer), was, "{name}");
            set_mode(&outer, 0o700);
            set_mode(&outer.join("proj"), 0o700);
            assert_eq!(left(&outer.join("proj")), [".git.withheld"], "{name}");
        }
    });
}

#[test]
fn s4_a_closed_tree_keeps_nothing() {
    let place = tempfile::tempdir().unwrap();
    as_ordinary_user(place.path(), || {
        for closed in [0o111, 0] {
            let tree = written(place.path());
            fs::create_dir_all(place.path().join("proj/.hg")).unwrap();
            set_mode(place.path(), closed);
            let report = withhold(&tree);
            assert_eq!((report.notes.list.len(), report.faults.list.len()), (1, 0), "{report:?}");
            set_mode(place.path(), 0o700);
            assert!(!place.path().join("proj/.hg").exists());
        }
    });
}

#[test]
fn s4_what_was_there_is_known_by_its_place_and_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let at = |path: &str| place.path().join(path);
    for directory in ["old/.git", "kept/.git", "other"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    for file in [".envrc", "kept/.envrc", "other/.envrc"] {
        fs::write(at(file), "own").unwrap();
    }
    fs::hard_link(at("other/.envrc"), at("other/link")).unwrap();
    let tree = written(place.path());
    // One moves to where a tool finds it, one gets another name, one is changed through another name.
    fs::rename(at("old"), at("moved")).unwrap();
    fs::create_dir(at("new")).unwrap();
    fs::rename(at(".envrc"), at("new/.envrc")).unwrap();
    // File systems have coarse clocks.
    thread::sleep(std::time::Duration::from_millis(50));
    fs::write(at("other/link"), "evil").unwrap();
    let report = withhold(&tree);
    assert_eq!((report.notes.list.len(), report.faults.list.len()), (3, 0), "{report:?}");
    assert_eq!(left(&at("moved")), [".git.withheld"]);
    assert_eq!(left(&at("new")), [".envrc.withheld"]);
    assert_eq!(left(&at("other")), [".envrc.withheld", "link"]);
    assert_eq!(left(&at("kept")), [".envrc", ".git"]);
}

#[as_root]
#[test]
fn s4_what_cannot_be_taken_back_is_an_error_and_the_rest_is_taken() {
    let place = tempfile::tempdir().unwrap();
    let fixed = place.path().join("fixed");
    fs::create_dir(&fixed).unwrap();
    // A directory of another user, in which this user may do nothing.
    as_ordinary_user(place.path(), || {
        let tree = written(place.path());
        fs::create_dir(place.path().join(".git")).unwrap();
        fs::create_dir(place.path().join("z")).unwrap();
        fs::create_dir(place.path().join("z/.git")).unwrap();
        assert!(withhold(&tree).error(None).is_none());
    });
    let tree = written(place.path());
    fs::create_dir(fixed.join(".git")).unwrap();
    as_ordinary_user(place.path(), || {
        fs::create_dir(place.path().join("z/.envrc")).unwrap();
        let report = withhold(&tree);
        assert_eq!((report.notes.list.len(), report.faults.list.len()), (1, 1), "{report:?}");
        let own = RunError::new(ErrorCode::RuntimeThrown, "oops");
        let error = report.error(Some(&own)).unwrap();
        assert_eq!(error.code, ErrorCode::WorkspaceFailed);
        assert!(
            error.message.contains("fixed/.git: the run made this, and the host would execute"),
            "{error:?}"
        );
        assert!(error.hint.unwrap().contains("oops"));
    });
    assert!(!place.path().join("z/.envrc").exists());
}

/// A dropped guard withholds in the trees of its cell once the cell is dead.
#[tokio::test]
async fn s4_what_a_cell_wrote_is_taken_back_at_any_end() {
    let place = tempfile::tempdir().unwrap();
    let background = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
    let list = vec![written(place.path())].into();
    let trees = WrittenTrees { list, reserved: reserved().into(), background: background.clone() };
    // Like the pidfd of a keeper, a pipe is readable once its other end is gone.
    let (keeper, cell) = rustix::pipe::pipe().unwrap();
    let guard = trees.guard(Ok(keeper)).unwrap();
    let mut done = guard.done();
    drop(guard);
    // The walk does not end before the cell does.
    assert!(background.try_acquire().is_err());
    fs::create_dir(place.path().join(".git")).unwrap();
    drop(cell);
    while done.changed().await.is_ok() {}
    assert_eq!(left(place.path()), [".git.withheld"]);
    let _waited = background.acquire().await.unwrap();
}
