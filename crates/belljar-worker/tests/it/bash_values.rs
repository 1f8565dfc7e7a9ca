//! The input of a script and its value (A3, A5).

use belljar_contract::{ErrorCode, Stream};
use serde_json::{Value, json};

use crate::bash_cell::{ShellCell, run, script};

/// A3: the last line is the value if it is JSON.
#[test]
fn the_last_line_is_the_value() {
    for (code, value) in [
        ("echo one; echo '{\"a\": [1, true]}'", json!({"a": [1, true]})),
        ("printf '[1,2]'", json!([1, 2])),
        ("echo 42; echo", json!(42)),
        ("echo '\"text\"'", json!("text")),
        ("echo text", Value::Null),
        ("echo '{\"a\": 1}'; echo done", Value::Null),
        ("echo '{\"a\": 1}'; echo later >&2", json!({"a": 1})),
        ("", Value::Null),
        ("printf 'a b\\n' | wc -w", json!(2)),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.error, outcome.value), (None, value), "{code}");
    }
}

/// A6: a value larger than allowed is an error that says so.
#[test]
fn a_large_value_is_refused() {
    let mut command = script("printf '[%0999d1]\\n' 1");
    command.limits.result_bytes = 500;
    let outcome = ShellCell::new().run_command(command);
    let place = outcome.place();
    assert_eq!(place.0, ErrorCode::LimitResult);
    assert_eq!(place.1, "the value is larger than 500 bytes of JSON");
}

/// A4, A5: a script has the granted variables and a handful of its own.
#[test]
fn the_environment_is_what_was_granted() {
    let cell = ShellCell::new();
    let mut command = script("env | grep -v '^_=' | sort");
    command.grants.env.insert("TOKEN".into(), "a b".into());
    command.grants.env.insert("LANG".into(), "de".into());
    command.grants.env.insert("PATH".into(), "/usr/bin".into());
    command.grants.env.insert("bad=name".into(), "x".into());
    let outcome = cell.run_command(command);
    let (bin, tmp, work) = (cell.at("bin"), cell.at("tmp"), cell.at("work"));
    let removing = cell.at("removing");
    assert_eq!(
        outcome.stdout(),
        format!(
            "HOME={work}\nLANG=de\nLOGNAME=user\nPATH={bin}:{removing}\nPWD={work}\nSHLVL=1\n\
             TMPDIR={tmp}\nTOKEN=a b\nUSER=user\n"
        )
    );
}

/// Text is UTF-8, to bash and to the programs it starts, and nobody complains of a locale.
#[test]
fn text_is_utf_8() {
    let cell = ShellCell::new();
    let outcome = cell.run("word=née; echo ${#word}; echo née | wc -m; [[ é == [[:alpha:]] ]]");
    assert_eq!((outcome.stdout().as_str(), &outcome.error), ("3\n4\n", &None));
    assert_eq!(outcome.printed(Stream::Stderr), "");
    // Control: without it, letters are bytes.
    let mut command = script("word=née; echo ${#word}");
    command.grants.env.insert("LANG".into(), "C".into());
    assert_eq!(cell.run_command(command).stdout(), "4\n");
}

/// A11: the context is a file and, when it is small, a variable.
#[test]
fn the_context_is_a_file_and_a_variable() {
    let cell = ShellCell::new();
    let mut command = script("echo \"$BELLJAR_CONTEXT\"; cat \"$TMPDIR/context.json\"");
    command.context = br#"{"n": 1}"#.to_vec();
    let outcome = cell.run_command(command);
    assert_eq!(outcome.stdout(), "{\"n\": 1}\n{\"n\": 1}");
    assert_eq!(outcome.value, json!({"n": 1}));

    let mut command = script("echo \"${BELLJAR_CONTEXT-unset}\"; wc -c < \"$TMPDIR/context.json\"");
    command.context = format!("\"{}\"", "x".repeat(200_000)).into_bytes();
    let outcome = cell.run_command(command);
    assert_eq!(outcome.stdout(), "unset\n200002\n");

    let outcome = run("echo ${BELLJAR_CONTEXT-unset}; ls -A \"$TMPDIR\"");
    assert_eq!(outcome.stdout(), "unset\n");
}

/// A3: code of any size runs the same way: no input, its own lines, nothing left behind.
#[test]
fn large_code_runs_like_small_code() {
    let script = "#!/bin/bash\nread -r x; echo \"[$x] $# $0 ${REPLY-unset} ${1-none}\"\n";
    let end = "\necho $LINENO; ls -A \"$TMPDIR\"; nonsense_here";
    for filler in ["", "# nothing to see here, only to be read\n"] {
        let lines = 60_000;
        let outcome = run(&format!("{script}{}{end}", filler.repeat(lines)));
        let line = if filler.is_empty() { 4 } else { lines + 4 };
        assert_eq!(outcome.stdout(), format!("[] 0 main.sh unset none\n{line}\n"));
        let said = format!("main.sh: line {line}: nonsense_here: command not found\n");
        assert_eq!(outcome.printed(Stream::Stderr), said);
        assert_eq!(outcome.failure().line, u32::try_from(line).ok());
    }
}

/// A3: each run starts in the workspace, whose files stay.
#[test]
fn files_are_in_the_workspace() {
    let cell = ShellCell::new();
    let outcome = cell.run("mkdir out; echo hello > out/a.txt; echo \"\\\"$PWD\\\"\"");
    assert_eq!(outcome.value, json!(cell.at("work")));
    assert_eq!(cell.run("cat out/a.txt").stdout(), "hello\n");
}
