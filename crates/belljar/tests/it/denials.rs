//! Errors of runs that reach for things they do not have: which limit, which path, which grant
//! (A4, A6, A7).

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::command::Place;

/// The result of a run in a place with these limits.
fn limited(limits: &str, language: &str, code: &str) -> Value {
    let place = Place::new();
    place.file("work/belljar.toml", format!("[limits]\n{limits}\n"));
    place.belljar(&["run", "--json", "-l", language, "-c", code]).json()
}

fn run(language: &str, code: &str, more: &[&str]) -> Value {
    let arguments = [&["run", "--json", "-l", language, "-c", code], more].concat();
    Place::new().belljar(&arguments).json()
}

/// Type and code of the error, and what it says.
#[track_caller]
fn error(result: &Value) -> (&str, &str, &str, &str) {
    let text = |key: &str| result["error"][key].as_str().unwrap_or("none");
    (text("type"), text("code"), text("message"), text("hint"))
}

#[track_caller]
fn assert_limit(result: &Value, code: &str, value: &str, remedy: &str) {
    let (kind, found, message, hint) = error(result);
    assert_eq!((kind, found), ("LimitError", code), "{result:#}");
    assert!(message.ends_with(value), "{message}");
    assert!(hint.contains(remedy), "{hint}");
}

#[sandboxed]
#[test]
fn bug_14_too_many_open_files_is_a_limit_with_its_value() {
    let (value, remedy) = ("20 files may be open at a time", "--open-files");
    let python = "files = [open(f'/tmp/{n}', 'w') for n in range(40)]";
    let python = limited("open_files = 20", "python", python);
    assert_limit(&python, "limit.open_files", value, remedy);
    for open in ["eval \"exec $n>/tmp/$n\"", "exec {fd}>/tmp/$n"] {
        let bash = format!("for n in {{10..60}}; do {open} || exit 1; done");
        let bash = limited("open_files = 20", "bash", &bash);
        assert_limit(&bash, "limit.open_files", value, remedy);
    }
    // Control: as many as there may be.
    let few = "files = [open(f'/tmp/{n}', 'w') for n in range(5)]\nlen(files)";
    assert_eq!(limited("open_files = 20", "python", few)["result"], 5);
}

/// Makes many files in each language.
const MANY_FILES: [(&str, &str); 3] = [
    ("typescript", "for (let n = 0; n < 400; n++) fs.writeFileSync(`/tmp/${n}`, 'x'); return 1"),
    ("python", "for n in range(400): open(f'/tmp/{n}', 'w').write('x')\n1"),
    ("bash", "for n in {1..400}; do echo x > /tmp/$n || exit 1; done; echo 1"),
];

#[sandboxed]
#[test]
fn bug_14_running_out_of_inodes_is_not_told_as_a_full_disk() {
    for (language, code) in MANY_FILES {
        let result = limited("inodes = 200", language, code);
        let value = "/work and /tmp may have 200 files and directories";
        assert_limit(&result, "limit.inodes", value, "--inodes");
        assert_eq!(limited("inodes = 5000", language, code)["result"], 1, "{language}");
    }
}

#[sandboxed]
#[test]
fn a6_a_full_disk_names_its_size() {
    for (language, code) in [
        ("typescript", "fs.writeFileSync('/tmp/x', 'x'.repeat(3 << 20)); return 1"),
        ("python", "open('/tmp/x', 'w').write('x' * (3 << 20))\n1"),
        ("bash", "head -c 3145728 /dev/zero > /tmp/x || exit 1; echo 1"),
    ] {
        let value = "files in /work and /tmp may take 2 MiB together";
        assert_limit(&run(language, code, &["--disk", "2MiB"]), "limit.disk", value, "--disk");
        assert_eq!(run(language, code, &["--disk", "8MiB"])["result"], 1, "{language}");
    }
}

/// Output beyond 16 times the kept size ends the run.
#[sandboxed]
#[test]
fn a6_keeping_less_output_ends_a_flood_sooner() {
    let print = |lines: u32| format!("for _ in range({lines}): print('x' * 99)");
    let flood = run("python", &print(200), &["--max-output", "1KB"]);
    let (kind, code, message, _) = error(&flood);
    assert_eq!(
        (kind, code, message),
        ("LimitError", "limit.output", "stdout went over 16384 bytes")
    );
    assert_eq!(flood["stdout"].as_str().unwrap().len(), 1000);
    // Ordinary chatter is cut, and no error.
    let chatter = run("python", &print(50), &["--max-output", "1KB"]);
    assert_eq!(
        (&chatter["success"], &chatter["truncated"]["stdout"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(run("python", &print(200), &[])["truncated"]["stdout"], false);
}

#[sandboxed]
#[test]
fn bug_15_the_network_of_bash_is_a_permission() {
    for code in ["exec 3<>/dev/tcp/1.1.1.1/80", "echo x > /dev/udp/127.0.0.1/53 || exit 1"] {
        let result = run("bash", code, &[]);
        let (kind, found, message, hint) = error(&result);
        assert_eq!((kind, found), ("PermissionError", "permission.network"), "{result:#}");
        assert!(
            message.contains("/dev/") && hint.contains("Only granted hosts"),
            "{message}: {hint}"
        );
        let logs = result["logs"].to_string();
        assert!(logs.contains("[blocked] /dev/"), "{logs}");
    }
}

#[sandboxed]
#[test]
fn a4_reads_of_what_was_not_granted_are_logged() {
    for (language, code, attempt) in [
        ("typescript", "fs.readFileSync('/etc/passwd')", "[blocked] open '/etc/passwd'"),
        (
            "typescript",
            "try { Deno.readTextFileSync('/etc/passwd') } catch {}",
            "[blocked] open '/etc/passwd'",
        ),
        ("python", "open('/etc/passwd')", "[blocked] open('/etc/passwd')"),
        ("bash", "cat /etc/passwd", "[blocked] open '/etc/passwd'"),
    ] {
        let result = run(language, code, &[]);
        let logs = result["logs"].as_array().unwrap();
        assert!(logs.iter().any(|line| line == attempt), "{code}: {logs:?}");
        // Control: what is there, and what is not there of the run's own, is no attempt.
        let own = code.replace("/etc/passwd", "/work/nothing");
        let logs = run(language, &own, &[])["logs"].to_string();
        assert!(!logs.contains("[blocked]"), "{own}: {logs}");
    }
}

#[sandboxed]
#[test]
fn a4_deno_is_refused_in_its_own_words() {
    let result = run("typescript", "await Deno.readTextFile('/etc/passwd')", &[]);
    let (kind, code, message, hint) = error(&result);
    assert_eq!((kind, code), ("PermissionError", "permission.file"));
    assert_eq!(message, "NotCapable: Requires read access to \"/etc/passwd\"");
    assert!(hint.ends_with("Grant it with --read /etc/passwd."), "{hint}");
    let granted = Place::new();
    let path = granted.file("data.txt", "seen");
    let path = path.to_str().unwrap();
    let code = format!("return await Deno.readTextFile({path:?})");
    let read = granted.belljar(&["run", "--json", "-c", &code, "--read", path]).json();
    assert_eq!(read["result"], "seen", "{read:#}");
}

#[sandboxed]
#[test]
fn bug_16_a_path_of_the_host_below_tmp_is_told_as_one() {
    for (language, code) in [
        ("typescript", "fs.readFileSync('/tmp/of-the-host/rows.csv')"),
        ("python", "open('/tmp/of-the-host/rows.csv')"),
        ("bash", "cat /tmp/of-the-host/rows.csv"),
    ] {
        let result = run(language, code, &[]);
        assert!(error(&result).3.contains("--read /tmp/of-the-host/rows.csv"), "{result:#}");
    }
}

#[sandboxed]
#[test]
fn bug_16_a_granted_file_is_found_where_it_is() {
    let place = Place::new();
    let rows = place.file("work/rows.csv", "a,b");
    for (language, code) in [
        ("typescript", "fs.readFileSync('rows.csv')"),
        ("python", "open('rows.csv')"),
        ("bash", "cat rows.csv"),
    ] {
        let arguments = ["run", "--json", "-l", language, "-c", code, "--read", "rows.csv"];
        let result = place.belljar(&arguments).json();
        assert!(error(&result).3.ends_with(rows.to_str().unwrap()), "{result:#}");
    }
}
