//! Scripts as models write them: each gives its value, or an error that names the remedy (A3, A7).

use belljar_contract::RunError;
use serde_json::json;

use crate::bash_cell::run;

#[test]
fn scripts_give_their_values() {
    for (code, expected) in [
        ("rm -rf build && mkdir build && touch build/a && ls build | wc -l", json!(1)),
        (
            "mkdir -p d && touch d/a && cp d/a d/b && mv d/b d/c && rm d/a && rmdir d 2>/dev/null; ls d | wc -l",
            json!(1),
        ),
        ("echo 1 > f; chmod 600 f; stat -c %a f", json!(600)),
        ("ln -s f l; readlink l | wc -c", json!(2)),
        ("echo '{\"a\": [1, 2]}' | jq .", json!({"a": [1, 2]})),
        ("printf 'b,2\\na,1\\n' | sort | jq -R -s 'split(\"\\n\")[:-1]'", json!(["a,1", "b,2"])),
        ("for i in 1 2 3; do echo $i; done", json!(3)),
        ("echo '[1]'; echo '[2]'", json!([2])),
        ("[ \"$USER\" = user ] && echo true", json!(true)),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.error, outcome.value), (None, expected), "{code}");
    }
}

#[test]
fn what_cannot_be_had_is_told_with_its_remedy() {
    for (code, words) in [
        ("git clone x", "Grant it with --command git."),
        ("python3 -c 1", "Grant it with --command python3."),
        (
            "curl http://a.b",
            "curl also needs the hosts that it connects to: each is a grant of its own.",
        ),
        ("curl http://a.b", "Grant it with --command curl."),
        ("ping a.b", "there is no network beyond granted hosts"),
        ("apt install x", "packages cannot be installed in a cell"),
        ("sudo ls", "there is no other user here"),
        ("cat /data/x.csv", "Grant it with --read /data/x.csv."),
    ] {
        let error: RunError = run(code).failure().clone().into();
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains(words), "{code}: {hint}");
    }
}
