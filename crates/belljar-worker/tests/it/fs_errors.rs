//! Errors of files have Node's words and a hint (A4, A6, A7).

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use belljar_contract::{ErrorCode, Grant, MissingGrant};
use belljar_wire::GuestError;
use serde_json::json;

use crate::{
    fs_files::value_in,
    harness::{Place, command, run, run_command, value},
};

#[track_caller]
fn failed(code: &str) -> GuestError {
    run(code).failure().clone()
}

/// A7: an error has Node's message and properties.
#[test]
fn errors_are_nodes() {
    let code = "try { fs.readFileSync('/nowhere/x') } catch (e) {
        [e.message, e.name, e.code, e.errno, e.syscall, e.path, e instanceof Error, Object.keys(e)] }";
    assert_eq!(
        value(code),
        json!([
            "ENOENT: no such file or directory, open '/nowhere/x'",
            "Error",
            "ENOENT",
            -2,
            "open",
            "/nowhere/x",
            true,
            ["errno", "code", "syscall", "path"]
        ])
    );
}

/// A directory with a file `f`, and a directory `d` with a file `g`.
fn furnished() -> Place {
    let place = Place::new();
    fs::create_dir(place.path().join("d")).expect("a place can be furnished");
    fs::write(place.path().join("f"), "x").expect("a place can be furnished");
    fs::write(place.path().join("d/g"), "x").expect("a place can be furnished");
    place
}

#[track_caller]
fn assert_messages(cases: &[(&str, &str)]) {
    let place = furnished();
    let directory = place.path().to_str().expect("a path is UTF-8");
    for (call, message) in cases {
        let code = format!("try {{ fs.{call}; 'nothing thrown' }} catch (e) {{ e.message }}");
        assert_eq!(value_in(&place, &code), json!(message.replace("$DIR", directory)), "{call}");
    }
}

/// A7: every function says what was attempted, and on what.
#[test]
fn messages_name_what_was_attempted() {
    assert_messages(&[
        ("readFileSync('$DIR/d')", "EISDIR: illegal operation on a directory, read"),
        ("writeFileSync('$DIR/d', '')", "EISDIR: illegal operation on a directory, open '$DIR/d'"),
        (
            "writeFileSync('$DIR/f', '', { flag: 'wx' })",
            "EEXIST: file already exists, open '$DIR/f'",
        ),
        ("mkdirSync('$DIR/d')", "EEXIST: file already exists, mkdir '$DIR/d'"),
        (
            "mkdirSync('$DIR/f/x', { recursive: true })",
            "ENOTDIR: not a directory, mkdir '$DIR/f/x'",
        ),
        ("rmdirSync('$DIR/d')", "ENOTEMPTY: directory not empty, rmdir '$DIR/d'"),
        ("readdirSync('$DIR/f')", "ENOTDIR: not a directory, scandir '$DIR/f'"),
        ("readdirSync('$DIR/n')", "ENOENT: no such file or directory, scandir '$DIR/n'"),
        ("statSync('$DIR/n')", "ENOENT: no such file or directory, stat '$DIR/n'"),
        ("lstatSync('$DIR/n')", "ENOENT: no such file or directory, lstat '$DIR/n'"),
        ("accessSync('$DIR/n')", "ENOENT: no such file or directory, access '$DIR/n'"),
        ("unlinkSync('$DIR/n')", "ENOENT: no such file or directory, unlink '$DIR/n'"),
        ("rmSync('$DIR/n')", "ENOENT: no such file or directory, lstat '$DIR/n'"),
        (
            "rmSync('$DIR/d')",
            "Path is a directory: rm returned EISDIR (is a directory) $DIR/d; use { recursive: true }",
        ),
        (
            "renameSync('$DIR/n', '$DIR/m')",
            "ENOENT: no such file or directory, rename '$DIR/n' -> '$DIR/m'",
        ),
        (
            "copyFileSync('$DIR/f', '$DIR/n/m')",
            "ENOENT: no such file or directory, copyfile '$DIR/f' -> '$DIR/n/m'",
        ),
        (
            "copyFileSync('$DIR/f', '$DIR/d/g', fs.constants.COPYFILE_EXCL)",
            "EEXIST: file already exists, copyfile '$DIR/f' -> '$DIR/d/g'",
        ),
    ]);
}

/// A7: arguments of the wrong kind are told apart from files that do not work.
#[test]
fn wrong_arguments_are_type_errors() {
    assert_messages(&[
        (
            "readFileSync('$DIR/f', 'utf9')",
            "The argument 'encoding' is invalid encoding. Received 'utf9'",
        ),
        (
            "readFileSync()",
            "The \"path\" argument must be of type string or an instance of Buffer or URL. Received undefined",
        ),
        (
            "readFileSync('a\\0b')",
            "The argument 'path' must be a string without null bytes. Received 'a\\x00b'",
        ),
        (
            "writeFileSync('$DIR/x', { a: 1 })",
            "The \"data\" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received an instance of Object",
        ),
        (
            "readFile('x')",
            "The \"cb\" argument must be of type function. Received type string ('x')",
        ),
    ]);
}

/// A4: what is not there has a hint that says how to get it.
#[test]
fn missing_files_have_hints() {
    for (code, hint) in [
        ("fs.readFileSync('/etc/nothing')", "Only /work, /tmp and granted paths exist here."),
        (
            "await fs.promises.readFile('/data/x.csv')",
            "Only /work, /tmp and granted paths exist here.",
        ),
        ("fs.writeFileSync('/data/out/x', '1')", "Only /work, /tmp and granted paths exist here."),
        (
            "fs.writeFileSync('/work/no_such_directory/b/x.txt', '1')",
            "Make the directory first: fs.mkdirSync(\"/work/no_such_directory/b\", { recursive: true })",
        ),
        (
            "fs.readFileSync('no_such_file.txt')",
            "See what is there with fs.readdirSync(\"/work\"); relative paths begin at /work.",
        ),
        ("fs.readFileSync('/tmp')", "That is a directory: fs.readdirSync lists it."),
    ] {
        let error = failed(code);
        assert_eq!(error.hint.as_deref(), Some(hint), "{code}");
        assert_eq!(error.code, ErrorCode::RuntimeThrown, "{code}");
    }
    let error = failed("const a = 1;\nfs.readFileSync('/etc/nothing')");
    assert_eq!(error.message, "Error: ENOENT: no such file or directory, open '/etc/nothing'");
    assert_eq!((error.line, error.column), (Some(2), Some(4)));
    let hint = failed("fs.createReadStream('x')").hint.unwrap_or_default();
    assert!(hint.starts_with("fs has readFile,"), "{hint}");
}

/// A4: an error names the grant that was missing; the host says how its reader asks for it.
#[test]
fn a4_missing_files_name_the_grant_that_would_help() {
    for (code, kind, name) in [
        ("fs.readFileSync('/etc/nothing')", Grant::Read, "/etc/nothing"),
        ("fs.writeFileSync('/data/out/x', '1')", Grant::Write, "/data/out/x"),
        ("fs.readFileSync('/tmp/of-the-host')", Grant::Read, "/tmp/of-the-host"),
    ] {
        let missing = MissingGrant { kind, name: name.to_owned() };
        assert_eq!(failed(code).missing.as_deref(), Some(&missing), "{code}");
    }
    let control = failed("fs.readFileSync('no_such_file.txt')");
    assert_eq!(control.missing, None, "the file would be in the workspace");
}

/// A4: what may not be done is a PermissionError, and logged. Made by the library, since tests may
/// run as a user to whom everything is allowed.
#[test]
fn refused_files_are_permission_errors() {
    let place = Place::new();
    fs::write(place.path().join("f"), "x").unwrap();
    fs::set_permissions(place.path().join("f"), Permissions::from_mode(0o000)).unwrap();
    let path = place.at("f");
    if File::open(&path).is_err() {
        let outcome = run(&format!("fs.readFileSync('{path}')"));
        assert_eq!(outcome.failure().code, ErrorCode::PermissionFile);
        assert_eq!(outcome.denied, [format!("open '{path}'")]);
    }
    // No directory can be made here by anybody.
    let outcome = run("fs.mkdirSync('/sys/belljar')");
    assert_eq!(outcome.failure().code, ErrorCode::PermissionFile, "{:?}", outcome.error);
    assert_eq!(outcome.denied.len(), 1);
    let hint = "Only /work, /tmp and paths granted for writing can be changed.";
    assert_eq!(outcome.failure().hint.as_deref(), Some(hint));
    let missing = MissingGrant { kind: Grant::Write, name: "/sys/belljar".to_owned() };
    assert_eq!(outcome.failure().missing.as_deref(), Some(&missing));
    let caught = "try { fs.mkdirSync('/sys/belljar') } catch (e) { e.name }";
    assert_eq!(value(caught), json!("Error"));
}

/// A6: a full disk is its own limit.
#[test]
fn a_full_disk_is_a_limit() {
    let error = failed("fs.writeFileSync('/dev/full', 'x')");
    assert_eq!(error.code, ErrorCode::LimitDisk);
    assert_eq!(error.message, "Error: ENOSPC: no space left on device, write");
    assert!(error.hint.unwrap_or_default().contains("at the limit"));
}

/// A6: a file larger than the memory is a MemoryError, whatever its size says.
#[test]
fn large_files_end_in_a_memory_error() {
    let place = Place::new();
    File::create(place.path().join("huge")).unwrap().set_len(1 << 30).unwrap();
    File::create(place.path().join("large")).unwrap().set_len(40 << 20).unwrap();
    for (path, encoding) in [
        (place.at("huge"), ""),
        (place.at("huge"), "'utf8'"),
        (place.at("large"), ""),
        (place.at("large"), "'latin1'"),
        (place.at("large"), "'hex'"),
        ("/dev/zero".into(), ""),
        ("/dev/zero".into(), "'utf8'"),
    ] {
        let code =
            format!("const all = []; for (;;) all.push(fs.readFileSync('{path}', {encoding}))")
                .replace(", )", ")");
        let mut command = command(&code);
        command.limits.memory_bytes = 64 << 20;
        let outcome = run_command(command);
        assert_eq!(outcome.failure().code, ErrorCode::LimitMemory, "{path} {encoding}");
    }
}

/// C2: a file is named as an artifact, if it is one.
#[test]
fn artifacts_are_files() {
    let place = Place::new();
    let path = place.at("plot.png");
    let outcome = run(&format!("fs.writeFileSync('{path}', 'x'); artifact('{path}')"));
    // These tests run outside of a cell, and the machine may have a /work that is not empty.
    let mut named = outcome.artifacts.iter().filter(|at| *at != "/work");
    assert_eq!((named.next(), named.next()), (Some(&path), None));
    assert_eq!(outcome.value, json!(path));
    let error = failed("artifact('/work/no_such_file.png')");
    assert_eq!(
        error.message,
        "Error: ENOENT: no such file or directory, stat '/work/no_such_file.png'"
    );
    let error = failed("artifact('/tmp')");
    assert_eq!(
        error.message,
        "Error: artifact('/tmp') is not a file: name files one by one, or write them to /work/out"
    );
    assert!(failed("artifact()").message.starts_with("TypeError: The \"path\" argument"));
}
