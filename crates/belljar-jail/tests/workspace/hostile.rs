//! Upper directories made by code that means harm. Nothing it does stops the list, nothing but
//! plain files, directories and links arrives, and no more than their content and permissions.

use std::{
    fs::{self, File},
    os::{
        fd::OwnedFd,
        unix::{
            fs::{FileExt, MetadataExt, symlink},
            net::UnixListener,
        },
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use belljar_jail::workspace::{CommitOptions, EntryKind, NotCommitted, WithheldReason};
use rustix::fs::{
    CWD, FileType, Mode, OFlags, link, llistxattr, makedev, mkdirat, mkfifoat, mknodat, openat,
};

use crate::{
    harness::{
        Workspace, assert_same, find, is_child, is_root, listing, mode, path, put, put_attribute,
        put_whiteout, remove_tree, run_again, said, set_mode, skipped,
    },
    skip::skip,
};

#[test]
fn odd_names_are_listed_and_committed_to_the_byte() {
    let workspace = Workspace::new();
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"not\xff\xfeutf8",
        &[b'x'; 255],
        b"-rf",
        b" ",
        b"...",
        b"quote'\"$`\\",
        b"\x1b[31m",
        "ünï".as_bytes(),
    ];
    for name in names {
        put(&workspace.upper, path(name), name);
        put(&workspace.upper, Path::new("d").join(path(name)).join("f"), name);
    }
    let changes = workspace.changes();
    assert_eq!(changes.list.len(), 1 + 3 * names.len());
    let report = workspace.commit(&changes);
    assert_eq!(skipped(&report), [""; 0]);
    assert_same(&workspace.lower, &workspace.upper);
}

/// Directories in directories, as many as asked for.
fn dig(root: &Path, levels: usize, name: &str) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut here = openat(CWD, root, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = openat(&here, name, flags, Mode::empty()).unwrap();
    }
    here
}

#[test]
fn deep_trees_take_few_descriptors_and_bounded_time() {
    // 17 descriptors: three standard ones, a few of the harness's, and those of the walk.
    if !is_child() {
        let test = "hostile::deep_trees_take_few_descriptors_and_bounded_time";
        return run_again(&["prlimit", "--nofile=17:17"], test);
    }
    let workspace = Workspace::in_memory();
    dig(&workspace.upper, 5000, "d");
    dig(&workspace.upper, 300, &"n".repeat(255));
    dig(&workspace.lower, 5000, "gone");
    put_whiteout(&workspace.upper.join("gone"));
    put(&workspace.upper, "d/file", "near the top");
    let start = Instant::now();
    let changes = workspace.changes();
    let report = workspace.commit(&changes);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let too_deep = changes.list.iter().filter(|it| it.withheld == Some(WithheldReason::TooDeep));
    let depths: Vec<_> = too_deep.map(|it| it.path.iter().count()).collect();
    // One at the deepest level, one at the longest path.
    assert_eq!(depths, [257, 17]);
    assert_eq!(changes.list.len(), 257 + 17 + 2);
    let withheld = find(&changes, "gone").withheld.clone();
    assert!(matches!(withheld, Some(WithheldReason::Unreadable(_))), "{withheld:?}");
    assert_eq!(report.skipped.len(), 3, "{:?}", report.skipped);
    assert_eq!(fs::read_to_string(workspace.lower.join("d/file")).unwrap(), "near the top");
    let deepest = vec!["d"; 256].join("/");
    assert!(workspace.lower.join(&deepest).is_dir());
    assert!(!workspace.lower.join(deepest).join("d").exists());
    remove_tree(workspace.root.path());
}

#[test]
fn too_many_entries_cut_the_list() {
    let workspace = Workspace::in_memory();
    for directory in 0..501 {
        let directory = workspace.upper.join(directory.to_string());
        fs::create_dir(&directory).unwrap();
        for file in 0..100 {
            File::create(directory.join(file.to_string())).unwrap();
        }
    }
    let start = Instant::now();
    let changes = workspace.changes();
    assert!(changes.cut);
    assert!(changes.list.len() <= 50_000);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let report = workspace.commit(&changes);
    assert_eq!(report.committed, 0);
    assert!(listing(&workspace.lower).is_empty());
}

#[test]
fn fifty_thousand_entries_are_listed_and_committed() {
    let workspace = Workspace::in_memory();
    for directory in 0..250 {
        let directory = workspace.upper.join(directory.to_string());
        fs::create_dir(&directory).unwrap();
        for file in 0..199 {
            File::create(directory.join(file.to_string())).unwrap();
        }
    }
    let changes = workspace.changes();
    assert!(!changes.cut);
    assert_eq!(changes.list.len(), 50_000);
    assert_eq!(workspace.commit(&changes).committed, 50_000);
}

#[test]
fn devices_fifos_and_sockets_are_listed_and_never_committed() {
    let workspace = Workspace::new();
    put(&workspace.lower, "file", "kept");
    mkfifoat(CWD, workspace.upper.join("fifo"), Mode::RWXU).unwrap();
    fs::create_dir(workspace.upper.join("d")).unwrap();
    mkfifoat(CWD, workspace.upper.join("d/fifo"), Mode::RWXU).unwrap();
    mkfifoat(CWD, workspace.upper.join("file"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(workspace.upper.join("socket")).unwrap();
    let mut expected = vec!["d/fifo", "fifo", "file", "socket"];
    if is_root() {
        let device = makedev(1, 5);
        for (name, kind) in [("block", FileType::BlockDevice), ("zero", FileType::CharacterDevice)]
        {
            mknodat(CWD, workspace.upper.join(name), kind, Mode::RWXU, device).unwrap();
            expected.push(name);
        }
        expected.sort_unstable();
    } else {
        skip("making device nodes: this needs root");
    }
    let changes = workspace.changes();
    let withheld = changes.list.iter().filter(|it| it.withheld == Some(WithheldReason::Special));
    assert!(withheld.clone().all(|it| it.entry == EntryKind::Other));
    assert_eq!(withheld.map(|it| it.shown_path()).collect::<Vec<_>>(), expected);
    assert_eq!(workspace.commit(&changes).committed, 1);
    let held: Vec<_> = listing(&workspace.lower).into_keys().collect();
    assert_eq!(held, [PathBuf::from("d"), PathBuf::from("file")]);
    assert_eq!(fs::read_to_string(workspace.lower.join("file")).unwrap(), "kept");
}

#[test]
fn whiteouts_of_nothing_are_nothing() {
    let workspace = Workspace::new();
    put(&workspace.lower, "file", "");
    put(&workspace.upper, "new/file", "");
    for path in ["gone", "new/gone"] {
        put_whiteout(&workspace.upper.join(path));
    }
    let changes = workspace.changes();
    let listed: Vec<_> = said(&changes).into_iter().map(|(path, _)| path).collect();
    assert_eq!(listed, [Path::new("new"), Path::new("new/file")]);
}

#[test]
fn overlay_attributes_that_no_cell_sets_are_refused() {
    let attributes: [(&str, &[u8]); 6] = [
        ("user.overlay.redirect", b"/etc"),
        ("user.overlay.metacopy", b""),
        ("user.overlay.whiteout", b"y"),
        ("user.overlay.opaque", b"x"),
        ("user.overlay.opaque", b"yes"),
        ("user.overlay.anything", b"else"),
    ];
    for (name, value) in attributes {
        let workspace = Workspace::new();
        put(&workspace.lower, "d/original", "");
        put(&workspace.lower, "file", "original");
        put(&workspace.upper, "d/inner", "");
        put(&workspace.upper, "file", "new");
        put(&workspace.upper, "other", "new");
        put_attribute(&workspace.upper.join("d"), name, value);
        put_attribute(&workspace.upper.join("file"), name, value);
        let changes = workspace.changes();
        let refused = Some(WithheldReason::OverlayAttribute(name.to_owned()));
        for path in ["d", "file"] {
            assert_eq!(find(&changes, path).withheld, refused, "{path}");
        }
        assert_eq!(workspace.commit(&changes).committed, 1);
        assert_eq!(fs::read_to_string(workspace.lower.join("file")).unwrap(), "original");
        assert!(workspace.lower.join("d/original").exists());
    }
}

#[test]
fn harmless_attributes_neither_hinder_nor_arrive() {
    let workspace = Workspace::new();
    put(&workspace.upper, "file", "");
    let names = ["user.overlay.origin", "user.overlay.impure", "user.overlay.overlay.opaque"];
    for name in names.into_iter().chain(["user.mine"]) {
        put_attribute(&workspace.upper.join("file"), name, b"y");
    }
    assert_eq!(workspace.commit(&workspace.changes()).committed, 1);
    let mut attributes = Vec::with_capacity(4096);
    let spare = rustix::buffer::spare_capacity(&mut attributes);
    llistxattr(workspace.lower.join("file"), spare).unwrap();
    let attributes = String::from_utf8(attributes).unwrap();
    let own: Vec<_> = attributes.split('\0').filter(|name| name.starts_with("user.")).collect();
    assert_eq!(own, [""; 0]);
}

#[test]
fn set_id_and_sticky_bits_are_dropped() {
    let workspace = Workspace::new();
    for name in ["file", "same"] {
        put(&workspace.lower, name, "x");
    }
    fs::create_dir(workspace.lower.join("d")).unwrap();
    put(&workspace.upper, "file", "changed");
    put(&workspace.upper, "same", "x");
    put(&workspace.upper, "new", "x");
    put(&workspace.upper, "new-d/file", "x");
    fs::create_dir(workspace.upper.join("d")).unwrap();
    for (name, mode) in
        [("file", 0o6755), ("same", 0o4644), ("new", 0o7711), ("new-d", 0o3777), ("d", 0o1755)]
    {
        set_mode(&workspace.upper.join(name), mode);
    }
    let changes = workspace.changes();
    for name in ["same", "d"] {
        assert_eq!(find(&changes, name).withheld, Some(WithheldReason::SpecialBits), "{name}");
    }
    workspace.commit(&changes);
    for (name, expected) in
        [("file", 0o755), ("same", 0o644), ("new", 0o711), ("new-d", 0o777), ("d", 0o755)]
    {
        assert_eq!(mode(&workspace.lower.join(name)), expected, "{name}");
    }
}

#[test]
fn huge_sparse_files_stay_sparse() {
    let workspace = Workspace::new();
    let file = File::create(workspace.upper.join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all_at(b"end", (1 << 40) - 3).unwrap();
    drop(file);
    // The same again, so that contents are compared: within the budget, it counts as modified.
    let original = File::create(workspace.lower.join("huge")).unwrap();
    original.set_len(1 << 40).unwrap();
    let changes = workspace.changes();
    assert_eq!(find(&changes, "huge").bytes, 1 << 40);
    let report = workspace.commit(&changes);
    assert_eq!(report.committed, 1, "{report:?}");
    assert!(report.bytes < 1 << 20);
    let metadata = fs::metadata(workspace.lower.join("huge")).unwrap();
    assert_eq!(metadata.len(), 1 << 40);
    assert!(metadata.blocks() * 512 < 1 << 20);
    let mut end = [0; 3];
    let committed = File::open(workspace.lower.join("huge")).unwrap();
    committed.read_exact_at(&mut end, (1 << 40) - 3).unwrap();
    assert_eq!(&end, b"end");
}

#[test]
fn hard_links_become_files_of_their_own_within_the_budget() {
    let workspace = Workspace::new();
    put(&workspace.upper, "0", vec![7; 100_000]);
    for number in 1..10 {
        link(workspace.upper.join("0"), workspace.upper.join(number.to_string())).unwrap();
    }
    let changes = workspace.changes();
    let options = CommitOptions { bytes: 350_000, ..CommitOptions::default() };
    let report = workspace.commit_with(&changes, &options);
    assert_eq!((report.committed, report.bytes), (3, 300_000));
    assert!(report.skipped.iter().all(|it| matches!(it.reason, NotCommitted::TooLarge)));
    // Files that did not fit left nothing behind.
    assert_eq!(listing(&workspace.lower).len(), 3);
    assert_eq!(fs::metadata(workspace.lower.join("1")).unwrap().nlink(), 1);
}

#[test]
fn hard_links_of_the_original_are_not_written_through() {
    let workspace = Workspace::new();
    let elsewhere = workspace.root.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    set_mode(&elsewhere, 0o600);
    link(&elsewhere, workspace.lower.join("file")).unwrap();
    link(&elsewhere, workspace.lower.join("mode")).unwrap();
    put(&workspace.upper, "file", "from the guest");
    put(&workspace.upper, "mode", "precious");
    set_mode(&workspace.upper.join("mode"), 0o666);
    let report = workspace.commit(&workspace.changes());
    assert_eq!(report.committed, 2, "{report:?}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    assert_eq!(mode(&elsewhere), 0o600);
    assert_eq!(mode(&workspace.lower.join("mode")), 0o666);
}

#[test]
fn links_in_the_upper_tree_are_never_followed() {
    let workspace = Workspace::new();
    put(&workspace.lower, "d/secret", "s");
    symlink("/etc", workspace.upper.join("d")).unwrap();
    let changes = workspace.changes();
    assert_eq!(changes.list.len(), 1);
    assert_eq!(find(&changes, "d").withheld, Some(WithheldReason::LinkLeadsOutside));
    workspace.commit(&changes);
    assert!(workspace.lower.join("d/secret").exists());
}
