//! Every example of docs/http.md does what it promises. `…` in a promise stands for anything.

use std::process::Command;

use crate::{
    command::{Place, outcome},
    mcp_support::{RunningServer, serve_in},
};
use belljar_testing::sandboxed;

const DOCUMENT: &str = include_str!("../../../../docs/http.md");

/// The blocks of a kind: commands, each with what it prints.
fn examples(kind: &str) -> Vec<(String, String)> {
    let opening = format!("\n```{kind}\n");
    let mut examples = Vec::new();
    for block in DOCUMENT.split(&opening).skip(1) {
        let (block, _) = block.split_once("\n```").expect("a block that is opened is closed");
        for example in format!("\n{block}").split("\n$ ").skip(1) {
            let (command, printed) = example.split_once('\n').unwrap_or((example, ""));
            examples.push((command.to_owned(), printed.trim_end().to_owned()));
        }
    }
    examples
}

/// Whether a text is what a promise says.
pub(crate) fn keeps(promise: &str, text: &str) -> bool {
    let mut parts = promise.split('…');
    let mut rest = match parts.next().and_then(|first| text.strip_prefix(first)) {
        Some(rest) => rest,
        None => return false,
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Runs the commands one after the other, in one shell: what they set stays set.
fn try_all(place: &Place, server: &RunningServer, examples: &[(String, String)]) {
    const MARK: &str = "---- end of an example ----";
    let commands: Vec<&str> = examples.iter().map(|(command, _)| command.as_str()).collect();
    let script = commands.join(&format!("\nprintf '\\n{MARK}\\n'\n"));
    let mut shell: Command = place.command("bash");
    shell
        .env("AT", format!("http://{}", server.address()))
        .env("AUTH", format!("Authorization: Bearer {}", server.token))
        .args(["-c", &script]);
    let done = outcome(shell.output().expect("there is a shell"));
    let printed: Vec<&str> = done.stdout.split(MARK).map(str::trim).collect();
    assert_eq!(printed.len(), examples.len(), "{done:#?}");
    for ((command, promise), text) in examples.iter().zip(printed) {
        assert!(keeps(promise, text), "{command}\npromised: {promise}\nprinted: {text}");
    }
}

#[sandboxed]
#[test]
fn e3_examples_do_what_they_promise() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let examples = examples("console");
    assert!(examples.len() >= 10, "only {} examples were found", examples.len());
    try_all(&place, &server, &examples);
}

#[sandboxed]
#[test]
fn b4_examples_of_sessions_do_what_they_promise() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let made = server.api("POST /v1/sessions", r#"{"language": "python"}"#);
    if made.body.contains("this version of Belljar has no sessions") {
        // Then nothing else may pretend to have any.
        assert_eq!(made.status, 403, "{made:#?}");
        assert_eq!(server.api("GET /v1/sessions", "").body, r#"{"sessions":[]}"#);
        return;
    }
    let examples = examples("session");
    assert!(examples.len() >= 10, "only {} examples were found", examples.len());
    try_all(&place, &server, &examples);
}

#[test]
fn promises_are_kept_or_not() {
    assert!(keeps("{…\"a\":1,…}", "{\"b\":2,\"a\":1,\"c\":3}"));
    assert!(keeps("same", "same") && keeps("", ""));
    assert!(!keeps("{…\"a\":1,…}", "{\"a\":2,\"c\":3}"));
    assert!(!keeps("same", "same and more") && !keeps("", "more"));
}
