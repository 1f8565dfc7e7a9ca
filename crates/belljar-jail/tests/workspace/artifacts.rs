//! Artifacts: what a run named and what it put in `out/`, and nothing it should not hand back.

use std::{
    fs::File,
    os::{
        fd::AsFd,
        unix::fs::{chown, symlink},
    },
};

use belljar_jail::workspace::{ArtifactCaps, Artifacts, collect};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::{
    harness::{Workspace, is_root, path, put, put_attribute, put_whiteout, set_mode},
    skip::skip,
};

fn collected(workspace: &Workspace, named: &[&str], caps: &ArtifactCaps) -> Artifacts {
    let (upper, lower) =
        (File::open(&workspace.upper).unwrap(), File::open(&workspace.lower).unwrap());
    let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
    collect(upper.as_fd(), Some(lower.as_fd()), &named, caps)
}

fn paths(artifacts: &Artifacts) -> Vec<&str> {
    artifacts.list.iter().map(|artifact| artifact.path.as_str()).collect()
}

fn reasons(artifacts: &Artifacts) -> Vec<String> {
    let skipped = artifacts.skipped.iter();
    skipped.map(|it| format!("{}: {}", it.path, it.reason)).collect()
}

#[test]
fn named_files_come_first_and_then_those_of_the_output_directory() {
    let workspace = Workspace::new();
    put(&workspace.upper, "out/b.txt", "b");
    put(&workspace.upper, "out/deep/er/a.json", "{}");
    put(&workspace.upper, "out/locked/c.csv", "c");
    set_mode(&workspace.upper.join("out/locked"), 0);
    put(&workspace.upper, "elsewhere/plot.png", b"\x89PNG\r\n\x1a\nrest");
    put(&workspace.upper, "not-named", "");
    put(&workspace.lower, "original.txt", "untouched");
    put(&workspace.lower, "out/old.txt", "not of this run");
    let named = ["/work/elsewhere/plot.png", "./original.txt", "out/b.txt", "/work/out/./b.txt"];
    let artifacts = collected(&workspace, &named, &ArtifactCaps::default());
    assert_eq!(reasons(&artifacts), [""; 0]);
    let expected = [
        "elsewhere/plot.png",
        "original.txt",
        "out/b.txt",
        "out/deep/er/a.json",
        "out/locked/c.csv",
    ];
    assert_eq!(paths(&artifacts), expected);
    let first = &artifacts.list[0];
    assert_eq!((first.bytes, first.media_type), (12, "image/png"));
    assert_eq!(artifacts.list[1].data, b"untouched");
}

#[test]
fn what_cannot_be_handed_back_is_said() {
    let workspace = Workspace::new();
    symlink("/etc/passwd", workspace.upper.join("door")).unwrap();
    symlink("/etc", workspace.upper.join("etc")).unwrap();
    put(&workspace.upper, "out/directory/file", "");
    symlink("/etc/passwd", workspace.upper.join("out/link")).unwrap();
    mkfifoat(CWD, workspace.upper.join("out/fifo"), Mode::RWXU).unwrap();
    mkfifoat(CWD, workspace.upper.join("fifo"), Mode::RWXU).unwrap();
    symlink("/etc/passwd", workspace.lower.join("original-door")).unwrap();
    let named = [
        "/etc/passwd",
        "../x",
        "out/../../x",
        "/workshop/x",
        "/proc/self/environ",
        "door",
        "etc/passwd",
        "fifo",
        "out/directory",
        "missing",
        "/work",
        "original-door",
        "nul\0byte",
    ];
    let artifacts = collected(&workspace, &named, &ArtifactCaps::default());
    assert_eq!(paths(&artifacts), ["out/directory/file"]);
    let (outside, not_a_file) =
        ("not a path in the workspace", "not a regular file, or reached through a link");
    let expected = [
        ("/etc/passwd", outside),
        ("../x", outside),
        ("out/../../x", outside),
        ("/workshop/x", outside),
        ("/proc/self/environ", outside),
        ("door", not_a_file),
        ("etc/passwd", not_a_file),
        ("fifo", not_a_file),
        ("out/directory", not_a_file),
        ("missing", "no such file"),
        ("", not_a_file),
        ("original-door", not_a_file),
        ("nul\0byte", "not a path in the workspace"),
        ("out/fifo", not_a_file),
        ("out/link", not_a_file),
    ];
    let mut said = reasons(&artifacts);
    said[13..].sort_unstable();
    assert_eq!(said, expected.map(|(path, reason)| format!("{path}: {reason}")));
}

#[test]
fn root_reads_no_originals_that_only_root_can() {
    if !is_root() {
        skip("files of another user's: this needs root");
        return;
    }
    let workspace = Workspace::new();
    chown(&workspace.lower, Some(1000), Some(1000)).unwrap();
    for (name, mode) in [("open", 0o644), ("closed", 0o600), ("own", 0o600)] {
        put(&workspace.lower, name, "");
        set_mode(&workspace.lower.join(name), mode);
    }
    chown(workspace.lower.join("own"), Some(1000), Some(1000)).unwrap();
    let artifacts = collected(&workspace, &["open", "closed", "own"], &ArtifactCaps::default());
    assert_eq!(paths(&artifacts), ["open", "own"]);
    assert_eq!(reasons(&artifacts), ["closed: permission denied"]);
}

#[test]
fn caps_hold() {
    let workspace = Workspace::new();
    for number in 0..5 {
        put(&workspace.upper, format!("out/{number}"), vec![b'x'; 10]);
    }
    put(&workspace.upper, "out/5-large", vec![b'x'; 11]);
    File::create(workspace.upper.join("out/6-sparse")).unwrap().set_len(1 << 40).unwrap();
    let caps =
        ArtifactCaps { count: 100, bytes_each: 10, bytes_total: 35, ..ArtifactCaps::default() };
    let artifacts = collected(&workspace, &[], &caps);
    assert_eq!(paths(&artifacts), ["out/0", "out/1", "out/2"]);
    let expected = [
        "out/3: too large: 10 bytes, 5 allowed",
        "out/4: too large: 10 bytes, 5 allowed",
        "out/5-large: too large: 11 bytes, 5 allowed",
        "out/6-sparse: too large: 1099511627776 bytes, 5 allowed",
    ];
    assert_eq!(reasons(&artifacts), expected);
    let caps =
        ArtifactCaps { count: 4, bytes_each: 10, bytes_total: 1000, ..ArtifactCaps::default() };
    let artifacts = collected(&workspace, &[], &caps);
    assert_eq!(artifacts.list.len(), 4);
    assert_eq!(artifacts.skipped.len(), 3);
}

#[test]
fn floods_are_bounded() {
    let workspace = Workspace::in_memory();
    put(&workspace.upper, "out/d/file", "");
    for number in 0..300 {
        symlink("x", workspace.upper.join(format!("out/{number}"))).unwrap();
    }
    let artifacts = collected(&workspace, &[], &ArtifactCaps::default());
    assert_eq!(artifacts.skipped.len(), 100);
    assert_eq!(paths(&artifacts), ["out/d/file"]);
    for number in 0..10_001 {
        File::create(workspace.upper.join(format!("out/d/{number}"))).unwrap();
    }
    let artifacts = collected(&workspace, &[], &ArtifactCaps::default());
    assert_eq!(paths(&artifacts), [""; 0]);
}

#[test]
fn deleted_originals_are_gone() {
    let workspace = Workspace::new();
    for name in ["gone.txt", "d/gone.txt", "hidden/gone.txt", "merged/there.txt"] {
        put(&workspace.lower, name, "original");
    }
    put_whiteout(&workspace.upper.join("gone.txt"));
    put_whiteout(&workspace.upper.join("d"));
    put(&workspace.upper, "hidden/new.txt", "");
    put_attribute(&workspace.upper.join("hidden"), "user.overlay.opaque", b"y");
    put(&workspace.upper, "merged/new.txt", "");
    let named = ["gone.txt", "d/gone.txt", "hidden/gone.txt", "merged/there.txt"];
    let artifacts = collected(&workspace, &named, &ArtifactCaps::default());
    assert_eq!(paths(&artifacts), ["merged/there.txt"]);
    assert_eq!(artifacts.skipped.len(), 3);
}

#[test]
fn media_types_follow_the_content() {
    let workspace = Workspace::new();
    let files: [(&[u8], &[u8], &str); 14] = [
        (b"a.png", b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"b.jpg", b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"c.gif", b"GIF89a", "image/gif"),
        (b"d.pdf", b"%PDF-1.7", "application/pdf"),
        (b"e.csv", b"a,b", "text/csv"),
        (b"f.JSON", b"{}", "application/json"),
        (b"g.txt", b"text", "text/plain"),
        (b"h.html", b"<p>", "text/html"),
        (b"i.svg", b"<svg/>", "image/svg+xml"),
        (b"j.png", b"<script>", "text/plain"),
        (b"k.html", b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"l.csv", b"\x00\x01", "application/octet-stream"),
        (b"m", b"text", "text/plain"),
        (b"n\xff.txt", b"text", "text/plain"),
    ];
    for (name, content, _) in files {
        put(&workspace.upper, path(b"out").join(path(name)), content);
    }
    let artifacts = collected(&workspace, &[], &ArtifactCaps::default());
    let types: Vec<_> = artifacts.list.iter().map(|artifact| artifact.media_type).collect();
    assert_eq!(types, files.map(|(_, _, media)| media));
    assert_eq!(artifacts.list[13].path, "out/n\u{fffd}.txt");
}
