//! Bash in a session: what one script leaves is there for the next (B1).

use std::fs;

use belljar_contract::{ErrorCode, Stream};
use belljar_wire::RunCommand;
use serde_json::{Value, json};

use crate::{
    bash_cell::{ShellCell, run, script},
    harness::Outcome,
};

fn session(codes: &[&str]) -> Vec<Outcome> {
    ShellCell::new().run_session(codes.iter().map(|code| script(code)).collect())
}

/// The output of the last of some scripts, which must all succeed.
#[track_caller]
fn last(codes: &[&str]) -> String {
    let outcomes = session(codes);
    for (code, outcome) in codes.iter().zip(&outcomes) {
        assert_eq!(outcome.error, None, "{code}");
        assert_eq!(outcome.printed(Stream::Stderr), "", "{code}");
    }
    outcomes.last().expect("there is a run").stdout()
}

/// B1: variables of every kind outlive their run.
#[test]
fn b1_variables_outlive_their_run() {
    let made = r#"plain='it'\''s "quoted" $HOME
second line'
export shown=exported
list=(one 'two words' [5]=six)
declare -A map=([key]=value ['a b']=$'tab\there')
declare -i number=41
declare -r fixed=constant
declare -n alias_of=plain
empty=
IFS=,
unicode='é→🦀'
"#;
    let used = r#"number+=1
printf '%s\n' "$plain" "$(printenv shown)" "${list[1]}" "${!list[*]}" "${map[key]}" "${map[a b]}" \
    "$number" "$fixed" "$alias_of" "${empty-unset}" "$IFS" "$unicode"
(fixed=other) 2>/dev/null || echo readonly"#;
    let text = "it's \"quoted\" $HOME\nsecond line";
    let expected = format!(
        "{text}\nexported\ntwo words\n0,1,5\nvalue\ntab\there\n42\nconstant\n{text}\n\n,\né→🦀\nreadonly\n"
    );
    assert_eq!(last(&[made, used]), expected);
    assert_eq!(last(&[made, ":", ":", used]), expected);
    assert_eq!(last(&["x=1", "unset -v x", "echo ${x-gone}"]), "gone\n");
    // Control: without a session nothing stays.
    assert_eq!(run("echo ${plain-unset}").stdout(), "unset\n");
}

/// B1: functions, options, aliases, umask and the current directory do too.
#[test]
fn b1_the_shell_stays_as_it_was() {
    assert_eq!(
        last(&[
            "greet() { echo \"hello $1\"; }\nshout() { greet \"$1\" | tr a-z A-Z; }\nexport -f greet",
            "greet you; shout you; bash -c 'greet child'; count() { echo \"$#\"; }",
            "greet again; count a b",
        ]),
        "hello again\n2\n"
    );
    assert_eq!(
        last(&["export -f nothing 2>/dev/null; f() { echo in; }; export -f f", "bash -c f"]),
        "in\n"
    );
    assert_eq!(
        last(&[
            "set -o pipefail -u; shopt -s nullglob extglob; umask 027",
            "is() { [[ $1 == @(a|b) ]]; }",
            "echo \"$(umask)\" nothing* \"${-//[!u]/}\"; is b && echo yes; false | true || echo piped",
        ]),
        "0027 u\nyes\npiped\n"
    );
    assert_eq!(
        last(&["shopt -s expand_aliases; alias hi='echo hi there'", "hi", "hi"]),
        "hi there\n"
    );
    assert_eq!(
        last(&[
            "mkdir -p a/b; cd a/b",
            "basename \"$PWD\"; cd ..",
            "basename \"$PWD\"; cd \"$OLDPWD\"; basename \"$PWD\""
        ]),
        "a\nb\n"
    );
    let outcomes = session(&["mkdir gone; cd gone", "mv ../gone ../moved", "basename \"$PWD\""]);
    assert_eq!(
        outcomes.get(2).map(|one| (one.error.clone(), one.stdout())),
        Some((None, "work\n".to_owned()))
    );
}

/// B1: the state is kept however the script ends.
#[test]
fn b1_state_outlives_failures() {
    for ending in [
        "false",
        "exit 3",
        "f() { local x=local z=local; exit 4; }; g() { local x=outer; f; }; g",
        "set -e; false; x=never",
        "set -u; echo $missing",
        "echo ${missing:?no}",
        "nonsense_command",
        "if then",
        "rm x",
        "trap 'echo bye' EXIT; exit 5",
        "trap 'exit 6' EXIT",
        "trap - EXIT; exit 1",
        "set -e; trap 'echo \"left with $?\"' EXIT; (exit 7)",
        "kill -TERM $$",
    ] {
        let outcomes =
            session(&["x=kept", &format!("y=set\n{ending}"), "echo \"$x $y ${z-none}\""]);
        let at = |index: usize| outcomes.get(index).expect("there is such a run");
        assert!(at(1).error.is_some(), "{ending}");
        assert_eq!(at(2).stdout(), "kept set none\n", "{ending}");
    }
    // A shell that is not there at the end leaves what was there before it.
    for ending in ["exec false", "kill -9 $$"] {
        let outcomes = session(&["x=kept", &format!("y=set\n{ending}"), "echo \"$x ${y-none}\""]);
        assert_eq!(
            outcomes.get(2).map(Outcome::stdout).as_deref(),
            Some("kept none\n"),
            "{ending}"
        );
    }
}

/// B1: a run that takes too long is ended, and what it had made is kept.
#[test]
fn b1_state_outlives_a_timeout() {
    for waiting in ["sleep 60", "while :; do :; done", "sleep 60 & wait", "cat < <(sleep 60)"] {
        let mut late = script(&format!("y=set\n{waiting}"));
        late.limits.wall_ms = 400;
        let outcomes =
            ShellCell::new().run_session(vec![script("x=kept"), late, script("echo $x $y")]);
        let at = |index: usize| outcomes.get(index).expect("there is such a run");
        let message = "timed out: the run went over its 400 ms of wall time";
        assert_eq!(at(1).told(), (ErrorCode::LimitTimeout, message), "{waiting}");
        assert_eq!(at(2).stdout(), "kept set\n", "{waiting}");
    }
}

/// B1: a script in a session ends as it does alone, the lines of its errors included.
#[test]
fn b1_a_run_in_a_session_is_like_any_other() {
    for code in [
        "echo '{\"a\": 1}'",
        "echo text; echo problem >&2",
        "exit 3",
        "set -u\n\necho $x",
        "f() {\n  nonsense\n}\nf",
        "echo a\n\nnonsense",
        "echo a\nif then",
        "if then",
        "echo \"unclosed",
        "rm -f x",
        "kill -9 $$",
        "echo $LINENO $0 $# \"$*\" $?\necho $LINENO",
        "trap 'echo bye' EXIT; echo hi",
        "trap 'echo int' INT; trap -p; kill -INT $$",
        "echo \"${FUNCNAME[*]-none} $SHLVL $IFS\"",
        "read -r line || echo 'no input'",
        "printenv | grep -c BASH_FUNC",
    ] {
        let single = run(code);
        let outcomes = session(&["unrelated=1", code]);
        assert_eq!(outcomes.get(1), Some(&single), "{code}");
    }
    let long = format!("a={}\necho ${{#a}}\nnonsense", "x".repeat(200_000));
    let single = run(&long);
    let outcomes = session(&["unrelated=1", &long, "echo ${#a}"]);
    assert_eq!(outcomes.get(1), Some(&single));
    assert_eq!(outcomes.get(2).map(Outcome::stdout).as_deref(), Some("200000\n"));
}

/// B1: lines bash tells are lines of the script that runs.
#[test]
fn b1_lines_are_of_the_right_run() {
    let outcomes = session(&["old() {\n  nonsense\n}", "echo one\n\nold", "\n\nother_nonsense"]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run").failure();
    let message = "bash exited with status 127: main.sh: nonsense: command not found";
    assert_eq!((at(1).line, &*at(1).message), (None, message));
    assert_eq!(at(2).line, Some(3));
}

/// B1: context and granted variables are each run's own; what the script sets stays.
#[test]
fn b1_what_is_granted_is_of_one_run() {
    let with = |code: &str, env: &[(&str, &str)], context: &str| {
        let mut command: RunCommand = script(code);
        let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        command.grants.env = pairs.collect();
        command.context = context.into();
        command
    };
    let look = "echo \"${A-none} ${B-none} ${BELLJAR_CONTEXT-none} $(cat \"$TMPDIR/context.json\" 2>/dev/null)\"";
    let cell = ShellCell::new();
    let outcomes = cell.run_session(vec![
        with(look, &[("A", "a"), ("B", "b")], "{\"n\":1}"),
        with(look, &[], ""),
        with("B=mine", &[("B", "b")], ""),
        with(look, &[], "2"),
        with(look, &[("B", "given")], ""),
        with("A=x; cd /; PATH=$PATH:/elsewhere; HOME=/tmp", &[], ""),
        with("echo $HOME ${PATH##*:}", &[], ""),
    ]);
    let printed: Vec<_> = outcomes.iter().map(Outcome::stdout).collect();
    let expected = [
        "a b {\"n\":1} {\"n\":1}\n",
        "none none none \n",
        "",
        "none mine 2 2\n",
        "none given none \n",
        "",
        "/tmp /elsewhere\n",
    ];
    assert_eq!(printed, expected);
    assert_eq!(outcomes.first().map(|one| &one.value), Some(&Value::Null));
}

/// B1: what still runs at the end of a run ends with it.
#[test]
fn b1_background_processes_end_with_their_run() {
    let cell = ShellCell::new();
    let path = cell.at("work/ticks");
    let tick = "(while sleep 0.02; do echo tick >> ticks; done) &\nset -m\n(while sleep 0.02; do echo tick >> ticks; done) &\nset +m\nsleep 0.2";
    let outcomes = cell.run_session(vec![
        script(tick),
        script("wc -l < ticks; sleep 0.2; wc -l < ticks"),
        script("jobs; echo \"${!-none}\"; wait; echo waited"),
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!(at(0).error, None);
    // Control: they did run.
    assert!(fs::read_to_string(path).is_ok_and(|text| text.lines().count() > 2));
    let printed = at(1).stdout();
    let counts: Vec<&str> = printed.split_whitespace().collect();
    let [before, after] = counts[..] else { unreachable!("two numbers, not {printed:?}") };
    assert_eq!(before, after);
    assert_eq!(at(2).stdout(), "none\nwaited\n");
}

/// B1: what is kept is bounded, and more is a clear error; what was there before stays.
#[test]
fn b1_state_is_bounded() {
    let outcomes = session(&[
        "x=kept; half=$(printf 'y%.0s' {1..400000})",
        "big=$(printf 'z%.0s' {1..1500000}); echo \"${#big}\"",
        "echo \"$x ${#half} ${big-none}\"",
        "big=$(printf 'z%.0s' {1..1500000}); exit 3",
    ]);
    let at = |index: usize| outcomes.get(index).expect("there is such a run");
    assert_eq!(at(0).error, None);
    let message = "the session's variables and functions are larger than 1024 KiB: the changes of this run were not saved";
    assert_eq!(
        (at(1).stdout().as_str(), at(1).told()),
        ("1500000\n", (ErrorCode::LimitMemory, message))
    );
    assert_eq!((at(2).error.as_ref(), at(2).stdout().as_str()), (None, "kept 400000 none\n"));
    assert_eq!(at(3).failure().exit_code, Some(3));
}

/// B1: files persist, values are each run's own.
#[test]
fn b1_files_and_values() {
    let outcomes = session(&["echo 1 > n; echo '{\"n\": 1}'", "cat n", "x=1"]);
    let values: Vec<_> = outcomes.into_iter().map(|one| one.value).collect();
    assert_eq!(values, [json!({"n": 1}), json!(1), json!(null)]);
}
