//! D8: `kill -9` of the host at each point of a run, then `belljar resume`.
//!
//! The server of these tests writes down what really happened. Whoever is asked about a call in
//! doubt looks there, so at the end every effect that must not happen twice has happened once.

use std::time::Duration;

use belljar_testing::{crash_points, sandboxed};
use serde_json::{Value, json};

use crate::ledger_support::{
    LedgerProject, Transport,
    Transport::{Http, Stdio},
    killed,
};

/// One after the other, with time passing before and between; chance is part of what is asked.
pub(crate) const SEQUENTIAL: [(&str, &str); 2] = [
    (
        "typescript",
        "const call = async (f) => { try { return (await f).done } catch (e) { return e.code } };
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
await sleep(200);
const one = await call(mcp.ledger.effect({ key: 'one' }));
const two = await call(mcp.ledger.safe({ key: 'two' }));
await sleep(700);
await mcp.ledger.slow({ ms: Math.floor(Math.random() * 5) + Date.now() % 5 });
const three = await call(mcp.ledger.effect({ key: 'three' }));
return { one, two, three };",
    ),
    (
        "python",
        "import random, time
def call(f, key):
    try:
        return f(key=key)['done']
    except Exception as error:
        return error.code
time.sleep(0.2)
one = call(mcp.ledger.effect, 'one')
two = call(mcp.ledger.safe, 'two')
time.sleep(0.7)
mcp.ledger.slow(ms=random.randrange(5) + int(time.time() * 1000) % 5)
three = call(mcp.ledger.effect, 'three')
return {'one': one, 'two': two, 'three': three}",
    ),
];

/// Three side by side, then one.
pub(crate) const PARALLEL: [(&str, &str); 2] = [
    (
        "typescript",
        "const call = async (f) => { try { return (await f).done } catch (e) { return e.code } };
const effect = (key) => call(mcp.ledger.effect({ key }));
const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(effect));
const two = await call(mcp.ledger.safe({ key: 'two' }));
const last = await effect('last');
return { a, b, c, two, last };",
    ),
    (
        "python",
        "import asyncio
async def effect(key):
    try:
        return (await mcp.ledger.effect(key=key))['done']
    except Exception as error:
        return error.code
a, b, c = await asyncio.gather(effect('a'), effect('b'), effect('c'))
two = mcp.ledger.safe(key='two')['done']
last = await effect('last')
return {'a': a, 'b': b, 'c': c, 'two': two, 'last': last}",
    ),
];

/// Where the host is killed.
enum Kill {
    /// By itself, there.
    At(&'static str),
    /// From outside, when this is so.
    When(fn(&LedgerProject)),
}

/// The keys of calls that happened and whose answers are lost; `None` where that is a matter of
/// luck.
type LostCalls = Option<&'static [&'static str]>;

const NOTHING: LostCalls = Some(&[]);

/// A run of each language, killed and resumed to its end.
fn survives(transport: Transport, codes: [(&str, &str); 2], kill: &Kill, lost: LostCalls) {
    for (language, code) in codes {
        let project = LedgerProject::new(transport);
        let place = match kill {
            Kill::At(place) => Some(*place),
            Kill::When(_) => None,
        };
        let arguments = ["run", "--durable", "--json", "--language", language, "-c", code];
        let child = project.start(&arguments, place);
        let ended = match kill {
            Kill::At(_) => crate::command::outcome(child.wait_with_output().unwrap()),
            Kill::When(is_time) => {
                is_time(&project);
                killed(child)
            }
        };
        assert_eq!((ended.status, ended.stdout.as_str()), (None, ""), "{language}: {ended:#?}");
        release_all(&project);
        project.until_quiet();
        let result = project.resume_to_the_end();
        check(&project, &result, lost, language);
    }
}

fn release_all(project: &LedgerProject) {
    for key in ["one", "two", "three", "a", "b", "c"] {
        project.release("before", key);
        project.release("after", key);
    }
}

/// Each effect happened once, and the code has its value, or knows that it is in doubt.
pub(crate) fn check(project: &LedgerProject, result: &Value, lost: LostCalls, about: &str) {
    assert_eq!(
        (&result["status"], &result["error"]),
        (&json!("completed"), &Value::Null),
        "{about}"
    );
    for (key, value) in result["result"].as_object().unwrap() {
        let is_lost = *value == json!("tool.in_doubt");
        assert!(is_lost || value == key, "{about}: {result}");
        if let Some(lost) = lost {
            assert_eq!(is_lost, lost.contains(&key.as_str()), "{about}: {key} in {result}");
        }
        if key == "two" {
            assert!((1..=2).contains(&project.count("did safe two")), "{about}");
        } else {
            let times = project.count(&format!("did effect {key}"));
            assert_eq!(times, 1, "{about}: {key} in {:?}", project.lines());
        }
    }
}

#[sandboxed]
#[test]
fn d8_killed_before_the_first_call() {
    let begun = |project: &LedgerProject| {
        project.run_id();
        std::thread::sleep(Duration::from_millis(30));
    };
    survives(Http, SEQUENTIAL, &Kill::When(begun), NOTHING);
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_killed_between_asking_and_intent() {
    survives(Stdio, SEQUENTIAL, &Kill::At("asked:1"), NOTHING);
    survives(Http, SEQUENTIAL, &Kill::At("admitted:4"), NOTHING);
    survives(Stdio, PARALLEL, &Kill::At("asked:3"), None);
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_killed_after_the_intent_and_before_the_call_leaves() {
    // It did not happen, which only somebody who looks can know.
    survives(Http, SEQUENTIAL, &Kill::At("sent:1"), NOTHING);
    survives(Stdio, SEQUENTIAL, &Kill::At("sent:4"), NOTHING);
    survives(Http, PARALLEL, &Kill::At("sent:2"), None);
}

#[sandboxed]
#[test]
fn d8_killed_in_a_call_before_its_effect() {
    let asked = |project: &LedgerProject| {
        project.hold("before", "one");
        project.until_line("asked effect one");
    };
    // The server outlives the host, and does what it was asked for.
    survives(Http, SEQUENTIAL, &Kill::When(asked), Some(&["one"]));
    // It does not, and the effect never comes.
    survives(Stdio, SEQUENTIAL, &Kill::When(asked), NOTHING);
}

#[sandboxed]
#[test]
fn d8_killed_after_the_effect_and_before_the_answer() {
    let did = |project: &LedgerProject| {
        project.hold("after", "three");
        project.until_line("did effect three");
    };
    survives(Http, SEQUENTIAL, &Kill::When(did), Some(&["three"]));
    survives(Stdio, SEQUENTIAL, &Kill::When(did), Some(&["three"]));
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_killed_after_the_answer_and_before_the_outcome_is_on_disk() {
    // The first thing that arrives is the timer.
    survives(Http, SEQUENTIAL, &Kill::At("answered:2"), Some(&["one"]));
    survives(Stdio, PARALLEL, &Kill::At("answered:1"), None);
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_killed_after_the_outcome_and_before_the_code_has_it() {
    survives(Stdio, SEQUENTIAL, &Kill::At("ended:2"), NOTHING);
    survives(Http, PARALLEL, &Kill::At("ended:1"), None);
    survives(Http, PARALLEL, &Kill::At("ended:2"), None);
}

#[sandboxed]
#[test]
fn d8_killed_between_two_calls_while_a_timer_runs() {
    let waits = |project: &LedgerProject| {
        let both = || (project.journalled("ended") == 2).then_some(());
        project.until("two outcomes", both);
    };
    survives(Stdio, SEQUENTIAL, &Kill::When(waits), NOTHING);
}

#[sandboxed]
#[test]
fn d8_killed_with_two_of_three_parallel_calls_finished() {
    let two_of_three = |project: &LedgerProject| {
        project.hold("before", "c");
        let two = || (project.journalled("ended") == 2).then_some(());
        project.until("two outcomes", two);
        project.until_line("asked effect c");
    };
    survives(Http, PARALLEL, &Kill::When(two_of_three), Some(&["c"]));
    survives(Stdio, PARALLEL, &Kill::When(two_of_three), NOTHING);
}

#[sandboxed]
#[test]
fn d8_killed_with_all_parallel_calls_in_doubt() {
    let all_did = |project: &LedgerProject| {
        for key in ["a", "b", "c"] {
            project.hold("after", key);
        }
        for key in ["a", "b", "c"] {
            project.until_line(&format!("did effect {key}"));
        }
    };
    survives(Http, PARALLEL, &Kill::When(all_did), Some(&["a", "b", "c"]));
}

#[sandboxed]
#[test]
fn d8_killed_in_a_call_that_may_be_repeated() {
    let did = |project: &LedgerProject| {
        project.hold("after", "two");
        project.until_line("did safe two");
    };
    survives(Http, SEQUENTIAL, &Kill::When(did), NOTHING);
    survives(Stdio, PARALLEL, &Kill::When(did), NOTHING);
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_killed_after_the_last_call_and_before_the_result() {
    survives(Stdio, SEQUENTIAL, &Kill::At("finished"), NOTHING);
    survives(Http, PARALLEL, &Kill::At("finished"), NOTHING);
}
