//! Paths are found in what programs say of them.

use super::*;

#[test]
fn a4_a_missing_path_is_read_from_messages() {
    for (line, path) in [
        ("cat: /etc/passwd: No such file or directory", Some("/etc/passwd")),
        ("main.sh: line 3: /etc/shadow: No such file or directory", Some("/etc/shadow")),
        ("ls: cannot access '/home/u': No such file or directory", Some("/home/u")),
        ("ls: cannot access ‘/etc/x y’: No such file or directory", Some("/etc/x y")),
        ("cat: rows.csv: No such file or directory", Some("rows.csv")),
        ("cat: /etc/passwd: Permission denied", None),
    ] {
        assert_eq!(missing(line), path, "{line}");
    }
}

#[test]
fn a4_only_what_a_grant_would_bring_is_an_attempt() {
    let granted = ["/data/in".to_owned()];
    let line = |path: &str| format!("cat: {path}: No such file or directory");
    assert_eq!(attempt(&line("/etc/passwd"), &granted).as_deref(), Some("open '/etc/passwd'"));
    for own in ["/work/a", "/tmp/a", "/data/in/a", "a"] {
        assert_eq!(attempt(&line(own), &granted), None, "{own}");
    }
    let device = "main.sh: line 1: /dev/tcp/1.1.1.1/80: Operation not permitted";
    assert_eq!(attempt(device, &granted).as_deref(), Some("/dev/tcp/1.1.1.1/80"));
}

#[test]
fn bug_16_a_granted_file_is_found_by_its_name() {
    let granted = ["/home/u/rows.csv".to_owned(), "/srv/data".to_owned()];
    for (path, found) in [
        ("rows.csv", Some("/home/u/rows.csv")),
        ("./rows.csv", Some("/home/u/rows.csv")),
        ("/work/rows.csv", Some("/home/u/rows.csv")),
        ("data/a/b.txt", Some("/srv/data/a/b.txt")),
        ("other.csv", None),
        ("/etc/rows.csv", None),
    ] {
        assert_eq!(granted_at(path, &granted).as_deref(), found, "{path}");
    }
}
