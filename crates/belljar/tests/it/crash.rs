//! D7, D8: hosts that are killed more than once, or while a person is asked, or at any moment; and
//! several that want to go on with one run.

use std::{
    process::Child,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use belljar_contract::Verdict;
use belljar_store::{ApprovalState, Approvals, FILE_NAME};
use belljar_testing::{crash_points, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{block_on, outcome},
    crash_points::{PARALLEL, SEQUENTIAL, check},
    ledger_support::{
        LedgerProject,
        Transport::{Http, Stdio},
        killed,
    },
};

fn start(project: &LedgerProject, (language, code): (&str, &str), crash_at: Option<&str>) -> Child {
    let arguments = ["run", "--durable", "--json", "--language", language, "-c", code];
    project.start(&arguments, crash_at)
}

/// A run that ends its host there.
fn run_until(project: &LedgerProject, code: (&str, &str), crash_at: &str) {
    let ended = outcome(start(project, code, Some(crash_at)).wait_with_output().unwrap());
    assert_eq!((ended.status, ended.stdout.as_str()), (None, ""), "{ended:#?}");
    project.until_quiet();
}

fn resume_until(project: &LedgerProject, crash_at: &str) {
    let id = project.run_id();
    let child = project.start(&["resume", &id, "--json"], Some(crash_at));
    let ended = outcome(child.wait_with_output().unwrap());
    assert_eq!((ended.status, ended.stdout.as_str()), (None, ""), "{ended:#?}");
    project.until_quiet();
}

const ASKING: &str = "allow = [\"ledger__safe\", \"ledger__slow\"]\nask = [\"ledger__effect\"]";

const ONE_ASKED: [(&str, &str); 2] = [
    (
        "typescript",
        "const two = (await mcp.ledger.safe({ key: 'two' })).done;
let one;
try { one = (await mcp.ledger.effect({ key: 'one' })).done } catch (e) { one = e.code }
return { one, two };",
    ),
    (
        "python",
        "two = mcp.ledger.safe(key='two')['done']
try:
    one = mcp.ledger.effect(key='one')['done']
except Exception as error:
    one = error.code
return {'one': one, 'two': two}",
    ),
];

#[sandboxed]
#[test]
fn d7_killed_while_a_person_is_asked_it_finishes_without_repeating_a_call() {
    for (code, verdict, value, times) in [
        (ONE_ASKED[0], "approve", "one", 1),
        (ONE_ASKED[1], "approve", "one", 1),
        (ONE_ASKED[0], "deny", "approval.denied", 0),
    ] {
        let project = LedgerProject::with(Stdio, ASKING);
        let child = start(&project, code, None);
        project.run_id();
        let question = project.until("a question", || project.pending().pop());
        killed(child);
        let decided = project.place.belljar(&["approvals", verdict, &question.asked.id]);
        assert_eq!(decided.status, Some(0), "{decided:#?}");
        let ended = project.place.belljar(&["resume", &project.run_id(), "--json"]);
        assert_eq!((ended.status, &ended.json()["result"]["one"]), (Some(0), &json!(value)));
        assert_eq!(project.count("did effect one"), times);
        assert_eq!(project.count("did safe two"), 1, "it was answered before");
    }
}

#[sandboxed]
#[crash_points]
#[test]
fn d7_killed_between_consent_and_call_nobody_is_asked_again() {
    for code in ONE_ASKED {
        for point in ["approved", "admitted:2"] {
            let project = LedgerProject::with(Http, ASKING);
            let child = start(&project, code, Some(point));
            project.run_id();
            let question = project.until("a question", || project.pending().pop());
            project.decide(&question.asked.id, Verdict::Approve);
            assert_eq!(outcome(child.wait_with_output().unwrap()).status, None);
            let result = project.resume_to_the_end();
            check(&project, &result, Some(&[]), point);
            assert_eq!(block_on(project.store().approvals(Approvals::All, 0)).unwrap().len(), 1);
        }
    }
}

#[sandboxed]
#[crash_points]
#[test]
fn d7_killed_right_before_the_question_is_put_it_is_put_after() {
    let project = LedgerProject::with(Stdio, ASKING);
    run_until(&project, ONE_ASKED[0], "noted");
    assert_eq!(project.pending().len(), 0);
    let child = project.start(&["resume", &project.run_id(), "--json"], None);
    let question = project.until("a question", || project.pending().pop());
    project.decide(&question.asked.id, Verdict::Approve);
    let ended = outcome(child.wait_with_output().unwrap());
    check(&project, &ended.json(), Some(&[]), "noted");
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_killed_again_while_it_is_resumed() {
    for code in PARALLEL {
        let project = LedgerProject::new(Http);
        run_until(&project, code, "sent:2");
        let stopped = project.place.belljar(&["resume", &project.run_id(), "--json"]);
        assert_eq!(stopped.json()["status"], "in_doubt");
        project.decide_by_looking();
        resume_until(&project, "ended:1");
        resume_until(&project, "claimed");
        check(&project, &project.resume_to_the_end(), None, code.0);
    }
    for code in SEQUENTIAL {
        let project = LedgerProject::new(Http);
        run_until(&project, code, "ended:2");
        resume_until(&project, "claimed");
        // Two, the timer, slow, three.
        resume_until(&project, "ended:3");
        resume_until(&project, "finished");
        check(&project, &project.resume_to_the_end(), Some(&[]), code.0);
    }
}

/// Consent to one repetition is not consent to the next.
#[sandboxed]
#[crash_points]
#[test]
fn d8_a_call_in_doubt_twice_is_asked_about_twice() {
    let project = LedgerProject::new(Http);
    run_until(&project, ONE_ASKED[0], "answered:2");
    assert_eq!(project.count("did effect one"), 1);
    let id = project.run_id();
    let in_doubt = || {
        let stopped = project.place.belljar(&["resume", &id, "--json"]);
        assert_eq!((stopped.status, &stopped.json()["status"]), (Some(1), &json!("in_doubt")));
        let pending = project.pending();
        assert_eq!(pending.len(), 1);
        pending[0].asked.clone()
    };
    let first = in_doubt();
    project.decide(&first.id, Verdict::Retry);
    resume_until(&project, "answered:1");
    assert_eq!(project.count("did effect one"), 2, "as decided");
    let second = in_doubt();
    let kinds = [first, second.clone()].map(|asked| asked.question.to_string());
    assert_eq!(kinds, ["in_doubt", "in_doubt_2"]);
    assert_eq!(project.count("did effect one"), 2);
    project.decide(&second.id, Verdict::Retry);
    let result = project.place.belljar(&["resume", &id, "--json"]).json();
    assert_eq!(result["result"], json!({ "one": "one", "two": "two" }));
    assert_eq!(project.count("did effect one"), 3, "as decided twice");
}

/// Whatever is in doubt is put to a person at once, and nothing else leaves before that.
#[sandboxed]
#[test]
fn d8_a_run_in_doubt_makes_no_other_call() {
    let project = LedgerProject::new(Http);
    project.hold("after", "a");
    project.hold("after", "b");
    let code =
        "const effect = (key) => mcp.ledger.effect({ key }).then((v) => v.done, (e) => e.code);
        const safe = mcp.ledger.slow({ ms: 1 }).then(() => mcp.ledger.safe({ key: 'two' }));
        const [a, b] = await Promise.all([effect('a'), effect('b')]);
        return { a, b, two: (await safe).done, c: await effect('c') };";
    project.hold("before", "two");
    let child = start(&project, ("typescript", code), None);
    for line in ["did effect a", "did effect b", "asked safe two"] {
        project.until_line(line);
    }
    killed(child);
    for (when, key) in [("after", "a"), ("after", "b"), ("before", "two")] {
        project.release(when, key);
    }
    project.until_quiet();
    let before = project.lines();
    let stopped = project.place.belljar(&["resume", &project.run_id(), "--json"]).json();
    assert_eq!(stopped["status"], "in_doubt");
    assert!(stopped["error"]["message"].as_str().unwrap().contains("1 more"), "{stopped}");
    assert_eq!((project.lines(), project.pending().len()), (before, 2));
    check(&project, &project.resume_to_the_end(), Some(&["a", "b"]), "two doubts");
}

/// A server that is gone is no reason to tell the code that a call failed which may have happened.
#[sandboxed]
#[test]
fn d8_a_doubt_stays_one_while_the_server_is_gone() {
    let mut project = LedgerProject::new(Http);
    project.hold("after", "one");
    let child = start(&project, ONE_ASKED[0], None);
    project.until_line("did effect one");
    killed(child);
    project.end_server();
    let id = project.run_id();
    for _ in 0..2 {
        let stopped = project.place.belljar(&["resume", &id, "--json"]);
        let result = stopped.json();
        assert_eq!((stopped.status, &result["status"]), (Some(1), &json!("in_doubt")), "{result}");
        assert_eq!(result["error"]["code"], "tool.in_doubt");
    }
    assert_eq!(
        block_on(project.store().run(&id.as_str().into())).unwrap().unwrap().result_json,
        None
    );
    assert_eq!(project.count("did effect one"), 1);
}

#[sandboxed]
#[test]
fn d8_killed_at_any_moment() {
    let codes = [SEQUENTIAL[0], PARALLEL[0], SEQUENTIAL[1], PARALLEL[1]];
    let one = |number: u32| {
        let project = LedgerProject::new(if number.is_multiple_of(2) { Http } else { Stdio });
        let code = codes[number as usize % codes.len()];
        let mut delays = Vec::new();
        let child = start(&project, code, None);
        project.run_id();
        delays.push(kill_sometime(child, 1500));
        project.until_quiet();
        if number.is_multiple_of(3) {
            let id = project.run_id();
            delays.push(kill_sometime(project.start(&["resume", &id, "--json"], None), 1500));
            project.until_quiet();
        }
        let about = format!("run {number}, killed after {delays:?}");
        check(&project, &project.resume_to_the_end(), None, &about);
    };
    let number = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    if number >= 30 {
                        break;
                    }
                    one(number);
                }
            });
        }
    });
}

/// Kills a program after some time, at most so many milliseconds.
fn kill_sometime(child: Child, most: u128) -> Duration {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let delay = Duration::from_millis(u64::try_from((nanoseconds / 1000) % most).unwrap());
    std::thread::sleep(delay);
    killed(child);
    delay
}

/// A parent that does not ask for the end of what it started keeps nobody from going on.
#[sandboxed]
#[test]
fn d8_a_killed_host_is_gone_before_its_parent_has_noticed() {
    let project = LedgerProject::new(Http);
    let mut child = start(&project, SEQUENTIAL[0], None);
    let id = project.run_id();
    // Control: while it is there, nobody else can go on.
    let refused = project.place.belljar(&["resume", &id, "--json"]);
    assert!(refused.stderr.contains("still running"), "{refused:#?}");
    child.kill().unwrap();
    project.until_quiet();
    check(&project, &project.resume_to_the_end(), None, "not waited for");
    child.wait().unwrap();
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_of_two_that_resume_one_run_one_goes_on() {
    for code in SEQUENTIAL {
        let project = LedgerProject::new(Http);
        run_until(&project, code, "ended:2");
        project.hold("before", "three");
        let id = project.run_id();
        let resume = || project.start(&["resume", &id, "--json"], None);
        let mut both = vec![resume(), resume()];
        let loser = project.until("one that gives up", || {
            both.iter_mut().position(|child| child.try_wait().unwrap().is_some())
        });
        let loser = outcome(both.remove(loser).wait_with_output().unwrap());
        assert_eq!(loser.status, Some(2), "{loser:#?}");
        assert!(loser.stderr.contains("still running"), "{loser:#?}");
        project.release("before", "three");
        let winner = outcome(both.remove(0).wait_with_output().unwrap());
        check(&project, &winner.json(), Some(&[]), code.0);
        assert_eq!(project.journalled("ended"), 4);
        // A third is given what there is.
        let again = project.place.belljar(&["resume", &id, "--json"]);
        assert_eq!(again.json()["result"], winner.json()["result"]);
    }
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_other_code_than_was_begun_is_not_resumed() {
    for (language, code) in PARALLEL {
        for (before, after) in [("'a'", "'z'"), ("effect('last')", "effect('z')")] {
            let project = LedgerProject::new(Http);
            run_until(&project, (language, code), "finished");
            let database = rusqlite::Connection::open(project.state().join(FILE_NAME)).unwrap();
            let edit = "UPDATE runs SET code = replace(code, ?1, ?2)";
            assert_eq!(database.execute(edit, [before, after]).unwrap(), 1);
            let (ledger, id) = (project.lines(), project.run_id());
            let ended = project.place.belljar(&["resume", &id, "--json"]);
            let result = ended.json();
            assert_eq!(
                (ended.status, &result["error"]["code"]),
                (Some(1), &json!("replay.diverged")),
                "{language}, {before}: {result}"
            );
            assert_eq!(project.lines(), ledger, "and nothing was done");
        }
        // Code that gives up half way is other code, too.
        let project = LedgerProject::new(Http);
        run_until(&project, (language, code), "finished");
        let database = rusqlite::Connection::open(project.state().join(FILE_NAME)).unwrap();
        let failing = if language == "python" { "1/0" } else { "null.x" };
        let edit = "UPDATE runs SET code = replace(code, ?1, ?2)";
        let last = if language == "python" { "last = await" } else { "const last = await" };
        assert_eq!(database.execute(edit, [last, failing]).unwrap(), 1);
        let result = project.place.belljar(&["resume", &project.run_id(), "--json"]).json();
        assert_eq!(result["error"]["code"], "replay.diverged", "{result}");
    }
}

/// A person who has it made again without looking gets what was decided: the call is made again.
#[sandboxed]
#[test]
fn d8_who_decides_blindly_gets_it_twice_and_is_asked_once() {
    let project = LedgerProject::new(Http);
    project.hold("after", "one");
    let child = start(&project, ONE_ASKED[1], None);
    project.until_line("did effect one");
    killed(child);
    project.release("after", "one");
    project.until_quiet();
    let result: Value = project.resume_deciding(|_| Verdict::Retry);
    assert_eq!(result["result"], json!({ "one": "one", "two": "two" }));
    assert_eq!(project.count("did effect one"), 2);
    let asked = block_on(project.store().approvals(Approvals::All, 0)).unwrap();
    assert_eq!(asked.iter().map(|one| one.state).collect::<Vec<_>>(), [ApprovalState::Approved]);
}
