//! Refusals are read whole, and recognised in what other programs say.

use super::{MAX_REPORTED, RefusedCommands, refused_in};

#[test]
fn records_may_come_in_pieces() {
    let mut refusals = RefusedCommands::default();
    assert_eq!(refusals.read(b"rm\0rm -r"), [""; 0]);
    assert_eq!(refusals.read(b"f x\0curl\0curl a\0su"), ["rm -rf x", "curl a"]);
    assert_eq!(refusals.last().map(|last| &*last.name), Some("curl"));
    assert_eq!(refusals.read(b"do\0sudo ls\0"), ["sudo ls"]);
}

#[test]
fn a_flood_is_not_told() {
    let mut refusals = RefusedCommands::default();
    assert_eq!(refusals.read(&b"rm\0rm\0".repeat(5000)).len(), MAX_REPORTED);
    assert_eq!(refusals.read(&[b'x'; 10_000]), [""; 0]);
    assert_eq!(refusals.unread.len(), 0);
}

#[test]
fn others_tell_of_refusals_too() {
    for (line, name) in [
        ("xargs: rm: No such file or directory", Some("rm")),
        ("env: ‘python3’: No such file or directory", Some("python3")),
        ("timeout: failed to run command ‘curl’: No such file or directory", Some("curl")),
        ("main.sh: line 3: exec: sudo: not found", Some("sudo")),
        ("bash: line 1: rm: command not found", Some("rm")),
        ("main.sh: line 2: /usr/bin/perl: Permission denied", Some("/usr/bin/perl")),
        ("main.sh: line 2: /usr/bin/perl: No such file or directory", Some("/usr/bin/perl")),
        ("main.sh: line 2: ./go.sh: Permission denied", Some("./go.sh")),
        ("find: ‘missing-directory’: No such file or directory", None),
        ("main.sh: line 2: /etc/passwd: No such file or directory", None),
        ("cat: rm: No such file or directory", None),
        ("", None),
    ] {
        assert_eq!(refused_in(line, "main.sh").as_deref(), name, "{line}");
    }
}
